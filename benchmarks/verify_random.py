"""What the verifier says to random certificates: true ones, and falsified ones.

    python benchmarks/verify_random.py [--count 200] [--seed 1] [--seconds 30] [--slow 10] [--jobs 1]

A question has a randomizer (or groups, messages, split and mix), an analysis, one round, rounds or cohorts,
n from 50 to 10^7, up to 10^5 rounds, epsilon0 and delta. The accountant answers it, and the verifier derives
the answer again; every fourth answer that it confirms is then claimed for an epsilon below the accountant's
lower end, which is false. A seed makes a question: --count 1 --seed S asks one again.

Printed are the questions whose true certificate is refused, takes more CPU seconds than allowed or ends in a
crash, and whose false one is confirmed; then a summary. The exit status is 1 if a false one was confirmed.
"""

import argparse
import math
import random
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing import get_context
from typing import Any

from verify import MORE, others
from width import POPULATION, RANDOMIZERS, _TooSlowError, limited

import shuffledp as sdp
from shuffledp.accounting._analyses import names_for

ANSWER_SECONDS = 8.0  # of the accountant
FALSIFIED, BELOW = 0.25, 1e-3  # how many, and by which share below the lower end
LOCAL = 0.25, 0.5, 1.0, 1.0, 2.0, 2.0, 3.0, 4.0, 6.0
DELTAS = 1e-6, 1e-6, 1e-8, 1e-9, 1e-10
MANY_ROUNDS = 10**5
NO_RANDOMIZER = ("",) * 2  # how often one of ``others`` is drawn, beside every randomizer once
Make = Callable[[], sdp.Mechanism]


def _in_cohort(one: Any, n: int, how: str, *, poisson: bool = False) -> sdp.Mechanism:
    return sdp.Shuffled(one, n=n, analysis=how).sampled_from(POPULATION * n, poisson=poisson)


SETTINGS: dict[str, Callable[[Any, int, str, int], sdp.Mechanism]] = {
    "one round": lambda one, n, how, rounds: sdp.Shuffled(one, n=n, analysis=how),
    "cohort": lambda one, n, how, rounds: _in_cohort(one, n, how),
    "Poisson cohort": lambda one, n, how, rounds: _in_cohort(one, n, how, poisson=True),
    "honest 70%": lambda one, n, how, rounds: sdp.Shuffled(one, n=n, analysis=how, honest_fraction=0.7),
    "honest cohort": lambda one, n, how, rounds: sdp.Shuffled(
        one, n=n, analysis=how, population=POPULATION * n, honest_fraction=0.7
    ),
    "{rounds} rounds": lambda one, n, how, rounds: rounds * sdp.Shuffled(one, n=n, analysis=how),
    "{rounds} cohorts": lambda one, n, how, rounds: rounds * _in_cohort(one, n, how),
    "{rounds} Poisson cohorts": lambda one, n, how, rounds: rounds * _in_cohort(one, n, how, poisson=True),
}


@dataclass(frozen=True)
class Outcome:
    seed: int
    asked: str
    result: str
    """Verified, refused, slow, no answer (of the accountant) or crash."""
    words: str = ""
    seconds: float = 0.0
    falsified: str = ""
    """What came of the false claim, if it was tried: refused, slow or verified."""

    @property
    def failed(self) -> bool:
        return self.result in ("refused", "slow", "crash") or self.falsified == "verified"

    def __str__(self) -> str:
        false = f", FALSE ONE {self.falsified}" if self.falsified == "verified" else ""
        return f"{self.result}{false}: {self.asked}, {self.seconds:.1f} s, seed {self.seed}: {self.words}"


