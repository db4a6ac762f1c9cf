"""Directed steps against exact rationals, and what is assumed of library functions against balls."""

import math
import random
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx

from shuffledp._certified.rounding import (
    CALL,
    FUNCTIONS,
    LARGEST_EXPONENT,
    TINY,
    UNIT,
    additions,
    capped,
    down,
    gamma,
    positive,
    segment_totals,
    total,
    up,
    weighted,
)

pytestmark = pytest.mark.quick

COUNTS = (0.0, 0.5, 1.0, 2.0, 3.0, 7.0, 100.0, 1e4, 2.0**20 + 0.25, 1e9, 2.0**40, 2.0**52 - 4.0)


@pytest.fixture(autouse=True)
def precision() -> None:
    ctx.prec = 200


def numbers(count: int) -> list[float]:
    rng = random.Random(11)
    some = [math.ldexp(rng.uniform(0.5, 1.0), rng.randint(-990, 1000)) for _ in range(count)]
    return [*some, 1.0, 1.0 - UNIT, 1.0 + 2 * UNIT, 2.0**-990, 1e300]


@pytest.mark.parametrize("operations", COUNTS)
def test_a_step_covers_its_count_exactly(operations: float) -> None:
    shrink = 1 - Fraction(operations) * Fraction(UNIT)
    for y in numbers(2000):
        above, below = up(y, operations, tiny=0.0), down(y, operations, tiny=0.0)
        assert Fraction(above) * shrink >= Fraction(y)
        assert Fraction(below) <= Fraction(y) * shrink
        assert up(y, operations) >= above
        assert down(y, operations) <= below


@pytest.mark.parametrize("operations", COUNTS)
def test_a_step_is_hardly_longer_than_needed(operations: float) -> None:
    shrink = 1 - Fraction(operations) * Fraction(UNIT)
    for y in numbers(500):
        if y < 1e-250 or y > 1e280:
            continue
        assert Fraction(up(y, operations)) * shrink <= Fraction(y) * (1 + 16 * Fraction(UNIT))
        assert Fraction(down(y, operations)) >= Fraction(y) * (shrink - 8 * Fraction(UNIT))


@pytest.mark.parametrize("operations", COUNTS)
def test_gamma_is_rounded_up(operations: float) -> None:
    count = Fraction(operations) * Fraction(UNIT)
    assert Fraction(gamma(operations)) >= count / (1 - count)


def test_arrays_are_stepped_like_their_elements() -> None:
    y = np.array(numbers(50))
    counts = np.arange(y.size, dtype=np.float64)
    for step in (up, down):
        assert list(step(y, counts)) == [step(a, k) for a, k in zip(y.tolist(), counts, strict=True)]
        assert isinstance(step(0.5, 3), float)


def test_underflow_is_covered_and_a_true_zero_stays() -> None:
    smallest = math.ulp(0.0)
    assert up(0.0, 3) == TINY
    assert down(smallest, 3) == down(0.0, 3) == 0.0
    assert up(0.0, 3, tiny=0.0) == down(0.0, 3, tiny=0.0) == 0.0
    terms = np.full(10**6, 1e-200) * 1e-140  # each lost completely
    assert up(float(terms.sum()), 10**6) >= Fraction(10) ** (6 - 340)


def exact_chain(rng: random.Random, operations: int) -> tuple[float, Fraction]:
    """A random expression of numbers >= 0, in doubles and in rationals."""
    value = rng.random()
    exact = Fraction(value)
    for _ in range(operations):
        other = rng.uniform(0.1, 3.0)
        match rng.randrange(3):
            case 0:
                value, exact = value + other, exact + Fraction(other)
            case 1:
                value, exact = value * other, exact * Fraction(other)
            case _:
                value, exact = value / other, exact / Fraction(other)
    return value, exact


def test_counting_the_operations_of_an_expression_covers_it() -> None:
    rng = random.Random(5)
    for _ in range(300):
        operations = rng.randint(1, 40)
        value, exact = exact_chain(rng, operations)
        assert Fraction(down(value, operations)) <= exact <= Fraction(up(value, operations))


@pytest.mark.parametrize("size", [1, 7, 128, 1000, 20_000])
def test_a_sum_of_many_costs_at_most_their_number(size: int) -> None:
    rng = np.random.default_rng(3)
    x, y = rng.random(size) ** 8, rng.random(size)
    exact = sum((Fraction(a) * Fraction(b) for a, b in zip(x, y, strict=True)), Fraction(0))
    rows = np.ones((3, 1)) * x
    for found in (
        float(x @ y),
        float((x * y).sum()),
        float(np.cumsum(x * y)[-1]),
        float((rows @ y)[1]),
        float(np.einsum("ij,j->i", rows, y)[2]),
        float(np.add.reduceat(x * y, [0])[0]),
    ):
        assert Fraction(down(found, size)) <= exact <= Fraction(up(found, size))


