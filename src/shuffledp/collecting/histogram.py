"""Histograms: how many people hold each of a public list of categories.

The randomizer is chosen by calibration to the certified (epsilon, delta) (see ``collecting._choice``), or
given. Estimates are unbiased, with the randomizer's exact variance.

>>> survey = HistogramProtocol(["cat", "dog", "fish"], epsilon=1.0, delta=1e-6, n=10_000)
>>> reports = survey.randomize(["cat"] * 6_000 + ["dog"] * 4_000)
>>> result = survey.analyze(reports)
>>> bool(abs(result.counts[0] - 6_000) < 10 * result.standard_errors[0])
True
>>> result.privacy.epsilon <= 1.0
True
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from shuffledp import _validate
from shuffledp._certified.rounding import Floats
from shuffledp.collecting._accounted import Target
from shuffledp.collecting._choice import best_calibrated, largest_error, mean_error
from shuffledp.collecting._domain import CategoryIndex, checked_categories
from shuffledp.collecting._protocol import Protocol, require_target
from shuffledp.collecting._several_messages import best_counts, checked_messages, checked_most_messages
from shuffledp.collecting.result import HistogramResult, reach_of
from shuffledp.collecting.statement import PrivacyStatement
from shuffledp.randomizers._categories import Counts
from shuffledp.randomizers.blanket_messages import SlottedMessages
from shuffledp.randomizers.frequency import FrequencyOracle, two_probabilities
from shuffledp.randomizers.registry import canonical

_PREFERENCES = ("error", "worst", "messages", "robustness")


@dataclass(frozen=True, init=False)
class HistogramProtocol(Protocol):
    """Count people by category, in ``rounds`` collections that meet (epsilon, delta) together.

    ``randomizer``: any ``FrequencyOracle`` that meets the target (default: the best of this package).
    ``other`` names the category of whatever is missing or not in the list; it is added to the list if
    it is not there. Without it such values are an error.

    ``messages``: 1, or several a person, the own category among random ones; the error of a count then
    depends on the privacy alone, not on the number of people ("auto": whichever errs less). Everything then
    rests on the shuffler: one person's messages alone reveal the answer, or nearly. Where the categories are
    too many for ``max_messages`` (default: 12) they are hashed, with collisions that are known exactly.
    ``prefer`` (with "auto"): the smaller "error" over all categories, the smaller error of the "worst" one
    (large counts of one message err more), the fewest "messages", or "robustness" to one dishonest person.
    ``max_epsilon0``: what one report may reveal alone, without the shuffler; the choice is among randomizers
    that keep to it."""

    name: ClassVar[str] = "histogram"
    categories: tuple[Any, ...]
    epsilon: float
    delta: float
    n: int
    randomizer: FrequencyOracle
    rounds: int
    other: Any

    def __init__(
        self,
        categories: Any,
        epsilon: float,
        delta: float,
        n: int,
        randomizer: FrequencyOracle | None = None,
        rounds: int = 1,
        other: Any = None,
        messages: int | str = 1,
        max_epsilon0: float | None = None,
        max_messages: int | None = None,
        prefer: str = "error",
    ) -> None:
        listed = _with_other(checked_categories(categories), other)
        target = Target(epsilon, delta, n, rounds, most=max_epsilon0)
        domain = {"categories": listed, "other": other}
        self._choose(domain, target, randomizer, messages, max_messages, prefer)

    def _choose(
        self,
        domain: dict[str, Any],
        target: Target,
        randomizer: Any,
        messages: int | str = 1,
        max_messages: int | None = None,
        prefer: str = "error",
    ) -> None:
        """Set everything, with the best randomizer if none is given, certified."""
        self._assign(**domain, **target.plan)
        preferred = _validate.one_of("prefer", prefer, _PREFERENCES)
        number, several = checked_messages(messages, target), checked_most_messages(max_messages)
        if randomizer is None:
            randomizer = self._best(number, target, several, preferred)
        elif messages != 1:
            raise ValueError(f"{messages=} is a matter of the randomizer when that is given")
        self._accept(canonical(randomizer))
        require_target(self, target.most)

    def _best(self, messages: int | str, target: Target, most: int, prefer: str) -> FrequencyOracle:
        return _best_oracle(self.k, messages, most, prefer, target)

    @property
    def k(self) -> int:
        """The number of categories."""
        return len(self.categories)

    @property
    def standard_error(self) -> float:
        """Of a count, in the root mean square over all categories, for n reports: whatever the data."""
        return mean_error(self.randomizer, self.n)

    @property
    def worst_standard_error(self) -> float:
        """Of the count that errs most, for n reports and the worst data."""
        return largest_error(self.randomizer, self.n)

    @property
    def one_dishonest(self) -> float:
        """How far one dishonest person can move a count."""
        return float(reach_of(self.randomizer, self.k).max())

    @property
    def reads_text(self) -> bool:
        return all(isinstance(category, str) for category in self.categories)

    def encode(
        self, column: Any, *, rng: np.random.Generator | None = None, show_values: bool = False
    ) -> Any:
        """The place of each value in ``categories``."""
        other = None if self.other is None else self._other_place
        return self._index.places(column, other, show_values=show_values)

    @cached_property
    def _index(self) -> CategoryIndex:
        return CategoryIndex.of(self.categories)

    @cached_property
    def _other_place(self) -> int:
        return self.categories.index(self.other)

    def estimate(self, tally: Counts, n: int) -> Floats:
        return np.asarray(self.randomizer.estimate(tally, n), dtype=np.float64)

    if TYPE_CHECKING:

        def analyze(self, reports: Any = None, **settings: Any) -> HistogramResult: ...

    def _check(self, tally: Counts, n: int) -> None:
        """Where every report supports equally many categories, the tally's sum is known."""
        each, total = getattr(self.randomizer, "support_size", None), int(tally.sum())
        if each is not None and total != each * n:
            raise ValueError(f"tally must sum to n = {n} times {each}, got {total}")

    def _result(self, *found: Any) -> HistogramResult:
        return HistogramResult(*self._found(*found))

    def _found(self, tally: Counts, n: int, privacy: PrivacyStatement, confidence: float) -> tuple[Any, ...]:
        return self.categories, tally, n, self.randomizer, privacy, confidence

    @staticmethod
    def truth(counts: Counts) -> Counts:
        """What is estimated, of true counts of the categories."""
        return counts

    def _domain(self) -> dict[str, Any]:
        return {"categories": list(self.categories), "other": self.other}

    @classmethod
    def check(cls, **domain: Any) -> None:
        checked_categories(domain["categories"])

    @classmethod
    def _described_domain(cls, description: dict[str, Any]) -> dict[str, Any]:
        listed, other = checked_categories(description["categories"]), description["other"]
        if other is not None and other not in listed:
            raise ValueError(f"other must be one of the categories, got {other!r}")
        return {"categories": listed, "other": other}

    def _accept(self, randomizer: Any) -> None:
        self._assign(randomizer=_suitable(randomizer, self.k))


