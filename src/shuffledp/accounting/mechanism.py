"""What a user composes: shuffled rounds, cohorts, sums and multiples of them."""

from __future__ import annotations

import math
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from shuffledp import _html, _validate
from shuffledp._certified.rounding import CALL, down, up
from shuffledp._progress import expected
from shuffledp.accounting._analyses import BEST, BY_NAME, NAMES, covers_leaks, names_for, profile_of
from shuffledp.accounting._certificate import certificate_of, stated
from shuffledp.accounting._curves.cohort_pair import CohortPair
from shuffledp.accounting._curves.combined import BestProfile
from shuffledp.accounting._curves.mixture import honest_cohort
from shuffledp.accounting._curves.profile import PrivacyProfile
from shuffledp.accounting._curves.subsampled import subsampled_epsilon
from shuffledp.accounting._ends.together import Search, together
from shuffledp.accounting._ends.upper import (
    DEFAULT_TOLERANCE as DEFAULT_TOLERANCE,
    delta_of,
    ends_of,
    epsilon_of,
    upper_delta,
    upper_end,
)
from shuffledp.accounting._renyi import INTEGRATING, renyi_lowers, renyi_uppers
from shuffledp.accounting._rounds.round import Round
from shuffledp.accounting._trade_off import trade_off
from shuffledp.accounting._witnesses import Witness, datasets, witnesses
from shuffledp.bound import Bound
from shuffledp.errors import CoarserBoundWarning, NoCertificateError
from shuffledp.facts import Facts

if TYPE_CHECKING:
    from shuffledp.accounting.statement import PlannedStatement
    from shuffledp.verifying.certificate import Certificate

FINE_TOLERANCE = 1e-4
_COARSEST = 0.5
_AT_ONCE = 128  # speed


