"""Sampling: the right reports with the right probabilities, in the right arrays.

All seeds are fixed. A chi-square test of a million reports has a false-alarm probability of 1e-7
over seeds (there are about a dozen of them), and sees a probability that is off by half a percent.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy.special import chdtri

from shuffledp._randomness.words import Words
from shuffledp.randomizers.hadamard import HadamardResponse
from shuffledp.randomizers.hashing import OptimisedLocalHashing
from shuffledp.randomizers.kary import BinaryRandomizedResponse, KaryRandomizedResponse
from shuffledp.randomizers.matrix import FiniteRandomizer
from shuffledp.randomizers.subset import SubsetSelection
from shuffledp.randomizers.unary import OptimisedUnaryEncoding, SymmetricUnaryEncoding

pytestmark = pytest.mark.quick

MILLION = 10**6
FALSE_ALARM = 1e-7
RANDOMIZERS = [
    BinaryRandomizedResponse(epsilon0=1.0),
    KaryRandomizedResponse(k=5, epsilon0=1.5),
    KaryRandomizedResponse(k=7, epsilon0=0.0),
    SymmetricUnaryEncoding(k=4, epsilon0=2.0),
    OptimisedUnaryEncoding(k=3, epsilon0=1.0),
    SubsetSelection(k=5, epsilon0=1.0, size=2),
    SubsetSelection(k=5, epsilon0=2.0, size=4),
    HadamardResponse(k=5, epsilon0=1.0),
    HadamardResponse(k=8, epsilon0=2.0),
    OptimisedLocalHashing(k=5, epsilon0=1.0, symbols=3),
    OptimisedLocalHashing(k=6, epsilon0=1.0, symbols=2),
]


def name(randomizer: Any) -> str:
    return repr(randomizer)


def numbered(reports: npt.NDArray[np.uint8], all_reports: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """The position of each report in the list of all reports, which are of at most two bytes."""

    def number(rows: npt.NDArray[Any]) -> Any:
        return sum(column.astype(int) << (8 * i) for i, column in enumerate(rows.reshape(len(rows), -1).T))

    position = np.full(2**16, -1)
    position[number(all_reports)] = np.arange(len(all_reports))
    return position[number(reports)]


def chi_square(
    values: npt.NDArray[np.int64], outputs: npt.NDArray[Any], probabilities: npt.NDArray[np.float64]
) -> tuple[Any, Any]:
    """The statistic over all inputs and outputs, and its critical value."""
    rows, columns = probabilities.shape
    seen = np.bincount(values * columns + outputs, minlength=rows * columns).reshape(rows, columns)
    expected = probabilities * np.bincount(values, minlength=rows)[:, None]
    statistic = ((seen - expected) ** 2 / expected).sum()
    return statistic, chdtri(rows * (columns - 1), FALSE_ALARM)


@pytest.mark.parametrize("randomizer", RANDOMIZERS, ids=name)
def test_a_million_reports_follow_the_definition(randomizer: Any, known: Callable[..., Any]) -> None:
    exact = known(randomizer)
    values = np.arange(MILLION) % randomizer.k
    reports = randomizer.randomize(values, rng=np.random.default_rng(2023))
    probabilities = np.array([[float(p) for p in row] for row in exact.matrix])
    statistic, critical = chi_square(values, numbered(reports, exact.reports), probabilities)
    assert statistic < critical


def test_a_million_reports_of_a_matrix_follow_it() -> None:
    matrix = [[0.5, 0.3, 0.15, 0.05], [0.1, 0.2, 0.3, 0.4], [0.25, 0.25, 0.25, 0.25]]
    values = np.arange(MILLION) % 3
    reports = FiniteRandomizer(matrix).randomize(values, rng=np.random.default_rng(2024))
    statistic, critical = chi_square(values, reports.astype(int), np.array(matrix))
    assert statistic < critical


def test_the_chi_square_test_sees_half_a_percent() -> None:
    values = np.arange(MILLION) % 2
    truth = BinaryRandomizedResponse(epsilon0=1.0).support_probability[0]
    outputs = BinaryRandomizedResponse(epsilon0=1.0).randomize(values, rng=np.random.default_rng(1))
    off = truth * 1.005
    statistic, critical = chi_square(values, outputs, np.array([[off, 1 - off], [1 - off, off]]))
    assert statistic > critical


class Script(Words):
    """Given words, in order."""

    def __init__(self, *words: Any) -> None:
        self.words = list(words)

    def draw(self, count: int) -> npt.NDArray[np.uint64]:
        drawn, self.words = self.words[:count], self.words[count:]
        return np.array(drawn, dtype=np.uint64)


@pytest.mark.parametrize("k", [2, 3, 128, 129, 200, 256, 257, 40_000, 70_000])
def test_every_report_of_kary_response_begins_and_ends_at_its_own_word(k: int) -> None:
    randomizer = KaryRandomizedResponse(k=k, epsilon0=2.0)
    a, b = randomizer.weights
    values = np.array([0, 1, k - 1])
    for shift in {0, 1, k // 2, k - 2}:
        words = Script(*[shift * b] * 3, *[(shift + 1) * b - 1] * 3)
        for _ in range(2):
            expected = (values + 1 + shift) % k if shift < k - 1 else values
            assert randomizer._sample(values.astype(np.uint32), words).tolist() == expected.tolist()
    truth = Script(*[(k - 1) * b] * 3, *[2**64 - 1] * 3)
    for _ in range(2):
        assert randomizer._sample(values.astype(np.uint32), truth).tolist() == values.tolist()
    assert a == 2**64 - (k - 1) * b


def test_without_privacy_loss_words_beyond_the_last_whole_round_are_drawn_again() -> None:
    randomizer = KaryRandomizedResponse(k=3, epsilon0=0.0)
    words = Script(2**64 - 1, 0)
    assert randomizer._sample(np.array([1], dtype=np.uint8), words).tolist() == [2]
    assert words.words == []


@pytest.mark.parametrize(
    ("randomizer", "shape", "dtype"),
    [
        (KaryRandomizedResponse(k=256, epsilon0=1.0), (5,), np.uint8),
        (KaryRandomizedResponse(k=257, epsilon0=1.0), (5,), np.uint16),
        (KaryRandomizedResponse(k=2**16 + 1, epsilon0=1.0), (5,), np.uint32),
        (OptimisedUnaryEncoding(k=16, epsilon0=1.0), (5, 2), np.uint8),
        (SymmetricUnaryEncoding(k=17, epsilon0=1.0), (5, 3), np.uint8),
        (SubsetSelection(k=9, epsilon0=1.0), (5, 2), np.uint8),
        (HadamardResponse(k=255, epsilon0=1.0), (5,), np.uint8),
        (HadamardResponse(k=256, epsilon0=1.0), (5,), np.uint16),
        (OptimisedLocalHashing(k=5, epsilon0=1.0, symbols=5), (5,), np.uint8),
        (FiniteRandomizer(np.full((2, 300), 1 / 300)), (5,), np.uint16),
    ],
    ids=repr,
)
def test_reports_have_the_smallest_natural_type_and_one_entry_per_user(
    randomizer: Any, shape: tuple[Any, ...], dtype: type[Any]
) -> None:
    reports = randomizer.randomize([0, 1, 0, 1, 1])
    assert (reports.shape, reports.dtype) == (shape, np.dtype(dtype))
    one = randomizer.randomize(1)
    assert np.shape(one) == shape[1:]
    assert np.asarray(one).dtype == dtype
    nobody = randomizer.randomize([])
    assert nobody.shape == (0, *shape[1:])
    assert randomizer.support(nobody).sum() == 0
    assert randomizer.support(one).tolist() == randomizer.support(np.array([one])).tolist()


def test_a_trillion_categories_can_be_reported() -> None:
    reports = KaryRandomizedResponse(k=2**40, epsilon0=30.0).randomize(np.arange(10) + 2**40 - 10)
    assert reports.dtype == np.uint64
    assert reports.max() < 2**40
    # The truth has probability 0.9: ten lies have probability 1e-10.
    assert (reports == np.arange(10) + 2**40 - 10).any()


@pytest.mark.parametrize("randomizer", RANDOMIZERS, ids=name)
def test_a_seed_repeats_the_reports_and_the_secure_source_does_not(randomizer: Any) -> None:
    values = np.arange(2000) % randomizer.k
    first, again = (randomizer.randomize(values, rng=np.random.default_rng(9)) for _ in range(2))
    assert np.array_equal(first, again)
    # Two secure runs of 2000 reports agree with probability far below 1e-100.
    assert not np.array_equal(randomizer.randomize(values), randomizer.randomize(values))


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.uint32, np.int64, np.uint64, ">i4"])
def test_values_of_every_integer_type_give_the_same_reports(dtype: Any) -> None:
    values = np.arange(100) % 5
    for randomizer in (KaryRandomizedResponse(k=5, epsilon0=3.0), OptimisedUnaryEncoding(5, 3.0)):
        expected = randomizer.randomize(values, rng=np.random.default_rng(8))
        got = randomizer.randomize(values.astype(dtype), rng=np.random.default_rng(8))
        assert np.array_equal(got, expected)


def test_values_with_strides_and_read_only_values_are_left_alone() -> None:
    randomizer = KaryRandomizedResponse(k=5, epsilon0=3.0)
    values = np.arange(200) % 5
    values.setflags(write=False)
    strided = randomizer.randomize(values[::2], rng=np.random.default_rng(8))
    packed = randomizer.randomize(values[::2].copy(), rng=np.random.default_rng(8))
    assert np.array_equal(strided, packed)


@pytest.mark.parametrize("randomizer", RANDOMIZERS, ids=name)
def test_support_adds_up_over_pieces_of_the_reports(randomizer: Any) -> None:
    reports = randomizer.randomize(np.arange(70_001) % randomizer.k, rng=np.random.default_rng(10))
    whole = randomizer.support(reports)
    pieces = randomizer.support(reports[:33_000]) + randomizer.support(reports[33_000:])
    assert whole.dtype == np.int64
    assert whole.tolist() == pieces.tolist()


def test_support_of_many_different_hash_reports_is_that_of_each_one() -> None:
    randomizer = OptimisedLocalHashing(k=3000, epsilon0=2.0, symbols=7)  # 7^6 reports
    reports = randomizer.randomize(np.arange(50), rng=np.random.default_rng(13))
    one_by_one = sum(randomizer.support(report) for report in reports)
    expected = np.zeros(3000, dtype=int)
    for report in reports.tolist():
        function, symbol = divmod(report, 7)
        digits = [function // 7**i % 7 for i in range(5)]
        for x in range(3000):
            expected[x] += sum(a * (x // 7**i % 7) for i, a in enumerate(digits)) % 7 == symbol
    assert randomizer.support(reports).tolist() == expected.tolist() == one_by_one.tolist()
