"""The shuffled mechanism by definition: every dataset, exact rationals.

A randomizer is a matrix: row x holds the probabilities of the outputs of a user who holds x.
The shuffler forgets who sent what, so the adversary sees a histogram of n reports, and knows the
data of everyone but one user. Neighbouring datasets differ in that user's value.

`shuffled_pairs` and `cohort_pairs` give all pairs of laws that neighbouring datasets can produce
(both directions, since all ordered pairs of values are taken). `worst` is the mechanism's true
profile, `worst_adaptive` the true profile of several rounds in which the adversary, having seen
the reports so far, chooses everybody's next values (two values for the user in question).

>>> two_users = shuffled_pairs(k_ary(3, Fraction(2)), 2)
>>> worst(two_users, Fraction(5, 3))
Fraction(1, 24)
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cache
from itertools import (
    combinations,
    combinations_with_replacement,
    pairwise,
    permutations,
    product as cartesian,
)
from math import prod
from random import Random

from oracles.hockey import ONE, ZERO, Atoms, Law, atoms, hockey_stick, product

Matrix = tuple[tuple[Fraction, ...], ...]
Pairs = frozenset[Atoms]


def k_ary(k: int, E: Fraction | int) -> Matrix:
    """k-ary randomized response with e^epsilon0 = E: the own value E times as likely as others."""
    p = ONE / (E + k - 1)
    return tuple(tuple(E * p if y == x else p for y in range(k)) for x in range(k))


def stochastic(weights: Sequence[Sequence[int]]) -> Matrix:
    """Rows of whole weights, each divided by its sum."""
    return tuple(tuple(Fraction(weight, sum(row)) for weight in row) for row in weights)


def random_matrices(count: int, seed: int) -> list[Matrix]:
    """Matrices of 2 or 3 values and 2 to 4 outputs, all entries positive multiples of 1/64."""
    rng = Random(seed)
    matrices = []
    for _ in range(count):
        rows, columns = rng.choice([2, 3]), rng.choice([2, 3, 4])
        cuts = [[0, *sorted(rng.sample(range(1, 64), columns - 1)), 64] for _ in range(rows)]
        matrices.append(stochastic([[b - a for a, b in pairwise(cut)] for cut in cuts]))
    return matrices


def shape(matrix: Matrix) -> str:
    """Values x outputs, to name a test."""
    return f"{len(matrix)}x{len(matrix[0])}"


def shuffled_law(matrix: Matrix, dataset: Sequence[int]) -> Law:
    """The law of the histogram of the reports of users who hold `dataset`."""
    outputs = range(len(matrix[0]))
    law: dict[tuple[int, ...], Fraction] = {tuple(0 for _ in outputs): ONE}
    for value in dataset:
        following: dict[tuple[int, ...], Fraction] = defaultdict(lambda: ZERO)
        for counts, mass in law.items():
            for y in outputs:
                if matrix[value][y]:
                    counted = (*counts[:y], counts[y] + 1, *counts[y + 1 :])
                    following[counted] += mass * matrix[value][y]
        law = following
    return law


def cohort_law(matrix: Matrix, dataset: Sequence[int], cohort: int) -> Law:
    """The same for a uniformly random subset of `cohort` users out of `dataset`."""
    subsets = list(combinations(dataset, cohort))
    law: dict[object, Fraction] = defaultdict(lambda: ZERO)
    for subset in subsets:
        for counts, mass in shuffled_law(matrix, subset).items():
            law[counts] += mass / len(subsets)
    return law


def polled_law(matrix: Matrix, dataset: Sequence[int], rate: Fraction) -> Law:
    """The same where everybody sends a report with probability `rate`, by a coin of their own."""
    law: dict[object, Fraction] = defaultdict(lambda: ZERO)
    for coins in cartesian([False, True], repeat=len(dataset)):
        chance = prod((rate if coin else 1 - rate for coin in coins), start=ONE)
        reports = [value for value, coin in zip(dataset, coins, strict=True) if coin]
        for counts, mass in shuffled_law(matrix, reports).items():
            law[counts] += chance * mass
    return law


@cache
def shuffled_pairs(matrix: Matrix, n: int) -> Pairs:
    """All pairs that two datasets of n users with one user's difference can produce."""
    return cohort_pairs(matrix, n, n)


@cache
def cohort_pairs(matrix: Matrix, population: int, cohort: int) -> Pairs:
    """The same when a random cohort of the population is asked."""
    return pairs_of(matrix, population, lambda dataset: cohort_law(matrix, dataset, cohort))


def pairs_of(matrix: Matrix, people: int, law_of: Callable[[tuple[int, ...]], Law]) -> Pairs:
    """All pairs of laws of neighbouring datasets of so many people."""
    values = range(len(matrix))
    pairs: set[Atoms] = set()
    for others in combinations_with_replacement(values, people - 1):
        laws = {x: law_of((x, *others)) for x in values}
        pairs.update(atoms(laws[x], laws[other]) for x, other in permutations(values, 2))
    return frozenset(pairs)


def worst(pairs: Pairs, alpha: Fraction | int) -> Fraction:
    """The true profile of one round: the supremum of the hockey sticks."""
    return max(hockey_stick(pair, alpha) for pair in pairs)


def worst_fixed(rounds: Sequence[Pairs], alpha: Fraction | int) -> Fraction:
    """A lower bound for several rounds: the same kind of pair is played in every one of them.

    Rounds of one mechanism repeat each of its pairs; for a mix, all combinations are taken.
    """
    if len(set(rounds)) == 1:
        return max(hockey_stick(product(*[pair] * len(rounds)), alpha) for pair in rounds[0])
    first, *rest = rounds
    candidates = list(first)
    for pairs in rest:
        candidates = [product(done, pair) for done in candidates for pair in pairs]
    return max(hockey_stick(pair, alpha) for pair in candidates)


def worst_adaptive(rounds: Sequence[Pairs], alpha: Fraction | int) -> Fraction:
    """The true profile of several rounds, each chosen after seeing the reports of the former.

    After a report of likelihood ratio Q/P the rest of the game is played for alpha Q/P.
    """

    @cache
    def value(done: int, threshold: Fraction) -> Fraction:
        if done == len(rounds):
            return max(ONE - threshold, ZERO)
        return max(
            sum((p * value(done + 1, threshold * q / p) for p, q in pair if p), ZERO) for pair in rounds[done]
        )

    return value(0, Fraction(alpha))
