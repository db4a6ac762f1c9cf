"""The crowd theorem: an upper end near the worst crowd of one value (T16, docs/proofs/crowd.md).

The n - 1 others hold what they like; r of them are set aside as a pool, n' = n - 1 - r remain. For every pair
of inputs and every theta > 0,

    H_alpha <= max over z of E[b_z(l)] + lost,    b_z(l) = l/(2 pi n') N_z(l theta),
    N_z(tau) = int |E e^((tau + i w) X)|^n' / (tau^2 + w^2) dw,    X = (own - alpha other)/clone w.p. clone,

clone the whole law of a report of z. l is a likelihood ratio of the pool's r + 1 reports, one of which is of
z or of one law for all z, and has the mean one. With delta(.) the profile of these two, E[(l - t)_+] <=
delta(log t) for t >= 1 and E[(t - l)_+] <= t delta(-log t) for t <= 1. N_z is log-convex: a polygon through
its values, raised by e^(D^2 / 8) for steps of relative size D, is above b_z between its corners, and its mean
is a sum of delta's. Weights beyond the last corner are cut to it; ``lost``: what that may add.

Where inputs or reports are too many, rows that span them take their place (section 9, _spans).

Random cohorts need no pool, and no weights: H_alpha <= max over z of N_z(theta)/(2 pi n) with X as in T5' for
a cohort of n, and as in T20 for n people who flip coins (plus the probability that all take part).

Of a randomizer with a delta0 the laws are those of any epsilon0, and the pool hides two inputs from each
other after its reports are moved into laws without one (T9); so is what is moved of the differing user's,
which is added elsewhere (approximate.py).

Integrals: crowd_laws.py. Which of many laws have to be looked at: crowd_family.py, crowd_moments.py.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache, cached_property, lru_cache, partial
from itertools import islice
from typing import NamedTuple

import numpy as np

from shuffledp._certified.rounding import CALL, Floats, capped, down, gamma, positive, up
from shuffledp._progress import expected
from shuffledp._spans.span import Span
from shuffledp.accounting._curves.all_pairs import FiniteBlanketProfile
from shuffledp.accounting._curves.approximate import moved_by_clones
from shuffledp.accounting._curves.blanket import centre_variance, from_the_centre, from_the_span
from shuffledp.accounting._curves.clones import strong_clones
from shuffledp.accounting._curves.crowd_at_once import AtOnce
from shuffledp.accounting._curves.crowd_family import Family, Places, Table, log_bennett, log_spread, types_of
from shuffledp.accounting._curves.crowd_laws import TILTS, Law, Laws, Taking
from shuffledp.accounting._curves.crowd_moments import Moments
from shuffledp.accounting._curves.crowd_near import Nearby
from shuffledp.accounting._curves.crowd_weights import Corners, Cut, Scales, expectation
from shuffledp.accounting._curves.profile import Bools, PrivacyProfile, SupportingLines
from shuffledp.accounting._hints.crowds import CrowdCurveHints
from shuffledp.facts import AmplificationLaw

_UNITS = 64  # soundness: operations of a bound beside the integral
_POOL_RESOLUTION = 0.01  # speed
_FAR = 12.5  # speed: deviations of a pool's loss
_NOTHING, _SMALL_BOUND = 1e-30, 1e-20  # speed: of a pool's curve, for bounds that are not that small
_LARGEST_SHARE = 0.3  # speed: of the users that a pool may take
_WIDEST = 48  # speed: laws among which the leaders are
_SECONDS = np.concatenate([[0.01, 0.03, 0.06, 0.1, 0.15], np.linspace(0.2, 1.0, 65), [1.001]])
"""speed: second moments to try, of the largest"""
_CLOSE = 1.02  # tightness: a law that is known to be no more than so much above is left as it is
_CLOSELY = 100  # speed: laws whose integrals are taken
_MOST_LEFT = 2**22  # speed: laws times types whose moments are taken
_AT_ONCE = 1000  # speed: laws of a table
# speed: laws, up to which alpha - 1, whose moments at alpha = 1 are asked first
_MANY_LEFT, _NEARBY = 64, 0.1
_MANY_MORE = 4  # speed: times that, where there is no use in beginning
_POOLS, _LARGER = 5, 2  # speed: sizes that are tried; or only one, that much further on
_LARGE, _SMALL, _MANY_TYPES = 5000, 500, 100  # speed: curves of small pools and many types take long
_CROWD, _VERY_MANY, _OF_MANY = 2_500, 200, (2, 6)  # speed: the same of rows that span; pools that are tried
_WELL, _ABOUT = 0.85, 1.35  # tightness: a bound no larger than so many times the guess is good; may be
_COUNTED_COST = 2.5  # tightness: what is left is less than guessed, and falls less with a cap
_LITTLE = 0.04  # tightness: of the bound, which decides where laws are compared first
_NEXT_TO_NOTHING = 0.003  # tightness: of the bound
_CAPS_AWAY, _STRAIGHT = 4, 1.0  # speed; exponents of values that are left as they are
_LIGHT, _STEEP = 1.5, 4.0  # speed: without such weights, and exponents of large values, it may be enough
_FAR_OFF = 4.0  # speed: then a pool twice as large is the next
_NO_HOPE = 6.0, 2.5  # speed: of another bound; without such weights larger pools are not that much better
_HOPELESS = 1e3  # speed: the blanket is smaller than that many times the guess
_HOPELESS_WEIGHT = 16.0  # speed: the same where such weights count; a pool twice as large is the next
_FEW_REPORTS = 100  # speed: of a matrix; of more, all pairs of inputs have a leader, and are quicker
_FEW_TYPES = 64  # speed: of all laws
_CROWDED, _ENOUGH = 3000, 10**5  # tightness: people, from whom on moments are mostly close, and always
_SHIFTS = 4.0  # speed: how often a move counts, about
_FEW_PEOPLE = 100  # tightness
_LARGEST_LOCAL = 100.0  # soundness: values of X do not overflow; far below it nothing is gained any more


@dataclass(frozen=True)
class CrowdProfile(PrivacyProfile):
    """``laws`` of X: of every ordered pair and third input one of them, or a mixture."""

    n: int
    laws: tuple[AmplificationLaw, ...]
    epsilon0: float
    matrix: Table | None = None
    """All triples of its rows, in place of ``laws``."""
    common: float | None = None
    """Of laws, the mass of the blanket, if it is known."""
    fraction: float = 1.0
    """The share of the population that the n users are, drawn at random."""
    rate: float = 1.0
    """The probability that each of the n users takes part, by a coin of their own."""
    delta0: float = 0.0
    """Of the reports of a pool."""

    @property
    def is_spanned(self) -> bool:
        return isinstance(self.matrix, Span)

    def lost(self, growth: float) -> float:
        """What is moved of everybody's report, in both worlds."""
        lost = self.matrix.lost if isinstance(self.matrix, Span) else 0.0
        return up((2.0 + growth) * self.n * lost, operations=8, tiny=0.0)

    @property
    def epsilon_max(self) -> float:
        if isinstance(self.matrix, Span) and self.matrix.lost > 0.0:
            return math.inf
        if self.fraction == 1.0:
            return self.epsilon0
        return up(math.log1p(self.fraction * math.expm1(self.epsilon0)), operations=4 * CALL, tiny=0.0)

    @property
    def serves(self) -> bool:
        """Whether any bound below one is looked for: not where types are many, and people few."""
        return self.fraction < 1.0 or self.rate < 1.0 or self._pools_tried[1] > 0

    @property
    def _pools_tried(self) -> tuple[int, int]:
        """Which sizes of pools: where types are many some, or none. Of rows that span tails are heavier."""
        types = 0 if self.matrix is None else types_of(self.matrix)
        if types <= _MANY_TYPES:
            return 0, _POOLS
        if self.is_spanned and types > _VERY_MANY:
            return _OF_MANY if self.n >= _CROWD else (0, 0)
        if self.n >= _LARGE:
            return 0, _POOLS
        return (_LARGER, _LARGER + 1) if self.n >= _SMALL else (0, 0)

    @cached_property
    def most(self) -> float:
        """No value of X is larger."""
        return up(math.expm1(self.epsilon0), operations=CALL)

    @cached_property
    def family(self) -> Family:
        return Family.of_laws(self.laws) if self.matrix is None else Family.of_table(self.matrix)

    @cached_property
    def nearby(self) -> Nearby:
        return Nearby(self.family, self.fraction)

    def caps_beyond(self, cost: float) -> int:
        """The first of the caps that costs no more."""
        caps = self.family.caps(self.most)
        return bisect_left(caps, -cost, key=lambda cap: -self.family.cost(cap, self.most))

    @cached_property
    def wide(self) -> Places:
        """Laws of large second moments at alpha = 1, where their largest values count most."""
        flat = self.family.seconds.flat
        return np.argpartition(-flat, min(_WIDEST, flat.size) - 1)[:_WIDEST]

    @cached_property
    def hints(self) -> CrowdCurveHints:
        scale = math.sqrt(self.fraction**2 * self.rate * float(self.family.seconds.flat.max()) / self.n)
        least = partial(_promised_by_one, self) if self._many else None
        return CrowdCurveHints(scale, apart=True, about=lambda epsilon: _promised(self, epsilon), least=least)

    def pool(self, users: int) -> PrivacyProfile:
        """The profile of so many, one of whom sends a report of any input or of one law for all."""
        if self.delta0 > 0.0:
            return strong_clones(self.epsilon0, users)
        if self.matrix is None:
            return from_the_centre(self.epsilon0, self.common, users, self.hints.crowd)
        if isinstance(self.matrix, Span):
            return from_the_span(self.matrix, users, self.hints.crowd)
        centred = FiniteBlanketProfile(self.matrix, users, centred=True)
        if self.matrix.rows.shape[1] <= _FEW_REPORTS or len(centred.laws) == 2:
            return centred
        return FiniteBlanketProfile(self.matrix, users)

    def upper(self, epsilon: Floats, resolution: float) -> Floats:
        return self._bounds(epsilon, np.ones(epsilon.size))[0]

    def support(self, epsilon: Floats, resolution: float) -> SupportingLines:
        """Tangents of the bound itself: what it is, not what lies below the truth."""
        return self.both_or_crude(epsilon, resolution)[2]

    def both_or_crude(self, epsilon: Floats, resolution: float) -> tuple[Floats, Bools, SupportingLines]:
        return self.both_below(epsilon, resolution, np.ones(epsilon.size))

    def both_below(
        self, epsilon: Floats, resolution: float, known: Floats
    ) -> tuple[Floats, Bools, SupportingLines]:
        value, slope = self._bounds(epsilon, known)
        return value, np.zeros(epsilon.size, bool), SupportingLines(epsilon, value, slope, slope)

    def _bounds(self, epsilon: Floats, known: Floats) -> tuple[Floats, Floats]:
        """Upper bounds, and about their slopes in alpha: closely one by one, or many at once. One, of what is
        seen to exceed what is ``known``."""
        found, closely = np.ones((2, epsilon.size)), np.ones(epsilon.size, bool)
        if self._many:
            value, slope, good = self._pools.bounds(np.expm1(np.minimum(epsilon, self.epsilon_max)))
            found, closely = np.stack([value, slope]), ~good & (self.n < _ENOUGH)
        with expected(int(closely.sum()), "bounding crowds") as bounded:
            for place in np.flatnonzero(closely).tolist():
                one = _at(self, float(epsilon[place]), min(float(known[place]), 1.0))
                if one[0] < found[0, place] or not self._many:
                    found[:, place] = one
                bounded()
        return found[0], found[1]

    @cached_property
    def _many(self) -> bool:
        """Whether moments are close: of few laws, among many people."""
        if self.matrix is not None or not self.fraction == self.rate == 1.0:
            return False
        few = self.family.types * len(self.laws) <= _FEW_TYPES
        return few and 0.0 < self.epsilon0 <= _LARGEST_LOCAL and self.n >= _CROWDED

    @property
    def _pools(self) -> AtOnce:
        def corners(size: int) -> Corners:
            return self._corners(size, 0.0)

        return AtOnce(self.n, self.family, self.hints.crowd, self.variance, self.moved, corners)

    @cached_property
    def variance(self) -> float:
        """Of the X of a pool's report, about."""
        if self.matrix is None and self.delta0 == 0.0:
            return centre_variance(self.epsilon0, self.common)
        pool = self.pool(self.n)
        return pool.chi if isinstance(pool, FiniteBlanketProfile) else self.n * pool.hints.scale**2

    @cached_property
    def moved(self) -> float:
        """What a delta0 costs for every member of a pool, about."""
        return _SHIFTS * self._corners(1, 0.0).moved if self.delta0 > 0.0 else 0.0

    @cached_property
    def _corners(self) -> Callable[[int, float], Corners]:
        """Those of some pools are kept, as long as this value is."""
        return lru_cache(maxsize=64)(self._corners_of)

    @cached_property
    def _beyond(self) -> Callable[[int], float]:
        """Of a pool, about what weights that are hopeless have; likewise."""
        far = np.array([math.log(_HOPELESS_WEIGHT)])
        return lru_cache(maxsize=64)(lambda size: float(self.pool(size + 1).upper(far, _POOL_RESOLUTION)[0]))

    def _corners_of(self, size: int, least: float) -> Corners:
        """Of a pool, whose curve is followed far out only where it is above ``least`` there: it falls."""
        curve = self.pool(size + 1)
        # Up to beyond every likelihood ratio that there is, also after rounding.
        most = up(self.epsilon0 + gamma(_UNITS), operations=_UNITS)
        inner = np.clip(self.hints.crowd.weights(curve.hints.scale, most), 0.0, most)
        logs = np.unique(np.concatenate([[0.0], inner, [most]]))
        # A little less than the logarithm of the rounded exponential.
        points = np.maximum(logs - gamma(4 * CALL) * (1.0 + logs), 0.0)
        excess = np.zeros(0)
        for part in np.split(points, [int(np.searchsorted(logs, _FAR * curve.hints.scale))]):
            if part.size and (not excess.size or excess[-1] > least):
                excess = np.append(excess, up(curve.upper(part, _POOL_RESOLUTION), operations=2))
        beyond = np.full(logs.size - excess.size, excess[-1])
        moved = moved_by_clones(self.epsilon0, self.delta0, size + 1) if self.delta0 > 0.0 else 0.0
        apart = up(math.tanh(0.5 * self.epsilon0), operations=CALL)
        return Corners(logs, np.minimum(np.append(excess, beyond), 1.0), moved, apart)


