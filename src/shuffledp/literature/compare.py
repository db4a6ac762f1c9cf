"""``compare``: every bound of the literature that applies, beside the certified ones.

>>> import shuffledp as sdp
>>> survey = sdp.Shuffled(sdp.KaryRandomizedResponse(k=4, epsilon0=2.0), n=1000)
>>> found = sdp.compare(survey, delta=1e-6)
>>> found.best.bound
'blanket'
>>> found["clones specific to k-RR"].soundness
'unsound'
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

from shuffledp import _html, _validate
from shuffledp._digits import rounded_down, rounded_up
from shuffledp._progress import Progress
from shuffledp.accounting._analyses import ANALYSES, names_for
from shuffledp.accounting.mechanism import Composition, Mechanism, OneRound, Shuffled
from shuffledp.errors import NoCertificateError, OutsideRangeError
from shuffledp.literature import _entries, _quarantined
from shuffledp.literature._case import OUTSIDE, SOUND, UNSOUND, Case, Entry

_COLUMNS = ("bound", "value", "soundness", "seconds", "theorem", "note")
_CERTIFIED = {analysis.name: analysis.theorem for analysis in ANALYSES}
"""The certified analyses, and the theorem of each."""


@dataclass(frozen=True)
class Row:
    """One bound: its value, where it comes from, whether it can be relied on."""

    bound: str
    value: float
    soundness: str
    seconds: float
    theorem: str
    note: str = ""

    def cells(self) -> tuple[str, ...]:
        """As text. Values are rounded up, like the bounds themselves."""
        shown = rounded_up(self.value), self.soundness, f"{self.seconds:.2g}"
        return (self.bound, *shown, self.theorem, self.note)


@dataclass(frozen=True)
class Comparison:
    """Bounds of one quantity of one mechanism, the smallest first.

    ``lower`` is attained by concrete neighbours, for who sees the reports: what lies below it is wrong.
    ``left_out`` says why no published bound is among the rows, if none is."""

    mechanism: str
    quantity: str
    given: str
    level: float
    lower: float
    rows: tuple[Row, ...]
    left_out: str = ""

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, bound: str) -> Row:
        """The row of a bound, by its name."""
        for row in self.rows:
            if row.bound == bound:
                return row
        raise KeyError(f"no bound {bound!r}; there are {', '.join(r.bound for r in self.rows)}")

    @property
    def best(self) -> Row:
        """The smallest sound bound."""
        return next(row for row in self.rows if row.soundness != UNSOUND)

    @property
    def title(self) -> str:
        return f"{self.quantity} at {self.given} = {self.level:g}"

    def __str__(self) -> str:
        rows = [_COLUMNS, *(row.cells() for row in self.rows)]
        widths = [max(len(row[i]) for row in rows) for i in range(len(_COLUMNS))]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in rows
        ]
        lines.insert(1, "  ".join("-" * width for width in widths))
        truth = f"the truth is at least {rounded_down(self.lower)} (concrete neighbouring datasets)"
        said = [truth, self.left_out] if self.left_out else [truth]
        return "\n".join([f"{self.title}: {self.mechanism}", *lines, *said])

    def _repr_html_(self) -> str:
        truth = f"The truth is at least {rounded_down(self.lower)}."
        said = f"{truth} {self.left_out}".rstrip()
        return _html.table(
            _COLUMNS, [row.cells() for row in self.rows], f"{self.title}: {self.mechanism}. {said}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return asdict(self)

    def to_pandas(self) -> Any:
        """A pandas DataFrame, one row per bound (needs pandas)."""
        try:
            import pandas
        except ImportError as error:
            raise ImportError("pandas is needed for this: pip install pandas") from error
        frame = pandas.DataFrame([asdict(row) for row in self.rows], columns=list(_COLUMNS))
        frame.attrs.update(title=self.title, mechanism=self.mechanism, lower=self.lower)
        return frame

    def plot(self, ax: Any = None) -> Any:
        """The bounds and the truth's lower end on one axis (needs the extra ``plot``)."""
        from shuffledp.plotting._rows import bounds_compared

        rows = [(row.bound, row.value, row.soundness) for row in self.rows]
        return bounds_compared(rows, quantity=self.quantity, lower=self.lower, ax=ax)


