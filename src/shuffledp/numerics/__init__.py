"""Certified floating point: binomial laws, lattice sums, convex curves. Knows nothing of privacy."""
