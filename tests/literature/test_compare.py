"""Every bound beside the others: sound ones above the truth, unsound ones named."""

from __future__ import annotations

import json
import math
from fractions import Fraction

import pytest

import shuffledp as sdp
from oracles.brute import k_ary, shuffled_pairs, worst
from shuffledp.facts import Facts

SURVEY = sdp.Shuffled(sdp.KaryRandomizedResponse(k=4, epsilon0=1.0), n=1000)
COHORT = sdp.Shuffled(sdp.LocalRandomizer(epsilon0=2.0), n=2000).sampled_from(60_000)
MECHANISMS = {
    "kary": SURVEY,
    "kary, tight": sdp.Shuffled(sdp.KaryRandomizedResponse(k=4, epsilon0=2.0), n=300),
    "binary": sdp.Shuffled(sdp.BinaryRandomizedResponse(epsilon0=2.0), n=200),
    "generic": sdp.Shuffled(sdp.LocalRandomizer(epsilon0=0.4), n=100_000),
    "matrix": sdp.Shuffled(sdp.FiniteRandomizer([[0.6, 0.3, 0.1], [0.2, 0.3, 0.5]]), n=500),
    "one user": sdp.Shuffled(sdp.LocalRandomizer(epsilon0=1.0), n=1),
    "rounds": 30 * SURVEY,
    "cohorts": 1515 * COHORT,
    "mix": 2 * SURVEY + COHORT,
    "nothing local": sdp.Shuffled(sdp.LocalRandomizer(epsilon0=0.0), n=10),
    "no rounds": 0 * SURVEY,
    "coins": SURVEY.sampled_from(20_000, poisson=True),
    "strong": sdp.Shuffled(sdp.KaryRandomizedResponse(k=4, epsilon0=2.0), n=300, analysis="strong"),
}


@pytest.mark.parametrize("name", MECHANISMS)
def test_every_sound_bound_is_above_the_truth_and_the_best_is_ours(name: str) -> None:
    mechanism = MECHANISMS[name]
    for found in (sdp.compare(mechanism, delta=1e-6), sdp.compare(mechanism, epsilon=0.1)):
        assert all(row.value >= found.lower for row in found if row.soundness != "unsound")
        assert all(row.note for row in found if row.soundness != "sound")
        assert all(row.seconds >= 0.0 and row.theorem for row in found)
        values = [row.value for row in found]
        assert values == sorted(values)
        assert not any(math.isnan(value) for value in values)
        if len(found) and found.best.value > 1e-290:  # what is smaller is a matter of rounding
            assert found.best.bound in ("exact", "crowd", "blanket", "clones")


def test_every_part_of_the_ternary_divergence_is_named() -> None:
    named = " ".join(row.theorem for row in sdp.compare(COHORT, delta=1e-6))
    for part in ("Theorem 1", "Theorem 4", "Theorems 5 and 6", "Lemma 2", "Corollary 1", "Lemma 7"):
        assert part in named


def test_unsound_bounds_are_seen_below_the_truth() -> None:
    found = sdp.compare(SURVEY, epsilon=0.1)
    wrong = {row.bound for row in found if row.value < found.lower}
    assert wrong == {"one bin as printed", "Bennett as printed", "clones specific to k-RR"}
    assert all(found[name].soundness == "unsound" for name in wrong)


def test_sound_bounds_cover_every_dataset_of_three_users() -> None:
    three = sdp.Shuffled(sdp.KaryRandomizedResponse(k=3, epsilon0=math.log(5)), n=3)
    pairs = shuffled_pairs(k_ary(3, 5), 3)
    exceeded = []
    for alpha in (Fraction(3, 2), Fraction(2), Fraction(3), Fraction(4)):
        truth = worst(pairs, alpha)
        found = sdp.compare(three, epsilon=math.log(alpha))
        assert found.lower <= truth * (1 + Fraction(1, 10**9))
        for row in found:
            if row.soundness != "unsound":
                assert row.value >= truth * (1 - Fraction(1, 10**9)), row
        exceeded.append(truth - Fraction(found["clones specific to k-RR"].value))
    assert max(exceeded) > Fraction(1, 100)


