"""A map of the accountant: random realistic questions over the whole interface, by kind.

    OPENBLAS_NUM_THREADS=1 python benchmarks/map.py [--count 2000] [--seed 1] [--limit 60] [--jobs 1]

Per kind of question: CPU seconds (median, 95%, worst), the width upper / lower - 1 (the same), how many were
answered coarser than asked (a warning), how many were refused, and the sentences of the refusals. A question
that runs into the limit of CPU seconds is stopped and counted as slow; when it said that it takes long is
noted. The seed and a question's number make the question, so that the processes of --jobs
ask the same ones as one process does.
"""

import argparse
import math
import resource
import signal
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from report import seconds, setting, table

import shuffledp as sdp

Rng = np.random.Generator
Question = tuple[str, Callable[[], Any]]

PAGE = """\
# A map of the accountant

Written by `make bench-map`: {count} random questions (seed {seed}), CPU seconds of one thread, at most
{limit:g} each. Width is upper / lower - 1. Plans that nothing meets, and groups of people without a
common blanket, are told so, and count neither as answered nor as refused. {setting}

{rows}

{total}

## Slowest, refused and coarser

{worst}

## Widest

{widest}
"""
WIDEST = 40  # of the questions whose width is above WIDE
WIDE = 0.05
LONG = 10.0  # CPU seconds of which a user is told before
HEADER = (
    "kind",
    "asked",
    "time: median / 95% / worst",
    "width: median / 95% / worst",
    "coarser",
    "refused",
    "stopped",
)


@dataclass(frozen=True)
class Asked:
    """One question and what came of it."""

    kind: str
    call: str
    time: float
    width: float
    outcome: str  # "answered", "coarser", "none" (no such plan, or no common blanket), "refused" or "stopped"
    said: str = ""
    warned: float = math.inf
    """CPU seconds after which it said that it takes long."""

    @property
    def unannounced(self) -> bool:
        """Whether it took long without a word in time."""
        return self.time > LONG < self.warned


def main() -> None:
    """Ask, and write or print the page."""
    parser = argparse.ArgumentParser(description="Random questions to the accountant, by kind.")
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--limit", type=float, default=60.0, help="CPU seconds per question")
    parser.add_argument("--output", type=Path)
    parser.add_argument("--jobs", type=int, default=1, help="processes that ask")
    given = parser.parse_args()
    kinds = list(KINDS)
    asked = []
    with ProcessPoolExecutor(given.jobs, get_context("spawn"), little_memory) as processes:
        for found in processes.map(partial(numbered, given.seed, given.limit), range(given.count)):
            print(
                f"{found.outcome:9} {found.time:7.3f} s  {found.width:8.2g}  {found.call}  {found.said}",
                flush=True,
            )
            asked.append(found)
    page = PAGE.format(
        count=given.count,
        seed=given.seed,
        limit=given.limit,
        setting=setting(),
        rows=table(HEADER, [row(kind, [a for a in asked if a.kind == kind]) for kind in kinds]),
        total=summary(asked),
        worst="\n".join(worst(asked)),
        widest="\n".join(widest(asked)),
    )
    if given.output is None:
        print(page)
    else:
        given.output.write_text(page, encoding="utf-8")


class _Stopped(BaseException):
    """The limit of CPU seconds."""


@contextmanager
def limited(limit: float) -> Iterator[None]:
    """Stops what takes longer than so many CPU seconds."""

    def stop(*_: object) -> None:
        raise _Stopped

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, limit)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0.0)
        signal.signal(signal.SIGVTALRM, before)


def little_memory() -> None:
    """What needs more than this many bytes is refused, instead of the machine being stopped."""
    resource.setrlimit(resource.RLIMIT_AS, (2**33, 2**33))


def numbered(seed: int, limit: float, number: int) -> Asked:
    """The question of this number, asked."""
    kind = list(KINDS)[number % len(KINDS)]
    return ask(kind, *KINDS[kind](np.random.default_rng([seed, number])), limit)


