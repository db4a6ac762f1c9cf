"""Laws of X in crowds of one value, and the integrals of the crowd theorem (T16, docs/proofs/crowd.md).

    N(tau) = int phi(w)^n' / (tau^2 + w^2) dw,    phi(w) = |E e^((tau + i w) X)|,

of one law (``Law``), closely, and of many at once (``Laws``), from their moments. Where each of n' people
takes part by a coin of their own, phi(w) = rate |E e^((tau + i w) X)| + (1 - rate) e^(tau (1 - alpha)).

**One law.** Over cells of half width s: on a cell U = n' log phi - log(tau^2 + w^2) lies below its tangent at
the middle raised by s^2/2 times a bound of U'', with |phi'| <= sigma, |phi''| <= sigma^2 for centred X under
the tilted law of variance sigma^2. A coin makes it a log-sum-exp of that line, which is convex: a chord.

**Many.** With the tilted variance v and fourth central moment m, k = (m + 3 v^2)/(12 v): phi(w)^2 is at most
phi(0)^2 (1 - w^2 v (1 - k w^2)), and likewise with the values of a core alone; two of the values, of tilted
masses p and q and d apart, leave of every period 2 pi/d no more than (pi/(8 n' p q))^(1/2)
(crowd_inside.py).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from shuffledp._certified.products import product, products
from shuffledp._certified.rounding import (
    CALL,
    LARGEST_EXPONENT,
    Floats,
    additions,
    down,
    gamma,
    positive,
    total,
    up,
)
from shuffledp.accounting._curves.crowd_inside import inside

Bools = npt.NDArray[np.bool_]
Complexes = npt.NDArray[np.complex128]

# speed: how far to integrate, in deviations and in tilts at least; beyond counts in full
_REACH, _NARROW_REACH = (2000.0, 500.0), (320.0, 80.0)
_BEND = (0.004, 0.015)  # speed: what a cell's bend may add to the exponent, near alpha = 1 and in the tail
_NEAR = 2.5  # speed: in tilts times deviations
_CORE = 10.0  # speed: up to where cells are narrow, in deviations
_MOST_CELLS = 4000  # speed: laws of such tails have no use here
_FEW_USERS = 2.0**15  # tightness: times types; then all cells are narrow: phi of a lattice does not die out
_WIDE = 0.2  # speed: width of cells beyond, of their place, or of a deviation of X
_DEAD = -30.0  # speed: of the exponent; cells of less are bounded without a tangent
_SIZE = 0.25  # speed: |phi| below that is bounded without a tangent
_UNITS = 64  # soundness: operations and calls that a value, a mass or an exponential carries
_NOTHING = 1e-60  # soundness: far below the relative errors; and speed: nothing underflows in products
_MOST_UNITS = 2.0**40  # soundness: beyond, no moment is bounded
_CORES = 6.0 ** -np.arange(1.0, 6.0)  # tightness: radii, of the largest value
_FEW_VALUES = 8  # speed: laws of no more have no cores
_FEW_TAUS = 4  # speed: then masses are cut to cores, else powers of values
_NO_CORE = 1e290  # a k that ends at once
TILTS = 1e-30, 1e30  # speed: far flatter and steeper than any that is good
_AT_ONCE = 2**19  # speed: numbers in a table


class Taking(NamedTuple):
    """How people take part: ``users`` factors of phi, each by a coin of ``rate`` (1.0: no coin); X is
    -``growth`` for who does not."""

    users: float
    rate: float
    growth: float

    def mixed(self, log_phi: Floats, tau: Floats) -> tuple[Floats, Floats]:
        """log phi(0) with the coin, and the share of it that those who take part have."""
        if self.rate == 1.0:
            return log_phi, np.ones_like(log_phi)
        taking = math.log(self.rate) + log_phi
        both = np.logaddexp(taking, math.log1p(-self.rate) - tau * self.growth)
        return both, np.exp(taking - both)


@dataclass(frozen=True)
class Law:
    """Values ``x`` of X and their masses ``p``; ``size`` >= |x|, relative to which x is rounded."""

    x: Floats
    p: Floats
    size: Floats
    ratio: Floats

    def _tilted(self, tau: Floats) -> tuple[Floats, Floats]:
        """log E e^(tau X), and the tilted masses, rows of tau."""
        exponent = np.log(self.p) + np.outer(tau, self.x)
        top = exponent.max(axis=1)
        mass = np.exp(exponent - top[:, None])
        mass[mass < _NOTHING] = 0.0
        sums = mass.sum(axis=1)
        return top + np.log(sums), mass / sums[:, None]

    def other(self, theta: float) -> float:
        """About the tilted mean of other / clone: minus the slope of X in alpha."""
        return float((self._tilted(np.array([theta]))[1] @ self.ratio)[0])

    def log_integrals(self, tau: Floats, taking: Taking) -> Floats:
        """log N(tau) / (2 pi), rounded up, for every tau (see module)."""
        log_phi, mass = self._tilted(tau)
        log_all, share = taking.mixed(log_phi, tau)
        users = taking.users
        mean, reach = mass @ self.x, mass @ self.size
        spread = (mass * (self.x - mean[:, None]) ** 2).sum(axis=1)
        units = _mass_units(tau, mass, self.size)
        # Deviations are norms: each is off by the norm of what x is off by. Root, sum and square: 5 units.
        unit = gamma(_UNITS + 4 * self.x.size)
        off = unit * np.sqrt(up(mass @ self.size**2, units))
        variance = (np.sqrt(up(spread + _dropped(tau, self.x.size, 2), units + 8)) + off) ** 2
        narrow = users * self.x.size < _FEW_USERS
        grid = _Grid.of(float(np.median(tau)), users, share * variance, float(variance.max()), narrow)
        if grid is None or grid.near.size + grid.far.size > _MOST_CELLS:
            return np.full(tau.size, math.inf)
        # All roundings and the law's own: of phi, relative to E e^(tau X).
        error = unit * (1.0 + (tau + grid.end) * reach)
        waves = self._waves(*grid.evenly)[:, : grid.near.size]
        # Where phi^n' is next to nothing, also between the returns of a lattice, no tangent is needed.
        power = _power(_transform(waves, mass), grid.half * np.sqrt(variance) + error, users, share)
        seen = (power > _DEAD).any(axis=1)
        waves = waves[:, seen]
        phi, derivative = _transform(waves, mass), _transform(waves, mass * self.x)
        cells = _Cells(
            grid.near[seen], grid.half, users, tau, np.sqrt(variance), phi, derivative, error, share
        )
        place = tau**2 + (grid.near[~seen] - grid.half)[:, None] ** 2
        dead = 4.0 * grid.half * total((np.exp(power[~seen]) / place).T)
        far = _transform(self._waves(grid.far, np.zeros(1)), mass)
        power = _power(far, grid.rise(variance) + error, users, share)
        inside = cells.integral() + dead + total((np.exp(power) * grid.area).T) + 2.0 / grid.end
        count = additions(grid.near.size) + additions(grid.far.size)
        rounded = up(inside / (2.0 * math.pi), operations=count + 8 * CALL + _UNITS)
        # Of the derivative likewise; slopes are its quotients by |phi|^2 >= 1/16.
        steep = 64.0 * (unit * (reach + (tau + grid.end) * (mass @ self.size**2)) + reach * error)
        slack = users * (16.0 * error + grid.half * steep)
        return np.where(units <= _MOST_UNITS, users * log_all + np.log(rounded) + slack, math.inf)

    def _waves(self, first: Floats, then: Floats) -> Floats:
        """Cosines and sines of wX, w = first + then in all pairs: a product of waves costs less than one."""
        (cosine, sine), (c, s) = ((np.cos(angle), np.sin(angle)) for angle in self._angles(first, then))
        if then.size == 1:
            return np.stack([cosine, sine])
        cosine, sine = cosine[:, None], sine[:, None]
        waves = np.stack([cosine * c - sine * s, sine * c + cosine * s])
        return waves.reshape(2, -1, self.x.size)

    def _angles(self, *places: Floats) -> list[Floats]:
        return [np.outer(w, self.x) for w in places]


def _transform(waves: Floats, mass: Floats) -> Complexes:
    """E e^iwX at every w (rows), under every tilt."""
    return np.asarray(product(waves[0], mass.T) + 1j * product(waves[1], mass.T))


def _power(phi: Complexes, rise: Floats, users: float, share: Floats) -> Floats:
    """At most log phi^n' on cells (rows), of |phi| in the middle and how much it may rise."""
    most = np.minimum(np.abs(phi) + rise, 1.0)
    with np.errstate(divide="ignore"):
        return np.asarray(users * np.log1p(share * (most - 1.0)))