@pytest.mark.parametrize("size", [1, 31, 32, 33, 1024, 1025, 40_000])
def test_sums_in_blocks_cost_what_they_say(size: int) -> None:
    x = np.random.default_rng(4).random((2, size)) ** 6
    starts = np.array(sorted({0, size // 7, size // 2}))
    parts = segment_totals(x.T, starts)
    for row in range(2):
        exact = [Fraction(v) for v in x[row]]
        found, whole = float(total(x)[row]), sum(exact)
        assert Fraction(down(found, additions(size))) <= whole <= Fraction(up(found, additions(size)))
        for i, start in enumerate(starts):
            inside = sum(exact[start : starts[i + 1] if i + 1 < starts.size else size])
            part = float(parts[i, row])
            assert Fraction(down(part, additions(size))) <= inside <= up(part, additions(size))
    assert additions(size) <= 16 * math.ceil(math.log(size + 15, 16))


@pytest.mark.parametrize("size", [1, 8, 16, 17, 40])
def test_weighted_sums_of_rows_are_within_their_count(size: int) -> None:
    generator = np.random.default_rng(size)
    terms, weights = generator.random((7, size)), generator.random((3, size, 2))
    row = np.array([0, 0, 0, 1, 2, 2, 2])
    for closely, count in ((True, additions(size)), (False, size)):
        for some, own in ((weights, row), (weights[:1], 0 * row)):
            found = weighted(terms, some, row, closely)
            for i, o in np.ndindex(found.shape):
                parts = zip(terms[i], some[own[i], :, o], strict=True)
                exact = sum(Fraction(float(t)) * Fraction(float(w)) for t, w in parts)
                assert Fraction(down(float(found[i, o]), count + 1)) <= exact
                assert exact <= Fraction(up(float(found[i, o]), count + 1))


def test_exponents_are_capped_where_e_is_still_finite() -> None:
    assert math.isfinite(math.exp(capped(1e9)) * 1e4)
    assert capped(3.0) == 3.0
    assert list(capped(np.array([1.0, 1e4, np.inf]))) == [1.0, LARGEST_EXPONENT, LARGEST_EXPONENT]
    assert math.isfinite(1.0 / positive(0.0))
    assert list(positive(np.array([0.0, -1.0, 2.0]))) == [TINY, TINY, 2.0]


def both_signs(low: float, high: float) -> list[float]:
    """Doubles of every size between 2^low and 2^high, with both signs."""
    rng = random.Random(17)
    found = [2.0 ** rng.uniform(low, high) for _ in range(4000)]
    return [*found, *(-x for x in found)]


def above_zero(low: float, high: float) -> list[float]:
    return [abs(x) for x in both_signs(low, high)]


ARGUMENTS: dict[str, list[float]] = {
    "exp": both_signs(-60, math.log2(700)),
    "expm1": both_signs(-60, math.log2(700)),
    "log": above_zero(-990, 990) + [1.0 + x for x in both_signs(-50, -1)],
    "log1p": above_zero(-60, 900) + [-x for x in above_zero(-60, -1e-9)],
    "sin": [*both_signs(-60, math.log2(math.pi)), math.pi, math.pi / 2],
    "cos": [*both_signs(-60, math.log2(math.pi)), math.pi, math.pi / 2],
    "arctan2": both_signs(-60, 60),
    "arctanh": both_signs(-60, -1e-9),
    "arcsinh": both_signs(-60, 900),
    "sinh": both_signs(-60, 9),
    "cosh": both_signs(-60, 9),
    "tanh": both_signs(-60, 6),
    "hypot": both_signs(-60, 60),
    "erfc": both_signs(-60, 4.5),
}


def exactly(name: str, x: float, other: float) -> arb:
    match name:
        case "arctan2":
            return arb.atan2(arb(x), arb(other))
        case "hypot":
            return (arb(x) ** 2 + arb(other) ** 2).sqrt()
    names = {"arctanh": "atanh", "arcsinh": "asinh"}
    found = getattr(arb(x), names.get(name, name))()
    assert isinstance(found, arb)
    return found


def library_functions(name: str) -> list[Callable[..., object]]:
    names = {"arctanh": "atanh", "arcsinh": "asinh", "arctan2": "atan2"}
    return [np.vectorize(getattr(math, names.get(name, name)))] + (
        [getattr(np, name)] if hasattr(np, name) else []
    )


@pytest.mark.parametrize("name", FUNCTIONS)
def test_library_functions_keep_to_what_is_assumed_of_them(name: str) -> None:
    x = np.array(ARGUMENTS[name])
    random.Random(1).shuffle(others := list(ARGUMENTS[name]))
    exact = [exactly(name, a, b) for a, b in zip(x.tolist(), others, strict=True)]
    for function in library_functions(name):
        found = np.asarray(function(x, np.array(others)) if name in ("arctan2", "hypot") else function(x))
        for value, true in zip(found.tolist(), exact, strict=True):
            if abs(true) > arb(2.0**-1022):
                assert abs(arb(value) / true - 1) <= arb(CALL * UNIT)


def test_complex_exponentials_and_logarithms_of_factorials_are_as_good() -> None:
    angles = np.array(ARGUMENTS["sin"])
    for angle, found in zip(angles.tolist(), np.exp(1j * angles).tolist(), strict=True):
        for part, true in ((found.real, arb(angle).cos()), (found.imag, arb(angle).sin())):
            assert abs(arb(part) / true - 1) <= arb(CALL * UNIT)
    for k in range(2, 3000):
        true = arb(k + 1).lgamma()
        assert abs(arb(math.lgamma(k + 1.0)) / true - 1) <= arb(CALL * UNIT)
