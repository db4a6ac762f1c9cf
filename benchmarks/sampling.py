"""How fast exact, secure sampling is: beside the random words it needs, and a per-value loop.

    python benchmarks/sampling.py

k-ary randomized response of 10^8 values, a block at a time: memory is that of a block, whatever the
number of values. The words are those of the secure source, drawn in the pieces that sampling draws.
The loop is plain Python with the same weights and the operating system's random numbers; it is run
on fewer values and scaled.
"""

import resource
from collections.abc import Iterator
from secrets import randbits

import numpy as np
from report import ROW_HEADER, Check, Row, table
from timing import Task, in_turn, median_cpu

import shuffledp as sdp
from shuffledp._randomness.words import source
from shuffledp.randomizers._categories import CHUNK_WORDS

VALUES = 10**8
BLOCK = 1 << 20
LOOPED = 10**5
CATEGORIES = 16
EPSILON0 = 4.0


def main() -> None:
    """Measure and print."""
    figures = list(sampling())
    print(table(ROW_HEADER, [figure.cells() for figure in figures if isinstance(figure, Row)]))
    for figure in figures:
        if isinstance(figure, Check):
            print("  ".join(figure.cells()))


def sampling() -> Iterator[Row | Check]:
    """The goals: at most 4 times the words alone, at least 100 times faster than the loop."""
    before = peak_memory()
    ours, words = in_turn(randomized(VALUES), words_alone(VALUES))
    grown = peak_memory() - before
    loop = median_cpu(looped(LOOPED), repeats=3) * VALUES / LOOPED
    what = f"k-ary randomized response, k = {CATEGORIES}, {VALUES:.0e} values".replace("+0", "")
    yield Row(what, ours, words, "its random words alone", at_most=4.0)
    yield Row(what, ours, loop, "a loop over values (scaled)", at_least=100.0)
    yield Check(
        f"memory for {VALUES:.0e} values, beyond what was in use".replace("+0", ""),
        f"{grown / 2**20:.0f} MiB",
        grown <= 32 * 2**20,
    )


def randomized(n: int) -> Task:
    """Reports of n values, counted block by block."""

    def task(repetition: int) -> int:
        answer = sdp.KaryRandomizedResponse(k=CATEGORIES, epsilon0=EPSILON0 * (1 + 1e-6 * repetition))
        values = np.arange(BLOCK, dtype=np.uint8) % np.uint8(CATEGORIES)
        return sum(answer.randomize(values[: min(BLOCK, n - start)]).size for start in range(0, n, BLOCK))

    return task


def words_alone(n: int) -> Task:
    """One secure word per value, drawn and dropped."""

    def task(repetition: int) -> int:
        words = source()
        return sum(words.draw(min(CHUNK_WORDS, n - start)).size for start in range(0, n, CHUNK_WORDS))

    return task


def looped(n: int) -> Task:
    """The same randomizer, one value at a time."""

    def task(repetition: int) -> list[int]:
        answer = sdp.KaryRandomizedResponse(k=CATEGORIES, epsilon0=EPSILON0 * (1 + 1e-6 * repetition))
        return [one_report(i % CATEGORIES, CATEGORIES, *answer.weights) for i in range(n)]

    return task


def one_report(value: int, k: int, truth: int, other: int) -> int:
    """k-ary randomized response of one value."""
    word = randbits(64)
    if word < truth:
        return value
    return (value + 1 + (word - truth) // other) % k


def peak_memory() -> int:
    """Bytes, the most this process ever had resident."""
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


if __name__ == "__main__":
    main()
