"""Laws of PrivUnit among crowds of one vector: three caps, and what no three caps can be (T16)."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

import shuffledp as sdp
from oracles import brute
from oracles.hockey import between, ratios
from shuffledp._certified.caps import cap_at, overlap
from shuffledp.bound import Bound
from shuffledp.facts import Facts
from shuffledp.randomizers import _privunit_crowds as crowds

F = Fraction


def seen(points: np.ndarray, axes: np.ndarray, threshold: float) -> list[float]:
    """The overlaps of the first two caps, of first and third, second and third, of all, after a one."""
    inside = points @ axes.T >= threshold
    a, b, c = inside.T
    return [1.0, *(float(both.mean()) for both in (a & b, a & c, b & c, a & b & c))]


def sphere(dimension: int, count: int) -> np.ndarray:
    """Evenly spread points."""
    if dimension == 2:
        angle = 2.0 * math.pi * (np.arange(count) + 0.5) / count
        return np.stack([np.cos(angle), np.sin(angle)], axis=1)
    height = 1.0 - (2.0 * np.arange(count) + 1.0) / count
    turned = math.pi * (1.0 + math.sqrt(5.0)) * np.arange(count)
    flat = np.sqrt(1.0 - height**2)
    return np.stack([flat * np.cos(turned), flat * np.sin(turned), height], axis=1)


@pytest.mark.parametrize("threshold", [0.05, 0.2, 0.4])
@pytest.mark.parametrize("dimension", [2, 3])
def test_no_three_caps_are_cut_off(dimension: int, threshold: float) -> None:
    """Random axes, and those of the plane for which the cuts are made: each is nearly met by some."""
    points, rng = sphere(dimension, 40_000), np.random.default_rng(1)
    q = F(float(cap_at(dimension, threshold).small))
    cuts = list(crowds._cuts(dimension, threshold, q, 0.0))
    assert cuts
    triples = [axes / np.linalg.norm(axes, axis=1)[:, None] for axes in rng.normal(size=(60, 3, dimension))]
    for angle in np.radians([100.0, 120.0, 135.0, 150.0, 165.0, 180.0]):
        turned = np.array([0.0, angle, 0.5 * angle + math.pi])
        flat = np.zeros((3, dimension))
        flat[:, 0], flat[:, 1] = np.cos(turned), np.sin(turned)
        triples.append(flat)
    left = [
        [float(np.dot([float(x) for x in cut], seen(points, axes, threshold))) for axes in triples]
        for cut in cuts
    ]
    assert np.min(left) >= -5e-4 * max(float(cut[1]) for cut in cuts)
    assert np.max(np.min(left, axis=1)) <= 1e-3


def test_the_overlap_falls_and_is_convex_with_the_slope_of_the_cuts() -> None:
    dimension, threshold = 7, 0.2
    angles = np.linspace(0.3, 2.6, 24)
    values = np.array([overlap(dimension, threshold, math.tan(0.5 * angle))[0] for angle in angles])
    assert (np.diff(values) < 0.0).all()
    assert (np.diff(values, 2) > 0.0).all()
    slope = [
        -((1.0 - (threshold / math.cos(0.5 * a)) ** 2) ** (0.5 * (dimension - 2))) / (2.0 * math.pi)
        for a in angles
    ]
    assert np.gradient(values, angles)[1:-1] == pytest.approx(slope[1:-1], rel=0.03)


CELLS, WIDE = 12, 4
DENSE = F(2), F(1, 2)  # on 4 of 12 cells of the circle, and elsewhere


def circle(held: int) -> tuple[F, ...]:
    """Caps of 120 degrees around one of 12 places: every report names a cell."""
    return tuple(DENSE[0 if (cell - held) % CELLS < WIDE else 1] / CELLS for cell in range(CELLS))


def circle_facts() -> Facts:
    """Of caps that hold what is at a height of at least cos 60 degrees."""
    laws = crowds.crowd_laws(float(DENSE[1]), float(DENSE[0]), 2, 0.5, 1e-9)
    return Facts(Bound(0.0, math.log(4.0) * (1 + 1e-12)), crowds=laws, common=float(DENSE[1]))


def test_every_three_caps_of_a_circle_are_below_the_stated_laws() -> None:
    """E e^(pX), absolutely, for real and complex p: what the crowd theorem asks of a mixture."""
    laws = circle_facts().crowds
    for p, alpha in product((0.1, 0.5, 0.3 + 0.4j, 0.2 + 1.0j), (1.0, 1.3)):
        most = max(
            _transform(zip(law.own, law.other, law.clone, strict=True), p, alpha)
            for each in laws
            for law in (each, each.reversed())
        )
        for x, y, z in product((0,), range(CELLS), range(CELLS)):
            rows = [[float(mass) for mass in circle(held)] for held in (x, y, z)]
            assert _transform(zip(*rows, strict=True), p, alpha) <= most * (1 + 1e-12)


def _transform(types: zip, p: complex, alpha: float) -> float:
    return abs(sum(c * np.exp(p * (u - alpha * v) / c) for u, v, c in types if c))


def test_every_population_on_a_circle_is_covered() -> None:
    held = [circle(place) for place in (0, 4, 6, 8)]
    # Cells that no two of these inputs tell apart are one report.
    matrix = tuple(tuple(row[cell] + row[cell + 1] for cell in range(0, CELLS, 2)) for row in held)
    truth = brute.cohort_pairs(matrix, 4, 3)
    mechanism = sdp.Shuffled(circle_facts(), n=3, analysis="crowd").sampled_from(4)
    middles = [alpha for alpha in between([F(1), *ratios(truth)]) if alpha >= 1]
    bounds = []
    for alpha in middles[:: max(1, len(middles) // 10)]:
        bounds.append(float(mechanism.round.profile.upper(np.array([math.log(alpha)]), 1e-3)[0]))
        assert bounds[-1] >= brute.worst(truth, alpha) * (1 - F(1, 10**12))
    assert min(bounds) < 0.9


@pytest.mark.parametrize("epsilon0", [0.5, 1.0, 2.0, 4.0])
def test_privunit_is_enclosed_closely(epsilon0: float) -> None:
    one = sdp.PrivUnit(dimension=100, epsilon0=epsilon0)
    for mechanism in (sdp.Shuffled(one, n=10**5), sdp.Shuffled(one, n=10**4).sampled_from(10**5)):
        answer = mechanism.epsilon(delta=1e-6)
        assert answer.upper <= 1.04 * answer.lower
    low, high = one._densities
    assert high / low <= math.exp(epsilon0) * (1 + 1e-9)
    assert low * (1.0 - one.cap.probability) + high * one.cap.probability == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize("cap", [0.3, 0.5, 0.7])
def test_corners_are_all_there_are(cap: float) -> None:
    """Random distributions of the eight ways with three equal caps are mixtures of corners: for linear
    functions of the masses no such distribution exceeds all of them."""
    low = 1.0 / (1.0 + cap * 3.0)
    laws = crowds.crowd_laws(low, 4.0 * low, 5, 0.0, 0.0)
    rng = np.random.default_rng(4)
    ways = np.array(crowds._WAYS)
    for _ in range(60):
        shift = rng.uniform(0.0, 1.0, 3)
        u = rng.uniform(0.0, 1.0, 2000)
        masses = np.zeros(8)
        for way, count in zip(
            *np.unique(((u[:, None] + shift) % 1.0 < cap).astype(int), axis=0, return_counts=True),
            strict=True,
        ):
            masses[int(np.flatnonzero((ways == way).all(axis=1))[0])] = count / u.size
        dense = np.where(ways == 1, 4.0 * low, low)
        x = (dense[:, 0] - 1.1 * dense[:, 1]) / dense[:, 2]
        second = float((masses * dense[:, 2]) @ x**2)
        most = max(_second(law) for each in laws for law in (each, each.reversed()))
        assert second <= most * 1.1  # 2,000 points: a cap's share is off by some percent


def _second(law: sdp.AmplificationLaw) -> float:
    return sum((u - 1.1 * v) ** 2 / c for u, v, c in zip(law.own, law.other, law.clone, strict=True) if c)


def test_laws_come_in_both_directions() -> None:
    laws = sdp.PrivUnit(dimension=20, epsilon0=1.0).facts().crowds
    keys = [sorted(zip(law.own, law.other, law.clone, strict=True)) for law in laws]
    mirrored = [sorted(zip(law.other, law.own, law.clone, strict=True)) for law in laws]
    assert sorted(keys) == sorted(mirrored)
    assert len(laws) == len({tuple(key) for key in keys}) > 4
