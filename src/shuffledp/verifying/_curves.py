"""The curves of one round, from the theorems, in balls: ``upper(curve, epsilon, enough)``.

A curve is a JSON object; ``kind`` says which theorem it stands on (docs/reference/certificates.md):

    clones, clones-2021, strong    laws of X made here of epsilon0, or of a rate
    law, matrix                    laws of X given by their masses
    binary                         binary randomized response, over all datasets
    cohort, approximate            made of a base curve
    losses                         a privacy loss distribution
    mixture                        one of some, met with known probabilities, and seen
    largest, least                 the largest of some; any of some, all of which hold

Whatever is found is an upper bound; ``enough`` says when to stop refining."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from flint import arb

from shuffledp.verifying._balls import exact, near, positive, probability
from shuffledp.verifying._binary import binary
from shuffledp.verifying._positive_part import Variable, positive_part

Curve = dict[str, Any]
_SLACK = 1e-6  # of totals: what a law may miss one by is a mistake from here on
_FINER = 0.95  # speed
_MOST_PAIRS = 20_000  # speed


def upper(curve: Curve, epsilon: arb, enough: arb) -> arb:
    """An upper bound of the curve at e^epsilon."""
    kind = curve.get("kind")
    if kind not in _KINDS:
        raise ValueError(f"kind must be one of {', '.join(map(repr, _KINDS))}, got {kind!r}")
    return _KINDS[kind](curve, epsilon, enough).min(arb(1))


@dataclass(frozen=True)
class Law:
    """Masses per type of report, among n users: the law of X of Theorem T1."""

    n: int
    types: tuple[tuple[arb, arb, arb], ...]
    """(gap = own - other, other, clone)."""

    def upper(self, epsilon: arb, enough: arb) -> arb:
        growth = epsilon.expm1()
        weights = [(gap - growth * other, clone) for gap, other, clone in self.types]
        seen = sum((positive(w) for w, clone in weights if clone.is_zero()), arb(0))
        hidden = [(w / clone, clone) for w, clone in weights if not clone.is_zero()]
        if not hidden or not enough > seen:
            return seen + sum((positive(x) * clone for x, clone in hidden), arb(0))
        values, masses = zip(*hidden, strict=True)
        return seen + positive_part(Variable(values, masses), self.n, enough - seen)

    def in_cohort(self, share: arb) -> Law:
        """T5': X' = share X + (1 - share)(1 - a), what hides nothing being one more type.

        Where that is next to nothing it is left out: its X' is not positive, so that zero is no less."""
        rest = 1 - sum((clone for *_, clone in self.types), arb(0))
        rows = [*self.types, (arb(0), arb(0), rest)] if rest > arb(2) ** -40 else self.types
        return Law(self.n, tuple((share * g, share * v + (1 - share) * c, c) for g, v, c in rows))


def _count(curve: Curve, name: str) -> int:
    value = curve[name]
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError(f"{name} must be a whole number of at least 1, got {value!r}")
    return value


def _clones(curve: Curve, epsilon: arb, enough: arb) -> arb:
    """T2: E - a and 1 - aE, each with probability 1/(E + 1); 2021: each with 1/(2E)."""
    local = exact(curve["epsilon0"])
    if not local >= 0:
        raise ValueError(f"epsilon0 must not be negative, got {curve['epsilon0']!r}")
    grown = local.exp()
    own, other = grown / (grown + 1), 1 / (grown + 1)
    gap = (local / 2).tanh()
    clone = other if curve["kind"] == "clones" else 1 / (2 * grown)
    law = Law(_count(curve, "n"), ((gap, other, clone), (-gap, own, clone)))
    return law.upper(epsilon, enough)


def _strong(curve: Curve, epsilon: arb, enough: arb) -> arb:
    """The differing user's coin is told: with probability ``weight`` the truth, hidden at ``rate``."""
    clone, weight = probability(curve["rate"]) / 2, probability(curve["weight"])
    law = Law(_count(curve, "n"), ((arb(1), arb(0), clone), (arb(-1), arb(1), clone)))
    return weight * law.upper(epsilon, enough / weight)


def _law(curve: Curve, epsilon: arb, enough: arb) -> arb:
    """One pair of inputs, both ways."""
    rows = [tuple(row) for row in curve["types"]]
    _check_totals(rows)
    types = tuple((near(gap), probability(other), probability(clone)) for _, other, gap, clone in rows)
    law = Law(_count(curve, "n"), types)
    ways = [law]
    if sorted((u, v, c) for u, v, _, c in rows) != sorted((v, u, c) for u, v, _, c in rows):
        back = tuple((near(-gap), probability(own), probability(clone)) for own, _, gap, clone in rows)
        ways.append(Law(law.n, back))
    return _largest_of(way.upper(epsilon, enough) for way in ways)


