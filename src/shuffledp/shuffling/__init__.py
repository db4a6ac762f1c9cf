"""Shuffling: forget who sent what. In memory, through files, and with engines that stream or scale out.

columns        one column of a file, frame or array, as a stream
permutation    a uniformly random order, exactly, also of more reports than memory holds
report_files   reports in files that say what they are and whether they are whole
roles          randomize, shuffle and analyze as three processes that pass files
engine         one collection end to end, in a process; spark: on a cluster
"""
