"""Concrete neighbouring datasets: lower bounds on the truth.

All n - 1 other users hold one and the same value. Their reports are then iid, so the round is an
AmplificationProfile whose ``clone`` is the whole law of one report, and its curve is exactly that of
one pair of datasets of the real mechanism: below the mechanism's own profile.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import singledispatch

import numpy as np

from shuffledp.accounting._curves.blanket import krr_probabilities
from shuffledp.accounting._curves.law_sum import AmplificationProfile
from shuffledp.accounting._curves.third_value import EvenCrowdProfile
from shuffledp.facts import AmplificationLaw
from shuffledp.randomizers._grid import GridRandomizer
from shuffledp.randomizers.frequency import FrequencyRandomizer
from shuffledp.randomizers.kary import KaryRandomizedResponse
from shuffledp.randomizers.local import LocalRandomizer
from shuffledp.randomizers.matrix import FiniteRandomizer
from shuffledp.randomizers.vectors import VectorRandomizer

Witness = AmplificationProfile | EvenCrowdProfile

_MOST_WITNESSES = 4
_SMALL_CROWD = 1000.0
_EXCHANGED = 1e-6


def krr_witnesses(k: int, epsilon0: float, n: int) -> list[Witness]:
    """Others hold x, or a third symbol (k >= 3). Others holding x' is the first one, reversed."""
    p, ep, gap = krr_probabilities(k, epsilon0)
    rest = (k - 2) * p
    same = AmplificationProfile(
        n, own=(ep, p, rest), other=(p, ep, rest), gap=(gap, -gap, 0.0), clone=(ep, p, rest)
    )
    if k == 2:
        return [same.without_empty_types()]
    return [_third(k, n, p, ep, gap), same.without_empty_types()]


def _third(k: int, n: int, p: float, ep: float, gap: float) -> Witness:
    """Others hold a third symbol. In a small crowd it tells which of the k - 2 others was sent."""
    left = (k - 3) * p
    if left == 0.0 or 2.0 * p * n > _SMALL_CROWD:
        return EvenCrowdProfile(n, ep + p, gap, p, away=p + left, rate=2.0 * p, rest=ep + left)
    own, other = (ep, p, p, left), (p, ep, p, left)
    return AmplificationProfile(n, own, other, (gap, -gap, 0.0, 0.0), clone=(p, p, ep, left))


def local_witnesses(randomizer: LocalRandomizer, n: int) -> list[Witness]:
    """A member of the class: k-ary randomized response, k the least (from 3) that its facts allow.

    All others hold a third symbol: among small k, that is the worst for all but tiny crowds."""
    epsilon0 = randomizer.epsilon0
    known = randomizer.total_variation
    if known is None:
        return krr_witnesses(3, epsilon0, n)[:1]
    if known == 0.0 or epsilon0 == 0.0:
        return []
    # (E - 1)/(E + k - 1) <= total variation.
    k = math.expm1(epsilon0) * (1.0 / known - 1.0) * (1.0 + 1e-12) + 1e-9
    if k > 1e12:
        return []
    return krr_witnesses(max(3, math.ceil(k)), epsilon0, n)[:1]


