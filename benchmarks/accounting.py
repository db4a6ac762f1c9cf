"""How fast the accountant is: each figure beside a baseline measured in the same run.

    python benchmarks/accounting.py [--output docs/performance.md]

The baselines are the plain method (`plain.py`) and dp-accounting's composition of the same
discretised pair (`rival.py`, needs the extra `bench`). Goals are those the project set itself.
"""

import argparse
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import plain
import rival
from report import CHECK_HEADER, COMMAND, PATIENCE, ROW_HEADER, Check, Row, seconds, setting, short, table
from sampling import sampling
from start_up import command_line
from timing import Task, cpu_within, fresh_interpreters, fresh_memory, in_turn, median_cpu, median_cpu_of_many
from width import on_the_line

import shuffledp as sdp
from shuffledp.accounting._rounds.compose import ComposedLoss

EPSILON0 = 4.0
DELTA = 1e-8
TOLERANCE = 1e-3  # the default (of one round 1e-4): how far an upper end may exceed its analysis
TAIL = DELTA * TOLERANCE  # what the plain sums may cut off

Grid = dict[tuple[float, float], float]
Maker = Callable[[int], Any]  # a mechanism for each repetition

PAGE = """\
# Performance

Written by `{command}`, which measures everything again; do not edit.

Every time is a median of CPU seconds of the whole process, warm unless said otherwise, with one
thread for linear algebra (idle ones that spin would count). Every
repetition changes the parameters a little, so that no cache answers. A ratio compares two times of
the same run. The randomizer is any with epsilon0 = 4 unless another is named; answers are certified
to 0.1%, the epsilon of one round to 0.01%, of few to 0.03%. {setting}

## Goals

{rows}

"Plain sum": delta(epsilon) of the clones from its defining sum, vectorised, beside our analysis
"clones". "Over atoms" adds all $O(n)$ outcomes of the pair inside exact tail cuts; "over all counts"
adds all n numbers of clones, with closed binomial tails; "over likely counts" cuts the latter to
$O(\\sqrt n)$ terms, and needs a bisection for epsilon.
"dp-accounting": `self_compose` and `get_epsilon_for_delta` on the very distribution that
shuffledp composes, ready made; "the composition alone" is our part that does the same, "the whole
answer" includes making that distribution, which takes most of the time, and the lower end;
both compose the same grid, and ours is certified against rounding.

## Values

{checks}

## epsilon(delta) of one round

{one_round}

## epsilon(delta = 1e-8) of many rounds

{rounds}
"""


def main() -> None:
    """Measure everything; write the page, or print it."""
    parser = argparse.ArgumentParser(description="Benchmarks of the accountant.")
    parser.add_argument("--output", type=Path, help="write the page here instead of printing it")
    output = parser.parse_args().output
    page = measured_page()
    if output is None:
        print(page)
        return
    output.parent.mkdir(exist_ok=True)
    output.write_text(page, encoding="utf-8")
    print(f"wrote {output}")


def measured_page() -> str:
    """Run every benchmark, a line on the terminal for each figure."""
    single, composed = one_round_grid(), rounds_grid()
    figures: list[Row | Check] = []
    for part in (
        one_round(single),
        against_the_plain_sum(),
        many_rounds(composed),
        against_dp_accounting(),
        cohorts(),
        fifty_mechanisms(),
        kary_randomized_response(),
        calibration(),
        corners(),
        start_up(),
        command_line(),
        sampling(),
        accuracy(),
    ):
        for figure in part:
            print("  ".join(cell for cell in figure.cells() if cell), flush=True)
            figures.append(figure)
    return PAGE.format(
        command=COMMAND,
        setting=setting(),
        rows=table(ROW_HEADER, [f.cells() for f in figures if isinstance(f, Row)]),
        checks=table(CHECK_HEADER, [f.cells() for f in figures if isinstance(f, Check)]),
        one_round=grid_table("n", "delta", single),
        rounds=grid_table("n", "rounds", composed),
    )


# What is asked: each repetition i moves epsilon0 by a millionth.


