"""Crowds that hold what they like, in balls: the crowd theorem T16 (docs/proofs/crowd.md), by V5.

r of the n - 1 others are a pool, n' = n - 1 - r remain; for every theta > 0

    H <= max over z of E[b_z(l)] + lost,    b_z(l) = l T_z(l theta),

T_z(tau) the sum of Theorem V1 with sizes in place of real parts, which is above its integral. l
is a likelihood ratio of r + 1 reports: convex polygons of it have means below sums of the pool's curve. In
random cohorts there is no pool, and l is 1.
Floats choose r, theta and the corners: any are valid."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

from flint import arb, ctx

from shuffledp.verifying._balls import max_of, positive
from shuffledp.verifying._families import Family
from shuffledp.verifying._moments import Series
from shuffledp.verifying._tilted_sum import TiltedSum, crude_height, normal_height
from shuffledp.verifying._variable import Tilted, Variable

_STEPS = (
    *(0.4 * i for i in range(8)),
    *(3.2 + 0.6 * i for i in range(5)),
    *(6.2 + i for i in range(8)),
    *(14.2 + 2.0 * i for i in range(6)),
)
_RARE = 0.03, 0.02  # speed, tightness: of the bound, what larger weights add as guessed, and as aimed at
_RARER, _CLOSER = 100, 10  # tightness: of a bound that should be enough, how much less, and closer
_WISHED = 0.98  # speed: of what is enough, what is better, as chords of rounds are then low enough
_SPARE = 0.25, 1.25  # speed: of what is enough beyond so much of the guess, what larger weights may add
_FEWEST, _PER_NODE = 3, 3  # speed: corners, and weights per node, as the last is chosen
_EASIER, _FINER = (0.9, 0.8, 0.7, 0.6, 0.5, 0.35), 0.05  # speed: shares of tilts there
_POOLED_VARIANCES = 2.0  # speed
_RUNGS, _WALK = 8, (4, 2, 1)  # speed: sizes of pools per doubling, and how they are looked at
_LARGEST_SHARE = 0.3  # speed
_SPREAD, _CLOSE_SPREAD, _MANY = 2e-3, 1e-4, 50  # speed: of laws of so many values that are not the first
_FEW_NODES = 5, 9  # speed: of the weights of the first law, where that is good enough
_HOPELESS, _ROUGHLY = 1.6, 1.5  # speed: guesses, and rough bounds, are no better than that
_GOOD, _FAIR = 1.07, 1.25  # speed: rough bounds that are looked at at once, or where none near is lower
_IN_VAIN = 100.0  # speed: times the bound; weights that add more are cut, whatever that costs
_POOLS = 8  # speed: how many are looked at closely in all
_LOSS, _FINE_LOSS = 1e-3, 5e-5  # tightness: of a blur, with a pool, and without
_ROUGH = 0.05  # speed: of laws that are far below the first
_REVIVED = 4  # tightness: of so few values sizes hardly fall, and a wide blur takes more off than it costs
_SETTLED = tuple(
    1.0 - 0.04 * i for i in range(20)
)  # speed: of what is reached, heights of those settled at once
_GUESSED = 64  # speed: bits, where tilts and pools are chosen
_USUAL = 0.97  # speed: of the tilt of a normal sum, the best one without weights
_COMPARED = 3  # speed: laws of which the largest chooses pools
_FAR, _LEADERS = 5.0, 6  # speed: deviations at which laws are compared, and how many are


@dataclass(frozen=True)
class Pool:
    """``curve`` of so many users at a logarithm; about the ``variance`` of X; no loss exceeds ``local``.

    Where something leaks, ``moved`` is the total variation by which a delta0 moves so many users' reports,
    and what that costs with weights up to a last one."""

    curve: Callable[[int, float], arb]
    variance: float
    local: arb
    moved: Callable[[int, arb], tuple[arb, arb]] = lambda users, last: (arb(0), arb(0))
    most: float = math.inf
    """Members, that a size begins with."""

    def place(self, n: int, rare: float) -> int:
        """Of about the best size on a ladder: what is lost with the members balances what their weights cost,
        of which larger ones are ``rare``."""
        deep = _POOLED_VARIANCES * self.variance * -math.log(max(rare, 1e-300))
        balanced = min(math.sqrt(n * self.variance), self.most)
        doublings = math.log2(max(deep + math.hypot(deep, balanced), 1.0))
        return _WALK[0] * round(_RUNGS / _WALK[0] * doublings)  # of few pools the curve is needed

    def corners(self, size: int, growth: arb, enough: float) -> list[_Corner]:
        """From l = 1 to where cutting larger ones costs little ``enough``, or to beyond all there are.

        Of l - L a share of X_+ is lost, of 1/L - l one of X_-: their means are at most how far two inputs are
        apart, and that and alpha - 1."""
        scale, most = math.sqrt(self.variance / (size + 1)), float(self.local.upper())
        found, apart = list[_Corner](), (self.local / 2).tanh()
        for log in (scale * step for step in _STEPS if scale * step < most):
            top, excess = arb(log).exp(), self.curve(size + 1, log)
            least = excess.min(found[-1].excess) if found else excess
            beyond = least * (apart + (apart + growth) / top)
            found.append(_Corner(top, least, beyond, *self.moved(size + 1, top)))
            if len(found) > 1 and beyond <= arb(enough):  # one weight is no polygon
                return found
        last = self.local.exp()
        return [*found, _Corner(last, arb(0), arb(0), *self.moved(size + 1, last))]


@dataclass(frozen=True)
class _Corner:
    weight: arb
    excess: arb
    beyond: arb
    """What cutting larger weights to it costs, and smaller ones to its inverse."""
    moved: arb
    worlds: arb
    """What is moved of the pool's reports, and what that costs in both worlds."""

    def lost(self, users: int, theta: float) -> arb:
        """Where reports are moved a weight may become zero: b(0) = 1/(2 n' theta)."""
        return self.beyond + self.worlds + self.moved / (2 * users * arb(theta))