class Mechanism(ABC):
    """Something run on the same users: one round or an adaptive composition of rounds."""

    @property
    @abstractmethod
    def parts(self) -> tuple[tuple[OneRound, int], ...]:
        """The different rounds, each with the number of times it is run."""

    def _rounds(self) -> list[tuple[Round, int]]:
        rounds = [(part.round, count) for part, count in self.parts if count]
        return [(part, count) for part, count in rounds if not _reveals_nothing(part)]

    def _search(self, delta: float, tolerance: float | None) -> Search[tuple[float, float]]:
        rounds = self._rounds()
        ends = ends_of(rounds, delta, tolerance, local=self._alone(delta))
        return (yield from ends) if rounds else (0.0, 0.0)

    @contextmanager
    def _named(self) -> Iterator[None]:
        """Errors of the numerics name the mechanism and so its parameters; long work counts as one."""
        try:
            with expected(1, "answering"):
                yield
        except NoCertificateError as error:
            raise NoCertificateError(f"no certificate for {self!r}: {error}") from None

    def epsilon(self, *, delta: Any, tolerance: float | None = None) -> Bound:
        """The smallest epsilon of (epsilon, delta)-DP at delta (a number or an array), enclosed.

        ``upper`` exceeds the exact value of its analysis by at most ``tolerance`` (relative; by default 1e-3,
        1e-4 for one round of bounded losses wherever that can be certified, 3e-4 for up to 16 rounds of any
        randomizer; several rounds in which rare reports tell most, such as Gaussian noise of a small scale,
        have 1e-2, which a warning says);
        ``lower`` is attained by a concrete pair of neighbouring datasets."""
        if np.ndim(delta):
            return _each(lambda one: self.epsilon(delta=one, tolerance=tolerance), delta)
        level = _validate.probability("delta", delta)
        return self._enclosed(level, None if tolerance is None else _validate.tolerance(tolerance))

    def _enclosed(self, level: float, allowed: float | None, known: tuple[float, str] | None = None) -> Bound:
        """``epsilon(...)``, where the ``_upper_end`` may be known already."""
        rounds = self._rounds()
        with self._named():
            low, high = _ends(rounds, level, allowed, known, self._alone(level)) if rounds else (0.0, 0.0)
        source = partial(self.certificate, epsilon=high, delta=level, tolerance=allowed or DEFAULT_TOLERANCE)
        return Bound(low, high, source, self.gaussian_limit)

    def upper_epsilon(self, *, delta: float, tolerance: float | None = None) -> float:
        """``epsilon(...).upper`` alone, for searches: no lower end, and no warning of a coarser one."""
        level = _validate.probability("delta", delta)
        return self._upper_end(level, None if tolerance is None else _validate.tolerance(tolerance))[0]

    def _upper_end(self, level: float, allowed: float | None, near: float | None = None) -> tuple[float, str]:
        """``upper_epsilon``, which may be ``near`` a number, and in what it is coarser than asked for."""
        with self._named():
            return upper_end(self._rounds(), level, allowed, near, self._alone(level))

    def _alone(self, delta: float) -> float:
        """What holds whatever the crowd adds: the local epsilons add up if delta covers all that leaks."""
        known = [(count, *one.alone) for one, count in self.parts if count]
        if not 0 < sum(count * leak for count, _, leak in known) <= Fraction(delta):
            return math.inf
        return up(math.fsum(count * epsilon for count, epsilon, _ in known), operations=2, tiny=0.0)

    def lower_epsilon(self, *, delta: float, tolerance: float = FINE_TOLERANCE) -> float:
        """``epsilon(...).lower`` alone, finer than by default: a claimed bound below it is false."""
        level = _validate.probability("delta", delta)
        rounds = self._rounds()
        accuracy = _validate.tolerance(tolerance)
        with self._named():
            return epsilon_of(rounds, level, DEFAULT_TOLERANCE, accuracy)[0] if rounds else 0.0

    def delta(self, *, epsilon: Any, tolerance: float = DEFAULT_TOLERANCE) -> Bound:
        """delta at epsilon (a number or an array), enclosed.

        ``upper`` is at most the analysis' exact delta at epsilon (1 - tolerance), or within
        ``tolerance`` of its exact delta at epsilon. Only where the delta of several rounds is below
        1e-25 and rounding hides it, ``upper`` is a bound that may be looser."""
        points = _validate.non_negative("epsilon", epsilon)
        allowed = _validate.tolerance(tolerance)
        rounds = self._rounds()
        if not rounds:
            return Bound.of(np.zeros(points.size), np.zeros(points.size), epsilon)
        with self._named():
            found = Bound.of(*delta_of(rounds, points.ravel(), allowed), epsilon)
        if points.shape != ():
            return found
        spare = min(up(found.upper * (1.0 + 0.1 * allowed), operations=3), 1.0)
        claim = {"epsilon": float(points), "delta": spare, "tolerance": allowed}
        return replace(found, source=partial(self.certificate, **claim), limit=self.gaussian_limit)

    def certificate(
        self, *, epsilon: float, delta: float, tolerance: float = DEFAULT_TOLERANCE
    ) -> Certificate:
        """The claim that this is (epsilon, delta)-DP, with all that is needed to verify it elsewhere.

        That of an answer of ``delta`` claims a tenth of the tolerance more: what was found may be exact."""
        with self._named():
            return certificate_of(self._live, epsilon, delta, tolerance)

    def stated(self) -> list[dict[str, Any]]:
        """What a certificate says of these rounds: ``verify(certificate, of=mechanism)`` compares."""
        with self._named():
            return stated(self._live)

    @property
    def _live(self) -> list[tuple[Round, int, float]]:
        parts = [(part, count) for part, count in self.parts if count]
        return [(one.round, count, one.delta0) for one, count in parts if not _reveals_nothing(one.round)]

    def upper_delta(self, *, epsilon: Any, tolerance: float = DEFAULT_TOLERANCE) -> Any:
        """``delta(...).upper`` alone: the lower end is not computed."""
        points = _validate.non_negative("epsilon", epsilon)
        allowed = _validate.tolerance(tolerance)
        with self._named():
            high = upper_delta(self._rounds(), points.ravel(), allowed)
        return Bound.of(high, high, epsilon).upper

    def lower_delta(self, *, epsilon: Any, tolerance: float = FINE_TOLERANCE) -> Any:
        """``delta(...).lower`` alone, finer than by default: a claimed bound below it is false."""
        points = _validate.non_negative("epsilon", epsilon)
        accuracy = _validate.tolerance(tolerance)
        rounds = self._rounds()
        low = np.zeros(points.size)
        if rounds:
            with self._named():
                low, _ = delta_of(rounds, points.ravel(), DEFAULT_TOLERANCE, accuracy)
        return Bound.of(low, low, epsilon).lower

    def profile(self, alpha: Any, tolerance: float = DEFAULT_TOLERANCE) -> Bound:
        """H_alpha, the hockey-stick divergence, at alpha >= 0 (a number or an array), enclosed."""
        points = _validate.non_negative("alpha", alpha)
        flat = points.ravel()
        at = self.delta(epsilon=np.abs(np.log(np.where(flat > 0.0, flat, 1.0))), tolerance=tolerance)
        left = flat < 1.0
        low = np.where(left, np.maximum((1.0 - flat) + flat * at.lower, 0.0), at.lower)
        high = np.where(left, np.minimum((1.0 - flat) + flat * at.upper, 1.0), at.upper)
        low = np.where(left, down(low, operations=4), low)
        high = np.where(left, np.minimum(up(high, operations=4), 1.0), high)
        low[flat == 0.0] = high[flat == 0.0] = 1.0
        return Bound.of(low, high, alpha)

    def curve(self, epsilon: Any, tolerance: float = DEFAULT_TOLERANCE) -> Bound:
        """delta on a grid of epsilon: the privacy curve."""
        return self.delta(epsilon=epsilon, tolerance=tolerance)

    def trade_off(self, alpha: Any, tolerance: float = DEFAULT_TOLERANCE) -> Bound:
        """The trade-off function of f-DP at a type I error ``alpha`` (a number or an array), enclosed.

        ``lower`` is the guarantee: no test between neighbouring datasets that accuses wrongly with
        probability alpha misses less often than that."""
        points = _validate.non_negative("alpha", alpha, most=1.0)
        found = trade_off(self, points.ravel(), _validate.tolerance(tolerance))
        return Bound.of(np.asarray(found.lower), np.asarray(found.upper), alpha)

    def gaussian_limit(self) -> Bound:
        """mu of the normal laws N(0, 1) and N(mu, 1) that are as far apart as neighbouring datasets of many
        people: of datasets that were tried (lower) and of the analysis (upper).

        A number to compare with, of a limit; no certificate. See ``Shuffled.shuffle_index``."""
        squares = [0.0, 0.0]
        for part, count in self._rounds():
            shown = max((float(pair.hints.scale) for pair in part.witnesses), default=0.0)
            most = float(part.profile.hints.scale)
            squares = [squares[0] + count * min(shown, most) ** 2, squares[1] + count * most**2]
        return Bound(math.sqrt(squares[0]), math.sqrt(squares[1]))

    def renyi(self, order: Any, tolerance: float = DEFAULT_TOLERANCE) -> Bound:
        """The Renyi divergence of an ``order`` above 1 (or an array) between neighbouring datasets, enclosed.

        Rounds add up. The upper end is infinite where outcomes of infinite loss are possible; with none, the
        ``upper`` ends of a list of orders are what accountants of Renyi-DP (Opacus, TensorFlow Privacy) take
        as rdp, beside other mechanisms for the same neighbours."""
        orders = [float(one) for one in np.ravel(order)]
        low, high = np.zeros((2, len(orders)))
        rounds = self._rounds()
        with expected(2 * len(rounds), INTEGRATING) as integrated:
            for part, count in rounds:
                pairs = [(pair.directions[0], pair.directions[-1]) for pair in part.witnesses]
                low += count * np.array(renyi_lowers(pairs, orders, tolerance))
                integrated()
                high += count * np.array(renyi_uppers(part.profile, orders, tolerance))
                integrated()
        units = 2 * len(self.parts) + 2
        upper = up(high, units, tiny=0.0)
        return Bound.of(np.minimum(down(low, units), upper), upper, order)

    def plot(self, epsilon: Any = None, *, delta: float | None = None, ax: Any = None) -> Any:
        """The privacy curve with its certified band, marked at ``delta`` (needs the extra ``plot``)."""
        from shuffledp.plotting._curves import privacy_curve

        return privacy_curve(self, epsilon=epsilon, delta=delta, ax=ax)

    def statement(self, *, delta: float, tolerance: float | None = None) -> PlannedStatement:
        """What may be said about these rounds: plain words, formal words, JSON, a registry record."""
        from shuffledp.accounting.statement import stated

        return stated(self, delta, tolerance)

    def to_dp_accounting(self, *, discretization: float | None = None) -> Any:
        """A ``dp_accounting`` privacy loss distribution that dominates this mechanism's.

        ``discretization``: by default 1e-4, or a smaller power of ten where losses are small."""
        from shuffledp.interop.dp_accounting import to_dp_accounting

        return to_dp_accounting(self, discretization=discretization)

    def __mul__(self, rounds: Any) -> Mechanism:
        times = _validate.count("rounds", rounds, least=0)
        if times == 1:
            return self
        return Composition(tuple((part, count * times) for part, count in self.parts))

    __rmul__ = __mul__

    def __add__(self, other: Any) -> Mechanism:
        if isinstance(other, int) and other == 0:
            return self  # what sum() begins with
        if not isinstance(other, Mechanism):
            return NotImplemented
        total: dict[OneRound, int] = {}
        for part, count in self.parts + other.parts:
            total[part] = total.get(part, 0) + count
        return Composition(tuple(total.items()))

    __radd__ = __add__

    def _repr_html_(self) -> str:
        rows = [(f"{count:,} ×", repr(part)) for part, count in self.parts]
        return _html.table([], rows, "adaptive rounds on the same users")


