"""PrivUnit: its law by brute force, its samples by statistics, its numbers by ball arithmetic (T10).

Statistical tests have a fixed seed and a false-alarm rate of 1e-6 each.
"""

import math
from collections import defaultdict
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from flint import arb
from scipy import special

from oracles.brute import Matrix, shuffled_pairs, worst
from response import krr_blanket
from shuffledp import Shuffled
from shuffledp.accounting._curves.clones import strong_clones
from shuffledp.accounting._curves.law_sum import AmplificationProfile
from shuffledp.facts import AmplificationLaw
from shuffledp.randomizers._privunit_directions import height_error
from shuffledp.randomizers.privunit import LEAST_CAP, MOST_MARGIN, PrivUnit

FALSE_ALARM = 1e-6
EXTREME_Z = 4.9  # exceeded with probability 1e-6
ALPHAS = [Fraction(1, 2), Fraction(1), Fraction(9, 8), Fraction(7, 5), Fraction(2), Fraction(5, 2)]


def circle(size: int, width: int, E: Fraction) -> Matrix:
    """A finite PrivUnit: outputs on a circle, the cap of an input is the arc that starts there."""
    c = 1 / (1 + (E - 1) * Fraction(width, size))
    arcs = [{(x + i) % size for i in range(width)} for x in range(size)]
    rows = (tuple(E * c / size if y in arc else c / size for y in range(size)) for arc in arcs)
    return tuple(rows)


def subsets(size: int, first: set[int], second: set[int], E: Fraction) -> Matrix:
    """Two inputs with any caps of equal size."""
    c = 1 / (1 + (E - 1) * Fraction(len(first), size))
    return tuple(
        tuple(E * c / size if y in cap else c / size for y in range(size)) for cap in (first, second)
    )


def amplification(pair: Matrix, clone: Fraction, n: int, alpha: Fraction) -> Fraction:
    """E[(X_1 + ... + X_n)_+] / n in exact rationals, X by definition: one atom per output."""
    atoms = [((u - alpha * v) / clone, clone) for u, v in zip(*pair, strict=True)]
    atoms.append((Fraction(0), 1 - clone * len(atoms)))
    total = {Fraction(0): Fraction(1)}
    for _ in range(n):
        following: dict[Fraction, Fraction] = defaultdict(Fraction)
        for value, mass in total.items():
            for x, p in atoms:
                following[value + x] += mass * p
        total = following
    return sum((max(value, Fraction(0)) * mass for value, mass in total.items()), Fraction(0)) / n


