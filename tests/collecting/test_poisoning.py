"""How far dishonest reports move an estimate: the closed form against every report there is."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

import shuffledp as sdp
from shuffledp.collecting.result import HistogramResult

pytestmark = pytest.mark.quick

PLAN: dict[str, Any] = {"epsilon": 20.0, "delta": 0.1, "n": 3}
ORACLES = [
    (sdp.KaryRandomizedResponse(k=3, epsilon0=1.0), range(3)),
    (sdp.OptimisedUnaryEncoding(k=3, epsilon0=1.0), range(8)),
    (sdp.SubsetSelection(k=3, epsilon0=1.0, size=2), (3, 5, 6)),
    (sdp.HadamardResponse(k=3, epsilon0=1.0), range(4)),
    (sdp.FiniteRandomizer([[0.6, 0.3, 0.1, 0.0], [0.1, 0.2, 0.3, 0.4], [0.2, 0.5, 0.2, 0.1]]), range(4)),
]


def all_reports(protocol: sdp.HistogramProtocol, symbols: Any, n: int) -> Any:
    """Every array of n reports."""
    shape = (-1, n, *protocol.report_shape)
    return np.array(list(product(symbols, repeat=n)), dtype=protocol.report_dtype).reshape(shape)


@pytest.mark.parametrize(("oracle", "symbols"), ORACLES, ids=lambda x: type(x).__name__)
def test_counts_move_by_the_closed_form_and_no_further(oracle: Any, symbols: Any) -> None:
    """All pairs of reports, and all ways to send one or both otherwise: the largest change of each count."""
    if isinstance(oracle, sdp.FiniteRandomizer):
        oracle = oracle.realised
    survey = sdp.HistogramProtocol.__new__(sdp.HistogramProtocol)
    survey._assign(categories=("a", "b", "c"), other=None, rounds=1, randomizer=oracle, **PLAN)
    honest = all_reports(survey, symbols, 2)
    counts = np.array([survey.estimate(survey.count(rows), 2) for rows in honest])
    result = HistogramResult(survey.categories, survey.count(honest[0]), 2, oracle, None)
    last = honest[:, 1].reshape(len(honest), -1)
    shared = (last[:, None] == last[None]).all(axis=2)  # pairs that differ in one report at most
    for m, allowed in ((1, shared), (2, np.ones_like(shared))):
        moved = np.abs(counts[:, None] - counts[None])[allowed].max(axis=0)
        assert np.allclose(result.poisoning(m), moved, rtol=1e-9)


def test_added_reports_move_no_further_either() -> None:
    survey = sdp.HistogramProtocol(["a", "b", "c"], randomizer=sdp.KaryRandomizedResponse(3, 1.0), **PLAN)
    for rows in all_reports(survey, range(3), 3):
        before = survey.analyze(rows).counts
        for lie in range(3):
            after = survey.analyze(np.append(rows, np.uint8(lie)))
            assert np.all(np.abs(after.counts - before) <= after.poisoning(1) + 1e-9)


@pytest.mark.parametrize("kind", [sdp.SumProtocol, sdp.MeanProtocol])
@pytest.mark.parametrize("ends", [(0.0, 1.0), (100.0, 101.0), (-5.0, -4.0)])
def test_sums_and_means_move_by_the_closed_form(kind: Any, ends: tuple[float, float]) -> None:
    ages = kind(*ends, randomizer=sdp.KaryRandomizedResponse(3, 1.0), **PLAN)
    moved = 0.0
    for rows in product(range(3), repeat=3):
        for lie in range(3):
            after = ages.analyze(np.array([lie, *rows[1:]], dtype=np.uint8))
            moved = max(moved, abs(after.value - ages.analyze(np.array(rows, dtype=np.uint8)).value))
            beside = ages.analyze(np.array([*rows, lie], dtype=np.uint8))
            shift = abs(beside.value - ages.analyze(np.array(rows, dtype=np.uint8)).value)
            assert shift <= beside.poisoning(1) * (1 + 1e-12)
    assert moved <= after.poisoning(1) * (1 + 1e-12)
    if kind is sdp.MeanProtocol or ends[0] == 0.0:
        assert moved == pytest.approx(after.poisoning(1))


def test_every_printed_result_says_it_beside_the_error() -> None:
    survey = sdp.HistogramProtocol(["a", "b", "c"], epsilon=1.0, delta=1e-6, n=1000)
    result = survey.analyze(survey.randomize(["a"] * 1000))
    assert "1% lies" in str(result).splitlines()[0]
    assert f"{result.poisoning(10)[0]:.1f}" in str(result).splitlines()[1]
    assert "how far 10 dishonest reports could move it" in str(result)
    ages = sdp.MeanProtocol(0, 100, epsilon=1.0, delta=1e-6, n=1000)
    mean = ages.analyze(ages.randomize([50.0] * 1000))
    assert f"1% lies {mean.poisoning(10):.3g}" in str(mean)
    assert result.to_pandas()["one_percent_dishonest"].tolist() == result.poisoning(10).tolist()


@pytest.mark.parametrize("m", [-1, 1001, 0.5])
def test_an_impossible_number_of_liars_is_refused(m: Any) -> None:
    survey = sdp.HistogramProtocol(["a", "b", "c"], epsilon=1.0, delta=1e-6, n=1000)
    with pytest.raises(ValueError, match="m must be"):
        survey.analyze(survey.randomize(["a"] * 1000)).poisoning(m)
