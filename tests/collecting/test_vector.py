"""Means of vectors by shuffled shares: near a trusted curator's error, and clear where that ends."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

import shuffledp as sdp
from shuffledp._certified.rounding import Floats
from shuffledp.collecting._gaussian import analytic_gaussian_sigma
from shuffledp.shuffling.engine import collect
from shuffledp.shuffling.roles import analyze_file, randomize_file, shuffle_files

pytestmark = pytest.mark.quick


@pytest.fixture(scope="module")
def steps() -> sdp.VectorMeanProtocol:
    return sdp.VectorMeanProtocol(dimension=4, radius=2.0, epsilon=1.0, delta=1e-6, n=1000)


@pytest.fixture(scope="module")
def people() -> Floats:
    rng = np.random.default_rng(2)
    rows = rng.standard_normal((1000, 4)) + np.array([2.0, 0.0, 0.0, -1.0])
    return np.asarray(rows * 2.0 / np.maximum(np.linalg.norm(rows, axis=1), 2.0)[:, None])


@pytest.mark.parametrize(
    ("dimension", "norm", "n", "rounds"),
    [(3, "l2", 10**6, 1), (1000, "l2", 10**4, 3), (100, "linf", 10**4, 1)],
)
def test_the_error_is_nearly_that_of_a_trusted_curator(
    dimension: int, norm: str, n: int, rounds: int
) -> None:
    plan = sdp.VectorMeanProtocol(dimension, 1.0, epsilon=1.0, delta=1e-6, n=n, norm=norm, rounds=rounds)
    moved = 2.0 * (math.sqrt(dimension) if norm == "linf" else 1.0)
    curator = analytic_gaussian_sigma(1.0, 1e-6, moved) * math.sqrt(rounds) / n
    assert curator < plan.worst_standard_error < 1.05 * curator
    assert plan.messages == dimension * plan.randomizer.shares
    assert plan.randomizer.shares <= 12
    bound = plan.mechanism().epsilon(delta=1e-6)
    assert 0.96 < bound.lower <= bound.upper <= 1.0


def test_estimates_are_unbiased_and_intervals_hold(steps: sdp.VectorMeanProtocol, people: Floats) -> None:
    rng = np.random.default_rng(11)
    results = [steps.analyze(steps.randomize(people, rng=rng)) for _ in range(100)]
    errors = np.array([result.value for result in results]) - people.mean(axis=0)
    assert np.abs(errors.mean()) < 5.0 * steps.worst_standard_error / math.sqrt(400)
    assert errors.std() == pytest.approx(steps.worst_standard_error, rel=0.15)
    inside = [
        (low <= people.mean(axis=0)) & (people.mean(axis=0) <= high)
        for low, high in (r.interval() for r in results)
    ]
    assert np.mean(inside) > 0.9
    assert "SIMULATED" in results[0].privacy.text
    assert results[0].l2_error == pytest.approx(2.0 * steps.worst_standard_error)


def test_three_roles_files_engines_and_results(
    steps: sdp.VectorMeanProtocol, people: Floats, tmp_path: Path
) -> None:
    np.save(tmp_path / "people.npy", people)
    reports, shuffled, used = tmp_path / "a.parquet", tmp_path / "shuffled.parquet", tmp_path / "used"
    used.mkdir()
    assert randomize_file(steps, tmp_path / "people.npy", reports) == 1000 * steps.messages
    shuffle_files(steps, [reports], shuffled, minimum=1000, used=used)
    for result in (analyze_file(steps, shuffled), collect(steps, people)):
        assert result.n == 1000
        assert np.all(np.abs(result.value - people.mean(axis=0)) < 6 * result.standard_error)
        assert "vector-mean" in result.privacy.text
        assert "entry" in str(result)
        assert len(json.loads(result.to_json())["estimates"]) == 4
        assert result.poisoning(1) > 4.0
    assert result.plot(truth=people.mean(axis=0)).get_ylabel().startswith("mean")


def test_plans_ledgers_and_missing_messages(
    steps: sdp.VectorMeanProtocol, people: Floats, tmp_path: Path
) -> None:
    assert sdp.load_plan(json.loads(json.dumps(steps.to_dict()))) == steps
    worse = steps.to_dict()
    worse["randomizer"] = worse["randomizer"] | {"variance": 0.5 * steps.randomizer.variance}
    with pytest.raises(sdp.PlanError, match="certified for"):
        sdp.load_plan(worse)
    messages = np.asarray(steps.randomize(people))
    with pytest.raises(ValueError, match="messages of every person"):
        steps.analyze(messages[1:])
    exchanged = np.append(messages[messages >= steps.randomizer.modulus], messages[: 9 * 1000])
    with pytest.raises(ValueError, match="every person"):
        steps.analyze(np.append(exchanged, exchanged)[: messages.size])
    strange = messages.astype(np.int64)
    strange[5] = -1
    with pytest.raises(ValueError, match="messages of every person"):
        steps.analyze(strange)
    ledger = sdp.Ledger(tmp_path / "ledger.jsonl", budget=(2.5, 1e-5), create=True)
    reservation = ledger.reserve(steps, population="people", new_population=True)
    result = steps.analyze(messages, ledger=ledger, reservation=reservation)
    assert result.privacy.total_epsilon is not None
    assert 0.8 < result.privacy.total_epsilon <= 1.0


def test_with_fewer_people_there_is_less_noise_and_the_statement_says_how_much(
    steps: sdp.VectorMeanProtocol, people: Floats
) -> None:
    with pytest.warns(sdp.errors.WeakerPrivacyWarning):
        result = steps.analyze(steps.randomize(people[:900]))
    assert 1.0 < result.privacy.epsilon < 1.1
    with pytest.warns(sdp.errors.WeakerPrivacyWarning):
        alone = steps.analyze(steps.randomize(people[0]))
    assert alone.n == 1
    assert alone.privacy.epsilon > 10.0


def test_bad_input_is_named(steps: sdp.VectorMeanProtocol) -> None:
    with pytest.raises(sdp.DomainError, match="1 missing, 1 outside"):
        steps.randomize([[0.0, 0.0, np.nan, 0.0], [3.0, 0.0, 0.0, 0.0], [1.0, 1.0, 1.0, 1.0]])
    with pytest.raises(sdp.DomainError, match="1 outside"):
        steps.randomize([[0.0, 0.0, np.inf, 0.0]])
    for wrong in ([[1.0, 2.0]], [["a"] * 4], np.zeros((1, 1, 4))):
        with pytest.raises(TypeError, match="vectors must be real numbers of shape"):
            steps.randomize(wrong)
    plan = {"epsilon": 1.0, "delta": 1e-6, "n": 1000}
    for change, words in (
        ({"norm": "l3"}, "norm must be"),
        ({"radius": 0.0}, "radius must be"),
        ({"dimension": 0}, "dimension must be"),
        ({"messages": 1}, "messages must be 3 or more"),
        ({"messages": 4}, "messages must be more than 4"),
        ({"n": 20}, "n must be larger for at most max_messages = 12"),
        ({"max_messages": 5}, "n must be larger for at most max_messages = 5"),
        ({"outside": "drop"}, "outside must be"),
    ):
        with pytest.raises(ValueError, match=words):
            sdp.VectorMeanProtocol(**({"dimension": 4, "radius": 2.0} | plan | change))
    with pytest.raises(ValueError, match="matter of the randomizer"):
        sdp.VectorMeanProtocol(4, 2.0, **plan, randomizer=steps.randomizer, messages=9)
    with pytest.raises(ValueError, match="randomizer must be of dimension 5"):
        sdp.VectorMeanProtocol(5, 2.0, **plan, randomizer=steps.randomizer)
    with pytest.raises(TypeError, match="randomizer must be SplitVectors"):
        sdp.VectorMeanProtocol(5, 2.0, **plan, randomizer=sdp.LocalRandomizer(1.0))


@pytest.mark.parametrize("norm", ["l2", "linf"])
def test_equal_extreme_and_too_long_vectors(norm: str) -> None:
    clip = sdp.VectorMeanProtocol(2, 1.0, epsilon=2.0, delta=1e-6, n=600, norm=norm, outside="clip")
    far = np.tile([30.0, 0.0], (600, 1))
    result = clip.analyze(clip.randomize(far))
    assert np.all(np.abs(result.value - [1.0, 0.0]) < 6 * result.standard_error)
    low, high = result.interval(0.999)
    assert low[0] <= 1.0 <= high[0] == 1.0
    crowd = clip.randomizer.modulus // (2 * clip.randomizer.levels) + 1
    with pytest.raises(ValueError, match="outgrow the modulus"):
        clip.analyze(clip.randomize(np.zeros((crowd, 2))))
