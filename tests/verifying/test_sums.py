"""Sums of the verifier against their definitions: progressions of frequencies, those that are left out, two
values, and heights that are crude where that will do."""

import cmath
import json
import math
import random
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import product
from operator import mul

import pytest
from flint import acb, arb, ctx

from shuffledp.verifying import _tilted_sum, _two_values
from shuffledp.verifying._crowd import _chords, _Corner, _Heights, _mean, _scaled, _settled, _tried
from shuffledp.verifying._families import Family, triples
from shuffledp.verifying._guesses import Guess
from shuffledp.verifying._jumps import _Split, _threshold, more_jumps
from shuffledp.verifying._moments import Series
from shuffledp.verifying._positive_part import About
from shuffledp.verifying._tilted_sum import Jumps, TiltedSum, normal_height
from shuffledp.verifying._two_values import TwoValues
from shuffledp.verifying._variable import Variable

pytestmark = pytest.mark.quick

Law = list[tuple[Fraction, Fraction]]


def ball(value: Fraction) -> arb:
    return arb(value.numerator) / value.denominator


def variable(law: Law) -> Variable:
    return Variable([ball(x) for x, _ in law], [ball(p) for _, p in law])


def mean(law: Law, n: int) -> Fraction:
    """(1/n) E[(X_1 + ... + X_n)_+], from all outcomes."""
    whole = [*law, (Fraction(0), 1 - sum(p for _, p in law))]
    return (
        sum(
            (
                max(sum((x for x, _ in drawn), Fraction(0)), Fraction(0)) * math.prod(p for _, p in drawn)
                for drawn in product(whole, repeat=n)
            ),
            Fraction(0),
        )
        / n
    )


def drawn(source: random.Random, values: int, *, rest: bool = True) -> Law:
    weights = [source.randint(1, 9) for _ in range(values + rest)]
    return [
        (Fraction(source.randint(-9, 9), source.randint(1, 4)), Fraction(w, sum(weights)))
        for w in weights[:values]
    ]


def counted(law: Law, n: int, enough: float = 1.0) -> TwoValues | None:
    made = variable(law)
    return TwoValues.of(made.values, made.masses, made.rest, n, arb(enough))


def of_counts(law: Law, n: int) -> Fraction:
    """(1/n) E[(X_1 + ... + X_n)_+] for two values, by how often each occurs."""
    (x, p), (y, q) = law
    return (
        sum(
            (
                max(i * x + j * y, Fraction(0))
                * (math.comb(n, i) * math.comb(n - i, j) * p**i * q**j * (1 - p - q) ** (n - i - j))
                for i in range(n + 1)
                for j in range(n - i + 1)
            ),
            Fraction(0),
        )
        / n
    )


def test_two_values_are_the_mean_itself() -> None:
    """Also where a sum is exactly zero, and where nothing is left for zero."""
    source = random.Random(5)
    laws = [drawn(source, 2, rest=i % 3 > 0) for i in range(48)]
    laws += [[(Fraction(1), Fraction(1, 3)), (Fraction(-2), Fraction(1, 3))]]
    seen = 0
    with ctx.workprec(128):
        for law, n in product(laws, (1, 2, 3, 6)):
            found = counted(law, n)
            assert (found is None) == (not min(x for x, _ in law) < 0 < max(x for x, _ in law))
            if found is not None:
                seen += 1
                assert abs(found.upper() - ball(mean(law, n))) < arb(1e-30), (law, n)
    assert seen > 40


def test_three_values_are_two_where_nothing_is_left_for_zero() -> None:
    """The middle one is taken off all; a law of which something is left is not of this kind."""
    source = random.Random(6)
    seen = 0
    with ctx.workprec(128):
        for _ in range(60):
            law = drawn(source, 3, rest=False)
            low, middle, high = sorted(x for x, _ in law)
            for n in (1, 2, 4):
                found = counted(law, n)
                assert (found is not None) == (low < middle <= 0 < high)
                if found is not None:
                    seen += 1
                    assert abs(found.upper() - ball(mean(law, n))) < arb(1e-25), (law, n)
    assert seen > 20
    left = [(Fraction(3), Fraction(1, 8)), (Fraction(-4), Fraction(1, 8)), (Fraction(-1), Fraction(1, 2))]
    assert counted(left, 5) is None


