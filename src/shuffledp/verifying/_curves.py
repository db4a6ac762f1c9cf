"""The curves of one round, from the theorems, in balls: ``upper(curve, epsilon, enough)``.

A curve is a JSON object; ``kind`` says which theorem it stands on (docs/reference/certificates.md):

    clones, clones-2021, strong    laws of X made here of epsilon0, or of a rate
    law, matrix                    laws of X given by their masses
    binary                         binary randomized response, over all datasets
    crowd                          crowds that hold what they like
    groups                         others who hide with different probabilities
    mixed-sum, mixed-vectors       a sum by split and mix, of numbers or of vectors
    cohort, approximate            made of a base curve
    losses                         a privacy loss distribution
    mixture                        one of some, met with known probabilities, and seen
    largest, least                 the largest of some; any of some, all of which hold

Whatever is found is an upper bound; ``enough`` says when to stop refining (zero: at once)."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import permutations
from typing import Any

from flint import arb

from shuffledp._json import canonical
from shuffledp.verifying._balls import exact, near, positive, probability
from shuffledp.verifying._binary import binary
from shuffledp.verifying._crowd import Pool, by_coins, crowd, without_pool
from shuffledp.verifying._groups import among_groups
from shuffledp.verifying._mixed_sum import gaussian_shares, mixing, noisy_sum, noisy_vectors
from shuffledp.verifying._positive_part import Variable, positive_part

Curve = dict[str, Any]
_SLACK = 1e-6  # of totals: what a law may miss one by is a mistake from here on
_FINER = 0.95  # speed
_MOST_PAIRS = 20_000  # speed
_CUT = 2e-3  # tightness: of what is enough, what rare values may add


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
        if not hidden or (enough > 0 and not enough > seen):
            return seen + sum((positive(x) * clone for x, clone in hidden), arb(0))
        values, masses = zip(*hidden, strict=True)
        return seen + positive_part(Variable(values, masses), self.n, positive(enough - seen))

    def in_cohort(self, share: arb) -> Law:
        """T5': X' = share X + (1 - share)(1 - a), what hides nothing being one more type.

        Where that is next to nothing it is left out: its X' is not positive, so that zero is no less."""
        rest = 1 - sum((clone for *_, clone in self.types), arb(0))
        rows = [*self.types, (arb(0), arb(0), rest)] if rest > arb(2) ** -40 else self.types
        return Law(self.n, tuple((share * g, share * v + (1 - share) * c, c) for g, v, c in rows))

    def polled(self, rate: arb) -> Law:
        """T20: everybody's own coin says whether they report; silence is one more type."""
        rows = [(rate * g, rate * v, rate * c) for g, v, c in self.types]
        return Law(self.n, (*rows, (arb(0), 1 - rate, 1 - rate)))


def _count(curve: Curve, name: str) -> int:
    value = curve[name]
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError(f"{name} must be a whole number of at least 1, got {value!r}")
    return value


def _clones(curve: Curve, epsilon: arb, enough: arb) -> arb:
    return _clone_law(curve).upper(epsilon, enough)


def _clone_law(curve: Curve) -> Law:
    """T2: E - a and 1 - aE, each with probability 1/(E + 1); 2021: each with 1/(2E)."""
    if curve["kind"] not in ("clones", "clones-2021"):
        raise ValueError(f"base must be clones, got {curve['kind']!r}")
    local = exact(curve["epsilon0"])
    if not local >= 0:
        raise ValueError(f"epsilon0 must not be negative, got {curve['epsilon0']!r}")
    grown = local.exp()
    own, other = grown / (grown + 1), 1 / (grown + 1)
    gap = (local / 2).tanh()
    clone = other if curve["kind"] == "clones" else 1 / (2 * grown)
    return Law(_count(curve, "n"), ((gap, other, clone), (-gap, own, clone)))


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
    """T9: clones (of a random ``fraction``, or by coins of a ``rate``) at a smaller epsilon, ``at``, and what
    delta0 moves there."""
    base, leak, at = curve["base"], exact(curve["delta0"]), epsilon.min(exact(curve["at"]))
    share, rate = (probability(curve.get(name, 1.0)) for name in ("fraction", "rate"))
    law, others = _clone_law(base), _count(base, "n") - 1
    grown = exact(base["epsilon0"]).exp()
    other = leak / grown * (2 * (grown + 2) / (grown + 1) if base["kind"] == "clones" else 1)
    crowd, own = others * other, leak / (grown + 1)
    added = 2 * share * rate * (rate * crowd + own)
    added += at.expm1() * (share * rate * (crowd + own) + (1 - share) * (others + 1) * other)
    left = positive(enough - added)
    if float(curve.get("rate", 1.0)) < 1.0:
        return law.polled(rate).upper(at, left) + added
    if float(curve.get("fraction", 1.0)) == 1.0:
        return law.upper(at, left) + added
    inner = (at.expm1() / share).log1p()
    return law.in_cohort(share).upper(at, left).min(share * law.upper(inner, left / share)) + added


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


