"""Koskela, Heikkila, Honkela 2023, "Numerical accounting in the shuffle model of differential privacy"."""
