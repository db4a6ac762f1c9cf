"""What must be right: binomial laws, tails, lattice sums, each with a bound of its error."""
