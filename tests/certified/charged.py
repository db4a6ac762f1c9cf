"""What certified answers are charged for rounding: asked with a larger unit round-off, how far do they move?

    python tests/certified/charged.py EXPONENT      # answers with a unit of 2^-EXPONENT, as JSON
    python tests/certified/charged.py --write       # the units of every answer, to charged.json

A result that is rounded outward by k units moves outward by k (u' - u) when u' takes the place of u = 2^-53,
while the arithmetic itself stays what it is. So the units that an answer is charged can be measured, and a
rounding that is turned off, or the wrong way, is seen, however small it is beside the answer's tolerance.
Whether the counts are large enough is for ``test_counts.py`` to say, which compares with ball arithmetic.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import types
from collections.abc import Callable
from functools import partial
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from pathlib import Path
from typing import Any

TRUE, LARGE = 53, 43
"""Exponents: a thousand units are told apart from rounding itself, and their squares are nothing."""
TESTS = Path(__file__).resolve().parents[1]
RECORD = Path(__file__).with_name("charged.json")
Answers = dict[str, tuple[float, ...]]
"""Lower and upper ends, by turns."""


def exchange(name: str, change: Callable[[str], str]) -> None:
    """Load a module with another text, before anything has loaded it."""

    class Changed(SourceFileLoader):
        def get_code(self, fullname: str) -> types.CodeType:
            return compile(change(Path(self.path).read_text(encoding="utf-8")), self.path, "exec")

    class Finder(MetaPathFinder):
        def find_spec(self, fullname: str, path: Any, target: Any = None) -> ModuleSpec | None:
            if fullname != name:
                return None
            file = Path(path[0]) / f"{name.rpartition('.')[2]}.py"
            return spec_from_file_location(name, file, loader=Changed(name, str(file)))

    assert name not in sys.modules
    sys.meta_path.insert(0, Finder())


def enlarge(exponent: int) -> None:
    """Load ``rounding`` with another unit."""

    def change(text: str) -> str:
        assert text.count("UNIT = 2.0**-53\n") == 1
        return text.replace("2.0**-53\n", f"2.0**-{exponent}\n")

    exchange("shuffledp._certified.rounding", change)


def questions() -> dict[str, Callable[[], Any]]:
    """Something of every curve, of both ends, of rounds: deltas, which need no search."""
    import numpy as np

    import shuffledp as sdp
    from shuffledp.accounting._ends import several_rounds
    from shuffledp.accounting._ends.moments import LogMoments
    from shuffledp.accounting.shuffled_batches import ShuffledBatches

    kary, local, shuffled = sdp.KaryRandomizedResponse, sdp.LocalRandomizer, sdp.Shuffled
    five, two, any_ = kary(5, epsilon0=2.0), kary(2, epsilon0=1.0), local(epsilon0=1.0)
    uneven = np.array([[0.5, 0.3, 0.2], [0.25, 0.5, 0.25], [0.2, 0.2, 0.6]])
    zeros = sdp.FiniteRandomizer(np.array([[0.5, 0.49, 0.01, 0.0], [0.49, 0.5, 0.0, 0.01]]))
    laplace, unary = sdp.DiscreteLaplace(epsilon0=1.0, levels=4), sdp.SymmetricUnaryEncoding(4, epsilon0=1.5)
    single = sdp.FiniteRandomizer(uneven)
    asked: dict[str, tuple[Any, float]] = {
        **{
            f"5-ary, {how}": (shuffled(five, n=300, analysis=how), 0.3)
            for how in ("best", "strong", "clones")
        },
        "5-ary, few": (shuffled(five, n=12), 0.3),
        "5-ary, many": (shuffled(five, n=10**8), 0.001),
        "5-ary, honest": (shuffled(five, n=300, honest_fraction=0.8), 0.3),
        "5-ary, cohort": (shuffled(five, n=100).sampled_from(1000), 0.05),
        "5-ary, honest cohort": (shuffled(five, n=100, population=1000, honest_fraction=0.8), 0.05),
        "5-ary, coins": (shuffled(five, n=100).sampled_from(1000, poisson=True), 0.05),
        "5-ary, 10 rounds": (10 * shuffled(five, n=1000), 0.3),
        "binary": (shuffled(two, n=200), 0.2),
        "binary, blanket": (shuffled(two, n=200, analysis="blanket"), 0.2),
        "binary, many": (shuffled(two, n=10**6), 0.005),
        "binary, 2 rounds": (2 * shuffled(two, n=40), 0.3),
        **{
            f"any, {how}": (shuffled(any_, n=10_000, analysis=how), 0.03)
            for how in ("best", "clones", "clones-2021")
        },
        "any, delta0": (shuffled(local(epsilon0=1.0, delta0=1e-9), n=300), 0.1),
        "any, cohort": (shuffled(any_, n=100).sampled_from(1000), 0.02),
        "any, coins": (shuffled(any_, n=100).sampled_from(1000, poisson=True), 0.02),
        "matrix": (shuffled(single, n=10_000), 0.02),
        "matrix, few": (shuffled(single, n=60), 0.2),
        "matrix, cohort": (shuffled(single, n=100).sampled_from(1000), 0.02),
        "matrix with zeros": (shuffled(zeros, n=100), 0.3),
        "Laplace": (shuffled(laplace, n=10_000), 0.02),
        "Laplace, coins": (shuffled(laplace, n=100).sampled_from(1000, poisson=True), 0.02),
        "unary": (shuffled(unary, n=10_000), 0.03),
        "hashing": (shuffled(sdp.OptimisedLocalHashing(8, epsilon0=1.5), n=200), 0.2),
        "Hadamard": (shuffled(sdp.HadamardResponse(8, epsilon0=1.5), n=200), 0.2),
        "PrivUnit": (shuffled(sdp.PrivUnit(300, epsilon0=2.0), n=200), 0.3),
        "groups": (sdp.ShuffledGroups.of(kary, {1.0: 100, 2.0: 100}, k=5), 0.3),
        "split and mix": (sdp.MixedSum(n=200, levels=100, scale=100.0, messages=10, modulus=2**24), 0.3),
        "blanket messages": (sdp.BlanketCounts(n=200, slots=10, clone=0.02), 0.3),
        "batches": (ShuffledBatches(noise_multiplier=1.0, batches=20), 1.0),
    }
    rounds = (10 * shuffled(five, n=1000))._rounds()
    from certified import beside, parts

    return {
        **parts.questions(),
        **beside.questions(),
        **{name: partial(one.delta, epsilon=at) for name, (one, at) in asked.items()},
        "2 rounds, pure": partial((2 * shuffled(five, n=300)).epsilon, delta=0.0),
        "10 rounds, moments": lambda: (0.0, LogMoments.of(rounds, 1e-6).upper_epsilon(1e-6)),
        "10 rounds, apart": lambda: (0.0, several_rounds._apart(rounds)),
    }


def answers() -> Answers:
    found = {name: ask() for name, ask in questions().items()}
    return {name: tuple(map(float, ends)) for name, ends in found.items()}


def asked_with(exponent: int, source: Path) -> Answers:
    """In a process of its own, with the package in that folder."""
    run = subprocess.run(
        [sys.executable, "-W", "ignore", __file__, str(exponent)],
        capture_output=True, text=True, env={**os.environ, "PYTHONPATH": f"{source}{os.pathsep}{TESTS}"},
    )  # fmt: skip
    if run.returncode:
        raise AssertionError(f"a unit of 2^-{exponent}: {run.stderr[-500:]}")
    return {name: tuple(ends) for name, ends in json.loads(run.stdout).items()}


def units(true: Answers, large: Answers) -> dict[str, list[float]]:
    """Of all ends of every answer: the relative way outward, in units."""
    unit = 2.0**-LARGE - 2.0**-TRUE
    return {
        name: [
            (there - here if place % 2 else here - there) / max(abs(here), 1e-300) / unit
            for place, (here, there) in enumerate(zip(true[name], large[name], strict=True))
        ]
        for name in large
    }


def changed(found: dict[str, list[float]], relative: float = 1e-5) -> list[str]:
    """The questions whose units are not those recorded; other processors move them by a few millionths."""
    recorded = json.loads(RECORD.read_text(encoding="utf-8"))
    return [
        name
        for name, ends in found.items()
        for one, other in zip(ends, recorded[name], strict=True)
        if not math.isclose(one, other, rel_tol=relative, abs_tol=1.0)
    ]


def main(asked: str) -> None:
    if asked != "--write":
        enlarge(int(asked))
        json.dump(answers(), sys.stdout)
        return
    source = Path(__file__).resolve().parents[2] / "src"
    found = units(asked_with(TRUE, source), asked_with(LARGE, source))
    rows = {name: [float(f"{value:.9g}") for value in ends] for name, ends in found.items()}
    lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(ends)}" for name, ends in rows.items())
    RECORD.write_text("{\n" + lines + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
