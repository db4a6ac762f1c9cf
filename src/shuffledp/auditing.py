"""Does a client do what it claims? Run it many times on two inputs, and see what its reports give away.

Part of the runs decide on a set of reports, which is then *tested* on the other runs, with exact
(Clopper-Pearson) bounds of its two probabilities. If P(S) >= p and P'(S) <= q, no epsilon0 below log(p/q) is
true (of a claim with a delta0, log((p - delta0)/q)): with the stated confidence, whatever the client is, if
its runs are independent. A claim below that is false. A claim that stands is not proved: an audit finds what
it looks for.

The same is done for shuffles of n reports: log((p - delta)/q) is below the true epsilon at delta.

*What is looked at.* Where the claimed randomizer says how likely reports are (``likelihoods``), the pair of
inputs and what all others hold are those of the accountant's own lower end, and its test is one candidate: by
the ratio of the likelihoods of all that is seen, which for others who hold z is that of the means of R_x/R_z
and R_x'/R_z (docs/proofs/crowd.md, section 1). No test tells the claimed randomizer's datasets apart better.
A client that does something else may give itself away elsewhere, so tests that know nothing of the claim are
candidates, too: by scores, how much more often one input sent a report than the other in some of the runs
(of a shuffle, their sum). Reports that are floats hardly ever repeat. They are looked at in two more ways: by
their size, and by the place of their last binary digit, which noise that is drawn as a float gives the input
away by (Mironov 2012).

*What is learned where.* A quarter of the runs teach the scores, another one chooses the test and its
threshold, and half of them are what it is judged by. Of shuffles, whose scores all single runs teach, a half
chooses and the other half judges.

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
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from shuffledp import _validate
from shuffledp._certified.binomial import log_upper_tail
from shuffledp._certified.rounding import CALL, Floats, up
from shuffledp._digits import rounded_down, rounded_up, written
from shuffledp._progress import Progress
from shuffledp.accounting._ends.upper import DEFAULT_TOLERANCE, epsilon_of
from shuffledp.accounting._witnesses import triples
from shuffledp.accounting.mechanism import Shuffled
from shuffledp.errors import NoCertificateError

_HALVINGS = 60  # of the search for a bound of a probability
_ROUNDED_DOWN = 1e-12  # of a probability that is searched for: less than any count can tell

_BINS = 12  # of the sizes of reports that are floats
_NEVER = 1e-200  # power: for the likelihood of what others cannot send, which outweighs all they can
_DECIMALS = 9  # power: of statistics, so that the same reports in another order count as equal

Client = Callable[[Any], Any]
View = Callable[[Any], Hashable]
Statistic = Callable[[Sequence[Sequence[Any]]], Floats]
"""Of groups of equally many reports: a number for each, large where the first input is likely."""

BY_CLAIM, LEARNED = "likelihoods of the claim", "learned scores"
"""What a test goes by."""


@dataclass(frozen=True)
class _Test:
    """Whether a group of reports is told to be of the first input: by a statistic, from a threshold on."""

    name: str
    statistic: Statistic


@dataclass(frozen=True)
class Audit:
    """What was claimed, and what the runs show with ``confidence``.

    ``found``: no smaller epsilon0 is true. ``impossible``: reports that the claimed randomizer never sends.
    With shuffles: ``shuffled_found`` is below the true epsilon at ``delta``, ``shuffled_claim`` the certified
    one. ``inputs`` were told apart, where all ``others`` held one value; ``test`` and ``shuffled_test``: what
    by, "likelihoods of the claim" or "learned scores"."""

    claim: float
    found: float
    runs: int
    confidence: float
    impossible: int
    shuffled_n: int | None = None
    delta: float | None = None
    shuffled_claim: float | None = None
    shuffled_found: float | None = None
    inputs: tuple[Any, Any] = (0, 1)
    others: Any = None
    test: str = LEARNED
    shuffled_test: str | None = None

    @property
    def violated(self) -> bool:
        """Whether the claim is false, or reports came that it does not know."""
        shuffled = (self.shuffled_found or 0.0) > (self.shuffled_claim or 0.0) > 0.0
        return self.found > self.claim or self.impossible > 0 or shuffled

    def __str__(self) -> str:
        verdict = "VIOLATED" if self.violated else "not refuted"
        first, second = map(_shown, self.inputs)
        lines = [
            f"{verdict}: epsilon0 = {rounded_up(self.claim, 6)} is claimed, "
            f"{rounded_down(self.found, 4)} or more was seen",
            f"runs        {self.runs} of each of two inputs, {first} and {second}, "
            f"confidence {written(self.confidence)}",
            f"test        {self.test}",
        ]
        if self.impossible:
            lines.append(f"impossible  {self.impossible} reports that the claimed randomizer never sends")
        if self.shuffled_claim is not None and self.shuffled_found is not None and self.delta is not None:
            lines += [
                f"shuffled    {self.shuffled_n} reports at delta = {written(self.delta)}: "
                f"{rounded_up(self.shuffled_claim, 6)} is certified, "
                f"{rounded_down(self.shuffled_found, 4)} or more seen",
                f"  others    all hold {_shown(self.others)}",
                f"  test      {self.shuffled_test}",
            ]
        return "\n".join(lines)


def _shown(value: Any) -> str:
    return str(value) if np.ndim(value) == 0 else "a vector"


def audit(
    client: Client,
    claimed: Any,
    *,
    inputs: Sequence[Any] | None = None,
    runs: int = 20_000,
    confidence: float = 0.95,
    shuffled: int | None = None,
    third: Any = None,
    delta: float = 1e-3,
) -> Audit:
    """Run ``client(value)``, which gives one report, on both ``inputs``; test the ``claimed`` randomizer.

    ``shuffled``: also test shuffles of so many reports, where all others hold ``third``, at ``delta``; a
    tenth of ``runs`` of them on either side. By default ``inputs`` and ``third`` are what people hold in the
    accountant's own lower end of the claim, if the claim states it; else 0 and 1, and the second input. The
    test is that of the lower end, or a learned one: part of the runs decide, the others judge."""
    times = _validate.count("runs", runs, least=100)
    sure = _validate.probability("confidence", confidence)
    if not 0.5 <= sure < 1.0:
        raise ValueError(f"confidence must be in [0.5, 1), got {confidence!r}")
    if inputs is not None and len(inputs) != 2:
        raise ValueError(f"inputs must be two different values, got {inputs!r}")
    n = 1 if shuffled is None else _validate.count("shuffled", shuffled, least=2)
    level = _validate.probability("delta", delta)
    one = Shuffled(claimed, n=n)
    certified = None if shuffled is None else float(one.epsilon(delta=level).upper)
    held = _held(one, level, certified) if inputs is None else (inputs[0], inputs[1], inputs[1])
    first, second, others = held
    others = others if third is None else third
    by_claim = _by_claim(claimed, (first, second, others))
    share = 0.5 * (1.0 - sure) / (1.0 if shuffled is None else 2.0)  # of doubt, for either way round
    samples, impossible = _runs(client, claimed, (first, second), times)
    found, test = _one_report(by_claim, samples, share, one.facts.delta0)
    result = Audit(
        float(one.facts.epsilon0.upper),
        found,
        times,
        sure,
        impossible,
        inputs=(first, second),
        test=test.name,
    )
    if shuffled is None:
        return result
    tests = [*by_claim, *(_learned(view, samples) for view in _views(samples))]
    values = _shuffles(client, tests, (first, second), others, n, max(times // 10, 50))
    found, test = _judged(tests, *_halves(values), share, level)
    return replace(
        result,
        shuffled_n=n,
        delta=level,
        shuffled_claim=certified,
        shuffled_found=found,
        others=others,
        shuffled_test=test.name,
    )


def _held(one: Shuffled, delta: float, certified: float | None) -> tuple[Any, Any, Any]:
    """(x, x', what all others hold) where the claim's lower end at ``delta`` is largest."""
    stated: tuple[Any, ...] = getattr(one.randomizer, "concrete_inputs", tuple)()
    inputs, matrix = getattr(one.randomizer, "row_inputs", None), one.facts.matrix
    if inputs is not None and matrix is not None:
        stated = (*stated, *(tuple(inputs[row] for row in rows) for rows in triples(matrix, one.n)))
    pairs = one.round.witnesses if stated else ()
    if len(stated) != len(pairs):  # laws of its own
        return 0, 1, 1
    known: list[tuple[tuple[Any, Any, Any], Any]] = [
        (held, pair) for held, pair in zip(stated, pairs, strict=True) if held is not None
    ]
    if len(known) < 2:
        return known[0][0] if known else (0, 1, 1)
    upper = one.upper_epsilon(delta=delta) if certified is None else certified

    def shown(pair: Any) -> float:
        rounds = [(replace(one.round, witnesses=(pair,)), 1)]
        try:
            return epsilon_of(rounds, delta, DEFAULT_TOLERANCE, known=(upper, ""))[0]
        except NoCertificateError:
            return 0.0

    return max(known, key=lambda each: shown(each[1]))[0]


def _runs(client: Client, claimed: Any, inputs: tuple[Any, Any], times: int) -> tuple[list[list[Any]], int]:
    """Reports of either input, and how many of them the claimed randomizer never sends."""
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
    return samples, impossible


def _shuffles(
    client: Client, tests: Sequence[_Test], inputs: tuple[Any, Any], others: Any, n: int, count: int
) -> list[Floats]:
    """What the tests see of so many shuffles of either input: their order is never looked at."""
    with Progress(2 * count, what="shuffles") as progress:

        def seen(value: Any) -> Floats:
            progress.advance(1)
            group = [client(each) for each in (value, *[others] * (n - 1))]
            return np.asarray(_values(tests, [group])[0])

        return [np.array([seen(value) for _ in range(count)]) for value in inputs]


def _one_report(
    by_claim: list[_Test], samples: list[list[Any]], doubt: float, delta: float
) -> tuple[float, _Test]:
    """What single reports refute: a quarter of them teaches, a quarter chooses, a half judges."""
    learning, judging = _halves(samples)
    teaching, choosing = _halves(learning)
    tests = [*by_claim, *(_learned(view, teaching) for view in _views(teaching))]
    chosen, judged = (
        [_values(tests, [(report,) for report in side]) for side in part] for part in (choosing, judging)
    )
    return _judged(tests, chosen, judged, doubt, delta)


def _values(tests: Sequence[_Test], groups: Sequence[Sequence[Any]]) -> Floats:
    """A row for each group, a column for each test."""
    return np.stack([test.statistic(groups) for test in tests], axis=1)


def _halves(samples: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """Every other run, to learn from and to test on."""
    return [part[::2] for part in samples], [part[1::2] for part in samples]


def _by_claim(claimed: Any, held: tuple[Any, Any, Any]) -> list[_Test]:
    """The test of the lower end, where the claim says how likely reports are: exact if all others hold one
    value z, for then the density of a shuffle is in proportion to the mean of R_x/R_z over its reports."""
    likelihoods = getattr(claimed, "likelihoods", None)
    if likelihoods is None:
        return []

    def weights(reports: Sequence[Any]) -> Floats:
        try:
            found = np.asarray(likelihoods(np.asarray(reports), np.asarray(held)))
        except (TypeError, ValueError):  # a report that the claim does not know says nothing here
            alone = len(reports) == 1
            return np.ones((1, 2)) if alone else np.concatenate([weights([report]) for report in reports])
        return np.asarray(found[:, :2] / np.maximum(found[:, 2:], _NEVER))

    def statistic(groups: Sequence[Sequence[Any]]) -> Floats:
        flat = [report for group in groups for report in group]
        first, second = weights(flat).reshape(len(groups), -1, 2).sum(axis=1).T
        logs = np.log(np.maximum(np.stack([first, second]), _NEVER))
        return np.asarray(np.round(logs[0] - logs[1], _DECIMALS))

    return [_Test(BY_CLAIM, statistic)]


def _learned(view: View, samples: list[list[Any]]) -> _Test:
    """By how much more often one input sent what is seen of each report."""
    score = _scores(*(Counter(map(view, part)) for part in samples))

    def statistic(groups: Sequence[Sequence[Any]]) -> Floats:
        return np.array([math.fsum(score.get(view(report), 0.0) for report in group) for group in groups])

    return _Test(LEARNED, statistic)


def _judged(
    tests: Sequence[_Test], choosing: list[Floats], judging: list[Floats], doubt: float, delta: float
) -> tuple[float, _Test]:
    """The largest epsilon that is refuted, either way round, each time with a test and a threshold that
    ``choosing`` chose alone."""
    ways = [(choosing, judging), ([-part for part in choosing[::-1]], [-part for part in judging[::-1]])]
    found = []
    for chosen, tested in ways:
        cuts = [_cut(first, second, delta) for first, second in zip(chosen[0].T, chosen[1].T, strict=True)]
        best = max(range(len(tests)), key=lambda i: cuts[i][0])
        met = [(part[:, best] >= cuts[best][1]).tolist() for part in tested]
        found.append((_refuted(met, doubt, delta), tests[best]))
    return max(found, key=lambda each: each[0])


def _cut(first: Floats, second: Floats, delta: float) -> tuple[float, float]:
    """About what the best threshold refutes, and that threshold."""
    cuts = np.unique(np.concatenate([first, second]))
    p, q = (len(part) - np.searchsorted(np.sort(part), cuts) for part in (first, second))
    # Roughly what the test will say: counts less and more by two deviations.
    kept = np.maximum(p - 2.0 * np.sqrt(p + 1.0) - delta * len(first), 0.1)
    rough = np.log(kept) - np.log(q + 2.0 * np.sqrt(q + 1.0) + 1.0)
    best = int(rough.argmax())
    return float(rough[best]), float(cuts[best])


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
        if outputs is not None and getattr(claimed, "report_shape", ()) == ():  # quicker
            return bool(array.dtype.kind in "iu" and ((array >= 0) & (array < outputs)).all())
        if support is not None:
            support(array)
    except (TypeError, ValueError):
        return False
    return True


def _scores(first: Counter[Hashable], second: Counter[Hashable]) -> dict[Hashable, float]:
    """How much a report speaks for the first input."""
    return {key: math.log((first[key] + 0.5) / (second[key] + 0.5)) for key in first.keys() | second.keys()}


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
