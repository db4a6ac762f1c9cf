"""Clamped noise that falls off: the two ends are the worst pair, in exact whole numbers (T11)."""

from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest

from shuffledp.randomizers._grid import GridRandomizer, matrix_of_noise
from shuffledp.randomizers.gaussian import DiscreteGaussian
from shuffledp.randomizers.laplace import DiscreteLaplace

ALPHAS = [Fraction(1), Fraction(7, 6), Fraction(2), Fraction(5), Fraction(40), Fraction(3000)]


def stop_losses(rows: list[list[int]], x: int, y: int, alpha: Fraction, corners: list[Fraction]) -> list[Any]:
    """sum (row_x - alpha row_y - t least)_+ at every t."""
    least = [min(column) for column in zip(*rows, strict=True)]
    own = [u - alpha * v for u, v in zip(rows[x], rows[y], strict=True)]
    return [sum(max(a - t * c, 0) for a, c in zip(own, least, strict=True)) for t in corners]


def corners_of(rows: list[list[int]], x: int, y: int, alpha: Fraction) -> set[Fraction]:
    least = [min(column) for column in zip(*rows, strict=True)]
    return {(u - alpha * v) / c for u, v, c in zip(rows[x], rows[y], least, strict=True) if c}


def excess(noise: list[int], levels: int, pad: int, alpha: Fraction) -> Fraction:
    """The largest amount by which another pair's stop-loss curve is above that of the ends."""
    rows = [[int(w) for w in row] for row in matrix_of_noise(tuple(noise), levels, pad)]
    corners = sorted(corners_of(rows, 0, levels, alpha) | {Fraction(0)})
    # The ends' curve is linear between these, every other one convex: nothing is between them.
    top = stop_losses(rows, 0, levels, alpha, corners)
    return max(
        max(a - b for a, b in zip(stop_losses(rows, x, y, alpha, corners), top, strict=True))
        for x, y in product(range(levels + 1), repeat=2)
        if x != y
    )


def falling(rng: np.random.Generator, reach: int) -> list[int]:
    """Weights that fall off, with plateaus and cliffs."""
    steps = rng.integers(0, 4, reach + 1) * rng.choice([0, 1, 1, 30], reach + 1)
    return [int(w) for w in np.cumsum(steps)[::-1] + rng.integers(0, 3)]


@pytest.mark.parametrize("seed", range(60))
def test_no_pair_is_above_the_ends(seed: int) -> None:
    rng = np.random.default_rng(seed)
    levels, pad = int(rng.integers(1, 6)), int(rng.integers(0, 6))
    noise = falling(rng, levels + pad)
    assert all(a >= b for a, b in pairwise(noise))
    if noise[-1] == 0:
        noise = [w + 1 for w in noise]
    for alpha in ALPHAS:
        assert excess(noise, levels, pad, alpha) <= 0


@pytest.mark.parametrize("sigma", [0.2, 0.5, 1.5])
def test_no_pair_of_realised_gaussian_noise_is_above_the_ends(sigma: float) -> None:
    randomizer = DiscreteGaussian(sigma=sigma, levels=4)
    assert randomizer.falls_off
    for alpha in (Fraction(1), Fraction(3), Fraction(10**6)):
        assert excess(randomizer.noise, 4, randomizer.pad, alpha) <= 0


@pytest.mark.parametrize("seed", range(60))
def test_no_pair_is_above_the_ends_where_the_last_weight_holds_a_tail(seed: int) -> None:
    """As large a last weight as can be spread in proportion: f(m + pad - 1) T(pad) >= f(pad) T(m + pad)."""
    rng = np.random.default_rng(seed)
    levels, pad = int(rng.integers(1, 6)), int(rng.integers(0, 4))
    inner = [w + 1 for w in falling(rng, levels + pad - 1)]
    # last <= f(m + pad - 1) (S + last) / f(pad), S the rest of an end.
    left, at_an_end = inner[-1], sum(inner[pad:])
    most = left * at_an_end // (inner[pad] - left) if inner[pad] > left else 50 * at_an_end
    noise = [*inner, max(most, 1)]
    assert _Noise(tuple(noise), pad).falls_off
    for alpha in ALPHAS:
        assert excess(noise, levels, pad, alpha) <= 0


@pytest.mark.parametrize("epsilon0", [0.01, 0.7, 3.0, 12.0])
def test_no_pair_of_realised_laplace_noise_is_above_the_ends(epsilon0: float) -> None:
    for levels in (1, 2, 5, 8):
        randomizer = DiscreteLaplace(epsilon0=epsilon0, levels=levels)
        assert randomizer.falls_off
        for alpha in (Fraction(1), Fraction(9, 8), Fraction(3), Fraction(10**6)):
            assert excess(list(randomizer.noise), levels, 0, alpha) <= 0


def test_a_last_weight_that_cannot_be_spread_makes_a_worse_pair() -> None:
    noise = [20, 1, 40]
    assert not _Noise(tuple(noise), 0).falls_off
    assert max(excess(noise, 2, 0, alpha) for alpha in ALPHAS) > 0


@dataclass(frozen=True, init=False)
class _Noise(GridRandomizer):
    """Weights as they are."""

    def __init__(self, noise: tuple[int, ...], pad: int) -> None:
        object.__setattr__(self, "noise", noise)
        object.__setattr__(self, "pad", pad)

    @property
    def positions(self) -> Any:
        raise NotImplementedError


def test_noise_with_two_peaks_has_a_worse_pair() -> None:
    assert max(excess((1, 0, 8, 1, 1), 2, 2, alpha) for alpha in ALPHAS) > 0


def test_noise_of_all_families_is_analysed_by_its_ends_alone() -> None:
    for randomizer in (
        DiscreteGaussian(sigma=0.5),
        DiscreteLaplace(epsilon0=1.0),
        DiscreteLaplace(9.0, levels=300),
    ):
        assert randomizer.falls_off
        assert len(randomizer.facts().above) == 1
