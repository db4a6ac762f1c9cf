"""Certificates of noise on the line (T16, section 9): derived from rows that span, and forged."""

import json
import math
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from flint import arb

import shuffledp as sdp
from oracles.spans import cohort, counted, described, hockey_stick, neighbours, polled, some_span
from shuffledp._spans.span import Span
from shuffledp.verifying._curves import upper

Content = dict[str, Any]
N, DELTA = 2000, 1e-6
LAPLACE = sdp.facts_of_noise(
    lambda t: -0.5 * t - math.log(4.0), lambda t: 0.5 * np.exp(-0.5 * t), epsilon0=0.5
)
GAUSSIAN = sdp.facts_of_noise(
    lambda t: -(t**2) / 32.0 - math.log(4.0 * math.sqrt(2.0 * math.pi)),
    np.vectorize(lambda t: 0.5 * math.erfc(t / (4.0 * math.sqrt(2.0))), otypes=[float]),
)
MADE = {
    "Laplace": sdp.Shuffled(LAPLACE, n=N),
    "Gaussian": sdp.Shuffled(GAUSSIAN, n=N),
    "cohort": sdp.Shuffled(LAPLACE, n=N).sampled_from(10 * N),
    "cohort with Gaussian noise": sdp.Shuffled(GAUSSIAN, n=N).sampled_from(10 * N),
    "coins": sdp.Shuffled(LAPLACE, n=N, population=10 * N, rate=0.1),
    "rounds": 3 * sdp.Shuffled(LAPLACE, n=N),
}


def curve_of(span: Span, n: int, fraction: float = 1.0, rate: float = 1.0) -> Content:
    """As a certificate says it."""
    return {
        "kind": "crowd",
        "n": n,
        "epsilon0": span.epsilon0,
        "fraction": fraction,
        "rate": rate,
        "rows": span.rows.tolist(),
        "spread": span.spread.tolist(),
        "missed": span.missed.tolist(),
        "lost": span.lost,
    }


def derived(curve: Content, epsilon: float, enough: float = 0.0) -> float:
    return float(upper(curve, arb(epsilon), arb(enough)).upper())


# By definition


@pytest.mark.parametrize("lost", [0.0, 0.01])
@pytest.mark.parametrize(("people", "size"), [(3, 2), (4, 3), (5, 2)])
def test_what_is_derived_is_not_below_the_truth_in_cohorts(people: int, size: int, lost: float) -> None:
    rng, useful = np.random.default_rng(people), 0
    for missed in (1e-6, 0.01, 0.1):
        span = some_span(rng, int(rng.integers(2, 4)), 2, missed, lost)
        laws, *_ = described(rng, span, 3 if people < 5 else 2)
        told = [
            (curve_of(span, size, fraction=size / people), neighbours(cohort(laws, size), len(laws), people)),
            (curve_of(span, people, rate=0.5), neighbours(polled(laws, people, 0.5), len(laws), people)),
        ]
        for curve, both in told[: 2 if people < 5 else 1]:
            pairs = list(both)
            for epsilon in (0.05, 0.3, 1.0):
                truth = max(hockey_stick(p, q, math.exp(epsilon)) for p, q in pairs)
                found = derived(curve, epsilon)
                assert truth <= found * (1.0 + 1e-10)
                useful += found < 1.0
    assert useful > 3


@pytest.mark.parametrize(
    ("rows", "spread", "n"),
    [([[0.55, 0.45], [0.45, 0.55]], [0.0, 0.0], 400), ([[0.6, 0.4], [0.4, 0.6]], [0.1, 0.0], 100)],
)
def test_what_is_derived_is_not_below_the_truth_with_a_pool(
    rows: list[list[float]], spread: list[float], n: int
) -> None:
    rng, span = np.random.default_rng(n), Span(np.array(rows), np.array(spread), np.full(2, 1e-4))
    laws, *_ = described(rng, span, 3)
    scale = math.sqrt(((laws[0] - laws[1]) ** 2 / laws[0]).sum() / n)
    crowds = [*(np.full(n - 1, z) for z in range(3)), rng.integers(3, size=n - 1)]
    views = [[counted(laws, (*some.tolist(), x)) for x in range(3)] for some in crowds]
    for deviations in (0.5, 2.0, 4.0):
        found = derived(curve_of(span, n), deviations * scale)
        assert found < 1.0
        for laws_of_crowd in views:
            for p in laws_of_crowd:
                for q in laws_of_crowd:
                    assert hockey_stick([p], [q], math.exp(deviations * scale)) <= found * (1.0 + 1e-10)


