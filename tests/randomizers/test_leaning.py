"""RampUnit and GaussianUnit (T27): the worst pair of any shape by enumeration, the best, what is drawn."""

import math
import re
from collections import defaultdict
from fractions import Fraction
from itertools import pairwise, permutations, product
from pathlib import Path

import numpy as np
import pytest
from flint import acb, arb
from scipy import stats

from shuffledp import AmplificationLaw, GaussianUnit, PrivUnit, RampUnit, Shuffled, calibrate
from shuffledp._randomness.uniform import WORD
from shuffledp.randomizers._leaning_plane import _ends, _Lines
from shuffledp.randomizers.leaning import LeaningUnit, Shape

pytestmark = pytest.mark.quick

SOME: list[LeaningUnit] = [
    RampUnit(1000, 3.0),
    RampUnit(1000, 0.3, start=0.0),
    RampUnit(1000, 6.0, start=2.0),
]
SOME += [
    GaussianUnit(1000, 4.3, signal=1.2),
    GaussianUnit(1000, 0.4, signal=0.25),
    GaussianUnit(9, 6.0, 1.0, 2.0),
]


def density(randomizer: LeaningUnit, t: np.ndarray) -> np.ndarray:
    """h, from the definition: straight lines between the points of the shape, mean one."""
    shape, low, fine = randomizer.shape, 1.0 - randomizer.weight / WORD, np.linspace(-9.5, 9.5, 40_001)
    weight = stats.norm.pdf(fine) * (fine[1] - fine[0])
    r = np.interp(np.concatenate([t, fine]), shape.heights, shape.rises)
    return low + (1.0 - low) * r[: t.size] / float(weight @ r[t.size :])


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


@pytest.mark.parametrize("randomizer", SOME)
def test_the_law_is_above_that_of_all_heights_and_close(randomizer: LeaningUnit) -> None:
    """Stop-loss at every place, against fine quadrature of h(t) and h(-t)."""
    law, low = randomizer.law(), 1.0 - randomizer.weight / WORD
    t = np.linspace(-9.5, 9.5, 40_001)
    weight, h = stats.norm.pdf(t) * (t[1] - t[0]), density(randomizer, t)
    for a in (1.0, 1.1, math.exp(0.9 * randomizer.epsilon0)):
        x = (h - a * h[::-1]) / low
        for place in np.linspace(x.min() * 0.99, x.max() * 0.99, 23):
            exact = low * float(weight @ np.maximum(x - place, 0.0)) + (1.0 - low) * max(-place, 0.0)
            assert exact * (1.0 - 1e-6) - 1e-12 <= stop_loss(law, a, place) <= 1.02 * exact + 2e-3
    assert law.loss <= randomizer.epsilon0 * (1.0 + 1e-7)


@pytest.mark.parametrize("randomizer", [RampUnit(2, 2.0, start=0.25), GaussianUnit(2, 3.0, signal=1.25)])
def test_two_users_by_definition_in_the_plane(randomizer: LeaningUnit) -> None:
    """All reports of a grid of the plane: what the two users' multiset tells, for pairs and crowds."""
    axis = np.linspace(-4.0, 4.0, 17)
    normal = stats.norm.pdf(axis) / stats.norm.pdf(axis).sum()
    points = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    weight = np.outer(normal, normal).ravel()

    def reports(degrees: float) -> np.ndarray:
        angle = math.radians(degrees)
        law = weight * density(randomizer, points @ np.array([math.cos(angle), math.sin(angle)]))
        return np.asarray(law / law.sum())

    for epsilon in (0.0, 0.8):
        most, a = Shuffled(randomizer, n=2).delta(epsilon=epsilon), math.exp(epsilon)
        found = []
        for other, crowd in ((180, 90), (180, 0), (130.3, 245.15), (90, 225), (180, 180)):
            gap, z = reports(0) - a * reports(other), reports(crowd)
            found.append(float(np.maximum(np.outer(gap, z) + np.outer(z, gap), 0.0).sum()) / 2.0)
        assert most.lower <= max(found) * 1.02 + 1e-9
        assert max(found) <= most.upper * 1.02