@pytest.mark.parametrize("width", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("n", [2, 3, 4])
def test_the_profile_of_two_caps_grows_as_their_overlap_shrinks(n: int, width: int) -> None:
    size, E = 6, Fraction(3)
    clone = 1 / (1 + (E - 1) * Fraction(width, size)) / size
    own = set(range(width))
    overlaps = range(max(0, 2 * width - size), width + 1)
    for alpha in ALPHAS:
        curve = []
        for overlap in overlaps:
            other = {(width - overlap + i) % size for i in range(width)}
            pair = subsets(size, own, other, E)
            assert len(own & other) == overlap
            curve.append(amplification(pair, clone, n, alpha))
        assert all(more >= less for more, less in pairwise(curve))
        if alpha == Fraction(9, 8):
            assert all(more > less for more, less in pairwise(curve))


def stated_law(width: int, size: int, E: Fraction) -> AmplificationLaw:
    """The law that PrivUnit states, for a cap of probability width/size."""
    randomizer = PrivUnit(10, math.log(E), cap_probability=width / size)
    return randomizer.law()


def law_value(law: AmplificationLaw, n: int, alpha: Fraction) -> float:
    profile = AmplificationProfile(n, law.own, law.other, law.gap, law.clone)
    return float(profile.upper(np.array([math.log(alpha)]), 1e-6)[0])


@pytest.mark.parametrize(
    ("n", "size", "width"),
    [(n, 6, width) for n in (2, 3) for width in (1, 2, 3, 4)] + [(4, 4, 1), (4, 4, 2), (4, 4, 3)],
)
def test_the_law_covers_every_dataset_of_a_finite_model(n: int, size: int, width: int) -> None:
    E = Fraction(3)
    matrix = circle(size, width, E)
    law = stated_law(width, size, E)
    antipodal = (matrix[0], matrix[size // 2])
    clone = min(min(row) for row in matrix)
    pairs = shuffled_pairs(matrix, n)
    for alpha in ALPHAS[1:]:
        stated = law_value(law, n, alpha)
        assert float(worst(pairs, alpha)) <= stated
        # The stated law is that of antipodal points, up to the margin of q.
        blanket = float(amplification(antipodal, clone, n, alpha))
        assert blanket <= stated * (1.0 + 1e-15)
        assert stated <= blanket * (1.0 + 1e-9) + 1e-14


def caps_of_several_sizes(size: int, p: Fraction) -> Matrix:
    """Inputs whose caps have two and three outputs, and a mixture of two of them; the same p."""
    caps = [{0, 1}, {2, 3}, {3, 4, 5}, {1, 2, 3}]
    rows = [
        tuple(p / len(cap) if y in cap else (1 - p) / (size - len(cap)) for y in range(size)) for cap in caps
    ]
    return (*rows, tuple((u + 2 * v) / 3 for u, v in zip(rows[0], rows[2], strict=True)))


@pytest.mark.parametrize("n", [2, 3])
@pytest.mark.parametrize("p", [Fraction(6, 10), Fraction(3, 4)])
def test_caps_of_several_sizes_are_covered_by_the_law_of_the_smallest(n: int, p: Fraction) -> None:
    size = 6
    pairs = shuffled_pairs(caps_of_several_sizes(size, p), n)

    def stated(width: int, alpha: Fraction) -> Fraction:
        q = Fraction(width, size)
        E = p * (1 - q) / (q * (1 - p))
        apart = subsets(size, set(range(width)), set(range(width, 2 * width)), E)
        return amplification(apart, (1 - p) / (1 - q) / size, n, alpha)

    assert all(worst(pairs, alpha) <= stated(2, alpha) for alpha in ALPHAS[1:])
    # The law of the larger caps is not enough, though one of the inputs has it.
    assert any(worst(pairs, alpha) > stated(3, alpha) for alpha in ALPHAS[1:])


@pytest.mark.parametrize("n", [100, 1000, 10_000])
@pytest.mark.parametrize(("q", "epsilon0"), [(0.2, 2.0), (0.05, 4.0), (0.5, 1.0), (0.7, 2.0)])
def test_the_certified_profile_grows_as_the_overlap_shrinks(n: int, q: float, epsilon0: float) -> None:
    E = math.exp(epsilon0)
    c = 1.0 / (1.0 + (E - 1.0) * q)
    least = max(0.0, 2.0 * q - 1.0)
    epsilon = np.array([0.05, 0.2, 0.5]) * epsilon0 * math.sqrt(100.0 / n)
    values = []
    for part in (0.0, 0.2, 0.5, 0.9):
        o = least + part * (q - least)
        alone, neither = q - o, max(0.0, 1.0 - 2.0 * q + o)
        own = (E * c * alone, c * alone, E * c * o, c * neither)
        other = (c * alone, E * c * alone, E * c * o, c * neither)
        clone = (c * alone, c * alone, c * o, c * neither)
        gap = ((E - 1.0) * c * alone, -(E - 1.0) * c * alone, 0.0, 0.0)
        profile = AmplificationProfile(n, own, other, gap, clone).without_empty_types()
        values.append(profile.both(epsilon, 1e-4))
    assert all((more[1].value > less[0]).all() for more, less in pairwise(values))
    randomizer = PrivUnit(50, epsilon0, cap_probability=q)
    law = randomizer.law()
    stated = AmplificationProfile(n, law.own, law.other, law.gap, law.clone)
    upper, lines = stated.both(epsilon, 1e-4)
    np.testing.assert_allclose(upper, values[0][0], rtol=1e-3)
    assert (lines.value <= strong_clones(epsilon0, n).upper(epsilon, 1e-4)).all()


def convex_mean(E: float, q: float, alpha: float, kink: float) -> float:
    """E[(X - kink)_+], a generator of the convex order, for antipodal points."""
    c, small = 1.0 / (1.0 + (E - 1.0) * q), min(q, 1.0 - q)
    middle, mass = (1.0 - alpha, 1.0 - 2.0 * q) if q <= 0.5 else (E * (1.0 - alpha), 2.0 * q - 1.0)
    values = np.array([E - alpha, 1.0 - alpha * E, middle, 0.0])
    masses = np.array([c * small, c * small, c * mass, 1.0 - c * (2.0 * small + mass)])
    return float(np.maximum(values - kink, 0.0) @ masses)


@pytest.mark.parametrize("E", [1.1, 3.0, 50.0])
@pytest.mark.parametrize("place", [0.05, 0.5, 0.95])
def test_the_law_grows_in_the_convex_order_as_the_cap_nears_one_half(E: float, place: float) -> None:
    alpha = E ** (2.0 * place - 1.0)
    for kink in np.linspace(1.0 - alpha * E, E - alpha, 23):
        below = [convex_mean(E, q, alpha, kink) for q in np.linspace(0.01, 0.5, 30)]
        above = [convex_mean(E, q, alpha, kink) for q in np.linspace(0.99, 0.5, 30)]
        for curve in (below, above):
            assert (np.diff(curve) >= -1e-13 * E).all()


def test_a_cap_of_one_in_k_has_the_law_of_randomized_response_on_k_symbols() -> None:
    law = PrivUnit(30, 2.0, cap_probability=0.25).law()
    known = krr_blanket(4, 2.0, 100)
    np.testing.assert_allclose(law.own, known.own, rtol=1e-9)
    np.testing.assert_allclose(law.other, known.other, rtol=1e-9)
    np.testing.assert_allclose(law.clone, known.clone, rtol=1e-9)
    np.testing.assert_allclose(law.gap, known.gap, rtol=1e-9)


@pytest.mark.parametrize("dimension", [2, 3, 100, 10**6])
@pytest.mark.parametrize("epsilon0", [1e-4, 0.1, 2.0, 8.0, 32.0])
@pytest.mark.parametrize("q", [None, 0.01, 0.5, 0.8])
def test_the_realised_epsilon0_never_exceeds_what_was_asked(
    dimension: int, epsilon0: float, q: float | None
) -> None:
    randomizer = PrivUnit(dimension, epsilon0, cap_probability=q)
    t = arb(abs(randomizer.cap.threshold))
    small = (1 - t**2).beta_lower(arb(dimension - 1) / 2, arb(0.5), regularized=True) / 2
    cap = small if randomizer.cap.threshold >= 0.0 else 1 - small
    odds = arb(randomizer.weight) / arb(2**64 - randomizer.weight)
    realised = (odds * (1 - cap) / cap).log()
    assert realised <= arb(randomizer.realised_epsilon0)
    assert randomizer.realised_epsilon0 <= epsilon0
    assert realised >= arb(epsilon0 * (1.0 - 1e-4))


def exact_cap(dimension: int, threshold: arb) -> arb:
    small = (1 - threshold**2).beta_lower(arb(dimension - 1) / 2, arb(0.5), regularized=True) / 2
    return small if threshold >= 0 else 1 - small


@pytest.mark.parametrize(
    ("dimension", "epsilon0", "q"),
    [
        *((2, 1.0, None), (100, 4.0, None), (1000, 2.0, None), (10**5, 8.0, None), (2, 32.0, None)),
        *((2, 5.0, 1e-5), (3, 1.0, 0.5), (50, 1e-4, 0.5), (50, 1e-4, 1e-9), (7, 2.0, 0.8)),
    ],
)
def test_every_cap_that_may_be_computed_is_within_the_margin_and_within_epsilon0(
    dimension: int, epsilon0: float, q: float | None
) -> None:
    """The thresholds between which the proof places the drawn directions, in ball arithmetic."""
    randomizer = PrivUnit(dimension, epsilon0, cap_probability=q)
    cap, reach = randomizer.cap, height_error(dimension)
    p = arb(randomizer.weight) / 2**64
    for move in (-reach, 0.0, reach):
        inside = exact_cap(dimension, arb(cap.threshold) + move)
        small = inside if cap.threshold >= 0.0 else 1 - inside
        assert abs(small / arb(cap.small) - 1) <= arb(randomizer.margin)
        ratio = p / inside * (1 - inside) / (1 - p)
        assert ratio >= 1
        assert ratio.log() <= arb(epsilon0)
        # The law is that of a cap no further from one half (no cap meets its antipode).
        least = small if small <= arb(0.5) else arb(0.5)
        outside = 1 + (arb(epsilon0).exp() - 1) * (least if cap.threshold >= 0.0 else 1 - least)
        assert arb(randomizer._law_parts[1]) >= least / outside * (1 - 1e-14)


@pytest.mark.parametrize("dimension", [2, 3, 4, 10, 1000, 10**5, 10**8])
@pytest.mark.parametrize("epsilon0", [1e-4, 0.1, 1.0, 8.0, 32.0])
def test_the_margin_of_a_default_cap_is_small(dimension: int, epsilon0: float) -> None:
    randomizer = PrivUnit(dimension, epsilon0)
    assert randomizer.margin <= min(MOST_MARGIN, epsilon0 / 8.0) / 100.0
    assert randomizer.cap.small > LEAST_CAP / 10.0


@pytest.mark.parametrize("q", [None, 0.3, 0.8])
def test_total_variation_is_that_of_antipodal_points_and_of_the_law(q: float | None) -> None:
    randomizer = PrivUnit(20, 1.5, cap_probability=q)
    p, cap = randomizer.weight / 2**64, randomizer.cap.probability
    density = [p / cap, (1.0 - p) / (1.0 - cap)]
    distance = (density[0] - density[1]) * min(cap, 1.0 - cap)
    assert randomizer.total_variation == pytest.approx(distance, rel=1e-9)
    law = randomizer.law()
    assert sum(max(g, 0.0) for g in law.gap) == pytest.approx(distance, rel=1e-9)
    assert sum(law.own) == pytest.approx(1.0)
    assert sum(law.clone) == pytest.approx(density[1], rel=1e-9)


def test_reports_of_the_plane_have_the_mean_that_integration_gives() -> None:
    """On the circle the mean report is an integral over the angle: no gamma function is needed."""
    randomizer = PrivUnit(2, 1.3, radius=3.0, cap_probability=0.2)
    angle = (np.arange(10**6) + 0.5) * (2.0 * np.pi / 10**6)
    p, inside = randomizer.weight / 2**64, np.cos(angle) >= randomizer.cap.threshold
    mean = p * np.cos(angle[inside]).mean() + (1.0 - p) * np.cos(angle[~inside]).mean()
    assert randomizer.mean_length == pytest.approx(mean, rel=1e-5)
    assert randomizer.variance(1.0) == pytest.approx((3.0 / mean) ** 2 - 1.0, rel=1e-5)


def test_the_default_cap_has_the_smallest_variance() -> None:
    best = PrivUnit(100, 2.0)
    others = [PrivUnit(100, 2.0, cap_probability=q) for q in np.linspace(0.02, 0.98, 49)]
    assert min(other.variance() for other in others) >= best.variance()
    assert 0.0 < best.cap.probability < 0.5


def uniformity(height: np.ndarray, dimension: int, low: float, high: float) -> float:
    """p-value: are heights in [low, high] those of uniform directions? Twenty equal bins."""

    def below(s: np.ndarray) -> np.ndarray:
        return 0.5 + 0.5 * np.sign(s) * special.betainc(0.5, 0.5 * (dimension - 1), s * s)

    ends = below(np.array([low, high]))
    share = (below(np.clip(height, -1.0, 1.0)) - ends[0]) / (ends[1] - ends[0])
    seen = np.histogram(share, bins=20, range=(-1e-5, 1.0 + 1e-5))[0]
    expected = height.size / 20
    assert seen.sum() == height.size
    return float(special.chdtrc(19, ((seen - expected) ** 2 / expected).sum()))


@pytest.mark.parametrize("sampler", ["rejection", "direct"])
@pytest.mark.parametrize("dimension", [2, 3, 4, 30])
@pytest.mark.parametrize("q", [None, 0.02, 0.8])
def test_reports_are_uniform_in_the_cap_and_outside_and_unbiased(
    sampler: str, dimension: int, q: float | None
) -> None:
    randomizer = PrivUnit(dimension, 2.0, radius=3.0, cap_probability=q, sampler=sampler)
    n, rng = 100_000, np.random.default_rng(dimension)
    axis = rng.normal(size=dimension)
    axis /= np.linalg.norm(axis)
    reports = randomizer.randomize(np.broadcast_to(3.0 * axis, (n, dimension)), rng=rng)
    np.testing.assert_allclose(np.linalg.norm(reports, axis=1), 1.0, rtol=1e-6)
    height = reports.astype(np.float64) @ axis
    t, p = randomizer.cap.threshold, randomizer.weight / 2**64
    inside = height >= t
    assert abs(inside.sum() - n * p) < EXTREME_Z * math.sqrt(n * p * (1.0 - p))
    assert uniformity(height[inside], dimension, t, 1.0) > FALSE_ALARM
    assert uniformity(height[~inside], dimension, -1.0, t) > FALSE_ALARM
    estimate = randomizer.mean(reports)
    along = np.std(height) / randomizer.mean_length * 3.0 / math.sqrt(n)
    assert abs(estimate @ axis - 3.0) < EXTREME_Z * along
    # Across the axis: d - 1 components of equal variance, mean zero.
    across = estimate - (estimate @ axis) * axis
    spread = (1.0 - np.mean(height**2)) / (dimension - 1) * randomizer.second_moment / n
    assert special.chdtrc(dimension - 1, (across @ across) / spread) > FALSE_ALARM


@pytest.mark.parametrize("length", [0.0, 1e-200, 0.5, 1.0])
def test_vectors_inside_the_ball_are_estimated_without_bias_and_with_the_stated_error(length: float) -> None:
    randomizer = PrivUnit(6, 1.0)
    n = 200_000
    vector = np.full(6, length / math.sqrt(6.0))
    reports = randomizer.randomize(np.broadcast_to(vector, (n, 6)), rng=np.random.default_rng(9))
    decoded = randomizer.decode(reports)
    error = decoded.mean(axis=0) - vector
    scatter = np.cov(decoded.T)
    assert special.chdtrc(6, n * error @ np.linalg.solve(scatter, error)) > FALSE_ALARM
    squares = ((decoded - vector) ** 2).sum(axis=1)
    # Floats of single precision have norms that are off by up to 6e-8.
    noise = EXTREME_Z * squares.std() / math.sqrt(n) + 1e-6 * randomizer.variance()
    assert abs(squares.mean() - randomizer.variance(length)) < noise
    np.testing.assert_allclose(randomizer.mean(reports), decoded.mean(axis=0), atol=1e-12)


def test_secure_reports_differ_and_seeded_ones_are_repeated() -> None:
    randomizer = PrivUnit(4, 1.0)
    vectors = np.zeros((50, 4))
    first, second = (randomizer.randomize(vectors, rng=np.random.default_rng(11)) for _ in range(2))
    np.testing.assert_array_equal(first, second)
    assert not np.array_equal(randomizer.randomize(vectors), randomizer.randomize(vectors))


@pytest.mark.parametrize("sampler", ["rejection", "direct"])
def test_many_columns_in_many_chunks_fall_on_the_right_side(sampler: str) -> None:
    """A report outside this cap has a probability of 4e-8."""
    randomizer = PrivUnit(150_000, 20.0, cap_probability=0.05, sampler=sampler)
    vectors = np.zeros((5, 150_000), np.float32)
    vectors[np.arange(5), np.arange(5) * 30_000] = 1.0
    reports = randomizer.randomize(vectors, rng=np.random.default_rng(12))
    assert reports.dtype == np.float32
    height = reports[np.arange(5), np.arange(5) * 30_000]
    assert (height >= randomizer.cap.threshold * (1.0 - 1e-6)).all()
    np.testing.assert_allclose(np.linalg.norm(reports, axis=1), 1.0, rtol=1e-5)


def test_one_vector_gives_one_report_and_no_vectors_give_none() -> None:
    randomizer = PrivUnit(3, 1.0)
    report = randomizer.randomize([0.0, 1.0, 0.0])
    assert report.shape == randomizer.decode(report).shape == (3,)
    assert randomizer.randomize(np.zeros((0, 3))).shape == (0, 3)


def test_clipped_vectors_are_accepted_and_keep_their_direction() -> None:
    randomizer = PrivUnit(3, 1.0, radius=0.1)
    vectors = np.random.default_rng(13).normal(size=(10_000, 3)) * 10.0 ** np.arange(-2, 2).repeat(
        2500
    ).reshape(-1, 1)
    clipped = randomizer.clip(vectors)
    norms = np.linalg.norm(vectors, axis=1)
    np.testing.assert_allclose(clipped, vectors * np.minimum(1.0, 0.1 / norms)[:, None], rtol=1e-14)
    randomizer.randomize(clipped)
    np.testing.assert_allclose(randomizer.clip([3e200, 4e200, 0.0]), [0.06, 0.08, 0.0])


@pytest.mark.parametrize(
    ("vectors", "message"),
    [
        ([[0.0, 0.0], [0.0, math.nan]], "row 1 has column 1 = nan"),
        ([[0.0, 0.0], [0.9, 0.9]], r"l2 norm in \[0, 1.0\], row 1 has 1.27"),
        ([[1e300, 1e300]], "row 0 has 1.4"),
        ([[1.7e308, 1.7e308]], "row 0 has a norm beyond double precision"),
        (np.zeros((2, 2, 2)), r"got \(2, 2, 2\)"),
    ],
)
def test_bad_vectors_are_refused_by_row(vectors: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        PrivUnit(2, 1.0).randomize(vectors)


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"dimension": 1}, ValueError, r"dimension must be in \[2, "),
        ({"dimension": 2.5}, ValueError, "dimension must be a whole number"),
        ({"epsilon0": 1e-5}, ValueError, "epsilon0 must be in"),
        ({"epsilon0": None}, TypeError, "epsilon0 must be a real number"),
        ({"radius": 0.0}, ValueError, "radius must be in"),
        ({"cap_probability": 0.0}, ValueError, "cap_probability must be in"),
        ({"cap_probability": 1e-9, "dimension": 2}, ValueError, "cannot resolve a cap of 1e-09"),
        (
            {"cap_probability": 3e-6, "dimension": 2, "epsilon0": 1e-4},
            ValueError,
            "cannot resolve a cap of 3e-06",
        ),
        ({"sampler": "fast"}, ValueError, "sampler must be one of 'rejection', 'seeds', 'direct'"),
    ],
)
def test_bad_parameters_are_refused_by_name(
    parameters: dict[str, object], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        PrivUnit(**({"dimension": 10, "epsilon0": 1.0} | parameters))


def test_what_rejection_cannot_do_in_time_is_refused_and_bad_reports_too() -> None:
    assert PrivUnit(2, 1.0, cap_probability=3e-6).margin < 1e-3
    with pytest.raises(ValueError, match=r"sampler must be 'direct' \(for simulations"):
        PrivUnit(1000, 20.0).randomize(np.zeros(1000))
    randomizer = PrivUnit(2, 1.0)
    with pytest.raises(ValueError, match="reports must be finite, row 1 is not"):
        randomizer.decode([[1.0, 0.0], [math.nan, 0.0]])
    with pytest.raises(ValueError, match="reports must have shape"):
        randomizer.mean(np.zeros((3, 3)))
    with pytest.raises(ValueError, match="reports must not be empty"):
        randomizer.mean(np.zeros((0, 2)))
    with pytest.raises(ValueError, match=r"norm must be in \[0, 1.0\], got 2"):
        randomizer.variance(2)


def test_the_direct_sampler_is_refused_without_a_generator_of_its_own() -> None:
    randomizer = PrivUnit(dimension=5, epsilon0=2.0, sampler="direct")
    with pytest.raises(ValueError, match="rng must be given for sampler='direct'"):
        randomizer.randomize(np.ones(5) / 3.0)
    assert randomizer.randomize(np.ones(5) / 3.0, rng=np.random.default_rng(1)).shape == (5,)


@pytest.mark.parametrize(("dimension", "epsilon0"), [(3, 1.0), (3, 4.0), (20, 2.0)])
@pytest.mark.parametrize("degrees", [120.0, 180.0])
def test_the_crowd_apart_is_what_is_drawn(dimension: int, epsilon0: float, degrees: float) -> None:
    """Types of reports of the pair and the crowd, counted: within five deviations of the stated law."""
    randomizer = PrivUnit(dimension=dimension, epsilon0=epsilon0)
    law, draws = randomizer._in_a_plane(math.radians(degrees)), 20_000
    assert law is not None
    rng = np.random.default_rng(5)
    turns = np.radians([0.0, degrees, 180.0 + 0.5 * degrees])
    axes = np.zeros((3, dimension))
    axes[:, 0], axes[:, 1] = np.cos(turns), np.sin(turns)
    for axis, stated in zip(axes, (law.own, law.other, law.clone), strict=True):
        reports = randomizer.randomize(np.tile(axis / np.linalg.norm(axis), (draws, 1)), rng=rng)
        one, two, crowd = (reports @ axes.T.astype(np.float32) >= randomizer.cap.threshold).T
        parts = (~crowd, crowd) if len(law.own) == 5 else (crowd | ~crowd,)
        types = [side & part for side in (one & ~two, two & ~one) for part in parts]
        counted = [int(part.sum()) for part in types]
        seen = np.array([*counted, draws - sum(counted)])
        expected = draws * np.array(stated)
        assert np.all(np.abs(seen - expected) <= 5.0 * np.sqrt(expected) + 5.0)


def test_the_crowd_apart_closes_most_of_the_gap() -> None:
    for epsilon0, width in ((1.0, 1.14), (2.0, 1.06), (4.0, 1.02)):
        answer = Shuffled(PrivUnit(dimension=100, epsilon0=epsilon0), n=10_000).epsilon(delta=1e-6)
        assert answer.upper <= width * answer.lower
