"""Facts: what anybody may state of a randomizer, checked against all datasets and by definition (T14')."""

import itertools
import math
from fractions import Fraction
from math import log

import numpy as np
import pytest

import shuffledp as sdp
from oracles import brute
from shuffledp.accounting._curves.law_sum import AmplificationProfile
from shuffledp.accounting._witnesses import witness
from shuffledp.facts import AmplificationLaw, Facts, Matrix, Response
from shuffledp.noise import facts_of_noise

ALPHAS = [Fraction(a, 8) for a in (8, 9, 11, 14, 20, 32)]
MATRICES = brute.random_matrices(6, seed=11)


def floats(matrix: brute.Matrix) -> list[list[float]]:
    return [[float(p) for p in row] for row in matrix]


def encloses(facts: Facts, truth: brute.Pairs, n: int) -> None:
    found = sdp.Shuffled(facts, n=n).delta(epsilon=[log(a) for a in ALPHAS])
    exact = [float(brute.worst(truth, Fraction(math.exp(log(a))))) for a in ALPHAS]
    assert np.all(np.array(exact) <= found.upper * (1.0 + 1e-9) + 1e-15)
    assert np.all(found.lower <= np.array(exact) * (1.0 + 1e-9) + 1e-15)


def law_of(matrix: brute.Matrix, x: int, other: int) -> AmplificationLaw:
    least = [min(column) for column in zip(*matrix, strict=True)]
    return AmplificationLaw.merged(zip(matrix[x], matrix[other], least, strict=True))


@pytest.mark.parametrize("matrix", MATRICES, ids=brute.shape)
@pytest.mark.parametrize("n", [1, 2, 3])
def test_a_matrix_and_all_its_laws_enclose_every_dataset(matrix: brute.Matrix, n: int) -> None:
    truth = brute.shuffled_pairs(matrix, n)
    encloses(Facts.of_matrix(floats(matrix)), truth, n)
    inputs = range(len(matrix))
    laws = tuple(law_of(matrix, x, y) for x in inputs for y in inputs if x != y)
    local = max(law.loss for law in laws)
    encloses(Facts(local * (1.0 + 1e-12), above=laws), truth, n)
    first = laws[0]
    encloses(Facts(local * (1.0 + 1e-12), concrete=(first.among(first.own),)), truth, n)


@pytest.mark.parametrize("matrix", MATRICES, ids=brute.shape)
@pytest.mark.parametrize("E", [Fraction(3, 2), Fraction(2)])
def test_a_leak_of_delta0_is_covered_at_every_dataset(matrix: brute.Matrix, E: Fraction) -> None:
    """The least delta0 of the matrix at e^epsilon0 = E, by definition."""
    rows = [(x, y) for x in matrix for y in matrix]
    leak = max(sum(max(u - E * v, Fraction(0)) for u, v in zip(x, y, strict=True)) for x, y in rows)
    assert leak > 0
    for analysis in ("best", "clones-2021"):
        facts = Facts(log(E) * (1.0 + 1e-15), delta0=float(leak) * (1.0 + 1e-15))
        for n in (1, 2, 3):
            mechanism = sdp.Shuffled(facts, n=n, analysis=analysis)
            upper = mechanism.upper_delta(epsilon=[log(a) for a in ALPHAS])
            exact = [float(brute.worst(brute.shuffled_pairs(matrix, n), a)) for a in ALPHAS]
            assert np.all(np.array(exact) <= upper * (1.0 + 1e-9))


def test_a_leak_grows_the_answer_and_vanishes_with_delta0() -> None:
    def epsilon(delta0: float) -> float:
        return sdp.Shuffled(Facts(1.0, delta0=delta0), n=1000, analysis="clones").upper_epsilon(delta=1e-6)

    none, little, more = epsilon(0.0), epsilon(1e-14), epsilon(1e-11)
    assert none <= little * (1.0 + 1e-3) <= more * (1.0 + 1e-3)
    assert little == pytest.approx(none, rel=2e-3)
    rounds = 3 * sdp.Shuffled(Facts(1.0, delta0=1e-14), n=1000, analysis="clones")
    assert none < rounds.upper_epsilon(delta=1e-6) < 3 * none
    assert rounds.upper_delta(epsilon=50.0) > 0.0