def epsilon_of_each(
    mechanisms: Iterable[Mechanism], *, delta: float, tolerance: float | None = None
) -> Bound:
    """``epsilon(delta=...)`` of each mechanism, as arrays: questions to many rounds are answered together.

    >>> from shuffledp import KaryRandomizedResponse
    >>> answers = [KaryRandomizedResponse(k=16, epsilon0=epsilon0) for epsilon0 in (1.0, 2.0, 4.0)]
    >>> epsilon_of_each([Shuffled(answer, n=10_000) for answer in answers], delta=1e-6).upper.round(3)
    array([0.019, 0.067, 0.362])
    """
    level = _validate.probability("delta", delta)
    allowed = None if tolerance is None else _validate.tolerance(tolerance)
    asked, ends = list(mechanisms), []
    with expected(math.ceil(len(asked) / _AT_ONCE), "answers") as answered:
        for first in range(0, len(asked), _AT_ONCE):
            some = asked[first : first + _AT_ONCE]
            for one, found in zip(some, together([one._search(level, allowed) for one in some]), strict=True):
                if isinstance(found, NoCertificateError):  # whatever else is an answer
                    bound = _or_nothing(partial(one.epsilon, delta=level, tolerance=allowed), one)
                    found = bound.lower, bound.upper
                ends.append(found)
            answered()
    low, high = np.array(ends).reshape(-1, 2).T
    return Bound.of(low, high, low)