def test_what_is_left_for_zero_is_spread() -> None:
    """If next to nothing is: above the mean, and close to it."""
    tiny = Fraction(1, 10**10)
    law = [
        (Fraction(3), Fraction(1, 4)),
        (Fraction(-4), Fraction(1, 4)),
        (Fraction(-1), Fraction(1, 2) - tiny),
    ]
    with ctx.workprec(128):
        for n in (2, 5):
            found, truth = counted(law, n), ball(mean(law, n))
            assert found is not None
            assert truth < found.upper().upper() < truth * (1 + arb(1e-7))


@pytest.mark.parametrize("depth", [2, 6, 20, 64])
def test_counts_that_are_left_out_are_covered(depth: int) -> None:
    """However few are looked at: above the mean of all counts, and close where rare ones are left out."""
    source = random.Random(8)
    with ctx.workprec(128):
        for n in (12, 40, 90):
            rarity = source.choice([20, 100, 400])
            law = [
                (Fraction(source.randint(1, 40), 7), Fraction(source.randint(1, 5), rarity)),
                (Fraction(-source.randint(1, 40), 7), Fraction(source.randint(1, 5), rarity)),
            ]
            made, truth = counted(law, n), ball(of_counts(law, n))
            assert made is not None
            found = replace(made, depth=depth).upper()
            assert found > truth * (1 - arb(1e-25))
            assert found < truth + made.high * made.masses[0] * 20 * arb(-depth / 2).exp()
            assert depth > 20 or found > truth * (1 + arb(1e-25)) or n < 40


def test_a_range_of_counts_without_the_mean_is_covered(monkeypatch: pytest.MonkeyPatch) -> None:
    law = [(Fraction(3), Fraction(1, 4)), (Fraction(-1), Fraction(1, 4))]
    truth = ball(of_counts(law, 40))
    for window in (range(6), range(14, 41), range(8, 12)):
        monkeypatch.setattr(_two_values, "_window", lambda n, mass, depth, window=window: window)
        made = counted(law, 40)
        assert made is not None
        assert made.upper() > truth


def test_two_values_of_many_people_are_above_frequencies_from_below() -> None:
    law = [(Fraction(7, 5), Fraction(1, 4)), (Fraction(-8, 5), Fraction(1, 4))]
    with ctx.workprec(128):
        made = counted(law, 200)
        assert made is not None
        close = TiltedSum.of(variable(law), 200, 1e-9).upper()
        assert made.upper() <= close <= made.upper() * (1 + arb(1e-4))


def test_a_progression_of_frequencies_is_the_transform_at_each() -> None:
    law = variable(drawn(random.Random(7), 5))
    with ctx.workprec(128):
        for count in (1, 2, 5, 24, 25, 700):
            found = list(law.along(acb(0.3, 0.2), arb(0.37), count))
            assert len(found) == count
            for j, value in enumerate(found):
                truth = law.transform(acb(0.3, 0.2) + acb(0, j * arb(0.37)))
                assert value.overlaps(truth)
                assert abs(value - truth) < arb(1e-25)