def local(n: int, epsilon0: float = EPSILON0, analysis: str = "best") -> Maker:
    """One round of any epsilon0-LDP randomizer."""
    return lambda i: sdp.Shuffled(
        sdp.LocalRandomizer(epsilon0=epsilon0 * (1 + 1e-6 * i)), n=n, analysis=analysis
    )


def kary(n: int, k: int = 16) -> Maker:
    """One round of k-ary randomized response."""
    return lambda i: sdp.Shuffled(answer(k, i), n=n)


def answer(k: int, i: int = 0) -> sdp.KaryRandomizedResponse:
    """The randomizer of `kary`."""
    return sdp.KaryRandomizedResponse(k=k, epsilon0=EPSILON0 * (1 + 1e-6 * i))


def times(T: int, one: Maker) -> Maker:
    """T rounds."""
    return lambda i: T * one(i)


def sampled(one: Maker, population: int) -> Maker:
    """A round with a cohort from the population."""
    return lambda i: one(i).sampled_from(population)


def epsilon_of(mechanism: Maker, delta: float = DELTA) -> Task:
    """The question epsilon(delta)."""
    return lambda i: mechanism(i).epsilon(delta=delta)


def upper_of(mechanism: Maker, delta: float = DELTA) -> Task:
    """The upper end of epsilon(delta) with its certificate, without the lower bound on the truth."""
    return lambda i: mechanism(i).upper_epsilon(delta=delta)


def upper_delta_of(mechanism: Maker, epsilon: float) -> Task:
    """The upper end of delta(epsilon), certified to the tolerance, without the datasets below."""
    return lambda i: mechanism(i).upper_delta(epsilon=epsilon)


def delta_of(mechanism: Maker, epsilon: float) -> Task:
    """The question delta(epsilon)."""
    return lambda i: mechanism(i).delta(epsilon=epsilon)


def composition_of(pairs: list[ComposedLoss]) -> Task:
    """epsilon(DELTA) from the discretised rounds on, another set of rounds for each repetition."""
    return lambda i: pairs[i].upper_epsilon(DELTA, 0.1 * TOLERANCE)


# What is measured.


def one_round_grid() -> Grid:
    """Seconds of epsilon(delta) by (n, delta)."""
    return {
        (n, delta): median_cpu(epsilon_of(local(n), delta), repeats=15)
        for n in (10**power for power in range(3, 13))
        for delta in (1e-6, 1e-12, 1e-20, 1e-30)
    }


def one_round(grid: Grid) -> Iterator[Row]:
    """Fast, and flat in n."""
    of = "of n = 1e3..1e12 and delta = 1e-6..1e-30"
    yield Row(f"one round, median {of}", median(grid.values()))
    yield Row(f"one round, slowest {of}", max(grid.values()), within=5e-3)
    upper = [
        median_cpu(upper_of(local(n), delta), repeats=15)
        for n in (10**3, 10**5, 10**7, 10**9, 10**12)
        for delta in (1e-6, 1e-30)
    ]
    yield Row(f"one round, the upper end alone, slowest {of}", max(upper), within=5e-3)
    per_n = [median(grid[x, y] for x, y in grid if x == n) for n in {n for n, _ in grid}]
    yield Row("one round, slowest n", max(per_n), min(per_n), "fastest n", at_most=10)


def against_the_plain_sum() -> Iterator[Row]:
    """One delta beside one delta; then epsilon beside the best that a plain sum can do."""
    for n, epsilon0, goal in ((10**6, 1.0, 200), (10**6, EPSILON0, 200), (10**7, EPSILON0, 1000)):
        one = local(n, epsilon0, "clones")  # what the plain sums add
        epsilon = float(one(0).epsilon(delta=DELTA))
        upper = median_cpu_of_many(upper_delta_of(one, epsilon))
        whole = median_cpu_of_many(delta_of(one, epsilon))
        at = f"n = {short(n)}, epsilon0 = {epsilon0:g}"
        for name, baseline in plain_sums(epsilon, n, epsilon0).items():
            theirs = median_cpu(baseline, repeats=1)
            yield Row(f"one certified delta(epsilon), {at}", upper, theirs, name, at_least=goal)
            yield Row(f"the same with its lower end on the truth, {at}", whole, theirs, name)
    for n in (10**6, 10**7):
        ours, theirs = in_turn(epsilon_of(local(n, analysis="clones")), plain_epsilon(n))
        name = "plain sum over likely counts, bisection"
        yield Row(f"epsilon(delta), n = {short(n)}", ours, theirs, name)


