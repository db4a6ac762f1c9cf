"""Tails of Bin(m, q) + Bin(l, 1 - q) for many (m, l) at once, certified.

The special case of _certified.lattice_sum (see there for the method and its three errors) in which
all problems share the tilt: the two transforms are computed once per frequency, and their moduli
fall with the frequency (|1 - p + p e^{iw}|^2 = 1 - 2 p (1 - p)(1 - cos w)), so one comparison tells
which frequencies matter.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from shuffledp._certified.frequencies import DEPTH, MAX_TERMS, Complexes
from shuffledp._certified.lattice_sum import ERROR_UNITS, TERM_UNITS, Result, log_one_plus, one_minus_exp
from shuffledp._certified.rounding import CALL, Floats, gamma, positive
from shuffledp.errors import NoCertificateError

# Distances from the tilt that Chernoff's bound is tried at (speed): in standard deviations, in tilts.
_CHERNOFF = (3.0, 6.0, 9.0, 13.0, 20.0)
_SHARES = (0.3, 0.7, 1.0)
_LARGEST_TILT = 600.0  # speed: beyond, exponentials overflow
_FIRST_FREQUENCIES = 64  # speed
_FARTHEST = 50.0  # speed: exponents beyond which a Taylor polynomial says nothing


@dataclass(frozen=True)
class TwoBinomials:
    """F ~ Bin(m, keep) + Bin(l, lie), keep + lie = 1, rows of (m, l); tilted by theta > 0.

    Each truncation is below e^-``depth`` of the tilted total."""

    m: Floats
    others: Floats
    keep: float
    lie: float
    theta: float
    depth: float = DEPTH

    def tails(
        self, at_one: Floats, at_zero: Floats, threshold: Floats, shifts: Sequence[int] = (0,)
    ) -> list[Result]:
        """For each pair of weights: at_one Pr[F + 1 >= t] + at_zero Pr[F >= t], t = threshold + shift.

        ``at_one`` and ``at_zero`` hold a line per wanted pair, of a number per row (or one for all). Columns
        of the results are shifts."""
        moves = np.asarray(shifts, dtype=np.float64)
        weights = np.abs(at_one).max(axis=0), np.abs(at_zero).max(axis=0)
        points = self._points(*weights, threshold) + 2 * int(np.abs(moves).max())
        omega, powers, doubt = self._powers(points, float(np.abs(moves).max()))
        modulus = np.abs(powers)
        turned = powers * np.exp(-1j * _reduced(threshold, omega, points))
        size = np.hypot(self.theta, omega)
        share = np.where(omega == 0.0, 1.0, 2.0) / points
        kernel = share / one_minus_exp(np.full_like(omega, self.theta), omega)
        log_total = self._log_total(np.array(self.theta))
        relative = self._prefactor_error(threshold, log_total)
        weight = kernel[:, None] * np.exp(-(self.theta + 1j * omega)[:, None] * moves)
        results = []
        for one, zero in zip(at_one[:, :, None], at_zero[:, :, None], strict=True):
            numerator = one * np.exp(self.theta + 1j * omega) + zero
            mass = np.abs(one) * math.exp(self.theta) + np.abs(zero)
            value = ((turned * numerator) @ weight).real
            own = ERROR_UNITS * (1.0 + size) * mass * (1.0 + doubt)
            error = (modulus * (np.abs(numerator) * doubt + own)) @ np.abs(weight)
            cut = math.exp(-self.depth) * (6.0 + 2.0 / -math.expm1(-self.theta)) * mass
            cut = cut * np.exp(-self.theta * moves)
            error += cut
            error = error * np.exp(relative) + np.abs(value) * np.expm1(2.0 * relative)
            results.append(Result(value, error, log_total - self.theta * threshold, cut))
        return results

    def ridge(self, one: Floats, zero: Floats, threshold: Floats, grid: Ridge) -> tuple[Floats, Floats]:
        """(bounds, better thresholds) for every row.

        Bounds of the largest one Pr[F + 1 >= t] + zero Pr[F >= t], one > 0 > zero, over all t and all
        datasets of as many users with a whole m' within ``grid.half`` of m (docs/proofs/binary.md, the
        ridge). Infinite where it was not proved that the best t is among those looked at."""
        moves, width = grid.moves, 0.5 * grid.step
        first, second = self._log_transforms()
        grown = math.exp(self.theta)
        slope = self.keep * grown / (self.keep * grown + self.lie) - self.lie * grown / (
            self.lie * grown + self.keep
        )
        reach = float(moves[-1]) + width
        users = self.m + self.others
        m = np.stack([np.clip(self.m + a, 0.0, users) for a in (-grid.half, grid.half) * 2], axis=1)
        block = TwoBinomials(m, users[:, None] - m, self.keep, self.lie, self.theta, self.depth)
        t = (threshold - slope * self.m)[:, None] + slope * m + np.array([-reach, -reach, reach, reach])
        one, zero = one[:, None], zero[:, None]
        points = block._points(one, -zero, t) + 2
        omega, powers, doubt = self._powers(points, float(moves[-1]), block)
        s = self.theta + 1j * omega
        logs = [self._log_ratio(p, omega) for p in (self.keep, self.lie)]
        bend = (first - second) + (logs[0] - logs[1]) - slope * s
        # Of a sum e^x, x = (m' - m) bend - u s: what the terms beyond x^2/2 add, and the rounding of x.
        size = np.abs(s)
        far = grid.half * np.abs(bend) + width * size
        if not np.all(far < _FARTHEST):
            raise NoCertificateError("blocks of datasets are too wide for their Taylor polynomials")
        least = np.minimum(*(np.exp(log_phi.real) for log_phi in logs))
        rough = 4.0 * ERROR_UNITS * (1.0 + max(self._roughness()) / positive(least))
        left_out = np.exp(far) * (far**3 / 6.0 + rough * (grid.half + width) * size)
        basis = np.stack([np.ones_like(s), bend, s, bend * bend, bend * s, s * s], axis=1)
        turned = powers * np.exp(-1j * _reduced(threshold, omega, points))
        numerator = one * np.exp(s) + zero
        mass = one * grown - zero
        own = ERROR_UNITS * (1.0 + size) * mass * (1.0 + doubt)
        share = np.where(omega == 0.0, 1.0, 2.0) / points
        kernel = share / one_minus_exp(np.full_like(omega, self.theta), omega)
        log_total = self._log_total(np.array(self.theta))
        relative = self._prefactor_error(threshold, log_total)
        cut = math.exp(-self.depth) * (6.0 + 2.0 / -math.expm1(-self.theta)) * mass * math.exp(float(far[0]))

        b = grid.half
        sizes = np.array([0.0, b, width, 0.5 * b * b, b * width, 0.5 * width**2])
        shift = np.exp(-s[:, None] * moves)
        turned *= numerator
        lost = np.abs(numerator) * (left_out + np.exp(far) * (doubt + gamma(64))) + np.exp(far) * own
        lost *= np.abs(powers)

        def expanded(kernel: Complexes) -> tuple[Floats, Floats]:
            """(coefficients of the quadratic in m' - m and u, its error), for rows and moves."""
            weights = (kernel[:, None] * shift)[:, :, None] * basis[:, None, :]
            value = (turned @ weights.reshape(s.size, -1)).real.reshape(self.m.size, moves.size, 6)
            error = lost @ (np.abs(kernel)[:, None] * np.abs(shift))
            error = (error + 2.0 * cut * np.exp(-self.theta * moves)) * np.exp(relative)
            spread = np.abs(value[:, :, 0]) + np.abs(value) @ sizes
            return value, error + spread * np.expm1(2.0 * relative)

        value, error = expanded(kernel)
        concave = 0.5 * width**2 * np.maximum(-value[:, :, 5], 0.0)
        top = value[:, :, 0] + np.abs(value) @ sizes - concave + error
        # The best t of every m' is between two where the difference to the next is surely of either sign.
        change, doubtful = expanded(share.astype(np.complex128))
        doubtful = doubtful + np.abs(change) @ sizes
        right, left = moves + width > reach - 1.0, moves - width < 1.0 - reach
        proved = (change[:, right, 0] > doubtful[:, right]).all(axis=1)
        proved &= (change[:, left, 0] < -doubtful[:, left]).all(axis=1)
        scale = np.exp(np.minimum(log_total - self.theta * threshold, 300.0))
        better = threshold + np.rint(moves[value[:, :, 0].argmax(axis=1)])
        return np.where(proved, scale * np.maximum(top.max(axis=1), 0.0), np.inf), better

    def _log_total(self, theta: Floats) -> Floats:
        grown = np.expm1(theta)
        return np.asarray(self.m * np.log1p(self.keep * grown) + self.others * np.log1p(self.lie * grown))

    def _log_transforms(self) -> tuple[float, float]:
        grown = math.expm1(self.theta)
        return math.log1p(self.keep * grown), math.log1p(self.lie * grown)

    def _roughness(self) -> tuple[float, float]:
        """sum w (|z| e^{theta z} + min(|z|, 2/theta)) / phi(theta) of either law."""
        fixed = min(1.0, 2.0 / self.theta)
        grown = math.exp(self.theta)
        first, second = self._log_transforms()
        return (
            self.keep * (grown + fixed) * math.exp(-first),
            self.lie * (grown + fixed) * math.exp(-second),
        )

    def _prefactor_error(self, threshold: Floats, log_total: Floats) -> Floats:
        first, second = self._roughness()
        rounding = ERROR_UNITS * self.theta * (self.m * first + self.others * second)
        # Sums, products and the difference in log_scale; exp.
        units = 4.0 * np.abs(log_total) + 4.0 * self.theta * np.abs(threshold) + CALL
        relative = rounding + gamma(units)
        if not np.all(relative < 0.5):
            raise NoCertificateError("rounding errors outgrow the sum: the numbers are too large")
        return np.asarray(relative[:, None])

    def _points(self, one: Floats, zero: Floats, threshold: Floats) -> int:
        """Odd number of trapezoidal points, enough for every row (Chernoff), of weights of so much.

        Of two axes the second are the ends of what a row stands for, between which Chernoff's bound of one
        tilt is linear."""
        count = float((self.m + self.others).max(initial=0.0))
        spread = math.sqrt(1.0 + count * self.keep * self.lie)

        def most(found: Floats) -> Floats:
            return found.max(axis=-1) if self.m.ndim > 1 else found

        def reach(sign: float, distances: list[float]) -> Floats:
            """Of every row, beyond which distance little lies: the least that one of the tilts shows."""
            eta = np.array(distances).reshape(-1, *(1,) * self.m.ndim)
            shift = self.theta + sign * eta
            moment = self._log_total(shift) - self._log_total(np.array(self.theta))
            moment += np.log((one * np.exp(shift) + zero) / (one * math.exp(self.theta) + zero))
            return np.asarray(most((self.depth + moment) / eta - sign * threshold).min(axis=0))

        steps = [c / spread for c in _CHERNOFF if self.theta + c / spread <= _LARGEST_TILT]
        behind = reach(-1.0, [c / spread for c in _CHERNOFF] + [c * self.theta for c in _SHARES])
        beyond = reach(1.0, steps) if steps else np.full(len(self.m), np.inf)
        behind = np.maximum(np.minimum(behind, most(threshold + 1.0)), 1.0)
        beyond = np.minimum(beyond, most(self.m + self.others + 2.0 - threshold))
        needed = np.maximum(behind + self.depth / self.theta, beyond) + 2.0
        return int(2 * math.ceil(0.5 * float(needed.max())) + 1)

    def _powers(
        self, points: int, farthest: float, block: TwoBinomials | None = None
    ) -> tuple[Floats, Complexes, Floats]:
        """(omega, tilted transforms to the powers m and l (rows x omega), relative error of a term).

        With ``block``, the frequencies are those that matter for its rows."""
        block = block or self
        limit = (points + 1) // 2
        omega = 2.0 * np.pi * np.arange(min(limit, _FIRST_FREQUENCIES)) / points
        while True:
            logs = [self._log_ratio(p, omega) for p in (self.keep, self.lie)]
            if omega.size == limit or block._worst(logs)[-1] <= -(self.depth + 2.0):
                break
            if self.m.size * omega.size > MAX_TERMS // 16:
                raise NoCertificateError("too many frequencies carry mass")
            omega = 2.0 * np.pi * np.arange(min(limit, 2 * omega.size)) / points
        keep = int(np.searchsorted(-block._worst(logs), self.depth + 2.0)) + 1
        omega, logs = omega[:keep], [part[:keep] for part in logs]
        exponent = np.multiply.outer(self.m, logs[0])
        exponent += np.multiply.outer(self.others, logs[1])
        # |(q + d)^n - q^n| <= |q|^n (e^{n d/|q|} - 1), for the largest n and either coin; doubled for the
        # rounding of log q (see lattice_sum._powers).
        slack = [
            rough / positive(np.exp(log_phi.real))
            for log_phi, rough in zip(logs, self._roughness(), strict=True)
        ]
        count = float((self.m + self.others).max())
        change = 2.0 * count * ERROR_UNITS * np.hypot(self.theta, omega) * np.maximum(*slack)
        if not np.all(change < 1.0):
            raise NoCertificateError("rounding errors outgrow the sum: the numbers are too large")
        # One frequency's term, and as many additions as there are frequencies.
        units = TERM_UNITS + 32.0 * farthest + omega.size
        return omega, np.exp(exponent), np.expm1(change) + gamma(units)

    def _worst(self, logs: list[Complexes]) -> Floats:
        """An upper bound of every row's log-modulus at each frequency (falling)."""
        first, second = (part.real for part in logs)
        # m a + l b over all rows, a and b <= 0: by the fewest of either and the fewest together.
        spare = (self.m + self.others).min() - self.m.min() - self.others.min()
        fewest = self.m.min() * first + self.others.min() * second
        return np.asarray(fewest + max(spare, 0.0) * np.maximum(first, second))

    def _log_ratio(self, p: float, omega: Floats) -> Complexes:
        """log(phi(theta + i omega) / phi(theta)) of one coin with Pr[1] = p."""
        q = self.lie if p == self.keep else self.keep
        grown = p * math.exp(self.theta)
        tilted = grown / (grown + q)
        spread = tilted * (q / (grown + q))
        half = np.sin(0.5 * omega)
        shrink = -4.0 * spread * half * half
        re = -2.0 * tilted * half * half
        return log_one_plus(shrink, re, tilted * np.sin(omega))


@dataclass(frozen=True)
class Ridge:
    """Datasets within ``half`` of a row's m, and thresholds around its own: cells of ``step`` around each of
    ``moves`` (increasing, ``step`` apart)."""

    half: float
    step: float
    moves: Floats


def _reduced(threshold: Floats, omega: Floats, points: int) -> Floats:
    """2 pi r t / M reduced by whole turns in integer arithmetic."""
    r = np.arange(omega.size, dtype=np.int64)
    turns = np.multiply.outer(np.mod(threshold, points).astype(np.int64), r) % points
    return np.asarray(2.0 * np.pi * turns / points)