@pytest.mark.parametrize("reach", [0.01, 0.5, 3.0])
@pytest.mark.parametrize("absolute", [False, True])
def test_frequencies_that_are_left_out_are_covered(
    reach: float, absolute: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Against the sum of all of them, however wide the cells are that are tried first."""
    monkeypatch.setattr(_tilted_sum, "_REACH", reach)
    source = random.Random(11)
    for n in (24, 61, 400):
        law = variable(drawn(source, 4))
        made = TiltedSum.of(law, n, 1e-2)
        made = replace(made, depth=made.depth + 12.0, absolute=absolute)  # as deep as this is compared
        total = 0.0
        for k in range(-made.frequencies, made.frequencies + 1):
            s = complex(float(made.theta), k * made.step)
            phi = sum(m * cmath.exp(s * v) for v, m in law._floats) + float(law.rest.mid())
            term = phi**n * cmath.exp((made.blur * s) ** 2 / 2) / s**2
            total += abs(term) if absolute else term.real
        total *= made.step / (2 * math.pi * n)
        found = float(made.upper())
        # A size to an odd power is raised by (size^2 + 1)/2.
        assert total * (1 - 1e-9) <= found
        assert found <= total * (1 + 1e-6) or (absolute and n % 2)


def size(law: Variable, s: complex) -> float:
    return abs(sum(m * cmath.exp(s * v) for v, m in law._floats) + float(law.rest.mid()))


def integral(law: Variable, n: int, tilt: float, rate: float = 1.0, silent: float = 0.0) -> float:
    """Of sizes, or of what replaces them with coins, over a wide range: from below."""
    first, step, total = size(law, complex(tilt)), 0.01 * tilt, 0.0
    for k in range(100_000):
        w = (k + 0.5) * step
        ratio = size(law, complex(tilt, w)) / first
        whole = rate * first * (ratio if rate == 1.0 else (ratio**2 + 1) / 2) + (1 - rate) * silent
        total += 2 * step * whole**n / (tilt**2 + w**2)
        if w > 100 * tilt:
            break
    return total / (2 * math.pi * n)


def laws() -> Iterator[Variable]:
    source = random.Random(13)
    for values in (3, 6):
        yield variable(drawn(source, values))


def test_normal_sizes_are_above_the_integral_with_and_without_coins() -> None:
    for law in laws():
        for n, tilt in ((40, 0.05), (200, 0.02)):
            told = law.tilted(arb(tilt))
            found = normal_height(told.first, told, arb(1), n, arb(tilt))
            assert found > arb(integral(law, n, tilt) * (1 - 1e-3))
            rate, silent = 0.3, math.exp(-0.1 * tilt)
            whole = rate * told.first + (1 - rate) * silent
            found = normal_height(whole, told, rate * told.first / whole, n, arb(tilt))
            assert found > arb(integral(law, n, tilt, rate, silent) * (1 - 1e-3))


def test_sizes_are_below_what_two_moments_under_the_tilt_say() -> None:
    for law in (*laws(), variable(drawn(random.Random(23), 12))):
        for tilt in (0.02, 0.4):
            told = law.tilted(arb(tilt))
            rows = [(v, m * math.exp(tilt * v)) for v, m in (*law._floats, (0.0, float(law.rest.mid())))]
            total = sum(m for _, m in rows)
            second, fourth = (
                sum((u - v) ** power * p * q for (u, p), (v, q) in product(rows, rows)) / total**2 / 2
                for power in (2, 4)
            )
            assert math.isclose(float(told.first), total)
            assert math.isclose(float(told.variance), second)
            assert math.isclose(float(told.fourth), fourth)
            falls = float(told.falls)
            for w in (falls * i / 40 for i in range(80)):
                share = (size(law, complex(tilt, w)) / total) ** 2
                assert float(told.fallen(arb(w))) >= share * (1 - 1e-12)
            bounds = [float(told.fallen(arb(falls * i / 40))) for i in range(41)]
            assert bounds == sorted(bounds, reverse=True)


def noisy_rows(levels: int, reports: int, slope: float) -> list[list[float]]:
    made = [[math.exp(-slope * abs(y - 3 * x)) for y in range(-2, reports)] for x in range(levels)]
    return [[entry / sum(row) for entry in row] for row in made]


@pytest.mark.parametrize("budget", [0.0, 0.2])
@pytest.mark.parametrize("spread", [0.0, 0.1])
def test_moments_of_all_triples_bound_each_under_a_tilt(budget: float, spread: float) -> None:
    """Cut or not, in random cohorts or not: the first from above, and sizes at all frequencies."""
    growth = arb(0.1)
    rows = noisy_rows(4, 14, 0.15)
    spanned = {"rows": rows, "spread": [spread] * len(rows[0]), "missed": [1e-4] * len(rows[0])}
    family, beyond = triples(json.dumps(spanned if spread else rows)).family(growth, budget)
    assert bool(beyond > 0) == (budget > 0.0)
    # In a cohort what rows that span leave at zero is moved by moments alone.
    for one in (family, *([] if spread else [family.shared(arb(0.4), -growth)])):
        assert one.moments is not None
        for place, tilt in product(range(len(one.seconds)), (0.02, 0.3, 1.5)):
            law, told = one.make(place), Series(arb(tilt), one.most).tilted(one.moments(place))
            truth = law.tilted(arb(tilt))
            assert told.first >= truth.first * (1 - arb(1e-14))
            for w in (0.01, 0.1, 0.4, 1.0, 3.0):
                bound = float(told.first) ** 2 * (
                    1 - w**2 * float(told.variance.lower()) + w**4 * float(told.fourth.upper()) / 12
                )
                assert size(law, complex(tilt, w)) ** 2 <= bound * (1 + 1e-12)
            if tilt < 0.1 and not budget:
                assert abs(told.first / truth.first - 1) < arb(1e-6)
                assert abs(told.variance / truth.variance - 1) < arb(1e-3)
                assert abs(told.fourth / truth.fourth - 1) < arb(1e-2)


@pytest.mark.thorough
def test_laws_settled_by_moments_are_below_what_is_reached() -> None:
    """Against the closest bound of each, which those that are left are not below."""
    family, _ = triples(json.dumps(noisy_rows(4, 14, 0.1))).family(arb(0.02), 0.0)
    weights = [0.0, 0.05, 0.1, 0.15]
    corners = [_Corner(arb(w).exp(), arb(0.05 - 0.3 * w), arb(0), arb(0), arb(0)) for w in weights]
    users, theta, places = 300, 0.2, range(len(family.seconds))
    means = []
    for place in places:
        heights = [_Heights(family.make(place), users, theta, 1e-4).close(w) for w in _scaled(corners)]
        means.append(_mean(corners, _scaled(corners), list(map(mul, heights, _scaled(corners)))))
    most = max(map(float, means))
    for share in (0.5, 0.9, 10.0):
        found, left = _settled(family, places, users, theta, corners, arb(share * most))
        assert all(means[place] <= found * (1 + arb(1e-3)) for place in places if place not in left)
        assert found <= share * most
        assert len(left) < len(places)
    assert len(left) == 0
    assert _settled(Family.of(family.widest), places, users, theta, corners, arb(1))[1] is places


def test_bounds_that_are_not_refined_are_above_the_mean() -> None:
    """Crude ones, too, and at cuts and tilts that suit other laws."""
    source = random.Random(29)
    for n in (2, 5):
        for law in (drawn(source, 3) for _ in range(6)):
            if not max(x for x, _ in law) > 0:
                continue
            truth, one = ball(mean(law, n)), variable(law)
            for about in (About.of(one, n), About(1.0, 0.3), About(math.inf, 2.0)):
                assert all(about.upper(one, n, reached) >= truth for reached in (arb(0), arb(1e-9), arb(1)))


def test_heights_from_crude_to_close_are_above_those_of_the_law() -> None:
    """At every weight, also between those that are looked at."""
    weights = [0.8, 0.9, 0.95, 1.0, 1.06, 1.12, 1.25]
    scaled = [arb(w) for w in weights]
    for law in laws():
        heights = _Heights(law, 60, 0.1)
        least = [integral(law, 60, 0.1 * w) * (1 - 5e-3) for w in weights]
        stages = list(_tried(heights, scaled))
        assert len(stages) == 8
        for stage in stages:
            assert all(found > arb(low) for found, low in zip(stage, least, strict=True))
        for w in scaled:
            assert heights.blurred_normal(w) >= heights.close(w) * (1 - arb(1e-9))
        assert stages[-1][3] < stages[1][3] < stages[0][0]


@pytest.mark.thorough
def test_heights_of_laws_of_many_values_are_above_close_ones_at_every_stage() -> None:
    source = random.Random(31)
    law = Variable([arb(source.gauss(-0.05, 1.0)) for _ in range(60)], [arb(1) / 60] * 60)
    scaled = [arb(w) for w in (0.8, 0.9, 0.95, 1.0, 1.06, 1.12, 1.25)]
    heights = _Heights(law, 60, 0.2, 1e-4)
    close = [replace(heights, loss=1e-6).close(w) for w in scaled]
    stages = list(_tried(heights, scaled))
    assert len(stages) == 9
    for stage in stages:
        assert all(found >= least * (1 - arb(1e-4)) for found, least in zip(stage, close, strict=True))
    assert all(found <= least * (1 + arb(5e-3)) for found, least in zip(stages[-2], close, strict=True))


def test_chords_are_straight_in_the_logarithm() -> None:
    found = _chords([arb(0), arb(1), arb(3)], {0: arb(1), 2: arb(8)})
    assert all(abs(a - b) < arb(1e-12) for a, b in zip(found, [1, 2, 8], strict=True))


def test_a_tilt_that_leaves_one_value_is_no_error() -> None:
    """The variance is next to nothing there, and its ball holds zero."""
    with ctx.workprec(64):
        law = Variable([arb(27.5, 1e-4), arb(-1.0)], [arb(1e-3, 1e-9), arb(0.4)])
        found = TiltedSum.at(20.0, law, 9, 0.05).upper()
    assert found > 27.5 * arb(1e-3)


def test_laws_of_fewer_values_have_the_same_mass_and_mean_and_no_smaller_moment() -> None:
    """Also where values are alike, as those of a law that is cut are."""
    source = random.Random(17)
    values = [arb(min(source.uniform(-3.0, 4.0), 2.0)) for _ in range(60)]
    law = Variable(values, [arb(1) / 64] * 60)
    coarse = law.coarser(0.5, 1e-2)
    assert len(coarse.values) < 40
    assert abs(sum(coarse.masses, arb(0)) - arb(60) / 64) < arb(1e-12)
    assert abs(coarse.total(lambda v: v) - law.total(lambda v: v)) < arb(1e-12)
    for tilt in (arb(0.3), arb(1), arb(-1)):
        assert coarse.moment(tilt) > law.moment(tilt) * (1 - arb(1e-12))


def test_a_guessed_tilt_is_near_the_lowest_of_what_it_is_to_make_low() -> None:
    """Of few values and of many, of which those alike are put together."""
    source = random.Random(19)
    for values, n, shift in product((2, 5, 300), (1, 30, 10**6), (0.0, 2.0)):
        rows = [(source.gauss(-0.01, 1.0) ** 3, source.random() / values) for _ in range(values)]
        guess = Guess.of([*rows, (0.0, 0.1), (1.5, 1e-3)])
        assert len(guess.values) <= 48
        assert math.isclose(sum(guess.masses), sum(m for _, m in rows) + 0.101)

        def height(log_theta: float, guess: Guess = guess, n: int = n, shift: float = shift) -> float:
            theta = math.exp(log_theta)
            return theta * shift + n * guess.cumulants(theta)[0] - 2.0 * log_theta

        found = math.log(guess.tilt(n, shift))
        assert all(height(found) <= height(found + move) + 1e-4 for move in (-0.5, -0.1, 0.1, 0.5))
    assert Guess.of([(0.0, 0.5), (0.0, 0.5)]).tilt(10) > 0.0
    rare = Guess.of([*((0.1 * i, 1e-2) for i in range(-50, 50)), (1e12, 1e-18)])
    assert len(rare.values) > 15  # what is rare does not decide how much alike others are


def test_values_that_are_not_sure_to_be_between_stay() -> None:
    """A spread of what lies outside would be smaller in the convex order: its ball may lie on either side."""
    values = [arb(0), arb(0, 1e-3), arb(1), arb(2, 1e-3), arb(2, 1e-3), arb(2)]
    law = Variable(values, [arb(1) / 8] * 6)
    coarse = law.coarser(0.1, 1e3)
    assert len(coarse.values) == 5
    assert abs(sum(coarse.masses, arb(0)) - arb(3) / 4) < arb(1e-9)


def atoms(rows: list[tuple[float, float]], n: int) -> Iterator[tuple[arb, arb, tuple[int, ...]]]:
    """Of sums of n: value, probability and how often each value occurs; what is left is at zero."""
    masses = [arb(m) for _, m in rows]
    masses.append(1 - sum(masses, arb(0)))
    for counts in product(range(n + 1), repeat=len(rows)):
        if (left := n - sum(counts)) >= 0:
            each = (*counts, left)
            ways = math.factorial(n) // math.prod(map(math.factorial, each))
            mass = math.prod((m**c for m, c in zip(masses, each, strict=True)), start=arb(ways))
            yield sum((arb(v) * c for (v, _), c in zip(rows, counts, strict=True)), arb(0)), mass, each


def part_of(rows: list[tuple[float, float]], rest: arb) -> Variable:
    return Variable([arb(v) for v, _ in rows], [arb(m) for _, m in rows], rest)


FEW = [(-0.7, 0.4), (0.3, 0.3), (2.5, 0.02), (4.0, 0.01)]  # two small values, two jumps


@pytest.mark.parametrize(("fewest", "most"), [(0, 1), (0, 3), (1, 1), (1, 2), (2, 2)])
def test_sums_with_some_jumps_are_those_of_all_outcomes(fewest: int, most: int) -> None:
    n = 6
    with ctx.workprec(128):
        told = [(value, mass) for value, mass, each in atoms(FEW, n) if fewest <= each[2] + each[3] <= most]
        truth = sum((value.max(arb(0)) * mass for value, mass in told), arb(0)) / n
        small = part_of(FEW[:2], 1 - sum((arb(m) for _, m in FEW), arb(0)))
        jumps = Jumps(part_of(FEW[2:], arb(0)), fewest, most)
        for theta in (0.4, 1.5):
            found = TiltedSum(small, n, theta, 0.1, 0.02, 25.0, jumps=jumps).upper()
            assert truth <= found <= truth * (1 + arb(1e-2)) + arb(1e-6)


@pytest.mark.parametrize("most", [1, 2, 3])
def test_more_jumps_than_are_told_add_no_more_than_is_charged(most: int) -> None:
    n = 6
    with ctx.workprec(128):
        told = [(value, mass) for value, mass, each in atoms(FEW, n) if each[2] + each[3] > most]
        truth = sum((value.max(arb(0)) * mass for value, mass in told), arb(0)) / n
        assert truth <= more_jumps(part_of(FEW[:2], arb(0)), part_of(FEW[2:], arb(0)), n, most) <= 20 * truth


@pytest.mark.parametrize("seed", range(12))
def test_sums_and_what_is_added_are_above_the_truth(seed: int) -> None:
    """Random laws with rare large values, also among values that are not positive; all splits."""
    source = random.Random(seed)
    n, shift = source.randint(2, 7), source.choice([0.0, 3.0])
    rows = [(source.uniform(-2.0, 1.0) - shift, source.uniform(0.05, 0.2)) for _ in range(3)]
    rows += [(10.0 ** source.uniform(0.0, 4.0), 10.0 ** -source.uniform(2.0, 9.0)) for _ in range(2)]
    with ctx.workprec(128):
        law = part_of(rows, 1 - sum((arb(m) for _, m in rows), arb(0)))
        truth = sum((value.max(arb(0)) * mass for value, mass, _ in atoms(rows, n)), arb(0)) / n
        for most, loss in product(range(min(n - 1, 3) + 1), (1e-1, 1e-3)):
            split = _Split.of(law.ordered(), float(law.rest), n, most, loss * float(truth))
            if split is not None:
                made, added = split.made(law, math.sqrt(2.0 * loss) / split.theta)
                assert truth <= made.upper() + added


def test_thresholds_leave_more_jumps_what_they_may_add_and_are_the_least() -> None:
    values, masses = [float(v) for v in range(-3, 20)], [10.0 ** (-v / 2) / 100.0 for v in range(-3, 20)]
    rows = list(zip(values, masses, strict=True))
    for most, spare in product((1, 2, 3), (1e-4, 1e-7)):
        small = _threshold(values, masses, 50, most, spare)
        enough, too_much = (
            more_jumps(part_of(rows[:at], arb(0)), part_of(rows[at:], arb(0)), 50, most)
            for at in (small, small - 1)
        )
        assert enough <= spare * (1 + 1e-9)
        assert not too_much <= spare