def _mass_units(tau: Floats, mass: Floats, size: Floats) -> Floats:
    """Units of tilted masses that were not dropped, rows of tau, and of sums over them.

    log p is a call and at most LARGEST_EXPONENT in size; tau x is off as x is, relative to its size."""
    largest = np.where(mass > 0.0, size, 0.0).max(axis=-1)
    units = _UNITS + 4.0 * mass.shape[-1] + CALL * LARGEST_EXPONENT + 8.0 * tau * largest
    return np.asarray(np.minimum(units, 2.0 * _MOST_UNITS))


def _dropped(tau: Floats, count: int, power: int) -> Floats:
    """What dropped masses can have added to a moment: below _NOTHING where tau |x| is at most 2,000, and
    beyond that (there x < 0) e^-1,000 and less."""
    return np.asarray(count * _NOTHING * (2_000.0 / tau) ** power)


class _Grid(NamedTuple):
    """Middles of narrow cells, of one half width; of wide ones, each with its own; where they end."""

    near: Floats
    half: float
    far: Floats
    halves: Floats
    end: float

    @classmethod
    def of(cls, tilt: float, users: float, shared: Floats, variance: float, narrow: bool) -> _Grid | None:
        """None if it would have far too many cells."""
        most, least = math.sqrt(users * float(shared.max())), math.sqrt(users * float(shared.min()))
        half = math.sqrt(_BEND[0] if tilt * most < _NEAR else _BEND[1]) / most
        deviations, tilts = _NARROW_REACH if narrow else _REACH
        end = max(deviations / most, tilts * tilt)
        reach = end if narrow else min(_CORE / least, end)
        if not reach / half + end * math.sqrt(variance) / _WIDE < 4.0 * _MOST_CELLS:
            return None
        count = math.ceil(reach / (2.0 * half))
        near = half * (2.0 * np.arange(float(count)) + 1.0)
        first, turn = 2.0 * half * count, 1.0 / math.sqrt(variance)
        growing = math.ceil(math.log(max(turn / first, 1.0)) / math.log1p(_WIDE))
        edges = first * (1.0 + _WIDE) ** np.arange(growing + 1.0)
        step = _WIDE * turn
        even = math.ceil(max(0.0, end - edges[-1]) / step)
        edges = np.concatenate([edges, edges[-1] + step * np.arange(1.0, even + 1.0)])
        edges = edges[: int(np.searchsorted(edges, end)) + 1]
        return cls(near, half, 0.5 * (edges[1:] + edges[:-1]), 0.5 * np.diff(edges), float(edges[-1]))

    @property
    def evenly(self) -> tuple[Floats, Floats]:
        """All narrow ones, and some more, as sums of two."""
        block = math.isqrt(self.near.size) + 1
        return self.near[::block], 2.0 * self.half * np.arange(float(block))

    def rise(self, variance: Floats) -> Floats:
        """What |phi| may rise by on a wide cell: of centred X, |phi'| is at most sigma, and sigma^2 |w|."""
        reach = (self.far + self.halves)[:, None]
        return np.asarray(self.halves[:, None] * np.minimum(np.sqrt(variance), variance * reach))

    @property
    def area(self) -> Floats:
        """Of wide cells, on both sides, over the square of their nearest point."""
        return np.asarray(4.0 * self.halves / (self.far - self.halves) ** 2)[:, None]


