"""Concrete neighbouring datasets: lower bounds on the truth (T14, docs/proofs/witnesses.md).

All n - 1 other users' reports are iid, for they hold one and the same value. The round is then an
AmplificationProfile whose ``clone`` is the whole law of one report, and its curve is exactly that of
one pair of datasets of the real mechanism: below the mechanism's own profile.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from shuffledp._certified.products import product
from shuffledp._certified.rounding import positive
from shuffledp.accounting._curves.inexact import InexactProfile
from shuffledp.accounting._curves.law_sum import AmplificationProfile
from shuffledp.accounting._curves.third_value import EvenCrowdProfile
from shuffledp.facts import AmplificationLaw, Facts, Matrix

Witness = AmplificationProfile | EvenCrowdProfile | InexactProfile

_MOST_PAIRS, _MORE = 4, 2  # of a matrix; speed
_FEW_PEOPLE = 0.05  # for each, of chi-square: then those who hold a value of the pair hide it least, perhaps
_MOST_INPUTS = 129  # of a matrix that are tried; speed
_SMALL_CROWD = 1000.0  # reports x or x'; speed


def witnesses(facts: Facts, n: int) -> list[Witness]:
    """Pairs of datasets of the n-user round."""
    return [among(n) for among in datasets(facts, n)]


def datasets(facts: Facts, n: int) -> list[Callable[[int], Witness]]:
    """What the differing user and all others hold, where that tells much of about n users; of each, the pair
    for any number of users. Where their number is random, as in a cohort of which some are honest, what they
    hold must not depend on it."""
    found: list[Callable[[int], Witness]] = [partial(witness, law) for law in facts.concrete]
    if facts.matrix is None:
        return found
    rows = facts.matrix.rows
    return [
        *found,
        *(partial(finite_pair, rows[i], rows[j], rows[k]) for i, j, k in triples(facts.matrix, n)),
    ]


def witness(law: AmplificationLaw, n: int) -> Witness:
    """The pair of datasets of one law; a large even crowd in closed form."""
    found = _even_crowd(law, n) or pair(law, n)
    return InexactProfile(found, law.error) if law.error else found


def pair(law: AmplificationLaw, n: int) -> AmplificationProfile:
    """The law as it is."""
    return AmplificationProfile(n, law.own, law.other, law.gap, law.clone).without_empty_types()


def _even_crowd(law: AmplificationLaw, n: int) -> EvenCrowdProfile | None:
    """The law with all that does not tell x from x' counted as one type, where the others send the two
    telling types equally often and the crowd is large: in a small one the other types help.

    None if it has another shape."""
    if len(law.own) < 3 or any(law.gap[2:]) or law.own[2:] != law.other[2:]:
        return None
    mirrored = law.own[:2] == law.other[1::-1] and law.gap[0] == -law.gap[1] > 0.0
    rate, rest = 2.0 * law.clone[0], sum(law.clone[2:])
    if not mirrored or law.clone[0] != law.clone[1] or rate == 0.0 or rest == 0.0:
        return None
    telling = len([mass for mass in law.own[2:] if mass > 0.0])
    if telling > 1 and rate * n <= _SMALL_CROWD:
        return None
    near, away = law.own[0] + law.own[1], sum(law.own[2:])
    return EvenCrowdProfile(n, near, law.gap[0], law.own[1], away, rate, rest)


def triples(matrix: Matrix, n: int) -> list[tuple[int, int, int]]:
    """The pairs of rows and the third rows with the largest chi-square, all others at the third; of few
    people also at one of the pair."""
    if len(matrix.rows) < 2:
        return []
    # Of very many inputs some, evenly spread and with both ends: those of noise are in order.
    some = np.linspace(0, len(matrix.rows) - 1, min(len(matrix.rows), _MOST_INPUTS)).astype(int)
    rows = matrix.rows[some]
    found: list[tuple[float, int, int, int]] = []
    within: list[tuple[float, int, int, int]] = []
    for z in range(rows.shape[0]):
        seen = rows[z] > 0.0
        scaled = np.where(seen, rows / np.where(seen, np.sqrt(positive(rows[z])), 1.0), 0.0)
        square = (scaled**2).sum(axis=1)
        chi = square[:, None] + square[None, :] - 2.0 * product(scaled, scaled.T)
        if not seen.all():  # what the others can never send is seen at once: it outweighs everything
            hidden = rows[:, ~seen]
            chi = chi + 1e6 * n * np.abs(hidden[:, None, :] - hidden[None, :, :]).sum(axis=2)
        x, y = np.unravel_index(int(np.argmax(chi)), chi.shape)
        found.append((float(chi[x, y]), int(x), int(y), z))
        within.append((float(chi[:, z].max()), int(chi[:, z].argmax()), z, z))
    found.sort(reverse=True)
    few = found[0][0] > _FEW_PEOPLE * n
    if few:
        found = [*sorted(within, reverse=True)[:_MORE], *found]
    # Noise is symmetric: of two pairs that are each other's mirror image one is enough.
    different: dict[bytes, tuple[int, int, int]] = {}
    for _, i, j, k in found:
        mass = rows[k].round(9)
        shape = np.arcsinh((rows[i] - rows[j]) / positive(rows[k])).round(6)
        sides = (np.stack([part + 0.0, mass]) for part in (shape, -shape))
        key = min(side[:, np.lexsort(side)].tobytes() for side in sides)
        different.setdefault(key, (int(some[i]), int(some[j]), int(some[k])))
        if len(different) == _MOST_PAIRS + _MORE * few:
            break
    return list(different.values())


def finite_pair(own: np.ndarray, other: np.ndarray, clone: np.ndarray, n: int) -> AmplificationProfile:
    """Input x against x', with the given law of one other user's (or one blanket) report."""
    gap = own - other
    return AmplificationProfile(
        n, *(tuple(map(float, part)) for part in (own, other, gap, clone))
    ).without_empty_types()
