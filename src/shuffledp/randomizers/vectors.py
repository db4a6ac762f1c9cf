"""Randomizers of vectors: what the l2, l-infinity and l1 mechanisms share.

Each takes vectors of one ball, sends a compact report and decodes it without bias. The expected squared
length of a decoded report does not depend on the input, so its expected squared error at an input of l2 norm
r is ``second_moment - r^2``, exactly: largest at zero.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from shuffledp import _validate
from shuffledp._certified.rounding import Floats
from shuffledp._randomness.uniform import rounded_up
from shuffledp._randomness.words import Words, source
from shuffledp.facts import AmplificationLaw, Facts, enclosed

LEAST_EPSILON0, MOST_EPSILON0 = 1e-4, 32.0
"""Below, the decoded noise would exceed the signal ten thousandfold; above, 64-bit words are coarse."""

MOST_DIMENSION = 10**8
LEAST_RADIUS, MOST_RADIUS = 1e-100, 1e100

ROUNDING = 1e-12
"""A norm this much above the radius (relative) is rounding, and counts as the radius."""

_AT_ONCE = 1 << 18
_EXCHANGED = 1e-6  # soundness: of the reports of x and x', at least
_SMALLEST_SHARE = 1e-200  # of the radius: what is shorter has no direction


@dataclass(frozen=True)
class VectorRandomizer(ABC):
    """An epsilon0-LDP randomizer of the vectors of R^dimension with norm at most ``radius``.

    The guarantee is for any two vectors of the ball. The realised probabilities are multiples of
    2^-64, rounded so that ``epsilon0`` is never exceeded."""

    dimension: int
    epsilon0: float
    radius: float = 1.0

    MOST_EPSILON0: ClassVar[float] = MOST_EPSILON0
    norm: ClassVar[str]
    _least_dimension: ClassVar[int] = 1

    def __post_init__(self) -> None:
        least = self._least_dimension
        whole = _validate.count("dimension", self.dimension, least=least, most=MOST_DIMENSION)
        object.__setattr__(self, "dimension", whole)
        for name, low, high in (
            ("epsilon0", LEAST_EPSILON0, self.MOST_EPSILON0),
            ("radius", LEAST_RADIUS, MOST_RADIUS),
        ):
            given = getattr(self, name)
            number = _validate.positive(name, given)
            if not low <= number <= high:
                raise ValueError(f"{name} must be in [{low:g}, {high:g}], got {given!r}")
            object.__setattr__(self, name, number)

    @property
    @abstractmethod
    def realised_epsilon0(self) -> float:
        """The local epsilon of the realised probabilities, rounded up; never above ``epsilon0``."""

    @property
    def margin(self) -> float:
        """By how much (relative) the law is rounded up; zero where probabilities are exact."""
        return 0.0

    @property
    @abstractmethod
    def total_variation(self) -> float:
        """The largest total variation distance between the reports of two vectors."""

    @property
    @abstractmethod
    def second_moment(self) -> float:
        """The expected squared l2 norm of a decoded report, whatever the input."""

    @property
    @abstractmethod
    def longest(self) -> float:
        """The largest l2 norm of a vector of the ball."""

    @abstractmethod
    def law(self) -> AmplificationLaw:
        """The law of the amplification variable of the worst pair of vectors."""

    def facts(self) -> Facts:
        """The law of the worst pair; from below, all others hold uniformly random directions, or x.

        Others drawn at random are no worse than the worst dataset: the hockey stick is jointly convex.
        Their reports are spread evenly, as the clones are. The law's own numbers are rounded up by the
        margin: exchanging x and x' a little more often than that takes it back."""
        law = self.law()
        exchanged = max(_EXCHANGED, 8.0 * self.margin)
        pairs = zip(law.own, law.other, strict=True)
        own = tuple(u - exchanged * (u - v) for u, v in pairs)
        other = tuple(u + v - w for u, v, w in zip(law.own, law.other, own, strict=True))
        gap = tuple((1.0 - 2.0 * exchanged) * g for g in law.gap)
        total = sum(law.clone)
        even = tuple(c / total for c in law.clone)
        return Facts(
            enclosed(max(0.0, self.realised_epsilon0 - 8.0 * self.margin), self.epsilon0),
            total_variation=self.total_variation,
            above=(law,),
            concrete=tuple(AmplificationLaw(own, other, clone, gap) for clone in (even, own)),
        )

    @abstractmethod
    def mean(self, reports: Any) -> Floats:
        """The unbiased estimate (dimension,) of the mean vector of those who sent the reports."""

    def variance(self, norm: float = 0.0) -> float:
        """Expected squared l2 error of one decoded report of a vector of this l2 norm.

        The default, zero, is the worst case; n reports average to the mean of these over n."""
        length = float(_validate.non_negative("norm", norm).reshape(()))
        if length - self.longest > ROUNDING * self.longest:
            raise ValueError(f"norm must be in [0, {self.longest!r}], got {norm!r}")
        return self.second_moment - length**2

    def randomize(self, vectors: Any, *, rng: np.random.Generator | None = None) -> npt.NDArray[Any]:
        """One report per vector: (n, dimension) -> n reports, (dimension,) -> one report.

        Secure randomness unless ``rng`` is given (for simulations). Temporaries are bounded."""
        rows = self._rows("vectors", vectors)
        norms = self._checked_norms(rows)
        words = source(rng)
        reports = self._empty(rows.shape[0])
        for part in self._parts(rows.shape[0]):
            block = rows[part].astype(np.float64) / self.radius
            share = np.minimum(norms[part] / self.radius, 1.0)
            reports[part] = self._report(block, share, words)
        return reports if np.ndim(vectors) == 2 else reports[0]

    def decode(self, reports: Any) -> Floats:
        """Every report as an unbiased vector: n reports -> (n, dimension)."""
        checked, single = self._checked_reports(reports)
        vectors = self._decoded(checked)
        return vectors[0] if single else vectors

    def clip(self, vectors: Any) -> Floats:
        """The vectors, those longer than the radius shortened to it (direction kept)."""
        rows = self._rows("vectors", vectors)
        clipped = rows.astype(np.float64)
        for part in self._parts(rows.shape[0]):
            norms = self._finite_norms(clipped[part], part.start)
            clipped[part] *= (self.radius / np.maximum(norms, self.radius))[:, None]
        return clipped if np.ndim(vectors) == 2 else clipped[0]

    def likelihoods(self, reports: Any, values: Any) -> Floats:
        """How likely each report (a row) is on each of the vectors (columns), up to a factor of the row.

        What an audit weighs reports by: no guarantee rests on it."""
        rows = self._rows("values", values)
        share = np.minimum(self._checked_norms(rows) / self.radius, 1.0)
        sent, _ = self._checked_reports(reports)
        found = np.empty((len(sent), len(rows)))
        for part in self._parts(len(sent)):
            for column, (row, length) in enumerate(zip(rows / self.radius, share, strict=True)):
                found[part, column] = self._likelihood(sent[part], row, float(length))
        return found

    @abstractmethod
    def _likelihood(self, reports: npt.NDArray[Any], row: Floats, share: float) -> Floats:
        """Of checked reports on one row in units of the radius, whose norm is ``share``."""

    @property
    @abstractmethod
    def _corner(self) -> Floats:
        """One of two opposite vectors that are told apart best."""

    def concrete_inputs(self) -> tuple[Any, ...]:
        """What the differing user may hold, and all others, in the datasets of the concrete laws of
        ``facts()``: (x, x', others) for each, None where the others are random."""
        end = self._corner
        return *(None for _ in self.facts().concrete[1:]), (end, -end, end)

    @abstractmethod
    def _norms(self, rows: Floats) -> Floats:
        """The norm that bounds the ball, of every row (inf where it overflows)."""

    @abstractmethod
    def _empty(self, count: int) -> npt.NDArray[Any]:
        """Room for so many reports."""

    @abstractmethod
    def _report(self, rows: Floats, share: Floats, words: Words) -> npt.NDArray[Any]:
        """Reports of rows in units of the radius, whose norms are ``share`` in [0, 1]."""

    @abstractmethod
    def _checked_reports(self, reports: Any) -> tuple[npt.NDArray[Any], bool]:
        """Reports as an array of several, and whether one was given."""

    @abstractmethod
    def _decoded(self, reports: npt.NDArray[Any]) -> Floats:
        """Checked reports as unbiased vectors."""

    def _parts(self, count: int) -> Iterator[slice]:
        step = max(1, _AT_ONCE // self.dimension)
        return (slice(first, min(first + step, count)) for first in range(0, count, step))

    def _rows(self, name: str, vectors: Any) -> npt.NDArray[Any]:
        """A real array of shape (n, dimension), from that or from (dimension,)."""
        array = np.asarray(vectors)
        if array.dtype.kind not in "fiu":
            raise TypeError(f"{name} must be an array of real numbers, got dtype {array.dtype}")
        if array.ndim not in (1, 2) or array.shape[-1] != self.dimension:
            raise ValueError(
                f"{name} must have shape (n, {self.dimension}) or ({self.dimension},), got {array.shape}"
            )
        return array.reshape(-1, self.dimension)

    def _finite_norms(self, rows: Floats, first: int) -> Floats:
        with np.errstate(over="ignore", invalid="ignore"):
            norms = self._norms(rows)
        if not np.isfinite(norms).all():
            row = int(np.argmin(np.isfinite(norms)))
            bad = np.flatnonzero(~np.isfinite(rows[row]))
            where = (
                f"row {first + row} has column {bad[0]} = {rows[row, bad[0]]}"
                if bad.size
                else (f"row {first + row} has a norm beyond double precision")
            )
            raise ValueError(f"vectors must be finite, {where}")
        return norms

    def _checked_norms(self, rows: npt.NDArray[Any]) -> Floats:
        """The norm of every row, all at most the radius."""
        norms = np.empty(rows.shape[0])
        for part in self._parts(rows.shape[0]):
            norms[part] = self._finite_norms(rows[part].astype(np.float64), part.start)
        above = np.flatnonzero(norms - self.radius > ROUNDING * self.radius)
        if above.size:
            raise ValueError(
                f"vectors must have {self.norm} norm in [0, {self.radius!r}], row {above[0]} has "
                f"{float(norms[above[0]])!r} (see clip)"
            )
        return norms


@dataclass(frozen=True)
class DirectionRandomizer(VectorRandomizer):
    """Vectors of the l2 ball, whose reports are single-precision vectors that lean towards one unit vector.

    A vector x is first sent to a point of the sphere without bias: u = x/|x| with probability
    (1 + |x|/radius)/2, else -x/|x|."""

    norm: ClassVar[str] = "l2"
    _least_dimension: ClassVar[int] = 2

    @property
    @abstractmethod
    def mean_length(self) -> float:
        """The length of the mean report of a vector on the sphere."""

    @property
    def longest(self) -> float:
        return self.radius

    def mean(self, reports: Any) -> Floats:
        checked, _ = self._checked_reports(reports)
        if checked.shape[0] == 0:
            raise ValueError("reports must not be empty: there is no mean of no reports")
        return np.asarray(self._total(checked) * (self.radius / (self.mean_length * checked.shape[0])))

    def _total(self, reports: npt.NDArray[Any]) -> Floats:
        return np.asarray(np.sum(reports, axis=0, dtype=np.float64))

    def _norms(self, rows: Floats) -> Floats:
        # In units of the largest entry: squares neither overflow nor vanish.
        peak = np.maximum(rows.max(axis=1), -rows.min(axis=1))
        scaled = rows / np.where(peak > 0.0, peak, 1.0)[:, None]
        scaled *= scaled
        return np.asarray(peak * np.sqrt(sum_by_halves(scaled)))

    def _likelihood(self, reports: npt.NDArray[Any], row: Floats, share: float) -> Floats:
        """A vector inside is one of two opposite points."""
        axis = row / share if share >= _SMALLEST_SHARE else self._plane(1.0, 0.0)
        heights = self._directions(reports) @ axis
        toward = 0.5 * (1.0 + share)
        return toward * self._densities_at(heights) + (1.0 - toward) * self._densities_at(-heights)

    @abstractmethod
    def _densities_at(self, heights: Floats) -> Floats:
        """Of reports, by their heights above the plane across the point."""

    def _directions(self, reports: npt.NDArray[Any]) -> Floats:
        return reports.astype(np.float64)

    @property
    def _corner(self) -> Floats:
        return self.radius * self._plane(1.0, 0.0)

    def _plane(self, first: float, second: float) -> Floats:
        """A unit vector by its first two entries; all others are zero."""
        return np.concatenate([[first, second], np.zeros(self.dimension - 2)])

    def _points(self, rows: Floats, share: Floats, words: Words) -> Floats:
        """Unit vectors whose mean is the row; zero goes to plus or minus the first axis."""
        zero = share < _SMALLEST_SHARE
        rows[zero] = 0.0
        rows[zero, 0] = 1.0
        sign = np.where(rounded_up(share, words), 1.0, -1.0)
        return np.asarray(rows * (sign / self._norms(rows))[:, None])

    def _empty(self, count: int) -> npt.NDArray[Any]:
        return np.empty((count, self.dimension), np.float32)

    def _checked_reports(self, reports: Any) -> tuple[npt.NDArray[Any], bool]:
        array = self._rows("reports", reports)
        for part in self._parts(array.shape[0]):
            finite = np.isfinite(array[part]).all(axis=1)
            if not finite.all():
                row = part.start + int(np.argmin(finite))
                raise ValueError(f"reports must be finite, row {row} is not")
        return array, np.ndim(reports) == 1

    def _decoded(self, reports: npt.NDArray[Any]) -> Floats:
        return np.asarray(reports.astype(np.float64) * (self.radius / self.mean_length))


def sum_by_halves(terms: Floats) -> Floats:
    """Sums over the last axis, in ceil(log2 width) steps, whatever the other axes; overwrites terms."""
    width = terms.shape[-1]
    while width > 1:
        half = (width + 1) // 2
        terms[..., : width - half] += terms[..., half:width]
        width = half
    return terms[..., 0]