def noises() -> dict[str, tuple[Facts, object]]:
    """Facts and density of three noises."""
    erfc = np.vectorize(math.erfc)
    return {
        "laplace": (
            facts_of_noise(lambda t: -t - log(2.0), lambda t: 0.5 * np.exp(-t), epsilon0=1.0),
            lambda t: 0.5 * np.exp(-np.abs(t)),
        ),
        "gaussian": (
            facts_of_noise(
                lambda t: -0.5 * t * t - 0.5 * log(2.0 * math.pi), lambda t: 0.5 * erfc(t / math.sqrt(2.0))
            ),
            lambda t: np.exp(-0.5 * t * t) / math.sqrt(2.0 * math.pi),
        ),
        "logistic": (
            facts_of_noise(
                lambda t: -t - 2.0 * np.log1p(np.exp(-t)), lambda t: 1.0 / (1.0 + np.exp(t)), epsilon0=1.0
            ),
            lambda t: 0.25 / np.cosh(0.5 * t) ** 2,
        ),
    }


@pytest.mark.parametrize(
    "name", ["gaussian", *(pytest.param(name, marks=pytest.mark.slow) for name in ("laplace", "logistic"))]
)
def test_noise_encloses_one_and_two_users_by_quadrature(name: str) -> None:
    """The reports of two users who hold 0 or 1, and z, integrated on a fine grid: z and both ways."""
    facts, density = noises()[name]
    assert callable(density)
    step = 0.02
    w = np.arange(-16.0, 17.0, step) + 0.5 * step
    inputs = np.linspace(0.0, 1.0, 5)
    f = {float(x): density(w - x) * step for x in inputs}
    epsilons = (0.05, 0.3, 0.6)
    two = dict.fromkeys(epsilons, 0.0)
    for z in f:
        law = {x: np.outer(f[x], f[z]) for x in (0.0, 1.0)}
        law = {x: (p + p.T) for x, p in law.items()}  # the order is forgotten
        for epsilon, (x, y) in itertools.product(epsilons, ((0.0, 1.0), (1.0, 0.0))):
            excess = np.maximum(law[x] - math.exp(epsilon) * law[y], 0.0)
            two[epsilon] = max(two[epsilon], 0.5 * float(excess.sum()))
    for epsilon in epsilons:
        a = math.exp(epsilon)
        one = max(np.maximum(f[x] - a * f[y], 0.0).sum() for x in f for y in f)
        bound = sdp.Shuffled(facts, n=1).delta(epsilon=epsilon)
        assert bound.lower <= one + 1e-4
        assert one - 1e-4 <= bound.upper
        assert bound.upper <= bound.lower * 1.01 + 1e-6
        bound = sdp.Shuffled(facts, n=2).delta(epsilon=epsilon, tolerance=1e-2)
        assert bound.lower <= two[epsilon] + 1e-4
        assert two[epsilon] - 1e-4 <= bound.upper


def test_facts_that_bound_nothing_are_refused_with_the_reason() -> None:
    with pytest.raises(sdp.NoCertificateError, match="epsilon0 is not bounded"):
        sdp.Shuffled(Facts(epsilon0=sdp.Bound(0.0, math.inf)), n=9).epsilon(delta=0.1)


def test_losses_beyond_the_last_cell_are_counted() -> None:
    """Gaussian noise of a fifth of the interval: the cells end where the loss is 30, the truth does not."""
    erfc, mu = np.vectorize(math.erfc), 5.0
    facts = facts_of_noise(
        lambda t: -0.5 * (mu * t) ** 2 + log(mu) - 0.5 * log(2.0 * math.pi),
        lambda t: 0.5 * erfc(mu * t / math.sqrt(2.0)),
    )
    epsilons = np.array([20.0, 29.0, 30.0, 31.0, 35.0, 40.0])
    own, other = (0.5 * erfc((epsilons / mu + side * mu / 2) / math.sqrt(2.0)) for side in (-1.0, 1.0))
    truth = own - np.exp(epsilons) * other
    assert np.all(truth <= sdp.Shuffled(facts, n=1).upper_delta(epsilon=epsilons))


