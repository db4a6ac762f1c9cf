"""The sum of two binomials is their convolution."""

import math

import numpy as np
import pytest

from shuffledp._certified.two_binomials import TwoBinomials

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
    (result,) = laws.tails(np.array([0.7]), np.array([-0.5]), np.array([float(t)]))
    scale = math.exp(result.log_scale[0])
    assert abs(scale * result.value[0, 0] - exact) <= scale * result.error[0, 0] + 1e-14
    assert scale * result.error[0, 0] <= 1e-9