@lru_cache(maxsize=4096)
def _at(curve: CrowdProfile, epsilon: float, known: float) -> tuple[float, float]:
    """(an upper bound at epsilon, about its slope in alpha); one, where that is seen to exceed ``known``."""
    if curve.epsilon0 == 0.0:
        return 0.0, 0.0
    if curve.epsilon0 > _LARGEST_LOCAL:
        return 1.0, 1.0
    if epsilon >= curve.epsilon0:  # beyond it nothing is told, but for what is lost
        lost = curve.lost(math.expm1(capped(epsilon)))
        return min(lost, 1.0), lost
    problem, cap = _begun(curve, epsilon)
    whole = curve.fraction == curve.rate == 1.0
    return problem.with_pool(cap, known) if whole else problem.in_cohort(cap, known)


def _promised(curve: CrowdProfile, epsilon: Floats) -> Floats:
    """About the bounds, rather below them: guesses."""
    if not 0.0 < curve.epsilon0 <= _LARGEST_LOCAL or curve.rate < 1.0:
        return np.zeros(epsilon.size)
    if curve._many:
        return curve._pools.promised(np.expm1(np.minimum(epsilon, curve.epsilon_max)))
    return np.array([_promised_at(curve, at) for at in epsilon.tolist()])


def _promised_by_one(curve: CrowdProfile, epsilon: float) -> float:
    return curve._pools.promised_by_one(math.expm1(min(epsilon, curve.epsilon_max)))