@dataclass(frozen=True)
class _Cells:
    """Middles ``w`` > 0 of cells of one ``half`` width; columns of tau. ``derivative``: tilted E X e^iwX, of
    those who take part (a ``share`` of all)."""

    w: Floats
    half: float
    users: float
    tau: Floats
    sigma: Floats
    phi: Complexes
    derivative: Complexes
    error: Floats
    share: Floats

    def integral(self) -> Floats:
        """Over the cells around w and -w, each below its raised tangent."""
        half, w, size = self.half, self.w[:, None], np.abs(self.phi)
        least, top = size - half * self.sigma, size + half * self.sigma + self.error
        tangent = least >= _SIZE
        low = np.maximum(least, _SIZE)
        bend = self.sigma**2 * (1.0 / low + 1.0 / low**2)
        place = self.tau**2 + w**2
        slope = -(self.derivative * self.phi.conj()).imag / positive(size) ** 2
        log_size = np.where(tangent, np.log(low + half * self.sigma) + 0.5 * bend * half**2, np.log(top))
        log_size, rise = self._with_coin(log_size, half * np.where(tangent, slope, 0.0))
        exponent = self.users * log_size - np.log(place) + half**2 / (self.tau**2 + (w - half) ** 2)
        steep = np.abs(self.users * rise - half * 2.0 * w / place)
        # The mean of e^(steep t) over [-1, 1], from above: 1 + steep^2 where that is small, else e^steep.
        mean = np.where(steep < 1.0, 1.0 + steep**2 / 5.0, 1.0)
        return np.asarray(4.0 * half * total((np.exp(exponent + np.where(steep < 1.0, 0.0, steep)) * mean).T))

    def _with_coin(self, log_size: Floats, rise: Floats) -> tuple[Floats, Floats]:
        """The chord of log(share e^line + 1 - share): its middle, and how much it rises from there."""
        if (self.share == 1.0).all():
            return log_size, rise
        lines = log_size - rise, log_size + rise
        first, last = (np.log(self.share * np.exp(line) + (1.0 - self.share)) for line in lines)
        return 0.5 * (first + last), 0.5 * (last - first)


