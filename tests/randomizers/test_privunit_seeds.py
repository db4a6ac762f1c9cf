"""Reports that are seeds of 16 bytes: the law of PrivUnit, and the vectors that everybody expands them to."""

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import CTR

from shuffledp import PrivUnit
from shuffledp._randomness.normals import normals
from shuffledp._randomness.words import SeedWords, Uint64s, Words
from shuffledp.randomizers._privunit_directions import of_seeds

pytestmark = pytest.mark.quick


class Recorded(Words):
    """Words that were written down."""

    def __init__(self, words: Uint64s) -> None:
        self.left = words

    def draw(self, count: int) -> Uint64s:
        drawn, self.left = self.left[:count], self.left[count:]
        return drawn.copy()


def test_a_seed_is_expanded_by_the_cipher_to_normal_numbers_and_its_lowest_bit_is_the_sign() -> None:
    seed = np.arange(16, dtype=np.uint8)
    stream = Cipher(AES(seed.tobytes()), CTR(bytes(16))).encryptor().update(bytes(8 * 64))
    words = np.frombuffer(stream, np.uint64)
    assert (SeedWords(seed.tobytes()).draw(64) == words).all()
    expected = normals(1, 20, Recorded(words))
    other = seed.copy()
    other[0] |= 1
    assert (of_seeds(np.stack([seed, other]), 20) == np.concatenate([expected, -expected])).all()


@pytest.mark.thorough
def test_directions_of_seeds_fall_into_the_cap_as_often_as_stated_and_average_to_the_vector() -> None:
    randomizer = PrivUnit(40, 2.0, cap_probability=0.115, sampler="seeds")
    axis = np.random.default_rng(3).normal(size=40)
    axis /= np.linalg.norm(axis)
    count = 1500
    reports = randomizer.randomize(np.tile(axis, (count, 1)), rng=np.random.default_rng(1))
    assert reports.shape == (count, 16)
    assert reports.dtype == np.uint8
    heights = randomizer.decode(reports) @ axis * randomizer.mean_length
    p = randomizer.weight / 2**64
    assert abs((heights >= randomizer.cap.threshold).mean() - p) < 5 * (p * (1 - p) / count) ** 0.5
    # Both signs of the seed's own direction occur alike, and all seeds are different.
    assert abs((reports[:, 0] & 1).mean() - 0.5) < 5 * 0.5 / count**0.5
    assert len(np.unique(reports, axis=0)) == count
    mean = randomizer.mean(reports)
    assert np.allclose(mean, randomizer.decode(reports).mean(axis=0))
    deviation = (randomizer.variance(1.0) / (40 * count)) ** 0.5
    assert np.abs(mean - axis).max() < 6 * deviation


def test_the_law_is_that_of_directions_and_the_margin_counts_the_seeds() -> None:
    small, few = (PrivUnit(500, 2.0, cap_probability=0.115, sampler=s) for s in ("seeds", "rejection"))
    assert few.margin < small.margin < few.margin + 1e-15
    seeds, plain = (PrivUnit(3010, 2.0, cap_probability=0.115, sampler=s) for s in ("seeds", "rejection"))
    assert seeds.second_moment == pytest.approx(plain.second_moment, rel=1e-8)
    assert (seeds.report_bytes, plain.report_bytes) == (16, 12_040)
    assert 5727 * seeds.report_bytes < 100_000  # bytes of the MNIST page's best run, per person
    pair = seeds.randomize(np.zeros((2, 3010)))
    assert (pair[0] != pair[1]).any()  # secure ones


def test_what_is_no_seed_is_refused() -> None:
    randomizer = PrivUnit(10, 1.0, sampler="seeds")
    for wrong in (np.zeros((2, 10), np.float32), np.zeros(15, np.uint8)):
        with pytest.raises(ValueError, match="seeds of 16 bytes"):
            randomizer.mean(wrong)
    with pytest.raises(ValueError, match="'seeds' would draw"):
        PrivUnit(1000, 16.0, sampler="seeds").randomize(np.zeros(1000))
