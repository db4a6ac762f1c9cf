"""The published dominating pairs, enumerated for a few users in exact rationals.

Every pair tells the story of one user (the victim) whose value is x or x', hidden among n - 1
others of whom some send a *clone* of what the victim could have sent; the adversary knows who
did not. E stands for e^epsilon0.

- `clones`: Feldman, McMillan, Talwar, "Stronger privacy amplification by shuffling" (2022);
- `clones_2021`: the same authors, "Hiding among the clones" (2021);
- `blanket`: Balle, Bell, Gascon, Nissim, "The privacy blanket of the shuffle model" (2019); for
  k-ary randomized response also the weak adversary of Koskela, Heikkila, Honkela, "Numerical
  accounting in the shuffle model of differential privacy" (2023);
- `strong`: the strong adversary of the latter paper, who knows who answered at random;
- `universal`: any randomizer of known total variation;
- `two_count_as_published`: the latter paper's k-ary variant of `clones`, UNSOUND for k >= 3.
"""

from collections import defaultdict
from collections.abc import Sequence
from fractions import Fraction
from itertools import permutations
from math import comb, factorial, prod

from oracles.brute import Matrix
from oracles.hockey import ONE, ZERO, Atoms, Law, atoms, hockey_stick


def binomial(n: int, r: Fraction, c: int) -> Fraction:
    """Pr[Bin(n, r) = c]."""
    return comb(n, c) * r**c * (1 - r) ** (n - c) if 0 <= c <= n else ZERO


def clones(n: int, E: Fraction | int) -> Atoms:
    """Each other user sends a clone with probability 2 / (E + 1), a fair one of the two reports."""
    return _two_reports(n, Fraction(2) / (E + 1), Fraction(E) / (E + 1))


def clones_2021(n: int, E: Fraction | int) -> Atoms:
    """The same with clones of probability 1 / E only."""
    return _two_reports(n, ONE / E, Fraction(E) / (E + 1))


def _two_reports(n: int, clone: Fraction, own: Fraction) -> Atoms:
    """C ~ Bin(n - 1, clone), A ~ Bin(C, 1/2), D ~ Bernoulli(own).

    P is the law of (A + D, C - A + 1 - D), Q that of (A + 1 - D, C - A + D).
    """
    p: dict[object, Fraction] = defaultdict(lambda: ZERO)
    q: dict[object, Fraction] = defaultdict(lambda: ZERO)
    for c in range(n):
        for a in range(c + 1):
            mass = binomial(n - 1, clone, c) * binomial(c, Fraction(1, 2), a)
            p[a + 1, c - a] += mass * own
            p[a, c - a + 1] += mass * (1 - own)
            q[a, c - a + 1] += mass * own
            q[a + 1, c - a] += mass * (1 - own)
    return atoms(p, q)


def counting(n: int, own: Sequence[Fraction], other: Sequence[Fraction], clone: Sequence[Fraction]) -> Atoms:
    """The general pair: the victim reports t with probability own[t] under P, other[t] under Q.

    Each other user sends a clone of type t with probability clone[t], or nothing that matters.
    The adversary sees how often each type was sent.
    """
    crowd: Law = {tuple(0 for _ in clone): ONE}
    for _ in range(n - 1):
        crowd = _one_more(crowd, clone)
    return atoms(_one_more(crowd, own), _one_more(crowd, other))


def counting_in_cohort(
    n: int, own: Sequence[Fraction], other: Sequence[Fraction], clone: Sequence[Fraction], share: Fraction
) -> Atoms:
    """`counting`, where the victim is among the n with probability `share`, else one more of the others.

    The adversary sees how often each type was sent, and how many reports are none of them: n in all.
    """
    rest = 1 - sum(clone)
    crowd = [*clone, rest]
    mixed = [
        [share * u + (1 - share) * c for u, c in zip([*report, ZERO], crowd, strict=True)]
        for report in (own, other)
    ]
    return counting(n, mixed[0], mixed[1], crowd)


