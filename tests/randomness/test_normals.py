"""Normal doubles: the lemma of the module word by word in ball arithmetic, their law by statistics.

Statistical tests have a fixed seed and a false-alarm rate of 1e-6 each.
"""

import math
from fractions import Fraction
from itertools import zip_longest

import numpy as np
import pytest
from flint import arb, fmpq
from scipy import special

from shuffledp._randomness import normals as module
from shuffledp._randomness.normals import RELATIVE_ERROR, normals
from shuffledp._randomness.words import Words, source

pytestmark = pytest.mark.quick

UNIT = 2.0**-53
FULL = 2**64 - 1
FALSE_ALARM = 1e-6
EXTREME_Z = 4.9  # exceeded with probability 1e-6


class Replayed(Words):
    """Given words, in order."""

    def __init__(self, words: list[int] | np.ndarray) -> None:
        self.words, self.place = np.array(words, np.uint64), 0

    def draw(self, count: int) -> np.ndarray:
        self.place += count
        assert self.place <= self.words.size
        return self.words[self.place - count : self.place].copy()


def ball(number: Fraction | float) -> arb:
    exact = Fraction(number)
    return arb(fmpq(exact.numerator, exact.denominator))


def cell(words: list[int]) -> tuple[Fraction, Fraction]:
    """The numbers of [0, 1/2] that begin with these digits: 61 of the first word, 64 of the others."""
    digits, scale = words[0] >> 3, Fraction(1, 2**62)
    for word in words[1:]:
        digits, scale = (digits << 64) + word, scale / 2**64
    return digits * scale, (digits + 1) * scale


def exact_exponential(v: Fraction, first: int) -> arb:
    return -(ball(v) if first & 1 else ball(1 - v)).log()


def exact_pair(v: Fraction, first: int, angle: Fraction, second: int) -> tuple[arb, arb]:
    """Box and Muller without rounding: two normal numbers from two uniform ones and four bits."""
    length = (2 * exact_exponential(v, first)).sqrt()
    x = ball(angle) * arb.pi() / 2
    sides = (x.sin(), x.cos()) if second & 4 else (x.cos(), x.sin())
    signs = (1 - 2 * (second & 1), 1 - (second & 2))
    return length * sides[0] * signs[0], length * sides[1] * signs[1]


def continued(first: int, rng: np.random.Generator) -> list[int]:
    """A first word and, where it holds fewer than 53 digits, a second one."""
    return [first] if first >> 3 >= 2**53 else [first, int(rng.integers(2**64, dtype=np.uint64))]


def extreme_words() -> list[int]:
    """Single bits, their complements, and both ends of every run of ones; some of the eight low bits."""
    tops = [1 << i for i in range(3, 64)]
    edges = [FULL ^ (top - 1) for top in tops] + [top - 1 for top in tops] + [FULL - t for t in tops]
    return [word ^ low for word in (0, FULL, *tops, *edges) for low in (0, 1, 5, 6)]


def word_pairs() -> list[tuple[list[int], list[int]]]:
    rng = np.random.default_rng(1)
    some = [int(w) for w in rng.integers(2**64, size=6000, dtype=np.uint64)]
    # Few leading digits: logarithmically spread.
    some += [int(w) >> int(s) for w, s in zip(some[:2000], rng.integers(0, 61, 2000), strict=True)]
    first = some + extreme_words()
    second = [first[i] for i in rng.permutation(len(first))]
    return [(continued(a, rng), continued(b, rng)) for a, b in zip(first, second, strict=True) if a >> 3]


def interleaved(a: list[int], b: list[int]) -> list[int]:
    """Of the two uniform numbers first the first words, then the second ones, as they are needed."""
    return [word for both in zip_longest(a, b) for word in both if word is not None]


def worst_error(pairs: list[tuple[list[int], list[int]]]) -> float:
    """The largest relative distance of a drawn double from a normal number of its cell.

    The normal numbers are monotone in both uniform ones, so the corners of the cell are enough."""
    most = arb(0)
    for a, b in pairs:
        drawn = normals(1, 2, Replayed(interleaved(a, b)))[0]
        for v in cell(a):
            for angle in cell(b):
                for d, g in zip(drawn, exact_pair(v, a[0], angle, b[0]), strict=True):
                    most = max(most, abs(ball(d) / g - 1), key=float)
    return float(most)


