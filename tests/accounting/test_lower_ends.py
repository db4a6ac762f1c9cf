"""Lower ends by definition: below the worst of all datasets, and as close to their own pair as asked

T14 of docs/proofs."""

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import permutations, product as choices

import numpy as np
import pytest

import shuffledp as sdp
from oracles.brute import k_ary, shuffled_law, shuffled_pairs, worst, worst_adaptive
from oracles.hockey import Atoms, atoms, hockey_stick, product
from shuffledp._certified.rounding import Floats
from shuffledp.accounting._curves.law_sum import _all_alike

E = Fraction(5)
ALPHAS = [Fraction(11, 10), Fraction(3, 2), Fraction(2), Fraction(7, 2)]
TOLERANCES = [1e-2, 1e-4, 1e-6]
SLACK = 1e-12


def survey(k: int, n: int) -> sdp.Shuffled:
    return sdp.Shuffled(sdp.KaryRandomizedResponse(k=k, epsilon0=math.log(E)), n=n)


def everyone_else_holds(k: int, n: int, held: int) -> Atoms:
    """One user's 0 against 1, all others at one value."""
    others: Sequence[int] = (held,) * (n - 1)
    matrix = k_ary(k, E)
    return atoms(shuffled_law(matrix, (0, *others)), shuffled_law(matrix, (1, *others)))


def witnessed(k: int, n: int, rounds: int, alpha: Fraction) -> Fraction:
    """The same pair in every round, the others at the first value or at a third."""
    held = (0, 2) if k > 2 else (0,)
    pairs = [everyone_else_holds(k, n, value) for value in held]
    return max(hockey_stick(product(*[pair] * rounds), alpha) for pair in pairs)


@pytest.mark.parametrize("tolerance", TOLERANCES)
@pytest.mark.parametrize(("k", "n"), [(2, 6), (3, 4), (4, 4), (5, 3)])
def test_one_round_is_below_every_dataset_and_close_to_its_own(k: int, n: int, tolerance: float) -> None:
    pairs = shuffled_pairs(k_ary(k, E), n)
    for alpha in ALPHAS:
        low = survey(k, n).lower_delta(epsilon=math.log(alpha), tolerance=tolerance)
        truth = worst(pairs, alpha)
        assert low <= float(truth) * (1 + SLACK)
        assert low >= float(witnessed(k, n, 1, alpha)) * (1 - min(tolerance, 1e-3))


@pytest.mark.parametrize("tolerance", TOLERANCES)
@pytest.mark.parametrize(("k", "n", "rounds"), [(2, 3, 3), (3, 3, 2), (4, 2, 2)])
def test_rounds_are_below_the_adaptive_adversary(k: int, n: int, rounds: int, tolerance: float) -> None:
    pairs = shuffled_pairs(k_ary(k, E), n)
    for alpha in ALPHAS:
        low = (rounds * survey(k, n)).lower_delta(epsilon=math.log(alpha), tolerance=tolerance)
        assert 0.0 < low <= float(worst_adaptive([pairs] * rounds, alpha)) * (1 + SLACK)


@pytest.mark.parametrize("tolerance", TOLERANCES)
@pytest.mark.parametrize(("k", "n"), [(2, 6), (3, 4), (4, 4)])
def test_an_epsilon_is_one_where_some_dataset_still_exceeds_delta(k: int, n: int, tolerance: float) -> None:
    pairs = shuffled_pairs(k_ary(k, E), n)
    for delta in (0.1, 1e-2, 1e-3):
        low = survey(k, n).lower_epsilon(delta=delta, tolerance=tolerance)
        assert float(worst(pairs, Fraction(math.exp(low)))) >= delta * (1 - SLACK)


