"""Randomizers of few reports that a span describes, and what shuffling them shows: by definition, in floats.

A span says of its types that masses are mixtures of rows up to what is missed, that inside a type no input's
report is much more likely than another's, and how much has no type. `described` draws a matrix of which that
is true, often just so: what is missed and spread is all used up, by each input in a way of its own.

Laws of n shuffled reports are arrays: symmetric ones, an axis for each report; or, of many, counts, an axis
for each kind of report but the last.

>>> law = shuffled(np.array([[0.75, 0.25], [0.25, 0.75]]), (0, 1))
>>> law.tolist()
[[0.1875, 0.3125], [0.3125, 0.1875]]
>>> counted(np.array([[0.75, 0.25], [0.25, 0.75]]), (0, 1)).tolist()
[0.1875, 0.625, 0.1875]
"""

from collections.abc import Callable, Iterator, Sequence
from functools import cache, reduce
from itertools import combinations, combinations_with_replacement, permutations
from math import comb

import numpy as np
import numpy.typing as npt

from shuffledp._spans.span import Span

Floats = npt.NDArray[np.float64]


def some_span(rng: np.random.Generator, rows: int, types: int, missed: float, lost: float = 0.0) -> Span:
    """Of rows that are not far from each other; some types have a spread."""
    drawn = np.exp(rng.uniform(0.0, rng.choice([0.3, 1.0, 2.0]), (rows, types)))
    spread = rng.choice([0.0, 0.05, 0.3, 0.6], types)
    return Span(drawn / drawn.sum(axis=1, keepdims=True), spread, rng.uniform(0.1, 1.0, types) * missed, lost)


def described(
    rng: np.random.Generator, span: Span, inputs: int, parts: int = 2
) -> tuple[Floats, Floats, list[int]]:
    """Laws of the reports of some inputs, their weights on the rows, and the types of reports. Those with a
    spread are as many reports as ``parts``; if something is lost, the last report is what has no type."""
    rows, spread, missed = span.rows, span.spread, span.missed
    count = len(rows)
    corners = np.eye(count)[rng.integers(count, size=inputs)]
    weights = np.where(rng.random((inputs, 1)) < 0.6, corners, rng.dirichlet(np.ones(count), inputs))
    mixed = weights @ rows
    masses = mixed + np.array([_balanced(rng, part * missed) for part in mixed])
    columns = [
        masses[:, k, None] * (_inside(rng, float(by), inputs, parts) if by else np.ones((inputs, 1)))
        for k, by in enumerate(spread)
    ]
    found = np.concatenate(columns, axis=1)
    types = [k for k, column in enumerate(columns) for _ in range(column.shape[1])]
    if not span.lost:
        return found, weights, types
    gone = span.lost * rng.choice([0.0, 1.0], (inputs, 1))
    return np.concatenate([found * (1.0 - gone), gone], axis=1), weights, types


def _balanced(rng: np.random.Generator, most: Floats) -> Floats:
    """Numbers up to these in size that add up to zero."""
    found = most * (
        rng.choice([-1.0, 1.0], most.size) if rng.random() < 0.7 else rng.uniform(-1, 1, most.size)
    )
    up, down = found[found > 0.0].sum(), -found[found < 0.0].sum()
    return np.asarray(found * np.where(found > 0.0, down, up) / max(up, down))


def _inside(rng: np.random.Generator, spread: float, inputs: int, parts: int) -> Floats:
    """Laws of which none has more than 1 + spread times what another has, anywhere."""
    if parts != 2:
        factors = np.exp(rng.choice([-0.25, 0.25], (inputs, parts)) * np.log1p(spread))
        few = factors * rng.dirichlet(np.ones(parts))
        return np.asarray(few / few.sum(axis=1, keepdims=True))
    low = rng.choice([rng.uniform(0.01, 0.99), 1.0 / (2.0 + spread)])
    high = min(low * (1.0 + spread), 1.0 - (1.0 - low) / (1.0 + spread))
    first = np.where(
        rng.random(inputs) < 0.7, rng.choice([low, high], inputs), rng.uniform(low, high, inputs)
    )
    return np.stack([first, 1.0 - first], axis=1)


def shuffled(matrix: Floats, inputs: Sequence[int]) -> Floats:
    """Of the reports of these inputs, in a random order."""
    orders = list(permutations(inputs))
    empty = np.ones(())
    laws = (reduce(np.multiply.outer, (matrix[x] for x in order), empty) for order in orders)
    return np.asarray(sum(laws) / len(orders))


def hockey_stick(p: Sequence[Floats], q: Sequence[Floats], alpha: float) -> float:
    """Of laws in parts: one for each number of reports."""
    return float(sum(np.maximum(a - alpha * b, 0.0).sum() for a, b in zip(p, q, strict=True)))


def cohort(matrix: Floats, size: int) -> Callable[[tuple[int, ...]], list[Floats]]:
    """The law of what a random cohort of so many sends, for a dataset."""
    law_of = cache(lambda inputs: shuffled(matrix, inputs))

    def law(dataset: tuple[int, ...]) -> list[Floats]:
        chosen = list(combinations(sorted(dataset), size))
        return [np.asarray(sum(law_of(some) for some in chosen) / len(chosen))]

    return law


def polled(matrix: Floats, people: int, rate: float) -> Callable[[tuple[int, ...]], list[Floats]]:
    """The same where everybody flips a coin."""
    cohorts = [cohort(matrix, size) for size in range(people + 1)]
    chance = [comb(people, size) * rate**size * (1 - rate) ** (people - size) for size in range(people + 1)]
    return lambda dataset: [
        mass * part for mass, law in zip(chance, cohorts, strict=True) for part in law(dataset)
    ]


def neighbours(
    law: Callable[[tuple[int, ...]], list[Floats]], inputs: int, people: int
) -> Iterator[tuple[list[Floats], list[Floats]]]:
    """All pairs of laws of two datasets of so many people that differ in one input, both ways."""
    law = cache(law)
    for others in combinations_with_replacement(range(inputs), people - 1):
        for x, y in permutations(range(inputs), 2):
            yield law(tuple(sorted((x, *others)))), law(tuple(sorted((y, *others))))


def counted(matrix: Floats, inputs: Sequence[int]) -> Floats:
    """The law of how often each report but the last occurs."""
    kinds = matrix.shape[1] - 1
    law = np.zeros((len(inputs) + 1,) * kinds)
    law[(0,) * kinds] = 1.0
    for x in inputs:
        following = matrix[x, -1] * law
        for k in range(kinds):
            here = (slice(None),) * k
            following[(*here, slice(1, None))] += matrix[x, k] * law[(*here, slice(None, -1))]
        law = following
    return law