def question(rng: random.Random) -> tuple[str, Make, float]:
    """In words, the mechanism, and delta."""
    n = round(10.0 ** rng.uniform(1.7, 7.0))
    local = round(rng.choice(LOCAL) * rng.uniform(0.8, 1.2), 4)
    delta = rng.choice(DELTAS)
    randomizers = {**RANDOMIZERS, **MORE}
    name = rng.choice([*randomizers, *NO_RANDOMIZER])
    rounds = round(10.0 ** rng.uniform(0.5, 3.0)) if rng.random() < 0.9 else MANY_ROUNDS
    asked = f"n = {n}, epsilon0 = {local}, delta = {delta:g}"
    if name in NO_RANDOMIZER:
        made = others(n, local)
        name = rng.choice(list(made))
        times = rng.choice([1, rounds])
        return f"{name}, {times} times, {asked}", partial(made[name].__mul__, times), delta
    one = randomizers[name](local)
    facts = one if isinstance(one, sdp.Facts) else one.facts()
    how = rng.choice(["best", "best", "best-leaked", *names_for(facts)])
    setting = rng.choice(list(SETTINGS))
    words = f"{name}, {how}, {setting.format(rounds=rounds)}, {asked}"
    return words, partial(SETTINGS[setting], one, n, how, rounds), delta


def verified(claim: Callable[[], sdp.Certificate], seconds: float) -> tuple[str, str]:
    """(verified, refused or slow; in words)."""
    try:
        with limited(seconds):
            found = claim().verify()
    except _TooSlowError:
        return "slow", f"more than {seconds:g} s"
    except (sdp.NoCertificateError, ValueError) as error:
        return "refused", f"{type(error).__name__} {error}"
    return "verified" if found else "refused", str(found)


def below_the_truth(certificate: sdp.Certificate, lower: float) -> sdp.Certificate:
    """The same of an epsilon at which delta is larger."""
    content = certificate.to_dict()
    claim = lower * (1.0 - BELOW), certificate.delta
    return sdp.Certificate.made(*claim, content["rounds"], content["spacing"])


def outcome(seed: int, seconds: float) -> Outcome:
    warnings.simplefilter("ignore")
    rng = random.Random(seed)
    asked = "no question"
    try:
        with limited(ANSWER_SECONDS):
            asked, make, delta = question(rng)
            bound = make().epsilon(delta=delta)
        if not math.isfinite(bound.upper):
            return Outcome(seed, asked, "no answer", "epsilon is infinite")
        start = time.process_time()
        found = Outcome(seed, asked, *verified(bound.certificate, seconds))
        found = replace(found, seconds=time.process_time() - start)
        if found.result == "verified" and bound.lower > 0.0 and rng.random() < FALSIFIED:
            false = partial(below_the_truth, bound.certificate(), bound.lower)
            found = replace(found, falsified=verified(false, seconds)[0])
        return found
    except (_TooSlowError, sdp.NoCertificateError, ValueError) as error:
        return Outcome(seed, asked, "no answer", f"{type(error).__name__} {error}")
    except Exception as error:  # a crash is a result: the others are asked all the same
        return Outcome(seed, asked, "crash", repr(error))


def outcomes(seeds: Sequence[int], seconds: float, jobs: int) -> Iterator[Outcome]:
    ask = partial(outcome, seconds=seconds)
    if jobs == 1:
        yield from map(ask, seeds)
        return
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as workers:
        yield from workers.map(ask, seeds)


def summary(found: Sequence[Outcome]) -> str:
    results = Counter(one.result for one in found)
    false = Counter(one.falsified for one in found if one.falsified)
    lines = [", ".join(f"{count} {result}" for result, count in results.most_common())]
    if took := sorted(one.seconds for one in found if one.result == "verified"):
        at = [took[round(share * (len(took) - 1))] for share in (0.5, 0.9, 1.0)]
        lines.append("seconds of the verified: median {:.2f}, 90% {:.2f}, slowest {:.1f}".format(*at))
    told = ", ".join(f"{count} {result}" for result, count in false.most_common())
    lines.append(f"falsified: {false.total()} tried" + (f": {told}" if told else ""))
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1, help="of the first question; others follow one by one")
    parser.add_argument("--seconds", type=float, default=30.0, help="of CPU, for a certificate")
    parser.add_argument("--slow", type=float, default=math.inf, help="print what took more seconds than this")
    parser.add_argument("--jobs", type=int, default=1, help="processes, of one thread each")
    given = parser.parse_args()
    found = list[Outcome]()
    for one in outcomes(range(given.seed, given.seed + given.count), given.seconds, given.jobs):
        found.append(one)
        if one.failed or one.seconds > given.slow:
            print(one, flush=True)
    print(summary(found))
    sys.exit(any(one.falsified == "verified" for one in found))


if __name__ == "__main__":
    main()
