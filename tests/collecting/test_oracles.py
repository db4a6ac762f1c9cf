"""A survey takes any randomizer that counts categories: a matrix, or somebody else's class."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shuffledp import FiniteRandomizer, KaryRandomizedResponse, Ledger, Shuffled, collect, randomize_file
from shuffledp.collecting._accounted import certified_epsilon
from shuffledp.collecting.histogram import HistogramProtocol
from shuffledp.collecting.result import whole_histogram
from shuffledp.facts import Facts
from shuffledp.randomizers.frequency import FrequencyOracle
from shuffledp.randomizers.registry import canonical

PETS = ("cat", "dog", "fish")
HELD = np.repeat(PETS, [300, 150, 50])
TRUTH = np.array([300, 150, 50])
MATRIX = [[0.6, 0.2, 0.1, 0.1], [0.1, 0.6, 0.2, 0.1], [0.2, 0.1, 0.6, 0.1]]


@dataclass(frozen=True)
class Wheel:
    """Somebody else's randomizer: k-ary randomized response, told by its facts, with nothing of ours."""

    k: int
    epsilon0: float

    report_dtype = np.dtype(np.int16)
    report_shape = ()

    @property
    def _pq(self) -> tuple[float, float]:
        total = np.exp(self.epsilon0) + self.k - 1
        return float(np.exp(self.epsilon0) / total), float(1.0 / total)

    def facts(self) -> Facts:
        return Facts.of_response(self.k, self.epsilon0)

    def randomize(self, values: Any, *, rng: np.random.Generator | None = None) -> Any:
        drawn = np.random.default_rng() if rng is None else rng
        p, q = self._pq
        own = np.asarray(values)
        turned = (own + drawn.integers(0, self.k, own.shape)) % self.k
        return np.where(drawn.random(own.shape) < p - q, own, turned).astype(np.int16)

    def support(self, reports: Any) -> Any:
        return np.bincount(np.atleast_1d(reports), minlength=self.k)

    def estimate(self, support: Any, n: int) -> Any:
        p, q = self._pq
        return (np.asarray(support) - n * q) / (p - q)

    def variance(self, counts: Any, n: int) -> Any:
        p, q = self._pq
        held = np.asarray(counts)
        return (held * p * (1 - p) + (n - held) * q * (1 - q)) / (p - q) ** 2


class ToldWheel(Wheel):
    """With the two probabilities of support."""

    @property
    def support_probability(self) -> tuple[float, float]:
        return self._pq


@cache
def survey(randomizer: Any) -> HistogramProtocol:
    return HistogramProtocol(PETS, epsilon=2.0, delta=1e-5, n=500, randomizer=randomizer)


GIVEN = [FiniteRandomizer(MATRIX), Wheel(3, 2.0), ToldWheel(3, 2.0)]


@pytest.mark.parametrize("randomizer", GIVEN, ids=repr)
def test_counts_are_unbiased_and_intervals_cover_them(randomizer: Any) -> None:
    assert isinstance(randomizer, FrequencyOracle)
    protocol, rng, runs = survey(randomizer), np.random.default_rng(5), 300
    results = [protocol.analyze(protocol.randomize(HELD, rng=rng)) for _ in range(runs)]
    found = np.array([result.counts for result in results])
    variance = randomizer.variance(TRUTH, 500)
    assert np.all(np.abs(found.mean(axis=0) - TRUTH) < 5.5 * np.sqrt(variance / runs))
    assert np.allclose(results[0].standard_errors, np.sqrt(variance), rtol=0.2)
    misses = np.zeros(3)
    for result in results:
        low, high = result.interval(0.9)
        misses += (low > TRUTH) | (high < TRUTH)
    assert np.all(misses <= 30 + 5 * np.sqrt(300 * 0.09))
    assert misses.sum() > 30


