"""Frequent strings of an unknown domain: a prefix tree that grows cohort by cohort.

Nobody has a list of the strings. So a first cohort is asked for the first character, a second one how the
frequent beginnings go on, and so forth; each cohort is one histogram of candidate prefixes, and everything
else is "other". A person is in one cohort only, drawn without regard to the string, so the privacy of the
whole is that of the worst cohort (Theorem T26), although later questions depend on earlier answers.

A prefix is kept if more reports support it than noise alone explains: the probability that any prefix is
ever kept that nobody of its cohort holds is at most ``false_positives``, certified. Strings that are over
before the prefix is are filled up with END; what is longer than ``length`` is known by its beginning.

    step = PrefixProtocol(string.ascii_lowercase, length=6, epsilon=1.0, delta=1e-6, n=20_000)
    result = step.analyze(shuffled reports of the first cohort)      three roles, as of any protocol
    step = result.next(n=20_000)                                     for the second, until it is None

``heavy_hitters`` does all that where the data are in one place.

>>> names = ["anna"] * 3000 + ["otto"] * 2000 + ["zoe"] * 10
>>> found = heavy_hitters(names, alphabet="anotze", length=4, epsilon=1.0, delta=1e-6, false_positives=1e-6)
>>> sorted(found.categories)
['anna', 'otto']
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from shuffledp import _validate
from shuffledp._certified.binomial import log_upper_tail
from shuffledp._certified.rounding import Floats
from shuffledp._progress import Progress
from shuffledp._randomness.words import source
from shuffledp.collecting._accounted import Target
from shuffledp.collecting._choice import calibrated_response
from shuffledp.collecting._domain import MOST_CATEGORIES, as_column, missing_in, refuse
from shuffledp.collecting._intervals import checked_confidence, quantile
from shuffledp.collecting.histogram import HistogramProtocol
from shuffledp.collecting.result import Estimate, HistogramResult, Interval
from shuffledp.collecting.statement import honest_reports
from shuffledp.errors import TooFewReportsError
from shuffledp.randomizers.frequency import FrequencyOracle, two_probabilities

END = "\0"
"""Follows the last character of a string that is shorter than a prefix."""
OTHER = ""
MOST_KEPT = 32
"""Prefixes that are followed at most, if no other number is given."""
MOST_LENGTH = 64


@dataclass(frozen=True, init=False)
class PrefixProtocol(HistogramProtocol):
    """One step of the search: which of some prefixes do the people of one cohort hold?

    ``alphabet``: the characters that strings are made of; others are "other". ``length``: the most characters
    that are told apart. ``stride``: characters per step, so that there are ceil(length / stride) steps.
    ``n``: honest reports of *this* cohort. ``false_positives``: see module; of the whole search.
    ``most``: prefixes that are followed at most, the most frequent ones. ``prefixes``: those that were kept
    so far (``result.next`` fills it in)."""

    name: ClassVar[str] = "prefixes"
    alphabet: str
    length: int
    stride: int
    step: int
    false_positives: float
    most: int
    prefixes: tuple[str, ...]

    def __init__(
        self,
        alphabet: Any,
        length: int,
        epsilon: float,
        delta: float,
        n: int,
        stride: int = 1,
        false_positives: float = 0.05,
        most: int = MOST_KEPT,
        step: int = 1,
        prefixes: Any = (OTHER,),
        randomizer: FrequencyOracle | None = None,
        max_epsilon0: float | None = None,
    ) -> None:
        given = {"alphabet": "".join(alphabet), "length": length, "stride": stride, "step": step}
        given |= {"false_positives": false_positives, "most": most, "prefixes": prefixes}
        self._choose(_checked(given), Target(epsilon, delta, n, most=max_epsilon0), randomizer)

    @classmethod
    def check(cls, **domain: Any) -> None:
        _checked({"step": 1, "prefixes": (OTHER,), **domain})

    @property
    def steps(self) -> int:
        """How many cohorts there are."""
        return -(-self.length // self.stride)

    @property
    def reads_text(self) -> bool:
        return True

    def encode(
        self, column: Any, *, rng: np.random.Generator | None = None, show_values: bool = False
    ) -> Any:
        """The place of each string's beginning among the candidates. DomainError for what is no string."""
        array = as_column(column)
        flat, missing = array.reshape(-1), missing_in(array).reshape(-1)
        outside = np.array([not isinstance(value, str) for value in flat], dtype=np.bool_) & ~missing
        refuse(array, missing, outside, show_values)
        size = min(self.step * self.stride, self.length)
        cut = np.array([padded(value, size) for value in flat.tolist()], dtype=object).reshape(array.shape)
        return super().encode(cut)

    def _best(self, messages: int | str, target: Target, most: int, prefer: str) -> FrequencyOracle:
        """Behind a shuffler randomized response errs least; nothing else is tried, at every step."""
        return calibrated_response(self.k, target)

    def threshold(self, n: int) -> int:
        """The support, of n reports, from which on a prefix is kept (certified; see module)."""
        known = two_probabilities(self.randomizer)
        assert known is not None
        level = math.log(self.false_positives / (self.steps * max(1, self.k - 1)))
        low, high = math.floor(n * known[1]) + 1, n + 1
        while low < high:
            middle = (low + high) // 2
            value, error = log_upper_tail(float(n), np.array([float(middle)]), known[1], 1.0 - known[1])
            low, high = (low, middle) if float(value[0] + error[0]) <= level else (middle + 1, high)
        return low

    def detectable(self, power: float = 0.95) -> float:
        """About how many of the cohort must hold a prefix so that it is kept with this probability."""
        known = two_probabilities(self.randomizer)
        assert known is not None
        p, q = known
        held = needed = (self.threshold(self.n) - self.n * q) / (p - q)
        z = quantile(2.0 * checked_confidence(power) - 1.0)
        for _ in range(8):  # the variance grows with the number
            spread = held * p * (1.0 - p) + (self.n - held) * q * (1.0 - q)
            held = needed + z * math.sqrt(max(spread, 0.0)) / (p - q)
        return held

    if TYPE_CHECKING:

        def analyze(self, reports: Any = None, **settings: Any) -> PrefixResult: ...

    def _result(self, *found: Any) -> PrefixResult:
        return PrefixResult(*self._found(*found), protocol=self)

    def _domain(self) -> dict[str, Any]:
        names = ("alphabet", "length", "stride", "step", "false_positives", "most")
        return {name: getattr(self, name) for name in names} | {"prefixes": list(self.prefixes)}

    @classmethod
    def _described_domain(cls, description: dict[str, Any]) -> dict[str, Any]:
        names = ("alphabet", "length", "stride", "step", "false_positives", "most", "prefixes")
        return _checked({name: description[name] for name in names})

    def _accept(self, randomizer: Any) -> None:
        if two_probabilities(randomizer) is None:
            raise TypeError(f"randomizer must have two probabilities of support, got {randomizer!r}")
        super()._accept(randomizer)


