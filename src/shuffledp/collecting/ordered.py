"""Quantiles and ranges of numbers in [low, high], cut into equal bins.

Everybody reports one level of a tree over the bins, drawn at random (``LeveledResponse``, Theorem T25): a
person answers one level only, and levels do not add up. How many levels? The tree is taken whose sums, as
they are asked for, have the smallest exact error at the certified (epsilon, delta) if people are spread
evenly. With many people that is often one level, a histogram of the bins: what a level says is then nearly
exact, and others would only be samples of the people.

>>> ages = QuantileProtocol(0, 100, bins=20, epsilon=1.0, delta=1e-6, n=10_000)
>>> result = ages.analyze(ages.randomize([20.0, 30.0, 70.0, 80.0] * 2_500))
>>> low, high = result.quantile(0.9).lower, result.quantile(0.9).upper
>>> low <= 80.0 <= high
True
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from shuffledp import _validate
from shuffledp._certified.rounding import Floats
from shuffledp.accounting.calibration import calibrate
from shuffledp.accounting.mechanism import DEFAULT_TOLERANCE
from shuffledp.collecting._accounted import Target
from shuffledp.collecting._choice import calibrated_response, within
from shuffledp.collecting._domain import OUTSIDE, numbers_in
from shuffledp.collecting._protocol import Protocol, require_target
from shuffledp.collecting.distribution import (
    Distribution,
    QuantileResult,
    RangeResult,
    bins_between,
    checked_share,
    range_name,
    rising,
)
from shuffledp.collecting.statement import PrivacyStatement
from shuffledp.randomizers._categories import Counts
from shuffledp.randomizers._grid import interval
from shuffledp.randomizers.levels import LeveledResponse, Tree
from shuffledp.randomizers.registry import canonical

MOST_BINS = 2**14
QUARTILES = (0.25, 0.5, 0.75)
_MOST_LEVELS = 6
_COMPARED = 64  # speed: sums whose error decides on the tree
_TOLERANCE = 0.01  # speed: of the calibrations that only choose the tree


@dataclass(frozen=True, init=False)
class OrderedProtocol(Protocol):
    """What ranges and quantiles share.

    ``bins``: equal pieces of [low, high] that are told apart. ``branching``: children of a node of the tree
    (default: the best; ``bins`` for one level). ``outside``: "error", or "clip" to move numbers beyond an end
    to that end. Missing values are always an error. ``max_epsilon0``: what one report may reveal alone."""

    low: float
    high: float
    bins: int
    epsilon: float
    delta: float
    n: int
    asked: tuple[Any, ...]
    randomizer: LeveledResponse
    rounds: int
    outside: str

    asks: ClassVar[str]
    """What ``asked`` is called, as an argument and in the plan."""
    usual: ClassVar[tuple[Any, ...] | None] = None
    """What is asked for if nothing is given."""

    def __init__(
        self,
        low: float,
        high: float,
        bins: int,
        epsilon: float,
        delta: float,
        n: int,
        randomizer: LeveledResponse | None = None,
        rounds: int = 1,
        branching: int | None = None,
        outside: str = "error",
        max_epsilon0: float | None = None,
        **question: Any,
    ) -> None:
        target = Target(epsilon, delta, n, rounds, most=max_epsilon0)
        if set(question) - {self.asks}:
            raise TypeError(
                f"{type(self).__name__} takes no argument {', '.join(set(question) - {self.asks})!r}"
            )
        domain = {"low": low, "high": high, "bins": bins, "outside": outside}
        self._assign(**self._described_domain({self.asks: self.usual} | domain | question), **target.plan)
        if randomizer is None:
            randomizer = best_leveled(self._rows(_COMPARED), branching, target)
        elif branching is not None:
            raise ValueError(f"{branching=} is a matter of the randomizer when that is given")
        self._accept(canonical(randomizer))
        require_target(self, target.most)

    @cached_property
    def edges(self) -> Floats:
        """Of the bins: one more than there are bins."""
        return np.linspace(self.low, self.high, self.bins + 1)

    @abstractmethod
    def _rows(self, most: int | None = None) -> Floats:
        """The sums of bins that are asked for, one row of coefficients each (about ``most`` of them)."""

    def encode(
        self, column: Any, *, rng: np.random.Generator | None = None, show_values: bool = False
    ) -> Any:
        """The bin of each number."""
        clip = self.outside == "clip"
        numbers = numbers_in(column, self.low, self.high, clip=clip, show_values=show_values)
        return np.minimum(np.searchsorted(self.edges, numbers, side="right") - 1, self.bins - 1)

    def estimate(self, tally: Counts, n: int) -> Floats:
        """Unbiased, consistent counts of the bins."""
        return self.randomizer.estimate(tally, n)

    def _check(self, tally: Counts, n: int) -> None:
        if int(tally.sum()) != n:
            raise ValueError(f"tally must sum to n = {n}, got {int(tally.sum())}")
        found = Distribution(self.edges, tally, n, self.randomizer)
        self.randomizer.weights(found.sent)  # an error of its own where too few reports came

    def _result(self, tally: Counts, n: int, privacy: PrivacyStatement, confidence: float) -> Any:
        return self._told(Distribution(self.edges, tally, n, self.randomizer), privacy, confidence)

    @abstractmethod
    def _told(self, found: Distribution, privacy: PrivacyStatement, confidence: float) -> Any:
        """A ``RangeResult`` or a ``QuantileResult``."""

    @property
    def worst_standard_errors(self) -> Floats:
        """Of the sums that are asked for (up to 64 of them), if n people are spread evenly over the bins."""
        even = np.full(self.bins, self.n / self.bins)
        return np.sqrt(self.randomizer.variance(even, self.n, sums=self._rows(_COMPARED)))

    def _domain(self) -> dict[str, Any]:
        asked = [list(one) if isinstance(one, tuple) else one for one in self.asked]
        domain = {name: getattr(self, name) for name in ("low", "high", "bins", "outside")}
        return domain | {self.asks: asked}

    @classmethod
    def _described_domain(cls, description: dict[str, Any]) -> dict[str, Any]:
        low, high = interval(description["low"], description["high"])
        bins = _validate.count("bins", description["bins"], least=2, most=MOST_BINS)
        outside = _validate.one_of("outside", description["outside"], OUTSIDE)
        asked = cls._checked(description[cls.asks], np.linspace(low, high, bins + 1))
        return {"low": low, "high": high, "bins": bins, "outside": outside, "asked": asked}

    @classmethod
    @abstractmethod
    def _checked(cls, asked: Any, edges: Floats) -> tuple[Any, ...]:
        """What is asked for, if it is of the right kind."""

    def _accept(self, randomizer: Any) -> None:
        if not isinstance(randomizer, LeveledResponse):
            raise TypeError(f"randomizer must be a LeveledResponse, got {randomizer!r}")
        if randomizer.k != self.bins:
            raise ValueError(f"randomizer must have k = {self.bins} values, one per bin, got {randomizer!r}")
        _validate.sampled_epsilon0(randomizer.epsilon0)
        self._assign(randomizer=randomizer)


@dataclass(frozen=True, init=False)
class RangeProtocol(OrderedProtocol):
    """How many people are in each of some ranges, which may overlap.

    ``ranges``: (from, up to) pairs of edges of bins (default: every bin). Any other can be asked for later,
    of the result."""

    name: ClassVar[str] = "ranges"
    asks: ClassVar[str] = "ranges"

    def _rows(self, most: int | None = None) -> Floats:
        step = 1 if most is None else -(-len(self.asked) // most)
        rows = np.zeros((len(self.asked[::step]), self.bins))
        for row, (low, high) in zip(rows, self.asked[::step], strict=True):
            first, last = bins_between(self.edges, low, high)
            row[first:last] = 1.0
        return rows

    @classmethod
    def _checked(cls, asked: Any, edges: Floats) -> tuple[Any, ...]:
        if asked is None:
            return tuple(zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True))
        try:
            pairs = [(low, high) for low, high in asked]
        except (TypeError, ValueError):
            raise TypeError(f"ranges must be pairs of numbers, got {asked!r}") from None
        if not 1 <= len(pairs) <= MOST_BINS:
            raise ValueError(f"ranges must hold 1 to {MOST_BINS} pairs, got {len(pairs)}")
        found = [bins_between(edges, low, high) for low, high in pairs]
        return tuple((float(edges[first]), float(edges[last])) for first, last in found)

    def truth(self, counts: Counts) -> Floats:
        """What the ranges hold, of true counts of the bins."""
        return np.asarray(self._rows() @ counts)

    if TYPE_CHECKING:

        def analyze(self, reports: Any = None, **settings: Any) -> RangeResult: ...

    def _told(self, found: Distribution, privacy: PrivacyStatement, confidence: float) -> RangeResult:
        names = tuple(range_name(self.edges, *bins_between(self.edges, *ends)) for ends in self.asked)
        told: tuple[Any, ...] = (found.support, found.n, self.randomizer, privacy, confidence)
        return RangeResult(names, *told, distribution=found, sums=self._rows())


@dataclass(frozen=True, init=False)
class QuantileProtocol(OrderedProtocol):
    """The numbers that given shares of the people do not exceed: median, quartiles, tails.

    ``quantiles``: the shares, each inside (0, 1) (default: quartiles). Any other can be asked for later, of
    the result."""

    name: ClassVar[str] = "quantiles"
    asks: ClassVar[str] = "quantiles"
    usual: ClassVar[tuple[Any, ...] | None] = QUARTILES

    def _rows(self, most: int | None = None) -> Floats:
        ends = np.unique(np.linspace(0, self.bins - 2, most or self.bins - 1).round().astype(int))
        return np.asarray(np.tri(self.bins - 1, self.bins)[ends])

    @classmethod
    def _checked(cls, asked: Any, edges: Floats) -> tuple[Any, ...]:
        if not isinstance(asked, (list, tuple, np.ndarray)) or not 1 <= len(asked) <= MOST_BINS:
            raise ValueError(f"quantiles must be a list of shares inside (0, 1), got {asked!r}")
        return tuple(checked_share(share) for share in asked)

    def truth(self, counts: Counts) -> Floats:
        """The quantiles of true counts of the bins, within whose bins people are spread evenly."""
        grown = np.concatenate([[0.0], np.cumsum(counts)])
        return rising(grown, self.edges, np.array(self.asked) * grown[-1])

    if TYPE_CHECKING:

        def analyze(self, reports: Any = None, **settings: Any) -> QuantileResult: ...

    def _told(self, found: Distribution, privacy: PrivacyStatement, confidence: float) -> QuantileResult:
        return QuantileResult(self.asked, found, privacy, confidence)


def best_leveled(sums: Floats, branching: int | None, target: Target) -> LeveledResponse:
    """The certified randomizer of the smallest mean variance of ``sums`` for people spread evenly.

    ``branching``: of the tree, if that is given."""
    bins = sums.shape[1]
    if branching is not None:
        return _calibrated(bins, _validate.count("branching", branching, least=2, most=bins), target)
    even = np.full(bins, target.n / bins)

    def error(tried: LeveledResponse) -> float:
        return float(tried.variance(even, target.n, sums=sums).mean())

    trees = {bins: 1} | {math.ceil(bins ** (1.0 / levels)): levels for levels in range(2, _MOST_LEVELS + 1)}
    shapes = {Tree(bins, each).sizes: each for each in trees if 2 <= each <= bins}
    quick = [_calibrated(bins, each, target, _TOLERANCE) for each in shapes.values()]
    return _calibrated(bins, min(quick, key=error).branching, target)


def _calibrated(
    bins: int, branching: int, target: Target, tolerance: float = DEFAULT_TOLERANCE
) -> LeveledResponse:
    """The least noisy one of this tree that is certified."""
    if branching >= bins:
        return LeveledResponse(bins, calibrated_response(bins, target, tolerance).epsilon0, bins)
    if target.is_limited:
        limited: LeveledResponse = within(lambda e: LeveledResponse(bins, e, branching), target.most)
        if target.is_met(limited):
            return limited
    found = calibrate(LeveledResponse, k=bins, branching=branching, **target.plan, tolerance=tolerance)
    return LeveledResponse(bins, found.value, branching)