@pytest.mark.parametrize(("reach", "seen"), [(2.0, 0.25), (0.25, 1.0)])
def test_noise_of_bounded_support_shows_what_it_cannot_hide(reach: float, seen: float) -> None:
    """Uniform noise: who reports where nobody else can is seen, however many take part."""
    facts = facts_of_noise(
        lambda t: np.where(t <= reach, -log(2.0 * reach), -np.inf),
        lambda t: np.maximum(reach - t, 0.0) / (2.0 * reach),
    )
    for n in (1, 100):
        upper = sdp.Shuffled(facts, n=n).upper_delta(epsilon=np.array([0.1, 1.0, 5.0]))
        assert np.all(seen <= upper)
        assert np.all(upper <= seen * (1.0 + 1e-9))


def test_masses_known_to_a_factor_give_a_lower_end_that_holds_for_all_of_them() -> None:
    """Every law within the stated error is above the lower end, by more the more users there are."""
    rng = np.random.default_rng(3)
    base = np.array([[0.5, 0.3, 0.2], [0.2, 0.5, 0.3], [0.3, 0.3, 0.4]])
    error = 1e-3
    for n in (2, 5, 40):
        own, other, clone = (tuple(row) for row in base)
        stated = AmplificationLaw(own, other, clone, error=error)
        low = witness(stated, n)
        for _ in range(20):
            moved = base * (1.0 + error * rng.uniform(-1.0, 1.0, base.shape))
            own, other, clone = moved / moved.sum(axis=1, keepdims=True)
            gap = own - other
            true = AmplificationProfile(n, *(tuple(map(float, p)) for p in (own, other, gap, clone)))
            for epsilon in (0.05, 0.3, 0.8):
                at = np.array([epsilon])
                assert low.support(at, 1e-4).value[0] <= true.upper(at, 1e-4)[0]
                assert low.upper(at, 1e-4)[0] >= true.support(at, 1e-4).value[0]
    assert witness(stated, 10**6).support(np.array([0.05]), 1e-3).value[0] >= 0.0


class Staircase:
    """A randomizer of somebody else: two inputs, three reports."""

    rows = ((0.5, 0.25, 0.25), (0.25, 0.25, 0.5))

    def facts(self) -> Facts:
        return Facts.of_matrix(self.rows)


def test_anything_with_facts_is_a_randomizer() -> None:
    stranger, own = Staircase(), sdp.FiniteRandomizer(Staircase.rows)
    one = sdp.Shuffled(stranger, n=1000)
    assert one.epsilon(delta=1e-6) == sdp.Shuffled(own, n=1000).epsilon(delta=1e-6)
    assert (5 * one).epsilon(delta=1e-6).lower > one.epsilon(delta=1e-6).upper
    assert one.sampled_from(10_000).upper_epsilon(delta=1e-6) < one.upper_epsilon(delta=1e-6)
    names = [row.bound for row in sdp.compare(one, delta=1e-6).rows]
    assert {"blanket", "clones"} <= set(names)


def test_calibrate_takes_a_function_that_gives_facts() -> None:
    found = sdp.calibrate(lambda epsilon0: Facts(epsilon0), n=10_000, epsilon=0.2, delta=1e-6)
    known = sdp.calibrate(sdp.LocalRandomizer, n=10_000, epsilon=0.2, delta=1e-6)
    assert found.value == known.value
    assert found.epsilon.upper <= 0.2
    assert sdp.calibrate(Staircase(), solve_for="n", epsilon=0.2, delta=1e-6).value > 100


