"""Which analysis holds against whom: the table of the documentation, the table of the code, and the truth.

T3 of docs/proofs.

An adversary is what they see. Everybody tosses a coin: with the mass of the blanket (the largest part common
to all inputs) they draw from it, else from what is left of their own law. The view of every adversary is
enumerated from that definition, for every dataset of a few users, in exact rationals.
"""

import math
import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cache
from itertools import combinations, combinations_with_replacement, permutations, product
from pathlib import Path

import pytest

import shuffledp as sdp
from oracles.brute import Matrix, Pairs, k_ary, random_matrices, shape, stochastic, worst
from oracles.hockey import ONE, ZERO, Atoms, Law, atoms, product as together
from shuffledp.accounting._analyses import ADVERSARIES, ANALYSES, BEST, BY_NAME
from shuffledp.cli.questions import ANALYSES as ASKED_FOR

pytestmark = pytest.mark.quick

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "certificates.md"
See = Callable[[int, int, int, int], tuple[int, ...]]
SIGHTS: dict[str, See] = {
    # What is seen of user i (the differing one is user 0), who holds x, tossed c and sent y,
    # besides the shuffled reports.
    ADVERSARIES[0]: lambda i, x, c, y: (),
    ADVERSARIES[1]: lambda i, x, c, y: (c,) if i else (),
    ADVERSARIES[2]: lambda i, x, c, y: (c,),
    "the others' reports": lambda i, x, c, y: (y,) if i else (),
    "which of the others lied": lambda i, x, c, y: (int(x != y),) if i else (),
}
ALPHAS = [Fraction(11, 10), Fraction(3, 2), Fraction(2), Fraction(5, 2)]


def coins(matrix: Matrix) -> list[list[tuple[int, int, Fraction]]]:
    """For each input all (coin, report, probability): 1 is "drawn from the blanket"."""
    blanket = [min(column) for column in zip(*matrix, strict=True)]
    return [
        [(c, y, p) for y, b in enumerate(blanket) for c, p in ((1, b), (0, row[y] - b)) if p]
        for row in matrix
    ]


def view(matrix: Matrix, dataset: Sequence[int], see: See) -> Law:
    """The law of what an adversary sees: the histogram, and of every user what ``see`` shows."""
    law: dict[object, Fraction] = defaultdict(lambda: ZERO)
    tossed = coins(matrix)
    for outcome in product(*(tossed[x] for x in dataset)):
        reports = tuple(sorted(y for _, y, _ in outcome))
        seen = tuple(see(i, x, c, y) for i, (x, (c, y, _)) in enumerate(zip(dataset, outcome, strict=True)))
        law[reports, seen] += math.prod((p for *_, p in outcome), start=ONE)
    return law


@cache
def views(matrix: Matrix, n: int, sight: str) -> Pairs:
    """All pairs of views that neighbouring datasets can produce."""
    values = range(len(matrix))
    found: set[Atoms] = set()
    for others in combinations_with_replacement(values, n - 1):
        laws = {x: view(matrix, (x, *others), SIGHTS[sight]) for x in values}
        found.update(atoms(laws[x], laws[other]) for x, other in permutations(values, 2))
    return frozenset(found)


def covers(shuffled: sdp.Shuffled, matrix: Matrix, sight: str) -> bool:
    """Whether the analysis is at least the truth against that adversary, wherever we look."""
    pairs = views(matrix, shuffled.n, sight)
    return all(float(worst(pairs, a)) <= shuffled.upper_delta(epsilon=math.log(a)) for a in ALPHAS)


RESPONSES = [(2, 3, 4), (3, 3, 4), (4, 5, 3)]  # k, e^epsilon0, n


OF_RESPONSES = [name for name in BY_NAME if name != "crowd"]  # says nothing of a few people: test_crowd


