"""(epsilon0, delta0)-LDP randomizers: every dataset of a few users, and each step of the argument (T9)."""

import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations, combinations_with_replacement, pairwise, permutations
from random import Random

import numpy as np
import pytest

import shuffledp as sdp
from oracles.brute import Matrix, Pairs, cohort_pairs, pairs_of, polled_law, shuffled_pairs, stochastic, worst
from oracles.hockey import Atoms, hockey_stick
from shuffledp.accounting._curves.approximate import plain_approximate, strong_approximate
from shuffledp.accounting._curves.clones import clones_2021, strong_clones
from shuffledp.accounting._curves.profile import PrivacyProfile
from shuffledp.accounting._curves.subsampled import in_cohort, polled

ALPHAS = (Fraction(1), Fraction(11, 10), Fraction(3, 2), Fraction(3), Fraction(12))


def approximate_local_delta(epsilon0: float, delta0: float, n: int, epsilon: float) -> float:
    """delta at epsilon >= 0: the smaller of both bounds of the proof."""
    bounds = (
        plain_approximate(clones_2021(epsilon0, n), delta0, n),
        strong_approximate(strong_clones(epsilon0, n), delta0, n),
    )
    return min(float(bound.upper(np.array([epsilon]), 1e-4)[0]) for bound in bounds)


def leak(matrix: Matrix, E: Fraction) -> Fraction:
    """The smallest delta0 for which the randomizer is (log E, delta0)-LDP."""
    return max(
        sum((max(p - E * q, Fraction(0)) for p, q in zip(x, y, strict=True)), Fraction(0))
        for x, y in permutations(matrix, 2)
    )


def leaky_matrices(count: int, seed: int) -> list[Matrix]:
    """Mostly balanced rows with a few rare outputs that other rows lack."""
    rng = Random(seed)
    found = []
    for _ in range(count):
        rows, columns = rng.choice([2, 3]), rng.choice([3, 4])
        weights = [[rng.choice([400, 600, 900, 1500]) for _ in range(columns)] for _ in range(rows)]
        for row in weights:
            row[rng.randrange(columns)] = rng.choice([0, 1, 2, 120])
        found.append(stochastic(weights))
    return found


@pytest.mark.parametrize("E", [Fraction(3, 2), Fraction(3), Fraction(9)])
@pytest.mark.parametrize("n", [1, 2, 4])
def test_every_dataset_of_a_few_users_is_covered(E: Fraction, n: int) -> None:
    tight = 0
    for matrix in leaky_matrices(16, seed=n):
        delta0 = leak(matrix, E)
        pairs = shuffled_pairs(matrix, n)
        for alpha in ALPHAS:
            truth = float(worst(pairs, alpha))
            found = approximate_local_delta(
                math.log(E), min(1.0, float(delta0) * (1 + 1e-15)), n, math.log(alpha)
            )
            assert found >= truth * (1 - 1e-12)
            tight += 0.2 * found < truth < found < 1.0
    assert tight > 0  # some are not far from being attained


def repaired(p: list[Fraction], q: list[Fraction], E: Fraction) -> tuple[list, list]:
    """Step 1 of the argument, for laws with equal excess both ways: the ratio capped, P + Q kept."""
    new_p, new_q = [], []
    for x, y in zip(p, q, strict=True):
        if x > E * y:
            x, y = E * (x + y) / (E + 1), (x + y) / (E + 1)
        elif y > E * x:
            x, y = (x + y) / (E + 1), E * (x + y) / (E + 1)
        new_p.append(x)
        new_q.append(y)
    return new_p, new_q


def test_a_leaking_pair_is_near_a_pure_one_with_the_same_sum() -> None:
    """delta0/(E + 1) in total variation; checked on the pair that all others are post-processings of."""
    for E in (Fraction(3, 2), Fraction(7)):
        for delta0 in (Fraction(1, 3), Fraction(1, 10**6)):
            p = [delta0, (1 - delta0) * E / (E + 1), (1 - delta0) / (E + 1), Fraction(0)]
            q = p[::-1]
            new_p, new_q = repaired(p, q, E)
            assert sum(new_p) == sum(new_q) == 1
            assert all(x <= E * y and y <= E * x for x, y in zip(new_p, new_q, strict=True))
            assert [x + y for x, y in zip(new_p, new_q, strict=True)] == [
                x + y for x, y in zip(p, q, strict=True)
            ]
            moved = sum(abs(x - y) for x, y in zip(p, new_p, strict=True)) / 2
            assert moved == delta0 / (E + 1)


