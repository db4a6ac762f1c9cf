"""What the verifier confirms: every randomizer, every analysis, one round, rounds and cohorts.

    python benchmarks/verify.py [--n 2000] [--epsilon0 1] [--seconds 60] [--only NAME]

Prints one line each: verified and how long that took, or why not, or why there is no answer to verify.
The exit status is 1 if an answer was not verified.
"""

import argparse
import math
import sys
import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

from width import POPULATION, RANDOMIZERS, _TooSlowError, limited

import shuffledp as sdp
from shuffledp.accounting._analyses import names_for
from shuffledp.accounting.blanket_counts import BlanketCounts
from shuffledp.accounting.cohort import Cohort
from shuffledp.accounting.mixed_sum import MixedSum
from shuffledp.accounting.mixed_vectors import MixedVectors

DELTA = 1e-6
ROUNDS = 20
MORE: dict[str, Callable[[float], Any]] = {
    "any, delta0 = 1e-12": lambda e: sdp.LocalRandomizer(e, delta0=1e-12),
    "Gaussian of a small scale": lambda e: sdp.DiscreteGaussian(sigma=0.4 / e, levels=8),
    "a level of a tree": lambda e: sdp.LeveledResponse(64, epsilon0=e),
    "PrivUnit, d = 2": lambda e: sdp.PrivUnit(dimension=2, epsilon0=e),
    "RampUnit, d = 2000": lambda e: sdp.RampUnit(dimension=2000, epsilon0=e),
    "GaussianUnit, d = 100": lambda e: sdp.GaussianUnit(dimension=100, epsilon0=e),
}
SETTINGS: dict[str, Callable[[Any, int, str], sdp.Mechanism]] = {
    "one round": lambda one, n, how: sdp.Shuffled(one, n=n, analysis=how),
    f"{ROUNDS} rounds": lambda one, n, how: ROUNDS * sdp.Shuffled(one, n=n, analysis=how),
    "cohort": lambda one, n, how: sdp.Shuffled(one, n=n, analysis=how).sampled_from(POPULATION * n),
    "Poisson cohort": lambda one, n, how: sdp.Shuffled(one, n=n, analysis=how).sampled_from(
        POPULATION * n, poisson=True
    ),
    "honest 70%": lambda one, n, how: sdp.Shuffled(one, n=n, analysis=how, honest_fraction=0.7),
    "honest cohort": lambda one, n, how: sdp.Shuffled(
        one, n=n, analysis=how, population=POPULATION * n, honest_fraction=0.7
    ),
    f"{ROUNDS} cohorts": lambda one, n, how: (
        ROUNDS * sdp.Shuffled(one, n=n, analysis=how).sampled_from(POPULATION * n)
    ),
}


def others(n: int, epsilon0: float) -> dict[str, sdp.Mechanism]:
    """Rounds that are no randomizer of one law."""
    noise = 72.0 * 10_000 * 100.0 / n  # of all people the same
    vectors = MixedVectors(n, dimension=100, farthest=2000**2, variance=noise, messages=10, modulus=2**28)
    halves = {epsilon0: n - n // 2, 2.0 * epsilon0: n // 2}
    return {
        "groups of k-ary response": sdp.ShuffledGroups.of(sdp.KaryRandomizedResponse, halves, k=16),
        "groups of Laplace noise": sdp.ShuffledGroups.of(sdp.DiscreteLaplace, halves, levels=4),
        "split and mix": MixedSum(n=n, levels=100, scale=100.0 / epsilon0, messages=10, modulus=2**24),
        "blanket messages": BlanketCounts(n=n, slots=10, clone=min(0.5, 5.0 / n)),
        "hashed messages": BlanketCounts(n=n, slots=10, clone=min(0.5, 5.0 / n), buckets=101),
        "vectors": vectors,
        f"{ROUNDS} cohorts of vectors": ROUNDS * Cohort(vectors, population=POPULATION * n),
    }


def outcome(mechanism: Callable[[], sdp.Mechanism], seconds: float) -> tuple[bool, str]:
    """(whether nothing is wrong, in words)."""
    try:
        with limited(seconds):
            bound = mechanism().epsilon(delta=DELTA)
    except (_TooSlowError, sdp.NoCertificateError, ValueError) as error:
        return True, f"no answer: {type(error).__name__} {error}"
    if not math.isfinite(bound.upper):
        return True, "no answer: epsilon is infinite"
    start = time.process_time()
    try:
        with limited(seconds):
            found = bound.verify()
    except _TooSlowError:
        return False, f"slow: more than {seconds:g} s"
    except (sdp.NoCertificateError, ValueError) as error:
        return False, f"refused: {error}"
    return bool(found), f"{found} ({time.process_time() - start:.1f} s)"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--n", type=int, default=2000)
    parser.add_argument("--epsilon0", type=float, default=1.0)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--only", default="")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    cases: list[tuple[str, Callable[[], sdp.Mechanism]]] = []
    for name, make in {**RANDOMIZERS, **MORE}.items():
        one = make(given.epsilon0)
        facts = one if isinstance(one, sdp.Facts) else one.facts()
        for how in ("best", "best-leaked", *names_for(facts)):
            for setting, build in SETTINGS.items():
                cases.append((f"{name}, {how}, {setting}", partial(build, one, given.n, how)))
    for name, made in others(given.n, given.epsilon0).items():
        cases += [(f"{name}, {times} times", partial(made.__mul__, times)) for times in (1, ROUNDS)]
    results = []
    for name, case in cases:
        if given.only in name:
            fine, words = outcome(case, given.seconds)
            results.append(fine)
            print(f"{'' if fine else '! '}{name}: {words}", flush=True)
    print(f"{sum(results)} of {len(results)} without objection")
    sys.exit(not all(results))


if __name__ == "__main__":
    main()
