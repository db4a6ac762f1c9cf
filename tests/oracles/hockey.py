"""Hockey sticks of pairs of finite laws, in exact rationals.

A law maps outcomes to probabilities. For two laws P and Q and alpha >= 0,

    H_alpha(P, Q) = sum over outcomes of max(P - alpha Q, 0).

All hockey sticks of a pair, of its products and of its adaptive compositions depend only on the
joint masses of P and Q at each value of the ratio P : Q. `atoms` keeps just those, so that
products stay small.

>>> coin = {"heads": Fraction(1, 2), "tails": Fraction(1, 2)}
>>> biased = {"heads": Fraction(3, 4), "tails": Fraction(1, 4)}
>>> hockey_stick(atoms(biased, coin), 1)
Fraction(1, 4)
"""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import pairwise

Law = Mapping[Hashable, Fraction]
Atoms = tuple[tuple[Fraction, Fraction], ...]  # (mass of P, mass of Q), one per ratio P : Q

ZERO = Fraction(0)
ONE = Fraction(1)


def atoms(p: Law, q: Law) -> Atoms:
    """The masses of P and of Q at each value of their ratio, largest ratio first."""
    return _merge((p.get(outcome, ZERO), q.get(outcome, ZERO)) for outcome in {**p, **q})


def swapped(pair: Atoms) -> Atoms:
    """The other direction: (Q, P)."""
    return _merge((q, p) for p, q in pair)


def product(*pairs: Atoms) -> Atoms:
    """The pair of independent products: all rounds are seen together."""
    joint: Atoms = ((ONE, ONE),)
    for pair in pairs:
        joint = _merge((p * r, q * s) for p, q in joint for r, s in pair)
    return joint


def hockey_stick(pair: Atoms, alpha: Fraction | int) -> Fraction:
    """H_alpha(P, Q)."""
    return sum((p - alpha * q for p, q in pair if p > alpha * q), ZERO)


def ratios(pairs: Iterable[Atoms]) -> list[Fraction]:
    """All finite ratios P : Q: the alphas where one of the curves has a kink."""
    return sorted({p / q for pair in pairs for p, q in pair if q})


def between(points: Sequence[Fraction]) -> list[Fraction]:
    """Alphas strictly between neighbouring kinks, one each, and one beyond the last."""
    middles = [(low + high) / 2 for low, high in pairwise(points)]
    return [*middles, points[-1] * Fraction(11, 10)]


def _merge(masses: Iterable[tuple[Fraction, Fraction]]) -> Atoms:
    by_ratio: dict[Fraction | None, tuple[Fraction, Fraction]] = defaultdict(lambda: (ZERO, ZERO))
    for p, q in masses:
        if p or q:
            ratio = p / q if q else None
            old_p, old_q = by_ratio[ratio]
            by_ratio[ratio] = (old_p + p, old_q + q)
    largest_first = sorted(
        by_ratio.items(), key=lambda item: (item[0] is None, item[0] or ZERO), reverse=True
    )
    return tuple(mass for _, mass in largest_first)


def upper_envelope(pairs: Iterable[Atoms]) -> list[tuple[Fraction, Fraction]]:
    """The corners (alpha, H) of the largest hockey stick of several pairs, from alpha = 0 on.

    Beyond the last corner the envelope is flat.
    """
    curves = list(pairs)
    kinks = sorted({ZERO, *ratios(curves)})
    corners = []
    for left, right in pairwise(kinks):
        # Between kinks every curve is a line: walk along the highest one, changing at crossings.
        lines = {_line(curve, left, right) for curve in curves}
        height, slope = max(lines)
        corners.append((left, height))
        while flatter := [
            ((height - other) / (rise - slope), -rise, other) for other, rise in lines if rise > slope
        ]:
            distance, fall, height_there = min(flatter)
            if left + distance >= right:
                break
            height, slope = height_there, -fall
            corners.append((left + distance, height + slope * distance))
    corners.append((kinks[-1], max(hockey_stick(c, kinks[-1]) for c in curves)))
    return corners


def _line(curve: Atoms, left: Fraction, right: Fraction) -> tuple[Fraction, Fraction]:
    """Height at the left end and slope."""
    height = hockey_stick(curve, left)
    return height, (hockey_stick(curve, right) - height) / (right - left)


def pair_of_curve(corners: Sequence[tuple[Fraction, Fraction]]) -> Atoms:
    """The pair whose hockey sticks are the given convex polygon, flat beyond its last corner.

    Every pair below the polygon is a post-processing of this one (Blackwell), so that its
    products bound all adaptive compositions. Q has the change of slope at alpha, P alpha times it.
    """
    slopes = [(after[1] - before[1]) / (after[0] - before[0]) for before, after in pairwise(corners)]
    masses = [
        (alpha * (right - left), right - left)
        for (alpha, _), left, right in zip(corners, [-ONE, *slopes], [*slopes, ZERO], strict=True)
    ]
    return _merge([*masses, (corners[-1][1], ZERO)])


def subsampled_curve(
    corners: Sequence[tuple[Fraction, Fraction]], share: Fraction
) -> list[tuple[Fraction, Fraction]]:
    """The two-sided profile of a random cohort, from that of the mechanism that asks everyone.

    For alpha >= 1 it is share H at 1 + (alpha - 1) / share, below 1 its mirror image
    1 - alpha + alpha h(1 / alpha).
    """
    at_one = _interpolate(corners, ONE)
    upper = [(ONE, share * at_one)] + [
        (1 + share * (alpha - 1), share * height) for alpha, height in corners if alpha > 1
    ]
    below = [(1 / alpha, 1 - 1 / alpha + height / alpha) for alpha, height in reversed(upper[1:])]
    return [(ZERO, ONE), *below, *upper]


def _interpolate(corners: Sequence[tuple[Fraction, Fraction]], alpha: Fraction) -> Fraction:
    for (a, low), (b, high) in pairwise(corners):
        if a <= alpha <= b:
            return low + (high - low) * (alpha - a) / (b - a)
    return corners[-1][1]