def plain_sums(epsilon: float, n: int, epsilon0: float) -> dict[str, Task]:
    """One delta(epsilon) by O(n) terms."""
    return {
        "plain sum over atoms": lambda i: plain.clones_delta_by_atoms(epsilon, n, epsilon0, TAIL),
        "plain sum over all counts": lambda i: plain.clones_delta_by_counts(epsilon, n, epsilon0),
    }


def plain_epsilon(n: int) -> Task:
    """epsilon(DELTA) by bisection of a sum of O(sqrt n) terms."""

    def delta_at(epsilon: float) -> float:
        return plain.clones_delta_by_counts(epsilon, n, EPSILON0, TAIL)

    return lambda i: plain.epsilon_by_bisection(delta_at, DELTA, EPSILON0, TOLERANCE)


def rounds_grid() -> Grid:
    """Seconds of epsilon(DELTA) by (n, rounds)."""
    return {
        (n, T): median_cpu(epsilon_of(times(T, local(n))), repeats=3)
        for n in (10**4, 10**6, 10**8, 10**10)
        for T in (2, 10, 10**2, 10**3, 10**4, 10**5, 10**6)
    }


def many_rounds(grid: Grid) -> Iterator[Row]:
    """Fast, and flat in the number of rounds."""
    yield Row("T rounds, slowest of T = 2..1e6, n = 1e4..1e10", max(grid.values()), within=50e-3)
    upper = [
        median_cpu(upper_of(times(T, local(n))), repeats=3)
        for n in (10**4, 10**6, 10**10)
        for T in (2, 10**3, 10**6)
    ]
    yield Row("T rounds, the upper end alone, slowest of the same", max(upper), within=50e-3)
    for n in sorted({n for n, _ in grid}):
        per_T = [grid[x, y] for x, y in grid if x == n]
        what = f"T rounds, n = {short(n)}, slowest T"
        yield Row(what, max(per_T), min(per_T), "fastest T", at_most=10)


def against_dp_accounting() -> Iterator[Row | Check]:
    """Faster from 1000 rounds on, and right where double-precision convolution is not."""
    one = local(10**6)
    for T in (10, 10**3, 10**4, 10**5, 10**6):
        goal = 1 if T >= 1000 else None
        pairs = [rival.discretised(times(T, one)(i), DELTA) for i in range(4)]
        for what, task in {
            "the composition alone": composition_of(pairs),
            "the whole answer": epsilon_of(times(T, one)),
        }.items():
            ours, theirs = in_turn(task, rival.epsilon_task(pairs[0], DELTA))
            what = f"{short(T)} rounds, n = 1e6, {what}"
            yield Row(what, ours, theirs, rival.NAME, at_least=goal)
    yield from rival.checks(one(0))


def cohorts() -> Iterator[Row]:
    """Fresh random cohorts in each of 1e5 rounds."""
    for cohort, population in ((10**4, 10**6), (10**6, 10**8)):
        mechanism = times(10**5, sampled(local(cohort), population))
        ours, theirs = in_turn(
            epsilon_of(mechanism), rival.epsilon_task(rival.discretised(mechanism(0), DELTA), DELTA)
        )
        what = f"1e5 rounds, cohorts of {short(cohort)} from {short(population)}"
        yield Row(what, ours, theirs, rival.NAME, within=0.1)


def fifty_mechanisms() -> Iterator[Row]:
    """Fifty different rounds in one composition."""

    def mechanism(i: int) -> Any:
        first, *others = (local(10**5 + 20_000 * m, 1 + 0.06 * m)(i) for m in range(50))
        return sum(others, start=first)

    ours, theirs = in_turn(
        epsilon_of(mechanism), rival.epsilon_task(rival.discretised(mechanism(0), DELTA), DELTA)
    )
    yield Row("50 different mechanisms, a round of each", ours, theirs, rival.NAME, within=2)


