"""One of the five papers: what it states as published, and its figures."""