@pytest.mark.thorough
@pytest.mark.parametrize("name", [*BEST, *OF_RESPONSES])
def test_an_analysis_covers_the_adversaries_that_the_table_says_and_no_other(name: str) -> None:
    """Where it is said to hold it holds in every case; where not, some case exceeds it."""
    claimed = BEST.get(name) or BY_NAME[name].adversary
    cases = [case for case in RESPONSES if name not in ("exact", "best") or case[0] == 2]
    for place, sight in enumerate(ADVERSARIES):
        held = []
        for k, E, n in cases:
            one = sdp.Shuffled(sdp.KaryRandomizedResponse(k=k, epsilon0=math.log(E)), n=n, analysis=name)
            held.append(covers(one, k_ary(k, Fraction(E)), sight))
        if place <= ADVERSARIES.index(claimed):
            assert all(held), sight
        else:
            assert not all(held), sight


@pytest.mark.parametrize("sight", ["the others' reports", "which of the others lied"])
def test_nobody_hides_in_reports_that_are_known(sight: str) -> None:
    """Who sees the others' randomness itself, not only whose answer was random, sees your report alone. For
    two values the lies are enough. No analysis covers that, but for n = 1."""
    k, E, n = RESPONSES[0]
    matrix = k_ary(k, Fraction(E))
    for name in OF_RESPONSES:
        one = sdp.Shuffled(sdp.KaryRandomizedResponse(k=k, epsilon0=math.log(E)), n=n, analysis=name)
        assert not covers(one, matrix, sight)
    alone = views(matrix, 1, ADVERSARIES[0])
    assert all(worst(views(matrix, n, sight), a) == worst(alone, a) for a in ALPHAS)


@pytest.mark.parametrize("matrix", random_matrices(6, seed=12), ids=shape)
def test_the_blanket_and_the_clones_cover_the_others_coins_of_any_randomizer(matrix: Matrix) -> None:
    rows = [[float(p) for p in row] for row in matrix]
    for name in ("blanket", "clones", "clones-2021", "best-leaked"):
        assert covers(sdp.Shuffled(sdp.FiniteRandomizer(rows), n=3, analysis=name), matrix, ADVERSARIES[1])


def test_numbers_of_the_page_about_certificates() -> None:
    """e^epsilon0 = 3, n = 4, e^epsilon = 3/2, two answers and three."""
    text = PAGE.read_text(encoding="utf-8")
    for k in (2, 3):
        matrix = k_ary(k, Fraction(3))
        truths = [float(worst(views(matrix, 4, sight), Fraction(3, 2))) for sight in ADVERSARIES]
        assert ", ".join(f"{truth:.4f}" for truth in truths) in text
        assert f"{float(worst(views(matrix, 1, ADVERSARIES[0]), Fraction(3, 2))):.4f}" in text
        one = sdp.Shuffled(sdp.KaryRandomizedResponse(k=k, epsilon0=math.log(3)), n=4, analysis="blanket")
        assert one.upper_delta(epsilon=math.log(1.5), tolerance=1e-6) == pytest.approx(truths[1], rel=1e-5)


def test_what_coins_of_others_cost_is_what_the_how_to_says() -> None:
    text = (PAGE.parents[1] / "how-to" / "adversary.md").read_text(encoding="utf-8")
    low, high = map(int, re.findall(r"often (\d+) to (\d+)%", text)[0])

    def cost(randomizer: sdp.Randomizer, n: int) -> float:
        ends = (
            sdp.Shuffled(randomizer, n=n, analysis=name).upper_epsilon(delta=1e-6)
            for name in ("best-leaked", "best")
        )
        return 100.0 * (next(ends) / next(ends) - 1.0)

    for randomizer in (
        sdp.BinaryRandomizedResponse(epsilon0=2.0),
        sdp.LocalRandomizer(epsilon0=2.0),
        sdp.SymmetricUnaryEncoding(k=16, epsilon0=2.0),
        sdp.DiscreteLaplace(epsilon0=2.0, levels=4),
    ):
        paid = cost(randomizer, 10**6)
        assert low <= paid <= high
        assert "up to 30% below the\n  blanket" in PAGE.read_text(encoding="utf-8")
        assert 1.0 - 1.0 / (1.0 + 0.01 * paid) <= 0.3
    assert cost(sdp.KaryRandomizedResponse(k=3, epsilon0=2.0), 10**4) == 0.0