def ask(kind: str, call: str, question: Callable[[], Any], limit: float) -> Asked:
    """The question's time and width, and how it ended."""
    start = process_time()
    width, outcome, said = math.nan, "answered", ""
    noted: list[tuple[float, type[Warning], str]] = []

    def note(message: Warning | str, category: type[Warning], *_: object, **__: object) -> None:
        noted.append((process_time() - start, category, str(message)))

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = note
        try:
            with limited(limit):
                width = width_of(question())
        except _Stopped:
            outcome = "stopped"
        except (sdp.NoCertificateError, ArithmeticError, MemoryError) as error:
            outcome, said = "refused", str(error).rpartition(": ")[2]
        except ValueError as error:  # a target that nothing meets; groups that no theorem takes together
            plan = kind.startswith("calibrate") or kind.endswith("plan")
            apart = str(error).startswith("groups must share a blanket")
            outcome, said = "none" if plan or apart else "refused", str(error)
    coarser = [message for _, category, message in noted if issubclass(category, sdp.CoarserBoundWarning)]
    warned = [at for at, category, _ in noted if issubclass(category, sdp.LongWorkWarning)]
    if coarser and outcome == "answered":
        outcome, said = "coarser", coarser[0]
    return Asked(kind, call, process_time() - start, width, outcome, said, min(warned, default=math.inf))


def width_of(answer: Any) -> float:
    """upper / lower - 1, the largest of an array."""
    bound = answer.epsilon if isinstance(answer, sdp.Calibration) else answer
    if not isinstance(bound, sdp.Bound):
        return math.nan
    low, high = np.atleast_1d(bound.lower), np.atleast_1d(bound.upper)
    known = high > 0.0
    with np.errstate(divide="ignore", invalid="ignore"):  # inf at both ends is no width
        return float(np.nanmax(high[known] / low[known] - 1.0, initial=0.0))


def row(kind: str, asked: list[Asked]) -> list[str]:
    """One line of the table."""
    times, widths = [a.time for a in asked], [a.width for a in asked if math.isfinite(a.width)]
    ends = [sum(a.outcome == outcome for a in asked) for outcome in ("coarser", "refused", "stopped")]
    shown = [
        " / ".join(show(q) for q in three(of)) for of, show in ((times, seconds), (widths, "{:.2g}".format))
    ]
    return [kind, str(len(asked)), *shown, *map(str, ends)]


def three(values: list[float]) -> list[float]:
    """Median, 95% and the largest."""
    return [float(q) for q in np.quantile(values, [0.5, 0.95, 1.0])] if values else []


def summary(asked: list[Asked]) -> str:
    """All kinds together."""
    slow, without = sum(a.time > LONG for a in asked), sum(a.unannounced for a in asked)
    refused = sum(a.outcome == "refused" for a in asked)
    times = " / ".join(seconds(t) for t in three([a.time for a in asked]))
    share = refused / max(len(asked), 1)
    return (
        f"All: {times}; {slow} above {LONG:g} s, {without} of these without a warning before; "
        f"{refused} refused ({share:.2%})."
    )


def worst(asked: list[Asked]) -> Iterator[str]:
    """Calls that took more than 5 s, and those that were not answered as asked."""
    for a in sorted(asked, key=lambda a: -a.time):
        if a.time > 5.0 or a.outcome not in ("answered", "none"):
            warned = f", warned after {seconds(a.warned)}" if a.warned < math.inf else ""
            yield f"- `{a.call}`: {a.outcome}, {seconds(a.time)}{warned}{', ' + a.said if a.said else ''}"


def widest(asked: list[Asked]) -> Iterator[str]:
    """The widest answers, of epsilon (ends of a delta far below all others may be far apart)."""
    wide = [a for a in asked if WIDE < a.width < math.inf and a.kind not in ("curve", "delta")]
    yield f"{len(wide)} of {len(asked)} are wider than {WIDE:.0%}; the widest:\n"
    for a in sorted(wide, key=lambda a: -a.width)[:WIDEST]:
        yield f"- `{a.call}`: {a.width:.2g}"


# What is asked.


def _n(rng: Rng) -> int:
    return int(10 ** rng.uniform(2, 7))


def _delta(rng: Rng) -> float:
    return float(10.0 ** -rng.integers(4, 13))


