"""The sum of two binomials is their convolution."""

import math

import numpy as np
import pytest

from shuffledp._certified.two_binomials import Ridge, TwoBinomials

pytestmark = pytest.mark.quick


@pytest.mark.parametrize("m", [0, 3, 40, 300])
def test_two_binomials_are_their_convolution(m: int) -> None:
    others, keep = 60, 0.8

    def law(n: int, p: float) -> np.ndarray:
        return np.array([math.comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(n + 1)])

    both = np.convolve(law(m, keep), law(others, 1 - keep))
    t = int(0.8 * m + 0.2 * others) + 3
    exact = 0.7 * both[t - 1 :].sum() - 0.5 * both[t:].sum()
    laws = TwoBinomials(np.array([float(m)]), np.array([float(others)]), keep, 1 - keep, 0.4)
    (result,) = laws.tails(np.array([[0.7]]), np.array([[-0.5]]), np.array([float(t)]))
    scale = math.exp(result.log_scale[0])
    assert abs(scale * result.value[0, 0] - exact) <= scale * result.error[0, 0] + 1e-14
    assert scale * result.error[0, 0] <= 1e-9


def _largest(m: int, users: int, keep: float, one: float, zero: float) -> float:
    """The best threshold's objective, from the law itself."""
    law = np.ones(1)
    for user in range(users):
        p = keep if user < m else 1.0 - keep
        law = np.convolve(law, [1.0 - p, p])
    tails = np.append(np.cumsum(law[::-1])[::-1], 0.0)
    return float(max((one * np.append(1.0, tails) + zero * np.append(tails, 0.0)).max(), 0.0))


@pytest.mark.parametrize(
    ("epsilon0", "users", "share"), [(0.5, 60, 0.3), (1.0, 120, 0.1), (2.0, 90, 0.4), (4.0, 200, 0.2)]
)
def test_the_ridge_is_above_every_dataset_of_its_blocks(epsilon0: float, users: int, share: float) -> None:
    keep = 1.0 / (1.0 + math.exp(-epsilon0))
    growth = math.expm1(share * epsilon0)
    one, zero = 2.0 * keep - 1.0 - growth * (1.0 - keep), 1.0 - 2.0 * keep - growth * keep
    theta = max(math.log(-zero / one), 2.0 / math.sqrt(users * keep * (1.0 - keep)))
    truth = np.array([_largest(m, users, keep, one, zero) for m in range(users + 1)])
    for half in (0, 2, 6):
        m = np.unique(np.minimum(np.arange(half, users + half + 1, 2 * half + 1), users)).astype(np.float64)
        step = 0.4
        grid = Ridge(float(half), step, step * np.arange(-9, 10))
        bar = -zero / one
        first, second = (p * bar / (p * bar + 1.0 - p) for p in (keep, 1.0 - keep))
        threshold = np.rint(m * first + (users - m) * second + 0.5)
        laws = TwoBinomials(m, users - m, keep, 1.0 - keep, theta)
        weights = np.full(m.size, one), np.full(m.size, zero)
        bound, better = laws.ridge(*weights, threshold, grid)
        bound = np.minimum(bound, laws.ridge(*weights, better, grid)[0])
        assert np.isfinite(bound).mean() > 0.8 or half == 6
        for place, row in zip(m.astype(int), bound, strict=True):
            around = truth[max(place - half, 0) : place + half + 1]
            assert row >= around.max() * (1.0 - 1e-12)
            assert not np.isfinite(row) or row <= around.max() * 1.6