def test_other_users_lack_at_most_the_mass_that_is_charged() -> None:
    for matrix in leaky_matrices(60, seed=9):
        for E in (Fraction(3, 2), Fraction(4)):
            delta0 = leak(matrix, E)
            for p, q in permutations(matrix, 2):
                for other in matrix:
                    clone = [(x + y) / (2 * E) for x, y in zip(p, q, strict=True)]
                    lacking = sum(max(w - r, Fraction(0)) for w, r in zip(clone, other, strict=True))
                    assert lacking <= delta0 / E


def leaking_much(count: int, seed: int) -> list[Matrix]:
    """Reports that one is three times as likely to send as another, and two rare ones."""
    rng = Random(seed)
    rows = [
        [[*rng.choices([60, 180], k=columns), *rng.choices([0, 0, 1, 2, 4], k=2)] for _ in range(size)]
        for size, columns in zip(rng.choices([2, 3], k=count), rng.choices([2, 3], k=count), strict=True)
    ]
    return [stochastic(weights) for weights in rows]


def left_in_place(E: float, delta0: float, alpha: float, share: float = 1.0, coins: bool = False) -> float:
    """What T9' adds."""
    own = delta0 / (E + 1)
    lacking = 2 * (delta0 + own)
    grown = 1 / (1 - lacking)
    whole = own * (1 + alpha) + grown**2 * lacking / E * (2 * alpha * E - alpha + E - 2)
    absent = 0.0 if coins else (1 - share) * (alpha - 1) * grown * lacking
    return share * whole + absent


def pairs_by_share(matrix: Matrix) -> Iterator[tuple[Pairs, Fraction, bool, int]]:
    """All pairs that some people, cohorts and coins can show; the share who report, by coins, and n."""
    for n in (2, 3, 5, 7) if len(matrix) == 2 else (2, 4):
        yield shuffled_pairs(matrix, n), Fraction(1), False, n
    for population, cohort in ((4, 2), (4, 3)):
        yield cohort_pairs(matrix, population, cohort), Fraction(cohort, population), False, cohort
    coin = Fraction(1, 4)
    yield pairs_of(matrix, 3, lambda values: polled_law(matrix, values, coin)), coin, True, 3


@pytest.mark.parametrize("seed", range(3))
def test_others_leaks_are_paid_once_however_many_they_are(seed: int) -> None:
    """T9': all datasets, cohorts and coins of a few people who leak much; what is charged is the formula."""
    told = 0
    for matrix in leaking_much(8, seed=seed):
        for E in (Fraction(3, 2), Fraction(12, 5)):
            delta0 = leak(matrix, E)
            if not 0 < delta0 < Fraction(1, 5):
                continue
            for pairs, share, coins, n in pairs_by_share(matrix):
                clones: PrivacyProfile = strong_clones(math.log(E), n)
                if share < 1:
                    clones = (polled if coins else in_cohort)(clones, float(share))
                for alpha in (Fraction(1), Fraction(11, 10), Fraction(3, 2)):
                    curve = float(clones.upper(np.array([math.log(alpha)]), 1e-5)[0])
                    added = left_in_place(float(E), float(delta0), float(alpha), float(share), coins)
                    truth = float(worst(pairs, alpha))
                    assert truth <= (curve + added) * (1 + 1e-12)
                    told += curve < truth and added < 0.5
    assert told > 20  # the clones alone would not cover them


@pytest.mark.parametrize(("share", "coins"), [(1.0, False), (0.1, False), (0.1, True)])
def test_what_a_delta0_adds_is_the_theorem_s(share: float, coins: bool) -> None:
    epsilon0, delta0, n = 1.0, 1e-9, 10**4
    profile: PrivacyProfile = strong_approximate(strong_clones(epsilon0, n), delta0, n)
    clones: PrivacyProfile = strong_clones(epsilon0, n)
    if share < 1.0:
        change = polled if coins else in_cohort
        profile, clones = change(profile, share), change(clones, share)
    for epsilon in (0.001, 0.003):
        at = np.array([epsilon])
        added = left_in_place(math.exp(epsilon0), delta0, math.exp(epsilon), share, coins)
        found = float(profile.upper(at, 1e-6)[0])
        assert found == pytest.approx(float(clones.upper(at, 1e-6)[0]) + added, rel=1e-9)


def test_with_a_delta0_more_people_hide_no_less() -> None:
    """delta0 = 10^-9 among ten million people, where n delta0 is ten thousand times delta."""
    answers = [
        sdp.Shuffled(sdp.LocalRandomizer(2.0, delta0=1e-9), n=n).epsilon(delta=1e-6)
        for n in (10**3, 10**4, 10**5, 10**7)
    ]
    assert all(later.upper < 0.4 * first.upper for first, later in pairwise(answers))
    assert all(answer.upper < 1.08 * answer.lower for answer in answers)