def crowd(family: Family, n: int, pool: Pool, growth: arb, enough: arb) -> arb:
    """An upper bound of the curve, X having one of these laws, or a mixture, given any third input."""
    leaders = _leaders(family, n)
    theta, guess = _tilt(leaders, n)
    leaders = [_coarse(law, theta, _CLOSE_SPREAD) for law in leaders]
    pools, best = _Pools(family, leaders, n, pool, growth, enough), arb(1)
    tried = set[int]()
    for place in pools.walk(pool.place(n, max(_RARE[0] * guess, _spare(guess, enough)))):
        if place not in tried and len(tried) < _POOLS and pools.cost(place) < math.inf:
            tried.add(place)
            best = best.min(pools.bound(place))
            if best <= enough or not enough > 0:
                break
    return best


@dataclass(frozen=True)
class _Pools:
    """Bounds by pools of the sizes of a ladder, of which one is about 2^(1/8) times the one below."""

    family: Family
    leaders: Sequence[Variable]
    n: int
    pool: Pool
    growth: arb
    enough: arb

    @cached_property
    def _seen(self) -> dict[int, _Chosen | None]:
        return {}

    def chosen(self, place: int) -> _Chosen | None:
        """None if those that remain are too few, or a rough bound is no good."""
        if place not in self._seen:
            size = math.ceil(2.0 ** (place / _RUNGS))
            size += (self.n - 1 - size) % 2  # sizes to an odd power cost more (V5)
            few = not 0 < size <= max(_LARGEST_SHARE * self.n, 1.0)
            self._seen[place] = None if few else self._roughly(size)
        return self._seen[place]

    def _roughly(self, size: int) -> _Chosen | None:
        users = self.n - 1 - size
        if users < 1:
            return None
        theta, guess = _tilt(self.leaders, users)
        if self.enough > 0 and arb(guess) > _HOPELESS * self.enough:
            return None
        rare = max(_RARE[1] * guess / (_RARER if self.enough > 0 else 1), _spare(guess, self.enough))
        corners, good = self.pool.corners(size, self.growth, rare), _GOOD * float(self.enough)
        corners = self._light(corners, users, _EASIER[-1] * theta)
        with ctx.workprec(_GUESSED):
            first = max(self.leaders[:_COMPARED], key=lambda law: float(_alone(law, users, theta, _ROUGH)))
            return _Chosen(users, *_nearer(first, users, corners, theta, good))

    def _light(self, corners: list[_Corner], users: int, theta: float) -> list[_Corner]:
        """Up to where what one of the leaders has with the next weight, as often as weights beyond the last
        are there, is hopeless; ``theta``: as flat as any that is tried."""
        alone = max(law.cumulants(theta)[0] for law in self.leaders)
        for last, (one, following) in enumerate(pairwise(corners[1:]), 1):
            tilt = float(following.weight) * theta
            heavier = users * (max(law.cumulants(tilt)[0] for law in self.leaders) - alone)
            if heavier + math.log(max(float(one.excess), 1e-300)) > math.log(_IN_VAIN):
                return corners[: last + 1]
        return corners

    def cost(self, place: int) -> float:
        found = self.chosen(place)
        return math.inf if found is None else found.cost

    def walk(self, place: int) -> Iterator[int]:
        """Places worth a closer look: on the way to the lowest rough bound, and then from that on upward."""
        while place > 0 and self.chosen(place) is None:
            place -= _WALK[0]
        larger, hopeless = place, _HOPELESS * self.enough
        while self.enough > 0 and self.cost(larger) < math.inf and self.cost(larger) > hopeless:
            larger += _WALK[0]  # weights of small pools may be too heavy
        place = min(place, larger, key=self.cost)
        for step in _WALK:
            while True:
                if self.cost(place) <= _GOOD * self.enough:
                    yield place
                lower = (place + side for side in (step, -step) if self.cost(place + side) < self.cost(place))
                if (nearest := next(lower, None)) is None:  # costs fall, and then rise: one side is enough
                    break
                place = nearest
            if self.enough > 0 and self.cost(place) > _HOPELESS * self.enough:
                return
            if self.cost(place) <= _FAIR * self.enough:
                yield place
        yield from sorted(self._seen, key=self.cost)

    def bound(self, place: int) -> arb:
        chosen = self.chosen(place)
        assert chosen is not None
        if self.enough > 0 and chosen.cost > _ROUGHLY * self.enough:
            return arb(1)
        return _with_pool(self.family, self.leaders, chosen, self.enough)