def _crowd(curve: Curve, epsilon: arb, enough: arb) -> arb:
    """T16: laws of X against every third input; for the pool a curve of a report of any input against one,
    among so many users; or random cohorts."""
    n, local = _count(curve, "n"), exact(curve["epsilon0"])
    share, rate = (float(curve.get(name, 1.0)) for name in ("fraction", "rate"))
    if epsilon >= local:
        return arb(0)
    growth = epsilon.expm1()
    made = list(_of_triples(curve["rows"], growth) if "rows" in curve else _of_laws(curve["laws"], growth))
    if share < 1.0:
        part = probability(share)
        made = [Variable([part * x - (1 - part) * growth for x in law.values], law.masses) for law in made]
    # Rare large values are cut, and what is cut is added.
    cut = [law.cut(_CUT * float(enough)) for law in made]
    laws, beyond = [law for law, _ in cut], _largest_of(added for _, added in cut)
    if share < 1.0:
        return without_pool(laws, n) + beyond
    if rate < 1.0:
        return by_coins(laws, n, probability(rate), -growth) + beyond
    pool = Pool(partial(_of_users, canonical(curve["base"])), _variance(curve["base"]), local)
    return crowd(laws, n, pool) + beyond


def _of_laws(laws: list[list[tuple[float, ...]]], growth: arb) -> Iterator[Variable]:
    for rows in laws:
        _check_totals(rows)
        if math.fsum(row[3] for row in rows) < 1.0 - _SLACK or any(not row[3] and any(row) for row in rows):
            raise ValueError("a law of a crowd must be that of a whole report")
        hidden = [(near(gap) - growth * near(other), near(clone)) for _, other, gap, clone in rows if clone]
        yield Variable([w / clone for w, clone in hidden], [clone for _, clone in hidden])


def _of_triples(rows: list[list[float]], growth: arb) -> Iterator[Variable]:
    """Of all rows x, x' and z; where the matrix is its own mirror image, of two mirrored triples one."""
    if not all(min(row) > 0.0 and abs(math.fsum(row) - 1.0) <= _SLACK for row in rows):
        raise ValueError("rows of a crowd must be positive and sum to 1")
    known, last = [[near(entry) for entry in row] for row in rows], len(rows) - 1
    turned = [row[::-1] for row in known[::-1]]
    both = list(zip(known, turned, strict=True))
    mirrored = all(a.overlaps(b) for one, other in both for a, b in zip(one, other, strict=True))
    if mirrored:
        known = [[a.union(b) for a, b in zip(one, other, strict=True)] for one, other in both]
    inverse = [[1 / entry for entry in row] for row in known]
    for x, y in permutations(range(last + 1), 2):
        weight = [u - (1 + growth) * v for u, v in zip(known[x], known[y], strict=True)]
        for z in range(last + 1):
            if not mirrored or (x, y, z) <= (last - x, last - y, last - z):
                yield Variable([w * i for w, i in zip(weight, inverse[z], strict=True)], known[z])


@lru_cache(maxsize=4096)
def _of_users(base: str, users: int, log: float) -> arb:
    """About the curve of so many users."""
    return upper(_resized(json.loads(base), users), arb(log), arb(0))


