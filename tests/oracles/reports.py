"""What randomizers of categories report, by definition: all reports, exact probabilities.

For a few categories, every possible report in its encoding as an array, the probability of each under
each input, and the categories that it supports. Weights are whole numbers out of 2^64.

>>> known = kary(3, WORD // 2, WORD // 4)
>>> known.reports.tolist(), [str(p) for p in known.matrix[0]]
([0, 1, 2], ['1/2', '1/4', '1/4'])
>>> [tuple(map(str, masses)) for masses in known.types(0, 1)]
[('1/4', '1/4', '1/4'), ('1/4', '1/2', '1/4'), ('1/2', '1/4', '1/4')]
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, product
from math import comb, prod
from typing import Any

import numpy as np

from oracles.hockey import ONE, ZERO

WORD = 2**64
Type = tuple[Fraction, Fraction, Fraction]


@dataclass(frozen=True)
class Reports:
    """`reports[y]` has probability `matrix[x][y]` under input x, and supports `sets[y]`."""

    reports: np.ndarray
    matrix: tuple[tuple[Fraction, ...], ...]
    sets: tuple[frozenset[int], ...]

    def types(self, x: int, other: int) -> list[Type]:
        """(own, other, clone) of all reports, those of equal ratios added, in order."""
        merged: dict[Any, list[Fraction]] = defaultdict(lambda: [ZERO, ZERO, ZERO])
        for column in zip(*self.matrix, strict=True):
            masses = (column[x], column[other], min(column))
            total = sum(masses)
            if total:
                key = tuple(mass / total for mass in masses)
                merged[key] = [a + b for a, b in zip(merged[key], masses, strict=True)]
        return sorted((a, b, c) for a, b, c in merged.values())

    @property
    def ratio(self) -> Fraction:
        """The exact e^epsilon0."""
        return max(max(column) / min(column) for column in zip(*self.matrix, strict=True))


def kary(k: int, truth: int, other: int) -> Reports:
    """The truth has one weight, every other value another."""
    total = truth + (k - 1) * other
    rows = [[Fraction(truth if x == y else other, total) for y in range(k)] for x in range(k)]
    return _gather(np.arange(k), rows, [{y} for y in range(k)])


def unary(k: int, own: int, other: int) -> Reports:
    """One bit per category: a one has weight ``own`` for the own category, ``other`` for the rest."""
    words = list(product((0, 1), repeat=k))

    def chance(bit: int, one: int) -> Fraction:
        return Fraction(one if bit else WORD - one, WORD)

    rows = [
        [prod(chance(bit, own if v == x else other) for v, bit in enumerate(bits)) for bits in words]
        for x in range(k)
    ]
    sets = [{v for v, bit in enumerate(bits) if bit} for bits in words]
    return _gather(_packed(sets, k), rows, sets)


def subset_selection(k: int, size: int, weight: int) -> Reports:
    """Sets of one size; ``weight`` is that of all sets with the own category."""
    p = Fraction(weight, WORD)
    sets = [set(chosen) for chosen in combinations(range(k), size)]
    inside, outside = p / comb(k - 1, size - 1), (1 - p) / comb(k - 1, size)
    rows = [[inside if x in chosen else outside for chosen in sets] for x in range(k)]
    return _gather(_packed(sets, k), rows, sets)


def hadamard(k: int, weight: int) -> Reports:
    """Columns of a Hadamard matrix; ``weight`` is that of all columns where the own row is +1."""
    K, p = next(2**i for i in range(64) if 2**i > k), Fraction(weight, WORD)
    plus = [[(r & y).bit_count() % 2 == 0 for y in range(K)] for r in range(1, k + 1)]
    rows = [[(p if entry else 1 - p) / (K // 2) for entry in row] for row in plus]
    return _gather(np.arange(K), rows, [{x for x, row in enumerate(plus) if row[y]} for y in range(K)])


def local_hashing(k: int, g: int, truth: int, other: int) -> Reports:
    """All linear functions of the base-g digits, each with g-ary randomized response."""
    m = next(m for m in range(1, 64) if g**m >= k)

    def digits(number: int) -> list[int]:
        return [number // g**i % g for i in range(m)]

    def hashed(function: int, x: int) -> int:
        return sum(a * b for a, b in zip(digits(function), digits(x), strict=True)) % g

    pairs = [(function, symbol) for function in range(g**m) for symbol in range(g)]
    total = (truth + (g - 1) * other) * g**m
    rows = [[Fraction(truth if hashed(f, x) == s else other, total) for f, s in pairs] for x in range(k)]
    sets = [{x for x in range(k) if hashed(f, x) == s} for f, s in pairs]
    return _gather(np.array([f * g + s for f, s in pairs]), rows, sets)


def _packed(sets: Iterable[set[int]], k: int) -> np.ndarray:
    """Category v is bit v % 8 of byte v // 8."""
    rows = [
        [sum(1 << (v % 8) for v in chosen if v // 8 == byte) for byte in range(-(-k // 8))] for chosen in sets
    ]
    return np.array(rows, dtype=np.uint8)


def _gather(reports: np.ndarray, rows: list[list[Fraction]], sets: list[set[int]]) -> Reports:
    assert all(sum(row) == ONE for row in rows)
    matrix = tuple(tuple(row) for row in rows)
    return Reports(reports, matrix, tuple(frozenset(chosen) for chosen in sets))