def test_a_theorem_outside_its_range_answers_what_holds_anyway() -> None:
    small = sdp.Shuffled(sdp.LocalRandomizer(epsilon0=2.0), n=50)
    row = sdp.compare(small, delta=1e-8)["Feldman et al. 2022, closed form"]
    assert (row.value, row.soundness) == (2.0, "sound outside its stated range")
    assert "epsilon0" in row.note
    assert sdp.compare(small, epsilon=0.1)["Erlingsson et al. 2019"].value == 1.0


def test_the_learning_paper_s_numbers_are_among_them() -> None:
    found = sdp.compare(1515 * COHORT, delta=1e-5)
    assert found["Girgis et al. 2021"].value == pytest.approx(2.99977, abs=1e-4)
    assert found["cohorts as published"].value == pytest.approx(0.315, abs=1e-3)
    assert found["clones"].value == pytest.approx(0.3057, abs=5e-4)
    assert found.lower <= found.best.value < 0.97 * found["clones"].value


def test_a_mix_of_rounds_is_compared_by_the_certified_analyses_alone() -> None:
    found = sdp.compare(MECHANISMS["mix"], delta=1e-6)
    assert {row.bound for row in found} == {"clones", "clones-2021"}


@pytest.mark.parametrize(
    ("mechanism", "why"),
    [
        (MECHANISMS["coins"], "coins of their own"),
        (SURVEY.sampled_from(20_000, rate=0.05), "coins of their own"),
        (SURVEY.sampled_from(20_000, honest_fraction=0.9), "cohorts of honest people alone"),
        (MECHANISMS["mix"], "repetitions of one shuffled round"),
        (sdp.Shuffled(Facts(epsilon0=sdp.Bound(0.0, 1.0), delta0=1e-10), n=1000), "pure local privacy"),
        (MECHANISMS["nothing local"], "epsilon0 in (0, 300], here 0"),
    ],
)
def test_it_is_said_why_no_published_bound_is_shown(mechanism: sdp.Mechanism, why: str) -> None:
    found = sdp.compare(mechanism, delta=1e-3)
    assert {row.note for row in found} == {"certified numerically"}
    assert found.left_out.startswith("No published bound is shown: ")
    assert why in found.left_out
    assert str(found).endswith(found.left_out)
    assert found.left_out in found._repr_html_()
    assert found.to_dict()["left_out"] == found.left_out


def test_published_bounds_of_honest_people_alone_are_those_of_a_crowd_of_them() -> None:
    some = sdp.compare(sdp.Shuffled(SURVEY.randomizer, n=1000, honest_fraction=0.9), delta=1e-6)
    fewer = sdp.compare(sdp.Shuffled(SURVEY.randomizer, n=900), delta=1e-6)
    assert {row.bound: row.value for row in some} == {row.bound: row.value for row in fewer}
    assert some.left_out == fewer.left_out == ""


def test_what_one_analysis_alone_is_about_is_not_compared() -> None:
    groups = sdp.ShuffledGroups.of(sdp.KaryRandomizedResponse, {1.0: 500, 2.0: 500}, k=4)
    for mechanism in (groups, groups.person(1.0), 3 * SURVEY + groups):
        with pytest.raises(TypeError, match="mechanism must be rounds of Shuffled to be compared, got"):
            sdp.compare(mechanism, delta=1e-6)


def test_it_renders_in_a_terminal_a_notebook_and_pandas() -> None:
    found = sdp.compare(30 * SURVEY, delta=1e-6)
    text = str(found)
    assert "epsilon at delta = 1e-06" in text
    assert "the truth is at least" in text
    assert max(len(line) for line in text.splitlines()[1:]) < 250
    page = found._repr_html_()
    assert page.count("<tr>") == len(found) + 1
    assert "<table>" in page
    frame = found.to_pandas()
    assert list(frame["bound"]) == [row.bound for row in found]
    assert frame.attrs["lower"] == found.lower
    assert json.loads(json.dumps(found.to_dict()))["rows"][0]["bound"] == found.rows[0].bound
    with pytest.raises(KeyError, match="blanket"):
        found["nonsense"]


