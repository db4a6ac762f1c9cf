"""What a certificate states of a round must fit together: totals, common parts, the largest loss.

Floats see that here, up to what masses are known to; what is missing beyond that is charged, or refused."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from shuffledp.errors import NoCertificateError

ROUNDING = 2.0**-47  # soundness: 64 units, eight of each of some masses
_UNITS = 8  # soundness: of 2^-53, that a share may be off by
_MARGIN = 1e-9  # of what hides, and of mirror images: laws of noise on the line are known up to this
_LOSS_MARGIN = 1e-8  # of losses, where the larger one counts
_SLACK = 1e-6  # of totals: what misses one by more is a mistake

Row = Sequence[float]


def checked_law(rows: Sequence[Row], *, hides: bool = True) -> tuple[float, float]:
    """What own and other miss to one; ``hides``: clone is a part of either, where they differ.

    In a law that is rounded outward own has too much, by no less than other misses: nothing is left out."""
    own, other, clone = (math.fsum(row[i] for row in rows) for i in (0, 1, 3))
    if not (own >= 1.0 - _SLACK and other >= 1.0 - _SLACK and clone <= 1.0 + ROUNDING):
        raise ValueError(
            f"own and other must sum to 1, and clone to no more, got {own!r}, {other!r}, {clone!r}"
        )
    for u, v, gap, c in rows:
        if not (u >= 0.0 and v >= 0.0 and c >= 0.0 and abs(gap - (u - v)) <= ROUNDING * (u + v)):
            raise ValueError(f"gap must be own - other, got {gap!r} for {u!r} - {v!r}")
        if hides and gap != 0.0 and not c <= (1.0 + _MARGIN) * min(u, v):
            raise ValueError(f"clone must be a part of own and other, got {c!r} of {u!r} and {v!r}")
    raised = min(own - 1.0, _MARGIN) + ROUNDING >= 1.0 - other
    return max(1.0 - own - ROUNDING, 0.0), 0.0 if raised else max(1.0 - other - ROUNDING, 0.0)


def covers_its_mirror(rows: Sequence[Row]) -> bool:
    """Whether exchanging own and other gives no more anywhere, up to the margin that masses are known to: no
    larger own, no smaller other."""

    def ordered(some: Iterable[tuple[float, ...]]) -> list[tuple[float, ...]]:
        # Shares that differ by less than the margin are alike: any pairing will do that can be seen to cover.
        return sorted(
            some,
            key=lambda row: (round(row[0] / (row[0] + row[1]), 9) if row[0] + row[1] else 0.5, row[2], *row),
        )

    def below(one: float, other: float) -> bool:
        return one <= (1.0 + _MARGIN) * other

    told = _together((u, v, c) for u, v, _, c in rows if u != v)  # others are their own mirror images
    pairs = zip(ordered(told), ordered((v, u, c) for u, v, c in told), strict=True)
    return all(
        below(u_, u) and below(v, v_) and below(c, c_) and below(c_, c) for (u, v, c), (u_, v_, c_) in pairs
    )


def _together(rows: Iterable[tuple[float, float, float]]) -> list[tuple[float, ...]]:
    """One row for all that tell the same, and are hidden alike, up to the margin: X has one value there."""
    found = dict[tuple[float, float], list[tuple[float, float, float]]]()
    for u, v, c in rows:
        found.setdefault((round(u / (u + v), 9), round(c / (u + v), 9)), []).append((u, v, c))
    return [tuple(math.fsum(column) for column in zip(*alike, strict=True)) for alike in found.values()]


def checked_rows(rows: Sequence[Row], least: float = 0.0) -> None:
    """Of a matrix."""
    if not rows or not all(min(row) >= least and abs(math.fsum(row) - 1.0) <= ROUNDING for row in rows):
        raise ValueError(f"rows of a matrix must sum to 1, and have entries from {least!r} on")


def checked_crowd(curve: dict[str, Any]) -> None:
    """Whole reports, no loss beyond epsilon0, and a common part that can be one."""
    if "rows" in curve:
        checked_rows(curve["rows"], least=math.ulp(0.0))
        overlap, columns = 1.0, list(zip(*curve["rows"], strict=True))
        columns = _widened(curve, columns) if "spread" in curve else columns
    else:
        for rows in curve["laws"]:
            checked_law(rows, hides=False)
            checked_rows([[row[i] for row in rows] for i in (0, 1, 3)], least=math.ulp(0.0))
        columns = [(u, v, c) for rows in curve["laws"] for u, v, _, c in rows]
        overlap = min(math.fsum(min(u, v, c) for u, v, _, c in rows) for rows in curve["laws"])
    _not_below(curve["epsilon0"], max(map(_ratio, columns)))
    common = curve.get("common")
    if (
        common is not None
        and not math.exp(-curve["epsilon0"]) <= common * (1.0 + ROUNDING) <= overlap + _SLACK
    ):
        raise ValueError(f"common must be in [e^-epsilon0, {overlap!r}], got {common!r}")


def _widened(curve: dict[str, Any], columns: list[tuple[float, ...]]) -> list[tuple[float, float]]:
    """The smallest and the largest mass of every type, anywhere in it, of rows that span."""
    spread, missed = curve["spread"], curve["missed"]
    if not all(0.0 <= one < 1.0 for one in (*spread, *missed, curve["lost"])):
        raise ValueError("spread, missed and lost must be in [0, 1)")
    return [
        (min(column) * (1.0 - by) * (1.0 - off), max(column) * (1.0 + by) * (1.0 + off))
        for column, by, off in zip(columns, spread, missed, strict=True)
    ]


def checked_losses(law: dict[str, Any]) -> float:
    """What P misses to one; Q, whose masses are those of P times e^-loss, must have no more than one."""
    loss, mass, infinity = law["loss"], law["mass"], law["infinity"]
    other = math.fsum(m * math.exp(-max(x, -700.0)) for x, m in zip(loss, mass, strict=True))
    if not (other <= 1.0 + _SLACK and infinity >= 0.0 and all(m >= 0.0 for m in mass)):
        raise ValueError(f"losses must be those of two laws, got a second one of mass {other!r}")
    return max(1.0 - math.fsum([*mass, infinity]) - ROUNDING, 0.0)


def largest_loss(part: dict[str, Any]) -> float | None:
    """That a round is said to have, or None; no less than what its curve says, whose masses have margins."""
    found, stated = loss_of(part["curve"]), part.get("epsilon0")
    if stated is None or math.isinf(found):
        return None
    _not_below(float(stated), found, _LOSS_MARGIN)
    return max(float(stated), found)


@dataclass(frozen=True)
class Local:
    """A round is (log(1 + share (e^epsilon0 - 1)), delta0)-DP, whatever the crowd adds.

    ``epsilon0`` is that of a report, ``share`` that of a random cohort; ``delta0`` counts that, too."""

    epsilon0: float
    share: Fraction = Fraction(1)
    delta0: Fraction = Fraction(0)


def local_guarantee(part: dict[str, Any]) -> Local | None:
    """What a round says of its reports, if it does."""
    loss = largest_loss(part)
    return Local(loss) if loss is not None else _leaking(part["curve"])


def _leaking(curve: dict[str, Any]) -> Local | None:
    """That of analyses of which any holds, or of all kinds of a round, met with their weights."""
    if curve["kind"] == "approximate":
        return _leaking_report(curve)
    inner = [_leaking(one) for one in curve.get("curves", [])]
    known = [found for found in inner if found is not None]
    if curve["kind"] == "least" and known:
        return known[0]
    if curve["kind"] not in ("mixture", "largest") or not known or len(known) < len(inner):
        return None
    delta0 = max(one.delta0 for one in known)
    if curve["kind"] == "mixture":
        weights = [Fraction(weight) for weight in curve["weights"]]
        if min(weights) < 0 or sum(weights) < 1 - Fraction(ROUNDING):
            raise ValueError("weights must not be negative, and sum to 1")
        met = sum((w * one.delta0 for w, one in zip(weights, known, strict=True)), Fraction(0))
        delta0 = min(delta0, met * (1 + 2 * Fraction(ROUNDING)))
    return Local(max(one.epsilon0 for one in known), max(one.share for one in known), delta0)


def _leaking_report(curve: dict[str, Any]) -> Local:
    """In a random cohort, or by coins, which hide no epsilon (T9', docs/proofs/approximate-local.md)."""
    epsilon0, delta0 = float(curve["base"]["epsilon0"]), float(curve["delta0"])
    if not (0.0 <= epsilon0 < math.inf and 0.0 <= delta0 <= 1.0):
        raise ValueError(
            f"a round must have epsilon0 >= 0 and delta0 in [0, 1], got {epsilon0!r}, {delta0!r}"
        )
    share, rate = _share(curve), min(_raised(curve.get("rate", 1.0)), Fraction(1))
    return Local(epsilon0, share, share * rate * Fraction(delta0))


def _share(curve: dict[str, Any]) -> Fraction:
    """n of whole people: the number that the fraction tells, if it tells one."""
    stated, n = curve.get("fraction", 1.0), int(curve["base"]["n"])
    raised = _raised(stated)
    if raised >= 1:
        return Fraction(1)
    people = round(n / Fraction(stated))
    alone = people * ROUNDING < 0.5
    told = abs(Fraction(n, people) / Fraction(stated) - 1) * 2**53 <= _UNITS
    return Fraction(n, people) if alone and told else raised


def _raised(share: Any) -> Fraction:
    """No less than what a double stands for."""
    if not 0.0 < float(share) <= 1.0 + _MARGIN:
        raise ValueError(f"fraction and rate must be in (0, 1], got {share!r}")
    return Fraction(1) if share >= 1.0 else Fraction(share) * (1 + Fraction(_UNITS, 2**53))


def _not_below(stated: float, found: float, margin: float = ROUNDING) -> None:
    if not stated >= found - margin * (1.0 + found):
        raise NoCertificateError(f"epsilon0 is {stated!r}, but reports have losses of {found!r}")


def loss_of(curve: dict[str, Any]) -> float:
    """Infinite where a curve does not tell."""
    kind, inner = curve["kind"], [loss_of(one) for one in curve.get("curves", [])]
    if kind == "binary":
        return float(curve["epsilon0"])
    if kind in ("clones", "clones-2021", "crowd", "binary-cohort"):
        if curve.get("lost", 0.0) > 0.0:
            return math.inf
        return _in_cohort(float(curve["epsilon0"]), curve.get("fraction", 1.0))
    if kind in ("law", "messages", "groups"):
        return max(_ratio(row[:2]) for row in curve["types"])
    if kind == "matrix":
        return _in_cohort(max(map(_ratio, zip(*curve["rows"], strict=True))), curve.get("fraction", 1.0))
    if kind == "cohort":
        return _in_cohort(loss_of(curve["base"]), curve["fraction"])
    if kind == "losses":
        laws = curve["laws"]
        return math.inf if any(law["infinity"] for law in laws) else max(max(law["loss"]) for law in laws)
    combined: dict[str, Callable[[Iterable[float]], float]] = {"least": min, "largest": max, "mixture": max}
    return combined[kind](inner) if kind in combined and inner else math.inf


def _ratio(masses: Sequence[float]) -> float:
    low, high = min(masses), max(masses)
    return math.log(high / low) if low > 0.0 else (math.inf if high > 0.0 else 0.0)


def _in_cohort(loss: float, fraction: float) -> float:
    if not 0.0 <= fraction <= 1.0 + _MARGIN:
        raise ValueError(f"fraction must be in [0, 1], got {fraction!r}")
    if fraction >= 1.0:
        return loss
    return math.log1p(fraction * math.expm1(loss)) if loss < 700.0 else math.inf
