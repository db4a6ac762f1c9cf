"""The least noisy certified randomized response, also for two categories; what may be promised of it."""

from __future__ import annotations

from typing import Any

import pytest

from shuffledp import KaryRandomizedResponse
from shuffledp.accounting.calibration import calibrate
from shuffledp.accounting.mechanism import Mechanism, Shuffled
from shuffledp.collecting import _accounted as accounted, _choice
from shuffledp.collecting._accounted import Target, certified_epsilon, tolerance_for
from shuffledp.collecting._choice import best_calibrated, calibrated_response, first_better
from shuffledp.collecting.histogram import HistogramProtocol
from shuffledp.collecting.number import SumProtocol
from shuffledp.errors import NoCertificateError
from shuffledp.randomizers import hashing

PLANS = [
    {"epsilon": 1.0, "delta": 1e-6, "n": 1, "rounds": 1},
    {"epsilon": 1.0, "delta": 1e-6, "n": 2, "rounds": 3},
    {"epsilon": 0.3, "delta": 1e-8, "n": 60, "rounds": 5},
    {"epsilon": 2.0, "delta": 1e-6, "n": 3000, "rounds": 1},
    {"epsilon": 1.0, "delta": 0.5, "n": 50, "rounds": 1},
    {"epsilon": 3.0, "delta": 1e-4, "n": 10**5, "rounds": 1},
]


@pytest.mark.parametrize("plan", PLANS)
def test_two_categories_meet_their_target_and_nearly_reach_it(plan: dict[str, Any]) -> None:
    response = calibrated_response(2, Target(**plan))
    one = Shuffled(response, n=plan["n"])
    rounds = plan["rounds"] * one
    certified = rounds.upper_epsilon(delta=plan["delta"], tolerance=tolerance_for(rounds))
    assert certified <= plan["epsilon"]
    more = KaryRandomizedResponse(k=2, epsilon0=1.01 * response.epsilon0)
    beyond = (plan["rounds"] * Shuffled(more, n=plan["n"])).upper_epsilon(delta=plan["delta"], tolerance=5e-3)
    assert beyond > 0.995 * plan["epsilon"]


def test_two_categories_get_what_the_exact_analysis_allows() -> None:
    plan = {"epsilon": 1.0, "delta": 1e-6, "n": 1000, "rounds": 1}
    found = calibrated_response(2, Target(**plan)).epsilon0
    exact, blanket = (
        calibrate(KaryRandomizedResponse, k=2, analysis=analysis, **plan).value
        for analysis in ("best", "blanket")
    )
    assert found > 1.05 * blanket
    assert found == pytest.approx(exact, rel=2e-3)


def test_a_plan_of_several_rounds_for_two_categories_takes_a_few_exact_evaluations(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[Mechanism] = []

    def counting(mechanism: Mechanism, delta: float) -> float:
        asked.append(mechanism)
        return certified_epsilon(mechanism, delta)

    monkeypatch.setattr(accounted, "certified_epsilon", counting)
    weekly = HistogramProtocol(["no", "yes"], 1.0, 1e-6, n=10_000, rounds=4)
    assert len(asked) <= 5
    assert 0.99 < certified_epsilon(weekly.mechanism(), 1e-6) <= 1.0


def test_a_plan_looks_for_few_primes_and_quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[int] = []

    def counting(number: int, base: int, twos: int, passes: Any = hashing._passes) -> bool:
        tried.append(number)
        return bool(passes(number, base, twos))

    monkeypatch.setattr(hashing, "_passes", counting)
    assert first_better(hashing.OptimisedLocalHashing, 100, 0.01) is not None
    assert 0 < len(tried) < 500  # modular powers; trial division took fifty thousand steps


def test_what_cannot_be_certified_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    def refusing(*arguments: Any) -> tuple[float, float]:
        raise NoCertificateError("too hard")

    monkeypatch.setattr(_choice, "glance", refusing)
    chosen = best_calibrated(12, Target(1.0, 1e-6, n=1000))
    assert isinstance(chosen, KaryRandomizedResponse)


@pytest.mark.parametrize("n", [10**9, 10**10])
def test_the_largest_crowds_get_a_plan(n: int) -> None:
    for protocol in (
        SumProtocol(0.0, 1.0, 1.0, 1e-6, n),
        HistogramProtocol(range(3), 1.0, 1e-6, n),
        HistogramProtocol(["no", "yes"], 1.0, 1e-6, n),
    ):
        assert 0.98 < certified_epsilon(protocol.mechanism(), 1e-6) <= 1.0


def test_the_promise_is_above_the_truth_and_hardly_looser_than_the_accountants_default() -> None:
    binary = 3 * Shuffled(KaryRandomizedResponse(k=2, epsilon0=1.0), n=200)
    promised, enclosed = certified_epsilon(binary, 1e-6), binary.epsilon(delta=1e-6)
    assert enclosed.lower <= promised <= 1.006 * enclosed.upper


def test_only_several_rounds_with_a_binary_one_among_them_are_certified_more_coarsely() -> None:
    binary = Shuffled(KaryRandomizedResponse(k=2, epsilon0=1.0), n=200)
    other = Shuffled(KaryRandomizedResponse(k=3, epsilon0=1.0), n=200)
    assert tolerance_for(binary) == tolerance_for(9 * other) == 1e-3
    assert tolerance_for(2 * binary) == tolerance_for(binary + other) == 5e-3
