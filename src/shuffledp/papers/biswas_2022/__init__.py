"""Biswas, Jung, Palamidessi 2022, "Tight differential privacy guarantees for the shuffle model with k-RR"."""