class _Chosen(NamedTuple):
    """Of a pool: a rough ``cost``, those who remain, its corners and a tilt."""

    users: int
    cost: float
    corners: list[_Corner]
    theta: float


def _with_pool(family: Family, leaders: Sequence[Variable], chosen: _Chosen, enough: arb) -> arb:
    """One if it is not enough."""
    users, _, corners, theta = chosen
    scaled = _scaled(corners)
    heaviest = _ordered(leaders, theta * float(scaled[-1]))[0]
    both = [leaders[0], *([heaviest] if heaviest is not leaders[0] else [])]
    with ctx.workprec(_GUESSED):
        theta *= _eased(lambda at: max(_about(law, users, corners, scaled, at) for law in both), theta)
    first = _ordered(family.widest, theta)[0]
    loss = _LOSS / (_CLOSER if enough > 0 else 1)
    lost = corners[-1].lost(users, theta)
    most = arb(1)
    for heights, last in _first(first, users, theta, scaled, few=enough > 0):
        most = most.min(_mean(corners, scaled, _products(scaled, heights)))
        if most + lost <= _WISHED * enough or (last and most + lost <= enough):
            break
    if enough > 0 and not most + lost <= enough:
        return arb(1)  # other laws do not help
    reached = most.max(_WISHED * enough - lost)

    def crude(second: float) -> arb:
        tilts = [(weight, weight * theta) for weight in scaled]
        values = [weight * crude_height(family.moment(tilt, second), users, tilt) for weight, tilt in tilts]
        return _mean(corners, scaled, values)

    known, others = family.unless(crude, reached)
    settled, left = _settled(family, others, users, theta, corners, reached)
    most = most.max(known).max(settled)
    for law in map(family.make, left):
        if law is first:
            continue
        found = arb(1)
        for heights in _tried(_Heights(law, users, theta, loss), scaled):
            found = found.min(_mean(corners, scaled, _products(scaled, heights)))
            if found <= most.max(reached):
                break
        most = most.max(found)
        if enough > 0 and not most + lost <= enough:
            return arb(1)
    return most + lost