def _each(question: Callable[[float], Bound], points: Any) -> Bound:
    """The answers to a question about each of the points; one that is refused spoils no other."""
    found = []
    with expected(np.size(points), "answers", prepared=True) as answered:
        for one in np.ravel(points):
            found.append(_or_nothing(partial(question, float(one)), f"{one:.6g}"))
            answered()
    return Bound.of(np.array([one.lower for one in found]), np.array([one.upper for one in found]), points)


def _or_nothing(question: Callable[[], Bound], about: object) -> Bound:
    """The answer, or that nothing is known, with a warning: one that is refused spoils no other."""
    try:
        return question()
    except NoCertificateError as refused:
        warnings.warn(f"at {about} nothing is known: {refused}", CoarserBoundWarning, stacklevel=4)
        return Bound(0.0, math.inf)


def _ends(
    rounds: list[tuple[Round, int]],
    delta: float,
    tolerance: float | None,
    known: tuple[float, str] | None,
    local: float,
) -> tuple[float, float]:
    """Both ends; where that fails, the local epsilons of all rounds, which hold whatever the crowd adds, if a
    dataset shows that it adds next to nothing."""
    try:
        return epsilon_of(rounds, delta, tolerance, known=known, local=local)
    except NoCertificateError:
        low, high = epsilon_of(rounds, delta, _COARSEST, local=local)
        pure = upper_end(rounds, 0.0, tolerance)[0]
        if low < (1.0 - (tolerance or DEFAULT_TOLERANCE)) * min(pure, high):
            raise
        return low, min(high, pure)


def _reveals_nothing(part: Round) -> bool:
    """Whether reports do not depend on the values at all. A tiny delta is not enough: at delta = 0 the loss
    of what hardly ever happens counts."""
    return part.pure == 0.0