@pytest.mark.parametrize("mechanism", [survey(4, 300), survey(16, 10_000), 30 * survey(4, 1_000)])
def test_a_finer_tolerance_gives_a_finer_lower_end(mechanism: sdp.Mechanism) -> None:
    coarse = mechanism.epsilon(delta=1e-6)
    fine = mechanism.lower_epsilon(delta=1e-6, tolerance=1e-5)
    assert coarse.lower < fine <= coarse.upper
    assert mechanism.epsilon(delta=1e-6, tolerance=1e-5).lower == pytest.approx(fine, rel=1e-5)


def test_the_ends_are_those_of_the_bound() -> None:
    mechanism = survey(3, 50)
    assert mechanism.lower_epsilon(delta=0.0) == mechanism.epsilon(delta=0.0).lower
    assert mechanism.lower_epsilon(delta=1.0) == 0.0
    assert (0 * mechanism).lower_epsilon(delta=0.1) == 0.0
    assert (0 * mechanism).lower_delta(epsilon=[0.0, 1.0]).tolist() == [0.0, 0.0]
    found = mechanism.lower_delta(epsilon=[0.1, 0.2, 99.0])
    assert found.shape == (3,)
    assert found[0] > found[1] > found[2] == 0.0
    with pytest.raises(ValueError, match="tolerance"):
        mechanism.lower_epsilon(delta=0.1, tolerance=0.0)
    with pytest.raises(ValueError, match="epsilon"):
        mechanism.lower_delta(epsilon=-1.0)


def test_the_strong_adversary_has_its_own_lower_end() -> None:
    strong = sdp.Shuffled(sdp.KaryRandomizedResponse(k=4, epsilon0=2.0), n=1000, analysis="strong")
    for mechanism in (strong, 10 * strong):
        answer = mechanism.epsilon(delta=1e-6)
        assert answer.lower <= answer.upper <= 1.003 * answer.lower
    assert strong.epsilon(delta=0.0) == sdp.Bound(math.inf, math.inf)


@pytest.mark.parametrize("rounds", [1, 10])
def test_what_is_seen_at_once_is_infinite_at_both_ends(rounds: int) -> None:
    leaky = rounds * sdp.Shuffled(sdp.FiniteRandomizer([[1.0, 0.0], [0.5, 0.5]]), n=1000)
    assert leaky.epsilon(delta=1e-6) == sdp.Bound(math.inf, math.inf)
    seen = leaky.delta(epsilon=1.0)
    assert 1.0 - 0.5**rounds - 1e-9 <= seen.lower <= seen.upper


def test_hadamard_response_attains_its_blanket() -> None:
    answer = sdp.Shuffled(sdp.HadamardResponse(k=16, epsilon0=2.0), n=10_000).epsilon(delta=1e-6)
    assert answer.upper <= 1.005 * answer.lower


def test_any_randomizer_may_be_binary_response() -> None:
    anything = sdp.Shuffled(sdp.LocalRandomizer(epsilon0=0.1), n=10_000).epsilon(delta=1e-6)
    binary = sdp.Shuffled(sdp.BinaryRandomizedResponse(epsilon0=0.1), n=10_000).epsilon(delta=1e-6)
    assert anything.lower == pytest.approx(binary.lower, rel=1e-3)
    assert anything.lower >= 0.002719
    assert anything.upper <= 1.01 * anything.lower


def largest_delta(matrix: Floats, n: int, epsilon: float) -> float:
    """Of all pairs and all crowds of a 3 x 3 matrix, mixed ones too: from laws of counts, by transforms."""
    w = np.exp(-2j * np.pi * np.arange(n + 1) / (n + 1))
    one = [row[0] * w[:, None] + row[1] * w + row[2] for row in matrix]
    worst = 0.0
    for first in range(n):
        for second in range(n - first):
            crowd = one[0] ** first * one[1] ** second * one[2] ** (n - 1 - first - second)
            laws = [np.fft.ifft2(crowd * own).real for own in one]
            gaps = (np.maximum(p - math.exp(epsilon) * q, 0.0).sum() for p, q in permutations(laws, 2))
            worst = max(worst, *gaps)
    return worst


