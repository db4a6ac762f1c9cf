"""Different people, different randomizers in one round: what holds for a person of each group, and for all.

Everybody hides behind what all groups' reports have in common, a blanket of one law (T21).

>>> from shuffledp import KaryRandomizedResponse
>>> survey = ShuffledGroups.of(KaryRandomizedResponse, {1.0: 5_000, 4.0: 20_000}, k=16)
>>> for people in (survey.person(1.0), survey.person(4.0), survey):
...     print(f"{float(people.epsilon(delta=1e-6)):.4f}")
0.0185
0.1720
0.1720
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from shuffledp import _validate
from shuffledp._certified.products import product
from shuffledp._certified.rounding import Floats, down, positive
from shuffledp.accounting._analyses import profile_of
from shuffledp.accounting._curves.all_pairs import laws_of_pairs
from shuffledp.accounting._curves.combined import BestProfile, LargestProfile
from shuffledp.accounting._curves.groups import GroupsProfile
from shuffledp.accounting._curves.profile import PrivacyProfile
from shuffledp.accounting._rounds.round import Round
from shuffledp.accounting.mechanism import OneRound, facts_of
from shuffledp.facts import AmplificationLaw, Blanket, Facts, Matrix

Masses = tuple[tuple[float, ...], ...]

_MOST_ROWS = 16  # speed: all pairs of inputs of a matrix are compared; of more, groups hide their own only


@dataclass(frozen=True)
class ShuffledGroups(OneRound):
    """One round of several groups: ``groups`` are (randomizer, people) with one common blanket.

    It holds for everybody; ``person`` says what holds for somebody of one group. ``honest_fraction``: at
    least this share of each group randomizes as told; the others hide nobody."""

    groups: tuple[tuple[Any, int], ...]
    honest_fraction: float = 1.0

    def __post_init__(self) -> None:
        if not self.groups:
            raise ValueError("groups must hold at least one (randomizer, people)")
        counted = tuple((one, _validate.count("people", people)) for one, people in self.groups)
        object.__setattr__(self, "groups", counted)
        share = _validate.probability("honest_fraction", self.honest_fraction, positive=True)
        object.__setattr__(self, "honest_fraction", share)
        _ = self._blanket  # refused now, not when asked

    @classmethod
    def of(
        cls, kind: Any, groups: Mapping[float, int], *, honest_fraction: float = 1.0, **parameters: Any
    ) -> ShuffledGroups:
        """``{epsilon0: people}`` of one kind of randomizer."""
        made = tuple((kind(**parameters, epsilon0=local), people) for local, people in groups.items())
        return cls(made, honest_fraction)

    def person(self, epsilon0: float) -> OneRound:
        """The round for a person of the group whose randomizer was made with this epsilon0."""
        known = [float(one.epsilon0) for one, _ in self.groups]
        close = [place for place, local in enumerate(known) if abs(local - epsilon0) <= 1e-6 * (1.0 + local)]
        if not close:
            raise ValueError(f"epsilon0 must be that of a group, one of {known}, got {epsilon0!r}")
        return Person(self, close[0])

    @property
    def _honest(self) -> list[int]:
        """The honest people of each group, rounded down."""
        return [_validate.part_of(self.honest_fraction, people) for _, people in self.groups]

    @cached_property
    def _facts(self) -> list[Facts]:
        return [facts_of(one) for one, _ in self.groups]

    @cached_property
    def _blanket(self) -> list[tuple[list[AmplificationLaw], float]]:
        """Of each group: laws above its pairs of inputs, whose clones are its part of the blanket; a mass."""
        shapes = {None if facts.blanket is None else facts.blanket.shape for facts in self._facts}
        if len(shapes) == 1 and None not in shapes:
            found = [facts.blanket for facts in self._facts if facts.blanket is not None]
            masses = [one.mass for one in found if one.mass is not None]
            return list(zip([[one.law] for one in found], masses, strict=True)) if masses else _aligned(found)
        matrices = [facts.matrix for facts in self._facts if facts.matrix is not None]
        if len(matrices) == len(self.groups) and len({one.rows.shape[1] for one in matrices}) == 1:
            return _of_matrices(matrices)
        shown = ", ".join(repr(one) for one, _ in self.groups)
        raise ValueError(
            "groups must share a blanket: randomized response over the same k, hashing with the same number "
            "of symbols, subsets of one size, Hadamard response of one order, PrivUnit of one dimension and "
            "cap_probability, unary encodings of up to 12 categories (of more, the number of ones tells the "
            "groups apart: ask for each group alone), or matrices (noise on a grid) with the same reports. "
            f"Got {shown}"
        )

    def _of_group(self, place: int) -> Round:
        laws, mass = self._blanket[place]
        counts = tuple(max(0, people - (j == place)) for j, people in enumerate(self._honest))
        pairs = [self._pair(law, mass, counts) for law in laws]
        every = tuple(side for pair in pairs for side in pair.directions)
        facts = self._facts[place]
        crowds = tuple(self._crowds(place, counts))
        attained = facts.epsilon0.lower if crowds else 0.0
        # Who tells the other groups' reports apart leaves the own group: that bounds it, too.
        alone = profile_of(facts, max(1, self._honest[place]), "best")
        profile: PrivacyProfile = alone
        if every:
            profile = every[0] if len(every) == 1 else LargestProfile(every)
            # The blanket of k-ary response is the common one: nobody gains by having less of it.
            if facts.response is None or alone.names[: alone.rivals] != ("blanket",):
                profile = BestProfile(("all groups", "own group"), (profile, alone), rivals=2)
        return Round(profile, crowds, facts.epsilon0.upper, attained, sum(counts) == 0)

    def _pair(self, law: AmplificationLaw, mass: float, counts: tuple[int, ...]) -> GroupsProfile:
        """The laws of all groups' clones are one: they differ in their mass only."""
        shares = [down(other / mass, operations=4, tiny=0.0) for _, other in self._blanket]
        crowd = tuple(tuple(share * c for c in law.clone) for share in shares)
        return GroupsProfile(law.own, law.other, law.gap, crowd, counts)

    def _crowds(self, place: int, counts: tuple[int, ...]) -> list[GroupsProfile]:
        """Everybody else holds a third value, or, if there is none, x."""
        found = self._watched(place, counts)
        if found is None:
            return []
        law, crowd = found
        return [GroupsProfile(law.own, law.other, law.gap, crowd, counts)]

    def _watched(self, place: int, counts: tuple[int, ...]) -> tuple[AmplificationLaw, Masses] | None:
        """A pair of inputs, and the others' laws of a report, by the same types."""
        matrices = [facts.matrix for facts in self._facts if facts.matrix is not None]
        if all(facts.response is not None for facts in self._facts):
            laws = [facts.concrete[0] for facts in self._facts]
            return laws[place], tuple(law.clone for law in laws)
        blankets = [facts.blanket for facts in self._facts if facts.blanket is not None]
        if len(blankets) == len(self.groups):
            seen = [one.watched for one in blankets if one.watched is not None]
            if len(seen) == len(blankets):
                return seen[place], tuple(law.clone for law in seen)
            laws = [one.law for one in blankets]
            alike = len({len(law.own) for law in laws}) == 1
            return (laws[place], tuple(law.own for law in laws)) if alike else None
        return _worst_triple(matrices, place, counts) if len(matrices) == len(self.groups) else None

    @cached_property
    def round(self) -> Round:
        parts = [self._of_group(place) for place in range(len(self.groups))]
        profile = LargestProfile(tuple(part.profile for part in parts))
        crowds = tuple(crowd for part in parts for crowd in part.witnesses)
        pure = max(part.pure for part in parts)
        return Round(profile, crowds, pure, max(part.attained for part in parts), parts[0].alone)