def _check_totals(rows: list[tuple[float, ...]]) -> None:
    own, other, clone = (math.fsum(row[i] for row in rows) for i in (0, 1, 3))
    if not (own >= 1.0 - _SLACK and other >= 1.0 - _SLACK and clone <= 1.0 + _SLACK):
        raise ValueError(
            f"own and other must sum to 1, and clone to no more, got {own!r}, {other!r}, {clone!r}"
        )
    for u, v, gap, _ in rows:
        if not abs(gap - (u - v)) <= _SLACK * (u + v):
            raise ValueError(f"gap must be own - other, got {gap!r} for {u!r} - {v!r}")


def _matrix(curve: Curve, epsilon: arb, enough: arb) -> arb:
    """All ordered pairs of rows, hidden by the smallest entry of every column."""
    rows = [[float(entry) for entry in row] for row in curve["rows"]]
    laws = dict.fromkeys(_pairs(rows))
    if len(laws) > _MOST_PAIRS:
        raise ValueError(f"at most {_MOST_PAIRS} different pairs of inputs are verified, got {len(laws)}")
    n, share = _count(curve, "n"), probability(curve.get("fraction", 1.0))
    made = (Law(n, tuple((near(u) - near(v), near(v), near(c)) for u, v, c in law if u or v)) for law in laws)
    whole = float(curve.get("fraction", 1.0)) == 1.0
    return _largest_of((law if whole else law.in_cohort(share)).upper(epsilon, enough) for law in made)


def _pairs(rows: list[list[float]]) -> Iterator[tuple[tuple[float, float, float], ...]]:
    least = [min(column) for column in zip(*rows, strict=True)]
    for x in rows:
        for y in rows:
            if x is not y:
                yield tuple(sorted(zip(x, y, least, strict=True)))


def _largest_of(values: Iterator[arb]) -> arb:
    result = arb(0)
    for value in values:
        result = result.max(value)
    return result


def _cohort(curve: Curve, epsilon: arb, enough: arb) -> arb:
    """T5: g H of the cohort at 1 + (a - 1)/g."""
    share = probability(curve["fraction"])
    inner = (epsilon.expm1() / share).log1p()
    return share * upper(curve["base"], inner, enough / share)


def _approximate(curve: Curve, epsilon: arb, enough: arb) -> arb:
    """T9: clones at a smaller epsilon, ``at``, and what delta0 moves there."""
    base, leak = curve["base"], exact(curve["delta0"])
    at, others = epsilon.min(exact(curve["at"])), _count(base, "n") - 1
    grown = exact(base["epsilon0"]).exp()
    if base["kind"] == "clones":
        moved = leak * (2 * others * (grown + 2) / (grown * (grown + 1)) + 1 / (grown + 1))
    elif base["kind"] == "clones-2021":
        moved = leak * (others / grown + 1 / (grown + 1))
    else:
        raise ValueError(f"base must be clones, got {base['kind']!r}")
    added = (1 + at.exp()) * moved
    return upper(base, at, enough - added) + added


def _losses(curve: Curve, epsilon: arb, enough: arb) -> arb:
    """P-masses at losses, of either direction."""
    return _largest_of(_loss(law, epsilon) for law in curve["laws"])


def _loss(law: Curve, epsilon: arb) -> arb:
    rows = zip(law["loss"], law["mass"], strict=True)
    finite = sum((probability(m) * positive(1 - (epsilon - exact(x)).exp()) for x, m in rows), arb(0))
    return probability(law["infinity"]) + finite


def _largest(curve: Curve, epsilon: arb, enough: arb) -> arb:
    return _largest_of(upper(part, epsilon, enough) for part in curve["curves"])


def _mixture(curve: Curve, epsilon: arb, enough: arb) -> arb:
    """Kinds of a round, met with known probabilities, and seen."""
    if not sum(curve["weights"]) >= 1.0 - _SLACK:
        raise ValueError("weights must sum to 1")
    rows = [(probability(w), part) for w, part in zip(curve["weights"], curve["curves"], strict=True)]
    values = [upper(part, epsilon, enough) for _, part in rows]
    total = sum((w * value for (w, _), value in zip(rows, values, strict=True)), arb(0))
    if total <= enough:
        return total
    # Finer, as each is asked for less than it has.
    finer = [
        value.min(upper(part, epsilon, value * _FINER)) for (_, part), value in zip(rows, values, strict=True)
    ]
    return sum((w * value for (w, _), value in zip(rows, finer, strict=True)), arb(0))


def _least(curve: Curve, epsilon: arb, enough: arb) -> arb:
    """Analyses that all hold: the first that is good enough will do."""
    best = arb(1)
    for part in curve["curves"]:
        best = best.min(upper(part, epsilon, enough))
        if best <= enough:
            break
    return best


def _binary(curve: Curve, epsilon: arb, enough: arb) -> arb:
    return binary(_count(curve, "n"), exact(curve["epsilon0"]), epsilon, enough)


_KINDS: dict[str, Callable[[Curve, arb, arb], arb]] = {
    "clones": _clones,
    "clones-2021": _clones,
    "strong": _strong,
    "law": _law,
    "matrix": _matrix,
    "binary": _binary,
    "cohort": _cohort,
    "approximate": _approximate,
    "losses": _losses,
    "mixture": _mixture,
    "largest": _largest,
    "least": _least,
}
