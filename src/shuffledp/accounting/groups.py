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

import math
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
from shuffledp.accounting._curves.exact_binary import EXACT_LIMIT, BinaryAmongProfile, ExactBinaryProfile
from shuffledp.accounting._curves.groups import GroupPairsProfile, GroupsProfile
from shuffledp.accounting._curves.profile import PrivacyProfile
from shuffledp.accounting._rounds.round import Round
from shuffledp.accounting.mechanism import OneRound, facts_of
from shuffledp.facts import AmplificationLaw, Blanket, Facts, Matrix

Masses = tuple[tuple[float, ...], ...]
Shares = tuple[float, ...]

_CLOSE = {"rel_tol": 1e-6, "abs_tol": 1e-6}  # of an epsilon0 that was asked for
_MOST_ROWS = 33  # speed: all pairs of inputs of a matrix are compared; of more, groups hide their own only
_SHARES, _LEAST_SHARE, _SWEEPS = 24, 1e-3, 2  # tightness: of others' blankets that are tried
_LEAST_MASS = 1e-100  # tightness: of a type, by which shares are found
_RARE = 1e-18  # tightness: what reports that are hidden least may weigh
_DEVIATIONS, _LARGEST_EPSILON = 4.0, 2.0  # tightness: about where delta is 1e-5
_LEAST_TILT, _LARGEST_TILT, _TILTS = 0.3, 1.4, 8  # tightness: of Chernoff's bound, by a normal sum's
_WANTED = (
    "groups must share a blanket: randomized response over the same k, hashing with the same number "
    "of symbols, subsets of one size, Hadamard response of one order, PrivUnit of one dimension and "
    "cap_probability, unary encodings of one kind and k, signs (L1Randomizer, LInfinityRandomizer) of as "
    "many rows, or matrices (noise on a grid) with the same reports; of any others ask for each group alone "
    "(Shuffled), which holds whatever the others send"
)


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
        _ = self._least  # refused now, not when asked

    @classmethod
    def of(
        cls, kind: Any, groups: Mapping[float, int], *, honest_fraction: float = 1.0, **parameters: Any
    ) -> ShuffledGroups:
        """``{epsilon0: people}`` of one kind of randomizer."""
        made = tuple((kind(**parameters, epsilon0=local), people) for local, people in groups.items())
        return cls(made, honest_fraction)

    def person(self, epsilon0: float | None = None, *, group: int | None = None) -> OneRound:
        """The round for a person of the group whose randomizer was made with this epsilon0, or of that number
        (from 0 on)."""
        if (epsilon0 is None) == (group is None):
            raise TypeError("give one of epsilon0 and group")
        if epsilon0 is None:
            return Person(self, _validate.count("group", group, least=0, most=len(self.groups) - 1))
        known = [float(one.epsilon0) for one, _ in self.groups]
        same = [place for place, local in enumerate(known) if local == epsilon0]
        # What is realised differs a little from what was asked for.
        close = same or [
            place for place, local in enumerate(known) if math.isclose(local, epsilon0, **_CLOSE)
        ]
        if not close:
            raise ValueError(f"epsilon0 must be that of a group, one of {known}, got {epsilon0!r}")
        if any(self.groups[place][0] != self.groups[close[0]][0] for place in close):
            raise ValueError(
                f"epsilon0 must tell one group from others, and groups {close} have about {epsilon0!r}: give"
                " group= instead"
            )
        return Person(self, close[0])

    @property
    def _honest(self) -> list[int]:
        """The honest people of each group, rounded down."""
        return [_validate.part_of(self.honest_fraction, people) for _, people in self.groups]

    @cached_property
    def _facts(self) -> list[Facts]:
        return [facts_of(one) for one, _ in self.groups]

    @cached_property
    def _least(self) -> list[Floats]:
        """Of each group what every input sends of each type at least, or in all: types are those of a blanket
        that differs with epsilon0, or reports; one type where all groups hide by one law."""
        blankets = self._blankets
        if blankets:
            masses = [one.mass for one in blankets if one.mass is not None]
            return [np.array([mass]) for mass in masses] or [np.array(one.law.clone) for one in blankets]
        matrices = [facts.matrix for facts in self._facts if facts.matrix is not None]
        if len(matrices) < len(self.groups):
            raise ValueError(f"{_WANTED}. Got {', '.join(repr(one) for one, _ in self.groups)}")
        sizes = [matrix.rows.shape[1] for matrix in matrices]
        if len(set(sizes)) > 1:
            raise ValueError(
                f"groups of matrices (noise on a grid) must have the same reports: got {sizes} of them. Of "
                "Gaussian noise that depends on sigma, and the number of a report would say another value in "
                "each group: take one sigma, or Laplace noise, or ask for each group alone (Shuffled), which "
                "holds whatever the others send"
            )
        least = [matrix.rows.min(axis=0) for matrix in matrices]
        if not np.min(least, axis=0).any():
            raise ValueError(
                "groups of matrices must share reports: here every report is one that some input never sends"
            )
        return least

    @property
    def _blankets(self) -> list[Blanket]:
        """Those of all groups, if they are of one shape."""
        found = [facts.blanket for facts in self._facts if facts.blanket is not None]
        alike = len(found) == len(self.groups) and len({one.shape for one in found}) == 1
        return found if alike else []

    def _hidden(self, place: int, counts: tuple[int, ...]) -> tuple[list[AmplificationLaw], Shares]:
        """Laws above the pairs of inputs of a group, with a part nu of its blanket as clones; how much of nu
        everybody of each group sends, whatever the input."""
        own, blankets = self._least[place], self._blankets
        if blankets and blankets[0].mass is not None:
            shares = tuple(down(float(mass[0] / own[0]), operations=4, tiny=0.0) for mass in self._least)
            return [blankets[place].law], shares
        if blankets:
            law = blankets[place].law
            pair = np.array([law.own, law.other])
            clone, shares = shared(self._least, place, counts, pair, pair)
            return ([law.among(tuple(clone.tolist()))] if sum(shares) > 1.0 else []), shares
        rows = [facts.matrix.rows for facts in self._facts if facts.matrix is not None]
        if max(map(len, rows)) > _MOST_ROWS:  # each group hides its own
            return [], ()
        clone, shares = shared(self._least, place, counts, _farthest(rows[place], own), rows[place])
        return (_laws(rows[place], clone) if sum(shares) > 1.0 else []), shares

    def _of_group(self, place: int) -> Round:
        counts = tuple(max(0, people - (j == place)) for j, people in enumerate(self._honest))
        laws, shares = self._hidden(place, counts)
        pairs = [_pair(law, shares, counts) for law in laws]
        every = tuple(side for pair in pairs for side in pair.directions)
        facts = self._facts[place]
        crowds = tuple(self._crowds(place, counts))
        attained = facts.epsilon0.lower if crowds else 0.0
        one = self._as_one(place, counts)
        profile: PrivacyProfile = one
        if every:
            profile = every[0] if len(every) == 1 else GroupPairsProfile(every)
            # The blanket of k-ary response is the common one: nobody gains by having less of it.
            if facts.response is None or facts.response.k == 2:
                profile = BestProfile(("all groups", *one.names), (profile, *one.profiles), 1 + one.rivals)
        return Round(profile, crowds, facts.epsilon0.upper, attained, sum(counts) == 0)

    def _as_one(self, place: int, counts: tuple[int, ...]) -> BestProfile:
        """Some of the others as one group.

        Who tells the other groups' reports apart leaves the own group. A binary response is a mixture of
        those of any larger epsilon0, so that its people count as such: at that which hides most."""
        facts = self._facts[place]
        if facts.response is not None and facts.response.k == 2 and all(one.response for one in self._facts):
            locals_ = [float(one.epsilon0.upper) for one in self._facts]
            alike = [sum(c for c, below in zip(counts, locals_, strict=True) if below <= e) for e in locals_]
            hidden = [count / math.cosh(0.5 * e) ** 2 for count, e in zip(alike, locals_, strict=True)]
            best = hidden.index(max(hidden))
            n, own, others = 1 + alike[best], locals_[place], locals_[best]
            if n <= EXACT_LIMIT:
                one = ExactBinaryProfile(n, own) if own == others else BinaryAmongProfile(n, own, others)
                return BestProfile(("exact",), (one,))
        return profile_of(facts, max(1, self._honest[place]), "best")

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
        blankets = self._blankets
        if blankets:
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