def _best_oracle(k: int, messages: int | str, most: int, prefer: str, target: Target) -> FrequencyOracle:
    """One message or several, as asked for; "auto": whichever is better by ``prefer``, exactly."""
    if messages == 1:
        return best_calibrated(k, target)
    if not isinstance(messages, str):
        return best_counts(k, target, messages, most)
    one = best_calibrated(k, target)
    try:
        several: FrequencyOracle = best_counts(k, target, None, most)
    except ValueError:  # more messages than anybody should send
        return one
    n = target.n
    measures: dict[str, Callable[[FrequencyOracle], float]] = {
        "error": lambda oracle: mean_error(oracle, n),
        "worst": lambda oracle: largest_error(oracle, n),
        "messages": lambda oracle: getattr(oracle, "messages", 1),
        "robustness": lambda oracle: float(reach_of(oracle, k).max()),
    }
    return min(one, several, key=measures[prefer])


def _with_other(categories: tuple[Any, ...], other: Any) -> tuple[Any, ...]:
    if other is None or other in categories:
        return categories
    return checked_categories((*categories, other))


def _suitable(randomizer: Any, k: int) -> FrequencyOracle:
    if not isinstance(randomizer, FrequencyOracle):
        raise TypeError(f"randomizer must be one of categories (see FrequencyOracle), got {randomizer!r}")
    if randomizer.k != k:
        raise ValueError(f"randomizer must have k = {k} categories, got {randomizer!r}")
    p, q = two_probabilities(randomizer) or (1.0, 0.0)
    if not p > q:
        raise ValueError(f"randomizer must depend on its input, got {randomizer!r}")
    if not isinstance(randomizer, SlottedMessages):  # which protect nobody alone
        _validate.sampled_epsilon0(randomizer.facts().epsilon0.upper)
    # An error of its own where nothing can be estimated.
    randomizer.variance(np.eye(1, k, dtype=np.int64)[0], 1)
    return randomizer
