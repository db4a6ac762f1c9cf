"""Means of vectors, by shuffled shares of every coordinate: near a trusted curator's Gaussian noise (T22).

Everybody's vector lies in the l2 or l-infinity ball of a radius. Noise, grid, modulus and number of messages
are chosen for the smallest error at the certified (epsilon, delta), as for sums (``_several_messages``).
Every person sends dimension times ``shares`` messages; all rests on the shuffler.

>>> steps = VectorMeanProtocol(dimension=3, radius=1.0, epsilon=1.0, delta=1e-6, n=2000)
>>> result = steps.analyze(steps.randomize([[0.6, 0.0, -0.8]] * 2000))
>>> [round(float(entry), 1) + 0.0 for entry in result.value], result.standard_error < 0.01
([0.6, 0.0, -0.8], True)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from shuffledp import _validate
from shuffledp._certified.rounding import Floats
from shuffledp._randomness.words import source
from shuffledp.collecting._accounted import Target
from shuffledp.collecting._domain import OUTSIDE
from shuffledp.collecting._intervals import quantile
from shuffledp.collecting._protocol import Protocol, require_target
from shuffledp.collecting._several_messages import best_vectors, checked_messages, checked_most_messages
from shuffledp.collecting.result import ONE_PERCENT, Interval, Tabular, lies, one_percent
from shuffledp.collecting.statement import PrivacyStatement
from shuffledp.errors import DomainError
from shuffledp.randomizers._categories import Counts
from shuffledp.randomizers.registry import canonical
from shuffledp.randomizers.split_vectors import NORMS, SplitVectors
from shuffledp.randomizers.vectors import LEAST_RADIUS, MOST_RADIUS, ROUNDING

_SHOWN = 20


@dataclass(frozen=True, init=False)
class VectorMeanProtocol(Protocol):
    """The mean of everybody's vector, in ``rounds`` collections that meet (epsilon, delta) together.

    ``norm``: "l2" or "linf", of the ball of ``radius`` that vectors lie in. ``outside``: "error", or "clip"
    to shorten longer vectors (l2) or move their entries to the ends (linf). ``messages``: shares of every
    coordinate (default: as few as mix well enough, up to ``max_messages``)."""

    name: ClassVar[str] = "vector-mean"
    needs_all: ClassVar[bool] = True
    dimension: int
    radius: float
    norm: str
    epsilon: float
    delta: float
    n: int
    randomizer: SplitVectors
    rounds: int
    outside: str

    def __init__(
        self,
        dimension: int,
        radius: float,
        epsilon: float,
        delta: float,
        n: int,
        norm: str = "l2",
        randomizer: SplitVectors | None = None,
        rounds: int = 1,
        outside: str = "error",
        messages: int | str = "auto",
        max_messages: int | None = None,
        max_epsilon0: float | None = None,
    ) -> None:
        if max_epsilon0 is not None:
            raise ValueError(f"{max_epsilon0=} cannot be kept: one person's messages reveal the vector")
        target = Target(epsilon, delta, n, rounds)
        ball = {"dimension": dimension, "radius": radius, "norm": norm, "outside": outside}
        self._assign(**self._described_domain(ball), **target.plan)
        number, most = checked_messages(messages, target), checked_most_messages(max_messages)
        if randomizer is None:
            if number == 1:
                raise ValueError(
                    "messages must be 3 or more shares of a coordinate: see PrivUnit for one report"
                )
            several = None if isinstance(number, str) else number
            randomizer = best_vectors(self.dimension, norm, target, several, most)
        elif number != "auto":
            raise ValueError(f"{messages=} is a matter of the randomizer when that is given")
        self._accept(canonical(randomizer))
        require_target(self)

    @property
    def step(self) -> float:
        """The distance of neighbouring grid points."""
        return self.radius / self.randomizer.levels

    def encode(
        self, column: Any, *, rng: np.random.Generator | None = None, show_values: bool = False
    ) -> Any:
        """Vectors (rows, or one) as whole numbers of steps, rounded at random."""
        return self.randomizer.rounded(self.vectors(column) / self.step, source(rng))

    def vectors(self, column: Any) -> Floats:
        """The rows as vectors of the ball; DomainError for what is none."""
        rows = np.asarray(column)
        if rows.dtype.kind not in "fiu" or rows.ndim not in (1, 2) or rows.shape[-1] != self.dimension:
            raise TypeError(
                f"vectors must be real numbers of shape (n, {self.dimension}), "
                f"got {rows.dtype} of {rows.shape}"
            )
        rows = rows.reshape(-1, self.dimension).astype(np.float64)
        missing = np.isnan(rows).any(axis=1)
        with np.errstate(over="ignore", invalid="ignore"):
            norms = np.abs(rows).max(axis=1) if self.norm == "linf" else np.sqrt((rows * rows).sum(axis=1))
        infinite = ~np.isfinite(norms) & ~missing
        longer = ~missing & ~infinite & (norms > self.radius * (1.0 + ROUNDING))
        wrong = infinite | longer if self.outside == "error" else infinite
        if missing.any() or wrong.any():
            raise DomainError(len(rows), int(missing.sum()), int(wrong.sum()), [])
        if self.norm == "linf":
            return np.asarray(np.clip(rows, -self.radius, self.radius))
        return np.asarray(rows * (self.radius / np.maximum(norms, self.radius))[:, None])

    def _tally(self, reports: Any) -> Counts:
        return self.randomizer.tally(reports)

    def people_in(self, tally: Counts) -> int:
        return self.randomizer.people(tally)

    def most_in_tally(self, n: int) -> int:
        return n * self.randomizer.shares << 32

    @property
    def worst_standard_error(self) -> float:
        """Of one coordinate of the mean of n vectors, for the worst possible data."""
        return self._error(self.n)

    @property
    def one_dishonest(self) -> float:
        """How far one dishonest person can move every entry of the mean of n vectors."""
        return self._reach(self.n)

    def _reach(self, n: int) -> float:
        return 0.5 * self.randomizer.modulus * self.step / n

    def _error(self, n: int) -> float:
        """Noise, and rounding of at most a quarter of a squared step each."""
        return self.step * math.sqrt((self.randomizer.variance + 0.25) / n)

    def estimate(self, tally: Counts, n: int) -> Floats:
        return np.asarray(self.randomizer.totals(tally) * (self.step / n))

    if TYPE_CHECKING:

        def analyze(self, reports: Any = None, **settings: Any) -> VectorResult: ...

    def _check(self, tally: Counts, n: int) -> None:
        self.randomizer.people(tally, n)
        if 2 * n * self.randomizer.levels >= self.randomizer.modulus:
            raise ValueError(f"tally must be of fewer people, got {n}: their sums may outgrow the modulus")

    def _result(self, tally: Counts, n: int, privacy: PrivacyStatement, confidence: float) -> VectorResult:
        found = (self.estimate(tally, n), self._error(n), n, self.radius, self._reach(n))
        return VectorResult(*found, privacy, confidence)

    def _domain(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("dimension", "radius", "norm", "outside")}

    @classmethod
    def _described_domain(cls, description: dict[str, Any]) -> dict[str, Any]:
        radius = _validate.positive("radius", description["radius"])
        if not LEAST_RADIUS <= radius <= MOST_RADIUS:
            raise ValueError(f"radius must be in [{LEAST_RADIUS:g}, {MOST_RADIUS:g}], got {radius!r}")
        return {
            "dimension": _validate.count("dimension", description["dimension"]),
            "radius": radius,
            "norm": _validate.one_of("norm", description["norm"], NORMS),
            "outside": _validate.one_of("outside", description["outside"], OUTSIDE),
        }

    def _accept(self, randomizer: Any) -> None:
        if not isinstance(randomizer, SplitVectors):
            raise TypeError(f"randomizer must be SplitVectors, got {randomizer!r}")
        if (randomizer.dimension, randomizer.norm) != (self.dimension, self.norm):
            raise ValueError(
                f"randomizer must be of dimension {self.dimension} and {self.norm!r}, got {randomizer!r}"
            )
        self._assign(randomizer=randomizer)


@dataclass(frozen=True, eq=False)
class VectorResult(Tabular):
    """``value`` estimates the mean of the n people's vectors; ``standard_error`` is that of every entry.

    It is that of the randomization (rounding included): the people are who they are. ``reach``: how far one
    dishonest person can move every entry."""

    value: Floats
    standard_error: float
    n: int
    radius: float
    reach: float
    privacy: PrivacyStatement
    confidence: float = 0.95

    @property
    def l2_error(self) -> float:
        """Root of the expected squared Euclidean distance of ``value`` from the truth."""
        return self.standard_error * math.sqrt(self.value.size)

    def poisoning(self, m: int) -> float:
        """How far m dishonest people can move each entry: anywhere that the modulus holds, with one."""
        return self.reach * min(_validate.count("m", m, least=0, most=self.n), 1)

    def interval(self, confidence: float | None = None) -> Interval:
        """Confidence intervals of the entries of the true mean, each for itself: the noise is Gaussian."""
        margin = quantile(self.level(confidence)) * self.standard_error
        return Interval(
            *(np.clip(self.value + side, -self.radius, self.radius) for side in (-margin, margin))
        )

    def columns(self, confidence: float | None = None) -> dict[str, list[Any]]:
        """One row per entry."""
        low, high = self.interval(confidence)
        moved = self.poisoning(one_percent(self.n))
        size = self.value.size
        return {
            "entry": list(range(size)),
            "value": self.value.tolist(),
            "standard_error": [self.standard_error] * size,
            ONE_PERCENT: [moved] * size,
            "lower": low.tolist(),
            "upper": high.tolist(),
        }

    def plot(self, *, truth: Any = None, confidence: float | None = None, ax: Any = None) -> Any:
        """Entries with their intervals (needs matplotlib); ``truth``: the true mean of made-up data."""
        from shuffledp.plotting._rows import vector

        return vector(self, truth=truth, confidence=confidence, ax=ax)

    def __str__(self) -> str:
        low, high = self.interval()
        lines = [
            f"{'entry':>8}  {'value':>12}  {'std. error':>10}  {f'{100 * self.confidence:g}% interval':>27}"
        ]
        for i, (entry, a, b) in enumerate(zip(self.value[:_SHOWN], low, high, strict=False)):
            lines.append(f"{i:8}  {entry:12.5g}  {self.standard_error:10.3g}  {a:12.5g} .. {b:11.5g}")
        if self.value.size > _SHOWN:
            lines.append(f"... {self.value.size - _SHOWN} more entries")
        return "\n".join([*lines, lies(self.n), "", self.privacy.text])
