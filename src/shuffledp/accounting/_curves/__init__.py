"""Privacy profiles of one round."""