def _one_more(law: Law, report: Sequence[Fraction]) -> Law:
    following: dict[tuple[int, ...], Fraction] = defaultdict(lambda: ZERO)
    for counts, mass in law.items():
        for t, probability in enumerate(report):
            following[(*counts[:t], counts[t] + 1, *counts[t + 1 :])] += mass * probability
        following[counts] += mass * (1 - sum(report))
    return {counts: mass for counts, mass in following.items() if mass}


def blanket(matrix: Matrix, x: int, other: int, n: int) -> Atoms:
    """What all rows of the matrix have in common is a report that does not depend on the value."""
    common = [min(column) for column in zip(*matrix, strict=True)]
    return counting(n, matrix[x], matrix[other], common)


def blanket_worst(matrix: Matrix, n: int, alpha: Fraction | int) -> Fraction:
    """The blanket's profile: its largest hockey stick over all ordered pairs of values."""
    pairs = {blanket(matrix, x, other, n) for x, other in permutations(range(len(matrix)), 2)}
    return max(hockey_stick(pair, alpha) for pair in pairs)


def k_ary_blanket(n: int, k: int, E: Fraction | int) -> Atoms:
    """The blanket of k-ary randomized response; the k - 2 values that nobody asks about merge."""
    p = ONE / (E + k - 1)
    return counting(n, (E * p, p, (k - 2) * p), (p, E * p, (k - 2) * p), (p, p, (k - 2) * p))


def strong(n: int, k: int, gamma: Fraction) -> Atoms:
    """The adversary also learns who answered at random, the victim included.

    If the victim did, nothing is lost. Otherwise the victim sent the true value, x or x', hidden
    among the random answers of the others: x and x' with probability gamma / k each.
    """
    truthful = counting(n, (ONE, ZERO), (ZERO, ONE), (gamma / k, gamma / k))
    revealed = [((1 - gamma) * p, (1 - gamma) * q) for p, q in truthful]
    outcomes = dict(enumerate([*revealed, (gamma, gamma)]))
    return atoms({i: p for i, (p, _) in outcomes.items()}, {i: q for i, (_, q) in outcomes.items()})


def universal(n: int, E: Fraction | int, total_variation: Fraction) -> Atoms:
    """Covers every randomizer whose rows are within e^epsilon0 and `total_variation`."""
    p = total_variation / (E - 1)
    rest = 1 - (E + 1) * p
    return counting(n, (E * p, p, rest), (p, E * p, rest), (p, p, rest / E))


def two_count_as_published(n: int, k: int, E: Fraction | int) -> Atoms:
    """`clones` with p = 1 / (E + k - 1), as published. A lower bound for k >= 4, not an upper."""
    p = ONE / (E + k - 1)
    return counting(n, (E * p, p), (p, E * p), (p, p))


def mean_positive_part(n: int, law: Sequence[tuple[Fraction, Fraction]]) -> Fraction:
    """(1/n) E[(X_1 + ... + X_n)_+] for iid X of the given law of (value, probability).

    With X = (own[t] - alpha other[t]) / clone[t] with probability clone[t], else 0, this is the
    hockey stick of `counting` in another form.
    """
    law = [*law, (ZERO, 1 - sum(probability for _, probability in law))]
    total = ZERO
    for counts in _compositions(n, len(law)):
        value = sum((c * x for c, (x, _) in zip(counts, law, strict=True)), ZERO)
        if value > 0:
            ways = factorial(n) // prod(factorial(c) for c in counts)
            mass = prod((r**c for c, (_, r) in zip(counts, law, strict=True)), start=ONE)
            total += ways * mass * value
    return total / n


def _compositions(total: int, parts: int) -> list[tuple[int, ...]]:
    if parts == 1:
        return [(total,)]
    return [(i, *rest) for i in range(total + 1) for rest in _compositions(total - i, parts - 1)]
