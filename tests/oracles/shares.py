"""Split and mix by its definition: the shares of everybody, enumerated."""

from collections import Counter
from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import product

Law = dict[tuple[int, ...], Fraction]


def law(outcomes: Iterable[tuple[int, ...]]) -> Law:
    counts = Counter(outcomes)
    total = sum(counts.values())
    return {outcome: Fraction(count, total) for outcome, count in counts.items()}


def shuffled_shares(numbers: Sequence[int], m: int, q: int) -> Law:
    """What the shuffler shows: the multiset of everybody's shares."""

    def all_shares() -> Iterable[tuple[int, ...]]:
        for free in product(product(range(q), repeat=m - 1), repeat=len(numbers)):
            rows = zip(numbers, free, strict=True)
            yield tuple(sorted(s for x, own in rows for s in (*own, (x - sum(own)) % q)))

    return law(all_shares())


def hockey_stick(p: Law, q: Law, alpha: Fraction) -> Fraction:
    return sum(
        (max(mass - alpha * q.get(key, Fraction(0)), Fraction(0)) for key, mass in p.items()), Fraction(0)
    )


def mixed(parts: Iterable[tuple[Fraction, Law]]) -> Law:
    total: Law = {}
    for weight, part in parts:
        for key, mass in part.items():
            total[key] = total.get(key, Fraction(0)) + weight * mass
    return total
