"""Shuffling: forget who sent what. In memory, through files, and with engines that stream or scale out.

permutation    a uniformly random order, exactly
roles          randomize, shuffle and analyze as three processes that pass files
engine         one collection end to end: embedded (a process) or Spark (a cluster)
"""
