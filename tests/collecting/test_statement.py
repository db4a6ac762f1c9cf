"""The privacy statement says what was received, assumed and certified."""

from __future__ import annotations

import json
import warnings
from functools import cache

import numpy as np
import pytest

from shuffledp import KaryRandomizedResponse, shuffle
from shuffledp.accounting.mechanism import Shuffled
from shuffledp.collecting.histogram import HistogramProtocol
from shuffledp.collecting.statement import honest_reports, state_privacy
from shuffledp.errors import WeakerPrivacyWarning

pytestmark = pytest.mark.quick


@cache
def survey() -> HistogramProtocol:
    answer = KaryRandomizedResponse(k=4, epsilon0=2.0)
    return HistogramProtocol(["no", "yes", 0, 1], 0.6, 1e-6, n=1000, randomizer=answer, rounds=2)


def certified(n: int, rounds: int) -> float:
    return (rounds * Shuffled(survey().randomizer, n=n)).upper_epsilon(delta=1e-6)


def test_as_planned_the_statement_holds_the_target() -> None:
    statement = state_privacy(survey(), 1000, rounds=2)
    assert statement.epsilon == certified(1000, 2) <= 0.6
    assert not statement.weakened
    assert "WEAKER" not in statement.text


def test_fewer_reports_weaken_the_statement_visibly() -> None:
    with pytest.warns(WeakerPrivacyWarning, match="600 honest reports instead of 1000"):
        statement = state_privacy(survey(), 600, rounds=2)
    assert statement.weakened
    assert statement.epsilon == certified(600, 2) > 0.6
    assert "WEAKER THAN PLANNED" in statement.text
    assert json.loads(statement.to_json())["weakened"] is True


def test_the_warning_never_says_less_than_the_certificate() -> None:
    for received in (300, 500, 600, 700, 900):
        with pytest.warns(WeakerPrivacyWarning) as caught:
            statement = state_privacy(survey(), received)
        said = str(caught[0].message).split("epsilon is ")[1].split(";")[0]
        assert statement.epsilon <= float(said) <= 1.0001 * statement.epsilon


def test_only_honest_reports_count() -> None:
    with pytest.warns(WeakerPrivacyWarning):
        by_share = state_privacy(survey(), 1000, honest_fraction=0.75)
    with pytest.warns(WeakerPrivacyWarning):
        by_number = state_privacy(survey(), 1000, minimum_honest=750)
    assert by_share == by_number
    assert by_share.epsilon == certified(750, 1)
    assert "at least 750 of the 1000 received" in by_share.assumption


def test_injected_reports_do_not_improve_the_statement() -> None:
    """Whatever arrives, no more than the planned reports (or their honest share) hide anybody."""
    planned = state_privacy(survey(), 1000)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        flooded = state_privacy(survey(), 3_000_000)
    assert (flooded.n_honest, flooded.epsilon) == (1000, planned.epsilon)
    with pytest.warns(WeakerPrivacyWarning):
        half = state_privacy(survey(), 3_000_000, honest_fraction=0.5)
    assert (half.n_honest, half.epsilon) == (500, certified(500, 1))
    with pytest.raises(ValueError, match=r"minimum_honest must be in \[1, 1000\]"):
        state_privacy(survey(), 3_000_000, minimum_honest=1001)


def test_the_number_of_honest_reports_is_rounded_down_but_never_to_nobody() -> None:
    assert honest_reports(999, 10_000, 0.5, None) == 499
    assert honest_reports(3, 10_000, 0.1, None) == 1
    assert honest_reports(10, 10_000, 1.0, 4) == 4


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"honest_fraction": 0.0}, "honest_fraction must be in"),
        ({"honest_fraction": 1.5}, "honest_fraction must be in"),
        ({"minimum_honest": 1001}, "minimum_honest must be in"),
        ({"minimum_honest": 0}, "minimum_honest must be in"),
        ({"minimum_honest": 10, "honest_fraction": 0.5}, "give one of"),
        ({"rounds": 3}, "rounds must be in"),
        ({"reservation": "x"}, "a ledger needs a reservation"),
    ],
)
def test_impossible_assumptions_are_refused(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        state_privacy(survey(), 1000, **arguments)


def test_the_text_names_all_that_the_number_rests_on() -> None:
    text = state_privacy(survey(), 1000).text
    for fact in (
        "KaryRandomizedResponse(k=4",
        "1 so far, 2 planned",
        "1000 received, 1000 planned",
        "substitution",
        "knows the data of all other people",
        "randomized as prescribed",
    ):
        assert fact in text
    assert json.loads(state_privacy(survey(), 1000).to_json())["assumption"] in text


def test_results_carry_the_statement_and_its_warning() -> None:
    reports = survey().randomize(["no"] * 500)
    with pytest.warns(WeakerPrivacyWarning):
        result = survey().analyze(reports, honest_fraction=0.9)
    assert result.privacy.n_honest == 450
    assert "FEWER REPORTS THAN PLANNED" in str(result)


def test_simulated_reports_are_never_called_certified() -> None:
    """Also through shuffling, pieces, tallies and single reports."""
    rng = np.random.default_rng(1)
    reports = survey().randomize(["no"] * 1000, rng=rng)
    tally = survey().count(reports[:300]) + survey().count(reports[300:])
    single = np.concatenate([reports[1:], [survey().randomize("no", rng=rng)]])
    for result in (
        survey().analyze(reports),
        survey().analyze(shuffle(reports)),
        survey().analyze(shuffle(survey().randomize(["no"] * 1000), rng=rng)),
        survey().analyze(tally=tally, n=1000),
        survey().analyze(single),
    ):
        assert result.privacy.simulated
        assert "SIMULATED" in result.privacy.text
        assert "certified" not in str(result)
    real = survey().analyze(survey().randomize(["no"] * 1000))
    assert not real.privacy.simulated
    assert "certified" in real.privacy.text
    assert "SIMULATED" not in str(real)


def test_a_report_that_nobody_sends_costs_one_report() -> None:
    reports = survey().randomize(["yes"] * 1000)
    result = survey().analyze(np.concatenate([reports, [200, 4, 255]]))
    assert (result.n, result.privacy.n_set_aside) == (1000, 3)
    assert "1000 received, 1000 planned, 3 more set aside" in result.privacy.text
    with pytest.raises(ValueError, match="got none among 2"):
        survey().analyze(np.array([200, 4], dtype=np.uint8))
