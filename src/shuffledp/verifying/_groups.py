"""One person among others who hide with different probabilities, in balls: T21, by Theorem V4.

W has a law nu of mean mu, b_i are coins of the others, W_0, W_1, ... copies of W, blurred by eta. For any
theta > 0 and step, s_k = theta + i k step and Y = 2 pi / step,

    E[W_0 1{W_0 + sum of b_i W_i > 0}] <= (step / 2 pi) sum over k of E[W e^{s_k W}] G(E e^{s_k W}) / s_k
                                          + (-mu)_+ e^{-theta Y} / (1 - e^{-theta Y}),

G(z) the product of all 1 - g_i + g_i z. Floats choose theta, step and blur. Among few
people, and of few values, it is summed up by how many coins fall on 1."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from flint import acb, arb, arb_poly

from shuffledp.verifying._balls import positive
from shuffledp.verifying._guesses import lowest
from shuffledp.verifying._two_values import TwoValues
from shuffledp.verifying._variable import Variable

_LOSSES = 2e-3, 2e-4, 2e-5, 2e-6  # speed: of a blur
_SPARE_DEPTH = 15.0  # speed
_MOST_FREQUENCIES = 50_000  # speed
_MOST_OUTCOMES = 300_000  # speed
_DEPTH = 64  # tightness: nats at which numbers of coins are rare

Others = Sequence[tuple[arb, int]]
"""(g, how many)."""


def among_groups(law: Variable, others: Others, enough: arb) -> arb:
    """An upper bound of the left side of the module, refined until it is below ``enough``."""
    best = law.mean_above(arb(0))
    for loss in _LOSSES:
        if best <= enough or not best > 0:
            break
        sum_ = _Sum.of(law, others, loss)
        if sum_.last > _MOST_FREQUENCIES:
            break
        best = best.min(sum_.upper())
    return best if best <= enough else best.min(_by_number(law, others, enough))


def _by_number(law: Variable, others: Others, enough: arb) -> arb:
    """By how many coins fall on 1: given m - 1, it is (1/m) E[(W_1 + ... + W_m)_+], which falls with m.

    One where there are too many outcomes."""
    value, total, seen, outcomes = law.mean_above(arb(0)), arb(0), arb(0), 0
    for number, mass in enumerate(_numbers(others)):
        if number:
            counted = TwoValues.of(law.values, law.masses, law.rest, number + 1, enough)
            outcomes += _MOST_OUTCOMES if counted is None else counted.outcomes
            if counted is None or outcomes > _MOST_OUTCOMES:
                return arb(1)
            value = counted.upper()
        total, seen = total + mass * value, seen + mass
    return total + positive(1 - seen) * value


def _numbers(others: Others) -> list[arb]:
    """Probabilities that 0, 1, ... coins fall on 1, but for rare large numbers: any end is valid."""
    mean = sum(float(g) * people for g, people in others)
    end = 2 + math.ceil(mean + _DEPTH / 3 + math.sqrt(2 * _DEPTH * mean))
    found = arb_poly([1])
    for g, people in others:
        heads = [
            arb.bin_uiui(people, k) * g**k * (1 - g) ** (people - k) for k in range(min(people + 1, end))
        ]
        found = arb_poly((found * arb_poly(heads)).coeffs()[:end])
    return found.coeffs()


@dataclass(frozen=True)
class _Sum:
    law: Variable
    others: Others
    theta: float
    step: float
    blur: float
    dead: float
    """|E e^{sW}| relative to that of theta, below which frequencies are only bounded."""
    last: int

    @classmethod
    def of(cls, law: Variable, others: Others, loss: float) -> _Sum:
        people = [(float(g), count) for g, count in others]
        theta = _tilt(law, people)
        log, mean, variance = law.cumulants(theta)
        hidden = [(g * math.exp(log) / (1.0 - g + g * math.exp(log)), count) for g, count in people]
        draws = max(sum(q * count for q, count in hidden), 1.0)
        square = variance + mean * mean
        total = sum(count * (q * square - (q * mean) ** 2) for q, count in hidden)
        spread, depth = math.sqrt(total + variance), math.log(1000.0 / loss)
        window = math.sqrt(2.0 * depth) * spread
        if window > theta * spread**2:
            window = depth / theta + 0.5 * theta * spread**2
        step = 2.0 * math.pi / (window + 4.0 / theta + depth / theta)
        blur = math.sqrt(2.0 * loss / draws) / theta
        dead = math.exp(-(depth + _SPARE_DEPTH) / draws)
        last = math.ceil(math.sqrt(2.0 * (depth + _SPARE_DEPTH) / draws) / (blur * step))
        return cls(law, others, theta, step, blur, dead, last)

    def _product(self, z: acb) -> acb:
        result = acb(1)
        for g, count in self.others:
            result *= (1 - g + g * z) ** count
        return result

    def upper(self) -> arb:
        theta, step, blur = arb(self.theta), arb(self.step), arb(self.blur)
        first = self.law.transform(acb(theta)).real
        raised = (blur**2 * theta**2 / 2).exp()
        dead = arb(self.dead) * first
        deepest = arb(self._product(acb(dead * raised)).abs_upper())
        rows = list(zip(self.law.values, self.law.masses, strict=True))
        size = sum((abs(v) * m * (theta * v).exp() for v, m in rows), arb(0))
        slope = size.upper()
        total, left_out, k = arb(0), arb(0), 0
        while k <= self.last:
            s = acb(theta, k * step)
            phi = self.law.transform(s)
            # |phi| moves with w by E|W e^{theta W}| at most.
            radius = ((dead - arb(phi.abs_upper())) / slope).lower()
            if k and radius > 0:
                skipped = min(1 + int(float((radius / step).floor().lower())), self.last + 1 - k)
                left_out += skipped * deepest * raised * (size / (k * step) + 2 * blur**2 * first)
                k += skipped
                continue
            grown = ((blur * s) ** 2 / 2).exp()
            moment = sum((v * m * (s * v).exp() for v, m in rows), acb(0)) + blur**2 * s * phi
            total += (1 if k == 0 else 2) * (moment * grown * self._product(phi * grown) / s).real
            k += 1
        # Beyond, the blur alone makes all dead: |E e^{sW}| <= first e^{-(blur w)^2/2} raised.
        end = self.last * step
        least = arb(self._product(acb(first * raised * (-((blur * end) ** 2) / 2).exp())).abs_upper())
        further = 1 + (arb.pi() / 2).sqrt() / (blur * step)
        left_out += least * raised * (size / end + 2 * blur**2 * first) * further
        decay = (-theta * 2 * arb.pi() / step).exp()
        negative = positive(-sum((v * m for v, m in rows), arb(0)))
        found = (step / (2 * arb.pi()) * (total + 2 * left_out)).upper()
        return found + negative * decay / (1 - decay)


def _tilt(law: Variable, people: Sequence[tuple[float, int]]) -> float:
    """Near the minimum of log G(E e^{theta W}) - 2 log theta."""

    def height(log_theta: float) -> float:
        log, *_ = law.cumulants(math.exp(log_theta))
        grown = math.exp(min(log, 700.0))
        return sum(count * math.log1p(g * (grown - 1.0)) for g, count in people) - 2.0 * log_theta

    return math.exp(lowest(height, math.log(600.0 / law.guess.largest)))