LAW = AmplificationLaw((0.6, 0.4), (0.4, 0.6), (0.4, 0.4))


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        (lambda: AmplificationLaw((0.9, 0.4), (0.4, 0.6), (0.4, 0.4)), "own must not exceed 1"),
        (lambda: AmplificationLaw((0.6, 0.4), (0.4, 0.6), (0.8, 0.4)), "clone must not exceed 1"),
        (lambda: AmplificationLaw((0.5, 0.4), (0.4, 0.6), (0.4, 0.4)), "mean of X is 1 - alpha"),
        (lambda: AmplificationLaw((0.6, 0.4), (0.4, 0.6), (0.4, 0.4), (0.3, -0.2)), "own - other"),
        (lambda: AmplificationLaw((1.6, -0.6), (0.4, 0.6), (0.4, 0.4)), "probabilities"),
        (lambda: Facts(0.1, above=(LAW,)), "largest loss of its own laws"),
        (lambda: Facts(1.0, above=(LAW.among((0.5, 0.4)),)), "must not exceed own or other"),
        (lambda: Facts(1.0, concrete=(LAW,)), "clone must sum to 1"),
        (lambda: Facts(1.0, total_variation=0.9), "total_variation must be in"),
        (lambda: Facts(1.0, common=0.3), "common must be in"),
        (lambda: Facts(1.0, common=1.1), "common must be in"),
        (lambda: Facts(1.0, 0.0, 0.1, concrete=(LAW.among(LAW.own),)), "at least that of the concr"),
        (lambda: Facts(1.0, matrix=Matrix(np.array([[0.9, 0.1], [0.1, 0.9]]))), "that of the matrix"),
        (
            lambda: Facts(sdp.Bound(1.0, 2.0), matrix=Matrix(np.array([[0.6, 0.4], [0.4, 0.6]]))),
            "attained by the matrix",
        ),
        (lambda: Facts(1.0, response=Response(2, 0.1, 0.9)), "that of the response"),
        (lambda: Facts(1.0, 0.0, 0.01, response=Response(2, 0.5379, 0.4621)), "concrete laws"),
        (lambda: Facts(0.1, 1e-30, concrete=(LAW.among(LAW.own),)), "what two inputs leak"),
        (lambda: Facts(0.1, 1e-30, matrix=Matrix(np.array([[0.9, 0.1], [0.1, 0.9]]))), "leak"),
        (lambda: Response(0, 0.5, 0.5), "k must be"),
        (lambda: Facts(sdp.Bound(0.0, 1e308)), "epsilon0 must be in"),
        (lambda: Facts(1.0, above=LAW), "above must be a tuple of AmplificationLaw"),
        (lambda: Facts(1.0, matrix=[[0.5, 0.5]]), "matrix must be a Matrix"),
        (lambda: sdp.Shuffled(sdp.KaryRandomizedResponse, n=10), "must be an object"),
        (lambda: Facts(-1.0), "epsilon0 must be in"),
        (lambda: Facts(1.0, delta0=2.0), "delta0 must be in"),
        (lambda: Facts.of_matrix([[0.5, 0.4], [0.5, 0.5]]), "rows must sum to 1"),
        (lambda: facts_of_noise(lambda t: -t, lambda t: np.exp(-t)), r"tail\(0\) must be 1/2"),
        (
            lambda: facts_of_noise(lambda t: -t - log(2.0), lambda t: 0.5 * np.exp(-1.1 * t)),
            "they do not agree",
        ),
        (
            lambda: facts_of_noise(lambda t: -2.0 * np.log1p(t) - log(2.0), lambda t: 0.5 / (1.0 + t)),
            "must be concave",
        ),
        (lambda: sdp.Shuffled(object(), n=10), "must be Facts, or have"),
    ],
)
def test_what_can_be_seen_to_be_wrong_is_refused(wrong: object, reason: str) -> None:
    assert callable(wrong)
    with pytest.raises((TypeError, ValueError), match=reason):
        wrong()


def test_numbers_of_numpy_are_numbers() -> None:
    assert Facts(epsilon0=1.0, total_variation=np.float64(0.4)) == Facts(epsilon0=1.0, total_variation=0.4)
    assert Facts(epsilon0=np.float64(1.0), delta0=np.float64(1e-9)) == Facts(epsilon0=1.0, delta0=1e-9)
