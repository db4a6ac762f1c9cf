"""How far ranges and frequent strings are from the truth, beside pure-LDP, at the same certified privacy.

    python benchmarks/questions.py [--output docs/performance-questions.md]

The same made-up people, (epsilon, delta) and number of bins or characters for everybody, in one run. pure-LDP
(PyPI, 1.2.0) has frequency oracles and the heavy hitters of the prefix extending method (PEM); it has no code
for ranges, so its local hashing is asked at one level of a tree per person, with our least squares. It is
measured twice: with the local epsilon that needs no shuffler, as it is meant, and behind a shuffler with the
epsilon0 that our accountant certifies for local hashing among as many people. Needs pure-LDP, scikit-learn,
statsmodels (which it imports and does not name) and xxhash before 4, best in an environment of their own.
"""

import argparse
import platform
from collections.abc import Callable
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from report import table

import shuffledp as sdp
from shuffledp.randomizers.levels import Tree

EPSILON, DELTA = 1.0, 1e-6
PEOPLE = 20_000
RUNS = 10
BINS, BRANCHING = 64, 4
ALPHABET, LENGTH, TOP = "abcd", 4, 10
PACKAGES = ("numpy", "pure-ldp", "xxhash")

PAGE = """# Errors of ranges and frequent strings, beside pure-LDP

Written by `make bench-questions`, which measures everything again; do not edit.

{people:,} made-up people, (epsilon, delta) = ({epsilon:g}, {delta:g}) for everybody, {runs} runs of each with
fresh randomness. "Local" needs no shuffler: epsilon0 = {epsilon:g}. "Shuffled" is pure-LDP's local hashing
with the epsilon0 that shuffledp certifies for local hashing behind a shuffler (pure-LDP's own sampler is not
certified). pure-LDP has no code for ranges: its oracle is asked at one level per person, and the least
squares are ours. {packages}, Python {python}, {machine}.

## Ranges: {bins} bins, all ranges that begin at the low end

{ranges}

Errors are root mean squared ones, in people, over all ranges and runs.

## Frequent strings: {length} characters of {letters}, the {top} most frequent

{strings}

Found: of the {top} truly most frequent strings, the mean number that is among the {top} largest estimates.
The error is of their counts, in people, root mean squared; a string that is not found counts as 0.
"""

Estimator = Callable[[np.ndarray], np.ndarray]
Finder = Callable[[list[str]], dict[str, float]]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--output", type=Path)
    output = parser.parse_args().output
    hashing = import_module("pure_ldp.frequency_oracles.local_hashing")
    prefixes = import_module("pure_ldp.heavy_hitters.prefix_extending")
    versions = [f"shuffledp {sdp.__version__}", *(f"{name} {version(name)}" for name in PACKAGES)]
    where = {
        "python": platform.python_version(),
        "machine": platform.machine(),
        "packages": ", ".join(versions),
    }
    asked: dict[str, Any] = {"people": PEOPLE, "epsilon": EPSILON, "delta": DELTA, "runs": RUNS, "bins": BINS}
    asked |= {"length": LENGTH, "letters": ALPHABET, "top": TOP}
    page = PAGE.format(**asked, **where, ranges=ranges(hashing), strings=strings(prefixes))
    print(page) if output is None else output.write_text(page, encoding="utf-8")


def certified_hashing(k: int, n: int) -> float:
    """The epsilon0 of local hashing that is certified behind a shuffler."""
    found = sdp.calibrate(sdp.OptimisedLocalHashing, k=k, n=n, epsilon=EPSILON, delta=DELTA)
    return float(found.value)