def kary_randomized_response() -> Iterator[Row]:
    """The blanket of k-ary randomized response."""
    slowest = max(
        median_cpu(epsilon_of(kary(n, k)), repeats=3)
        for n in (10**6, 10**9, 10**12)
        for k in (3, 16, 100, 1000)
    )
    what = "k-ary randomized response, slowest of k = 3..1000, n = 1e6..1e12"
    yield Row(what, slowest, within=10e-3)

    n, k = 10**5, 16
    epsilon = float(kary(n, k)(0).epsilon(delta=DELTA))
    ours, theirs = in_turn(
        delta_of(kary(n, k), epsilon),
        lambda i: plain.kary_blanket_delta(epsilon, n, EPSILON0, k, TAIL),
        repeats=1,
    )
    what = "k-ary randomized response, one delta(epsilon), k = 16, n = 1e5"
    yield Row(what, ours, theirs, "plain sum over pairs of counts")


def calibration() -> Iterator[Row]:
    """Inverse problems, in units of one evaluation."""
    n, T = 10**6, 30
    wanted: dict[str, Any] = {"epsilon": 1.0, "delta": DELTA}
    family = sdp.KaryRandomizedResponse
    questions: dict[str, Task] = {
        "epsilon0": lambda i: sdp.calibrate(family, k=16, n=n + i, rounds=T, **wanted),
        "n": lambda i: sdp.calibrate(answer(16, i), solve_for="n", rounds=T, **wanted),
        "rounds": lambda i: sdp.calibrate(answer(16, i), solve_for="rounds", n=n, **wanted),
    }
    for name, question in questions.items():
        ours, theirs = in_turn(question, epsilon_of(times(T, kary(n))))
        what = f"calibrate {name}, k = 16, n = 1e6, 30 rounds"
        most = {"epsilon0": 5, "n": 8, "rounds": 5}[name]
        yield Row(what, ours, theirs, "one evaluation", at_most=most)
        yield Row(f"{what}: by itself", ours, within=0.3)


