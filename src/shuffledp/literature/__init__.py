"""Theorems of the literature as functions, and the comparison of them all."""