def test_no_unbiased_randomizer_beats_a_trusted_server() -> None:
    """Theorem 3: the best decoder of any matrix of reports on plus and minus the axes."""
    rng = np.random.default_rng(4)
    for dimension, reports in ((1, 3), (2, 7), (3, 9)):
        for _ in range(20):
            law = rng.dirichlet(np.full(reports, rng.uniform(0.5, 5.0)), size=2 * dimension) + 1e-3
            law /= law.sum(axis=1, keepdims=True)
            inputs, common = np.vstack([np.eye(dimension), -np.eye(dimension)]), law.min(axis=0)
            # Of all unbiased decoders the one of least mean square under the common part.
            decoder = np.linalg.pinv(law / np.sqrt(common)) @ inputs / np.sqrt(common)[:, None]
            if not np.allclose(law @ decoder, inputs):
                continue
            second = max(
                float(((u - v) ** 2 / common).sum())
                for u, v in zip(law[:dimension], law[dimension:], strict=True)
            )
            assert (law @ (decoder**2).sum(axis=1)).min() >= 4.0 * dimension / second * (1 - 1e-9)


@pytest.mark.parametrize("randomizer", [RampUnit(10, 1.0, start=0.0), RampUnit(10, 1.0, start=2.0), SOME[3]])
def test_masses_of_the_grid_enclose_integrals_in_ball_arithmetic(randomizer: LeaningUnit) -> None:
    shape, half = randomizer.shape, 1 / arb(2).sqrt()
    least, most = shape.masses

    def tail(v: float) -> arb:
        return (arb(v) * half).erfc() / 2

    def beyond(v: float) -> arb:
        return (-(arb(v) ** 2) / 2).exp() / (2 * arb.pi()).sqrt() - arb(v) * tail(v)

    points = [beyond(v) for v in shape.grid.height.tolist()]
    for k in range(1, 65):
        before, here = points[k - 1] - points[k], points[k] - points[k + 1] if k < 64 else arb(0)
        exact = 16 * (before - here)
        assert arb(float(least[k - 1])) < exact < arb(float(most[k - 1]))
        assert most[k - 1] <= least[k - 1] * (1 + 1e-7)
    rising = [16 * arb(b - a) / 2**22 for a, b in pairwise(shape.rises)]
    falling = [beyond(v) if v >= 0 else beyond(-v) - arb(v) for v in shape.heights.tolist()]
    mean = sum((s * (a - b) for s, (a, b) in zip(rising, pairwise(falling), strict=True)), arb(0))
    low, high = randomizer._mean_rise
    assert arb(low) < mean < arb(high) < arb(low) * (1 + 1e-9)


@pytest.mark.parametrize("randomizer", SOME)
def test_a_law_twisted_by_a_factor_is_below_a_wider_one(randomizer: LeaningUnit) -> None:
    """The lemma: densities and probabilities off by up to e^+-tau, in the worst places."""
    tau, t = 1e-3, stats.norm.ppf((np.arange(4000) + 0.5) / 4000)
    h = density(randomizer, t)
    h /= h.mean()
    wide = math.expm1(2.0 * tau) * (1.0 + 1.0 / np.maximum(h - 1.0, 0.0).mean())
    safe = 1.0 + (1.0 + wide) * (h - 1.0)
    rng = np.random.default_rng(2)
    middle = np.median(h[h > h.min()])
    for sign in [
        np.ones(t.size),
        -np.ones(t.size),
        np.sign(h - middle),
        np.sign(middle - h),
        np.sign(h - 1.0),
        rng.choice([-1, 1], t.size),
    ]:
        for other in (sign, -sign):
            f, p = h * np.exp(tau * sign), np.exp(tau * other) / t.size
            f, p = f / (f @ p) * p.sum(), p / p.sum()  # nothing but the mean is mended, within the factor
            for v in np.linspace(h.min() - 0.01, h.max(), 80):
                assert p @ np.maximum(f - v, 0.0) <= np.maximum(safe - v, 0.0).mean() + 1e-12
    mean, apart, _ = randomizer.shape.means
    assert 2.0 * mean / apart >= (1.0 - randomizer.weight / WORD - 1.0) / -np.maximum(h - 1.0, 0.0).mean()