@pytest.mark.parametrize("randomizer", GIVEN, ids=repr)
def test_pieces_add_up_and_the_statement_rests_on_the_facts(randomizer: Any) -> None:
    protocol = survey(randomizer)
    reports = protocol.randomize(HELD)
    assert reports.dtype == protocol.report_dtype
    tally = sum(protocol.count(piece) for piece in np.array_split(reports, 7))
    whole, pieces = protocol.analyze(reports), protocol.analyze(tally=tally, n=500)
    assert np.array_equal(whole.counts, pieces.counts)
    assert whole.privacy.epsilon0 == randomizer.facts().epsilon0.upper
    assert whole.privacy.epsilon == Shuffled(randomizer, n=500).upper_epsilon(delta=1e-5)


@pytest.mark.parametrize("randomizer", GIVEN, ids=repr)
def test_an_engine_collects_with_it(randomizer: Any) -> None:
    result = collect(survey(randomizer), HELD)
    assert result.n == 500
    assert np.all(np.abs(result.counts - TRUTH) < 7 * result.standard_errors)


def test_a_tally_of_reports_that_count_once_must_sum_to_their_number() -> None:
    with pytest.raises(ValueError, match="must sum to n = 500 times 1, got 499"):
        survey(FiniteRandomizer(MATRIX)).analyze(tally=[499, 0, 0, 0], n=500)


@pytest.mark.parametrize("randomizer", [FiniteRandomizer(MATRIX), Wheel(3, 2.0)], ids=repr)
def test_what_cannot_be_written_as_json_is_refused_where_it_would_be(randomizer: Any, tmp_path: Path) -> None:
    protocol = survey(randomizer)
    told = "to be written as JSON"
    with pytest.raises(TypeError, match=told):
        protocol.to_dict()
    with pytest.raises(TypeError, match=told):
        randomize_file(protocol, HELD, tmp_path / "reports.parquet")
    with pytest.raises(TypeError, match=told):
        Ledger(tmp_path / "ledger", (2.0, 1e-5), create=True).reserve(
            protocol, population="readers", new_population=True
        )


def test_a_class_with_the_name_of_one_of_ours_is_not_taken_for_it() -> None:
    impostor = type("KaryRandomizedResponse", (Wheel,), {})(3, 2.0)
    assert canonical(impostor) is impostor
    assert survey(impostor).randomizer is impostor


def test_randomizers_that_only_look_equal_are_accounted_for_one_by_one() -> None:
    class Careless(Wheel):
        def __eq__(self, other: object) -> bool:
            return isinstance(other, Careless)

        __hash__ = None  # type: ignore[assignment]

    small, large = (Shuffled(Careless(3, epsilon0), n=500) for epsilon0 in (1.0, 2.0))
    together = (small + large).upper_epsilon(delta=1e-5)
    ours = [Shuffled(KaryRandomizedResponse(3, epsilon0), n=500) for epsilon0 in (1.0, 2.0)]
    assert together == pytest.approx((ours[0] + ours[1]).upper_epsilon(delta=1e-5), rel=1e-3)
    assert certified_epsilon(small, 1e-5) < certified_epsilon(large, 1e-5)
    assert survey(Wheel(3, 2.0)).mechanism() == large


@pytest.mark.parametrize(
    ("randomizer", "message"),
    [
        (FiniteRandomizer([[0.5, 0.3, 0.2], [0.2, 0.3, 0.5], [0.35, 0.3, 0.35]]), "dependent"),
        (Wheel(4, 2.0), "k = 3 categories"),
        (Wheel(3, 40.0), "epsilon0 must be"),
        (Wheel(3, 4.0), "randomizer must meet epsilon"),
        (KaryRandomizedResponse(3, epsilon0=0.0), "must depend on its input"),
    ],
    ids=str,
)
def test_what_does_not_suit_is_refused(randomizer: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        HistogramProtocol(PETS, epsilon=1.0, delta=1e-6, n=100, randomizer=randomizer)


def test_whole_histograms_are_near_and_sum_exactly() -> None:
    assert whole_histogram(np.array([0.6, 1.6, 0.8]), 3).tolist() == [0, 2, 1]
    assert whole_histogram(np.array([2.0, 0.0, 1.0]), 3).tolist() == [2, 0, 1]
    rng = np.random.default_rng(0)
    for _ in range(50):
        shares = rng.dirichlet(np.ones(7)) * 1000
        assert whole_histogram(shares, 1000).sum() == 1000
        assert np.abs(whole_histogram(shares, 1000) - shares).max() <= 1