def _settled(
    family: Family, places: Sequence[int], users: int, theta: float, corners: Sequence[_Corner], reached: arb
) -> tuple[arb, Sequence[int]]:
    """By moments alone: a bound of laws that do not exceed what is ``reached``, and where the others stand.

    The largest heights of some laws at three weights, and chords between these, are above those of each."""
    if (moments := family.moments) is None:
        return arb(0), places
    scaled = _scaled(corners)
    nodes = _places(scaled, 3)
    low, middle, high = (Series(scaled[i] * theta, family.most) for i in nodes)
    rows = list[tuple[arb, arb, arb, int]]()
    for place in places:
        known = moments(place)
        told = middle.tilted(known)
        near, far = (crude_height(at.first(known), users, at.tilt) for at in (low, high))
        rows.append((normal_height(told.first, told, arb(1), users, middle.tilt), near, far, place))
    rows.sort(key=lambda row: float(row[0]))
    for share in _SETTLED:
        some = bisect_right(rows, share * float(reached), key=lambda row: float(row[0]))
        if some:
            tops = [max_of(column) for column in list(zip(*rows[:some], strict=True))[:3]]
            heights = _chords(scaled, dict(zip((nodes[1], nodes[0], nodes[2]), tops, strict=True)))
            if (found := _mean(corners, scaled, _products(scaled, heights))) <= reached:
                return found, sorted(place for *_, place in rows[some:])
    return arb(0), places


def _spare(guess: float, enough: arb) -> float:
    """What larger weights may add where a bound need not be close."""
    return _SPARE[0] * (float(enough) - _SPARE[1] * guess)


def _first(
    law: Variable, users: int, theta: float, scaled: Sequence[arb], *, few: bool
) -> Iterator[tuple[list[arb], bool]]:
    """Heights of the first law, closer and closer; and whether those that are enough will do."""
    parts = [(law.coarser(theta, _CLOSE_SPREAD), _LOSS)] if len(law.values) > _MANY else []
    numbers = (*_FEW_NODES, len(scaled)) if len(law.values) <= _REVIVED else _FEW_NODES
    for part, loss in (*parts, (law, _LOSS), (law, _LOSS / _CLOSER)) if few else ():
        seen, height = dict[int, arb](), _Heights(part, users, theta, loss).close
        for nodes in numbers:
            yield _through(height, scaled, nodes, seen), nodes >= _FEW_NODES[-1]
    loss = _LOSS / (_CLOSER if few else 1)
    yield _through(_Heights(law, users, theta, loss).close, scaled, len(scaled), {}), True


def _scaled(corners: Sequence[_Corner]) -> list[arb]:
    """Their weights on both sides of one."""
    return [*(1 / one.weight for one in corners[:0:-1]), *(one.weight for one in corners)]