def ranges(hashing: Any) -> str:
    data = (np.random.default_rng(1).beta(2, 5, PEOPLE) * BINS).astype(np.int64)
    ours = sdp.QuantileProtocol(0, BINS, bins=BINS, epsilon=EPSILON, delta=DELTA, n=PEOPLE)
    levels = len(Tree(BINS, BRANCHING).sizes)
    alone, each = certified_hashing(BINS, PEOPLE), certified_hashing(BINS, PEOPLE // levels)
    ways: list[tuple[str, Estimator]] = [
        (
            f"shuffledp, levels {ours.randomizer.sizes}",
            lambda x: ours.estimate(ours.count(ours.randomize(x + 0.5)), PEOPLE),
        ),
        ("pure-LDP, one level, local", lambda x: flat(hashing, EPSILON, x)),
        (f"pure-LDP, {levels} levels, local", lambda x: hierarchical(hashing, EPSILON, x)),
        (f"pure-LDP, one level, shuffled (epsilon0 = {alone:.2f})", lambda x: flat(hashing, alone, x)),
        (
            f"pure-LDP, {levels} levels, shuffled (epsilon0 = {each:.2f})",
            lambda x: hierarchical(hashing, each, x),
        ),
    ]
    truth = np.cumsum(np.bincount(data, minlength=BINS))[:-1]
    rows = []
    for name, estimate in ways:
        began = process_time()
        errors = [np.cumsum(estimate(data))[:-1] - truth for _ in range(RUNS)]
        rows.append(
            [name, f"{np.sqrt(np.mean(np.square(errors))):,.0f}", f"{(process_time() - began) / RUNS:.1f} s"]
        )
    return table(["way", "error", "CPU time of a run"], rows)


def flat(hashing: Any, epsilon: float, values: np.ndarray, size: int = BINS) -> np.ndarray:
    """pure-LDP's optimised local hashing of ``size`` values."""
    client, server = (
        getattr(hashing, kind)(epsilon, size, use_olh=True, index_mapper=int)
        for kind in ("LHClient", "LHServer")
    )
    for value in values.tolist():
        server.aggregate(client.privatise(value))
    return np.asarray(server.estimate_all(range(size), suppress_warnings=True, normalization=0))


def hierarchical(hashing: Any, epsilon: float, values: np.ndarray) -> np.ndarray:
    """One level per person; what the levels say is brought together by least squares."""
    tree = Tree(BINS, BRANCHING)
    drawn = np.random.default_rng().integers(0, len(tree.sizes), len(values))
    noisy = np.zeros(BINS)
    for level, (stride, size) in enumerate(zip(tree.strides, tree.sizes, strict=True)):
        own = values[drawn == level] // stride
        noisy += tree.below(level, flat(hashing, epsilon, own, size) * len(values) / len(own))
    return tree.solve([1.0] * len(tree.sizes), noisy, total=len(values))


def strings(prefixes: Any) -> str:
    rng = np.random.default_rng(2)
    words = np.array(["".join(rng.choice(list(ALPHABET), LENGTH)) for _ in range(300)])
    share = 1.0 / np.arange(1, len(words) + 1)
    data = rng.choice(words, PEOPLE, p=share / share.sum()).tolist()
    shuffled = certified_hashing(len(ALPHABET) ** LENGTH, PEOPLE // LENGTH)
    ways: list[tuple[str, Finder]] = [
        ("shuffledp", ours_found),
        ("pure-LDP PEM, local", lambda x: found_by_pem(prefixes, EPSILON, x)),
        (
            f"pure-LDP PEM, shuffled (epsilon0 = {shuffled:.2f})",
            lambda x: found_by_pem(prefixes, shuffled, x),
        ),
    ]
    names, counts = np.unique(data, return_counts=True)
    top = np.argsort(-counts)[:TOP]
    rows = []
    for name, find in ways:
        began = process_time()
        found = [find(data) for _ in range(RUNS)]
        hits = [sum(names[i] in one for i in top) for one in found]
        errors = [[one.get(names[i], 0.0) - counts[i] for i in top] for one in found]
        error = f"{np.sqrt(np.mean(np.square(errors))):,.0f}"
        rows.append([name, f"{np.mean(hits):.1f}", error, f"{(process_time() - began) / RUNS:.1f} s"])
    return table(["way", "found", "error", "CPU time of a run"], rows)


def ours_found(data: list[str]) -> dict[str, float]:
    result = sdp.heavy_hitters(data, alphabet=ALPHABET, length=LENGTH, epsilon=EPSILON, delta=DELTA)
    return {each.category: each.count for each in result.top(TOP)}


def found_by_pem(prefixes: Any, epsilon: float, data: list[str]) -> dict[str, float]:
    def index(text: str) -> int:
        return int("".join(str(ALPHABET.index(letter)) for letter in text), len(ALPHABET))

    shape = {"start_length": 0, "max_string_length": LENGTH, "fragment_length": 1, "alphabet": list(ALPHABET)}
    client = prefixes.PEMClient(epsilon, **shape, index_mapper=index)
    server = prefixes.PEMServer(epsilon, **shape, index_mapper=index)
    for word in data:
        server.aggregate(client.privatise(word))
    return dict(zip(*server.find_heavy_hitters(k=TOP), strict=True))


if __name__ == "__main__":
    main()
