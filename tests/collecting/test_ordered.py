"""Ranges and quantiles: consistent, unbiased, covered as often as they say, and clear where that ends."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shuffledp as sdp
from shuffledp.collecting.distribution import Distribution
from shuffledp.shuffling.roles import analyze_file, randomize_file, shuffle_files

pytestmark = pytest.mark.quick

TARGET: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6}
RNG = np.random.default_rng(3)
SKEWED = 100.0 * RNG.beta(2, 5, 1000)


@pytest.fixture(scope="module")
def ages() -> sdp.QuantileProtocol:
    return sdp.QuantileProtocol(0, 100, bins=64, **TARGET, n=1000, branching=8)


def misses(protocol: sdp.QuantileProtocol, data: np.ndarray, runs: int) -> tuple[np.ndarray, np.ndarray]:
    """How often the 95% intervals of some ranges and quantiles do not hold the truth."""
    k, rng = protocol.bins, np.random.default_rng(8)
    counts = np.bincount(protocol.encode(data), minlength=k)
    blocks = np.arange(k) // (k // 8) == np.arange(8)[:, None]
    sums = np.vstack([np.tri(k)[: -1 : k // 8], blocks.astype(float)])
    shares = (0.05, 0.5, 0.9)
    truth = np.sort(data)[[int(np.ceil(share * len(data))) - 1 for share in shares]]
    far = np.zeros((runs, len(sums))), np.zeros((runs, len(shares)))
    for run in range(runs):
        found = protocol.analyze(protocol.randomize(data, rng=rng)).distribution
        low, high = found.interval(sums, 0.95)
        far[0][run] = (sums @ counts < low) | (sums @ counts > high)
        ends = np.array([found.quantile_interval(share, 0.95) for share in shares])
        far[1][run] = (truth < ends[:, 0]) | (truth > ends[:, 1])
    return far[0].mean(axis=0), far[1].mean(axis=0)


def test_intervals_hold_the_truth_as_often_as_they_say(ages: sdp.QuantileProtocol) -> None:
    ranges, quantiles = misses(ages, SKEWED, 80)
    assert ranges.mean() < 0.08
    assert quantiles.mean() < 0.08


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n", "bins", "branching"), [(1000, 256, 7), (5000, 1024, 4), (300, 16, 16), (40, 8, 3)]
)
@pytest.mark.parametrize("kind", ["skewed", "equal", "two"])
def test_intervals_of_many_settings_hold(n: int, bins: int, branching: int, kind: str) -> None:
    protocol = sdp.QuantileProtocol(0, 100, bins=bins, **TARGET, n=n, branching=branching)
    rng = np.random.default_rng(n)
    data = {
        "skewed": 100.0 * rng.beta(2, 5, n),
        "equal": np.full(n, 33.3),
        "two": np.repeat([10.0, 90.0], n // 2),
    }
    ranges, quantiles = misses(protocol, data[kind], 500)
    assert ranges.mean() < 0.065
    assert ranges.max() < 0.10
    assert quantiles.max() < 0.08


def test_ranges_that_make_up_another_one_add_up_to_it(ages: sdp.QuantileProtocol) -> None:
    result = ages.analyze(ages.randomize(SKEWED))
    parts = [result.between(low, low + 25.0).count for low in (0.0, 25.0, 50.0, 75.0)]
    assert sum(parts) == pytest.approx(1000.0)
    assert parts[0] + parts[1] == pytest.approx(result.between(0, 50).count)
    assert result.between(0, 100).standard_error == pytest.approx(0.0, abs=1e-6)
    assert result.between(0, 100).category == "[0, 100]"


@pytest.mark.thorough
def test_the_tree_with_the_smallest_error_is_taken() -> None:
    found = {n: sdp.QuantileProtocol(0, 1, bins=32, **TARGET, n=n) for n in (500, 20_000)}
    assert len(found[500].randomizer.sizes) > 1
    assert len(found[20_000].randomizer.sizes) == 1  # a level alone is nearly exact
    for n, branching in ((500, 32), (20_000, 6)):
        other = sdp.QuantileProtocol(0, 1, bins=32, **TARGET, n=n, branching=branching)
        errors = [np.mean(plan.worst_standard_errors**2) for plan in (found[n], other)]
        assert errors[0] < 1.02 * errors[1]  # variances: of calibrations that are rough while choosing


def test_ranges_as_asked_and_their_table() -> None:
    survey = sdp.RangeProtocol(0, 100, bins=20, **TARGET, n=2000, ranges=[(20, 65), (65, 100)], branching=5)
    result = survey.analyze(survey.randomize([30.0] * 1500 + [80.0] * 500), confidence=1 - 1e-9)
    assert [each.category for each in result] == ["[20, 65)", "[65, 100]"]
    assert result["[20, 65)"].lower <= 1500 <= result["[20, 65)"].upper
    assert result.counts.sum() == pytest.approx(2000.0, abs=10.0 * result.standard_errors.max())
    assert list(result.to_pandas().columns)[:2] == ["count", "standard_error"]
    assert result.quantile(0.5).lower <= 30.0 <= result.quantile(0.5).upper
    assert len(sdp.RangeProtocol(0, 1, bins=5, **TARGET, n=2000, branching=5).asked) == 5
    assert "<table" in result._repr_html_()


def test_quantiles_of_equal_data_of_one_person_and_of_few(ages: sdp.QuantileProtocol) -> None:
    same = ages.analyze(ages.randomize([42.0] * 1000), confidence=1 - 1e-9)
    for each in same.quantiles():
        assert each.lower <= 42.0 <= each.upper
        assert each.lower <= each.value <= each.upper
    flat = sdp.QuantileProtocol(0, 100, bins=4, **TARGET, n=1, branching=4)
    alone = flat.analyze(flat.randomize(42.0))
    assert alone.n == 1
    assert alone.quantile(0.5).upper > alone.quantile(0.5).lower
    with pytest.raises(ValueError, match="too few reports: none is of the last"):
        ages.analyze(tally=np.eye(1, ages.tally_size, dtype=np.int64)[0], n=1)


def test_a_result_says_it_in_every_form(ages: sdp.QuantileProtocol) -> None:
    result = ages.analyze(ages.randomize(SKEWED))
    rows = json.loads(result.to_json())["estimates"]
    assert [row["quantile"] for row in rows] == [0.25, 0.5, 0.75]
    assert result.to_csv().startswith("quantile,value,standard_error,one_percent_dishonest,lower,upper\n")
    assert len(result.to_pandas()) == len(result) == 3
    assert "0.5" in str(result)
    assert "certified" in str(result)
    assert "<table" in result._repr_html_()
    moved = result.poisoning(10)
    assert (moved >= 0.0).all()
    assert (result.poisoning(100) >= moved).all()


def test_one_dishonest_report_moves_sums_by_no_more_than_is_said(ages: sdp.QuantileProtocol) -> None:
    reports = np.asarray(ages.randomize(SKEWED, rng=np.random.default_rng(2)))
    sums = np.tri(64)[[3, 20, 40]]
    honest = Distribution(ages.edges, ages.count(reports), 1000, ages.randomizer)
    reach, before = honest.reach(sums), sums @ honest.counts
    for symbol in range(0, ages.tally_size, 7):
        changed = reports.copy()
        changed[0] = symbol
        after = sums @ Distribution(ages.edges, ages.count(changed), 1000, ages.randomizer).counts
        assert (np.abs(after - before) <= 1.1 * reach).all()


def test_three_roles_with_files(ages: sdp.QuantileProtocol, tmp_path: Path) -> None:
    (tmp_path / "used").mkdir()
    plan = sdp.protocol_from_dict(json.loads(json.dumps(ages.to_dict())))
    assert plan == ages
    assert randomize_file(plan, SKEWED, tmp_path / "r.parquet") == 1000
    shuffle_files(plan, tmp_path / "r.parquet", tmp_path / "s.parquet", minimum=1000, used=tmp_path / "used")
    result = analyze_file(plan, tmp_path / "s.parquet")
    assert result.privacy.epsilon <= 1.0
    assert result.privacy.protocol == "quantiles"
    assert not result.privacy.simulated


def test_rounds_and_a_limit_on_one_report() -> None:
    plan = sdp.RangeProtocol(
        0, 1, bins=16, epsilon=1.0, delta=1e-6, n=3000, rounds=3, branching=4, max_epsilon0=1.5
    )
    assert plan.randomizer.epsilon0 <= 1.5
    assert plan.mechanism().upper_epsilon(delta=1e-6) <= 1.0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"bins": 1}, "bins must be"),
        ({"bins": 2**15}, "bins must be"),
        ({"quantiles": []}, "quantiles must be a list"),
        ({"quantiles": 0.5}, "quantiles must be a list"),
        ({"quantiles": [1.0]}, r"quantile must be in \(0, 1\)"),
        ({"quantiles": [0.0]}, "quantile must be"),
        ({"branching": 1}, "branching must be"),
        ({"outside": "drop"}, "outside must be"),
        ({"low": 5.0, "high": 5.0}, "low"),
        ({"randomizer": sdp.LeveledResponse(k=4, epsilon0=9.0)}, "certified for"),
        ({"randomizer": sdp.LeveledResponse(k=5, epsilon0=1.0)}, "k = 4"),
    ],
)
def test_bad_plans_are_told(changes: dict[str, Any], message: str) -> None:
    plan = {"low": 0.0, "high": 1.0, "bins": 4, "n": 50, **TARGET} | changes
    with pytest.raises(ValueError, match=message):
        sdp.QuantileProtocol(**plan)


def test_bad_ranges_and_bad_numbers_are_told(ages: sdp.QuantileProtocol) -> None:
    plan = {"low": 0.0, "high": 1.0, "bins": 4, "n": 50, **TARGET}
    for ranges, message in (([(0.0, 0.3)], "edge of bins"), ([(0.5, 0.5)], "lower edge"), ([], "1 to")):
        with pytest.raises(ValueError, match=message):
            sdp.RangeProtocol(**plan, ranges=ranges)
    with pytest.raises(TypeError, match="takes no argument 'ranges'"):
        sdp.QuantileProtocol(**plan, ranges=[(0.0, 0.5)])
    with pytest.raises(TypeError, match="pairs of numbers"):
        sdp.RangeProtocol(**plan, ranges=[1.0])
    with pytest.raises(sdp.DomainError, match="2 of 3 values are not in the domain: 1 missing, 1 outside"):
        ages.randomize([1.0, None, 101.0])
    clipped = sdp.QuantileProtocol(0, 100, bins=4, **TARGET, n=50, branching=4, outside="clip")
    assert clipped.encode([-5.0, 25.0, 99.0, 100.0, 1e9]).tolist() == [0, 1, 3, 3, 3]