@pytest.mark.thorough
def test_every_double_is_within_its_relative_error_of_every_normal_number_of_its_cell() -> None:
    pairs = [(a, b) for a, b in word_pairs() if b[0] >> 3]
    assert len(pairs) > 8000
    worst = worst_error(pairs)
    assert worst <= 13.0 * UNIT  # what the proof says, before its safety
    assert worst <= RELATIVE_ERROR
    assert worst > 3.0 * UNIT  # the test would see a claim of three units fail


@pytest.mark.parametrize("second", [2**53, 2**53 + 1, 2**63 + 12345, FULL])
@pytest.mark.parametrize("low", range(8))
def test_words_without_leading_digits_are_continued_exactly(second: int, low: int) -> None:
    """A first word of 0 to 7 has probability 2^-61; then the digits are those of the second word."""
    ordinary = [2**63 + 2**40 + (low ^ 3)]
    assert worst_error([([low, second], ordinary), (ordinary, [low, second])]) <= 13.0 * UNIT
    third = [low, second >> 20, second]
    assert worst_error([(third, ordinary), (ordinary, third)]) <= 13.0 * UNIT


def test_a_source_of_zeros_ends_and_gives_no_zero_vector() -> None:
    for word in (0, 1, 2, 4):
        drawn = normals(1, 3, Replayed([word] * 16))
        assert np.isfinite(drawn).all()
        assert np.sqrt((drawn * drawn).sum()) > 2.0**-128
        assert abs(drawn).max() < 32.0


def test_the_exponential_is_as_accurate_as_the_proof_says() -> None:
    rng = np.random.default_rng(2)
    near = np.array([1.0, 1.0 - UNIT, 1.0 - 2.0 * UNIT, 1.0 + 2.0 * UNIT])
    nodes = np.concatenate([j / 32 * near for j in range(1, 17)])
    half = np.concatenate([nodes[nodes <= 0.5], rng.random(2000) / 2, 2.0 ** -rng.uniform(1, 250, 500)])
    worst = 0.0
    for bit in (0, 1):
        computed = module._exponentials(half, np.full(half.size, bit, np.uint64))
        for v, x in zip(half, computed, strict=True):
            worst = max(worst, float(abs(ball(x) / exact_exponential(Fraction(v), bit) - 1)))
    assert UNIT < worst <= 4.1 * UNIT


def test_sine_and_cosine_are_as_accurate_as_the_proof_says() -> None:
    rng = np.random.default_rng(3)
    half = np.concatenate([rng.random(3000) / 2, 2.0 ** -rng.uniform(1, 250, 300), [0.5, 0.5 - UNIT]])
    sines, cosines = module._sine_and_cosine(half)
    worst = [0.0, 0.0]
    for v, s, c in zip(half, sines, cosines, strict=True):
        x = ball(v * (0.5 * math.pi))  # the rounded angle: its error is counted apart
        worst[0] = max(worst[0], float(abs(ball(s) / x.sin() - 1)))
        worst[1] = max(worst[1], float(abs(ball(c) / x.cos() - 1)))
    assert 0.5 * UNIT < worst[0] <= 2.4 * UNIT
    assert 0.5 * UNIT < worst[1] <= 4.4 * UNIT


def test_the_tables_are_the_nearest_doubles() -> None:
    for j, log in enumerate(module._LOGS):
        assert abs(ball(log) - ball(Fraction(32, 32 - j)).log()) <= ball(float(log) * UNIT)
    for k, c in enumerate(module._ARTANH):
        assert c == float(Fraction(1, 2 * k + 3))
    for k, c in enumerate(module._SINE):
        assert c == float(Fraction((-1) ** (k + 1), math.factorial(2 * k + 3)))


def test_the_sums_are_long_enough() -> None:
    z, x = arb(1) / 33, arb.pi() / 4
    artanh = z + sum(z ** (2 * k + 3) * c for k, c in enumerate(map(ball, module._ARTANH)))
    sine = x + sum(x ** (2 * k + 3) * c for k, c in enumerate(map(ball, module._SINE)))
    # The coefficients are rounded: by a unit each, of terms below z/3000 and x/9.
    assert abs(artanh / z.atanh() - 1) <= arb((1e-3 + 1 / 3000) * UNIT)
    assert abs(sine / x.sin() - 1) <= arb((0.6 + 1 / 8) * UNIT)


