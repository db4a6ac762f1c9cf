"""The quick bound on many rounds: never below what real datasets show, and not far above."""

from __future__ import annotations

import math
from itertools import product

import pytest

import shuffledp as sdp
from shuffledp.accounting._ends.moments import THETAS, LogMoments

pytestmark = pytest.mark.quick


def response(k: int, epsilon0: float, n: int) -> sdp.Shuffled:
    return sdp.Shuffled(sdp.KaryRandomizedResponse(k=k, epsilon0=epsilon0), n=n)


MIXES = [
    30 * response(3, 2.0, 1000),
    100 * response(3, 2.0, 10_000),
    response(3, 1.0, 50) + response(4, 2.0, 300) + response(7, 3.0, 5000),
    5 * response(3, 0.5, 3) + response(3, 1.0, 2),
    3 * response(3, 5.0, 200),
]


@pytest.mark.parametrize("mix", MIXES, ids=repr)
@pytest.mark.parametrize("delta", [1e-3, 1e-9])
def test_the_quick_epsilon_is_above_the_truth_and_near(mix: sdp.Mechanism, delta: float) -> None:
    quick = LogMoments.of(mix._rounds(), delta).upper_epsilon(delta)
    composed = mix.upper_epsilon(
        delta=delta
    )  # above the truth, and close: the tests of the accountant say so
    assert composed <= quick <= 1.5 * composed


def test_the_exact_delta_of_randomized_response_without_a_crowd_stays_below() -> None:
    """By the definition: all outcomes of t rounds of binary response, summed."""
    epsilon0, t, delta = 0.3, 8, 1e-4
    one = sdp.Shuffled(sdp.BinaryRandomizedResponse(epsilon0=epsilon0), n=1)
    quick = LogMoments.of((t * one)._rounds(), delta).upper_epsilon(delta)
    p = math.exp(epsilon0) / (1 + math.exp(epsilon0))
    worst = 0.0
    for bits in product((0, 1), repeat=t):
        own = math.prod(p if bit else 1 - p for bit in bits)
        other = math.prod(1 - p if bit else p for bit in bits)
        worst += max(0.0, own - math.exp(quick) * other)
    assert worst <= delta


def test_moments_add_up_and_travel() -> None:
    part = response(3, 2.0, 1000)
    one, three = LogMoments.of(part._rounds(), 1e-6), LogMoments.of((3 * part)._rounds(), 1e-6)
    added = one + one + one
    assert added.upper_epsilon(1e-6) == pytest.approx(three.upper_epsilon(1e-6), rel=0.02)
    assert LogMoments.from_list(one.to_list()) == one
    assert len(one.logs) == len(THETAS)
    for wrong in ([0.0], [2.0, *one.logs], [0.0, *one.logs[:-1], math.inf]):
        with pytest.raises(ValueError, match="moments must be"):
            LogMoments.from_list(wrong)


def test_an_infinite_loss_that_is_too_likely_has_no_epsilon() -> None:
    assert LogMoments(infinity=1e-3).upper_epsilon(1e-6) == math.inf
