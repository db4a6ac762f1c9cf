"""Secure random words, and the exact integer laws and normal variables drawn with them. Knows no privacy."""
