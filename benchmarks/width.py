"""How wide the answers are: upper over lower end, for every randomizer, in one round, in many and in cohorts.

    python benchmarks/width.py [--output docs/performance-width.md] [--jobs 8]
        [--only NAME] [--setting 0] [--seconds 10]

A cell that takes more CPU seconds than allowed says so instead of a number. Nothing but NumPy, click and the
package itself is needed; every cell is a question of its own, and ``--jobs`` processes share them.
"""

import argparse
import math
import os
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from functools import partial
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from report import setting, table

import shuffledp as sdp

CROWDS = (200, 10**3, 10**4, 10**6)
LOCAL = (0.5, 1.0, 2.0, 4.0)
GOAL = 1.05
POPULATION = 10  # times the cohort
ROUNDS = 100

PAGE = """\
# Width

Written by `{command}`, which measures everything again; do not edit.

Upper over lower end of epsilon: the truth is between them, so 1.01 says that an answer is at most 1% too
large. Each cell has epsilon0 = 0.5 / 1 / 2 / 4 (Gaussian noise: sigma = 2 / epsilon0 of the range, 8
levels). The goal is 1.05. "-": no epsilon below infinity, or a lower end of zero; "slow": more than
{seconds:g} s of CPU. {setting}

{tables}
## Where it is wider, and which end is believed

- **Everybody takes part, few people.** The [crowd theorem](proofs/crowd.md) sets a pool of people aside,
  and its slack is about $\\sqrt{{v/n}}$, $v = (e^{{\\varepsilon_0/2}} - 1)^2$ at most: 1 to 2% once n is
  some hundred times v.
  Below that little is gained over the blanket (or the clones, for any randomizer): at n = 200 from
  epsilon0 = 1 on, at 1,000 from 2 on, at 10,000 for 4, for unary encodings, subset selection, l1 and
  l-infinity vectors, matrices, noise on a grid, PrivUnit and any randomizer; of 3-ary response it is up to
  1.6% above at n = 200. The *lower* end is believed. Of all crowds of 3 x 3
  matrices, mixed ones too, the worst is 0.3% above it for n = 20 at most (a test enumerates them) and 0.02%
  for 50, and of those tried for 200 none is worse than that of one value; and where the theorem serves, the
  upper end comes down to it. Mixed crowds *can* be worse, so that no theorem says this.
- **Random cohorts** need no pool (section 5 there): what is left, 0.5 to 2%, is the absolute values of the
  transform and the cells of its integral, so the *upper* end is loose again.
- **100 rounds.** A round's share of delta is larger, its epsilon smaller: alpha is near one, where absolute
  values cost most (1.3% of delta), and polygons and grids add 1 to 2%. The *lower* end is believed, as in one
  round. Binary response, 1.06 at n = 200: the grid of losses is coarser than the steps of so few reports.
- **Any randomizer with a known total variation and a large epsilon0**, in small crowds: the upper end does
  not use that the others' reports have that total variation, too; the *lower* end is believed.
- **Gaussian noise of sigma = 1 and 0.5** (the cells of epsilon0 = 2 and 4): rare reports tell so much that no
  exponential moment serves in small crowds; there the blanket rules, whose *upper* end is believed to be
  loose. "slow": more reports than are looked at in time.
- **Noise on the line.** All inputs are mixtures of few rows ([proof](proofs/crowd.md), section 9), and what
  is lost by that is below 1% of epsilon: for many people answers are as close as on a grid, for few as wide.
  Of sigma = 0.5 (the cells of epsilon0 = 4) the blanket is all there is, as above. The *lower* end is
  believed.
- **RampUnit** with epsilon0 = 4, in small crowds. What is left for many people, 1 to 4%, is of both ends: a
  crowd opposite to the middle of a pair 125 to 145 degrees apart has 0.98, 0.97, 0.96 and 0.92 times the
  upper end's second moment for epsilon0 = 0.5, 1, 2 and 4 (epsilon goes with the root). For few people the
  blanket gives away who answered at random, as everywhere: the *lower* end is believed.
- **PrivUnit**: all crowds are known (three caps of the sphere), and what is left for many people, 1.5 to 2%,
  is shared: the polytope of three caps is cut by two planes only (*upper*), and of the pair's angles five are
  tried (*lower*). In large cohorts of a small epsilon masses that are known up to 1e-9 cost the *lower* end
  4% more.
- **(epsilon0, delta0) randomizers**: as any randomizer; pools hide two inputs from each other, not one from
  the middle of all, so that their weights have up to four times the variance, and where they may leak more
  than delta the strong clones answer, up to 8% above. The *lower* end is believed.
- **Hadamard response with a large epsilon0 in small crowds.** The *lower* end is believed: for n = 63 no
  mixture of the others' rows x, x', x xor x' and one apart was worse than the third alone, which it is; the
  blanket takes the whole of what rows share for the rest that hides.
"""


_DELTA0 = 1e-15


def on_the_line(noise: str, scale: float) -> sdp.Facts:
    """Of an input in [0, 1] with noise of a continuous law; ``scale`` in lengths of the interval."""
    if noise == "Laplace":
        return sdp.facts_of_noise(
            lambda t: -t / scale - math.log(2.0 * scale),
            lambda t: 0.5 * np.exp(-t / scale),
            epsilon0=1.0 / scale,
        )
    tail = np.vectorize(lambda t: 0.5 * math.erfc(t / (math.sqrt(2.0) * scale)), otypes=[float])
    return sdp.facts_of_noise(
        lambda t: -0.5 * (t / scale) ** 2 - math.log(math.sqrt(2.0 * math.pi) * scale), tail
    )


