"""Sums and means of several messages a person: near a trusted curator's error, and clear where that ends."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

import shuffledp as sdp
from shuffledp.collecting._accounted import one_round
from shuffledp.collecting._intervals import laplace_margin
from shuffledp.randomizers.split_and_mix import SplitAndMix
from shuffledp.shuffling.roles import analyze_file, randomize_file, shuffle_files

pytestmark = pytest.mark.quick


@pytest.fixture(scope="module")
def ages() -> sdp.SumProtocol:
    return sdp.SumProtocol(low=0, high=100, epsilon=1.0, delta=1e-6, n=2000, messages="auto")


@pytest.mark.parametrize("n", [10**3, 10**5, 10**8])
@pytest.mark.parametrize("delta", [1e-6, 1e-9])
def test_the_error_is_nearly_that_of_a_trusted_curator(n: int, delta: float) -> None:
    plan = sdp.SumProtocol(0, 1, epsilon=1.0, delta=delta, n=n, messages="auto")
    curator = math.sqrt(2.0)  # discrete Laplace noise on fine levels, sensitivity and epsilon 1
    assert plan.worst_standard_error <= 1.03 * curator
    assert 3 <= plan.messages <= 12
    assert plan.mechanism().upper_epsilon(delta=delta, tolerance=1e-4) <= 1.0


def test_estimates_are_unbiased_and_intervals_hold(ages: sdp.SumProtocol) -> None:
    numbers = np.linspace(0.0, 100.0, 2000)
    rng = np.random.default_rng(11)
    results = [ages.analyze(ages.randomize(numbers, rng=rng)) for _ in range(200)]
    errors = np.array([result.value for result in results]) - numbers.sum()
    assert abs(errors.mean()) < 5.0 * ages.worst_standard_error / math.sqrt(200)
    assert errors.std() == pytest.approx(ages.worst_standard_error, rel=0.35)
    inside = [low <= numbers.sum() <= high for low, high in (result.interval() for result in results)]
    assert np.mean(inside) > 0.9
    assert "SIMULATED" in results[0].privacy.text


@pytest.mark.thorough
def test_means_rounds_and_given_numbers_of_messages() -> None:
    mean = sdp.MeanProtocol(low=-1, high=1, epsilon=2.0, delta=1e-6, n=1000, messages=10, rounds=2)
    assert mean.messages == 10
    assert certified(mean) <= 2.0
    found = mean.analyze(mean.randomize(np.full(1000, 0.25)), rounds=2)
    assert found.value == pytest.approx(0.25, abs=12.0 * mean.worst_standard_error)
    assert found.n == 1000


@pytest.mark.parametrize("rounding", [0.0, 0.4, 1.5])
@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999])
def test_intervals_are_those_of_laplace_and_normal_noise_together(rounding: float, confidence: float) -> None:
    scale, x = 2.0, np.arange(-120.0, 120.0, 0.01)
    law = np.exp(-np.abs(x) / scale)
    if rounding:
        law = np.convolve(law, np.exp(-0.5 * (np.arange(-20.0, 20.005, 0.01) / rounding) ** 2), "same")
    margin = laplace_margin(confidence, scale, math.hypot(math.sqrt(2.0) * scale, rounding))
    assert law[np.abs(x) <= margin].sum() / law.sum() == pytest.approx(confidence, abs=4e-3)
    assert laplace_margin(0.95, 0.0, 1.0) == pytest.approx(1.96, abs=1e-2)


def test_the_planner_picks_what_is_asked_for_and_says_what_it_costs(ages: sdp.SumProtocol) -> None:
    plan = {"low": 0, "high": 100, "epsilon": 1.0, "delta": 1e-6, "messages": "auto"}
    for prefer in ("robustness",):
        one = sdp.SumProtocol(**plan, n=2000, prefer=prefer)
        assert one.messages == 1
        assert one.worst_standard_error > 5 * ages.worst_standard_error
        assert one.one_dishonest < 110 < 100_000 < ages.one_dishonest  # the sum itself is at most 200,000
        assert one.bytes_per_person <= 2 < ages.bytes_per_person == 4 * ages.messages
    assert sdp.SumProtocol(**plan, n=2000, max_messages=5).messages == 1
    assert sdp.SumProtocol(**plan, n=2000, max_messages=ages.messages) == ages
    with pytest.raises(ValueError, match="prefer must be"):
        sdp.SumProtocol(**plan, n=2000, prefer="speed")
    with pytest.raises(ValueError, match="max_messages must be"):
        sdp.SumProtocol(**plan, n=2000, max_messages=0)


def test_noise_is_sized_for_the_honest_and_the_statement_says_so() -> None:
    plan = {"low": 0, "high": 1, "epsilon": 1.0, "delta": 1e-6, "n": 2000, "messages": "auto"}
    most = sdp.SumProtocol(**plan, honest_fraction=0.8)
    all_of_them = sdp.SumProtocol(**plan)
    assert most.n == most.randomizer.people == 1600
    assert isinstance(most.randomizer, SplitAndMix)
    assert isinstance(all_of_them.randomizer, SplitAndMix)
    each, less = most.randomizer.variance(1), all_of_them.randomizer.variance(1)
    assert most.step**2 * each > 1.2 * all_of_them.step**2 * less  # fewer honest people, more noise each
    # All come, some of whom add no noise: certified as planned. And drop-outs down to the honest ones.
    for came in (2000, 1700, 1600):
        result = most.analyze(most.randomize(np.full(came, 0.5)))
        assert result.privacy.epsilon <= 1.0
        assert result.privacy.n_honest == 1600
        assert "sized for 1600 honest people" in result.privacy.text
        assert abs(result.value - came / 2) < 40 * result.standard_error
    with pytest.raises(ValueError, match="honest_fraction must be"):
        sdp.SumProtocol(**plan, honest_fraction=1.5)


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_all_equal_data_at_the_ends_and_one_person_only(value: float) -> None:
    plan = sdp.SumProtocol(0, 1, epsilon=1.0, delta=1e-6, n=1000, messages="auto")
    result = plan.analyze(plan.randomize(np.full(1000, value)))
    assert abs(result.value - 1000 * value) < 40 * result.standard_error
    low, high = result.interval(0.999)
    assert 0.0 <= low <= high <= 1000.0
    with pytest.warns(sdp.errors.WeakerPrivacyWarning):
        alone = plan.analyze(plan.randomize([value]))
    assert alone.n == 1
    assert alone.privacy.epsilon > 8.0
    only = sdp.SumProtocol(0, 1, epsilon=1.0, delta=1e-6, n=1, messages="auto")
    assert only.messages == 1
    with pytest.raises(ValueError, match="n must be"):
        plan.analyze(tally=np.zeros(3, dtype=int))
    with pytest.raises(sdp.errors.TooFewReportsError, match="at least one"):
        plan.analyze(np.empty(0, dtype=np.uint32))


def test_people_beyond_the_modulus_are_refused_and_nothing_is_lost_before() -> None:
    plan = sdp.SumProtocol(0, 1, epsilon=1.0, delta=1e-6, n=1000, messages="auto")
    result = plan.analyze(plan.randomize(np.ones(2000)))  # twice as many as planned
    assert abs(result.value - 2000.0) < 40 * result.standard_error
    crowd = plan.randomizer.modulus // plan.levels + 1
    with pytest.raises(ValueError, match="outgrow the modulus"):
        plan.analyze(plan.randomize(np.ones(crowd)))


def test_a_sum_that_is_refused_leaves_its_reservation_as_it_was(tmp_path: Path) -> None:
    plan = sdp.SumProtocol(0, 1, epsilon=1.0, delta=1e-6, n=300, levels=1, messages="auto")
    ledger = sdp.Ledger(tmp_path / "ledger", budget=(2.0, 1e-5), create=True)
    ticket = ledger.reserve(plan, population="all", new_population=True)
    messages = plan.randomize(np.ones(plan.randomizer.modulus + 1))
    with pytest.raises(ValueError, match="outgrow the modulus"):
        plan.analyze(messages, ledger=ledger, reservation=ticket)
    assert [found.status for found in ledger.collections] == ["reserved"]


def certified(protocol: sdp.SumProtocol | sdp.MeanProtocol) -> float:
    return float(protocol.mechanism().upper_epsilon(delta=protocol.delta))


def test_a_crowd_too_small_to_mix_sends_one_message_or_says_so() -> None:
    assert sdp.SumProtocol(0, 1, epsilon=1.0, delta=1e-6, n=20, messages="auto").messages == 1
    with pytest.raises(ValueError, match=r"messages must be more than 4 for n = 1000 and delta = 1e-06"):
        sdp.SumProtocol(0, 1, epsilon=1.0, delta=1e-6, n=1000, messages=4)
    with pytest.raises(ValueError, match="messages must be"):
        sdp.SumProtocol(0, 1, epsilon=1.0, delta=1e-6, n=1000, messages=0)
    given = SplitAndMix(levels=10, scale=11.0, people=1000, messages=9, modulus=2**16)
    with pytest.raises(ValueError, match="matter of the randomizer"):
        sdp.SumProtocol(0, 1, epsilon=1.0, delta=1e-6, n=1000, randomizer=given, messages=9)
    assert sdp.SumProtocol(0, 1, epsilon=1.0, delta=1e-6, n=1000, randomizer=given).messages == 9


def test_a_missing_an_added_and_a_strange_message_are_told(ages: sdp.SumProtocol) -> None:
    messages = np.asarray(ages.randomize(np.full(2000, 50.0)))
    for changed in (messages[1:], np.append(messages, messages[0])):
        with pytest.raises(ValueError, match="messages of every person"):
            ages.analyze(changed)
    strange = messages.astype(np.int64)
    strange[7] = -1
    with pytest.raises(ValueError, match="messages of every person"):
        ages.analyze(strange)
    tally = ages.count(messages)
    assert ages.analyze(tally=tally).value == ages.analyze(messages).value
    with pytest.raises(ValueError, match="messages of every person"):
        ages.analyze(tally=tally, n=1999)


def test_fewer_people_than_the_noise_is_for_have_a_larger_epsilon_which_is_stated(
    ages: sdp.SumProtocol,
) -> None:
    stated = []
    for came in (1999, 1800, 1000):
        with pytest.warns(sdp.errors.WeakerPrivacyWarning):
            result = ages.analyze(ages.randomize(np.full(came, 50.0)))
        assert f"epsilon is {result.privacy.epsilon:.3g}"[:13] in result.privacy.text
        stated.append(result.privacy.epsilon)
    assert 1.0 < stated[0] < 1.01 < stated[1] < 1.3 < stated[2] < 4.0
    wide = SplitAndMix(1, 2.0**20, people=10, messages=9, modulus=2**40)
    assert one_round(wide, 9).epsilon(delta=1e-6).upper == math.inf
    assert one_round(ages.randomizer, 2000).epsilon(delta=1e-6).upper <= 1.0
    # More people only add noise.
    more = one_round(ages.randomizer, 4000).epsilon(delta=1e-6).upper
    assert more <= one_round(ages.randomizer, 2000).epsilon(delta=1e-6).upper


def test_plans_are_written_checked_and_refused_by_who_trusts_no_shuffler(ages: sdp.SumProtocol) -> None:
    assert sdp.protocol_from_dict(json.loads(json.dumps(ages.to_dict()))) == ages
    assert sdp.load_plan(ages.to_dict()) == ages
    with pytest.raises(sdp.PlanError, match="max_epsilon0"):
        sdp.load_plan(ages.to_dict(), max_epsilon0=8.0)
    statement = ages.analyze(ages.randomize(np.full(2000, 3.0))).privacy
    assert "everything rests on the shuffler" in statement.text
    worse = ages.to_dict()
    worse["randomizer"] = worse["randomizer"] | {"scale": 0.5 * ages.randomizer.scale}
    with pytest.raises(sdp.PlanError, match="certified for"):
        sdp.load_plan(worse)


def test_three_roles_pass_files_of_messages(ages: sdp.SumProtocol, tmp_path: Path) -> None:
    numbers = np.arange(2000) % 101
    files = [tmp_path / "a.parquet", tmp_path / "b.parquet"]
    for part, path in zip(np.split(numbers, 2), files, strict=True):
        assert randomize_file(ages, part, path) == 1000 * ages.messages
    shuffled = tmp_path / "shuffled.parquet"
    used = tmp_path / "used"
    used.mkdir()
    with pytest.raises(sdp.TooFewReportsError, match="got 2000"):  # people, not messages
        shuffle_files(ages, files, shuffled, minimum=2001, used=used)
    done = shuffle_files(ages, files, shuffled, minimum=2000, used=used)
    assert done.reports == 2000 * ages.messages
    result = analyze_file(ages, shuffled)
    assert result.n == 2000
    assert result.value == pytest.approx(numbers.sum(), abs=30.0 * ages.worst_standard_error)


def test_a_ledger_counts_them(ages: sdp.SumProtocol, tmp_path: Path) -> None:
    ledger = sdp.Ledger(tmp_path / "ledger.jsonl", budget=(2.5, 1e-5), create=True)
    reservation = ledger.reserve(ages, population="people", new_population=True)
    result = ages.analyze(ages.randomize(np.full(2000, 9.0)), ledger=ledger, reservation=reservation)
    assert result.privacy.total_epsilon is not None
    assert 0.9 < result.privacy.total_epsilon <= 1.0


def test_one_liar_can_move_the_sum_anywhere(ages: sdp.SumProtocol) -> None:
    result = ages.analyze(ages.randomize(np.full(2000, 50.0)))
    assert result.poisoning(1) > 100 * 2000 / 2
