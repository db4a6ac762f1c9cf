"""Tails and excesses of fair signs against ball arithmetic, in every way they are computed."""

import math
import random
from typing import Any

import numpy as np
import pytest
from flint import arb, fmpq

from oracles import balls
from shuffledp._certified.signs import (
    _SHORT,
    _half_tail_ratio,
    _log_half_pmf,
    mean_of_signs_excess,
    signs_excess_table,
)
from shuffledp._certified.tails import CLOSE, ROUGH, TailRule, cut_at

pytestmark = pytest.mark.quick

HALF = arb(1) / 2


def relative(found: float, exact: arb) -> float:
    return abs(float((arb(float(found)) - exact) / exact))


def fair_tails(n: int, a: int) -> tuple[arb, arb]:
    """(Pr[Bin(n, 1/2) = a], Pr[Bin(n, 1/2) >= a] up to 1e-40 of it)."""
    mass = balls.binomial_mass(n, HALF, a)
    total, term = arb(0), mass
    for j in range(a, n + 1):
        total += term
        term = term * (n - j) / (j + 1)
        if term < total * arb(10) ** -40:
            break
    return mass, total


def tail_cases() -> list[tuple[int, int]]:
    rng = random.Random(1)
    sizes = [1, 2, 3, 23, 24, 25, 26, 51, 52, 53, 54, 1000, 10**5, 10**9, 10**12]
    found = []
    for n in sizes:
        steps = {0, n, n // 4, rng.randint(0, n), round(rng.uniform(0.0, 4.0) * math.sqrt(n))}
        found += [(n, min(n // 2 + 1 + step, n)) for step in steps]
    # From the middle of a vast crowd the exact sum takes too many terms.
    return [(n, a) for n, a in found if a == n or n <= 10**5 or a - n / 2 > n / 100]


@pytest.mark.parametrize("rule", [CLOSE, ROUGH])
def test_tails_of_fair_signs_are_as_close_as_claimed(rule: TailRule) -> None:
    for n, a in tail_cases():
        at = np.array([float(n)]), np.array([float(a)])
        mass, tail = fair_tails(n, a)
        log_mass, doubt = _log_half_pmf(*at)
        assert abs(float(arb(float(log_mass[0])) - mass.log())) <= doubt[0]
        assert relative(_half_tail_ratio(*at, rule)[0], tail / mass) <= rule.error


@pytest.mark.parametrize("rule", [CLOSE, ROUGH], ids=["close", "rough"])
@pytest.mark.parametrize("count", [3, 25, 33, 60, 200, 5000])
def test_tail_ratios_are_within_the_error_of_their_rule(count: int, rule: Any) -> None:
    middle = count // 2 + 1
    for a in sorted({middle, middle + 1, (middle + count) // 2, count - 1, count}):
        term, total = arb(1), arb(0)
        for k in range(a, count + 1):
            total += term
            term *= arb(fmpq(count - k, k + 1))
        found = _half_tail_ratio(np.array([float(count)]), np.array([float(a)]), rule)
        assert abs(arb(float(found[0])) / total - 1) <= rule.error


def excess(n: int, y: float, short: float) -> arb:
    """E[(Y - y)_+] for the mean Y of n fair signs; 1 - y as given."""
    total = n * balls.binomial_mass(n, HALF, n) * arb(short)
    for j in range(n // 2, n):
        gap = arb(2 * j - n) - n * arb(y)
        if gap > 0:
            total += gap * balls.binomial_mass(n, HALF, j)
    return total / n


def test_the_excess_of_fair_signs_is_within_the_claimed_error_in_every_way_it_is_computed() -> None:
    rng = random.Random(2)
    counts = np.array([1.0, 2.0, 3.0, 24.0, 25.0, 26.0, 60.0, 111.0])
    ys = [0.0, 1 / 3, 0.5, *(rng.random() for _ in range(4)), 1 - 1e-6, 1 - 1e-13]
    y = np.array(ys)[:, None]
    short = 1.0 - y
    ways = [
        mean_of_signs_excess(counts, y, short, CLOSE),
        mean_of_signs_excess(counts, y, short, ROUGH),
        signs_excess_table(counts, y, short),
    ]
    for i, j in np.ndindex(y.shape[0], counts.size):
        exact = excess(int(counts[j]), ys[i], float(short[i, 0]))
        for value, error, *_ in ways:
            assert abs(float(arb(float(value[i, j])) - exact)) <= error[i, j] + 1e-300


@pytest.mark.parametrize("count", [1.0, 2.0, 7.0, 30.0, 101.0])
def test_the_excess_of_a_mean_of_signs_is_its_sum(count: float) -> None:
    y = np.array([0.0, 0.1, 0.4, 0.9, 1.0 - 1e-12])
    n = int(count)
    a = np.arange(n + 1)
    weight = np.array([math.comb(n, int(k)) for k in a]) / 2.0**n
    exact = (np.maximum((2 * a - n) / n - y[:, None], 0.0) * weight).sum(axis=1)
    counts = np.array([count])
    for value, error, *_ in (
        mean_of_signs_excess(counts, y[:, None], 1.0 - y[:, None]),
        signs_excess_table(counts, y[:, None], 1.0 - y[:, None]),
        mean_of_signs_excess(counts, y[:, None], 1.0 - y[:, None], ROUGH),
    ):
        assert np.all(np.abs(value[:, 0] - exact) <= error[:, 0] + 1e-14 * exact)


@pytest.mark.parametrize("count", [9500, 20_001, 400_000])
@pytest.mark.parametrize("away", [0.0, 0.3, 2.0, 8.0])
def test_the_rough_tail_of_many_signs_where_the_exponent_is_a_series(count: int, away: float) -> None:
    a = count // 2 + 1 + int(away * 0.5 * math.sqrt(count))
    n, at = np.array([float(count)]), np.array([[float(a)]])
    assert cut_at(2.0 * at - 1.0 - n, 2.0 * (n - at), ROUGH.cut).max() <= _SHORT
    single, tail = fair_tails(count, a)
    assert relative(_half_tail_ratio(n, at, ROUGH)[0, 0], tail / single) <= ROUGH.error
