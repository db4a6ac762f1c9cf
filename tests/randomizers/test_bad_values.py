"""Every wrong input of a randomizer is refused by name, with the first offender."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from shuffledp.randomizers.gaussian import DiscreteGaussian
from shuffledp.randomizers.hadamard import HadamardResponse
from shuffledp.randomizers.hashing import OptimisedLocalHashing
from shuffledp.randomizers.kary import KaryRandomizedResponse
from shuffledp.randomizers.laplace import DiscreteLaplace
from shuffledp.randomizers.matrix import FiniteRandomizer
from shuffledp.randomizers.subset import SubsetSelection
from shuffledp.randomizers.unary import OptimisedUnaryEncoding, SymmetricUnaryEncoding

pytestmark = pytest.mark.quick

CATEGORICAL = [
    KaryRandomizedResponse(k=5, epsilon0=1.0),
    SymmetricUnaryEncoding(k=5, epsilon0=1.0),
    OptimisedUnaryEncoding(k=5, epsilon0=1.0),
    SubsetSelection(k=5, epsilon0=1.0),
    HadamardResponse(k=5, epsilon0=1.0),
    OptimisedLocalHashing(k=5, epsilon0=1.0),
    FiniteRandomizer(np.full((5, 3), 1 / 3)),
]
SYMBOLS = [r for r in CATEGORICAL if np.ndim(r.randomize([0])) == 1]
SETS = [r for r in CATEGORICAL if np.ndim(r.randomize([0])) == 2]
FREQUENCY = CATEGORICAL[:-1]
INTERVAL = [DiscreteLaplace(1.0, low=-1.0, high=2.0), DiscreteGaussian(1.0, low=-1.0, high=2.0)]


def kind(randomizer: Any) -> str:
    return type(randomizer).__name__


@pytest.mark.parametrize("randomizer", CATEGORICAL, ids=kind)
@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        ([0.0, 1.0], "float64"),
        (np.array([np.nan]), "float64"),
        ([True, False], "bool"),
        (["1"], "<U1"),
        ([None], "object"),
        ([2**70], "object"),
        (np.array([1 + 0j]), "complex128"),
        (np.array(["2020-01-01"], dtype="datetime64[D]"), "datetime64"),
        (1.0, "float64"),
        (np.array([]), "float64"),
    ],
)
def test_values_that_are_no_integers_are_a_type_error_that_names_the_dtype(
    randomizer: Any, values: Any, dtype: str
) -> None:
    with pytest.raises(TypeError, match=rf"values must be whole numbers .* got dtype {dtype}"):
        randomizer.randomize(values)


@pytest.mark.parametrize("randomizer", CATEGORICAL, ids=kind)
@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.int64, np.uint64])
def test_the_first_value_outside_the_domain_is_named_also_beyond_the_first_chunk(
    randomizer: Any, dtype: type[Any]
) -> None:
    values = np.zeros(100_000, dtype=dtype)
    values[70_001], values[90_000] = 5, 6
    with pytest.raises(ValueError, match=r"values must be in \[0, 4\], got another at values\[70001\]"):
        randomizer.randomize(values, rng=np.random.default_rng(1))
    if np.dtype(dtype).kind == "i":
        values[69_999] = -2
        with pytest.raises(ValueError, match=r"in \[0, 4\], got another at values\[69999\]"):
            randomizer.randomize(values, rng=np.random.default_rng(1))


def test_negative_values_are_outside_also_where_the_domain_is_larger_than_their_type() -> None:
    with pytest.raises(ValueError, match=r"in \[0, 199\], got another at values\[1\]"):
        KaryRandomizedResponse(k=200, epsilon0=1.0).randomize(np.array([3, -1], dtype=np.int8))


def test_the_largest_value_of_a_type_is_inside_a_larger_domain() -> None:
    for dtype, k in ((np.int8, 128), (np.uint8, 256), (np.int16, 2**15 + 1)):
        top = np.array([np.iinfo(dtype).max])
        KaryRandomizedResponse(k=k, epsilon0=1.0).randomize(top.astype(dtype))


@pytest.mark.parametrize("randomizer", CATEGORICAL, ids=kind)
def test_values_of_two_dimensions_are_refused(randomizer: Any) -> None:
    with pytest.raises(ValueError, match=r"one-dimensional, got shape \(2, 1\)"):
        randomizer.randomize([[0], [1]])
    with pytest.raises(ValueError, match="one-dimensional"):
        randomizer.randomize([[0], [1, 2]])


@pytest.mark.parametrize("randomizer", [*CATEGORICAL, *INTERVAL], ids=kind)
def test_a_seed_in_place_of_a_generator_is_refused(randomizer: Any) -> None:
    with pytest.raises(TypeError, match="rng must be None"):
        randomizer.randomize([0], rng=7)


@pytest.mark.parametrize("randomizer", SYMBOLS, ids=kind)
def test_the_first_impossible_report_is_named(randomizer: Any) -> None:
    with pytest.raises(ValueError, match=r"reports must be in \[0, \d+\], got another at reports\[1\]"):
        randomizer.support([0, 999, 1000])
    with pytest.raises(TypeError, match=r"reports must be whole numbers .* dtype float64"):
        randomizer.support([0.0])
    with pytest.raises(ValueError, match=r"reports must be .* one-dimensional, got shape \(1, 1\)"):
        randomizer.support([[0]])


@pytest.mark.parametrize("randomizer", SETS, ids=kind)
def test_packed_reports_of_wrong_type_or_shape_or_with_foreign_bits_are_named(randomizer: Any) -> None:
    with pytest.raises(TypeError, match=r"packed bits of dtype uint8, got dtype int64"):
        randomizer.support([[0]])
    with pytest.raises(ValueError, match=r"shape \(n, 1\) for k = 5, got \(2, 2\)"):
        randomizer.support(np.zeros((2, 2), dtype=np.uint8))
    with pytest.raises(
        ValueError, match=r"sets of .*categories 0 to 4, got 2 others, the first at reports\[1\]"
    ):
        randomizer.support(np.array([[1], [32], [64]], dtype=np.uint8))


def test_sets_of_the_wrong_size_are_named() -> None:
    randomizer = SubsetSelection(k=5, epsilon0=1.0, size=2)
    with pytest.raises(ValueError, match=r"sets of 2 of the categories.*, the first at reports\[2\]"):
        randomizer.support(np.array([[3], [5], [7]], dtype=np.uint8))


@pytest.mark.parametrize("randomizer", FREQUENCY, ids=kind)
def test_estimates_need_one_count_per_category_between_zero_and_n(randomizer: Any) -> None:
    for method in (randomizer.estimate, randomizer.variance):
        with pytest.raises(ValueError, match=r"must have shape \(5,\), got \(4,\)"):
            method([1, 1, 1, 1], n=4)
        with pytest.raises(ValueError, match=r"must be in \[0, 4\], got \w+\[1\] = 5"):
            method([0, 5, 0, 0, 0], n=4)
        with pytest.raises(ValueError, match=r"must be in \[0, inf\), got -1"):
            method([0, -1, 0, 0, 0], n=4)
        with pytest.raises(ValueError, match="n must be in"):
            method([0, 0, 0, 0, 0], n=0)


def test_histograms_of_a_matrix_must_sum_to_n() -> None:
    randomizer = FiniteRandomizer([[0.75, 0.25], [0.25, 0.75]])
    with pytest.raises(ValueError, match=r"support must sum to n = 4, got 3"):
        randomizer.estimate([1, 2], n=4)
    with pytest.raises(ValueError, match=r"counts must sum to n = 4, got 3"):
        randomizer.variance([1, 2], n=4)


@pytest.mark.parametrize(
    "make",
    [
        lambda e: SymmetricUnaryEncoding(5, e),
        lambda e: OptimisedUnaryEncoding(5, e),
        lambda e: SubsetSelection(5, e),
        lambda e: HadamardResponse(5, e),
        lambda e: OptimisedLocalHashing(5, e),
        lambda e: DiscreteLaplace(e),
    ],
)
def test_epsilon0_that_cannot_be_realised_is_refused(make: Callable[..., Any]) -> None:
    for wrong in (0.0, -1.0, 36.5, float("nan"), float("inf")):
        with pytest.raises(ValueError, match=r"epsilon0 must be in \[1e-06, 36\]"):
            make(wrong)
    for kind_of in ("1", None, True):
        with pytest.raises(TypeError, match="epsilon0 must be a real number"):
            make(kind_of)
    for extreme in (1e-6, 36.0):
        assert make(extreme).epsilon0 == pytest.approx(extreme, rel=2e-4)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: SymmetricUnaryEncoding(1, 1.0), r"k must be in \[2, "),
        (lambda: OptimisedUnaryEncoding(2**24 + 1, 1.0), r"k must be in \[2, 16777216\]"),
        (lambda: SubsetSelection(5, 1.0, size=5), r"size must be in \[1, 4\], got 5"),
        (lambda: SubsetSelection(5, 1.0, size=0), r"size must be in \[1, 4\], got 0"),
        (lambda: HadamardResponse(2.5, 1.0), r"k must be a whole number"),
        (lambda: OptimisedLocalHashing(5, 1.0, symbols=4), "symbols must be a prime number, got 4"),
        (lambda: OptimisedLocalHashing(5, 1.0, symbols=1), r"symbols must be in \[2, "),
        (lambda: DiscreteLaplace(1.0, low=1.0, high=1.0), "low must be below high"),
        (lambda: DiscreteLaplace(1.0, low=-1e308, high=1e308), "by a finite amount"),
        (lambda: DiscreteLaplace(1.0, high=float("nan")), "high must be a finite number, got nan"),
        (lambda: DiscreteLaplace(1.0, levels=0), r"levels must be in \[1, 1024\]"),
        (lambda: DiscreteGaussian(0.0), r"sigma must be in \(0, inf\)"),
        (lambda: DiscreteGaussian(1e-6), "sigma must be at least 1/16 of a grid step"),
        (lambda: DiscreteGaussian(1e6), "at most 16384 grid points"),
    ],
)
def test_parameters_outside_their_range_are_refused(make: Callable[..., Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize("randomizer", INTERVAL, ids=kind)
def test_the_first_value_outside_the_interval_is_named(randomizer: Any) -> None:
    for wrong in (2.5, -1.0001, float("nan"), float("inf")):
        with pytest.raises(
            ValueError, match=r"values must be in \[-1\.0, 2\.0\], got another at values\[2\]"
        ):
            randomizer.randomize([0.0, 2.0, wrong, 9.0])
    with pytest.raises(ValueError, match="got another at values"):
        randomizer.randomize(3.0)
    with pytest.raises(TypeError, match="values must be real numbers, got dtype bool"):
        randomizer.randomize([True])
    with pytest.raises(TypeError, match="values must be real numbers, got dtype <U1"):
        randomizer.randomize(["1"])
    with pytest.raises(ValueError, match=r"one-dimensional, got shape \(1, 1\)"):
        randomizer.randomize([[1.0]])


@pytest.mark.parametrize("randomizer", INTERVAL, ids=kind)
def test_impossible_reports_of_an_interval_are_named_and_nobody_has_no_mean(randomizer: Any) -> None:
    for method in (randomizer.decode, randomizer.estimate, randomizer.mean):
        with pytest.raises(ValueError, match=r"reports must be in \[0, \d+\], got another at reports\[1\]"):
            method([0, -1])
    with pytest.raises(ValueError, match="there is no mean of nothing"):
        randomizer.mean([])
