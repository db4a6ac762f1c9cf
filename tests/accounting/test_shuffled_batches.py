"""Fixed batches after a shuffle (T24): between the ends is what two batches give away, by quadrature."""

import math
from typing import Any

import numpy as np
import pytest

import shuffledp as sdp
from shuffledp._certified.rounding import Floats
from shuffledp.accounting._allocation import allocation
from shuffledp.accounting._ends.upper import delta_of

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
    both = sdp.ShuffledBatches(5.0, 3).poisson_epsilon(delta=[1e-6, 1e-3])
    assert both.tolist() == [sdp.ShuffledBatches(5.0, 3).poisson_epsilon(delta=d) for d in (1e-6, 1e-3)]


def two_drawn_batches(epsilon: float, s: float) -> tuple[float, float]:
    """Of random allocation, T = 2: delta of (N(e_1) + N(e_2))/2 and N(0) in the plane, both ways."""
    x = np.linspace(-9.0 * s, 1.0 + 9.0 * s, 1501)
    cell = (x[1] - x[0]) ** 2
    one, zero = (np.exp(-0.5 * ((x - m) / s) ** 2) / (s * math.sqrt(2.0 * math.pi)) for m in (1.0, 0.0))
    p, q = 0.5 * (np.outer(one, zero) + np.outer(zero, one)), np.outer(zero, zero)
    there, back = (
        float(np.maximum(a - math.exp(epsilon) * b, 0.0).sum()) * cell for a, b in ((p, q), (q, p))
    )
    return there, back


@pytest.mark.parametrize("s", [0.9, 2.0])
def test_random_allocation_holds_two_batches_by_quadrature(s: float) -> None:
    rounds = [(allocation(s, 2), 1)]  # all outcomes of two batches are seen
    at = np.array([0.1, 0.7, 1.5])
    low, high = delta_of(rounds, at, 1e-3)
    exact = np.array([max(two_drawn_batches(float(epsilon), s)) for epsilon in at])
    assert (low <= exact * (1.0 + 1e-4) + 1e-9).all()
    assert (exact * (1.0 - 1e-4) - 1e-9 <= high).all()
    assert (high <= 1.05 * exact + 1e-9).all()


def test_random_allocation_lies_where_others_found_it_and_falls_with_batches_and_noise() -> None:
    """Feldman and Shenfeld's code (PLD_accounting 2.0) found [0.844, 0.874] for the first."""
    first = sdp.ShuffledBatches(1.0, 100).allocation_epsilon(delta=1e-6)
    assert 0.844 <= first.lower <= first.upper <= 0.874
    assert first.upper <= 1.01 * first.lower
    assert sdp.ShuffledBatches(1.0, 400).allocation_epsilon(delta=1e-6).upper < first.lower
    assert sdp.ShuffledBatches(1.5, 100).allocation_epsilon(delta=1e-6).upper < first.lower
    alone = sdp.ShuffledBatches(1.3, 1)
    assert alone.allocation_epsilon(delta=1e-5).upper <= alone.epsilon(delta=1e-5).upper
    assert alone.allocation_epsilon(delta=1e-5).lower >= 0.995 * alone.epsilon(delta=1e-5).lower


@pytest.mark.slow
def test_epochs_of_random_allocation_add_up_to_less_than_fixed_batches() -> None:
    run = sdp.ShuffledBatches(5.0, 10, epochs=4)
    once = sdp.ShuffledBatches(5.0, 10).allocation_epsilon(delta=1e-6)
    more = run.allocation_epsilon(delta=1e-6)
    assert once.upper < more.lower <= more.upper < 4.0 * once.upper
    assert more.upper <= run.epsilon(delta=1e-6).upper


def test_random_allocation_refuses_hardly_any_noise() -> None:
    few = sdp.ShuffledBatches(0.6, 3)  # hardly amplified: a threshold, and who knows the batch
    assert few.allocation_epsilon(delta=1e-6).upper == few.epsilon(delta=1e-6).upper
    assert few.allocation_epsilon(delta=1e-6).lower > 0.85 * few.epsilon(delta=1e-6).upper
    with pytest.raises(ValueError, match=r"noise_multiplier must be at least 0\.1"):
        sdp.ShuffledBatches(0.05, 10).allocation_epsilon(delta=1e-6)


def test_arrays_are_answered_one_by_one_in_their_shape() -> None:
    run, deltas = sdp.ShuffledBatches(5.0, 3), [[1e-6], [1e-3]]
    for question in (run.epsilon, run.allocation_epsilon):
        found = question(delta=deltas)
        assert found.lower.shape == found.upper.shape == (2, 1)
        for i, delta in enumerate((1e-6, 1e-3)):
            alone = question(delta=delta)
            assert (found.lower[i, 0], found.upper[i, 0]) == (alone.lower, alone.upper)
    curve = run.delta(epsilon=np.array([0.1, 0.5]))
    assert curve.upper.tolist() == [run.delta(epsilon=epsilon).upper for epsilon in (0.1, 0.5)]
    assert curve.lower.tolist() == [run.delta(epsilon=epsilon).lower for epsilon in (0.1, 0.5)]
    assert type(run.delta(epsilon=0.1).upper) is float
    assert run.delta(epsilon=[]).upper.shape == run.epsilon(delta=[]).upper.shape == (0,)
    with pytest.raises(ValueError, match=r"delta must be in \(0, 1\], got 2\.0"):
        run.epsilon(delta=[1e-6, 2.0])
    with pytest.raises(ValueError, match=r"epsilon must be in \[0, inf\), got -1\.0"):
        run.delta(epsilon=[0.1, -1.0])


@pytest.mark.parametrize("epochs", [1, 3])
def test_the_upper_end_is_what_tensorflow_privacy_says_of_each_example_once_per_epoch(epochs: int) -> None:
    """It composes Gaussian sums, one for every epoch, of half the noise with microbatches."""
    dp_accounting = pytest.importorskip("dp_accounting")
    once = dp_accounting.SelfComposedDpEvent(dp_accounting.GaussianDpEvent(2.0 / 2.0), epochs)
    run = sdp.ShuffledBatches(noise_multiplier=2.0 / 2.0, batches=100, epochs=epochs)
    told = dp_accounting.pld.PLDAccountant().compose(once).get_epsilon(1e-6)
    assert run.epsilon(delta=1e-6).upper == pytest.approx(told, rel=1e-3)
    assert dp_accounting.rdp.RdpAccountant().compose(once).get_epsilon(1e-6) >= told


@pytest.mark.parametrize("wrong", [{"noise_multiplier": 0.0}, {"batches": 0}, {"epochs": 0}])
def test_parameters_out_of_range(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=f"{next(iter(wrong))} must be"):
        sdp.ShuffledBatches(**({"noise_multiplier": 1.0, "batches": 10} | wrong))
