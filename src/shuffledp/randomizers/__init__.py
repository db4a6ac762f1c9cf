"""Local randomizers: what a client runs, and the facts about it that an analysis needs.

One file each: exact sampling, the tight epsilon0, the law of the amplification variable, unbiased
estimates, ``facts()``. ``registry`` has the list of them; families share ``frequency`` (categories),
``_grid`` (numbers in an interval) and ``vectors``.
"""