@dataclass(frozen=True)
class Person(OneRound):
    """The round as it is for a person of one group."""

    crowd: ShuffledGroups
    place: int

    @cached_property
    def round(self) -> Round:
        return self.crowd._of_group(self.place)


def _aligned(blankets: list[Blanket]) -> list[tuple[list[AmplificationLaw], float]]:
    """Likewise, type by type of laws that have the same types."""
    least = np.array([one.law.clone for one in blankets])
    common = least.min(axis=0)
    shares = [float(np.min(own[common > 0.0] / common[common > 0.0])) for own in least]
    parts = [tuple((down(share, operations=4) * common).tolist()) for share in shares]
    return [([one.law.among(part)], share) for one, part, share in zip(blankets, parts, shares, strict=True)]


def _worst_triple(
    matrices: list[Matrix], place: int, counts: tuple[int, ...]
) -> tuple[AmplificationLaw, Masses] | None:
    """Two inputs, and a third that everybody else holds, with the largest chi-square."""
    rows = matrices[place].rows
    weights = np.array(counts, float) / max(1, sum(counts))
    best: tuple[float, int, int, int] = (0.0, 0, 0, 0)
    for z in range(min(len(matrix.rows) for matrix in matrices)):
        mean = sum(weight * matrix.rows[z] for weight, matrix in zip(weights, matrices, strict=True))
        scaled = rows / np.sqrt(positive(np.asarray(mean)))
        square = (scaled**2).sum(axis=1)
        chi = square[:, None] + square[None, :] - 2.0 * product(scaled, scaled.T)
        i, j = np.unravel_index(int(np.argmax(chi)), chi.shape)
        best = max(best, (float(chi[i, j]), int(i), int(j), z))
    _, x, y, z = best
    if x == y:
        return None
    own, other = (tuple(map(float, rows[place])) for place in (x, y))
    law = AmplificationLaw(own, other, tuple(map(float, matrices[place].rows[z])))
    return law, tuple(tuple(map(float, matrix.rows[z])) for matrix in matrices)


def _of_matrices(matrices: list[Matrix]) -> list[tuple[list[AmplificationLaw], float]]:
    """The smallest probability of every report, of any input of any group; how much more of it each has."""
    least = [matrix.rows.min(axis=0) for matrix in matrices]
    common = np.min(least, axis=0)
    if not common.any():
        raise ValueError(
            "groups of matrices must share reports: here every report is one that some input never sends"
        )
    found = []
    compared = max(matrix.rows.shape[0] for matrix in matrices) <= _MOST_ROWS  # else each group hides its own
    for matrix, own in zip(matrices, least, strict=True):
        more = float(np.min(own[common > 0.0] / common[common > 0.0]))
        found.append((_laws(matrix.rows, more * common) if compared else [], more))
    return found


def _laws(rows: Floats, clone: Floats) -> list[AmplificationLaw]:
    classes: dict[bytes, AmplificationLaw] = {}
    pairs = [(rows[x], rows[y]) for x in range(len(rows)) for y in range(x)]
    for key, law in laws_of_pairs(pairs, clone, 2):
        classes.setdefault(key, AmplificationLaw(law.own, law.other, law.clone, law.gap))
    return list(classes.values())
