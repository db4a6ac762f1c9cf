"""The privacy statement says what was received, assumed and certified."""

from __future__ import annotations

import json
import warnings
from functools import cache

import pytest

from shuffledp import KaryRandomizedResponse
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


def test_more_reports_than_planned_make_up_for_dishonest_ones() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        statement = state_privacy(survey(), 2000, honest_fraction=0.5)
    assert statement.n_honest == 1000
    assert not statement.weakened


def test_the_number_of_honest_reports_is_rounded_down_but_never_to_nobody() -> None:
    assert honest_reports(999, 0.5, None) == 499
    assert honest_reports(3, 0.1, None) == 1
    assert honest_reports(10, 1.0, 4) == 4


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
    assert "WEAKER THAN PLANNED" in str(result)
