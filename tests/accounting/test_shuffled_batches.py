"""Fixed batches after a shuffle (T24): between the ends is what two batches give away, by quadrature."""

import math
from typing import Any

import numpy as np
import pytest

import shuffledp as sdp
from shuffledp._certified.rounding import Floats

pytestmark = pytest.mark.quick


def two_batches(epsilon: float, s: float) -> float:
    """delta of the two mixtures of the proof for T = 2, on a grid; the larger of both directions."""
    x = np.linspace(-9.0 * s, 2.0 + 9.0 * s, 1501)
    cell = (x[1] - x[0]) ** 2

    def density(mean: float) -> Floats:
        one, zero = (np.exp(-0.5 * ((x - m) / s) ** 2) / (s * math.sqrt(2.0 * math.pi)) for m in (mean, 0.0))
        return np.asarray(0.5 * (np.outer(one, zero) + np.outer(zero, one)))

    p, q = density(2.0), density(1.0)
    return max(float(np.maximum(a - math.exp(epsilon) * b, 0.0).sum()) * cell for a, b in ((p, q), (q, p)))


@pytest.mark.parametrize("s", [0.6, 1.0, 2.0])
@pytest.mark.parametrize("epsilon", [0.2, 1.0, 2.5])
def test_two_batches_lie_between_the_ends(epsilon: float, s: float) -> None:
    found = sdp.ShuffledBatches(noise_multiplier=s, batches=2).delta(epsilon=epsilon)
    exact = two_batches(epsilon, s)
    assert found.lower <= exact * (1.0 + 1e-4) + 1e-9
    assert exact * (1.0 - 1e-4) - 1e-9 <= found.upper


@pytest.mark.thorough
def test_the_numbers_of_the_page_and_their_order() -> None:
    run = sdp.ShuffledBatches(noise_multiplier=1.0, batches=100)
    bound = run.epsilon(delta=1e-6)
    assert (round(bound.lower, 2), round(bound.upper, 2)) == (4.68, 4.89)
    assert run.delta(epsilon=bound.upper).upper <= 1e-6 * (1 + 1e-9)
    assert run.delta(epsilon=bound.lower).lower >= 1e-6 * (1 - 1e-9)
    more = [sdp.ShuffledBatches(1.0, 100, epochs=e).epsilon(delta=1e-6) for e in (1, 2, 8)]
    assert more[0].lower < more[1].lower < more[2].lower
    assert more[0].upper < more[1].upper < more[2].upper
    wider = [sdp.ShuffledBatches(1.0, t).epsilon(delta=1e-6).lower for t in (1, 10, 1000)]
    assert wider[0] >= wider[1] >= wider[2]


def test_one_batch_is_the_gaussian_mechanism() -> None:
    alone = sdp.ShuffledBatches(noise_multiplier=1.3, batches=1).epsilon(delta=1e-5)
    assert alone.upper == pytest.approx(alone.lower, rel=2e-3)


def test_poisson_sampling_is_another_number() -> None:
    pytest.importorskip("dp_accounting")
    run = sdp.ShuffledBatches(noise_multiplier=1.0, batches=100)
    assert run.poisson_epsilon(delta=1e-6) == pytest.approx(0.954, abs=0.01)


@pytest.mark.parametrize("wrong", [{"noise_multiplier": 0.0}, {"batches": 0}, {"epochs": 0}])
def test_parameters_out_of_range(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=f"{next(iter(wrong))} must be"):
        sdp.ShuffledBatches(**({"noise_multiplier": 1.0, "batches": 10} | wrong))
