"""Answers to many questions at once: each is what it is alone, and what the definition says."""

import math

import numpy as np
import pytest

import shuffledp as sdp
from shuffledp.accounting._curves.law_sum import AmplificationProfile, LawRows

pytestmark = pytest.mark.quick


def test_each_of_many_answers_is_the_one_it_is_alone() -> None:
    kary = [
        sdp.Shuffled(sdp.KaryRandomizedResponse(k=k, epsilon0=epsilon0), n=n)
        for k, epsilon0, n in (
            (3, 0.5, 500),
            (16, 5.0, 1000),
            (16, 2.0, 10**4),
            (4, 4.0, 10**6),
            (16, 1.0, 30),
        )
    ]
    other = [
        sdp.Shuffled(sdp.LocalRandomizer(epsilon0=2.0), n=10**4),
        3 * kary[2],
        sdp.Shuffled(sdp.KaryRandomizedResponse(k=5, epsilon0=0.0), n=100),
        sdp.Shuffled(sdp.LocalRandomizer(epsilon0=1.0, delta0=1e-7), n=1),
    ]
    together = sdp.epsilon_of_each([*kary, *other], delta=1e-6)
    alone = [mechanism.epsilon(delta=1e-6) for mechanism in [*kary, *other]]
    np.testing.assert_allclose(together.upper, [bound.upper for bound in alone], rtol=1e-9)
    np.testing.assert_allclose(together.lower, [bound.lower for bound in alone], rtol=1e-9)


def test_no_mechanism_and_no_probability() -> None:
    assert np.asarray(sdp.epsilon_of_each([], delta=1e-6).upper).size == 0
    with pytest.raises(ValueError, match="delta"):
        sdp.epsilon_of_each([], delta=2.0)


def plain_blanket(n: int, k: int, epsilon0: float, epsilon: float) -> float:
    """(1/n) E[(sum of X)_+] over all counts of reports x, x' and others by those who answer at random."""
    grown, alpha = math.exp(epsilon0), math.exp(epsilon)
    p = 1.0 / (grown + k - 1.0)
    log = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1.0, n + 1.0)))])
    total = 0.0
    for seen in range(n + 1):  # reports of a third value, answered at random
        a, b = np.meshgrid(np.arange(n - seen + 1), np.arange(n - seen + 1))
        rest = n - seen - a - b
        there = rest >= 0
        a, b, rest = a[there], b[there], rest[there]
        size = log[n] - log[a] - log[b] - log[seen] - log[rest]
        size += (a + b) * math.log(p) + seen * math.log((k - 2) * p) + rest * math.log1p(-k * p)
        value = (grown - alpha) * a + (1.0 - alpha * grown) * b + (1.0 - alpha) * seen
        total += float(np.exp(size) @ np.maximum(value, 0.0))
    return total / n


def test_rows_of_different_laws_and_crowds_hold_the_definition() -> None:
    questions = [(60, 3, 1.0, 0.3), (70, 5, 2.0, 0.9), (80, 3, 3.0, 1.2), (60, 4, 2.5, 2.0)]
    rows = []
    for n, k, epsilon0, epsilon in questions:
        (law,) = sdp.KaryRandomizedResponse(k=k, epsilon0=epsilon0).facts().above
        curve = AmplificationProfile(n, law.own, law.other, law.gap, law.clone)
        assert LawRows.of(curve, np.array([epsilon]), True) is None  # so few are enumerated
        gap, other, clone = (np.array([part]) for part in (law.gap, law.other, law.clone))
        rest = np.array([[1.0 - math.fsum(law.clone)]])
        rows.append(LawRows(np.array([epsilon]), np.array([float(n)]), gap, other, clone, rest))
    upper, lines = LawRows.join(rows).both(1e-4)
    alone = LawRows.join(rows).lines(1e-4)
    exact = np.array([plain_blanket(n, k, epsilon0, epsilon) for n, k, epsilon0, epsilon in questions])
    assert (upper >= exact * (1.0 - 1e-9)).all()
    assert (upper <= 1.002 * exact).all()
    for found in (lines, alone):
        assert (found[0] <= exact * (1.0 + 1e-9)).all()
        assert (found[0] >= 0.998 * exact).all()
        assert (found[1] <= found[2]).all()