def _nearer(
    law: Variable, users: int, corners: list[_Corner], theta: float, good: float
) -> tuple[float, list[_Corner], float]:
    """Corners up to where weights further out cost more than they leave, and about the best tilt, or a
    ``good`` one: any do. First, a rough bound."""
    scaled, middle = _scaled(corners), len(corners) - 1
    nodes = max(len(scaled) // _PER_NODE, _FEW_NODES[-1])

    def cost(tilt: float) -> tuple[float, int, float]:
        values = _products(scaled, _through(_Heights(law, users, tilt, _ROUGH).close, scaled, nodes, {}))
        found = list[tuple[float, int, float]]()
        for last in range(min(_FEWEST, middle), middle + 1):
            inner = slice(middle - last, middle + last + 1)
            most = _mean(corners[: last + 1], scaled[inner], values[inner])
            found.append((float(most + corners[last].lost(users, tilt)), last, tilt))
        return min(found)

    best = cost(theta)
    for share in _EASIER:  # large weights raise steep tilts
        if best[0] <= good or (found := cost(share * theta)) > best:
            break
        best = found
    if best[0] > good:
        best = min(best, cost((1.0 + _FINER) * best[2]), cost((1.0 - _FINER) * best[2]))
    return best[0], corners[: best[1] + 1], best[2]


def _tried(heights: _Heights, scaled: Sequence[arb]) -> Iterator[list[arb]]:
    """Heights at all weights, from crude to close: mostly the middle one tells. All of one list are those of
    one law, spread and blurred alike: its logarithm is the one that is convex."""
    middle, ends = len(scaled) // 2, [i for i in _places(scaled, 3) if i != len(scaled) // 2]
    at = {i: heights.crude(scaled[i]) for i in ends} | {middle: heights.normal(scaled[middle])}
    yield _chords(scaled, at)
    yield _chords(scaled, at | {i: heights.normal(scaled[i]) for i in ends})
    law = heights.law
    if len(law.values) > _MANY:
        law = law.coarser(heights.theta, _SPREAD)
    rough = replace(heights, law=law, loss=_ROUGH)
    at = {i: rough.blurred_normal(scaled[i]) for i in ends}
    seen = {middle: rough.close(scaled[middle])}
    yield _chords(scaled, at | seen)
    for nodes in (3, 5):
        yield _through(rough.close, scaled, nodes, seen)
    yield _through(replace(heights, law=law).close, scaled, 5, {})
    if len(heights.law.values) > _MANY:
        law = heights.law.coarser(heights.theta, _CLOSE_SPREAD)
        yield _through(replace(heights, law=law, loss=_LOSS).close, scaled, 9, {})
    seen = {}
    for nodes in (9, len(scaled)):
        yield _through(heights.close, scaled, nodes, seen)


def _about(
    law: Variable, users: int, corners: Sequence[_Corner], scaled: Sequence[arb], theta: float
) -> float:
    """About the logarithm of the mean of b: any tilt is valid."""
    heights = _through(_Heights(law, users, theta, _ROUGH).close, scaled, 5, {})
    return _log(_mean(corners, scaled, _products(scaled, heights)))


def _log(value: arb) -> float:
    """About: of what is positive."""
    return float(value.log().mid())


def _eased(height: Callable[[float], float], theta: float) -> float:
    """By how much a tilt is multiplied: weights raise steep ones. Parabolas tell where it is lowest."""
    share = 1.0
    for step in (0.1, 0.04):
        below, at, above = (height(theta * (share + i * step)) for i in (-1, 0, 1))
        bend = below + above - 2.0 * at
        move = 0.5 * (below - above) / bend if bend > 0.0 else math.copysign(2.0, below - above)
        share += step * min(max(move, -2.0), 2.0)
    return share


def without_pool(family: Family, n: int, enough: arb) -> arb:
    """The same of a random cohort of n users, X being that of the cohort: all weights are one."""
    leaders = _leaders(family, n)
    best, _ = _tilt(leaders, n)

    def height(theta: float) -> float:
        first = [_coarse(law, theta, _CLOSE_SPREAD) for law in _ordered(leaders, theta)[:2]]
        return max(_log(_alone(law, n, theta, _LOSS)) for law in first)

    def told(law: Tilted, tilt: arb) -> arb:
        return normal_height(law.first, law, arb(1), n, tilt)

    def tried(law: Variable, theta: float) -> Iterator[arb]:
        yield told(law.tilted(arb(theta)), arb(theta))
        yield from (_alone(part, n, theta, loss) for part, loss in _finer(law, theta))

    def settled(second: float, tilt: arb) -> arb:
        return crude_height(family.moment(tilt, second), n, tilt)

    return _tilted_once_or_twice(_Tried(family, tried, settled, enough, told), height, best)


def _alone(law: Variable, n: int, theta: float, loss: float) -> arb:
    return _Heights(law, n, theta, loss).close(arb(1))


def by_coins(family: Family, n: int, rate: arb, away: arb, enough: arb) -> arb:
    """The same if each of n users takes part by a coin; ``away`` = 1 - alpha is the X of those who do not."""

    def mixed(law: Variable) -> Variable:
        return Variable([*law.values, away], [*(rate * m for m in law.masses), 1 - rate])

    def close(law: Variable, at: float, loss: float) -> arb:
        made = TiltedSum.at(at, mixed(law), n, loss)
        return replace(made, law=law, coin=(rate, (away * arb(at)).exp()), absolute=True).upper()

    leaders = _leaders(family, n)
    best, _ = _tilt([mixed(law) for law in leaders], n)

    def height(theta: float) -> float:
        first = [_coarse(law, theta, _CLOSE_SPREAD) for law in _ordered(leaders, theta)[:2]]
        return max(_log(close(law, theta, _LOSS)) for law in first)

    def whole(moment: arb, tilt: arb) -> arb:
        return rate * moment + (1 - rate) * (away * tilt).exp()

    def told(law: Tilted, tilt: arb) -> arb:
        both = whole(law.first, tilt)
        return normal_height(both, law, rate * law.first / both, n, tilt)

    def tried(law: Variable, theta: float) -> Iterator[arb]:
        yield told(law.tilted(arb(theta)), arb(theta))
        yield from (close(part, theta, loss) for part, loss in _finer(law, theta))

    def settled(second: float, tilt: arb) -> arb:
        return crude_height(whole(family.moment(tilt, second), tilt), n, tilt)

    none = rate**n
    of_all = _Tried(family, tried, settled, positive(enough - none), told)
    return _tilted_once_or_twice(of_all, height, best) + none


def _finer(law: Variable, theta: float) -> Iterator[tuple[Variable, float]]:
    """Laws of few values before the law itself, and what blurs may cost."""
    if len(law.values) > _MANY:
        yield law.coarser(theta, _SPREAD), _ROUGH
        yield law.coarser(theta, _CLOSE_SPREAD), _LOSS
    elif len(law.values) <= _REVIVED:
        yield law, _LOSS
    yield law, _FINE_LOSS


def _tilted_once_or_twice(laws: _Tried, height: Callable[[float], float], theta: float) -> arb:
    """At a tilt that is likely to do, or else at about the best one."""
    if laws.enough > 0:
        at = _USUAL * theta
        if laws.tested(laws.first(at), at, laws.enough) <= laws.enough and (
            (found := laws.largest(at)) <= laws.enough
        ):
            return found
    with ctx.workprec(_GUESSED):
        share = _eased(height, theta)
    return laws.largest(theta * share)


@dataclass(frozen=True)
class _Tried:
    """Laws of which each is tried at a tilt until it is seen to be good ``enough``, or to exceed no other;
    ``crude`` bounds all of a second moment, ``told`` those of which moments are known."""

    family: Family
    bounds: Callable[[Variable, float], Iterator[arb]]
    crude: Callable[[float, arb], arb]
    enough: arb
    told: Callable[[Tilted, arb], arb] | None = None

    def first(self, theta: float) -> Variable:
        return _ordered(self.family.widest, theta)[0]

    def tested(self, law: Variable, theta: float, least: arb) -> arb:
        best = arb(1)
        for found in self.bounds(law, theta):
            best = best.min(found)
            if best <= least:
                break
        return best

    def largest(self, theta: float) -> arb:
        first = self.first(theta)
        most = self.tested(first, theta, _WISHED * self.enough)
        reached = most.max(_WISHED * self.enough)
        known, others = self.family.unless(lambda second: self.crude(second, arb(theta)), reached)
        most, series = most.max(known), Series(arb(theta), self.family.most)
        for place in others:
            if (by_moments := self._by_moments(place, series)) <= most.max(reached):
                most = most.max(by_moments)
            elif (law := self.family.make(place)) is not first:
                most = most.max(self.tested(law, theta, most.max(reached)))
        return most

    def _by_moments(self, place: int, series: Series) -> arb:
        if self.told is None or self.family.moments is None:
            return arb(1)
        return self.told(series.tilted(self.family.moments(place)), series.tilt)


def _leaders(family: Family, n: int) -> list[Variable]:
    """Laws that are likely to have the largest curve, or next to these: for guesses."""
    theta = _FAR / math.sqrt(n * max(law.cumulants(0.0)[2] for law in family.widest))
    found = _ordered(family.widest, theta)[:_LEADERS]
    for _ in range(_LEADERS):  # one that is larger where those are small would be left out
        largest = _ordered(family.widest, _tilt(found, n)[0])[0]
        if any(largest is law for law in found):
            break
        found.append(largest)
    return found


def _coarse(law: Variable, theta: float, spread: float) -> Variable:
    """Of fewer values, if there are many; at a smaller tilt rare large values are spread too far."""
    return law.coarser(theta, spread) if len(law.values) > _MANY else law


def _ordered(laws: Sequence[Variable], theta: float) -> list[Variable]:
    return sorted(laws, key=lambda law: -law.cumulants(theta)[0])


def _products(one: Sequence[arb], other: Sequence[arb]) -> list[arb]:
    return [a * b for a, b in zip(one, other, strict=True)]


def _tilt(laws: Sequence[Variable], n: int) -> tuple[float, float]:
    """Near the minimum of the largest n log E e^(theta X) - 2 log theta, and about what the bound is."""

    def height(theta: float) -> float:
        return max(n * law.cumulants(theta)[0] for law in laws) - 2.0 * math.log(theta)

    theta = min((law.guess.tilt(n) for law in laws), key=height)
    variance = max(laws, key=lambda law: law.cumulants(theta)[0]).cumulants(theta)[2]
    found = height(theta) - 0.5 * math.log(2.0 * math.pi * n * max(variance, 1e-300)) - math.log(n)
    return theta, math.exp(min(found, 0.0))


@dataclass(frozen=True)
class _Heights:
    """T(l theta). X is blurred, by as much for every l: T is that of one law, and log T is convex in l."""

    law: Variable
    users: int
    theta: float
    loss: float = _LOSS

    @cached_property
    def _blur(self) -> float:
        return TiltedSum.at(self.theta, self.law, self.users, self.loss).blur

    def close(self, weight: arb) -> arb:
        made = TiltedSum.at(float(weight) * self.theta, self.law, self.users, self.loss)
        return replace(made, theta=weight * self.theta, blur=self._blur, absolute=True).upper()

    def crude(self, weight: arb) -> arb:
        return crude_height(self.law.moment(weight * self.theta), self.users, weight * self.theta)

    def normal(self, weight: arb) -> arb:
        """Sizes fall like those of a normal law up to a frequency, and are at most the first beyond (V5)."""
        tilt = weight * self.theta
        told = self.law.tilted(tilt)
        return normal_height(told.first, told, arb(1), self.users, tilt)

    def blurred_normal(self, weight: arb) -> arb:
        """Above ``close``: blurs raise no size by more than that of the first."""
        return self.normal(weight) * ((arb(self._blur) * weight * self.theta) ** 2 / 2).exp()


def _places(scaled: Sequence[arb], nodes: int) -> list[int]:
    last = len(scaled) - 1
    return sorted({round(last * i / (nodes - 1)) for i in range(nodes)})


def _through(
    height: Callable[[arb], arb], scaled: Sequence[arb], nodes: int, seen: dict[int, arb]
) -> list[arb]:
    """At all weights, from those at some nodes, which are ``seen`` then."""
    places = _places(scaled, nodes)
    seen |= {i: height(scaled[i]) for i in places if i not in seen}
    return _chords(scaled, seen)


def _chords(scaled: Sequence[arb], heights: dict[int, arb]) -> list[arb]:
    """At all weights, from heights at some: chords of a convex logarithm are above it."""
    places = sorted(heights)
    result = [heights[places[0]]]
    for a, b in pairwise(places):
        start, run = heights[a].log(), scaled[b] - scaled[a]
        slope = (heights[b].log() - start) / run
        result += [(start + slope * (scaled[i] - scaled[a])).exp() for i in range(a + 1, b)] + [heights[b]]
    return result


def _mean(corners: Sequence[_Corner], scaled: Sequence[arb], values: Sequence[arb]) -> arb:
    """Of the polygon through the values, made convex from l = 1 on, raised between its corners."""
    middle = len(corners) - 1
    steps = [arb(0), *(high / low - 1 for low, high in pairwise(scaled)), arb(0)]
    height = [
        value * (a.max(b) ** 2 / 8).exp() for value, (a, b) in zip(values, pairwise(steps), strict=True)
    ]
    total, outward = height[middle], list[arb]()
    for sign in (1, -1):
        steepest = arb(0)
        for i in range(middle):
            a, b = middle + sign * i, middle + sign * (i + 1)
            slope = (height[b] - height[a]) / abs(scaled[b] - scaled[a])
            if i == 0:
                steepest = slope
                outward.append(slope)
                continue
            # (l - t)_+ has a mean of at most delta(log t), (t - l)_+ of t delta(-log t).
            total += positive(slope - steepest) * corners[i].excess * (1 if sign > 0 else scaled[a])
            steepest = steepest.max(slope)
        # Beyond the last corner it is held level.
        total += positive(-steepest) * corners[-1].excess * (1 if sign > 0 else scaled[0])
    return arb(total + positive(outward[0] + outward[1]) * corners[0].excess)
