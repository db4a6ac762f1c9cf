"""A plan is checked where it is used: certified or signed, pinned, and within its owner's limit."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import pytest

import shuffledp as sdp
from shuffledp.collecting.plan import plan_text

pytestmark = pytest.mark.quick


@cache
def survey() -> sdp.HistogramProtocol:
    return sdp.HistogramProtocol(["no", "yes", "maybe"], epsilon=1.0, delta=1e-8, n=1000)


def changed(**fields: Any) -> dict[str, Any]:
    plan: dict[str, Any] = json.loads(json.dumps(survey().to_dict() | fields))
    return plan


def test_a_plan_that_misses_its_own_target_is_refused() -> None:
    """epsilon = 1 with epsilon0 = 30 would send everybody's truth."""
    loud = changed(randomizer=survey().to_dict()["randomizer"] | {"epsilon0": 30.0})
    with pytest.raises(ValueError, match="must meet epsilon"):
        sdp.protocol_from_dict(loud)
    with pytest.raises(sdp.PlanError, match="must meet epsilon"):
        sdp.load_plan(loud)


@pytest.mark.parametrize("change", [{"n": 500}, {"epsilon": 0.5}, {"delta": 1e-12}, {"rounds": 2}])
def test_a_plan_whose_promise_was_changed_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(sdp.PlanError, match="must meet epsilon"):
        sdp.load_plan(changed(**change))


def test_unknown_keys_and_other_spellings_are_refused() -> None:
    with pytest.raises(sdp.PlanError, match=r"unknown keys.*note"):
        sdp.load_plan(changed(note="trust me"))
    with pytest.raises(ValueError, match=r"unknown keys.*note"):
        sdp.protocol_from_dict(changed(note="trust me"))
    with pytest.raises(sdp.PlanError, match="not written as"):
        sdp.load_plan(changed(n=1000.0))


def test_the_fingerprint_is_short_and_pins_the_plan() -> None:
    pinned = sdp.short_fingerprint(survey())
    assert len(pinned) == 35
    assert sdp.load_plan(changed(), fingerprint=pinned) == survey()
    assert sdp.load_plan(changed(), fingerprint=survey().fingerprint.upper()) == survey()
    # A larger n is certified for less than the target: only the fingerprint tells it apart.
    sdp.load_plan(changed(n=2000))
    with pytest.raises(sdp.PlanError, match="fingerprint"):
        sdp.load_plan(changed(n=2000), fingerprint=pinned)
    with pytest.raises(sdp.PlanError, match="n = 2000"):
        sdp.load_plan(changed(n=2000), n=1000)


@pytest.mark.parametrize("pinned", ["", "3f2a9c01", "g" * 32])
def test_a_fingerprint_that_pins_nothing_is_refused(pinned: str) -> None:
    with pytest.raises(ValueError, match="32 to 64 hexadecimal"):
        sdp.load_plan(changed(), fingerprint=pinned)


def test_a_client_bounds_what_one_report_reveals() -> None:
    alone = survey().randomizer.facts().epsilon0.upper
    assert sdp.load_plan(changed(), max_epsilon0=alone) == survey()
    with pytest.raises(sdp.PlanError, match="max_epsilon0"):
        sdp.load_plan(changed(), max_epsilon0=alone - 1e-9)


def test_a_signed_plan_is_taken_from_its_signer_alone() -> None:
    private, public = sdp.signing_keys()
    signed = json.loads(json.dumps(sdp.sign_plan(survey(), private)))
    assert signed["plan"] == plan_text(survey())
    assert sdp.load_plan(signed, public_key=public) == survey()
    assert sdp.load_plan(signed) == survey()  # without a key: certified, as any other plan
    with pytest.raises(sdp.PlanError, match="not signed with this key"):
        sdp.load_plan(signed, public_key=sdp.signing_keys()[1])
    with pytest.raises(sdp.PlanError, match="must be signed"):
        sdp.load_plan(changed(), public_key=public)


def test_a_signed_plan_cannot_be_changed() -> None:
    private, public = sdp.signing_keys()
    signed = sdp.sign_plan(survey(), private)
    others = [
        {"plan": signed["plan"].replace('"n":1000', '"n":2000')},
        {"signature": signed["signature"][:-1] + ("0" if signed["signature"][-1] != "0" else "1")},
        {"signature": "no hex"},
        {"plan": None},
        {"signed_plan": 2},
        {"comment": "x"},
    ]
    for change in others:
        with pytest.raises(sdp.PlanError):
            sdp.load_plan(signed | change, public_key=public)


def test_nobody_signs_what_is_not_certified() -> None:
    loud = changed(randomizer=survey().to_dict()["randomizer"] | {"epsilon0": 30.0})
    with pytest.raises(ValueError, match="must meet epsilon"):
        sdp.HistogramProtocol.from_dict(loud)
    with pytest.raises(ValueError, match="must meet epsilon"):
        sdp.sign_plan(sdp.HistogramProtocol.described(loud), sdp.signing_keys()[0])


@pytest.mark.parametrize("plan", [None, [], {}, {"protocol": "histogram"}, "x", {"signed_plan": 1}])
def test_what_is_no_plan_is_a_plan_error(plan: Any) -> None:
    with pytest.raises(sdp.PlanError):
        sdp.load_plan(plan)


def test_a_key_is_never_shown() -> None:
    with pytest.raises(ValueError, match="64 hexadecimal") as caught:
        sdp.sign_plan(survey(), "secret")
    assert "secret" not in str(caught.value)


@pytest.mark.thorough
@pytest.mark.parametrize("k", [2, 3, 40])
def test_the_planner_keeps_to_a_limit_on_one_report(k: int) -> None:
    free = sdp.HistogramProtocol(range(k), epsilon=1.0, delta=1e-6, n=10_000)
    assert free.randomizer.facts().epsilon0.upper > 2.0
    capped = sdp.HistogramProtocol(range(k), epsilon=1.0, delta=1e-6, n=10_000, max_epsilon0=2.0)
    assert 1.999999 < capped.randomizer.facts().epsilon0.upper <= 2.0
    same = sdp.HistogramProtocol(range(k), epsilon=1.0, delta=1e-6, n=10_000, max_epsilon0=30.0)
    assert same == free
    assert sdp.load_plan(capped.to_dict(), max_epsilon0=2.0) == capped


def test_the_planner_of_numbers_keeps_to_it_too() -> None:
    ages = sdp.MeanProtocol(0, 100, epsilon=1.0, delta=1e-6, n=10_000, max_epsilon0=2.0, messages="auto")
    assert 1.999999 < ages.randomizer.facts().epsilon0.upper <= 2.0
    assert ages.messages == 1


def test_a_limit_that_cannot_be_kept_is_an_error() -> None:
    loud = sdp.KaryRandomizedResponse(k=3, epsilon0=3.0)
    with pytest.raises(ValueError, match=r"max_epsilon0 = 2\.0 is less than one report"):
        sdp.HistogramProtocol(range(3), 1.0, 1e-6, 10_000, randomizer=loud, max_epsilon0=2.0)
    with pytest.raises(ValueError, match="epsilon0 must be in"):
        sdp.HistogramProtocol(range(3), 1.0, 1e-6, 10_000, max_epsilon0=0.0)
