"""Girgis, Data, Diggavi 2021, "Renyi differential privacy of the subsampled shuffle model"."""
