"""Reading what users have: one column of a file, a frame or an array, in batches."""
