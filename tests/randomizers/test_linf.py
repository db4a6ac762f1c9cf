"""The l-infinity randomizer: exact probabilities, samples against them, and bad input.

Statistical tests have a fixed seed and a false-alarm rate of 1e-6 each.
"""

import math
from fractions import Fraction

import numpy as np
import pytest
from flint import arb
from scipy import special

from oracles.brute import Matrix, shuffled_pairs, worst
from shuffledp._randomness.uniform import rounded_up
from shuffledp._randomness.words import Words
from shuffledp.accounting._curves.law_sum import AmplificationProfile
from shuffledp.randomizers.signs import LInfinityRandomizer

pytestmark = pytest.mark.quick

FALSE_ALARM = 1e-6
VECTOR = np.array([1.0, -1.0, 0.3, 0.0, -0.7])


def probabilities(randomizer: LInfinityRandomizer, vector: np.ndarray) -> list[Fraction]:
    """Of all reports, in whole-number arithmetic: coordinate, rounding, randomized response."""
    keep = Fraction(randomizer.weight, 2**64)
    table = []
    for x in vector / randomizer.radius:
        up = Fraction(math.floor((1.0 + x) * 2.0**52), 2**53)
        plus = up * keep + (1 - up) * (1 - keep)
        table += [(1 - plus) / vector.size, plus / vector.size]
    return table


@pytest.mark.parametrize("epsilon0", [1e-4, 0.5, 2.0, 8.0, 32.0])
def test_decoded_reports_have_the_vector_as_their_mean_and_the_stated_variance(epsilon0: float) -> None:
    randomizer = LInfinityRandomizer(dimension=5, epsilon0=epsilon0, radius=1.0)
    decoded = randomizer.decode(np.arange(10))
    p = np.array([float(x) for x in probabilities(randomizer, VECTOR)])
    np.testing.assert_allclose(p @ decoded, VECTOR, rtol=0, atol=1e-15 * randomizer.gain * 25)
    error = p @ ((decoded - VECTOR) ** 2).sum(axis=1)
    length = float(np.linalg.norm(VECTOR))
    assert error == pytest.approx(randomizer.variance(length), rel=1e-11)
    assert randomizer.variance(length) < randomizer.variance()


def test_a_million_reports_follow_the_exact_probabilities() -> None:
    randomizer = LInfinityRandomizer(dimension=5, epsilon0=1.0, radius=2.0)
    vectors = np.broadcast_to(2.0 * VECTOR, (10**6, 5))
    reports = randomizer.randomize(vectors, rng=np.random.default_rng(1))
    seen = np.bincount(reports, minlength=10)
    expected = 1e6 * np.array([float(p) for p in probabilities(randomizer, 2.0 * VECTOR)])
    assert special.chdtrc(9, ((seen - expected) ** 2 / expected).sum()) > FALSE_ALARM


def test_the_mean_is_the_mean_of_the_decoded_reports() -> None:
    randomizer = LInfinityRandomizer(dimension=3, epsilon0=1.0, radius=0.5)
    vectors = np.random.default_rng(2).uniform(-0.5, 0.5, (1000, 3))
    reports = randomizer.randomize(vectors, rng=np.random.default_rng(3))
    assert reports.dtype == np.uint8
    np.testing.assert_allclose(randomizer.mean(reports), randomizer.decode(reports).mean(axis=0))
    row, sign = randomizer.unpack(reports)
    assert set(row) == {0, 1, 2}
    assert set(sign) == {-1, 1}
    np.testing.assert_array_equal(randomizer.balance(reports)[0], sign[row == 0].sum())


@pytest.mark.parametrize("epsilon0", [1e-4, 0.01, 1.0, math.log(3.0), 10.0, 32.0])
def test_the_realised_epsilon0_never_exceeds_what_was_asked(epsilon0: float) -> None:
    randomizer = LInfinityRandomizer(dimension=4, epsilon0=epsilon0)
    realised = (arb(randomizer.weight) / arb(2**64 - randomizer.weight)).log()
    assert realised <= arb(epsilon0)
    assert realised <= arb(randomizer.realised_epsilon0)
    assert randomizer.realised_epsilon0 <= epsilon0
    assert randomizer.realised_epsilon0 >= epsilon0 * (1.0 - 1e-5)


class Fixed(Words):
    """The same word for ever."""

    def __init__(self, word: int) -> None:
        self.word = word

    def draw(self, count: int) -> np.ndarray:
        return np.full(count, self.word, np.uint64)


@pytest.mark.parametrize("share", [-1.0, -0.3, 0.0, 2.0**-60, 0.7, 1.0])
def test_a_sign_is_rounded_up_for_exactly_its_share_of_the_words(share: float) -> None:
    threshold = math.floor((1 + Fraction(share)) * 2**52)  # of the 2^53 upper parts of a word
    edges = {0, threshold - 1, threshold, 2**53 - 1}
    for upper in (upper for upper in edges if 0 <= upper < 2**53):
        for lower in (0, 2**11 - 1):
            up = rounded_up(np.array([share]), Fixed(upper * 2**11 + lower))
            assert bool(up[0]) == (upper < threshold)


def corner_matrix(E: Fraction, dimension: int, inputs: list[tuple[Fraction, ...]]) -> Matrix:
    """The randomizer of some inputs of the cube, by definition."""
    noise = (E - 1) / (E + 1)
    return tuple(
        tuple((1 + s * y * noise) / (2 * dimension) for y in entries for s in (-1, 1)) for entries in inputs
    )