def _within(mass: Floats, inner: Bools, powers: Floats) -> Floats:
    """The sum of mass times power within each radius: of laws, taus, radii and powers."""
    (laws, taus, values), radii = mass.shape, inner.shape[1]
    if taus <= _FEW_TAUS:
        masses = (mass[:, :, None] * inner[:, None]).reshape(laws, -1, values)
        sums = products(masses, powers.transpose(0, 2, 1))
    else:
        columns = (inner[:, :, None] * powers[:, None]).reshape(laws, -1, values)
        sums = products(mass, columns.transpose(0, 2, 1))
    return sums.reshape(laws, taus, radii, -1)


@dataclass(frozen=True)
class Laws:
    """Laws of as many values each, one a row; values of no mass are there to fill up."""

    x: Floats
    p: Floats
    size: Floats
    ratio: Floats

    @classmethod
    def of(
        cls, gap: Floats, other: Floats, clone: Floats, growth: float | Floats, fraction: float, cap: float
    ) -> Laws:
        """X = (gap - growth other) / clone, cut at ``cap``, in a cohort that is a ``fraction`` of all."""
        seen = clone > 0.0
        least = clone if seen.all() else np.where(seen, clone, 1.0)
        told, ratio = fraction * gap / least, fraction * other / least + (1.0 - fraction)
        tilt = growth * ratio
        x, size = np.minimum(told - tilt, cap), np.abs(told) + tilt
        if least is not clone:
            x, size = np.where(seen, x, 0.0), np.where(seen, size, 0.0)
        return cls(x, clone, size, ratio)

    def __getitem__(self, place: int) -> Law:
        seen = self.p[place] > 0.0
        return Law(*(part[place][seen] for part in (self.x, self.p, self.size, self.ratio)))

    def some(self, rows: npt.NDArray[np.intp]) -> Laws:
        return Laws(self.x[rows], self.p[rows], self.size[rows], self.ratio[rows])

    def log_integrals(self, tau: Floats, taking: Taking) -> Floats:
        """More than log N(tau) / (2 pi), of every law (rows) at every tau, from moments (see module)."""
        step = max(1, _AT_ONCE // (self.x.shape[1] * tau.size))
        parts = [
            self._log_integrals(slice(first, first + step), tau, taking)
            for first in range(0, len(self.x), step)
        ]
        return np.concatenate(parts) if parts else np.zeros((0, tau.size))

    def log_bounds(self, tau: Floats, users: int) -> Floats:
        """log of N(tau) / (2 pi users) for every law (rows) and its own taus, rounded up.

        With tau X in place of X, N(tau) is N(1) / tau."""
        each, flat = self.some(np.repeat(np.arange(len(tau)), tau.shape[1])), tau.ravel()[:, None]
        scaled = Laws(each.x * flat, each.p, each.size * flat, each.ratio)
        found = scaled.log_integrals(np.ones(1), Taking(float(users), 1.0, 0.0)) - np.log(flat * users)
        return np.asarray(found + gamma(_UNITS) * (1.0 + np.abs(found))).reshape(tau.shape)

    def _log_integrals(self, part: slice, tau: Floats, taking: Taking) -> Floats:
        x, p, size = self.x[part], self.p[part], self.size[part]
        exponent = x[:, None, :] * tau[:, None]
        top = np.where(p > 0.0, x, -math.inf).max(axis=1)[:, None] * tau
        mass = np.exp(np.minimum(exponent - top[:, :, None], 0.0)) * p[:, None, :]
        mass[mass < _NOTHING] = 0.0
        sums = mass.sum(axis=2)
        log_phi = top + np.log(positive(sums))
        mass /= positive(sums)[:, :, None]
        moment = [np.einsum("ltv,lv->lt", mass, power) for power in (size, size**2, (size**2) ** 2)]
        mean = np.einsum("ltv,lv->lt", mass, x)
        square = (x[:, None, :] - mean[:, :, None]) ** 2
        variance, fourth = (mass * square).sum(axis=2), (mass * square**2).sum(axis=2)
        unit = gamma(_UNITS + 4 * x.shape[1])
        # Norms, as above; the mean is off by ``off`` too, and by what masses are off.
        units = _mass_units(tau, mass, size[:, None, :])
        deviation, off = np.sqrt(variance), unit * np.sqrt(up(moment[1], units))
        low = np.maximum(down(deviation, 2.0 * units, tiny=0.0) - 2.0 * off, 0.0) ** 2
        high = (np.sqrt(up(variance + _dropped(tau, x.shape[1], 2), units)) + off) ** 2
        norm = np.sqrt(np.sqrt(up(fourth + _dropped(tau, x.shape[1], 4), units)))
        own = unit * np.sqrt(np.sqrt(up(moment[2], units)))
        most = (norm + own + 2.0 * off + gamma(units) * deviation) ** 4
        k = positive(most / (12.0 * positive(low)) + 0.25 * high)
        log_all, share = taking.mixed(log_phi, tau)
        users, cores = taking.users, (low[:, :, None], k[:, :, None])
        if x.shape[1] > _FEW_VALUES:
            inner = self._cores(part, mass, units)
            cores = np.concatenate([cores[0], inner[0]], axis=2), np.concatenate([cores[1], inner[1]], axis=2)
        pairs = self._returns(part, mass, users * share, units)
        left = inside(tau, users * share[:, :, None] * cores[0], cores[1], *pairs)
        error = users * 16.0 * unit * (1.0 + tau * moment[0])
        found = users * log_all + np.log(up(left / (2.0 * math.pi), operations=_UNITS)) + error
        return np.where(units <= _MOST_UNITS, found, math.inf)

    def _cores(self, part: slice, mass: Floats, units: Floats) -> tuple[Floats, Floats]:
        """v from below and k from above of the values within some radii of zero, the last axis (see module).

        With the difference D of two values of a core, v is E[D^2]/2 and k E[D^4]/(24 v), over both in it."""
        x, size, unit = self.x[part], self.size[part], gamma(_UNITS + 4 * self.x.shape[1])
        inner = np.abs(x)[:, None, :] <= np.abs(x).max(axis=1)[:, None, None] * _CORES[:, None]
        two, four = x * x, size * size
        powers = np.stack([np.ones_like(x), x, two, two * x, two * two, four, four * four], axis=1)
        m0, m1, m2, m3, m4, square, fourth = np.moveaxis(_within(mass, inner, powers), 3, 0)
        # Each sum is off by ``off`` of what it is with |x|; by Cauchy and Schwarz products are at most these.
        off = gamma(units + _UNITS + 4 * x.shape[1])[:, :, None]
        second, last = m0 * m2, m0 * m4
        spread = np.maximum(second - m1 * m1 - 8.0 * off * second, 0.0)
        bend = np.maximum(last - 4.0 * m1 * m3 + 3.0 * m2 * m2, 0.0) + 32.0 * off * last
        # Norms, as above: of D, which is off by what both values are.
        low = down(np.sqrt(spread), _UNITS) - up(4.0 * unit * np.sqrt(m0 * square), _UNITS)
        high = np.sqrt(np.sqrt(2.0 * bend)) + 4.0 * unit * np.sqrt(np.sqrt(m0 * fourth))
        variance = down(np.maximum(low, 0.0) ** 2, _UNITS)
        k = up(high**4 / (24.0 * positive(variance)), _UNITS)
        return variance, np.where(variance > 0.0, positive(k), _NO_CORE)

    def _returns(self, part: slice, mass: Floats, users: Floats, units: Floats) -> tuple[Floats, Floats]:
        """Of two values: the share of a period that their waves leave, at most; how far they lie apart.

        The one of the largest tilted mass, and that which varies most from it (see module)."""
        x, size = self.x[part][:, None, :], self.size[part][:, None, :]
        law, at = np.arange(mass.shape[0])[:, None], np.arange(mass.shape[1])
        first = mass.argmax(axis=2)
        doubt = gamma(_UNITS + 4 * x.shape[2]) * (size + size[law, 0, first][:, :, None])
        apart = np.maximum(np.abs(x - x[law, 0, first][:, :, None]) - doubt, 0.0)
        second = (mass * apart**2).argmax(axis=2)
        both = down(mass[law, at, first] * mass[law, at, second] * users, 2.0 * units + 4.0, tiny=0.0)
        share = np.minimum(np.sqrt(math.pi / (8.0 * positive(both))), 1.0)
        return share, apart[law, at, second]