def test_the_documented_table_is_the_code_s() -> None:
    rows = [
        line.split("|")[1:-1]
        for line in PAGE.read_text(encoding="utf-8").splitlines()
        if "`" in line and "|" in line
    ]
    named = [set(re.findall(r'`"([\w-]+)"`', row[-1])) for row in rows]
    known = [names for names in named if names]
    expected = [
        {name for name, adversary in BEST.items() if ADVERSARIES.index(adversary) >= place}
        | {each.name for each in ANALYSES if ADVERSARIES.index(each.adversary) >= place}
        for place in range(len(ADVERSARIES))
    ]
    assert known == expected


def test_every_analysis_is_named_where_one_is_asked_for() -> None:
    """In the class's own words, in the help of the command line and in the how-to."""
    how_to = (PAGE.parents[1] / "how-to" / "adversary.md").read_text(encoding="utf-8")
    for name in (*BEST, *BY_NAME):
        assert f'"{name}"' in (sdp.Shuffled.__doc__ or "")
        assert name in ASKED_FOR
        assert name in how_to


def cohort_view(matrix: Matrix, dataset: Sequence[int], cohort: int, named: bool) -> Law:
    """A random cohort: the reports of others that were not drawn at random are seen apart from the rest; with
    ``named`` also who took part and tossed what."""
    law: dict[object, Fraction] = defaultdict(lambda: ZERO)
    tossed, subsets = coins(matrix), list(combinations(range(len(dataset)), cohort))
    for subset in subsets:
        for outcome in product(*(tossed[dataset[i]] for i in subset)):
            apart: tuple[list[int], list[int]] = ([], [])
            for i, (c, y, _) in zip(subset, outcome, strict=True):
                apart[0 if i and not c else 1].append(y)
            who = tuple((i, c) for i, (c, *_) in zip(subset, outcome, strict=True) if i) if named else ()
            seen = (tuple(sorted(apart[0])), tuple(sorted(apart[1])), who)
            law[seen] += math.prod((p for *_, p in outcome), start=ONE / len(subsets))
    return law


@pytest.mark.parametrize(("k", "E", "population", "cohort"), [(2, 3, 4, 2), (3, 5, 4, 3), (2, 20, 5, 3)])
def test_of_random_cohorts_coins_may_leak_but_not_names(k: int, E: int, population: int, cohort: int) -> None:
    """Who knows which others took part knows whether you did."""
    matrix = k_ary(k, Fraction(E))
    answer = sdp.KaryRandomizedResponse(k=k, epsilon0=math.log(E))
    one = sdp.Shuffled(answer, n=cohort, analysis="best-leaked").sampled_from(population)
    for named in (False, True):
        pairs: set[Atoms] = set()
        for others in combinations_with_replacement(range(k), population - 1):
            laws = [cohort_view(matrix, (x, *others), cohort, named) for x in range(k)]
            pairs.update(atoms(p, q) for p, q in permutations(laws, 2))
        held = [float(worst(frozenset(pairs), a)) <= one.upper_delta(epsilon=math.log(a)) for a in ALPHAS]
        assert all(held) != named


def told_cohort_view(matrix: Matrix, dataset: Sequence[int], cohort: int) -> Law:
    """A random cohort of which all members but one are known, and all their coins: the one is the differing
    person (0) where they take part, else any member, and only that one's coin is seen."""
    law: dict[object, Fraction] = defaultdict(lambda: ZERO)
    tossed, subsets = coins(matrix), list(combinations(range(len(dataset)), cohort))
    for subset in subsets:
        unknown = [0] if 0 in subset else list(subset)
        for one, outcome in product(unknown, product(*(tossed[dataset[i]] for i in subset))):
            seen = {i: c for i, (c, *_) in zip(subset, outcome, strict=True)}
            coin = seen.pop(one)
            view_of_it = tuple(sorted(y for _, y, _ in outcome)), tuple(sorted(seen.items())), coin
            law[view_of_it] += math.prod((p for *_, p in outcome), start=ONE / (len(subsets) * len(unknown)))
    return law


