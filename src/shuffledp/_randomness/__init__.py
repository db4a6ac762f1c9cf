"""Random words, and exact choices made from them."""