class OneRound(Mechanism):
    """A mechanism that is run once."""

    @property
    def parts(self) -> tuple[tuple[OneRound, int], ...]:
        return ((self, 1),)

    @property
    def epsilon0(self) -> float:
        """That of a report alone, beside its ``delta0``."""
        return self.round.pure

    @property
    def delta0(self) -> float:
        """Of approximate local privacy."""
        return 0.0

    @property
    def alone(self) -> tuple[float, Fraction]:
        """(epsilon, delta) of a round whatever the crowd adds: epsilon rounded up, delta as it is."""
        return self.round.pure, Fraction(0)

    @property
    @abstractmethod
    def round(self) -> Round:
        """This round as the accountant sees it."""


@dataclass(frozen=True)
class Shuffled(OneRound):
    """One round: n users randomize, a shuffler forgets who sent what, the adversary sees the rest.

    ``n`` counts the reports in one shuffle. With ``population`` the n users are a fresh uniformly random
    cohort of it; with ``rate`` each of ``population`` takes part by a coin of their own, and n is about how
    many do (see ``sampled_from``). ``honest_fraction``: at least this share of the people (of the population,
    if there is one) randomizes as told and keeps the coins secret; the others tell the adversary all, and
    hide nobody. ``analysis`` is "best" (the smallest of all that apply), "best-leaked" (of those that hold
    also if it leaks which of the *others* answered at random), or one of "exact", "crowd" (these two cover no
    such leak), "blanket", "clones", "clones-2021", "strong" (if it leaks whether *you* did, too).

    >>> from shuffledp import KaryRandomizedResponse
    >>> daily = Shuffled(KaryRandomizedResponse(k=16, epsilon0=4.0), n=1_000_000)
    >>> daily.epsilon(delta=1e-8)  # doctest: +ELLIPSIS
    Bound(lower=0.04..., upper=0.04...)
    """

    randomizer: Any = field(compare=False)  # equal rounds are those of equal facts
    n: int
    analysis: str = "best"
    population: int | None = None
    honest_fraction: float = 1.0
    rate: float | None = None
    facts: Facts = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "facts", facts_of(self.randomizer))
        object.__setattr__(self, "n", _validate.count("n", self.n))
        _validate.one_of("analysis", self.analysis, NAMES)
        self._check_population()
        share = _validate.probability("honest_fraction", self.honest_fraction, positive=True)
        object.__setattr__(self, "honest_fraction", share)
        if self.analysis not in BEST:
            names = names_for(self.facts)
            if self.analysis not in names:
                allowed = ", ".join(map(repr, [*BEST, *names]))
                raise ValueError(
                    f"analysis must be one of {allowed} for {self.randomizer!r}, got {self.analysis!r}"
                )

    def _check_population(self) -> None:
        if self.population is not None:
            size = _validate.count("population", self.population)
            if size < self.n:
                raise ValueError(
                    f"population must be at least the cohort n = {self.n}, got {self.population!r}"
                )
            object.__setattr__(self, "population", size)
        if self.rate is not None:
            if self.population is None:
                raise ValueError(f"rate={self.rate!r} needs population, the people who flip a coin")
            if self.analysis == "strong":
                raise ValueError(
                    'analysis must not be "strong" with a rate: who knows the others knows whether you are in'
                )
            object.__setattr__(self, "rate", _validate.probability("rate", self.rate, positive=True))

    def __repr__(self) -> str:
        known = {
            "randomizer": self.randomizer,
            "n": self.n,
            "analysis": self.analysis,
            "population": self.population,
            "honest_fraction": None if self.honest_fraction == 1.0 else self.honest_fraction,
            "rate": self.rate,
        }
        shown = (
            f"{name}={value!r}" for name, value in known.items() if value is not None or name == "population"
        )
        return f"Shuffled({', '.join(shown)})"

    @property
    def epsilon0(self) -> float:
        """Infinite against those who know the coin of the differing person."""
        return math.inf if self.analysis == "strong" else float(self.facts.epsilon0.upper)

    @property
    def delta0(self) -> float:
        return self.facts.delta0

    @property
    def alone(self) -> tuple[float, Fraction]:
        """Of a report, in a random cohort (docs/proofs/approximate-local.md). Who knows which of the others
        answered at random may see that none of them sent it: for them only what leaks is less."""
        if self.facts.delta0 == 0.0:
            return super().alone
        leaky = self.analysis in BY_NAME and covers_leaks(self.analysis)
        epsilon = self.epsilon0 if leaky else self._local(self.epsilon0, up)
        return epsilon, self._asked * Fraction(self.facts.delta0)

    @property
    def _asked(self) -> Fraction:
        """The probability that one person takes part; honest people are as likely to as others."""
        if self.population is None:
            return Fraction(1)
        share = Fraction(self.n, self.population)
        return share if self.rate in (None, self.n / self.population) else Fraction(self.rate)

    @property
    def fraction(self) -> float:
        """The share of the population that takes part in a round."""
        if self.rate is not None:
            return self.rate
        return 1.0 if self.population is None else self.n / self.population

    @property
    def shuffle_index(self) -> float:
        """What the randomizer adds to the ``gaussian_limit`` of one round: (g / h)^(1/2) / mu, with h honest
        people of whom each takes part with probability g, so that mu = g / (index (g h)^(1/2)).

        1 / (mu n^(1/2)) where everybody takes part and is honest. It depends on the randomizer and the
        analysis, not on how many people there are or who is asked; the larger, the more private."""
        mu = self.gaussian_limit().upper
        return math.sqrt(self.fraction / self.honest) / mu if mu > 0.0 else math.inf

    @property
    def honest(self) -> int:
        """The honest people, of the population or of the n: their share of it, rounded down."""
        people = self.n if self.population is None else self.population
        return max(1, _validate.part_of(self.honest_fraction, people))

    def sampled_from(
        self,
        population: int,
        *,
        poisson: bool = False,
        rate: float | None = None,
        honest_fraction: float | None = None,
    ) -> Shuffled:
        """The same round on a fresh uniformly random cohort of n users of ``population``.

        With ``poisson`` each of them takes part by a coin of their own, of probability n / population, or
        ``rate``, so that the number of reports is random. It may become known, or not: what is certified
        holds either way. ``honest_fraction`` is that of the population (default: as before)."""
        if self.population is not None:
            raise ValueError(f"the cohort is already sampled from {self.population} users")
        size = _validate.count("population", population)
        share = self.honest_fraction if honest_fraction is None else honest_fraction
        if rate is not None:
            chance = _validate.probability("rate", rate, positive=True)
            expected = max(1, _validate.part_of(chance, size))
            return replace(self, n=expected, population=size, honest_fraction=share, rate=chance)
        coin = min(1.0, self.n / size) if poisson else None
        return replace(self, population=size, honest_fraction=share, rate=coin)

    def analysis_at(self, epsilon: float) -> str:
        """The name of the analysis that gives the smallest delta at epsilon."""
        at = float(_validate.non_negative("epsilon", epsilon).reshape(()))
        return self._typical.winner(at, DEFAULT_TOLERANCE)

    @property
    def rival_analyses(self) -> tuple[str, ...]:
        """The analyses of which any may give the smallest delta at some epsilon."""
        return self._typical.names[: self._typical.rivals]

    @property
    def _typical(self) -> BestProfile:
        """The profile, or that of about as many honest reports as there will be."""
        if self.rate is not None:
            return profile_of(self.facts, self.honest, self.analysis, rate=self.rate)
        if self.population is None:
            return profile_of(self.facts, self.honest, self.analysis)
        return self._cohort(max(1, self.n * self.honest // self.population))

    def _cohort(self, n: int) -> BestProfile:
        """Of n out of all honest people."""
        return profile_of(self.facts, n, self.analysis, n / self.honest)

    @property
    def _counted(self) -> tuple[int, int, int] | None:
        """(population, honest ones, cohort), where the honest ones in a cohort are random."""
        if self.rate is not None or self.population is None or self.honest == self.population:
            return None
        return self.population, self.honest, self.n

    @cached_property
    def round(self) -> Round:
        profile: PrivacyProfile = self._typical
        if self._counted is not None:
            profile = honest_cohort(*self._counted, self._cohort, upwards=True)
        alone = self.n == 1 or self.honest == 1
        if self.analysis == "strong":
            # What the strong adversary sees is the analysis, exactly; nothing hides a report without clones.
            return Round(profile, (self._told,), self._pure, self._pure, alone)
        pairs = self._pairs()
        attained = self._local(self.facts.epsilon0.lower, down) if pairs else 0.0
        return Round(profile, pairs, self._pure, attained, alone)

    def _pairs(self) -> tuple[Any, ...]:
        """Pairs of datasets, or of populations, that bound from below."""
        if self._counted is not None:
            usual = self.n * self.honest // self._counted[0]
            return tuple(
                honest_cohort(*self._counted, self._in_cohort(held), upwards=False)
                for held in datasets(self.facts, max(1, usual))
            )
        if self.rate is not None:
            return tuple(pair.polled(self.rate) for pair in witnesses(self.facts, self.honest))
        if self.fraction < 1.0:
            return tuple(pair.subsampled(self.fraction) for pair in witnesses(self.facts, self.n))
        return tuple(witnesses(self.facts, self.honest))

    @property
    def _told(self) -> Any:
        """The pair that the strong adversary tells apart best; in a cohort all others hold x'."""
        if self._counted is not None:
            return honest_cohort(*self._counted, self._told_in_cohort, upwards=False)
        if self.fraction < 1.0:
            return self._told_in_cohort(self.n)
        return BY_NAME["strong"].curve(self.facts, self.honest)

    def _told_in_cohort(self, n: int) -> PrivacyProfile:
        whole = BY_NAME["strong"].curve(self.facts, n)
        return CohortPair(whole, n / self.honest) if n < self.honest else whole

    def _in_cohort(self, held: Callable[[int], Witness]) -> Callable[[int], PrivacyProfile]:
        """A pair of populations, of cohorts of so many out of all honest people."""
        return lambda n: held(n).subsampled(n / self.honest)

    @property
    def _pure(self) -> float:
        """An epsilon from which on delta is zero."""
        if self.facts.total_variation == 0.0 == self.facts.delta0:
            return 0.0
        local = self.facts.epsilon0.upper
        told = self.analysis == "strong" and local > 0.0
        return math.inf if told or self.facts.delta0 > 0.0 else self._local(local, up)

    def _local(self, epsilon0: float, step: Callable[..., float]) -> float:
        """A local epsilon, which a random cohort makes smaller; rounded by ``step``.

        Of people who flip coins all may take part, of honest ones all that are asked may be."""
        share = min(1.0, self.n / self.honest) if self.rate is None and self.population is not None else 1.0
        if share == 1.0:
            return epsilon0
        shrunk = subsampled_epsilon(epsilon0, share)
        return step(shrunk, operations=2 * CALL + 2, tiny=0.0) if math.isfinite(shrunk) else shrunk


def facts_of(randomizer: Any) -> Facts:
    """The facts themselves, or what a randomizer states."""
    if isinstance(randomizer, Facts):
        return randomizer
    if isinstance(randomizer, type):
        raise TypeError(f"randomizer must be an object, got the class {randomizer.__name__}")
    try:
        facts = randomizer.facts()
    except AttributeError as error:
        if error.obj is not randomizer or error.name != "facts":
            raise
        raise TypeError(
            "randomizer must be Facts, or have facts() (LocalRandomizer for one known by its epsilon0), "
            f"got {randomizer!r}"
        ) from None
    if not isinstance(facts, Facts):
        raise TypeError(f"randomizer.facts() must give Facts, got {facts!r}")
    return facts


@dataclass(frozen=True, eq=False)
class KnownLoss(OneRound):
    """A round known only by its privacy curve, such as that of a privacy loss distribution
    (see accounting._curves.foreign_loss).

    Nothing is known of its datasets, so it has no lower end."""

    profile_of_losses: PrivacyProfile

    @cached_property
    def round(self) -> Round:
        return Round(self.profile_of_losses, (), self.profile_of_losses.epsilon_max, 0.0)

    def __repr__(self) -> str:
        return f"KnownLoss({self.profile_of_losses!r})"


@dataclass(frozen=True)
class Composition(Mechanism):
    """Adaptive composition: each round may be chosen by looking at the results of earlier ones."""

    rounds: tuple[tuple[OneRound, int], ...]

    @property
    def parts(self) -> tuple[tuple[OneRound, int], ...]:
        return self.rounds

    def __repr__(self) -> str:
        return " + ".join(f"{count} * {part!r}" for part, count in self.rounds) or "0 rounds"
