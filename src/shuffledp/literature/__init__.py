"""Theorems of the literature as functions of numbers, and the comparison of them all.

A formula is found by its name, which is that of its paper. Each module says which theorem it is, what it
bounds, for which neighbours and against which adversary.

    closed_forms        one round: Erlingsson 2019, Balle 2019, Feldman 2021 and 2022
    concentration       one round: the privacy blanket by Hoeffding's and Bennett's inequality (Balle 2019)
    renyi               the Renyi divergence of any profile, and its conversion to (epsilon, delta)
    cohorts             rounds of random cohorts: the curve as published (Koskela 2023)
    girgis              rounds of random cohorts: Renyi divergences, learning (Girgis 2021)
    composition         rounds of which only (epsilon, delta) is known: advanced and optimal composition

    compare             ``shuffledp.compare``: all that apply to a mechanism, beside the certified ones
    _case, _entries     what is compared, and the sound bounds as its lines
    as_published        formulas that are wrong or loose as printed; ``_quarantined`` is the only door to them
    _solve              epsilon(delta) from a bound delta(epsilon)

Every value is an upper bound, rounded up (lower bounds say so, and are rounded down)."""