def _promised_at(curve: CrowdProfile, epsilon: float) -> float:
    problem, cap = _begun(curve, epsilon)
    return problem.likely(cap)


@lru_cache(maxsize=64)
def _begun(curve: CrowdProfile, epsilon: float) -> tuple[_Problem, float]:
    """The problem, and where to cut its values."""
    growth = math.expm1(min(epsilon, curve.epsilon_max, curve.epsilon0))
    taking = Taking(float(curve.n), curve.rate, growth)
    seconds, rest = curve.family.seconds.at(taking, curve.fraction)
    widest = np.argpartition(-seconds, min(_WIDEST, seconds.size) - 1)[:_WIDEST]
    about = curve.hints.crowd.normal_tail(float(seconds.max()), curve.n, growth)
    begun = _Problem(curve, taking, seconds, rest, curve.most, widest, curve.wide)
    caps = curve.family.caps(curve.most)
    usual = curve.caps_beyond(_LITTLE * about)
    led = begun.led(caps[usual])
    cap = led.cap_from(usual) if led.is_steep else curve.most
    return begun.led(cap), cap


@dataclass(frozen=True)
class _Problem:
    """One alpha: second moments of all laws (and of the ``rest``), values up to ``most``, some large laws,
    and some of large values."""

    curve: CrowdProfile
    taking: Taking
    seconds: Floats
    rest: float
    most: float
    first: Places
    wide: Places

    def _leaders(self, cap: float) -> Laws:
        share = self.curve.fraction
        return self.curve.family.pick(self.first, self.taking.growth, share, share * cap)

    def led(self, cap: float) -> _Problem:
        """With those of the ``first`` laws that lead where values are cut there."""
        leaders = self.curve.hints.crowd.leaders(self._leaders(cap), self.curve.n)
        return replace(self, first=self.first[leaders].astype(np.intp))

    @property
    def is_steep(self) -> bool:
        """Whether the largest values tell more than by their mean and square."""
        return self._tilt(self._leaders(self.most), self.curve.n, coarsely=True)[0] * self.most > _STRAIGHT

    def cap_from(self, usual: int) -> float:
        """Where to cut: what is left, and what that adds, are least together; looked for from some cap on."""
        caps, share = self.curve.family.caps(self.most), _COUNTED_COST * self.curve.fraction

        @cache
        def about(place: int) -> float:
            if not 0 <= place < len(caps):
                return math.inf
            guess = self._tilt(self._leaders(caps[place]), self.curve.n, coarsely=True)[1]
            if not guess < 1.0:
                return 1.0 + place  # hopeless, and so are larger ones
            return guess + share * self.curve.family.cost(caps[place], self.most)

        place, step = usual, _CAPS_AWAY
        while step:
            best = min((place, place - step, place + step), key=about)
            place, step = (best, step) if best != place else (place, step // 2)
        # Weights above one raise what larger values count: no further than where a cut is next to nothing.
        return caps[min(place, self.curve.caps_beyond(_NEXT_TO_NOTHING * about(place)))]

    def likely(self, cap: float) -> float:
        """About the bound with that cap, rather below it."""
        curve, laws, spread = self.curve, self._leaders(cap), 0.0
        theta, guess = self._tilt(laws, curve.n)
        if curve.fraction == curve.rate == 1.0:
            sizes = curve.hints.crowd.pool_sizes(curve.n, curve.variance, guess, curve.moved)
            spread = curve.variance / max(1, next(sizes))
        found = curve.hints.crowd.bounds_of_one_value(laws, curve.n, theta, spread).max()
        return float(found) + curve.fraction * curve.family.cost(cap, self.most)

    def in_cohort(self, cap: float, known: float) -> tuple[float, float]:
        curve, laws = self.curve, self._leaders(cap)
        theta, guess = self._tilt(laws, curve.n)
        all_take_part = curve.rate**curve.n if curve.rate < 1.0 else 0.0
        scales = Scales(np.ones(1), 0, np.zeros(1))
        lost = curve.lost(self.taking.growth) + all_take_part
        search, lost = self._search(self.taking, theta, cap, scales, lost)
        if curve.n < _FEW_PEOPLE:  # one law suits a steep tilt, others do not
            search, _ = search.against(self._heaviest(search.cap, theta))
        return self._bound(search, lost, guess, known)

    def with_pool(self, cap: float, known: float) -> tuple[float, float]:
        """Larger pools, where a small one has heavy tails: the one that suits the first law best."""
        curve, laws, moved = self.curve, self._leaders(cap), self.curve.lost(self.taking.growth)
        theta, guess = self._tilt(laws, curve.n)
        if not curve.serves or not guess < 1.0 or self._in_vain(theta, guess, cap):
            return 1.0, 1.0
        best, chosen, (first, beyond) = math.inf, None, curve._pools_tried
        pools = self.pools(laws, guess, first)
        for pool in islice(pools, beyond - first):
            search, lost = self._search(pool.taking, pool.theta, cap, pool.scales, moved)
            search, about = search.against(self._heaviest(search.cap, pool.theta * pool.cut.last))
            lost += float(pool.cut.lost(self.taking.growth, 0.5 / (pool.taking.users * search.theta)))
            if about + lost >= best < 1.0:
                break
            best, chosen = about + lost, (search, lost, pool.guess)
            hoped = pool.guess + float(pool.cut.shift(self.taking.growth))
            heavy = pool.cut.last > max(_LIGHT, _STEEP / (search.theta * search.cap))
            if best <= (_WELL if heavy else _ABOUT) * hoped:
                break
            if best > _NO_HOPE[0] * known and pool.cut.last < _NO_HOPE[1]:
                break
            if best > _FAR_OFF * hoped:
                next(pools, None)
        return (1.0, 1.0) if chosen is None else self._bound(*chosen, known)

    def pools(self, laws: Laws, guess: float, first: int = 0) -> Iterator[_Pool]:
        """From the ``first`` size on that is guessed, larger and larger ones; where the largest weights that
        count are hopeless, each twice as large as the one before."""
        curve, hints, growth = self.curve, self.curve.hints.crowd, self.taking.growth
        largest = min(_LARGEST_SHARE * curve.n, curve.n - 2)
        sizes = islice(hints.pool_sizes(curve.n, curve.variance, guess, curve.moved), first, None)
        while (size := max(1, next(sizes))) <= largest:
            taking = self.taking._replace(users=float(curve.n - 1 - size))
            theta, left = self._tilt(laws, int(taking.users))
            if curve.is_spanned and curve._beyond(size) > left:
                next(sizes)
                continue
            corners = curve._corners(size, _NOTHING if left > _SMALL_BOUND else 0.0)
            scales, cut = corners.until(hints.last_weight(corners.cost(growth), left))
            if cut.last > _HOPELESS_WEIGHT:
                next(sizes)
            else:
                yield _Pool(size, taking, theta, left, scales, cut)

    def _heaviest(self, cap: float, tau: float) -> int:
        """A law of the largest exponential moment, about: the worst one with the largest weights of pools."""
        laws = self.curve.family.pick(self.wide, self.taking.growth, self.curve.fraction, cap)
        return int(self.wide[int((laws.p * np.exp(capped(tau * laws.x))).sum(axis=1).argmax())])

    def _tilt(self, laws: Laws, users: int, coarsely: bool = False) -> tuple[float, float]:
        """Any theta > 0 is valid; and about what the bound comes to."""
        hints, rate = self.curve.hints.crowd, self.curve.rate
        theta, guess = hints.tilt(laws.x, laws.p, users, self.taking.growth, rate, coarsely=coarsely)
        return _usable(theta), guess

    def _in_vain(self, theta: float, guess: float, cap: float) -> bool:
        """Whether many more laws will be left than can be looked at, whatever the pool."""
        if self.seconds.size * self.curve.family.types <= _MANY_MORE * _MOST_LEFT:
            return False
        few = max(float(self.seconds.max()), self.rest) * _SECONDS
        crude = log_bennett(
            few, np.array([theta]), self.taking, self.curve.family.ends(cap), self.curve.family.excess
        )[:, 0]
        settled = few[crude - math.log(self.curve.n) <= math.log(positive(_ABOUT * guess))]
        left = int((self.seconds > settled.max(initial=0.0)).sum())
        return left * self.curve.family.types > _MANY_MORE * _MOST_LEFT

    def _search(
        self, taking: Taking, theta: float, cap: float, scales: Scales, lost: float
    ) -> tuple[_Search, float]:
        """Over all laws, cut at a cap; and what that costs besides."""
        share, leader = self.curve.fraction, int(self.first[0])
        search = _Search(self.curve, taking, theta, scales, self.seconds, share * cap, leader)
        return search, lost + share * self.curve.family.cost(cap, self.most)

    def _bound(self, search: _Search, lost: float, guess: float, known: float) -> tuple[float, float]:
        users, theta = search.taking.users, search.theta
        useful = min(_HOPELESS * guess, known - lost)
        bound = up(search.largest(self.rest, useful) + lost, operations=_UNITS)
        if not bound < 1.0:
            return 1.0, users * theta
        cap = search.cap / self.curve.fraction
        return bound, bound * users * theta * self._leaders(cap)[0].other(theta)


class _Pool(NamedTuple):
    """A pool of this ``size``; of those who remain the tilt, about what the bound comes to, and the weights
    that the pool gives them, cut."""

    size: int
    taking: Taking
    theta: float
    guess: float
    scales: Scales
    cut: Cut


def _usable(theta: float) -> float:
    """Any number made a tilt."""
    return min(max(theta, TILTS[0]), TILTS[1])


@dataclass(frozen=True)
class _Search:
    """The largest E[b_z] over all laws of a family, for one theta and one set of weights, beginning with the
    ``leader``."""

    curve: CrowdProfile
    taking: Taking
    theta: float
    scales: Scales
    seconds: Floats
    cap: float
    leader: int

    @cached_property
    def least(self) -> float:
        """Of the leader alone."""
        height = self._exact(self.leader)
        return float(self._expectation(height[None, :])[0]) if np.isfinite(height).all() else math.inf

    def against(self, other: int) -> tuple[_Search, float]:
        """With a tilt that suits the leader and another law, and the larger of both as the leader; and about
        what it comes to."""
        both, few = np.unique([self.leader, other]), replace(self, scales=self.scales.sparse)
        steady = self.curve.hints.crowd.steady
        theta = _usable(steady(self.theta, lambda thetas: few._roughly(both, thetas).max(axis=0)))
        about = np.nan_to_num(self._roughly(both, np.array([theta]))[:, 0], nan=math.inf)
        return replace(self, theta=theta, leader=int(both[int(about.argmax())])), float(about.max())

    def _roughly(self, some: Places, thetas: Floats) -> Floats:
        """Of some laws (rows), at every tilt, by their moments."""
        laws = self.curve.family.pick(some, self.taking.growth, self.curve.fraction, self.cap)
        tau = np.outer(thetas, self.scales.weight)
        with np.errstate(all="ignore"):  # a hint may be absurd
            heights = laws.log_integrals(tau.ravel(), self.taking).reshape(-1, self.scales.weight.size)
        return self._expectation(heights + self._place).reshape(some.size, -1)

    def largest(self, rest: float, useful: float) -> float:
        """``rest``: of laws that are not in the family, E[X^2] at most. Above ``useful`` no close bound."""
        most = self.least
        if most > useful:
            return math.inf
        least = self._settled(max(float(self.seconds.max()), rest) * _SECONDS, most)
        if rest > least:
            return math.inf
        left = np.flatnonzero(self.seconds > least)
        left = left[left != self.leader]
        if left.size * self.curve.family.types > _MOST_LEFT:
            return math.inf
        if left.size == 0:
            return most
        return self._of_many(left, most, useful)

    def _settled(self, few: Floats, most: float) -> float:
        """One of these second moments, up to which no law has more than ``most``: each from the one before on
        by itself, as Bennett's bound rises with it, and what a variance leaves of that falls."""
        tau = self.scales.weight[self.scales.nodes] * self.theta
        rough = log_bennett(few, tau, self.taking, self.ends, self.curve.family.excess)
        if self.taking.rate == 1.0 and self.curve.family.seconds.doubt < math.inf:
            variance = self._variance(np.append(0.0, few[:-1]))
            rough = rough + log_spread(few, variance, self._reach, tau, self.taking.users)
        heights = self.scales.interpolated(rough) + self._place
        settled = np.append(self._expectation(heights) <= most, False)
        return float(np.append(0.0, few)[int(settled.argmin())])

    def _variance(self, second: Floats) -> Floats:
        """At least that of X, cut at the cap, of laws with at least these second moments: cutting takes a
        deviation away that is at most the root of the mean square of what is cut."""
        share, family = self.curve.fraction, self.curve.family
        whole, cut = family.seconds.variance(second, self.taking.growth, share), 0.0
        if self.cap < share * self.curve.most:
            cut = share**2 * family.cut_off(self.cap / share)
        left = down(np.sqrt(whole), _UNITS) - up(math.sqrt(cut), _UNITS)
        return down(np.maximum(left, 0.0) ** 2, _UNITS)

    @property
    def _reach(self) -> float:
        """Of |D|, D = X + growth: R_x/R_z - 1 - alpha (R_y/R_z - 1) is at least -alpha (e^epsilon0 - 1)."""
        growth, share = self.taking.growth, self.curve.fraction
        return up(max(self.cap + growth, share * (1.0 + growth) * self.curve.most), _UNITS)

    def _of_many(self, left: Places, most: float, useful: float) -> float:
        """All of ``left`` by their moments, and the largest of them closely."""
        growth, fraction = self.taking.growth, self.curve.fraction
        linear = not self.curve.is_spanned  # so that what is known at alpha = 1 tells of others
        if linear and self.taking.rate == 1.0 and left.size >= _MANY_LEFT and growth <= _NEARBY:
            left = self._not_nearby(left, most)
            if left.size == 0:
                return most
        blocks = np.array_split(left, 1 + left.size // _AT_ONCE)
        left = np.concatenate([self._near(block, most) for block in blocks])
        if left.size == 0:
            return most
        laws = self.curve.family.pick(left, growth, fraction, self.cap)
        rough = laws.log_integrals(self.scales.weight[self.scales.nodes] * self.theta, self.taking)
        found = self._expectation(self.scales.interpolated(rough) + self._place)
        order = np.argsort(-found)
        for place in order[:_CLOSELY].tolist():
            if found[place] <= _CLOSE * most or most > useful:
                break
            found[place] = min(found[place], self._closely(laws[place], int(left[place]), rough[place], most))
            most = max(most, float(found[place]))
        return max(most, float(found.max()))

    def _near(self, left: Places, most: float) -> Places:
        """Those of ``left`` that may have more by what their moments say of three weights."""
        few = self.scales.few
        laws = self.curve.family.pick(left, self.taking.growth, self.curve.fraction, self.cap)
        moments, tau = Moments.of(laws, self.taking.growth), self.scales.weight[few] * self.theta

        def above(heights: Floats) -> Places:
            return self._above(self.scales.interpolated(heights, few), most)

        near = above(moments.log_chernoff(tau, self.taking))
        if self.taking.rate == 1.0:
            near = near[above(moments.some(near).log_normal(tau, self.taking))]
        return left[near[above(laws.some(near).log_integrals(tau, self.taking))]]

    def _not_nearby(self, left: Places, most: float) -> Places:
        """Those that may have more by what is known of alpha = 1."""
        growth, second = self.taking.growth, self.seconds[left]
        told = second, self._variance(second), self._missing
        moments = self.curve.nearby.at(left, growth, self.cap, *told)
        rough = moments.log_normal(self.scales.weight[self.scales.nodes] * self.theta, self.taking)
        return left[self._above(self.scales.interpolated(rough), most)]

    @property
    def _missing(self) -> float:
        """What cutting takes of a mean: (p - cap)_+ is at most p^2/cap where p is above the cap."""
        share, cap = self.curve.fraction, self.cap / self.curve.fraction
        return up(share * self.curve.family.cut_off(cap) / cap, _UNITS) if cap < self.curve.most else 0.0

    def _closely(self, law: Law, place: int, rough: Floats, most: float) -> float:
        """Of one law: at the nodes, which are fewer; where that does not settle it, at all weights."""
        if self.taking.users * self.taking.rate < _ENOUGH:
            with np.errstate(over="ignore"):  # where rounding hides everything
                nodes = self.scales.weight[self.scales.nodes] * self.theta
                heights = np.minimum(rough, law.log_integrals(nodes, self.taking))
            settled = float(self._expectation(self.scales.interpolated(heights[None, :]) + self._place)[0])
            if settled <= most:
                return settled
        return float(self._expectation(self._exact(place)[None, :])[0])

    def _law(self, place: int) -> Laws:
        """One law."""
        return self.curve.family.pick(np.array([place]), self.taking.growth, self.curve.fraction, self.cap)

    def _above(self, heights: Floats, most: float) -> Places:
        """Rows that may have more."""
        return np.flatnonzero(~(self._expectation(heights + self._place) <= most))

    @property
    def ends(self) -> list[tuple[float, float]]:
        share = self.curve.fraction
        return [(share * end, share**2 * more) for end, more in self.curve.family.ends(self.cap / share)]

    @cached_property
    def _place(self) -> Floats:
        return np.log(self.scales.weight / self.taking.users)

    def _exact(self, place: int) -> Floats:
        """log of l N(l theta) / (2 pi n') at all weights: by moments; among few, by cells if that is less."""
        picked, tau = self._law(place), self.scales.weight * self.theta
        with np.errstate(over="ignore"):  # where rounding hides everything
            found = picked.log_integrals(tau, self.taking)[0]
            if self.taking.users * self.taking.rate < _ENOUGH:
                found = np.minimum(found, picked[0].log_integrals(tau, self.taking))
        return np.asarray(self._place + found)

    def _expectation(self, heights: Floats) -> Floats:
        return expectation(self.scales.weight, heights, self.scales.middle, self.scales.excess)
