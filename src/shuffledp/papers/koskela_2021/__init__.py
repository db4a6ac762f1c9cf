"""Koskela, Heikkila, Honkela 2021, "Tight accounting in the shuffle model of differential privacy"."""
