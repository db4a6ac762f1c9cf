"""Private collections from end to end: encode, randomize, (shuffle), count, analyze, account."""