def padded(value: str, size: int) -> str:
    """The first characters, filled up with END.

    >>> padded("abc", 2), padded("abc", 5)
    ('ab', 'abc\\x00\\x00')
    """
    return value[:size] + END * (size - len(value))


def shown(prefix: str) -> str:
    """A candidate for readers: an open prefix ends in a star.

    >>> shown("ab"), shown(padded("ab", 4)), shown(OTHER)
    ('ab*', 'ab', '(other)')
    """
    if not prefix:
        return "(other)"
    return prefix.rstrip(END) + "*" * (not prefix.endswith(END)) or "(empty)"


def _checked(given: dict[str, Any]) -> dict[str, Any]:
    """All fields, and the candidates that follow from them."""
    alphabet, prefixes = given["alphabet"], given["prefixes"]
    if (
        not isinstance(alphabet, str)
        or not alphabet
        or len(set(alphabet)) != len(alphabet)
        or END in alphabet
    ):
        raise ValueError(f"alphabet must be different characters (and not the character 0), got {alphabet!r}")
    length = _validate.count("length", given["length"], most=MOST_LENGTH)
    stride = _validate.count("stride", given["stride"], most=length)
    step = _validate.count("step", given["step"], most=-(-length // stride))
    chance = _validate.probability("false_positives", given["false_positives"], positive=True)
    if chance == 1.0:
        raise ValueError(f"false_positives must be in (0, 1), got {given['false_positives']!r}")
    most, before = _validate.count("most", given["most"], most=2**16), (step - 1) * stride
    listed = isinstance(prefixes, (list, tuple)) and len(prefixes) > 0
    if not listed or any(not isinstance(each, str) or len(each) != before for each in prefixes):
        raise ValueError(f"prefixes must be texts of {before} characters for step {step}, got {prefixes!r}")
    if len(prefixes) * (len(alphabet) + 1) ** stride >= MOST_CATEGORIES:
        raise ValueError(
            f"alphabet, stride and most must give fewer than {MOST_CATEGORIES} candidates, got "
            f"{len(prefixes)} prefixes and {len(alphabet)} characters to the power of {stride}"
        )
    more = min(stride, length - before)
    candidates = tuple(each for prefix in prefixes for each in _longer(prefix, alphabet, more))
    if len(set(candidates)) != len(candidates):
        raise ValueError(f"prefixes must be different, got {prefixes!r}")
    known = {"alphabet": alphabet, "length": length, "stride": stride, "step": step, "most": most}
    known |= {"false_positives": chance, "prefixes": tuple(prefixes)}
    return known | {"categories": (*candidates, OTHER), "other": OTHER}


def _longer(prefix: str, alphabet: str, stride: int) -> Iterator[str]:
    """All prefixes that begin with this one; a string that is over stays so."""
    if prefix.endswith(END):
        yield prefix + END * stride
        return
    for size in range(stride + 1):
        for more in product(alphabet, repeat=size):
            yield prefix + padded("".join(more), stride)


@dataclass(frozen=True, eq=False, kw_only=True)
class PrefixResult(HistogramResult):
    """What one cohort says: ``kept`` are the prefixes that are not noise, ``next`` asks how they go on."""

    protocol: PrefixProtocol

    @property
    def threshold(self) -> int:
        """The support from which on a prefix is kept."""
        return self.protocol.threshold(self.n)

    @property
    def kept(self) -> list[Estimate]:
        """The prefixes whose support reaches the threshold, the most frequent first."""
        order = np.argsort(-self.support[:-1], kind="stable")[: self.protocol.most]
        chosen = order[self.support[order] >= self.threshold].tolist()
        rows = list(self) if chosen else []
        return [rows[place] for place in chosen]

    @property
    def labels(self) -> list[str]:
        """The candidates: a string that goes on ends in a star."""
        return [shown(each) for each in self.categories]

    def columns(self, confidence: float | None = None) -> dict[str, list[Any]]:
        """One row per candidate."""
        return super().columns(confidence) | {"category": self.labels}

    def next(self, n: int | None = None, max_epsilon0: float | None = None) -> PrefixProtocol | None:
        """The plan of the next cohort, of n honest reports (default: as this one).

        None after the last one, and if no prefix was kept."""
        plan = self.protocol
        prefixes = [each.category for each in self.kept]
        if plan.step == plan.steps or not prefixes:
            return None
        names = ("alphabet", "length", "epsilon", "delta", "stride", "false_positives", "most")
        same = {name: getattr(plan, name) for name in names}
        people = plan.n if n is None else n
        return PrefixProtocol(
            **same, n=people, step=plan.step + 1, prefixes=prefixes, max_epsilon0=max_epsilon0
        )

    def strings(self, n: int | None = None) -> StringsResult:
        """Of the last cohort: the strings found, in all of n people (default: this cohort alone)."""
        over = [each.category for each in self.kept] if self.protocol.step == self.protocol.steps else []
        places = [self.categories.index(each) for each in over]
        names = tuple(each.rstrip(END) for each in over)
        people = self.n if n is None else _validate.count("n", n, least=self.n)
        fields = (names, self.support[places], people, self.randomizer, self.privacy, self.confidence)
        return StringsResult(*fields, cohort=self.n)


@dataclass(frozen=True, eq=False, kw_only=True)
class StringsResult(HistogramResult):
    """The frequent strings, the most frequent first, and how many of n people hold each.

    Counted in the last cohort, a random sample of ``cohort`` people; the error bars include that."""

    cohort: int

    def _shares(self) -> tuple[Floats, float, float]:
        known = two_probabilities(self.randomizer)
        assert known is not None
        return self.support / self.cohort, *known

    @property
    def counts(self) -> Floats:
        """Unbiased estimates of how many people hold each string."""
        share, p, q = self._shares()
        return np.asarray(self.n * (share - q) / (p - q))

    @property
    def standard_errors(self) -> Floats:
        """Of ``counts``: of a sample drawn with replacement, which errs no less than one without."""
        share, p, q = self._shares()
        return np.asarray(self.n / (p - q) * np.sqrt(share * (1.0 - share) / self.cohort))

    def interval(self, confidence: float | None = None) -> Interval:
        """Score intervals, one per string, with a continuity correction of half a report."""
        z = quantile(self.level(confidence))
        (_, p, q), m, ends = self._shares(), self.cohort, []
        for side in (-1.0, 1.0):
            seen = np.clip((self.support + 0.5 * side) / m, 0.0, 1.0)
            spread = z * np.sqrt(seen * (1.0 - seen) / m + z * z / (4.0 * m * m))
            share = (seen + z * z / (2.0 * m) + side * spread) / (1.0 + z * z / m)
            ends.append(np.clip(self.n * (share - q) / (p - q), 0.0, float(self.n)))
        return Interval(*ends)

    def projected(self) -> Floats:
        """``counts``, within [0, n]."""
        return np.clip(self.counts, 0.0, float(self.n))

    def poisoning(self, m: int) -> Floats:
        """How far m dishonest people can move each of ``counts``, all of them in the last cohort."""
        liars = min(_validate.count("m", m, least=0, most=self.n), self.cohort)
        _, p, q = self._shares()
        return np.full(len(self.categories), liars * self.n / self.cohort / (p - q))

    def __str__(self) -> str:
        if self.categories:
            return super().__str__()
        return f"no string is frequent enough to be told from noise\n\n{self.privacy.text}"


def heavy_hitters(
    data: Any,
    *,
    alphabet: Any,
    length: int,
    epsilon: float,
    delta: float,
    confidence: float = 0.95,
    rng: np.random.Generator | None = None,
    honest_fraction: float = 1.0,
    show_values: bool = False,
    **settings: Any,
) -> StringsResult:
    """The frequent strings of a list of them, one per person: all cohorts, one after the other.

    People are put into cohorts at random. ``settings``: stride, false_positives, most and max_epsilon0 of
    ``PrefixProtocol``. ``rng`` makes it repeatable, for simulations only. Fewer people than cohorts:
    TooFewReportsError."""
    values = as_column(data)
    if values.ndim != 1:
        raise ValueError("data must be a list of strings, one per person")
    steps = -(-_validate.count("length", length) // _validate.count("stride", settings.get("stride", 1)))
    if len(values) < steps:
        raise TooFewReportsError(f"{len(values)} people are too few for {steps} cohorts, one per step")
    order = source(rng).draw(len(values)).argsort(kind="stable")
    cohorts = np.array_split(values[order], steps)
    honest = [honest_reports(len(each), len(each), honest_fraction, None) for each in cohorts]
    target: dict[str, Any] = {"epsilon": epsilon, "delta": delta, "n": honest[0], **settings}
    plan: PrefixProtocol | None = PrefixProtocol(alphabet, length, **target)
    statements = []
    with Progress(len(values), what="people") as progress:
        for cohort in cohorts:
            assert plan is not None
            reports = plan.randomize(cohort, rng=rng, show_values=show_values)
            counted = plan.count(reports)
            sure = {"confidence": confidence, "minimum_honest": plan.n}
            result = plan.analyze(tally=counted, n=len(cohort), **sure)
            statements.append(result.privacy)
            progress.advance(len(cohort))
            following = result.next(honest[min(plan.step, steps - 1)], settings.get("max_epsilon0"))
            if following is None:
                break
            plan = following
    worst = max(statements, key=lambda statement: statement.epsilon)
    found = result.strings(n=len(values))
    return replace(found, privacy=replace(worst, protocol=f"strings, worst of {steps} cohorts"))
