"""About a law, in floats: what chooses tilts and cuts. Any choice is valid, so nothing here is rounded."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from operator import mul

_FEW, _ALIKE = 24, 0.1  # speed: more values are put together where they differ by less than a share
_RARE = 0.1  # speed: of their size, or of one that so many exceed
_NEWTON, _CLOSE = 40, 1e-3  # speed: of the logarithm of a tilt
_GOLDEN, _STEPS = 0.618034, 22  # speed: of a search for it


def _usual(rows: list[tuple[float, float]]) -> float:
    """A size that few exceed: rare values may be larger by any power of ten."""
    left = _RARE * sum(m for _, m in rows)
    for v, m in sorted(rows, key=lambda row: -abs(row[0])):
        left -= m
        if left < 0.0:
            return abs(v)
    return 0.0


@dataclass(frozen=True)
class Guess:
    """Values and their masses, zero among them."""

    values: list[float]
    masses: list[float]

    @classmethod
    def of(cls, rows: Iterable[tuple[float, float]]) -> Guess:
        told = sorted((v, m) for v, m in rows if m > 0.0)
        if len(told) <= _FEW:
            return cls([v for v, _ in told], [m for _, m in told])
        size = _usual(told)
        values, masses, end = list[float](), list[float](), -math.inf
        for v, m in told:
            if v <= end:
                total = masses[-1] + m
                values[-1] += (v - values[-1]) * m / total
                masses[-1] = total
            else:
                values.append(v)
                masses.append(m)
                end = v + _ALIKE * max(size, abs(v))
        return cls(values, masses)

    @cached_property
    def largest(self) -> float:
        """Of its values; if none is positive, of their sizes."""
        return self.values[-1] if self.values[-1] > 0.0 else -self.values[0]

    def cumulants(self, theta: float) -> tuple[float, float, float]:
        """log E e^{theta X} and two derivatives."""
        values = self.values
        top = theta * (values[-1] if theta > 0.0 else values[0])
        weights = [m * math.exp(theta * v - top) for v, m in zip(values, self.masses, strict=True)]
        total = sum(weights)
        mean = sum(map(mul, weights, values)) / total
        away = [v - mean for v in values]
        return top + math.log(total), mean, sum(map(mul, map(mul, weights, away), away)) / total

    def cut_at(self, end: float) -> Guess:
        """No value beyond ``end``."""
        return Guess([min(v, end) for v in self.values], self.masses)

    def tilt(self, n: int, shift: float = 0.0) -> float:
        """Near the minimum of theta shift + n log E e^{theta X} - 2 log theta, which is convex in theta: by
        Newton's steps for the logarithm of theta, halved where they leave what is known."""
        top = max(shift, self.values[-1])
        if not (top > 0.0 or self.largest > 0.0):
            return 1.0  # nothing but zero: all tilts are alike
        low, high = -200.0, math.log(600.0 / (top if top > 0.0 else self.largest))  # nothing overflows
        _, mean, variance = self.cumulants(0.0)
        drift, bend = shift + n * mean, max(n * variance, 1e-300)
        log = math.log(max((math.sqrt(drift * drift + 8.0 * bend) - drift) / (2.0 * bend), 1e-80))
        for _ in range(_NEWTON):
            log = log if low < log < high else 0.5 * (low + high)
            theta = math.exp(log)
            _, mean, variance = self.cumulants(theta)
            first, second = (shift + n * mean) * theta, n * variance * theta * theta
            low, high = (log, high) if first < 2.0 else (low, log)
            step = (2.0 - first) / (first + second) if first + second > 0.0 else math.inf
            log += step
            if abs(step) < _CLOSE or high - low < _CLOSE:
                break
        return theta


def lowest(height: Callable[[float], float], high: float) -> float:
    """About where a function that falls and then rises is lowest."""
    low = -60.0
    a, b = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    at_a, at_b = height(a), height(b)
    for _ in range(_STEPS):
        if at_a < at_b:
            high, b, at_b = b, a, at_a
            a = high - _GOLDEN * (high - low)
            at_a = height(a)
        else:
            low, a, at_a = a, b, at_b
            b = low + _GOLDEN * (high - low)
            at_b = height(b)
    return 0.5 * (low + high)