def _pair(law: AmplificationLaw, shares: Shares, counts: tuple[int, ...]) -> GroupsProfile:
    """The laws of all groups' clones are one: they differ in their mass only."""
    crowd = tuple(tuple(share * c for c in law.clone) for share in shares)
    return GroupsProfile(law.own, law.other, law.gap, crowd, counts)


def shared(
    least: list[Floats], place: int, counts: tuple[int, ...], pair: Floats, rows: Floats
) -> tuple[Floats, Shares]:
    """(nu, share of each group) with share times nu at most what everybody of the group sends, ``least``.

    Any shares will do: nu is what is left of the own group's if the others are to send their share of it.
    The more of nu they send the less is left. Those are taken that hide ``pair``, two of ``rows``, best."""
    scored = _Scored.of(least[place], pair, counts, place)
    sent = rows.max(axis=0)

    def left(shares: list[float]) -> Floats:
        parts = [mass / share for mass, share in zip(least, shares, strict=True) if share > 0.0]
        return _without_rare(np.minimum(least[place], np.min(parts, axis=0)), sent)

    best = [float(j == place) for j in range(len(least))]
    score = scored(left(best), best)
    for _ in range(_SWEEPS if len(least) > 2 else 1):
        for j in (j for j, count in enumerate(counts) if j != place and count):
            for share in _tried(least[place], least[j]):
                shares = [*best[:j], share, *best[j + 1 :]]
                score, best = min((score, best), (scored(left(shares), shares), shares))
    return left(best), tuple(down(share, operations=4) if share != 1.0 else 1.0 for share in best)


