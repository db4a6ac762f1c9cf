"""Bounds of the literature as pure functions of numbers: one file per kind of argument."""