@pytest.mark.thorough
@pytest.mark.parametrize("n", [2, 3])
def test_the_law_covers_every_dataset_of_a_grid_and_is_that_of_opposite_corners(n: int) -> None:
    E, half = Fraction(3), Fraction(1, 2)
    grid = [(x, y) for x in (-1, half, 1) for y in (-1, 0, 1)]
    law = LInfinityRandomizer(dimension=2, epsilon0=math.log(3.0)).law()
    profile = AmplificationProfile(n, law.own, law.other, law.gap, law.clone)
    pairs = shuffled_pairs(corner_matrix(E, 2, [tuple(map(Fraction, x)) for x in grid]), n)
    for alpha in (Fraction(1), Fraction(5, 4), Fraction(2), Fraction(14, 5)):
        upper = profile.upper(np.array([math.log(alpha)]), 1e-6)[0]
        assert float(worst(pairs, alpha)) <= upper


def test_total_variation_is_that_of_the_law() -> None:
    randomizer = LInfinityRandomizer(dimension=9, epsilon0=1.5)
    law = randomizer.law()
    assert sum(max(g, 0.0) for g in law.gap) == pytest.approx(randomizer.total_variation)
    assert law.own[0] - law.other[0] == pytest.approx(law.gap[0])
    assert sum(law.own) == pytest.approx(1.0)


def test_one_vector_gives_one_report_and_one_decoded_vector() -> None:
    randomizer = LInfinityRandomizer(dimension=5, epsilon0=1.0)
    report = randomizer.randomize(VECTOR)
    assert np.ndim(report) == 0
    assert randomizer.decode(report).shape == (5,)
    assert randomizer.randomize(np.zeros((0, 5))).shape == (0,)


def test_more_vectors_than_one_chunk_are_all_reported() -> None:
    randomizer = LInfinityRandomizer(dimension=2**17, epsilon0=30.0)
    vectors = np.tile(np.array([[1.0], [-1.0]]), (4, 2**17))
    _, sign = randomizer.unpack(randomizer.randomize(vectors, rng=np.random.default_rng(4)))
    np.testing.assert_array_equal(sign, [1, -1] * 4)  # epsilon0 = 30: a flip has probability 1e-13


def test_clipped_vectors_are_accepted_and_keep_their_direction() -> None:
    randomizer = LInfinityRandomizer(dimension=3, epsilon0=1.0, radius=0.1)
    vectors = np.array([[1.0, -2.0, 0.5], [0.01, 0.0, 0.0]])
    clipped = randomizer.clip(vectors)
    np.testing.assert_allclose(clipped, [[0.05, -0.1, 0.025], [0.01, 0.0, 0.0]])
    randomizer.randomize(clipped)


@pytest.mark.parametrize(
    ("vectors", "message"),
    [
        ([[0.0, 0.0], [0.0, math.nan]], "row 1 has column 1 = nan"),
        ([[math.inf, 0.0]], "row 0 has column 0 = inf"),
        ([[0.0, 0.0], [0.0, 0.0], [-1.5, 0.0]], r"norm in \[0, 1.0\], row 2 has 1.5"),
        ([[0.0, 0.0, 0.0]], r"shape \(n, 2\) or \(2,\), got \(1, 3\)"),
        (0.5, r"got \(\)"),
    ],
)
def test_bad_vectors_are_refused_by_row(vectors: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        LInfinityRandomizer(dimension=2, epsilon0=1.0).randomize(vectors)


@pytest.mark.parametrize("vectors", [[["a", "b"]], [[True, False]], [[1j, 0.0]], [[None, 0.0]]])
def test_vectors_of_another_type_are_refused(vectors: object) -> None:
    with pytest.raises(TypeError, match="vectors must be an array of real numbers, got dtype"):
        LInfinityRandomizer(dimension=2, epsilon0=1.0).randomize(vectors)


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"dimension": 0, "epsilon0": 1.0}, ValueError, r"dimension must be in \[1, "),
        ({"dimension": 2, "epsilon0": 0.0}, ValueError, "epsilon0 must be in"),
        ({"dimension": 2, "epsilon0": 33.0}, ValueError, r"epsilon0 must be in \[0.0001, 32\]"),
        ({"dimension": 2, "epsilon0": "1"}, TypeError, "epsilon0"),
        ({"dimension": 2, "epsilon0": 1.0, "radius": -1.0}, ValueError, "radius must be in"),
        ({"dimension": 2, "epsilon0": 1.0, "radius": math.nan}, ValueError, "radius must be in"),
    ],
)
def test_bad_parameters_are_refused_by_name(
    parameters: dict[str, object], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        LInfinityRandomizer(**parameters)


def test_bad_reports_norms_and_generators_are_refused() -> None:
    randomizer = LInfinityRandomizer(dimension=2, epsilon0=1.0)
    with pytest.raises(ValueError, match=r"reports must be in \[0, 3\], got another at reports\[1\]"):
        randomizer.decode(np.array([0, 4]))
    with pytest.raises(TypeError, match="reports must be"):
        randomizer.mean(np.array([0.0, 1.0]))
    with pytest.raises(ValueError, match="reports must not be empty"):
        randomizer.mean(np.array([], np.uint8))
    with pytest.raises(ValueError, match=r"norm must be in \[0, 1.41"):
        randomizer.variance(1.5)
    with pytest.raises(TypeError, match="rng must be None"):
        randomizer.randomize(np.zeros(2), rng=7)