def _rounds(rng: Rng) -> int:
    return int(rng.choice([2, 3, 10, 12, 30, 100, 365, 10_000]))


def _described(name: str, **parameters: Any) -> tuple[str, Any]:
    text = ", ".join(f"{key}={value!r}" for key, value in parameters.items())
    return f"{name}({text})", getattr(sdp, name)(**parameters)


def _e0(rng: Rng, most: float = 6.0) -> float:
    return round(float(rng.uniform(0.2, most)), 3)


def kary(rng: Rng) -> tuple[str, Any]:
    """k-ary randomized response."""
    return _described("KaryRandomizedResponse", k=int(rng.choice([3, 5, 16, 100, 1000])), epsilon0=_e0(rng))


def frequency(rng: Rng) -> tuple[str, Any]:
    """Other ways to count categories."""
    names = (
        "SymmetricUnaryEncoding",
        "OptimisedUnaryEncoding",
        "SubsetSelection",
        "HadamardResponse",
        "OptimisedLocalHashing",
    )
    return _described(str(rng.choice(names)), k=int(rng.choice([4, 16, 64])), epsilon0=_e0(rng, 4.0))


def vectors(rng: Rng) -> tuple[str, Any]:
    """Vectors."""
    name = str(rng.choice(["PrivUnit", "L1Randomizer", "LInfinityRandomizer"]))
    return _described(name, dimension=int(rng.choice([10, 100])), epsilon0=_e0(rng, 4.0))


def matrix(rng: Rng) -> tuple[str, Any]:
    """A random matrix."""
    size, seed = int(rng.choice([2, 3, 5, 8, 12])), int(rng.integers(1 << 30))
    rows = np.exp(np.random.default_rng(seed).uniform(0.0, 2.0, (size, size)))
    return f"FiniteRandomizer(random {size} x {size}, seed {seed})", sdp.FiniteRandomizer(
        rows / rows.sum(axis=1, keepdims=True)
    )


RANDOMIZERS: dict[str, Callable[[Rng], tuple[str, Any]]] = {
    "k-ary": kary,
    "binary": lambda rng: _described("BinaryRandomizedResponse", epsilon0=_e0(rng)),
    "any": lambda rng: _described("LocalRandomizer", epsilon0=_e0(rng)),
    "categories": frequency,
    "vectors": vectors,
    "Laplace": lambda rng: _described(
        "DiscreteLaplace", epsilon0=_e0(rng, 4.0), levels=int(rng.choice([4, 16, 64, 256]))
    ),
    "Gaussian": lambda rng: _described(
        "DiscreteGaussian", sigma=round(float(rng.uniform(0.3, 3.0)), 3), levels=int(rng.choice([8, 16, 64]))
    ),
    "matrix": matrix,
}


def one_round(make: Callable[[Rng], tuple[str, Any]]) -> Callable[[Rng], Question]:
    """epsilon(delta) of a round."""

    def question(rng: Rng) -> Question:
        (text, randomizer), n, delta = make(rng), _n(rng), _delta(rng)
        return f"Shuffled({text}, n={n}).epsilon(delta={delta:g})", lambda: sdp.Shuffled(
            randomizer, n=n
        ).epsilon(delta=delta)

    return question


def rounds(make: Callable[[Rng], tuple[str, Any]], cohort: bool = False) -> Callable[[Rng], Question]:
    """epsilon(delta) of several rounds, of everybody or of fresh cohorts."""

    def question(rng: Rng) -> Question:
        (text, randomizer), n, delta, times = make(rng), _n(rng), _delta(rng), _rounds(rng)
        population = int(n * 10 ** rng.uniform(0.5, 2.5)) if cohort else None
        one = sdp.Shuffled(randomizer, n=n, population=population)
        sampled = f".sampled_from({population})" if cohort else ""
        return f"({times} * Shuffled({text}, n={n}){sampled}).epsilon(delta={delta:g})", lambda: (
            times * one
        ).epsilon(delta=delta)

    return question