def test_without_leak_it_is_the_smaller_clones_bound() -> None:
    for epsilon0, n in ((1.0, 100), (4.0, 10**5)):
        for epsilon in (0.05, 0.5):
            at = np.array([epsilon])
            expected = min(
                float(clones(epsilon0, n).upper(at, 1e-4)[0]) for clones in (strong_clones, clones_2021)
            )
            found = approximate_local_delta(epsilon0, 0.0, n, epsilon)
            assert found == pytest.approx(expected, rel=1e-9)


def test_the_blow_up_of_the_clones_of_2021_is_that_of_the_theorem() -> None:
    """delta0 (1 + a) ((n - 1)/E + 1/(E + 1)), at the smallest epsilon where that is worth it."""
    epsilon0, delta0, n, epsilon = 1.0, 1e-6, 1000, 0.05
    at = np.array([epsilon])
    E, a = math.exp(epsilon0), math.exp(epsilon)
    clones = float(clones_2021(epsilon0, n).upper(at, 1e-4)[0])
    expected = clones + (1 + a) * delta0 * ((n - 1) / E + 1 / (E + 1))
    found = plain_approximate(clones_2021(epsilon0, n), delta0, n).upper(at, 1e-4)[0]
    assert found == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("top", [2.0, 900.0])
def test_delta_never_increases_with_epsilon(top: float) -> None:
    values = [approximate_local_delta(2.0, 1e-9, 1000, e) for e in np.linspace(0.0, top, 20)]
    assert all(after <= before * (1 + 1e-4) for before, after in pairwise(values))


def test_the_accountant_s_epsilon_has_the_delta_asked_for() -> None:
    for epsilon0, delta0, n, delta in ((1.0, 1e-10, 1000, 1e-5), (3.0, 1e-14, 10**5, 1e-8)):
        randomizer = sdp.LocalRandomizer(epsilon0, delta0=delta0)
        epsilon = sdp.Shuffled(randomizer, n=n, analysis="clones").upper_epsilon(delta=delta)
        assert sdp.Shuffled(randomizer, n=n).upper_epsilon(delta=delta) <= epsilon * (1 + 1e-4)
        assert 0.0 < epsilon < epsilon0
        assert approximate_local_delta(epsilon0, delta0, n, epsilon) <= delta * (1 + 1e-4)
        assert approximate_local_delta(epsilon0, delta0, n, epsilon * 0.997) > delta


@pytest.mark.parametrize("rounds", [1, 3])
def test_a_delta_that_covers_every_leak_has_the_local_epsilons(rounds: int) -> None:
    """Whatever the crowd adds: of all datasets none exceeds it, and epsilon is finite."""
    E = Fraction(3)
    for matrix in leaky_matrices(6, seed=7):
        delta0 = leak(matrix, E)
        assert worst(shuffled_pairs(matrix, 3), E) <= delta0
    leaky = rounds * sdp.Shuffled(sdp.LocalRandomizer(1.0, delta0=2.0**-20), n=1000)
    covered = rounds * 2.0**-20
    assert rounds <= leaky.upper_epsilon(delta=covered) <= rounds * (1.0 + 1e-12)
    with pytest.warns(sdp.CoarserBoundWarning, match="what the local epsilons add up to"):
        assert leaky.epsilon(delta=covered).lower <= rounds
    assert leaky.upper_epsilon(delta=covered * (1.0 - 1e-15)) == math.inf


def test_no_local_epsilon_is_added_against_who_knows_the_coin() -> None:
    leaky = sdp.Shuffled(sdp.LocalRandomizer(1.0, delta0=1e-9), n=1000)
    told = sdp.Shuffled(sdp.KaryRandomizedResponse(k=3, epsilon0=9.0), n=2, analysis="strong")
    assert told.upper_epsilon(delta=1e-6) == math.inf  # hardly anybody answers at random
    assert (leaky + told).upper_epsilon(delta=1e-6) == math.inf


def test_no_epsilon_helps_against_too_large_a_leak() -> None:
    leaky = sdp.Shuffled(sdp.LocalRandomizer(1.0, delta0=1e-6), n=1000)
    assert leaky.epsilon(delta=1e-7).lower == math.inf  # who sends what others cannot is seen


def test_total_leak_is_no_privacy() -> None:
    pair: Atoms = ((Fraction(1), Fraction(0)), (Fraction(0), Fraction(1)))
    assert hockey_stick(pair, 5) == 1
    assert approximate_local_delta(1.0, 1.0, 3, 2.0) == 1.0


def rarely_leaking(count: int, seed: int) -> list[Matrix]:
    """Three inputs, nearly alike but for a rare report that some never send."""
    rng = Random(seed)
    rows = [
        [[*rng.choices([800, 1000, 1200], k=3), rng.choice([0, 1, 3])] for _ in range(3)]
        for _ in range(count)
    ]
    return [stochastic(weights) for weights in rows]