# Certificates


def claimed(content: Content, epsilon: float) -> sdp.Certificate:
    return sdp.Certificate.made(epsilon, DELTA, content["rounds"], content["spacing"])


def spanned(content: Content) -> Content:
    """The curve of the rows, which is made to stand alone."""
    (part,) = content["rounds"]
    curve = part["curve"]
    found: Content = next(
        one for one in [curve, *curve.get("curves", []), curve.get("base", {})] if "spread" in one
    )
    part["curve"] = found
    return found


@pytest.mark.parametrize("name", MADE)
def test_certificates_of_noise_on_the_line_are_verified_and_smaller_ones_are_not(name: str) -> None:
    mechanism = MADE[name]
    bound = mechanism.epsilon(delta=DELTA, tolerance=1e-2)
    certificate = bound.certificate()
    assert certificate.verify(bits=128, of=mechanism)
    assert bound.upper < 1.1 * bound.lower
    for share in (0.98 * bound.lower / bound.upper, 0.5) if name != "rounds" else (0.9,):
        with suppress(ValueError):
            assert not claimed(certificate.to_dict(), share * bound.upper).verify(bits=128)


FORGED: list[tuple[str, Callable[[Content], Any]]] = [
    ("Laplace", lambda c: c.update(epsilon0=1e-3)),
    ("Laplace", lambda c: c.update(epsilon0=0.99 * c["epsilon0"])),
    ("Laplace", lambda c: c.update(rows=[[0.9 * p for p in row] for row in c["rows"]])),
    ("Laplace", lambda c: c.update(spread=[0.0] * len(c["spread"]))),
    ("Laplace", lambda c: c.update(missed=[0.0] * len(c["missed"]))),
    ("Laplace", lambda c: c.update(spread=[-0.5 * s for s in c["spread"]])),
    ("Laplace", lambda c: c.update(missed=[-0.1] * len(c["missed"]))),
    ("Laplace", lambda c: c.update(spread=[1.5 for _ in c["spread"]])),
    ("Laplace", lambda c: c.update(spread=c["spread"][:-1])),
    ("Laplace", lambda c: c.update(missed=[])),
    ("Laplace", lambda c: c.update(lost=-0.01)),
    ("Laplace", lambda c: c.pop("missed")),
    ("Gaussian", lambda c: c.update(spread=[0.0] * len(c["spread"]), missed=[0.0] * len(c["missed"]))),
    ("Gaussian", lambda c: c.update(lost=-1e-3)),
    ("Gaussian", lambda c: c["rows"][0].__setitem__(0, 0.0)),
    ("Gaussian", lambda c: c.update(rows=c["rows"][:0])),
]


@pytest.mark.parametrize(("name", "forge"), FORGED, ids=[f"{i}-{name}" for i, (name, _) in enumerate(FORGED)])
def test_forged_rows_of_less_than_the_truth_are_not_verified(
    name: str, forge: Callable[[Content], Any]
) -> None:
    mechanism = MADE[name]
    bound = mechanism.epsilon(delta=DELTA, tolerance=1e-2)
    content = bound.certificate().to_dict()
    forge(spanned(content))
    for share in (0.97, 0.5):
        with suppress(ValueError, KeyError):
            forged = claimed(json.loads(json.dumps(content)), share * bound.lower)
            assert not forged.verify(bits=128)
    with suppress(ValueError, KeyError):
        assert not claimed(content, bound.upper).verify(bits=128, of=mechanism)


@pytest.mark.parametrize("name", ["Laplace", "cohort with Gaussian noise", "coins"])
def test_spread_and_what_is_missed_and_lost_count(name: str) -> None:
    bound = MADE[name].epsilon(delta=DELTA, tolerance=1e-2)
    curve = spanned(bound.certificate().to_dict())

    def at(**changed: Any) -> float:
        return derived({**curve, "epsilon0": 2.0 * curve["epsilon0"], **changed}, bound.upper)

    plain, lost = at(), 1e-10
    assert at(spread=[0.0 for _ in curve["spread"]]) < (1.0 - 1e-3) * plain
    assert at(spread=[1.5 * by for by in curve["spread"]]) > (1.0 + 1e-3) * plain
    assert at(missed=[0.001 for _ in curve["missed"]]) > (1.0 + 1e-3) * plain
    assert at(lost=curve["lost"] + lost) > plain + 2.0 * curve["n"] * lost
