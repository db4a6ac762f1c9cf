"""Secure random words and the exact integer laws that are sampled with them. Knows no privacy."""