def curve(rng: Rng) -> Question:
    """delta on a grid of epsilon, of one round or several."""
    (text, randomizer), n, times = kary(rng), _n(rng), int(rng.choice([1, 2, 12]))
    one = times * sdp.Shuffled(randomizer, n=n)
    top = 3.0 * one.upper_epsilon(delta=1e-3, tolerance=0.1)
    return (
        f"({times} * Shuffled({text}, n={n})).delta(epsilon=linspace(0, {top:.3g}, 40))",
        lambda: one.delta(epsilon=np.linspace(0.0, top, 40)),
    )


def mixed(rng: Rng) -> Question:
    """Rounds of different randomizers."""
    chosen = [
        RANDOMIZERS[str(name)](rng) for name in rng.choice(["k-ary", "any", "categories", "vectors"], 2)
    ]
    parts = [
        (int(rng.integers(1, 50)), text, sdp.Shuffled(randomizer, n=_n(rng))) for text, randomizer in chosen
    ]
    delta = _delta(rng)
    text = " + ".join(f"{times} * Shuffled({name}, n={part.n})" for times, name, part in parts)
    return f"({text}).epsilon(delta={delta:g})", lambda: (
        parts[0][0] * parts[0][2] + parts[1][0] * parts[1][2]
    ).epsilon(delta=delta)


def anything(ask: str, choose: Callable[[Rng], Any]) -> Callable[[Rng], Question]:
    """Another question, ``ask`` with something to ask it about, of any randomizer and honest share."""

    def question(rng: Rng) -> Question:
        text, randomizer = RANDOMIZERS[str(rng.choice(list(RANDOMIZERS)))](rng)
        n, honest, at = _n(rng), float(rng.choice([0.5, 0.9, 1.0])), choose(rng)
        one = sdp.Shuffled(randomizer, n=n, honest_fraction=honest)
        return (
            f"Shuffled({text}, n={n}, honest_fraction={honest}).{ask}({at!r})",
            lambda: getattr(one, ask)(**at) if isinstance(at, dict) else getattr(one, ask)(at),
        )

    return question


def coins(rng: Rng) -> Question:
    """Rounds of everybody's own coin, not all honest."""
    (_, randomizer), n, delta, times = kary(rng), _n(rng), _delta(rng), int(rng.choice([1, 10, 100]))
    population, honest = int(n * 10 ** rng.uniform(0.5, 2.0)), float(rng.choice([0.9, 1.0]))
    one = sdp.Shuffled(randomizer, n=n).sampled_from(population, poisson=True, honest_fraction=honest)
    return f"({times} * {one!r}).epsilon(delta={delta:g})", lambda: (times * one).epsilon(delta=delta)


def approximate(rng: Rng) -> Question:
    """(epsilon0, delta0)."""
    delta, times, n = _delta(rng), int(rng.choice([1, 1, 10, 30])), _n(rng)
    local = {
        "epsilon0": _e0(rng, 4.0),
        "delta0": float(f"{delta / (times * n) / 10 ** rng.uniform(0, 3):.1e}"),
    }
    text, randomizer = _described("LocalRandomizer", **local)
    return f"({times} * Shuffled({text}, n={n})).epsilon(delta={delta:g})", lambda: (
        times * sdp.Shuffled(randomizer, n=n)
    ).epsilon(delta=delta)


def groups(rng: Rng) -> Question:
    """People of different epsilon0."""
    kind = str(rng.choice(["KaryRandomizedResponse", "SymmetricUnaryEncoding", "OptimisedLocalHashing"]))
    people = {_e0(rng, 4.0): _n(rng) for _ in range(int(rng.integers(2, 5)))}
    k, delta = int(rng.choice([4, 16, 64])), _delta(rng)
    return (
        f"ShuffledGroups.of({kind}, {people}, k={k}).epsilon(delta={delta:g})",
        lambda: sdp.ShuffledGroups.of(getattr(sdp, kind), people, k=k).epsilon(delta=delta),
    )