def test_heights_are_kept_in_proportion_in_whole_numbers() -> None:
    """As many of 2^63 words as r says, whatever the last bit; none at the foot, all at the top."""
    shape, unit = Shape(-1, (0, 3, 2**22)), 1 << 41
    steps = np.array([-(2.0**40) + 0.5, -0.5, 0.5, 2.0**40 - 0.5])
    share = [3, 3 * (unit - 1), 3 * unit + (2**22 - 3), 3 * unit + (2**22 - 3) * (unit - 1)]
    last = np.array([(many - 1) * 2 + 1 for many in share], np.uint64)
    assert shape.kept(steps, last).all()
    assert not shape.kept(steps, last + np.uint64(1)).any()
    assert not shape.kept(np.array([-(2.0**40) - 0.5, -(2.0**47)]), np.zeros(2, np.uint64)).any()
    assert shape.kept(np.array([2.0**40 + 0.5, 2.0**46]), np.full(2, 2**64 - 1, np.uint64)).all()


def test_shapes_are_those_of_their_names() -> None:
    assert RampUnit(5, 1.0).shape.rises[:3] == (0, 2**16, 2**17)
    for signal in (0.0625, 0.7, 2.0):
        shape = GaussianUnit(5, 1.0, signal=signal).shape
        exact = np.expm1(signal * (shape.heights + 4.0)) / math.expm1(8.0 * signal)
        assert np.abs(np.array(shape.rises) / 2**22 - exact).max() <= 2.0**-22


@pytest.mark.parametrize(
    "randomizer",
    [
        RampUnit(2, 2.5, 3.0),
        GaussianUnit(3, 3.0, 3.0),
        RampUnit(700, 2.5, 3.0),
        GaussianUnit(600, 4.0, 3.0, 1.25),
    ],
)
def test_reports_have_the_heights_of_the_shape_and_decode_without_bias(randomizer: LeaningUnit) -> None:
    dimension = randomizer.dimension
    count = 6000 if dimension < 100 else 2000
    axis = np.random.default_rng(1).normal(size=dimension)
    axis *= 3.0 / np.linalg.norm(axis)
    reports = randomizer.randomize(np.tile(axis, (count, 1)), rng=np.random.default_rng(dimension))
    assert reports.dtype == np.float32
    t = np.linspace(-9.0, 9.0, 100_001)
    below = np.cumsum(density(randomizer, t) * stats.norm.pdf(t)) * (t[1] - t[0])
    heights = reports.astype(float) @ (axis / 3.0)
    assert stats.kstest(heights, lambda v: np.interp(v, t, below)).pvalue > 1e-4
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


@pytest.mark.parametrize("randomizer", [RampUnit(2, 2.0), GaussianUnit(2, 3.0, signal=1.5)])
def test_what_is_seen_has_the_frequencies_of_what_is_drawn(randomizer: LeaningUnit) -> None:
    """The concrete laws of the lower end: cells of the first entry, for plus, minus and the second axis."""
    law, both = randomizer._seen
    assert law.error < both.error < 1e-8
    count, grid = 40_000, randomizer.shape.grid.height
    for axis, masses in (((1.0, 0.0), law.own), ((-1.0, 0.0), law.other), ((0.0, 1.0), law.clone)):
        drawn = randomizer.randomize(np.tile(axis, (count, 1)), rng=np.random.default_rng(7))[:, 0]
        cells = np.searchsorted(grid, np.abs(drawn), side="right") - 1
        place = np.where(cells < 0, 130, cells + np.where(drawn < 0, 65, 0))
        found = np.bincount(place, minlength=len(masses))
        expected = np.array(masses) * count
        large = expected > 5.0
        assert ((found - expected)[large] ** 2 / expected[large]).sum() < stats.chi2.ppf(
            1 - 1e-5, large.sum()
        )
    # Two entries: the first pairs with what the second is for others, and for x.
    for mine, seen in ((law.own, both.own), (law.clone, both.clone)):
        assert math.fsum(seen) == pytest.approx(1.0, abs=1e-9)
        table = np.array(seen).reshape(
            -1, len(both.own) // (-(-len(grid) // 2) * 2 + len(mine) - 2 * len(grid))
        )
        assert np.allclose(table.sum(axis=1)[0], sum(mine[:2]))
        assert np.allclose(np.outer(table.sum(axis=1), table.sum(axis=0)), table)