@pytest.mark.parametrize(("k", "E", "population", "cohort"), [(2, 3, 4, 2), (3, 5, 4, 3), (2, 20, 5, 3)])
def test_the_strong_adversary_of_a_cohort_sees_what_is_certified(
    k: int, E: int, population: int, cohort: int
) -> None:
    """Both ends are the largest over all populations, in one round; two rounds on one pair lie between."""
    matrix = k_ary(k, Fraction(E))
    answer = sdp.KaryRandomizedResponse(k=k, epsilon0=math.log(E))
    one = sdp.Shuffled(answer, n=cohort, analysis="strong").sampled_from(population)
    pairs: set[Atoms] = set()
    for others in combinations_with_replacement(range(k), population - 1):
        laws = [told_cohort_view(matrix, (x, *others), cohort) for x in range(k)]
        pairs.update(atoms(p, q) for p, q in permutations(laws, 2))
    twice = frozenset(together(pair, pair) for pair in pairs)
    for alpha in ALPHAS:
        truth = float(worst(frozenset(pairs), alpha))
        found = one.delta(epsilon=math.log(alpha), tolerance=1e-6)
        assert found.lower <= truth <= found.upper == pytest.approx(found.lower, rel=1e-5)
        both = (2 * one).delta(epsilon=math.log(alpha))
        assert both.lower <= float(worst(twice, alpha)) <= both.upper
        assert both.lower >= 0.9 * both.upper


# People are put in random order first; then each sends a report by a randomizer that is chosen in the light
# of the reports before it, and the adversary sees the reports in that order.
LOCAL = Fraction(3)
CHOICES: list[Matrix] = [
    k_ary(2, LOCAL),
    k_ary(2, LOCAL)[::-1],
    stochastic([[3, 3], [5, 1]]),
    stochastic([[1, 1], [1, 1]]),
]
Strategy = dict[tuple[int, ...], Matrix]


def strategies(n: int, choices: Sequence[Matrix]) -> list[Strategy]:
    seen = [past for length in range(n) for past in product((0, 1), repeat=length)]
    return [dict(zip(seen, picks, strict=True)) for picks in product(choices, repeat=len(seen))]


def sequence(strategy: Strategy, orders: Sequence[Sequence[int]]) -> Law:
    """The law of the reports in order; each order of the people is equally likely."""
    law: dict[object, Fraction] = defaultdict(lambda: ZERO)
    for people in orders:
        for reports in product((0, 1), repeat=len(people)):
            chances = [strategy[reports[:i]][x][reports[i]] for i, x in enumerate(people)]
            law[reports] += math.prod(chances, start=ONE / len(orders))
    return law


def largest(n: int, choices: Sequence[Matrix], shuffled: bool, alpha: Fraction) -> Fraction:
    """The largest divergence over strategies and datasets, people in random order or in a known one."""
    found = ZERO
    for strategy in strategies(n, choices):
        for others in product((0, 1), repeat=n - 1):
            ways = [list(permutations((x, *others))) if shuffled else [(x, *others)] for x in (0, 1)]
            zero, one = (sequence(strategy, orders) for orders in ways)
            found = max(found, worst(frozenset((atoms(zero, one), atoms(one, zero))), alpha))
    return found


@pytest.mark.thorough
@pytest.mark.parametrize(("n", "choices"), [(2, 4), (3, 2)])
def test_choice_inside_a_round_is_covered_if_people_come_in_random_order_and_not_else(
    n: int, choices: int
) -> None:
    clones = sdp.Shuffled(sdp.LocalRandomizer(math.log(LOCAL)), n=n, analysis="clones-2021")
    for alpha in ALPHAS[:2]:
        bound = clones.upper_delta(epsilon=math.log(alpha))
        assert float(largest(n, CHOICES[:choices], True, alpha)) <= bound
        known = largest(n, CHOICES[:1], False, alpha)
        assert known == worst(views(k_ary(2, LOCAL), 1, ADVERSARIES[0]), alpha)  # nothing is amplified
        assert float(known) > bound