def batches(rng: Rng) -> Question:
    """Central DP-SGD with fixed batches."""
    text, one = _described(
        "ShuffledBatches",
        noise_multiplier=round(float(rng.uniform(0.4, 4.0)), 2),
        batches=int(10 ** rng.uniform(0.5, 4)),
        epochs=int(rng.choice([1, 10, 100])),
    )
    delta = _delta(rng)
    return f"{text}.epsilon(delta={delta:g})", lambda: one.epsilon(delta=delta)


def calibration(unknown: str) -> Callable[[Rng], Question]:
    """The inverse problem."""
    families: dict[str, dict[str, Any]] = {
        "BinaryRandomizedResponse": {},
        "LocalRandomizer": {},
        "KaryRandomizedResponse": {"k": [4, 16, 100]},
        "DiscreteLaplace": {"levels": [8, 64]},
        "DiscreteGaussian": {"levels": [8, 64]},
    }

    def question(rng: Rng) -> Question:
        family = str(rng.choice([f for f in families if (f == "DiscreteGaussian") <= (unknown == "local")]))
        given: dict[str, Any] = {"epsilon": float(rng.choice([0.25, 1.0, 2.0])), "delta": _delta(rng)}
        given |= {} if unknown == "rounds" else {"rounds": int(rng.choice([1, 10, 30]))}
        given |= {} if unknown == "n" else {"n": int(10 ** rng.uniform(3, 6))}
        made: dict[str, Any] = {key: int(rng.choice(choices)) for key, choices in families[family].items()}
        randomizer = getattr(sdp, family)
        if unknown != "local":
            randomizer, made = randomizer(**made, epsilon0=_e0(rng, 3.0)), {}
            given["solve_for"] = unknown
        text = ", ".join(f"{key}={value!r}" for key, value in (made | given).items())
        shown = family if unknown == "local" else repr(randomizer)
        return f"calibrate({shown}, {text})", lambda: sdp.calibrate(randomizer, **made, **given)

    return question


def survey(rng: Rng) -> Question:
    """A histogram's plan."""
    k = int(rng.choice([2, 3, 10, 100, 1000]))
    plan: dict[str, Any] = {
        "epsilon": float(rng.choice([0.1, 0.5, 1.0, 4.0, 10.0])),
        "delta": _delta(rng),
        "n": _n(rng),
    }
    plan |= {"rounds": int(rng.choice([1, 1, 3, 12]))}
    text = ", ".join(f"{key}={value!r}" for key, value in plan.items())
    return f"HistogramProtocol(range({k}), {text})", lambda: sdp.HistogramProtocol(range(k), **plan)


def mean(rng: Rng) -> Question:
    """A mean's plan."""
    plan: dict[str, Any] = {
        "epsilon": float(rng.choice([0.1, 0.5, 1.0, 4.0])),
        "delta": _delta(rng),
        "n": _n(rng),
    }
    plan |= {"messages": rng.choice(np.array([1, 1, "auto"], dtype=object))}
    text = ", ".join(f"{key}={value!r}" for key, value in plan.items())
    return f"MeanProtocol(0, 100, {text})", lambda: sdp.MeanProtocol(0.0, 100.0, **plan)


KINDS: dict[str, Callable[[Rng], Question]] = {
    **{f"{name}, one round": one_round(make) for name, make in RANDOMIZERS.items()},
    **{f"{name}, rounds": rounds(make) for name, make in RANDOMIZERS.items()},
    **{f"{name}, cohorts": rounds(make, cohort=True) for name, make in RANDOMIZERS.items()},
    "curve": curve,
    "mixed rounds": mixed,
    "delta": anything("delta", lambda rng: {"epsilon": round(float(rng.uniform(0.0, 3.0)), 3)}),
    "Renyi": anything("renyi", lambda rng: float(rng.choice([1.5, 2.0, 8.0, 32.0]))),
    "trade-off": anything("trade_off", lambda rng: round(float(rng.uniform(0.0, 1.0)), 3)),
    "coins": coins,
    "(epsilon0, delta0)": approximate,
    "groups": groups,
    "shuffled batches": batches,
    **{f"calibrate {unknown}": calibration(unknown) for unknown in ("local", "n", "rounds")},
    "survey plan": survey,
    "mean plan": mean,
}


if __name__ == "__main__":
    main()