@pytest.mark.thorough
def test_a_ramp_has_a_fifth_more_information_than_a_cap_for_the_same_rounds_and_epsilon() -> None:
    cap = PrivUnit(3010, 2.0, cap_probability=0.115)
    rounds = calibrate(cap, solve_for="rounds", epsilon=3.0, delta=1e-5, n=60_000).value
    lean = RampUnit(3010, 3.05)
    bound = (int(rounds) * Shuffled(lean, n=60_000)).epsilon(delta=1e-5)
    assert 2.6 < bound.lower < bound.upper < 3.0
    assert cap.second_moment / lean.second_moment > 1.18


def test_what_is_refused() -> None:
    for bad in ({"start": 0.3}, {"start": -1.0}, {"start": 2.5}, {"epsilon0": 11.0}, {"dimension": 20_000}):
        with pytest.raises(ValueError, match=next(iter(bad))):
            RampUnit(**({"dimension": 10, "epsilon0": 1.0} | bad))
    for wrong in (0.05, 2.5, math.nan):
        with pytest.raises(ValueError, match="signal"):
            GaussianUnit(10, 1.0, signal=wrong)
    with pytest.raises(ValueError, match="epsilon0 must be larger in 16000"):
        RampUnit(16_000, 1e-4)
    with pytest.raises(ValueError, match="norm"):
        RampUnit(3, 1.0).randomize([2.0, 0.0, 0.0])
    assert RampUnit(3, 1.0).randomize([0.0, 0.0, 0.0]).shape == (3,)


def shares(V: float) -> tuple[float, float, float]:
    """Of a trusted server's information, for reports that cost V: the best step, mixed Gaussian and ramp."""
    z = np.linspace(0.0, 3.0, 601)
    q, f = stats.norm.sf(z), stats.norm.pdf(z)
    high = (V * q + np.sqrt((V * q) ** 2 + 8.0 * q * V)) / (4.0 * q)  # E - 1, as V = 2 c (E - 1)^2 q
    step = 4.0 * (high * f / (1.0 + high * q)) ** 2 / V
    mean, square = f - z * q, (1.0 + z * z) * q - z * f  # of (t - z)_+
    slope = (-V * mean + np.sqrt((V * mean) ** 2 + 8.0 * square * V)) / (4.0 * square)
    ramp = 4.0 * (slope * q) ** 2 / V  # E[t (t - z)_+] = q
    signal = np.linspace(0.02, 3.0, 600)
    half = 1.0 + V / (4.0 * 2.0 * np.sinh(signal**2))  # V = (1 - l)^2 4 sinh(signal^2) / l
    told = 1.0 - (half - np.sqrt(half * half - 1.0))
    return float(step.max()), float((4.0 * (told * signal) ** 2 / V).max()), float(ramp.max())


def test_the_table_of_shapes_is_what_their_moments_give() -> None:
    text = (Path(__file__).parents[2] / "docs" / "proofs" / "ramp.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \|$", text, re.MULTILINE)
    assert len(rows) == 4
    for V, *shown in rows:
        assert [f"{share:.2f}" for share in shares(float(V))] == shown
    assert "a step the share tends to 0.81" in text
    assert [round(share, 2) for share in shares(1e-6)] == [0.81, 1.0, 1.0]


@pytest.mark.parametrize(
    ("epsilon0", "plane", "across"),
    [(0.5, 0.98, 0.97), (1.0, 0.97, 0.94), (2.0, 0.96, 0.86), (4.0, 0.92, 0.75)],
)
def test_a_crowd_in_one_plane_comes_closer_to_the_upper_end(
    epsilon0: float, plane: float, across: float
) -> None:
    """Second moments of X at alpha = 1, as the pages about ramps and widths say."""
    ramp = RampUnit(dimension=100, epsilon0=epsilon0)
    assert ramp._in_a_plane is not None
    assert ramp._in_a_plane.error < 1e-10
    laws = ramp._in_a_plane, ramp._seen[1], ramp.law()
    moments = [sum(g * g / c for g, c in zip(law.gap, law.clone, strict=True) if c) for law in laws]
    assert [round(moment / moments[2], 2) for moment in moments[:2]] == [plane, across]
    assert ramp.facts().concrete[0] == laws[0]
    assert GaussianUnit(100, epsilon0, signal=1.0)._in_a_plane is None


LINES = _Lines(np.array([0.5, 4.5]), np.array([0.6, -0.6]), 0.3, _ends(4.0))