def moved(
    p: list[Fraction], q: list[Fraction], z: list[Fraction], E: Fraction, eta: Fraction
) -> list[list[Fraction]]:
    """Section 8 of the crowd theorem's proof: ratios to z, held in the hexagon, and mixed with a constant."""
    first = [[min(max(value, 1 / E), E) for value in row] for row in (p, q)]
    second = [[min(u, E * v) for u, v in zip(*rows, strict=True)] for rows in (first, first[::-1])]
    means = [sum((u * w for u, w in zip(row, z, strict=True)), Fraction(0)) for row in second]
    constant = [1 + (1 - mean) * (1 - eta) / eta for mean in means]
    return [[(1 - eta) * u + eta * c for u in row] for row, c in zip(second, constant, strict=True)]


def test_three_inputs_with_a_delta0_are_near_a_point_of_the_hexagon() -> None:
    """T16, Theorem 5, in rationals; E is a square."""
    E, seen, none = Fraction(4), 0, Fraction(0)
    for matrix in [*rarely_leaking(40, seed=5), *leaky_matrices(80, seed=5)]:
        delta0 = leak(matrix, E)
        eta = 2 * delta0 / (1 - Fraction(1, 2))
        if len(matrix) < 3 or not 0 < eta <= 1:
            continue
        seen += 1
        hidden = [column for column in zip(*matrix, strict=True) if column[2]]
        alone = 1 - sum((column[0] for column in hidden), none)
        z = [column[2] for column in hidden]
        p, q = ([column[i] / column[2] for column in hidden] for i in (0, 1))
        near = moved(p, q, z, E, eta)
        for u, v in zip(*near, strict=True):
            assert all(1 / E <= value <= E for value in (u, v, u / v))
        for row in near:
            assert sum((u * w for u, w in zip(row, z, strict=True)), none) == 1
        kappa = 2 * delta0 + eta * (2 + delta0)
        lost = sum((max(u - v, none) * w for u, v, w in zip(p, near[0], z, strict=True)), alone)
        gained = sum((max(v - u, none) * w for u, v, w in zip(q, near[1], z, strict=True)), none)
        assert lost <= kappa
        assert gained <= kappa
    assert seen > 10


@pytest.mark.parametrize("poisson", [False, True])
def test_no_population_of_four_is_worse_than_crowds_with_a_delta0_say(poisson: bool) -> None:
    """Cohorts have no pool, so that few people are enough: two of four, or half of them by coins."""
    E, told = Fraction(2), 0
    for matrix in rarely_leaking(8, seed=9):
        delta0 = min(1.0, float(leak(matrix, E)) * (1 + 1e-15))
        rows = np.array([[float(value) for value in row] for row in matrix])
        base = sdp.Shuffled(sdp.LocalRandomizer(math.log(2.0), delta0=delta0), n=2, analysis="crowd")
        cohort = base.sampled_from(4, poisson=poisson)
        for alpha in (1.05, 1.4):
            bound = cohort.delta(epsilon=math.log(alpha)).upper
            told += bound < 1.0
            for others in combinations_with_replacement(range(len(rows)), 3):
                views = [cohort_view(rows[[x, *others]], poisson) for x in range(len(rows))]
                for one, other in permutations(views, 2):
                    exact = sum(np.maximum(one[k] - alpha * other[k], 0.0).sum() for k in one)
                    assert exact <= bound * (1 + 1e-12)
    assert told > 6


def cohort_view(people: np.ndarray, poisson: bool) -> dict[int, np.ndarray]:
    """Laws of the shuffled reports by their number: sums over all who may take part, in all orders."""
    found: dict[int, np.ndarray] = {}
    for count in range(5) if poisson else (2,):
        total = np.zeros((people.shape[1],) * count)
        for some in combinations(range(4), count):
            for order in permutations(some):
                part = np.ones(())
                for person in order:
                    part = np.multiply.outer(part, people[person])
                total = total + part / math.factorial(count)
        found[count] = total / (16.0 if poisson else 6.0)
    return found


def test_crowds_bring_the_ends_of_a_randomizer_with_a_delta0_together() -> None:
    found = sdp.Shuffled(sdp.LocalRandomizer(1.0, delta0=1e-15), n=10**6).epsilon(delta=1e-6)
    assert found.lower <= found.upper <= 1.01 * found.lower
    whole = sdp.Shuffled(sdp.LocalRandomizer(1.0), n=10**6).epsilon(delta=1e-6)
    assert whole.lower <= found.upper


@pytest.mark.parametrize("population", [None, 10**5])
def test_crowds_with_a_delta0_are_verified(population: int | None) -> None:
    pytest.importorskip("flint")
    crowd = sdp.Shuffled(sdp.LocalRandomizer(1.0, delta0=1e-14), n=10**4)
    found = (crowd if population is None else crowd.sampled_from(population)).epsilon(delta=1e-6)
    assert found.certificate().verify()