def compare(mechanism: Mechanism, *, delta: float | None = None, epsilon: float | None = None) -> Comparison:
    """Every bound of epsilon at ``delta``, or of delta at ``epsilon``, that applies to ``mechanism``.

    A theorem whose range does not hold answers what holds without it: epsilon0 for every round (or
    delta = 1), and says so. A bound that is unsound says why."""
    if not isinstance(mechanism, Mechanism):
        raise TypeError(f"mechanism must be a shuffledp Mechanism, got {mechanism!r}")
    others = [part for part, count in mechanism.parts if count and not isinstance(part, Shuffled)]
    if others:
        raise TypeError(
            f"mechanism must be rounds of Shuffled to be compared, got {others[0]!r}: one analysis alone and "
            "no published bound is about it; its epsilon(delta=...) encloses it"
        )
    if (delta is None) == (epsilon is None):
        raise ValueError(f"give one of delta and epsilon, got {delta=} and {epsilon=}")
    if delta is not None:
        quantity, given = "epsilon", "delta"
        level = _validate.probability("delta", delta, positive=True)
    else:
        quantity, given, level = "delta", "epsilon", _validate.positive("epsilon", epsilon)
    with Progress.clock("comparing bounds"):
        # Of the reports alone: what another analysis adds to the adversary's view is no fault of the others.
        # Finer than epsilon() looks for it: here it shows which bounds are too small.
        lower = getattr(_under(mechanism, "best"), f"lower_{quantity}")(**{given: level})
        rows, left_out = [*_certified(mechanism, quantity, level)], ""
        published = _published(mechanism, quantity, level)
        if isinstance(published, str):
            left_out = f"No published bound is shown: {published}."
        else:
            rows += published
    rows.sort(key=lambda row: row.value)
    return Comparison(repr(mechanism), quantity, given, level, float(lower), tuple(rows), left_out)


def _timed(answer: Callable[[], float]) -> tuple[float, float]:
    start = time.perf_counter()
    value = answer()
    return value, time.perf_counter() - start


def _certified(mechanism: Mechanism, quantity: str, level: float) -> Iterator[Row]:
    for name, version in _versions(mechanism).items():
        if quantity == "delta" and name == "strong" and level >= _pure(mechanism):
            continue  # only outcomes that give the input away are left: slow, and no news

        def answer(version: Mechanism = version) -> float:
            if quantity == "epsilon":
                return version.upper_epsilon(delta=level)
            return float(version.upper_delta(epsilon=level))

        try:
            value, seconds = _timed(answer)
        except NoCertificateError as error:
            yield Row(name, math.inf, SOUND, 0.0, _CERTIFIED[name], str(error))
        else:
            yield Row(name, value, SOUND, seconds, _CERTIFIED[name], "certified numerically")


def _versions(mechanism: Mechanism) -> dict[str, Mechanism]:
    """The mechanism under every analysis that applies to all its rounds, the tightest first."""
    kinds = [part for part, count in mechanism.parts if count and isinstance(part, Shuffled)]
    known = [names_for(part.facts) for part in kinds]
    if not known:
        return {}
    coins = any(part.rate is not None for part in kinds)
    every = [name for name in known[0] if not (coins and name == "strong")]  # it covers fixed sizes only
    shared = [name for name in every if all(name in other for other in known)]
    return {name: _under(mechanism, name) for name in shared}


def _under(mechanism: Mechanism, analysis: str) -> Mechanism:
    """Every round of the mechanism under one analysis."""

    def changed(part: OneRound) -> OneRound:
        return replace(part, analysis=analysis) if isinstance(part, Shuffled) else part

    rounds = tuple((changed(part), count) for part, count in mechanism.parts)
    return rounds[0][0] if len(rounds) == 1 and rounds[0][1] == 1 else Composition(rounds)


def _pure(mechanism: Mechanism) -> float:
    """The local epsilons of all rounds together."""
    kinds = [(part, count) for part, count in mechanism.parts if isinstance(part, Shuffled)]
    return sum(count * float(part.facts.epsilon0.upper) for part, count in kinds)


def _published(mechanism: Mechanism, quantity: str, level: float) -> list[Row] | str:
    """The rows, or why there are none."""
    case = Case.of(mechanism)
    if isinstance(case, str):
        return case
    if quantity == "delta" and level >= case.rounds * case.epsilon0:
        return "delta is zero from the sum of all local epsilons on, without any theorem"
    entries = (*_entries.ENTRIES, *_quarantined.ENTRIES)
    asked = [entry for entry in entries if entry.applies(case) and getattr(entry, quantity) is not None]
    return [_row(entry, case, quantity, level) for entry in asked]


def _row(entry: Entry, case: Case, quantity: str, level: float) -> Row:
    bound = getattr(entry, quantity)
    try:
        value, seconds = _timed(lambda: bound(case, level))
    except OutsideRangeError as error:
        value = case.rounds * case.epsilon0 if quantity == "epsilon" else 1.0
        return Row(entry.name, value, OUTSIDE, 0.0, entry.theorem, f"trivial: {error}")
    return Row(entry.name, value, entry.soundness, seconds, entry.theorem, entry.reason)
