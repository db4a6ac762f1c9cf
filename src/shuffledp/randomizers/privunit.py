"""PrivUnit: a noisy direction, for vectors of the l2 ball.

Bhowmick, Duchi, Freudiger, Kapoor, Rogers 2018 (the R_2 of Girgis et al. 2021). A vector is first sent to a
point u of the sphere (``vectors``). Let the cap {v: <v, u> >= threshold} have probability q under the uniform
law. With probability p the report is a uniformly random direction of the cap, otherwise of its complement,

    E = e^epsilon0 = (p/q) / ((1 - p)/(1 - q)),   so   p = c E q,   c = 1/(1 + (E - 1) q),

so a report has the density c E inside the cap and c outside it. With M = E[<V, u>; V in the cap] its
mean is c (E - 1) M u =: m u, so radius/m times the report is unbiased, and its squared norm is
always (radius/m)^2. The default cap has the largest m, hence the exact smallest variance.

**Law.** Everybody's report has a density of at least c everywhere: clones of density c. Antipodal points are
the worst pair at every alpha, by a mean-preserving spread, and of an interval that holds q the point nearest
1/2 is safe. **What is drawn is what is analysed** (``sampler="rejection"``, the default): the choice between
cap and complement is exact, ``weight`` out of 2^64 words; directions come from one finite law of doubles, the
same for every input and machine, and the probability of the computed cap is within ``margin`` of q, which
the law includes. From 512 to 16,384 dimensions they are lattice vectors, turned to the input's axis by an
exact bijection, as fast at every epsilon0. Proofs: T10, docs/proofs/privunit.md. *What they rest on*: words
that are independent and uniform, doubles that are added, multiplied, divided and rooted as IEEE 754 says,
the library's exponential within ``CALL`` units, and ``cap.error``. Everybody must use the same cap and
sampler. The running time depends on the side that was drawn: do not publish it.

With ``sampler="seeds"`` a report is 16 bytes: the seed of a direction (AES in counter mode makes the words
that make it), drawn until it falls on the right side. The law is the same, with uniform seeds in the place of
uniform directions; it rests on the cipher as on a random function (T10, section on seeds), and needs the
package ``cryptography``. Clients draw ``draws`` directions per report, the server expands one.

With ``sampler="direct"`` the report is composed from u in floating point: one or two directions per
report at any epsilon0, but the last bits of the doubles may depend on u in ways that no analysis here
sees; they are rounded to single precision, which hides most of this. Use it for simulations: all that is
stated (``law``, ``realised_epsilon0``, every certificate) is proved for "rejection" alone.

>>> PrivUnit(dimension=1000, epsilon0=2.0).variance()  # doctest: +ELLIPSIS
161...
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from shuffledp import _validate
from shuffledp._certified.caps import SphericalCap, best_cap, cap_of, overlap
from shuffledp._certified.rounding import CALL, Floats, down, gamma, up
from shuffledp._randomness.uniform import WORD, happens, log_rounded_up, weight_of_odds
from shuffledp._randomness.words import Words
from shuffledp.facts import AmplificationLaw, Blanket, Facts
from shuffledp.randomizers._privunit_crowds import crowd_laws, opposite
from shuffledp.randomizers._privunit_directions import (
    LEAST_DIMENSION,
    MOST_DIMENSION,
    SEED_BYTES,
    direct,
    directions_of,
    height_error,
    lattice_error,
    plane_height,
    rejected,
    rotated,
    rotation_height,
    seeded,
    twist,
    unusual,
)
from shuffledp.randomizers.vectors import DirectionRandomizer

MOST_MARGIN = 1e-3
"""And an eighth of epsilon0 (see module); the default caps stay far below."""
_WITH_PRODUCTS = 1.01  # soundness
"""Factors (1 + a)(1 + b)... of small errors: their product is at most 1 + s + s^2, s their sum. Where s is at
most MOST_MARGIN, s^2 is a thousandth of s, and ``cap.change`` is off by ``cap.error``, less than another one.
Other sums are refused (``_MOST_UNCERTAIN`` is smaller)."""

LEAST_CAP = 1e-12
MOST_DRAWS = 2000.0

_ANGLES = 120.0, 135.0, 150.0, 165.0, 180.0  # tightness: of the pair, for the lower end; any are valid
_LEAST_REST = 1e-3  # speed: of directions in neither cap, for the crowd apart
_RARE = 1e-3  # tightness: shared directions, of a cap
_MOST_UNCERTAIN = 1e-6  # speed: a law known less well shows nothing

_SAMPLERS = ("rejection", "seeds", "direct")
_SEEDS = 2.0**127  # and a sign each
_LEAST_TURNED_EPSILON0 = 0.1  # of rotations: below, errors of probabilities count for more
_LEAST_TURNED_CAP = 1e-6  # speed: the first coordinate is still drawn by rejection
_MOST_TWIST = 1e-6  # tightness: else plain rejection


@dataclass(frozen=True)
class PrivUnit(DirectionRandomizer):
    """Vectors of l2 norm at most ``radius``, dimension >= 2 (see module).

    ``cap_probability`` (q) is the probability of the cap under the uniform law, by default that of
    the smallest variance; a smaller cap is more private after shuffling. ``sampler`` is
    "rejection" or "seeds", for which guarantees are proved, or "direct", for simulations. Reports are unit
    vectors in single precision, or seeds of 16 bytes."""

    cap_probability: float | None = None
    sampler: str = "rejection"

    def __post_init__(self) -> None:
        super().__post_init__()
        _validate.one_of("sampler", self.sampler, _SAMPLERS)
        if self.cap_probability is not None:
            q = _validate.probability("cap_probability", self.cap_probability)
            if not min(q, 1.0 - q) >= LEAST_CAP:
                raise ValueError(f"cap_probability must be in [{LEAST_CAP:g}, 1 - {LEAST_CAP:g}], got {q!r}")
            if self.margin > min(MOST_MARGIN, self.epsilon0 / 8.0):
                raise ValueError(
                    f"cap_probability must be nearer to 1/2: in dimension {self.dimension} double "
                    f"precision cannot resolve a cap of {q!r}"
                )

    @cached_property
    def cap(self) -> SphericalCap:
        """The cap: its threshold, probability and first moment."""
        if self.cap_probability is None:
            return best_cap(self.dimension, self.epsilon0)
        return cap_of(self.dimension, self.cap_probability)

    @property
    def margin(self) -> float:
        """How far the probability of the smaller side may be from ``cap.small``, relative."""
        return self._strip + (_WITH_PRODUCTS * self._twist if self._rotates else 0.0)

    @property
    def _strip(self) -> float:
        """The part of it that is about a cap's probability: its edge, unusual directions, the lattice."""
        rest = 0.0
        if self._rotates:
            rest = lattice_error(self.dimension) + unusual(self.dimension) / self.cap.small
        if self.sampler == "seeds":  # of the share of seeds in a cap, for all axes at once
            rest = math.sqrt(3.0 * (45.0 * self.dimension + 256.0) / (_SEEDS * self.cap.small))
        return _WITH_PRODUCTS * (self.cap.error + self.cap.change(self._height) + rest)

    @property
    def _height(self) -> float:
        """By how much a computed side may miss the threshold."""
        turned = rotation_height(self.dimension) if self._rotates else 0.0
        return height_error(self.dimension) + turned

    @property
    def _twist(self) -> float:
        """What errors of all probabilities, up and down, do to q (docs/proofs/privunit.md): 2 and ``moved``
        times the twist to first order; the next one is below _MOST_TWIST of it, and a tenth more is taken."""
        growth = math.expm1(self.epsilon0)
        moved = abs(1.0 / self.cap.small - growth - 2.0) / growth
        return max(2.1, 1.1 * moved) * twist(self.dimension)

    @cached_property
    def _rotates(self) -> bool:
        """Whether directions are drawn by a rotation: else by plain rejection."""
        return (
            self.sampler == "rejection"
            and LEAST_DIMENSION <= self.dimension <= MOST_DIMENSION
            and self.cap.threshold >= 0.0
            and self.epsilon0 >= _LEAST_TURNED_EPSILON0
            and self.cap.small >= _LEAST_TURNED_CAP
            and self._twist + unusual(self.dimension) / self.cap.small <= _MOST_TWIST
        )

    @cached_property
    def weight(self) -> int:
        """The report is of the cap with probability weight / 2^64."""
        odds = math.exp(self.epsilon0) * self._least_odds
        return weight_of_odds(Fraction(down(odds, operations=CALL + 8, tiny=0.0)))

    @property
    def realised_epsilon0(self) -> float:
        odds = Fraction(down(self._least_odds, operations=8, tiny=0.0))
        realised = Fraction(self.weight, WORD - self.weight) / odds
        return min(self.epsilon0, log_rounded_up(realised))

    @property
    def _least_odds(self) -> float:
        """q / (1 - q) at its least, before rounding."""
        if self.cap.threshold >= 0.0:
            small = self.cap.small * (1.0 - self.margin)
            return small / (1.0 - small)
        small = self.cap.small * (1.0 + self.margin)
        return (1.0 - small) / small

    @cached_property
    def mean_length(self) -> float:
        """m: the length of the mean report of a vector on the sphere."""
        p, rest = self.weight / WORD, (WORD - self.weight) / WORD
        q = self.cap.probability
        other = self.cap.small if self.cap.threshold < 0.0 else 1.0 - q
        return self.cap.moment * (p / q - rest / other)

    @property
    def second_moment(self) -> float:
        return (self.radius / self.mean_length) ** 2

    @property
    def total_variation(self) -> float:
        """Of antipodal points, c (E - 1) min(q, 1 - q), with q on the safe side."""
        return self._law_parts[2]

    @property
    def _law_parts(self) -> tuple[float, float, float]:
        """(own cap under the own law, under the other's, their difference), q on the safe side."""
        small = min(0.5, self.cap.small * (1.0 + self.margin))
        q = small if self.cap.threshold >= 0.0 else 1.0 - small
        growth = math.expm1(self.epsilon0)
        c = 1.0 / (1.0 + growth * q)
        return c * math.exp(self.epsilon0) * small, c * small, c * growth * small

    def law(self) -> AmplificationLaw:
        """The law of antipodal points, with q on the safe side (see module)."""
        high, low, gap = self._law_parts
        rest = max(0.0, 1.0 - high - low)
        # For q > 1/2 the rest are reports of both caps: e^epsilon0 times as dense as their clones.
        hidden = rest if self.cap.threshold >= 0.0 else rest * math.exp(-self.epsilon0)
        if rest == 0.0:
            return AmplificationLaw((high, low), (low, high), (low, low), (gap, -gap))
        own, other, clone = (high, low, rest), (low, high, rest), (low, low, hidden)
        return AmplificationLaw(own, other, clone, (gap, -gap, 0.0))

    def facts(self) -> Facts:
        """Crowds of one vector: all of them, for the upper end, and from below one away from the pair."""
        facts = super().facts()
        facts = replace(facts, crowds=self._crowds, common=self._densities[0], blanket=self._shared(facts))
        apart = self._crowd_apart
        return facts if apart is None else replace(facts, concrete=(apart[0], *facts.concrete))

    def _shared(self, facts: Facts) -> Blanket:
        """Whatever epsilon0, reports are of one law of directions times two densities (T21); seen from below
        among others who hold random directions."""
        drawn = "turned" if self._rotates else self.sampler
        shape = f"{drawn} directions of {self.dimension} entries, caps above {self.cap.threshold!r}"
        return Blanket(shape, opposite(*self._densities), self._densities[0], facts.concrete[0])

    @cached_property
    def _crowds(self) -> tuple[AmplificationLaw, ...]:
        missed = self._strip + (twist(self.dimension) if self._rotates else 0.0)
        missed *= 8.0 + 8.0 / math.expm1(self.epsilon0)
        return crowd_laws(*self._densities, self.dimension, self.cap.threshold, missed)

    @property
    def _densities(self) -> tuple[float, float]:
        """At most the least, at least the most that any report of any vector has."""
        small = self.cap.small * (1.0 - self._strip if self.cap.threshold >= 0.0 else 1.0 + self._strip)
        inner, outer = (small, 1.0 - small) if self.cap.threshold >= 0.0 else (1.0 - small, small)
        turned = twist(self.dimension) if self._rotates else 0.0
        low = down((WORD - self.weight) / WORD / outer * (1.0 - turned), operations=16)
        return low, up(self.weight / WORD / inner * (1.0 + turned), operations=16)

    def concrete_inputs(self) -> tuple[Any, ...]:
        if self._crowd_apart is None:
            return super().concrete_inputs()
        half, away = 0.5 * self._crowd_apart[1], self.radius * self._plane(-1.0, 0.0)
        pair = (self.radius * self._plane(math.cos(half), side * math.sin(half)) for side in (1.0, -1.0))
        return (*pair, away), *super().concrete_inputs()[1:]

    def _densities_at(self, heights: Floats) -> Floats:
        q, p = self.cap.probability, self.weight / WORD
        return np.where(heights >= self.cap.threshold, p / q, (1.0 - p) / (1.0 - q))

    def _directions(self, reports: npt.NDArray[Any]) -> Floats:
        seeds = self.sampler == "seeds"
        return directions_of(reports, self.dimension) if seeds else super()._directions(reports)

    @cached_property
    def _crowd_apart(self) -> tuple[AmplificationLaw, float] | None:
        """The pair, at an angle, and the crowd's vector in one plane, each as far from the others as it is
        worst.

        None where the cap is no smaller part."""
        if self.cap.threshold <= 0.0 or 1.0 - 2.0 * self.cap.small < _LEAST_REST:
            return None
        angles = map(math.radians, _ANGLES)
        laws = [(law, angle) for angle in angles if (law := self._in_a_plane(angle)) is not None]
        spread = [sum(g * g / c for g, c in zip(law.gap, law.clone, strict=True)) for law, _ in laws]
        return laws[spread.index(max(spread))] if laws else None

    def _in_a_plane(self, angle: float) -> AmplificationLaw | None:
        """The pair at an angle, the crowd opposite to its middle: no direction is in all three caps.

        Types: own cap only, own and the crowd's, the same of the other's, and the rest as one. Probabilities
        are those of uniform directions; a computed cap differs by strips of ``margin`` q at most on either
        side (docs/proofs/privunit.md). None where a type is too rare to be known well."""
        q, p, t = self.cap.small, self.weight / WORD, self.cap.threshold
        both, error = (0.0, 0.0) if angle == math.pi else overlap(self.dimension, t, math.tan(0.5 * angle))
        shared, doubt = overlap(self.dimension, t, math.tan(0.5 * math.pi - 0.25 * angle))
        inside, outside = p / q, (1.0 - p) / (1.0 - q)
        apart = q - both - shared
        rest = inside * both + outside * (1.0 - 2.0 * q + both)
        others = inside * (q - 2.0 * shared) + outside * (1.0 - 3.0 * q + 2.0 * (shared + both))
        least = min(apart, rest / inside, others / (2.0 * inside))
        own: tuple[float, ...]
        if rare := shared < _RARE * q:  # or none at all: the own cap is one type
            part = apart + shared
            light = outside * apart + inside * shared
            own, other = (inside * part, outside * part, rest), (outside * part, inside * part, rest)
            clone, parts = (light, light, others), (part, -part, 0.0)
            law = AmplificationLaw(own, other, clone, tuple((inside - outside) * part for part in parts))
        else:
            own = (inside * apart, inside * shared, outside * apart, outside * shared, rest)
            spread = (apart, shared, -apart, -shared, 0.0)
            gap = tuple((inside - outside) * part for part in spread)
            law = AmplificationLaw(
                own, (*own[2:4], *own[:2], rest), (own[2], own[1], own[2], own[1], others), gap
            )
        least = least * outside / inside if rare else min(shared, least)
        if not least > 0.0:
            return None
        # Rotations: the three are in the plane of the first two axes, where they are most exact.
        edge = self._strip
        if self._rotates:
            plane = self.cap.change(plane_height(self.dimension)) + unusual(self.dimension) / q
            edge = _WITH_PRODUCTS * (self.cap.error + plane)
        strips = 6.0 * edge * q + error + doubt
        off = _WITH_PRODUCTS * (self._strip + 2.0 * strips / least) + gamma(256) / least
        return None if off > _MOST_UNCERTAIN else replace(law, error=off)

    @property
    def report_bytes(self) -> int:
        """The size of a report."""
        return SEED_BYTES if self.sampler == "seeds" else 4 * self.dimension

    @property
    def draws(self) -> float:
        """Directions drawn per report, expected, by plain rejection."""
        p, small = self.weight / WORD, self.cap.small
        inside = p if self.cap.threshold >= 0.0 else 1.0 - p
        return inside / (2.0 * small) + (1.0 - inside) / (1.0 - small)

    def _total(self, reports: npt.NDArray[Any]) -> Floats:
        if self.sampler != "seeds":
            return super()._total(reports)
        parts = self._parts(reports.shape[0])
        return sum((directions_of(reports[part], self.dimension).sum(axis=0) for part in parts), np.zeros(1))

    def randomize(self, vectors: Any, *, rng: np.random.Generator | None = None) -> npt.NDArray[Any]:
        if self.sampler == "direct" and rng is None:
            raise ValueError(
                "rng must be given for sampler='direct', which is for simulations: no certificate "
                "covers what it draws"
            )
        if self.sampler != "direct" and not self._rotates and self.draws > MOST_DRAWS:
            raise ValueError(
                f"sampler must be 'direct' (for simulations: nothing is proved of it) for {self!r}: "
                f"{self.sampler!r} would draw {self.draws:.3g} directions per report (at most "
                f"{MOST_DRAWS:g})"
            )
        return super().randomize(vectors, rng=rng)

    def _empty(self, count: int) -> npt.NDArray[Any]:
        return np.empty((count, SEED_BYTES), np.uint8) if self.sampler == "seeds" else super()._empty(count)

    def _report(self, rows: Floats, share: Floats, words: Words) -> npt.NDArray[Any]:
        axis = self._points(rows, share, words)
        inside = happens(self.weight, share.size, words)
        # The smaller part is always the cap of some point: of -u if it is the complement.
        if self.cap.threshold < 0.0:
            axis, inside = -axis, ~inside
        if self.sampler == "seeds":
            return seeded(axis, inside, self.cap, words)
        draw = rotated if self._rotates else rejected if self.sampler == "rejection" else direct
        return draw(axis, inside, self.cap, words)

    def _checked_reports(self, reports: Any) -> tuple[npt.NDArray[Any], bool]:
        if self.sampler == "seeds":
            seeds = np.asarray(reports)
            if seeds.dtype != np.uint8 or seeds.ndim not in (1, 2) or seeds.shape[-1] != SEED_BYTES:
                raise ValueError(
                    f"reports must be seeds of {SEED_BYTES} bytes, got {seeds.dtype} of shape {seeds.shape}"
                )
            return seeds.reshape(-1, SEED_BYTES), seeds.ndim == 1
        return super()._checked_reports(reports)

    def _decoded(self, reports: npt.NDArray[Any]) -> Floats:
        vectors = directions_of(reports, self.dimension) if self.sampler == "seeds" else reports
        return super()._decoded(vectors)
