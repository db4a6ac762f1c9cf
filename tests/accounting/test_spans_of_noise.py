"""Rows that span noise on the line (T16, section 9): what is claimed of masses, in ball arithmetic, at inputs
off every grid; and cohorts of people whose reports are told in bins."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import pairwise

import numpy as np
import pytest
from flint import arb, ctx
from scipy.optimize import linprog

from oracles.spans import Floats, cohort, hockey_stick, neighbours, polled
from shuffledp._spans import of_noise as noise_span
from shuffledp._spans.control_points import is_kinked
from shuffledp._spans.density import Density
from shuffledp._spans.span import Span
from shuffledp.accounting._curves.crowd import CrowdProfile


@pytest.fixture(autouse=True)
def _closely() -> Iterator[None]:
    with ctx.workprec(160):
        yield


@dataclass(frozen=True)
class Noise:
    """In floats, and in balls: ``f`` and the probability of noise >= t, for all t."""

    name: str
    stated: Density
    f: Callable[[arb], arb]
    tail: Callable[[arb], arb]

    def __repr__(self) -> str:
        return self.name

    @cached_property
    def span(self) -> Span:
        found = noise_span.span_of_noise(self.stated)
        assert found is not None
        return found

    @cached_property
    def edges(self) -> list[float]:
        """Of the types: what lies beyond them is a type, too, where ratios are bounded."""
        kinked = is_kinked(self.stated.log_f(np.array([0.0, 2.0**-10, 2.0**-9])))
        points = noise_span._OF_A_KINK if kinked else noise_span._points(self.stated)
        found = noise_span._edges(self.stated, kinked, points)
        assert found is not None
        some = found.tolist()
        return [-math.inf, *some, math.inf] if math.isfinite(self.stated.epsilon0) else some

    def masses(self, x: float) -> list[arb]:
        """Of the types, on the input x."""
        tails = [
            self.tail(arb(edge) - arb(x)) if math.isfinite(edge) else arb(int(edge < 0.0))
            for edge in self.edges
        ]
        return [before - after for before, after in pairwise(tails)]


def laplace(scale: float) -> Noise:
    return Noise(
        f"Laplace {scale}",
        Density(
            lambda t: -t / scale - math.log(2.0 * scale),
            lambda t: 0.5 * np.exp(-t / scale),
            1e-13,
            1.0 / scale,
        ),
        lambda t: (-abs(t) / scale).exp() / (2 * arb(scale)),
        lambda t: (-t / scale).exp() / 2 if t > 0 else 1 - (t / scale).exp() / 2,
    )


def gaussian(scale: float) -> Noise:
    def root() -> arb:
        return arb(2).sqrt() * scale

    return Noise(
        f"Gaussian {scale}",
        Density(
            lambda t: -0.5 * (t / scale) ** 2 - math.log(math.sqrt(2.0 * math.pi) * scale),
            np.vectorize(lambda t: 0.5 * math.erfc(t / (math.sqrt(2.0) * scale)), otypes=[float]),
            1e-13,
            math.inf,
        ),
        lambda t: (-((t / root()) ** 2)).exp() / (arb.pi().sqrt() * root()),
        lambda t: (t / root()).erfc() / 2,
    )


def logistic(scale: float) -> Noise:
    return Noise(
        f"logistic {scale}",
        Density(
            lambda t: -t / scale - 2.0 * np.log1p(np.exp(-t / scale)) - math.log(scale),
            lambda t: 1.0 / (1.0 + np.exp(t / scale)),
            1e-13,
            1.0 / scale,
        ),
        lambda t: (-abs(t) / scale).exp() / (arb(scale) * (1 + (-abs(t) / scale).exp()) ** 2),
        lambda t: 1 / (1 + (t / scale).exp()),
    )


SMOOTH = [gaussian(4.0), gaussian(2.0), gaussian(1.0), logistic(2.0), logistic(1.0), logistic(0.2)]
KINKED = [laplace(2.0), laplace(1.0), laplace(0.25)]
NOISES = SMOOTH + KINKED


def inputs(count: int) -> list[float]:
    """Off every grid, and just between points of one."""
    rng = np.random.default_rng(count)
    return [*rng.random(count).tolist(), *((rng.integers(512, size=count) + 0.5) / 512).tolist(), 0.0, 1.0]


def missed(span: Span, masses: list[arb]) -> float:
    """By how much mixtures miss, at least, of what they may, about: the least over all weights.

    The weights are found in floats; what they miss is known in balls."""
    count, known = len(span.rows), np.array([float(mass) for mass in masses])
    rows, one = span.rows.T / (known * span.missed)[:, None], 1.0 / span.missed
    program = partial(
        linprog,
        np.append(np.zeros(count), 1.0),
        A_ub=np.block([[rows, -np.ones((one.size, 1))], [-rows, -np.ones((one.size, 1))]]),
        b_ub=np.concatenate([one, -one]),
        A_eq=[[*np.ones(count), 0.0]],
        b_eq=[1.0],
    )
    tried = (program(method=method).x for method in ("highs", "highs-ipm", "highs-ds"))
    found = next(
        part[:-1] for part in tried if part is not None
    )  # of masses that differ by 1e-12 not all end
    weights = [arb(float(part)) for part in np.maximum(found, 0.0)]
    total = sum(weights, arb(0))
    most = 0.0
    for mass, row, may in zip(masses, span.rows.T.tolist(), span.missed.tolist(), strict=True):
        mixed = sum((part * arb(entry) for part, entry in zip(weights, row, strict=True)), arb(0)) / total
        most = max(most, float(((mass / mixed - 1).__abs__() / may).upper()))
    return most


@pytest.mark.parametrize("noise", NOISES, ids=repr)
def test_masses_of_all_types_are_mixtures_of_rows_up_to_what_is_missed(noise: Noise) -> None:
    """And of smooth noise not if two thirds of that are missed, whatever the weights."""
    span, most = noise.span, 0.0
    assert len(noise.edges) == span.missed.size + 1
    for x in inputs(12):
        masses = noise.masses(x)
        assert (1 - sum(masses, arb(0))) <= span.lost + 1e-30
        most = max(most, missed(span, masses))
    assert most <= 1.0
    closer = replace(span, missed=span.missed * 2.0 / 3.0)
    assert noise in KINKED or max(missed(closer, noise.masses(x)) for x in inputs(12)) > 1.0


@pytest.mark.parametrize("noise", NOISES, ids=repr)
def test_inside_a_type_no_input_is_much_more_likely_than_another(noise: Noise) -> None:
    """Of inputs x, y, z c_x/c_z and (c_x - c_y)/c_z are farthest off for the largest and the smallest c, and
    then alike. In most types all of the spread is used, but for a fifth."""
    rng, close = np.random.default_rng(3), 0
    some = [0.0, 1.0, *rng.random(4).tolist()]
    laws = [noise.masses(x) for x in some]
    for k, (low, high) in enumerate(pairwise(noise.edges)):
        left = low if math.isfinite(low) else high - 3.0
        right = high if math.isfinite(high) else low + 3.0
        most = 0.0
        for y in [left, right, *rng.uniform(left, right, 3).tolist()]:
            inside = [noise.f(arb(y) - arb(x)) / law[k] for x, law in zip(some, laws, strict=True)]
            bounds = [float(part.mid()) for part in inside]
            most = max(most, max(bounds) / min(bounds) - 1.0)
        assert most <= noise.span.spread[k] + noise.span.missed[k]
        close += most >= 0.8 * noise.span.spread[k] or noise.span.spread[k] <= 1e-3
    assert close >= 0.6 * noise.span.spread.size


def binned(noise: Noise, people: Floats, bins: int) -> Floats:
    """Laws of reports that are told in bins of about the same mass on 1/2, in floats."""
    edges = np.quantile(
        np.array([e for e in noise.edges if math.isfinite(e)]), np.linspace(0.1, 0.9, bins - 1)
    )
    tails = [[1.0, *(float(noise.tail(arb(e) - arb(x)).mid()) for e in edges.tolist()), 0.0] for x in people]
    return -np.diff(np.array(tails), axis=1)


@pytest.mark.parametrize(
    "noise", [laplace(1.0), laplace(2.0), gaussian(1.0), gaussian(2.0), logistic(1.0)], ids=repr
)
@pytest.mark.parametrize(("everybody", "size"), [(3, 2), (4, 3), (5, 2)])
def test_cohorts_whose_reports_are_told_in_bins(noise: Noise, everybody: int, size: int) -> None:
    epsilons = np.array([0.0, 0.05, 0.2, 0.5])
    people = np.linspace(0.0, 1.0, 3 if size == 3 else 4)
    laws = binned(noise, people, 7 if size == 3 else 16)
    bounds = {
        "cohort": CrowdProfile(size, (), noise.span.epsilon0, noise.span, fraction=size / everybody).upper(
            epsilons, 1e-3
        )
    }
    told = {"cohort": cohort(laws, size)}
    if size == 3:
        rated = CrowdProfile(3, (), noise.span.epsilon0, noise.span, rate=0.5)
        bounds["coins"], told["coins"] = rated.upper(epsilons, 1e-3), polled(laws, 3, 0.5)
    useful = 0
    for kind, law in told.items():
        pairs = list(neighbours(law, people.size, everybody if kind == "cohort" else 3))
        for epsilon, bound in zip(epsilons, bounds[kind], strict=True):
            truth = max(hockey_stick(p, q, math.exp(epsilon)) for p, q in pairs)
            assert truth <= bound * (1.0 + 1e-10)
            useful += bound < 1.0
    assert useful >= 2
