"""Three caps of the sphere: the laws of X in crowds of one vector, for the crowd theorem (T16).

A report on a vector is in its cap or not, so all that counts of three of them (the pair's u and u', the
crowd's z) is the probability of each of the eight ways to be in caps: a distribution with q for every cap.
Those distributions are a polytope, and every law is a mixture of the laws of its corners. Geometry cuts off
what no three caps attain. With o(x) the overlap of two caps at the angle x, which is convex and falls, no
overlap shrinks and no union grows beyond three axes in a plane, whose angles add up to 360 degrees, so

    none + (r - 1) Pr[u and u'] >= 1 - 3 q + r o(x) + 2 o(180 - x/2),    r = o'(180 - x/2)/o'(x) >= 1,

for every x >= 120 degrees (docs/proofs/crowd.md, section 7).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations, product

from shuffledp._certified.caps import overlap
from shuffledp._certified.rounding import CALL, down, gamma, up
from shuffledp.facts import AmplificationLaw

_ANGLES = 120.0, 150.0  # tightness: of the pair; any from 120 on are valid
_STEEPEST = 100.0  # tightness: a cut of more, r in the module, says nothing
_WAYS = tuple(product((1, 0), repeat=3))  # in the cap of u, of u', of z

Row = tuple[Fraction, ...]
"""At least zero: a constant and the factors of the overlaps of u and u', u and z, u' and z, and of all."""


def crowd_laws(
    low: float, high: float, dimension: int, threshold: float, missed: float
) -> tuple[AmplificationLaw, ...]:
    """Of densities between ``low`` and ``high``, which differ from those of caps with probability ``missed``.

    The reports, with a tag, are as dense as ``high`` on a set of one probability q and ``low`` elsewhere."""
    dense = Fraction(low), Fraction(high)
    q = (1 - dense[0]) / (dense[1] - dense[0])
    ways = tuple(_probability(way, q) for way in _WAYS)
    cuts = tuple(_cuts(dimension, threshold, q, missed)) if threshold > 0.0 else ()
    laws = []
    for corner in _corners((*ways, *cuts)):
        rows = []
        for row, (u, v, z) in zip(ways, _WAYS, strict=True):
            mass = sum(a * b for a, b in zip(row, corner, strict=True))
            rows.append((mass * dense[u], mass * dense[v], mass * dense[z]))
        laws.append(AmplificationLaw.merged(rows))
    return tuple(laws)


def opposite(low: float, high: float) -> AmplificationLaw:
    """Of two sets that share as little as they can, hidden by what all reports have in common, ``low``."""
    dense = Fraction(low), Fraction(high)
    q = (1 - dense[0]) / (dense[1] - dense[0])
    both = max(Fraction(0), 2 * q - 1)
    masses = {(1, 0): q - both, (0, 1): q - both, (1, 1): both, (0, 0): 1 - 2 * q + both}
    return AmplificationLaw.merged(
        (mass * dense[u], mass * dense[v], mass * dense[0]) for (u, v), mass in masses.items()
    )


def _probability(way: tuple[int, ...], q: Fraction) -> Row:
    """Of being in these caps and in no other: inclusion and exclusion."""
    total = [Fraction(0)] * 5
    for outer in product(*((1,) if inside else (0, 1) for inside in way)):
        sign = (-1) ** (sum(outer) - sum(way))
        if sum(outer) < 2:
            total[0] += sign * (q if any(outer) else 1)
        else:
            total[((1, 1, 0), (1, 0, 1), (0, 1, 1), (1, 1, 1)).index(outer) + 1] += sign
    return tuple(total)


def _cuts(dimension: int, threshold: float, q: Fraction, missed: float) -> Iterator[Row]:
    m = 0.5 * (dimension - 2)
    for angle in _ANGLES:
        halves = math.radians(0.5 * angle), math.radians(90.0 - 0.25 * angle)
        beyond = [1.0 - (threshold / math.cos(half)) ** 2 for half in halves]
        if min(beyond) <= 0.0:
            continue
        steep = math.exp(m * (math.log(beyond[1]) - math.log(beyond[0])))
        if not steep <= _STEEPEST:
            continue
        found = [overlap(dimension, threshold, math.sin(half) / math.cos(half)) for half in halves]
        least = down(steep * found[0][0] + 2.0 * found[1][0], operations=8)
        # Slopes -o' are at most 1/(2 pi), and one times ``steep`` is another up to rounding, as angles are,
        # which differ by at most pi. Each of three sets misses its cap: so do q, overlaps and the union.
        units = 3 * CALL + 16 + m * (4 * CALL + 16) / min(beyond)
        doubt = 2.0 * gamma(units) * steep + steep * found[0][1] + 2.0 * found[1][1]
        doubt += (2.0 * steep + 6.0) * missed
        constant = Fraction(up(doubt, operations=16)) - Fraction(least)
        yield constant, Fraction(steep), Fraction(1), Fraction(1), Fraction(-1)


def _corners(rows: tuple[Row, ...]) -> set[Row]:
    """All points (with a leading one) that meet four of the rows with equality and none is below zero."""
    found = set()
    for four in combinations(rows, 4):
        point = _solved([list(row) for row in four])
        if point is None or point in found:
            continue
        if all(sum(a * b for a, b in zip(row, point, strict=True)) >= 0 for row in rows):
            found.add(point)
    return found


def _solved(rows: list[list[Fraction]]) -> Row | None:
    """Where constant + factors = 0 for all rows; None if that is not one point."""
    for place in range(1, 5):
        pivot = next((row for row in rows[place - 1 :] if row[place]), None)
        if pivot is None:
            return None
        rows.remove(pivot)
        rows.insert(place - 1, [entry / pivot[place] for entry in pivot])
        for other in range(4):
            if other != place - 1 and (factor := rows[other][place]):
                rows[other] = [a - factor * b for a, b in zip(rows[other], rows[place - 1], strict=True)]
    return (Fraction(1), *(-row[0] for row in rows))
