"""Does a client do what it claims? Run it many times on two inputs, and see what its reports give away.

On half of the runs the reports are sorted by how much more often one input sends them than the other; the
best set of reports is then *tested* on the other half, with exact (Clopper-Pearson) bounds of its two
probabilities. If P(S) >= p and P'(S) <= q, no epsilon0 below log(p/q) is true (of a claim with a delta0,
log((p - delta0)/q)): with the stated confidence, whatever the client is. A claim below that is false. A
claim that stands is not proved: an audit finds what it looks for.

Reports that are floats hardly ever repeat. They are looked at in two more ways: by their size, and by the
place of their last binary digit, which noise that is drawn as a float gives the input away by (Mironov 2012).

The same is done for shuffles of n reports, all other people holding a third value, by the sum of the reports'
scores: log((p - delta)/q) is below the true epsilon at delta.

>>> import shuffledp as sdp
>>> honest = sdp.KaryRandomizedResponse(k=4, epsilon0=1.0)
>>> audit(honest.randomize, honest, runs=2000).violated
False
>>> audit(lambda value: value, honest, runs=2000).violated
True
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from shuffledp import _validate
from shuffledp._certified.binomial import log_upper_tail
from shuffledp._certified.rounding import CALL, up
from shuffledp._digits import rounded_up, written
from shuffledp._progress import Progress
from shuffledp.accounting.mechanism import Shuffled

_HALVINGS = 60  # of the search for a bound of a probability
_ROUNDED_DOWN = 1e-12  # of a probability that is searched for: less than any count can tell

_BINS = 12  # of the sizes of reports that are floats

Client = Callable[[Any], Any]
View = Callable[[Any], Hashable]
Item = TypeVar("Item")


@dataclass(frozen=True)
class Audit:
    """What was claimed, and what the runs show with ``confidence``.

    ``found``: no smaller epsilon0 is true. ``impossible``: reports that the claimed randomizer never sends.
    With shuffles: ``shuffled_found`` is below the true epsilon at ``delta``, ``shuffled_claim`` the certified
    one."""

    claim: float
    found: float
    runs: int
    confidence: float
    impossible: int
    shuffled_n: int | None = None
    delta: float | None = None
    shuffled_claim: float | None = None
    shuffled_found: float | None = None

    @property
    def violated(self) -> bool:
        """Whether the claim is false, or reports came that it does not know."""
        shuffled = (self.shuffled_found or 0.0) > (self.shuffled_claim or 0.0) > 0.0
        return self.found > self.claim or self.impossible > 0 or shuffled

    def __str__(self) -> str:
        verdict = "VIOLATED" if self.violated else "not refuted"
        lines = [
            f"{verdict}: epsilon0 = {rounded_up(self.claim, 6)} is claimed, "
            f"{self.found:.4g} or more was seen",
            f"runs        {self.runs} of each of two inputs, confidence {written(self.confidence)}",
        ]
        if self.impossible:
            lines.append(f"impossible  {self.impossible} reports that the claimed randomizer never sends")
        if self.shuffled_claim is not None and self.shuffled_found is not None and self.delta is not None:
            lines.append(
                f"shuffled    {self.shuffled_n} reports at delta = {written(self.delta)}: "
                f"{rounded_up(self.shuffled_claim, 6)} is certified, {self.shuffled_found:.4g} or more seen"
            )
        return "\n".join(lines)


def audit(
    client: Client,
    claimed: Any,
    *,
    inputs: Sequence[Any] = (0, 1),
    runs: int = 20_000,
    confidence: float = 0.95,
    shuffled: int | None = None,
    third: Any = None,
    delta: float = 1e-3,
) -> Audit:
    """Run ``client(value)``, which gives one report, on both ``inputs``; test the ``claimed`` randomizer.

    ``shuffled``: also test shuffles of so many reports, where all others hold ``third`` (default: the second
    input), at ``delta``; a tenth of ``runs`` of them on either side."""
    times = _validate.count("runs", runs, least=100)
    sure = _validate.probability("confidence", confidence)
    if not 0.5 <= sure < 1.0:
        raise ValueError(f"confidence must be in [0.5, 1), got {confidence!r}")
    if len(inputs) != 2:
        raise ValueError(f"inputs must be two different values, got {inputs!r}")
    samples: list[list[Any]] = []
    impossible = 0
    with Progress(2 * times, what="runs") as progress:
        for value in inputs:
            reports = []
            for _ in range(times):
                report = client(value)
                impossible += not _possible(claimed, report)
                reports.append(report)
                progress.advance(1)
            samples.append(reports)
    facts, learned = claimed.facts(), _halves(samples)[0]
    views = _views(learned)
    share = 0.5 * (1.0 - sure) / (1.0 if shuffled is None else 2.0)
    told = [_told_by(view, samples, share / len(views), facts.delta0) for view in views]
    found, view = max(told), views[told.index(max(told))]
    result = Audit(facts.epsilon0.upper, found, times, sure, impossible)
    if shuffled is None:
        return result
    n = _validate.count("shuffled", shuffled, least=2)
    level = _validate.probability("delta", delta)
    score = _scores(*(Counter(map(view, part)) for part in samples))
    rest = inputs[1] if third is None else third

    def total(value: Any) -> float:
        return sum(score.get(view(client(each)), 0.0) for each in [value, *[rest] * (n - 1)])

    sums = [[total(value) for _ in range(max(times // 10, 50))] for value in inputs]
    before, after = _halves(sums)
    exchanged = _mirrored(before), _mirrored(after)
    seen = [_threshold(*parts, share, level) for parts in ((before, after), exchanged)]
    certified = Shuffled(claimed, n=n).epsilon(delta=level).upper
    return Audit(result.claim, found, times, sure, impossible, n, level, float(certified), max(0.0, *seen))


def _halves(samples: list[list[Item]]) -> tuple[list[list[Item]], list[list[Item]]]:
    """Every other run, to learn from and to test on."""
    return [part[::2] for part in samples], [part[1::2] for part in samples]


def _views(learned: list[list[Any]]) -> list[View]:
    """The ways to look at reports: each as it is; floats also by size and by their last binary digit."""
    reports = [report for part in learned for report in part]
    if not all(isinstance(one, float | np.floating) and math.isfinite(one) for one in reports):
        return [_key]
    edges = np.quantile(np.array(reports, float), np.linspace(0.0, 1.0, _BINS + 1)[1:-1])
    return [_key, lambda report: int(np.searchsorted(edges, float(report))), _last_digit]


def _last_digit(report: Any) -> Hashable:
    """k where a float is an odd multiple of 2^k; None of zero and of what is no number."""
    if report == 0.0 or not math.isfinite(report):
        return None
    fraction, exponent = math.frexp(report)
    whole = int(math.ldexp(fraction, 53))
    return exponent - 54 + (whole & -whole).bit_length()


def _told_by(view: View, samples: list[list[Any]], doubt: float, delta: float) -> float:
    """The largest epsilon that a set of reports refutes, either way round."""
    learned, tested = _halves([[view(report) for report in part] for part in samples])
    ways = (learned, tested), (learned[::-1], tested[::-1])
    return max(_told(*parts, doubt, delta) for parts in ways)


def _key(report: Any) -> Hashable:
    """A report as something that can be counted."""
    if isinstance(report, np.ndarray):
        return (report.shape, report.tobytes())
    if isinstance(report, np.generic):
        return repr(report)
    return report if isinstance(report, Hashable) else repr(report)


def _possible(claimed: Any, report: Any) -> bool:
    """Whether the claimed randomizer can send this; True where it cannot tell."""
    outputs, support = getattr(claimed, "outputs", None), getattr(claimed, "support", None)
    try:
        array = np.asarray(report)
        if outputs is not None:
            return bool(array.dtype.kind in "iu" and ((array >= 0) & (array < outputs)).all())
        if support is not None:
            support(array)
    except (TypeError, ValueError):
        return False
    return True


def _scores(first: Counter[Hashable], second: Counter[Hashable]) -> dict[Hashable, float]:
    """How much a report speaks for the first input."""
    return {key: math.log((first[key] + 0.5) / (second[key] + 0.5)) for key in first.keys() | second.keys()}


def _told(learned: list[list[Hashable]], tested: list[list[Hashable]], doubt: float, delta: float) -> float:
    """The largest epsilon that some set of reports refutes: the set is learned, then tested."""
    first, second = map(Counter, learned)
    score = _scores(first, second)
    order = sorted(score, key=lambda key: -score[key])
    p = np.cumsum([first[key] for key in order])
    q = np.cumsum([second[key] for key in order])
    # Roughly what the test will say: counts less and more by two deviations.
    kept = np.maximum(p - 2.0 * np.sqrt(p + 1.0) - delta * len(learned[0]), 0.1)
    rough = np.log(kept / (q + 2.0 * np.sqrt(q + 1.0) + 1.0))
    chosen = set(order[: int(rough.argmax()) + 1])
    return _refuted([[key in chosen for key in part] for part in tested], doubt, delta)


def _threshold(learned: list[list[float]], tested: list[list[float]], doubt: float, delta: float) -> float:
    """The same for sums, by the best threshold."""
    a, b = map(np.sort, learned)
    cuts = np.unique(np.concatenate([a, b]))
    p, q = (len(part) - np.searchsorted(part, cuts) for part in (a, b))
    kept = np.maximum(p - 2.0 * np.sqrt(p + 1.0) - delta * len(a), 0.1)
    cut = float(cuts[int((np.log(kept) - np.log(q + 2.0 * np.sqrt(q + 1.0) + 1.0)).argmax())])
    return _refuted([[value >= cut for value in part] for part in tested], doubt, delta)


def _mirrored(parts: list[list[float]]) -> list[list[float]]:
    """The roles of the two inputs exchanged."""
    return [[-value for value in part] for part in parts[::-1]]


def _refuted(met: list[list[bool]], doubt: float, delta: float) -> float:
    """log((p - delta)/q) for the bounds of both probabilities, each wrong with probability ``doubt`` / 2."""
    p = at_least(sum(met[0]), len(met[0]), 0.5 * doubt)
    q = at_most(sum(met[1]), len(met[1]), 0.5 * doubt)
    return max(0.0, math.log((p - delta) / q)) if p > delta else 0.0


def at_least(hits: int, runs: int, doubt: float) -> float:
    """A lower bound of a probability that was met ``hits`` times; wrong with probability at most ``doubt``.

    >>> round(at_least(50, 100, doubt=0.025), 4)
    0.3983
    """
    low, high = 0.0, hits / runs
    for _ in range(_HALVINGS if hits else 0):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if _tail(runs, hits, middle) <= doubt else (low, middle)
    return max(0.0, low - _ROUNDED_DOWN)


def at_most(hits: int, runs: int, doubt: float) -> float:
    """Likewise an upper bound."""
    return 1.0 - at_least(runs - hits, runs, doubt)


def _tail(runs: int, hits: int, p: float) -> float:
    """P(Bin(runs, p) >= hits), rounded up; 1 where that is not beyond the mean."""
    if p <= 0.0:
        return 0.0
    if hits == 1:
        return up(-math.expm1(runs * math.log1p(-p)), operations=4 * CALL)
    if hits < (runs - 1) * p + 1.0:
        return 1.0
    value, error = log_upper_tail(float(runs), np.array([float(hits)]), p, 1.0 - p)
    return math.exp(min(float(value[0] + error[0]), 0.0))