def test_the_same_words_give_the_same_doubles_on_every_machine() -> None:
    words = [0x0123456789ABCDEF, 0xFEDCBA9876543210, 0x8000000000000005, 0x00FF00FF00FF00FE, 7]
    drawn = normals(2, 2, Replayed(words))
    assert [d.hex() for d in drawn.ravel()] == [
        "-0x1.567172725dc16p+0",
        "0x1.9d5d8e3d0b6e1p+1",
        "0x1.d61c4e41ea42cp-9",
        "-0x1.2c732739047d9p+0",
    ]


def test_a_double_depends_on_its_words_alone_and_not_on_its_place() -> None:
    words = source(np.random.default_rng(4)).draw(2 * 5000)
    words[words >> np.uint64(3) < 2**53] |= np.uint64(1 << 63)  # one word each
    together = normals(1000, 10, Replayed(words))
    assert together.shape == (1000, 10)
    lengths, angles = words[:5000], words[5000:]
    for i in (0, 1, 7, 500, 999):
        for k in range(5):
            own = [int(lengths[5 * i + k]), int(angles[5 * i + k])]
            alone = normals(1, 2, Replayed(own))[0]
            assert (together[i, k], together[i, 5 + k]) == tuple(alone)


@pytest.mark.parametrize("dimension", [2, 3, 7, 10])
def test_no_two_vectors_share_a_word(dimension: int) -> None:
    pairs = (dimension + 1) // 2
    words = source(np.random.default_rng(5)).draw(2 * 4 * pairs) | np.uint64(1 << 63)
    drawn = normals(4, dimension, Replayed(words))
    for place in range(words.size):
        other = words.copy()
        other[place] ^= np.uint64(1 << 62)
        changed = (normals(4, dimension, Replayed(other)) != drawn).any(axis=1)
        assert changed.sum() == 1


def test_vectors_change_sign_with_their_bits_exactly() -> None:
    words = source(np.random.default_rng(6)).draw(4000) | np.uint64(1 << 63)
    drawn = normals(1000, 4, Replayed(words))
    for flip, signs in ((3, (-1, -1)), (1, (-1, 1)), (2, (1, -1))):
        other = words.copy()
        other[2000:] ^= np.uint64(flip)
        again = normals(1000, 4, Replayed(other)).reshape(1000, 2, 2)
        np.testing.assert_array_equal(again * np.array(signs)[:, None], drawn.reshape(1000, 2, 2))


def test_the_doubles_have_the_normal_law_and_are_uncorrelated() -> None:
    drawn = normals(100_001, 5, source(np.random.default_rng(7)))
    expected = drawn.size / 100
    seen = np.histogram(special.ndtr(drawn), bins=100, range=(0.0, 1.0))[0]
    assert special.chdtrc(99, ((seen - expected) ** 2 / expected).sum()) > FALSE_ALARM
    count = drawn.shape[0]
    products = (drawn.T @ drawn)[np.triu_indices(5, 1)] / math.sqrt(count)
    assert special.chdtrc(10, (products**2).sum()) > FALSE_ALARM
    squares = ((drawn**2 - 1).T @ (drawn**2 - 1))[np.triu_indices(5, 1)] / (2 * math.sqrt(count))
    assert special.chdtrc(10, (squares**2).sum()) > FALSE_ALARM


def test_small_and_large_uniform_numbers_have_their_probabilities() -> None:
    """Digits beyond the first word: uniform numbers below 2^-9 come from two words."""
    count = 2**20
    half, _ = module._halves(count, source(np.random.default_rng(8)))
    assert half.min() > 0.0
    assert half.max() <= 0.5
    for share in (2.0**-2, 2.0**-9, 2.0**-12):
        below = np.count_nonzero(half < 0.5 * share)
        assert abs(below - count * share) < EXTREME_Z * math.sqrt(count * share)
    few = half[half < 2.0**-10] * 2.0**10
    assert abs(few.mean() - 0.5) < EXTREME_Z / math.sqrt(12 * few.size)