def corners() -> Iterator[Row | Check]:
    """What used to take long, or was refused: one call each, with the time that it may take."""
    questions: dict[str, tuple[float, Callable[[int], Any]]] = {
        "two rounds of k-ary response, k = 256, n = 4900: one delta": (
            1.0,
            lambda i: (2 * sdp.Shuffled(moved(sdp.KaryRandomizedResponse, i, 4.81, k=256), n=4900)).delta(
                epsilon=0.0756
            ),
        ),
        "Laplace on 256 levels, n = 1e4, one round": (1.0, laplace(256, 1)),
        "Laplace on 16 levels, n = 1e4, 30 rounds": (1.0, laplace(16, 30)),
        "Laplace on 256 levels, n = 1e4, 30 rounds": (1.0, laplace(256, 30)),
        **{
            f"Gaussian, sigma = {sigma:g}, {levels} levels, n = {short(n)}, 30 rounds": (
                2.0,
                gaussian(sigma, levels, n, 30),
            )
            for sigma, levels, n in (
                (0.3, 8, 10**6),
                (0.3, 64, 10**4),
                (1.0, 8, 10**4),
                (1.0, 16, 10**4),
                (1.0, 64, 10**4),
                (3.0, 8, 10**6),
                (3.0, 16, 10**6),
                (3.0, 64, 10**4),
                (0.5, 64, 10**6),  # the slowest of these ranges
            )
        },
        **{
            f"binary response, exact, epsilon0 = {epsilon0:g}, n = 1e6, 3 rounds": (0.2, binary(epsilon0))
            for epsilon0 in (0.5, 2.0, 5.0, 8.0, 10.0)
        },
        **{
            f"{noise} noise on the line, scale {scale:g}, n = {short(n)}, one round": (
                0.5,
                noise_on_the_line(noise, scale, n),
            )
            for noise, scale in (("Laplace", 0.5), ("Gaussian", 1.0), ("Gaussian", 0.5))
            for n in (200, 10**4, 10**6)
        },
        "planning a survey, 2 categories, epsilon = 4, n = 1e5": (0.5, planned(2, 4.0)),
        "planning a survey, 1,000 categories, epsilon = 1, n = 1e5": (0.5, planned(1000, 1.0)),
        "calibrate binary response, n = 1e5, 12 rounds": (
            1.0,
            lambda i: sdp.calibrate(
                sdp.BinaryRandomizedResponse, n=10**5 + i, rounds=12, epsilon=1.0, delta=1e-6
            ),
        ),
        "calibrate Laplace, n = 2612, 12 rounds": (
            1.0,
            lambda i: sdp.calibrate(sdp.DiscreteLaplace, n=2612 + i, rounds=12, epsilon=1.0, delta=1e-5),
        ),
        "calibrate k-ary response, k = 100, n = 1733, delta = 1e-10, 10 rounds": (
            1.0,
            lambda i: sdp.calibrate(
                sdp.KaryRandomizedResponse, k=100, n=1733 + i, rounds=10, epsilon=0.25, delta=1e-10
            ),
        ),
        "12 rounds of a random 10 x 10 matrix, n = 1e5": (2.0, random_matrix(10, 12)),
        "one round of a random 40 x 40 matrix, n = 1e5": (1.0, random_matrix(40, 1)),
        "one round of a random 100 x 100 matrix, n = 1e5": (3.0, random_matrix(100, 1)),
        "Gaussian, sigma = 2.5, 16 levels, n = 774, one round": (2.0, gaussian(2.5, 16, 774, 1)),
        "Gaussian, sigma = 0.85, 16 levels, n = 1e6, one round": (2.0, gaussian(0.85, 16, 10**6, 1)),
        "calibrate k-ary response, a cohort of 100 of 500": (
            1.0,
            lambda i: sdp.calibrate(
                sdp.KaryRandomizedResponse, k=16, cohort=100, population=500 + i, epsilon=0.5, delta=1e-6
            ),
        ),
        "50 different rounds of k-ary response": (1.0, fifty_alphabets),
        "12 rounds of k-ary response, n = 1e6: a curve of 200 points": (
            0.3,
            lambda i: (12 * kary(10**6)(i)).delta(epsilon=np.linspace(0.0, 0.3, 200)),
        ),
        "k-ary response, 1,000 pairs of n and epsilon0": (3.0, sweep),
        "1e5 rounds, n = 1e6, to 1e-5": (
            1.0,
            lambda i: (10**5 * local(10**6)(i)).epsilon(delta=DELTA, tolerance=1e-5),
        ),
        "calibrate sigma, 8 levels, n = 1e4, one round": (
            1.0,
            lambda i: sdp.calibrate(sdp.DiscreteGaussian, n=10**4 + i, epsilon=1.0, delta=1e-6),
        ),
    }
    for what, (goal, task) in questions.items():
        yield Row(what, cpu_within(task, PATIENCE), within=goal)
    laplace_rounds = (
        "import shuffledp as s\n"
        "(30 * s.Shuffled(s.DiscreteLaplace(epsilon0=2.0, levels=256), n=10**4)).epsilon(delta=1e-6)"
    )
    most = fresh_memory(laplace_rounds)
    what = "Laplace on 256 levels, n = 1e4, 30 rounds: at most 300 MB, in a fresh process"
    yield Check(what, f"{most / 1e6:.0f} MB", most <= 300e6)


def moved(family: Callable[..., Any], i: int, epsilon0: float, **others: Any) -> Any:
    """A randomizer whose local epsilon moves with the repetition."""
    return family(epsilon0=epsilon0 * (1 + 1e-6 * i), **others)


def laplace(levels: int, rounds: int) -> Task:
    """Laplace noise among 1e4."""
    return lambda i: (
        rounds * sdp.Shuffled(moved(sdp.DiscreteLaplace, i, 2.0, levels=levels), n=10**4)
    ).epsilon(delta=1e-6)


def binary(epsilon0: float) -> Task:
    """Three rounds among a million, whatever the others hold."""
    return lambda i: (3 * sdp.Shuffled(moved(sdp.BinaryRandomizedResponse, i, epsilon0), n=10**6)).epsilon(
        delta=1e-6
    )


def gaussian(sigma: float, levels: int, n: int, rounds: int) -> Task:
    """Gaussian noise, sigma in units of the range."""
    return lambda i: (
        rounds * sdp.Shuffled(sdp.DiscreteGaussian(sigma=sigma * (1 + 1e-6 * i), levels=levels), n=n)
    ).epsilon(delta=1e-6)


