"""RampUnit (T27): the worst pair of any shape by enumeration, the best shape, the law, what is drawn."""

import math
from collections import defaultdict
from fractions import Fraction
from itertools import permutations, product

import numpy as np
import pytest
from flint import arb
from scipy import stats

from shuffledp import AmplificationLaw, PrivUnit, RampUnit, Shuffled, calibrate
from shuffledp._randomness.uniform import WORD
from shuffledp.randomizers import ramp

pytestmark = pytest.mark.quick


def shuffled(rows: list[tuple[Fraction, ...]]) -> dict[tuple[int, ...], Fraction]:
    """The law of the multiset of reports of some users, from the definition."""
    law: dict[tuple[int, ...], Fraction] = defaultdict(Fraction)
    for reports in product(range(len(rows[0])), repeat=len(rows)):
        law[tuple(sorted(reports))] += math.prod(row[y] for row, y in zip(rows, reports, strict=True))
    return law


def opposite(values: tuple[Fraction, ...], n: int, a: Fraction) -> Fraction:
    """(1/n) E[(X_1 + ... + X_n)_+] of values in opposite orders, hidden by their least one."""
    low, up = min(values), sorted(values)
    part = low / len(up)
    points = [((own - a * other) / low, part) for own, other in zip(up, reversed(up), strict=True)]
    points.append((Fraction(0), 1 - low))
    total = Fraction(0)
    for drawn in product(points, repeat=n):
        total += math.prod(p for _, p in drawn) * max(sum(x for x, _ in drawn), Fraction(0))
    return total / n