def test_beyond_the_local_epsilon_nothing_is_left_to_compare() -> None:
    found = sdp.compare(3 * SURVEY, epsilon=50.0)
    assert {row.value for row in found} == {0.0}
    assert "delta is zero" in found.left_out
    assert "strong" not in {row.bound for row in found}


def test_one_user_and_reports_that_say_nothing_can_be_compared() -> None:
    alone = sdp.Shuffled(sdp.KaryRandomizedResponse(k=3, epsilon0=1.0), n=1)
    assert sdp.compare(alone, delta=1e-3).best.value <= 1.0
    silent = sdp.Shuffled(sdp.LocalRandomizer(epsilon0=1.0, total_variation=0.0), n=100)
    assert sdp.compare(2 * silent, delta=1e-6).best.value == 0.0
    assert (2 * silent).epsilon(delta=1e-6) == sdp.Bound(0.0, 0.0)


def test_a_stranger_s_facts_are_compared_like_our_own() -> None:
    law = sdp.KaryRandomizedResponse(k=4, epsilon0=1.0).facts().above[0]
    stated = sdp.Shuffled(Facts.of_law(law, 1.0), n=1000)
    found, ours = sdp.compare(stated, delta=1e-6), sdp.compare(SURVEY, delta=1e-6)
    assert found["blanket"].value == ours["blanket"].value
    assert found["Feldman et al. 2022, closed form"].value == ours["Feldman et al. 2022, closed form"].value
    assert "Bennett as printed" not in {row.bound for row in found}  # it is not known to be k-RR
    response = sdp.compare(sdp.Shuffled(Facts.of_response(4, 1.0), n=1000), delta=1e-6)
    assert {row.bound: row.value for row in response} == {row.bound: row.value for row in ours}


def test_theorems_about_pure_local_privacy_are_not_asked_about_approximate_or_hardly_any() -> None:
    leaking = sdp.Shuffled(Facts(epsilon0=sdp.Bound(0.0, 1.0), delta0=1e-10), n=1000)
    found = sdp.compare(leaking, delta=1e-3)
    assert {row.bound for row in found} == {"crowd", "clones", "clones-2021"}
    rare = math.exp(-400.0)
    open_ = sdp.Shuffled(Facts.of_matrix([[1.0 - rare, rare], [rare, 1.0 - rare]]), n=10)
    assert "Girgis et al. 2021" not in {row.bound for row in sdp.compare(open_, delta=0.5)}


def test_bad_input_is_named() -> None:
    with pytest.raises(ValueError, match="one of delta and epsilon"):
        sdp.compare(SURVEY)
    with pytest.raises(ValueError, match="one of delta and epsilon"):
        sdp.compare(SURVEY, delta=0.1, epsilon=0.1)
    with pytest.raises(ValueError, match="delta"):
        sdp.compare(SURVEY, delta=0.0)
    with pytest.raises(ValueError, match="epsilon"):
        sdp.compare(SURVEY, epsilon=-1.0)
    with pytest.raises(TypeError, match="mechanism"):
        sdp.compare(sdp.LocalRandomizer(1.0), delta=0.1)


def test_the_renyi_curve_of_a_bounded_loss_is_finite_however_far_its_tail_reaches() -> None:
    """Of 10^5 people less than 10^-300 is left beyond the last point; the loss is at most epsilon0."""
    one = sdp.Shuffled(sdp.KaryRandomizedResponse(k=4, epsilon0=1.0), n=10**5)
    for rounds in (1, 4):
        found = sdp.compare(rounds * one, delta=1e-6)["Renyi curve of the certified profile"].value
        least = (rounds * one).epsilon(delta=1e-6).lower
        assert least < found < 2.0 * least