@pytest.mark.parametrize(("row", "column"), [(17, 19), (18, 30), (5, 33), (35, 35), (0, 35), (28, 2)])
def test_the_mass_of_a_rectangle_is_within_its_error_of_an_integral_over_the_height(
    row: int, column: int
) -> None:
    """Turned by the angle: the density of the height times the chance of the rest of the rectangle."""
    half = 1.17
    found, off = LINES.masses(math.sin(half), math.cos(half))
    (a, b), (c, d) = (map(float, LINES.ends[place : place + 2]) for place in (row, column))
    sine, cosine, root = arb(half).sin(), arb(half).cos(), arb(0.5).sqrt()

    def across(t: acb, _: bool) -> acb:
        """t sine - y cosine is in [a, b] and t cosine + y sine in [c, d]; y rises from low to high."""
        real = t.real.mid()
        low = max(((real * sine - b) / cosine, 0), ((c - real * cosine) / sine, 1))[1]
        high = min(((real * sine - a) / cosine, 0), ((d - real * cosine) / sine, 1))[1]
        ends = [
            (t * sine - end) / cosine if way == 0 else (end - t * cosine) / sine
            for way, end in ((low, (b, c)[low]), (high, (a, d)[high]))
        ]
        rest = ((ends[0] * root).erfc() - (ends[1] * root).erfc()) / 2
        height = LINES.plain + sum(
            change * (t - corner)
            for corner, change in zip(LINES.corners.tolist(), LINES.change.tolist(), strict=True)
            if real > corner
        )
        return (-t * t / 2).exp() / (2 * arb.pi()).sqrt() * height * rest

    corners = [x * sine + y * cosine for x in (a, b) for y in (c, d)]
    cuts = sorted([*corners, *(arb(t) for t in (0.5, 4.5) if corners[0] < t < corners[-1])], key=float)
    exact = sum((acb.integral(across, u, v).real for u, v in pairwise(cuts) if v - u > 1e-9), arb(0))
    assert abs(arb(float(found[row, column])) - exact).upper() <= float(off[row, column]) + 1e-16 * float(
        exact
    )
    assert off[row, column] < 2e-12 * found[row, column]


def test_rectangles_have_the_frequencies_of_what_is_drawn() -> None:
    ramp, count, half = RampUnit(3, 2.0), 40_000, 1.17
    mean = float(stats.norm.expect(lambda t: np.clip((t - 0.5) / 4.0, 0.0, 1.0)))
    lean = ramp.weight / WORD
    lines = _Lines(np.array([0.5, 4.5]), np.array([0.25, -0.25]) * lean / mean, 1.0 - lean, _ends(4.0))
    for sine, cosine in ((math.sin(half), math.cos(half)), (1.0, 1e-12)):
        row = np.tile([sine, cosine if sine < 1.0 else 0.0, 0.0], (count, 1))
        drawn = ramp.randomize(row, rng=np.random.default_rng(3))
        found = np.histogram2d(drawn[:, 0], drawn[:, 1], bins=[lines.ends] * 2)[0]
        expected = lines.masses(sine, cosine)[0] * count
        large = expected > 5.0
        far = ((found - expected)[large] ** 2 / expected[large]).sum()
        assert far < stats.chi2.ppf(1 - 1e-5, large.sum())


def test_nodes_and_weights_of_the_rule_of_rectangles_are_known_well_enough() -> None:
    nodes, weights = np.polynomial.legendre.leggauss(8)
    for index, (node, weight) in enumerate(zip(nodes[::-1], weights[::-1], strict=True)):
        exact_node, exact_weight = arb.legendre_p_root(8, index, weight=True)
        assert abs(arb(float(node)) - exact_node).upper() <= 8 * 2.0**-53
        assert (abs(arb(float(weight)) - exact_weight) / exact_weight).upper() <= 128 * 2.0**-53


@pytest.mark.parametrize("epsilon0", [1e-4, 0.1, 6.5, 8.0, 10.0])
def test_every_local_epsilon_that_is_allowed_has_an_answer(epsilon0: float) -> None:
    """Also where a kind of report has next to no mass."""
    for family in (RampUnit, GaussianUnit):
        found = Shuffled(family(dimension=100, epsilon0=epsilon0), n=10**4).epsilon(delta=1e-6)
        assert 0.0 <= found.lower <= found.upper <= epsilon0 * (1 + 1e-12)