def finite_witnesses(randomizer: FiniteRandomizer, n: int) -> list[AmplificationProfile]:
    """The pairs of inputs and the third inputs with the largest chi-square, all others at the third."""
    rows = randomizer.matrix
    if rows.shape[0] < 2:
        return []
    found: list[tuple[float, int, int, int]] = []
    for z in range(rows.shape[0]):
        seen = rows[z] > 0.0
        scaled = np.where(
            seen, rows / np.where(seen, np.sqrt(np.maximum(rows[z], 1e-300)), 1.0), 0.0
        )
        hidden = np.where(seen, 0.0, rows)
        square = (scaled**2).sum(axis=1)
        chi = square[:, None] + square[None, :] - 2.0 * scaled @ scaled.T
        # What the others can never send is seen at once: it outweighs everything.
        chi = chi + 1e6 * n * np.abs(hidden[:, None, :] - hidden[None, :, :]).sum(axis=2)
        x, y = np.unravel_index(int(np.argmax(chi)), chi.shape)
        found.append((float(chi[x, y]), int(x), int(y), z))
    found.sort(reverse=True)
    # Noise is symmetric: of two pairs that are each other's mirror image one is enough.
    different: dict[bytes, AmplificationProfile] = {}
    for _, i, j, k in found:
        mass = rows[k].round(9)
        shape = np.arcsinh((rows[i] - rows[j]) / np.maximum(rows[k], 1e-300)).round(6)
        sides = (np.stack([part + 0.0, mass]) for part in (shape, -shape))
        key = min(side[:, np.lexsort(side)].tobytes() for side in sides)
        different.setdefault(key, finite_pair(rows[i], rows[j], rows[k], n))
        if len(different) == _MOST_WITNESSES:
            break
    return list(different.values())


def finite_pair(
    own: np.ndarray, other: np.ndarray, clone: np.ndarray, n: int
) -> AmplificationProfile:
    """Input x against x', with the given law of one other user's (or one blanket) report."""
    gap = own - other
    return AmplificationProfile(
        n, *(tuple(map(float, part)) for part in (own, other, gap, clone))
    ).without_empty_types()


@singledispatch
def witnesses(randomizer: object, n: int) -> Sequence[Witness]:
    """Pairs of datasets of the randomizer's n-user round."""
    raise TypeError(f"no witnesses are known for {randomizer!r}")


@witnesses.register
def _(randomizer: LocalRandomizer, n: int) -> Sequence[Witness]:
    return local_witnesses(randomizer, n)


@witnesses.register
def _(randomizer: KaryRandomizedResponse, n: int) -> Sequence[Witness]:
    return krr_witnesses(randomizer.k, randomizer.epsilon0, n)


@witnesses.register
def _(randomizer: FiniteRandomizer, n: int) -> list[AmplificationProfile]:
    return finite_witnesses(randomizer, n)


@witnesses.register
def _(randomizer: GridRandomizer, n: int) -> list[AmplificationProfile]:
    return finite_witnesses(randomizer.finite, n)


@witnesses.register
def _(randomizer: FrequencyRandomizer, n: int) -> list[AmplificationProfile]:
    """All others hold a third category, or x."""
    third = randomizer.third_law()
    pairs = [_complete(third, third.clone, n)] if third is not None else []
    law = randomizer.law()
    return [*pairs, _complete(law, law.own, n)]


@witnesses.register
def _(randomizer: VectorRandomizer, n: int) -> list[AmplificationProfile]:
    """All others hold uniformly random directions, or x.

    Others drawn at random are no worse than the worst dataset: the hockey stick is jointly convex.
    Their reports are spread evenly, as the clones are. The law's own numbers are rounded up by the
    randomizer's margin: exchanging x and x' a little more often than that takes it back."""
    law = randomizer.law()
    exchanged = max(_EXCHANGED, 8.0 * randomizer.margin)
    pairs = zip(law.own, law.other, strict=True)
    own = tuple(u - exchanged * (u - v) for u, v in pairs)
    other = tuple(u + v - w for u, v, w in zip(law.own, law.other, own, strict=True))
    gap = tuple((1.0 - 2.0 * exchanged) * g for g in law.gap)
    total = sum(law.clone)
    even = tuple(c / total for c in law.clone)
    lowered = AmplificationLaw(own, other, even, gap)
    return [_complete(lowered, clone, n) for clone in (even, own)]


def _complete(law: AmplificationLaw, clone: tuple[float, ...], n: int) -> AmplificationProfile:
    """The pair x, x' of a law among others whose reports have the types ``clone``."""
    return AmplificationProfile(n, law.own, law.other, law.gap, clone).without_empty_types()