def _tried(own: Floats, other: Floats) -> list[float]:
    """Shares of the own group's blanket: all that the other sends of the type of which it sends most, to what
    it sends of all types."""
    counts = own > _LEAST_MASS * own.max(initial=0.0)
    ratio = other[counts] / own[counts]
    most = float(ratio.max(initial=0.0))
    low = max(float(ratio.min(initial=most)), _LEAST_SHARE * most)
    return [float(share) for share in np.geomspace(most, low, _SHARES)] if most > _LEAST_MASS else []


def _without_rare(clone: Floats, sent: Floats) -> Floats:
    """Without types that are hidden least and hardly ever sent: their large values of W would spread all
    others, and what they tell openly is no more than they weigh."""
    ratio = np.divide(sent, positive(clone), out=np.zeros_like(sent), where=clone > 0.0)
    order = np.argsort(-ratio)
    rare = np.cumsum(sent[order]) <= _RARE
    kept = clone > _LEAST_MASS
    kept[order[rare]] = False
    return np.where(kept, clone, 0.0)


@dataclass(frozen=True)
class _Scored:
    """About the logarithm of what a pair shows, by Chernoff's bound, at one epsilon: the less the better."""

    pair: Floats
    counts: tuple[int, ...]
    epsilon: float

    @classmethod
    def of(cls, own: Floats, pair: Floats, counts: tuple[int, ...], place: int) -> _Scored:
        """At some times the standard deviation of a loss among the own group."""
        square = float(((pair[0] - pair[1]) ** 2 / positive(own))[own > 0.0].sum())
        deviation = math.sqrt(square / max(1, counts[place]))
        return cls(pair, counts, min(max(_DEVIATIONS * deviation, 1e-9), _LARGEST_EPSILON))

    def __call__(self, clone: Floats, shares: list[float]) -> float:
        hidden = clone > _LEAST_MASS
        weight = self.pair[0] - math.exp(self.epsilon) * self.pair[1]
        told = float(np.maximum(weight[~hidden], 0.0).sum())
        if not hidden.any():
            return math.log(positive(told))
        nu, x = clone[hidden], weight[hidden] / clone[hidden]
        people = sum(share * count for share, count in zip(shares, self.counts, strict=True))
        normal = math.expm1(self.epsilon) / positive(float(nu @ x**2))
        least = min(_LEAST_TILT * normal, 1.0 / positive(float(x.max(initial=0.0))))
        theta = np.geomspace(least, _LARGEST_TILT * normal, _TILTS)
        with np.errstate(over="ignore", invalid="ignore"):
            grown = np.expm1(theta[:, None] * x) @ nu
            logs = [c * np.log1p(share * grown) for share, c in zip(shares, self.counts, strict=True) if c]
            found = np.sum(logs, axis=0) - np.log(theta * max(people, 1.0))
        return float(np.logaddexp(np.nanmin(found, initial=math.inf), math.log(positive(told))))


def _farthest(rows: Floats, least: Floats) -> Floats:
    """The two rows with the largest chi-square."""
    scaled = rows / np.sqrt(positive(least))
    square = (scaled**2).sum(axis=1)
    apart = square[:, None] + square - 2.0 * product(scaled, scaled.T)
    return np.asarray(rows[list(np.unravel_index(int(np.argmax(apart)), apart.shape))])


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


def _laws(rows: Floats, clone: Floats) -> list[AmplificationLaw]:
    classes: dict[bytes, AmplificationLaw] = {}
    pairs = [(rows[x], rows[y]) for x in range(len(rows)) for y in range(x)]
    for key, law in laws_of_pairs(pairs, clone, 2):
        classes.setdefault(key, AmplificationLaw(law.own, law.other, law.clone, law.gap))
    return list(classes.values())