def _resized(curve: Curve, users: int) -> Curve:
    if curve["kind"] == "largest":
        return {**curve, "curves": [_resized(part, users) for part in curve["curves"]]}
    if curve["kind"] not in ("law", "matrix", "clones"):
        raise ValueError(f"the pool of a crowd must be a law, a matrix or clones, got {curve['kind']!r}")
    return {**curve, "n": users}


def _variance(curve: Curve) -> float:
    """Of the X of one report, about."""
    if curve["kind"] == "largest":
        return max(_variance(part) for part in curve["curves"])
    if curve["kind"] == "matrix":
        pairs = _pairs([[float(entry) for entry in row] for row in curve["rows"]])
        return max(math.fsum((u - v) ** 2 / c for u, v, c in pair if c) for pair in pairs)
    if curve["kind"] == "clones":
        local = float(curve["epsilon0"])
        return 2.0 * math.tanh(0.5 * local) ** 2 * (1.0 + math.exp(local))
    return math.fsum(gap**2 / clone for _, _, gap, clone in curve["types"] if clone)


def _groups(curve: Curve, epsilon: arb, enough: arb) -> arb:
    """T21: everybody hides by one law, each group with a probability of its own; one direction."""
    rows = [tuple(row) for row in curve["types"]]
    _check_totals(rows)
    growth = epsilon.expm1()
    weights = [(near(gap) - growth * probability(other), clone) for _, other, gap, clone in rows]
    mass = sum((near(clone) for *_, clone in rows), arb(0))
    seen = sum((positive(w) for w, clone in weights if not clone), arb(0))
    hidden = [(w, near(clone) / mass) for w, clone in weights if clone]
    others = [
        ((near(share) * mass).min(arb(1)), _count({"": people}, "")) for share, people in curve["groups"]
    ]
    if not hidden or not others:
        return sum((positive(w) for w, _ in weights), arb(0))
    if not all(g >= 0 for g, _ in others):
        raise ValueError("a share must not be negative")
    law = Variable([w / p for w, p in hidden], [p for _, p in hidden])
    return seen + among_groups(law, others, positive(enough - seen))


def _mixed_sum(curve: Curve, epsilon: arb, enough: arb) -> arb:
    """T17, T18: the curator's curve, and what the shares and the noise are off by."""
    people = tuple(_count(curve, name) for name in ("n", "messages", "modulus"))
    off = mixing(*people) + probability(curve["noise_distance"])
    scale = exact(curve["scale"])
    if not scale > 0:
        raise ValueError(f"scale must be positive, got {curve['scale']!r}")
    return noisy_sum(_count(curve, "levels"), scale, off, epsilon)


def _mixed_vectors(curve: Curve, epsilon: arb, enough: arb) -> arb:
    """T22: Gaussian noise of (n - 1/2) shares, and what shares, their sum and their sampling are off by."""
    n, messages, modulus = (_count(curve, name) for name in ("n", "messages", "modulus"))
    variance, sampled = exact(curve["variance"]), n * probability(curve["noise_distance"])
    if not variance >= 1:
        raise ValueError(f"variance must be at least 1, got {curve['variance']!r}")
    off = _count(curve, "dimension") * (mixing(n, messages, modulus) + gaussian_shares(variance, n) + sampled)
    shift = (arb(_count(curve, "farthest")) / ((arb(n) - arb(0.5)) * variance)).sqrt()
    return noisy_vectors(shift, off, epsilon)


def _binary(curve: Curve, epsilon: arb, enough: arb) -> arb:
    return binary(_count(curve, "n"), exact(curve["epsilon0"]), epsilon, enough)


_KINDS: dict[str, Callable[[Curve, arb, arb], arb]] = {
    "clones": _clones,
    "clones-2021": _clones,
    "strong": _strong,
    "law": _law,
    "matrix": _matrix,
    "binary": _binary,
    "crowd": _crowd,
    "groups": _groups,
    "mixed-sum": _mixed_sum,
    "mixed-vectors": _mixed_vectors,
    "cohort": _cohort,
    "approximate": _approximate,
    "losses": _losses,
    "mixture": _mixture,
    "largest": _largest,
    "least": _least,
}