def _matrix(rows: int, columns: int, epsilon0: float) -> sdp.FiniteRandomizer:
    drawn = np.exp(np.random.default_rng(3).uniform(0.0, 0.7 * epsilon0, (rows, columns)))
    return sdp.FiniteRandomizer(drawn / drawn.sum(axis=1, keepdims=True))


RANDOMIZERS: dict[str, Callable[[float], Any]] = {
    "binary response": lambda e: sdp.BinaryRandomizedResponse(epsilon0=e),
    "3-ary response": lambda e: sdp.KaryRandomizedResponse(k=3, epsilon0=e),
    "16-ary response": lambda e: sdp.KaryRandomizedResponse(k=16, epsilon0=e),
    "any randomizer": lambda e: sdp.LocalRandomizer(epsilon0=e),
    "any, half the total variation": lambda e: sdp.LocalRandomizer(e, 0.5 * math.tanh(0.5 * e)),
    "any, delta0 = 1e-15": lambda e: sdp.LocalRandomizer(epsilon0=e, delta0=_DELTA0),
    "symmetric unary, k = 16": lambda e: sdp.SymmetricUnaryEncoding(k=16, epsilon0=e),
    "optimised unary, k = 16": lambda e: sdp.OptimisedUnaryEncoding(k=16, epsilon0=e),
    "subset selection, k = 16": lambda e: sdp.SubsetSelection(k=16, epsilon0=e),
    "Hadamard, k = 16": lambda e: sdp.HadamardResponse(k=16, epsilon0=e),
    "local hashing, k = 16": lambda e: sdp.OptimisedLocalHashing(k=16, epsilon0=e),
    "one of 2 levels, k = 16": lambda e: sdp.LeveledResponse(k=16, epsilon0=e, branching=4),
    "Laplace, 1 level": lambda e: sdp.DiscreteLaplace(epsilon0=e, levels=1),
    "Laplace, 16 levels": lambda e: sdp.DiscreteLaplace(epsilon0=e, levels=16),
    "Gaussian, 8 levels": lambda e: sdp.DiscreteGaussian(sigma=2.0 / e, levels=8),
    "Laplace on the line": lambda e: on_the_line("Laplace", 1.0 / e),
    "Gaussian on the line": lambda e: on_the_line("Gaussian", 2.0 / e),
    "PrivUnit, d = 100": lambda e: sdp.PrivUnit(dimension=100, epsilon0=e),
    "RampUnit, d = 100": lambda e: sdp.RampUnit(dimension=100, epsilon0=e),
    "l1, d = 100": lambda e: sdp.L1Randomizer(dimension=100, epsilon0=e),
    "l-infinity, d = 100": lambda e: sdp.LInfinityRandomizer(dimension=100, epsilon0=e),
    "matrix 2 x 4": lambda e: _matrix(2, 4, e),
    "matrix 5 x 5": lambda e: _matrix(5, 5, e),
}

SETTINGS: dict[str, tuple[float, Callable[[Any, int], sdp.Mechanism]]] = {
    "One round, delta = 1e-6": (1e-6, lambda one, n: sdp.Shuffled(one, n=n)),
    "One round, delta = 1e-9": (1e-9, lambda one, n: sdp.Shuffled(one, n=n)),
    f"{ROUNDS} rounds, delta = 1e-6": (1e-6, lambda one, n: ROUNDS * sdp.Shuffled(one, n=n)),
    f"A random cohort of n out of {POPULATION} n, delta = 1e-6": (
        1e-6,
        lambda one, n: sdp.Shuffled(one, n=n).sampled_from(POPULATION * n),
    ),
}


class _TooSlowError(Exception):
    pass


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """At most so many CPU seconds."""

    def stop(*_: object) -> None:
        raise _TooSlowError

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        signal.signal(signal.SIGPROF, before)


def width(cell: tuple[str, str, int, float], seconds: float) -> str:
    """Of a randomizer in a setting with so many people and an epsilon0."""
    name, title, n, local = cell
    delta, make = SETTINGS[title]
    try:
        with limited(seconds):
            answer = make(RANDOMIZERS[name](local), n).epsilon(delta=delta)
    except (_TooSlowError, sdp.NoCertificateError) as reason:
        return "slow" if isinstance(reason, _TooSlowError) else "none"
    if not 0.0 < answer.lower <= answer.upper < math.inf:
        return "-"
    found = answer.upper / answer.lower
    return f"**{found:.3f}**" if found > GOAL else f"{found:.3f}"


def tables(titles: list[str], names: list[str], seconds: float, jobs: int) -> Iterator[str]:
    """One for each setting; its rows are printed as they come."""
    cells = [(name, title, n, local) for title in titles for name in names for n in CROWDS for local in LOCAL]
    header = ["randomizer", *(f"n = {n:,}" for n in CROWDS)]
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as workers:
        found = workers.map(partial(width, seconds=seconds), cells)
        for title in titles:
            rows = []
            for name in names:
                row = [" / ".join(islice(found, len(LOCAL))) for _ in CROWDS]
                print(name, *row, sep=" | ", flush=True)
                rows.append([name, *row])
            yield f"## {title}\n\n{table(header, rows)}\n\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path)
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes, of one thread each")
    parser.add_argument("--only", choices=RANDOMIZERS)
    parser.add_argument("--setting", type=int, choices=range(len(SETTINGS)), help="one of the tables, from 0")
    parser.add_argument("--seconds", type=float, default=10.0, help="of CPU, for a cell")
    given = parser.parse_args()
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    names = [given.only] if given.only else list(RANDOMIZERS)
    titles = list(SETTINGS)[slice(None) if given.setting is None else slice(given.setting, given.setting + 1)]
    found = "".join(tables(titles, names, given.seconds, given.jobs))
    if given.output is not None:
        page = PAGE.format(command="make bench-width", seconds=given.seconds, setting=setting(), tables=found)
        given.output.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