@pytest.mark.parametrize("local", [1.0, 2.0, 3.0])
def test_of_all_crowds_of_few_people_none_is_much_worse_than_the_lower_end(local: float) -> None:
    """Of 19 others 18 with one value and one with another are 0.3% worse than all with one, at local = 1."""
    most, middle, delta, n = math.exp(local), math.exp(0.5 * local), 1e-5, 20
    rows = np.array([[most, 1.0, middle], [1.0, most, middle], [1.0, 1.0, most]])
    rows /= rows.sum(axis=1, keepdims=True)
    found = sdp.Shuffled(sdp.FiniteRandomizer(rows), n=n).epsilon(delta=delta)
    assert largest_delta(rows, n, found.lower) >= delta * (1.0 - 1e-9)
    assert largest_delta(rows, n, 1.005 * found.lower) < delta
    assert largest_delta(rows, n, found.upper) <= delta


@pytest.mark.parametrize("clone", [(0.05, 0.05, 0.9), (0.02, 0.03, 0.05), (0.3, 0.1, 0.6)])
def test_one_odd_report_among_others_that_are_alike_is_a_part_of_all_outcomes(
    clone: tuple[float, ...],
) -> None:
    """By definition: (1/n) E[(X_1 + ... + X_n)_+] over all outcomes, and over those with one odd report."""
    own, other = np.array([0.6, 0.1, 0.3]), np.array([0.1, 0.6, 0.3])
    for n, alpha in ((2, 1.5), (4, 1.1), (5, 5.5)):
        weight = own - alpha * other
        mass = [Fraction(c) for c in clone]
        mass.append(1 - sum(mass))
        worth = [*(Fraction(w) / c for w, c in zip(weight.tolist(), mass[:3], strict=True)), Fraction(0)]
        common = max(range(4), key=lambda t: mass[t])
        everything = part = Fraction(0)
        for outcome in choices(range(4), repeat=n):
            chance = math.prod((mass[t] for t in outcome), start=Fraction(1))
            told = Fraction(chance) * max(sum((worth[t] for t in outcome), Fraction(0)), Fraction(0)) / n
            everything += told
            part += told if outcome.count(common) == n - 1 else 0
        found = _all_alike(weight[None], other, np.array(clone), n)
        assert found is not None
        assert float(part) * (1 - SLACK) <= found[0, 0] <= min(part, everything)


def test_hardly_anybody_hides_among_few_who_answer_almost_truly() -> None:
    for n in (10**3, 10**5):
        found = sdp.Shuffled(sdp.KaryRandomizedResponse(k=10, epsilon0=16.0), n=n).epsilon(delta=1e-6)
        assert 0.999 * 16.0 <= found.lower <= found.upper <= 16.0


def test_a_curve_that_is_followed_down_to_some_delta_is_bounded_by_the_whole_one() -> None:
    """Upper values above it, lines below it, and where it is larger the same."""
    law = sdp.DiscreteGaussian(sigma=1.0, levels=4).facts()
    whole = sdp.Shuffled(law, n=500)._rounds()[0][0].witnesses[0]
    epsilon, least = np.linspace(0.0, 1.2, 13), 1e-6
    for curve in whole.directions:
        some = curve.down_to(least)
        closely, lines = curve.both(epsilon, 0.01)
        upper, rough = some.both(epsilon, 0.01)
        told = closely > 2.0 * least
        assert told.any()
        assert not told.all()
        assert (upper >= lines.value).all()
        assert (rough.value <= closely).all()
        assert (upper[~told] <= 1e-3).all()
        np.testing.assert_allclose(upper[told], closely[told], rtol=0.01)
        np.testing.assert_allclose(rough.value[told], lines.value[told], rtol=0.01)
        alone, followed = curve.support(epsilon, 0.01).value, some.support(epsilon, 0.01).value
        np.testing.assert_allclose(followed[told], alone[told], rtol=0.01)
        assert (followed <= closely).all()
        assert (followed == 0.0).any()
