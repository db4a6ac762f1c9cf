"""Loss distributions and their sums over rounds."""
