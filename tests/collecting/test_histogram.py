"""Histograms from end to end. Seeds are fixed; limits would fail a right program once in a million."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import numpy as np
import pytest

from shuffledp import KaryRandomizedResponse, LocalRandomizer
from shuffledp.accounting.calibration import calibrate
from shuffledp.accounting.mechanism import Shuffled
from shuffledp.collecting import protocol_from_dict
from shuffledp.collecting._accounted import Target
from shuffledp.collecting._choice import best_calibrated, best_local, candidates, first_better, mean_variance
from shuffledp.collecting.histogram import HistogramProtocol
from shuffledp.errors import DomainError, WeakerPrivacyWarning
from shuffledp.randomizers.unary import OptimisedUnaryEncoding

ANIMALS = ("cat", "dog", "fish", "bird", "newt")
HELD = np.repeat(ANIMALS, [300, 150, 45, 5, 0])


@cache
def survey(kind: Any = None) -> HistogramProtocol:
    given = None if kind is None else kind(k=5, epsilon0=2.5)
    return HistogramProtocol(ANIMALS, epsilon=2.0, delta=1e-5, n=500, randomizer=given)


@pytest.mark.parametrize("kind", [None, *candidates(5)])
def test_counts_are_unbiased_with_the_stated_variance(kind: Any) -> None:
    protocol, rng, runs = survey() if kind is None else survey(kind), np.random.default_rng(11), 600
    truth = np.array([300, 150, 45, 5, 0])
    tallies = [protocol.count(protocol.randomize(HELD, rng=rng)) for _ in range(runs)]
    found = np.array([protocol.estimate(tally, 500) for tally in tallies])
    assert np.array_equal(protocol.analyze(tally=tallies[0], n=500).counts, found[0])
    variance = protocol.randomizer.variance(truth, 500)
    # 5 categories and 7 kinds: 5.5 deviations either way, 3e-6 in all.
    assert np.all(np.abs(found.mean(axis=0) - truth) < 5.5 * np.sqrt(variance / runs))
    # Counts of 500 users have a kurtosis near 3: the variance of a sample variance is 2/(runs - 1).
    assert np.all(np.abs(found.var(axis=0, ddof=1) / variance - 1) < 6.5 * np.sqrt(2 / runs))


@pytest.mark.slow
def test_intervals_cover_the_true_counts_as_often_as_they_say() -> None:
    protocol, rng, runs = survey(), np.random.default_rng(12), 400
    truth = np.array([300, 150, 45, 5, 0])
    misses = np.zeros(5)
    for _ in range(runs):
        low, high = protocol.analyze(protocol.randomize(HELD, rng=rng)).interval(0.9)
        misses += (low > truth) | (truth > high)
    # At most one in ten: 40 of 400, plus five deviations.
    assert np.all(misses <= 40 + 5 * np.sqrt(400 * 0.09))
    assert misses.sum() > 40  # and not because they hold everything


@pytest.mark.slow
def test_standard_errors_are_those_of_the_true_counts_up_to_their_own_noise() -> None:
    protocol = survey()
    result = protocol.analyze(protocol.randomize(HELD, rng=np.random.default_rng(1)))
    exact = np.sqrt(protocol.randomizer.variance([300, 150, 45, 5, 0], 500))
    assert np.allclose(result.standard_errors, exact, rtol=0.1)


def test_the_projected_histogram_is_one_and_nearer_to_the_truth() -> None:
    protocol, rng = survey(OptimisedUnaryEncoding), np.random.default_rng(13)
    truth = np.array([300, 150, 45, 5, 0])
    for _ in range(20):
        result = protocol.analyze(protocol.randomize(HELD, rng=rng))
        projected = result.projected()
        assert projected.sum() == pytest.approx(500)
        assert projected.min() >= 0
        assert np.linalg.norm(projected - truth) <= np.linalg.norm(result.counts - truth) + 1e-9


def test_tallies_of_pieces_add_up_to_the_same_result() -> None:
    protocol = survey()
    reports = protocol.randomize(HELD, rng=np.random.default_rng(2))
    tally = sum(protocol.count(piece) for piece in np.array_split(reports, 7))
    whole, pieces = protocol.analyze(reports), protocol.analyze(tally=tally, n=500)
    assert np.array_equal(whole.counts, pieces.counts)
    assert whole.privacy == pieces.privacy


def test_one_client_sends_what_a_column_would() -> None:
    protocol = survey(OptimisedUnaryEncoding)
    one = protocol.randomize("fish")
    assert one.shape == protocol.report_shape == (1,)
    assert one.dtype == protocol.report_dtype
    assert survey().randomize("cat").shape == survey().report_shape == ()


@pytest.mark.parametrize("came", [1, 20])
def test_few_people_with_several_messages_get_their_answer_and_are_told_that_nothing_hides_them(
    came: int,
) -> None:
    protocol = HistogramProtocol(ANIMALS, 1.0, 1e-6, n=2000, messages=2)
    with pytest.warns(WeakerPrivacyWarning):
        result = protocol.analyze(protocol.randomize([ANIMALS[0]] * came))
    assert result.privacy.epsilon == np.inf
    assert result.interval()[1][0] >= came


@pytest.mark.parametrize(("k", "n", "epsilon"), [(40, 3, 0.5), (12, 1000, 1.0)])
def test_no_other_calibrated_randomizer_is_much_better_than_the_chosen_one(
    k: int, n: int, epsilon: float
) -> None:
    target = {"epsilon": epsilon, "delta": 1e-5, "n": n, "rounds": 1}
    chosen = best_calibrated(k, Target(**target))
    for kind in candidates(k):
        value = calibrate(kind, k=k, tolerance=0.01, **target).value
        assert mean_variance(chosen) <= 1.03 * mean_variance(kind(k=k, epsilon0=value))


def test_the_mean_variance_is_the_mean_of_the_variances_whatever_the_data() -> None:
    for kind in candidates(6):
        randomizer = kind(k=6, epsilon0=1.5)
        for counts in ([60, 0, 0, 0, 0, 0], [10] * 6, [1, 2, 3, 4, 20, 30]):
            exact = randomizer.variance(counts, 60).mean()
            assert mean_variance(randomizer) * 60 == pytest.approx(exact, rel=1e-12)


def test_the_first_better_randomizer_is_just_good_enough() -> None:
    found = first_better(OptimisedUnaryEncoding, 10, 2.0)
    assert found is not None
    assert 1.99 < mean_variance(found) <= 2.0
    assert first_better(OptimisedUnaryEncoding, 10, 0.05) is None  # its floor is 1/k


def test_without_a_shuffler_randomized_response_wins_only_for_few_categories() -> None:
    assert isinstance(best_local(2, 1.0), KaryRandomizedResponse)
    assert not isinstance(best_local(1000, 1.0), KaryRandomizedResponse)


def test_the_statement_is_the_accountants_number() -> None:
    protocol = survey()
    result = protocol.analyze(protocol.randomize(HELD))
    alone = Shuffled(protocol.randomizer, n=500)
    assert result.privacy.epsilon == alone.upper_epsilon(delta=1e-5) <= 2.0


def test_several_rounds_meet_the_target_together() -> None:
    answer = KaryRandomizedResponse(k=5, epsilon0=2.2)
    weekly = HistogramProtocol(ANIMALS, 1.0, 1e-6, n=2000, randomizer=answer, rounds=4)
    assert 0.5 < weekly.mechanism().upper_epsilon(delta=1e-6) <= 1.0
    with pytest.raises(ValueError, match="rounds = 40"):
        HistogramProtocol(ANIMALS, 1.0, 1e-6, n=2000, randomizer=answer, rounds=40)


@pytest.mark.parametrize("kind", [None, *candidates(5)])
def test_descriptions_travel_as_json(kind: Any) -> None:
    protocol = survey(kind)
    again = protocol_from_dict(json.loads(json.dumps(protocol.to_dict())))
    assert again == protocol
    assert again.fingerprint == protocol.fingerprint


def test_protocols_that_differ_have_different_fingerprints() -> None:
    prints = {survey(kind).fingerprint for kind in [None, *candidates(5)]}
    assert len(prints) == 7


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"protocol": "histograms"}, "protocol must be"),
        ({"version": 2}, "version must be 1"),
        ({"randomizer": {"kind": "nothing"}}, "known kind"),
        ({"categories": ["cat", "dog"]}, "k = 2 categories"),
        ({"n": 0}, "n must be in"),
        ({"other": "none of these"}, "other must be one of the categories"),
    ],
)
def test_descriptions_that_do_not_fit_are_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        protocol_from_dict(survey().to_dict() | change)


def test_a_description_with_a_part_missing_is_refused() -> None:
    broken = survey().to_dict()
    del broken["delta"]
    with pytest.raises(ValueError, match="has no 'delta'"):
        protocol_from_dict(broken)


def test_unknown_and_missing_values_are_an_error_unless_they_have_a_category() -> None:
    with pytest.raises(DomainError, match="1 missing, 1 outside"):
        survey().randomize(["cat", None, "cow"])
    lenient = HistogramProtocol(
        ANIMALS, 2.0, 1e-5, 500, KaryRandomizedResponse(k=6, epsilon0=2.5), other="else"
    )
    assert lenient.categories == (*ANIMALS, "else")
    assert lenient.encode(["cat", None, "cow"]).tolist() == [0, 5, 5]
    assert protocol_from_dict(lenient.to_dict()) == lenient


def test_a_randomizer_that_misses_the_target_is_refused() -> None:
    with pytest.raises(ValueError, match=r"randomizer must meet epsilon = 1\.0"):
        HistogramProtocol(ANIMALS, 1.0, 1e-6, 100, KaryRandomizedResponse(k=5, epsilon0=4.0))
    with pytest.raises(ValueError, match="k = 5 categories"):
        HistogramProtocol(ANIMALS, 1.0, 1e-6, 100, KaryRandomizedResponse(k=4, epsilon0=0.5))
    with pytest.raises(TypeError, match="randomizer must be one of"):
        HistogramProtocol(ANIMALS, 1.0, 1e-6, 100, LocalRandomizer(epsilon0=0.5))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"epsilon": 0.0}, "epsilon must be in"),
        ({"delta": 0.0}, "delta must be in"),
        ({"delta": 1.0}, "delta must be in"),
        ({"n": 0}, "n must be in"),
        ({"rounds": 0}, "rounds must be in"),
        ({"categories": range(10**9)}, "got 1000000000"),
    ],
)
def test_impossible_plans_are_refused(arguments: dict[str, Any], message: str) -> None:
    plan = {"categories": ANIMALS, "epsilon": 1.0, "delta": 1e-6, "n": 100}
    with pytest.raises(ValueError, match=message):
        HistogramProtocol(**(plan | arguments))


def test_tallies_that_no_reports_can_have_are_refused() -> None:
    protocol = survey()
    for tally, n, message in [
        ([1, 2, 3], 500, "shape"),
        ([501, 0, 0, 0, 0], 500, "tally must be in"),
        ([-1, 1, 0, 0, 0], 500, "tally must be in"),
        ([1, 1, 1, 1, 1], 500, "must sum to n"),
        ([0] * 5, 0, "n must be in"),
    ]:
        with pytest.raises(ValueError, match=message):
            protocol.analyze(tally=tally, n=n)
    with pytest.raises(ValueError, match="give either"):
        protocol.analyze()
    with pytest.raises(ValueError, match="tally needs n"):
        protocol.analyze(tally=[1] * 5)
    with pytest.raises(ValueError, match="reports must be ones of"):
        protocol.analyze(np.array([7], dtype=np.uint8))


def test_results_print_and_become_frames() -> None:
    pandas = pytest.importorskip("pandas")
    protocol = survey()
    result = protocol.analyze(protocol.randomize(HELD), confidence=0.99)
    assert "99% interval" in str(result)
    assert "certified" in str(result)
    frame = result.to_pandas()
    assert isinstance(frame, pandas.DataFrame)
    assert frame.index.tolist() == list(ANIMALS)
    assert np.array_equal(frame["lower"], result.interval(0.99).lower)


def test_results_are_drawn_with_their_intervals() -> None:
    pytest.importorskip("matplotlib").use("agg")
    protocol = survey()
    result = protocol.analyze(protocol.randomize(HELD))
    ax = result.plot(truth=[300, 150, 45, 5, 0], confidence=0.9)
    patches: Any = ax.patches
    bars = sorted(bar.get_width() for bar in patches)
    assert bars == pytest.approx(sorted(result.counts))
    figure = ax.get_figure()
    assert figure is not None
    assert any("90% interval" in text.get_text() for text in figure.legends[0].get_texts())


def test_a_single_report_is_analysed_as_well() -> None:
    with pytest.warns(UserWarning, match="1 honest reports instead of 500"):
        result = survey().analyze(survey().randomize(["cat"]))
    assert result.n == 1
    assert result.privacy.epsilon == pytest.approx(survey().randomizer.facts().epsilon0.upper, rel=1e-4)