@pytest.mark.parametrize("shape", [(1, 1, 4), (1, 2, 6), (2, 3, 4), (1, 1, 2, 5)])
def test_no_pair_of_inputs_is_worse_than_opposite_orders(shape: tuple[int, ...]) -> None:
    """Inputs rearrange one shape over the reports (one mixes two): pairs, crowds, of two and three users."""
    values = tuple(Fraction(v * len(shape), sum(shape)) for v in shape)  # densities, of mean one
    rows = sorted({tuple(v / len(shape) for v in order) for order in permutations(values)})
    rows = rows[:: max(1, len(rows) // 6)]
    rows.append(tuple((u + v) / 2 for u, v in zip(rows[0], rows[-1], strict=True)))
    users = 2 if len(shape) > 3 else 3
    for a in (Fraction(1), Fraction(5, 4), Fraction(2)):
        most = opposite(values, users, a)
        for x, other in permutations(rows[:4] + rows[-1:], 2):
            for crowd in product(rows[::2], repeat=users - 1):
                p, q = shuffled([x, *crowd]), shuffled([other, *crowd])
                assert sum(max(p[view] - a * q[view], Fraction(0)) for view in p) <= most


def test_no_shape_has_more_information_than_a_ramp() -> None:
    """Random shapes on a fine grid of heights, beside the ramp of the same second moment of X."""
    t = stats.norm.ppf((np.arange(1000) + 0.5) / 1000)
    rng = np.random.default_rng(5)

    def measured(h: np.ndarray) -> tuple[float, float]:
        h = h / h.mean()
        apart = h - h[::-1]
        return float((t * h).mean()) ** 2, float((apart**2).mean() / h.min())

    for _ in range(20):
        kind, steep = rng.integers(4), math.exp(rng.uniform(-1, 3))
        shapes = (
            1.0 + steep * (t > rng.uniform(0, 2)),
            np.exp(rng.uniform(0.1, 1.0) * t) + 1.0 / steep,
            1.0 + steep * np.maximum(t, 0.0) ** rng.uniform(0.5, 3.0),
            1.0 + np.cumsum(rng.random(t.size) ** 8) * steep / t.size,
        )
        information, second = measured(shapes[kind])
        best = 0.0
        for begin in np.arange(0.0, 2.5, 0.1):
            low, high = 0.0, 1e4
            for _ in range(30):
                middle = 0.5 * (low + high)
                found = measured(1.0 + middle * np.maximum(t - begin, 0.0))
                low, high = (middle, high) if found[1] < second else (low, middle)
            best = max(best, measured(1.0 + low * np.maximum(t - begin, 0.0))[0])
        assert information <= best * 1.01


def stop_loss(law: AmplificationLaw, a: float, t: float) -> float:
    own, other, clone = (np.array(part) for part in (law.own, law.other, law.clone))
    x = (own - a * other) / clone
    return float((clone * np.maximum(x - t, 0.0)).sum() + (1.0 - clone.sum()) * max(-t, 0.0))


@pytest.mark.parametrize(("epsilon0", "start"), [(3.0, 0.5), (0.3, 0.0), (6.0, 2.0)])
def test_the_law_is_above_that_of_all_heights_and_close(epsilon0: float, start: float) -> None:
    """Stop-loss at every place, against fine quadrature of h(t) and h(-t)."""
    randomizer = RampUnit(1000, epsilon0, start=start)
    law, low = randomizer.law(), 1.0 - randomizer.weight / WORD
    t = np.linspace(-9.5, 9.5, 40_001)
    weight = stats.norm.pdf(t) * (t[1] - t[0])
    r = np.clip(t - start, 0.0, 4.0)
    h = low + (1.0 - low) * r / float(weight @ r)
    for a in (1.0, 1.1, math.exp(0.9 * epsilon0)):
        x = (h - a * h[::-1]) / low
        for place in np.linspace(x.min() * 0.99, x.max() * 0.99, 23):
            exact = low * float(weight @ np.maximum(x - place, 0.0)) + (1.0 - low) * max(-place, 0.0)
            assert exact * (1.0 - 1e-6) - 1e-12 <= stop_loss(law, a, place) <= 1.02 * exact + 2e-3
    assert law.loss <= epsilon0 * (1.0 + 1e-7)


@pytest.mark.parametrize("start", [0.0, 0.5, 2.0])
def test_masses_of_the_grid_enclose_integrals_in_ball_arithmetic(start: float) -> None:
    normal, least, most = ramp._grid(start)
    half = 1 / arb(2).sqrt()

    def beyond(v: float) -> arb:
        tail = (arb(v) * half).erfc() / 2
        return (-(arb(v) ** 2) / 2).exp() / (2 * arb.pi()).sqrt() - arb(v) * tail

    points = [beyond(v) for v in normal.height.tolist()]
    for k in range(1, 65):
        before, here = points[k - 1] - points[k], points[k] - points[k + 1] if k < 64 else arb(0)
        exact = 16 * (before - here)
        assert arb(float(least[k - 1])) < exact < arb(float(most[k - 1]))
        assert most[k - 1] <= least[k - 1] * (1 + 1e-7)
    low, high = RampUnit(10, 1.0, start=start)._mean_rise
    assert arb(low) < points[0] - points[64] < arb(high)


def test_a_law_twisted_by_a_factor_is_below_the_one_with_a_lower_foot() -> None:
    """The lemma: densities and probabilities off by up to e^+-tau, in the worst places."""
    tau, low = 1e-3, 0.45
    t = stats.norm.ppf((np.arange(4000) + 0.5) / 4000)
    r = np.clip(t - 0.5, 0.0, 4.0)
    h = low + (1.0 - low) * r / r.mean()
    foot = low - 5.1 * tau
    safe = foot + (1.0 - foot) * r / r.mean()
    rng = np.random.default_rng(2)
    for sign in [
        np.ones(t.size),
        -np.ones(t.size),
        np.sign(r - 1.0),
        np.sign(1.0 - r),
        rng.choice([-1, 1], t.size),
    ]:
        for other in (sign, -sign):
            f, p = h * np.exp(tau * sign), np.exp(tau * other) / t.size
            f, p = f / (f @ p) * p.sum(), p / p.sum()  # nothing but the mean is mended, within the factor
            for v in np.linspace(low - 0.01, h.max(), 80):
                assert p @ np.maximum(f - v, 0.0) <= np.maximum(safe - v, 0.0).mean() + 1e-12


def test_heights_are_kept_in_proportion_in_whole_numbers() -> None:
    """Half a step above a whole number: one level more than that, whatever the lower bits of the word."""
    steps = np.array([0.5, 4.5, 2.0**30 + 0.5, 2.0**45 - 0.5])
    last, low_bits = (steps - 0.5).astype(np.uint64), np.uint64(2**18 - 1)
    assert ramp._kept(steps, last << np.uint64(18) | low_bits).all()
    assert not ramp._kept(steps, (last + np.uint64(1)) << np.uint64(18)).any()
    assert not ramp._kept(np.array([-0.5, -(2.0**40)]), np.zeros(2, np.uint64)).any()
    assert ramp._kept(np.array([2.0**46 + 0.5]), np.array([2**64 - 1], np.uint64)).all()  # at the top


@pytest.mark.parametrize("dimension", [2, 40, 700])
def test_reports_have_the_heights_of_the_ramp_and_decode_without_bias(dimension: int) -> None:
    randomizer, count = RampUnit(dimension, 2.5, radius=3.0), 6000 if dimension < 100 else 2000
    low, start = 1.0 - randomizer.weight / WORD, randomizer.start
    axis = np.random.default_rng(1).normal(size=dimension)
    axis *= 3.0 / np.linalg.norm(axis)
    reports = randomizer.randomize(np.tile(axis, (count, 1)), rng=np.random.default_rng(dimension))
    assert reports.dtype == np.float32

    def share_below(v: np.ndarray) -> np.ndarray:
        tail, density = stats.norm.sf(v), stats.norm.pdf(v)
        foot, top = (stats.norm.pdf(b) - b * stats.norm.sf(b) for b in (start, start + 4.0))
        inner = np.where(v < start, foot - top, density - start * tail - top)
        lifted = np.where(v > start + 4.0, 4.0 * tail, inner) / (foot - top)
        return 1.0 - low * tail - (1.0 - low) * lifted

    heights = reports.astype(float) @ (axis / 3.0)
    assert stats.kstest(heights, share_below).pvalue > 1e-4
    across = np.zeros(dimension)
    across[:2] = -axis[1], axis[0]
    assert stats.kstest(reports.astype(float) @ across / np.linalg.norm(across), "norm").pvalue > 1e-4
    decoded = randomizer.decode(reports)
    assert (decoded**2).sum(axis=1).mean() == pytest.approx(randomizer.second_moment, rel=0.05)
    error = randomizer.mean(reports) @ axis / 9.0 - 1.0
    assert abs(error) < 5.0 * (decoded @ axis / 9.0).std() / math.sqrt(count)
    inner = randomizer.mean(
        randomizer.randomize(np.tile(axis / 4.0, (count, 1)), rng=np.random.default_rng(3))
    )
    assert inner @ axis / 9.0 == pytest.approx(0.25, abs=0.15)


def test_what_is_seen_has_the_frequencies_of_what_is_drawn() -> None:
    """The concrete law of the lower end: cells of the first entry, for plus, minus and the second axis."""
    randomizer, count = RampUnit(2, 2.0), 40_000
    law = randomizer.facts().concrete[0]
    assert law.error < 1e-8
    ends = np.arange(65) / 16 + randomizer.start
    for axis, masses in (((1.0, 0.0), law.own), ((-1.0, 0.0), law.other), ((0.0, 1.0), law.clone)):
        drawn = randomizer.randomize(np.tile(axis, (count, 1)), rng=np.random.default_rng(7))[:, 0]
        cells = np.searchsorted(ends, np.abs(drawn), side="right") - 1
        place = np.where(cells < 0, 130, cells + np.where(drawn < 0, 65, 0))
        found = np.bincount(place, minlength=131)
        expected = np.array(masses) * count
        large = expected > 5.0
        assert ((found - expected)[large] ** 2 / expected[large]).sum() < stats.chi2.ppf(
            1 - 1e-5, large.sum()
        )


@pytest.mark.thorough
def test_a_ramp_has_a_fifth_more_information_than_a_cap_for_the_same_rounds_and_epsilon() -> None:
    cap = PrivUnit(3010, 2.0, cap_probability=0.115)
    rounds = calibrate(cap, solve_for="rounds", epsilon=3.0, delta=1e-5, n=60_000).value
    lean = RampUnit(3010, 3.05)
    bound = (int(rounds) * Shuffled(lean, n=60_000)).epsilon(delta=1e-5)
    assert 2.0 < bound.lower < bound.upper < 3.0
    assert cap.second_moment / lean.second_moment > 1.18


def test_what_is_refused() -> None:
    for bad in ({"start": 0.3}, {"start": -1.0}, {"start": 2.5}, {"epsilon0": 11.0}, {"dimension": 20_000}):
        with pytest.raises(ValueError, match=next(iter(bad))):
            RampUnit(**({"dimension": 10, "epsilon0": 1.0} | bad))
    with pytest.raises(ValueError, match="epsilon0 must be larger in 16000"):
        RampUnit(16_000, 1e-4)
    with pytest.raises(ValueError, match="norm"):
        RampUnit(3, 1.0).randomize([2.0, 0.0, 0.0])
    assert RampUnit(3, 1.0).randomize([0.0, 0.0, 0.0]).shape == (3,)