def noise_on_the_line(noise: str, scale: float, n: int) -> Task:
    """Noise of a continuous law, its scale in lengths of the interval."""

    def task(i: int) -> Any:
        return sdp.Shuffled(on_the_line(noise, scale * (1 + 1e-6 * i)), n=n).epsilon(delta=1e-6)

    return task


def planned(categories: int, epsilon: float) -> Task:
    """A survey of 1e5 people."""
    names = [f"c{place}" for place in range(categories)]
    return lambda i: sdp.HistogramProtocol(names, epsilon=epsilon, delta=1e-6, n=10**5 + i)


def random_matrix(size: int, rounds: int) -> Task:
    """Rows of e to numbers in [0, 2], made to sum to one."""

    def task(i: int) -> Any:
        rows = np.exp(np.random.default_rng(3 + i).uniform(0.0, 2.0, (size, size)))
        randomizer = sdp.FiniteRandomizer(rows / rows.sum(axis=1, keepdims=True))
        return (rounds * sdp.Shuffled(randomizer, n=10**5)).epsilon(delta=1e-6)

    return task


def fifty_alphabets(i: int) -> Any:
    """k-ary response, k = 3, ..., 52, a round of each."""
    first, *others = (
        sdp.Shuffled(moved(sdp.KaryRandomizedResponse, i, 2.0, k=k), n=10**4 + k) for k in range(3, 53)
    )
    return sum(others, start=first).epsilon(delta=1e-6)


def sweep(i: int) -> Any:
    """One round for each of 1,000 settings."""
    rounds = [
        sdp.Shuffled(moved(sdp.KaryRandomizedResponse, i, epsilon0, k=16), n=int(n))
        for n in np.geomspace(1e3, 1e7, 40)
        for epsilon0 in np.linspace(0.5, 5.0, 25)
    ]
    return sdp.epsilon_of_each(rounds, delta=1e-6)


def start_up() -> Iterator[Row]:
    """Imports and the first answer, each in a fresh interpreter."""
    numpy, special, package = "import numpy", "import numpy, scipy.special", "import shuffledp"
    first = (
        "import shuffledp as s\n"
        "s.Shuffled(s.KaryRandomizedResponse(k=16, epsilon0=4.0), n=10**6).epsilon(delta=1e-8)"
    )
    cpu = fresh_interpreters([numpy, package, special, first])
    yield Row(f"`{package}`, fresh process", cpu[package], cpu[numpy], f"`{numpy}`", at_most=1.3)
    yield Row("first answer, fresh process", cpu[first], cpu[special], f"`{special}`", at_most=2.5)


def accuracy() -> Iterator[Check]:
    """The default tolerance is kept: the same question asked more finely gives hardly less."""
    worst = max(
        looseness(local(n)(0), delta, 1e-5) for n in (10**3, 10**6, 10**12) for delta in (1e-6, 1e-30)
    )
    yield Check("one round: excess over an answer to 0.001%", f"{worst:.1e}", worst <= TOLERANCE)
    worst = max(
        looseness(T * local(n)(0), delta, 1e-4)
        for n in (10**4, 10**8)
        for T in (10, 10**5)
        for delta in (DELTA, 1e-30)
    )
    yield Check("T rounds: excess over an answer to 0.01%", f"{worst:.1e}", worst <= TOLERANCE)


def looseness(mechanism: Any, delta: float, fine: float) -> float:
    """Relative distance of the default upper end to that with a finer tolerance."""
    default = float(mechanism.epsilon(delta=delta))
    return default / float(mechanism.epsilon(delta=delta, tolerance=fine)) - 1


def grid_table(rows: str, columns: str, grid: Grid) -> str:
    """Seconds by two parameters."""
    xs, ys = ({cell[axis]: None for cell in grid} for axis in (0, 1))  # in order of appearance
    header = [f"{rows} \\ {columns}", *(short(y) for y in ys)]
    return table(header, [[short(x), *(seconds(grid[x, y]) for y in ys)] for x in xs])


if __name__ == "__main__":
    main()
