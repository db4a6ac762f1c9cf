"""The curves of one round, from the theorems, in balls: ``upper(curve, epsilon, enough)``.

A curve is a JSON object; ``kind`` says which theorem it stands on (docs/reference/certificates.md):

    clones, clones-2021, strong    laws of X made here of epsilon0, or of a rate
    law, messages, matrix          laws of X given by their masses
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
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache, partial, reduce
from typing import Any

from flint import arb

from shuffledp._json import canonical
from shuffledp.verifying._balls import exact, max_of, near, positive, probability
from shuffledp.verifying._binary import binary
from shuffledp.verifying._binary_cohort import binary_cohort
from shuffledp.verifying._crowd import Pool, by_coins, crowd, without_pool
from shuffledp.verifying._families import Family, known, triples
from shuffledp.verifying._groups import among_groups
from shuffledp.verifying._mixed_sum import gaussian_shares, mixing, noisy_sum, noisy_vectors, thinned_sum
from shuffledp.verifying._positive_part import About, positive_part
from shuffledp.verifying._stated import (
    ROUNDING,
    checked_crowd,
    checked_law,
    checked_losses,
    checked_rows,
    covers_its_mirror,
)
from shuffledp.verifying._variable import Variable

Curve = dict[str, Any]
Types = tuple[tuple[arb, arb, arb], ...]
_ALIKE = 5e-3  # speed: by how much kinds of a round may differ in how far they come down
_FINER = 0.95, 0.999, 0.99999  # speed: shares that kinds of a round are asked for, until they have no less
_WIDER = 1.25  # speed: of a pool, whose common part is not known
_MOST_PAIRS = 20_000  # speed
_MOVED = 0.025  # tightness: of what is enough, what a delta0 may move of a pool's reports, once
_CUTS = 2e-3, 3e-2, 0.2  # tightness: of what is enough, what rare values may add


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
    types: Types
    """(gap = own - other, other, clone)."""

    def parted(self, epsilon: arb) -> tuple[arb, Variable]:
        """What is seen, as nobody hides it, and the law of X."""
        growth = epsilon.expm1()
        weights = [(gap - growth * other, clone) for gap, other, clone in self.types]
        hidden = [(w / clone, clone) for w, clone in weights if not clone.is_zero()]
        seen = sum((positive(w) for w, clone in weights if clone.is_zero()), arb(0))
        return seen, Variable([x for x, _ in hidden], [clone for _, clone in hidden])

    def upper(self, epsilon: arb, enough: arb) -> arb:
        seen, law = self.parted(epsilon)
        if not law.values or (enough > 0 and not enough > seen):
            return seen + law.mean_above(arb(0))
        return seen + positive_part(law, self.n, positive(enough - seen))

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


def _local(curve: Curve) -> arb:
    local = exact(curve["epsilon0"])
    if not local >= 0:
        raise ValueError(f"epsilon0 must not be negative, got {curve['epsilon0']!r}")
    return local


def _clones(curve: Curve, epsilon: arb, enough: arb) -> arb:
    law = _clone_law(curve)
    if float(curve.get("fraction", 1.0)) != 1.0:
        law = law.in_cohort(probability(curve["fraction"]))
    return law.upper(epsilon, enough)


def _clone_law(curve: Curve) -> Law:
    """T2: E - a and 1 - aE, each with probability 1/(E + 1); 2021: each with 1/(2E)."""
    if curve["kind"] not in ("clones", "clones-2021"):
        raise ValueError(f"base must be clones, got {curve['kind']!r}")
    local = _local(curve)
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
    missing = arb(max(checked_law(rows, hides=curve["kind"] == "law")))
    types = tuple((near(gap), probability(other), probability(clone)) for _, other, gap, clone in rows)
    law = Law(_count(curve, "n"), types)
    ways = [law]
    if not covers_its_mirror(rows):
        back = tuple((near(-gap), probability(own), probability(clone)) for own, _, gap, clone in rows)
        ways.append(Law(law.n, back))
    return _largest_of(ways, epsilon, positive(enough - missing)) + missing


def _matrix(curve: Curve, epsilon: arb, enough: arb) -> arb:
    """All ordered pairs of rows, hidden by the smallest entry of every column."""
    rows = [[float(entry) for entry in row] for row in curve["rows"]]
    checked_rows(rows)
    laws = dict.fromkeys(_pairs(rows))
    if len(laws) > _MOST_PAIRS:
        raise ValueError(f"at most {_MOST_PAIRS} different pairs of inputs are verified, got {len(laws)}")
    n, share = _count(curve, "n"), probability(curve.get("fraction", 1.0))
    made = (Law(n, tuple((near(u) - near(v), near(v), near(c)) for u, v, c in law if u or v)) for law in laws)
    whole = float(curve.get("fraction", 1.0)) == 1.0
    return _largest_of((law if whole else law.in_cohort(share) for law in made), epsilon, enough)


def _pairs(rows: list[list[float]]) -> Iterator[tuple[tuple[float, float, float], ...]]:
    least = [min(column) for column in zip(*rows, strict=True)]
    for x in rows:
        for y in rows:
            if x is not y:
                yield tuple(sorted(zip(x, y, least, strict=True)))


def _largest_of(laws: Iterable[Law], epsilon: arb, enough: arb) -> arb:
    """What one exceeds, others may reach."""
    result = arb(0)
    if enough > 0:
        for law in laws:
            result = result.max(law.upper(epsilon, enough.max(result)))
        return result
    made = [(*law.parted(epsilon), law.n) for law in laws]
    told = [(seen, law, n) for seen, law, n in made if any(not v <= 0 for v in law.values)]
    result = max_of(seen for seen, *_ in made)
    told.sort(key=lambda row: -row[1].cumulants(0.0)[2])
    about = About.of(*told[0][1:]) if told else None
    for seen, x, n in told:
        assert about is not None
        result = result.max(seen + x.mean_above(arb(0)).min(about.upper(x, n, positive(result - seen))))
    return result


def _cohort(curve: Curve, epsilon: arb, enough: arb) -> arb:
    """T5: g H of the cohort at 1 + (a - 1)/g."""
    share = probability(curve["fraction"])
    inner = (epsilon.expm1() / share).log1p()
    return share * upper(curve["base"], inner, enough / share)


def _approximate(curve: Curve, epsilon: arb, enough: arb) -> arb:
    """T9, T9': clones (of a random ``fraction``, or by coins of a ``rate``) at a smaller epsilon, ``at``, and
    what delta0 adds there."""
    base, leak, at = curve["base"], probability(curve["delta0"]), epsilon.min(exact(curve["at"]))
    if not at >= 0:
        raise ValueError(f"at must not be negative, got {curve['at']!r}")
    share, rate = (probability(curve.get(name, 1.0)) for name in ("fraction", "rate"))
    if "fraction" in base and base["kind"] != "crowd":
        raise ValueError("fraction must be that of the curve with a delta0, not of its base")
    if base["kind"] == "crowd":
        return _approximate_crowd(curve, at, enough)
    law, added = _clone_law(base), _moved_at_all(base, leak, share, rate, at.expm1())
    if base["kind"] == "clones":
        local = _local(base)
        within = at.min(local)  # T9' is proved up to the local epsilon
        once = _left_in_place(leak, local, share, rate, within.expm1())
        if once < added:
            return _in_part(law, curve, within, positive(enough - once)) + once
    left = positive(enough - added)
    best = _in_part(law, curve, at, left)
    if float(curve.get("rate", 1.0)) == 1.0 and float(curve.get("fraction", 1.0)) < 1.0:
        inner = (at.expm1() / share).log1p()
        best = best.min(share * law.upper(inner, left / share))
    return best + added


def _in_part(law: Law, curve: Curve, at: arb, left: arb) -> arb:
    """The curve of everybody, of a random ``fraction`` (T5') or by coins of a ``rate`` (T20)."""
    if float(curve.get("rate", 1.0)) < 1.0:
        law = law.polled(probability(curve["rate"]))
    elif float(curve.get("fraction", 1.0)) < 1.0:
        law = law.in_cohort(probability(curve["fraction"]))
    return law.upper(at, left)


def _moved_at_all(base: Curve, leak: arb, share: arb, rate: arb, growth: arb) -> arb:
    """T9: every report is moved."""
    others, grown = _count(base, "n") - 1, exact(base["epsilon0"]).exp()
    other = leak / grown * (2 * (grown + 2) / (grown + 1) if base["kind"] == "clones" else 1)
    crowd, own = others * other, leak / (grown + 1)
    added = 2 * share * rate * (rate * crowd + own)
    return added + growth * (share * rate * (crowd + own) + (1 - share) * (others + 1) * other)


def _left_in_place(leak: arb, local: arb, share: arb, rate: arb, growth: arb) -> arb:
    """T9': one report is moved, and put in the place of any."""
    grown = local.exp()
    own = leak / (grown + 1)
    lacking = 2 * (leak + own)
    if not lacking <= arb(1) / 2:
        return arb(1)
    more = 1 / (1 - lacking)
    at_one = 2 * own + 3 * more**2 * lacking * (1 - 1 / grown)
    slope = own + more**2 * lacking * (2 - 1 / grown)
    return share * rate * (at_one + growth * slope) + growth * (1 - share) * more * lacking


def _approximate_crowd(curve: Curve, at: arb, enough: arb) -> arb:
    """T16 with a delta0: the five laws of any epsilon0, a pool of clones, and what is moved of one report."""
    base, leak, local = curve["base"], probability(curve["delta0"]), _local(curve["base"])
    share, rate = (probability(curve.get(name, 1.0)) for name in ("fraction", "rate"))
    if not local > 0:
        raise ValueError("epsilon0 must be positive with a delta0 in crowds")
    mixed = 2 * leak / -(-local / 2).expm1()
    added = share * rate * (2 * leak + mixed * ((local / 2).exp() + leak)) * (2 + at.expm1())
    if at >= local:
        return added + 1
    laws = list(_of_any(local, at.expm1()))
    found = {"n": base["n"], "fraction": curve.get("fraction", 1.0), "rate": curve.get("rate", 1.0)}
    left = positive(enough - added)
    pool = _leaking_pool(float(base["epsilon0"]), leak, at.expm1(), left)
    return _of_crowds(found, Family.of(laws), at.expm1(), left, pool) + added


def _of_any(local: arb, growth: arb) -> Iterator[Variable]:
    """T16, section 7: the three long diagonals and the two triangles of the hexagon of (R_0/R_z, R_1/R_z)."""
    grown = local.exp()
    rim = [(1 / grown, 1 / grown), (arb(1), 1 / grown), (grown, arb(1)), (grown, grown), (arb(1), grown)]
    rim.append((1 / grown, arb(1)))
    for places in ((0, 3), (1, 4), (2, 5), (0, 2, 4), (1, 3, 5)):
        if len(places) == 2:  # the share of the one whose entries are at most one
            low = next(place for place in places if place in (0, 1, 5))
            masses = [grown / (grown + 1) if place == low else 1 / (grown + 1) for place in places]
        else:
            odd = 3 if 3 in places else 0  # alone on the diagonal of equal entries
            odds = [(1 / grown if odd else grown) if place == odd else arb(1) for place in places]
            masses = [one / sum(odds, arb(0)) for one in odds]
        yield Variable([rim[i][0] - (1 + growth) * rim[i][1] for i in places], masses)


def _leaking_pool(epsilon0: float, leak: arb, growth: arb, enough: arb) -> Pool:
    """A report of any input, or of any other, among clones, all moved to where nothing leaks (T9)."""
    grown = exact(epsilon0).exp()
    other, own = 2 * leak * (grown + 2) / (grown * (grown + 1)), leak / (grown + 1)
    apart = (grown - 1) / (grown + 1)

    def moved(users: int, last: arb) -> tuple[arb, arb]:
        all_of_it = (users - 1) * other + own
        return all_of_it, all_of_it * ((1 + 2 * last) * apart + (1 + last) * (apart + growth))

    variance = 2.0 * math.expm1(epsilon0) ** 2 / (math.exp(epsilon0) + 1.0)
    few = _MOVED * float(enough) / max(float(other), 1e-300)
    return Pool(partial(_among_clones, epsilon0), variance, exact(epsilon0), moved, max(few, 1.0))


@lru_cache(maxsize=4096)
def _among_clones(epsilon0: float, users: int, log: float) -> arb:
    return upper({"kind": "clones", "n": users, "epsilon0": epsilon0}, arb(log), arb(0)).min(arb(1))


def _losses(curve: Curve, epsilon: arb, enough: arb) -> arb:
    """P-masses at losses, of either direction."""
    if not curve["laws"]:
        raise ValueError("losses must have a law")
    return max_of(_loss(law, epsilon) for law in curve["laws"])


def _loss(law: Curve, epsilon: arb) -> arb:
    rows = zip(law["loss"], law["mass"], strict=True)
    finite = sum((probability(m) * positive(1 - (epsilon - exact(x)).exp()) for x, m in rows), arb(0))
    return probability(law["infinity"]) + finite + checked_losses(law)


def _largest(curve: Curve, epsilon: arb, enough: arb) -> arb:
    if not curve["curves"]:
        raise ValueError("the largest of no curves is not known")
    return max_of(upper(part, epsilon, enough) for part in curve["curves"])


def _mixture(curve: Curve, epsilon: arb, enough: arb) -> arb:
    """Kinds of a round, met with known probabilities, and seen."""
    if not math.fsum(curve["weights"]) >= 1.0 - ROUNDING:
        raise ValueError("weights must sum to 1")
    rows = [(probability(w), part) for w, part in zip(curve["weights"], curve["curves"], strict=True)]
    values = [upper(part, epsilon, arb(0)) for _, part in rows]

    def total() -> arb:
        return sum((w * value for (w, _), value in zip(rows, values, strict=True)), arb(0))

    # Those that count most come first; each is asked for about the share that came of the next one.
    shares = dict[int, arb]()
    for place in sorted(range(len(rows)), key=lambda i: -float(rows[i][0] * values[i])):
        if total() <= enough or not (enough > 0 and values[place] > 0):
            break
        near = min(shares, key=lambda i: abs(i - place), default=None)
        asked = enough / total() if near is None else (shares[near] * (1 + arb(_ALIKE))).min(arb(1))
        found = values[place].min(upper(rows[place][1], epsilon, asked * values[place]))
        shares[place], values[place] = found / values[place], found
    for closer in _FINER:
        if not total() <= enough:
            values = [
                _closer(part, epsilon, value, closer) for (_, part), value in zip(rows, values, strict=True)
            ]
        if total() <= enough or total() * closer > enough:  # no kind comes down to that share
            break
    return total()


def _closer(curve: Curve, epsilon: arb, value: arb, share: float) -> arb:
    """Asked for a share of what it has, until it has no less."""
    while value > 0:
        found = upper(curve, epsilon, value * share)
        if not found <= value * share:
            return value.min(found)
        value = found
    return value


def _least(curve: Curve, epsilon: arb, enough: arb) -> arb:
    return least_of(alternatives(curve), epsilon, enough)[0]


def alternatives(curve: Curve) -> list[Curve]:
    """Analyses that all hold, as they are tried: those that take longest last."""
    if curve["kind"] == "least":
        found = [one for part in curve["curves"] for one in alternatives(part)]
        return sorted(found, key=_slowness)
    if curve["kind"] == "cohort":
        return [{**curve, "base": base} for base in alternatives(curve["base"])]
    if curve["kind"] == "mixture":
        inner = [alternatives(part) for part in curve["curves"]]
        if len({len(some) for some in inner}) == 1 < len(inner[0]):  # one for all, then any for each
            return [*({**curve, "curves": list(some)} for some in zip(*inner, strict=True)), curve]
    return [curve]


def _slowness(curve: Curve) -> int:
    """Crowds take long, and cohorts of all datasets of binary response, which hardly ever serve, longest."""
    inner = curve["base"] if curve["kind"] in ("approximate", "cohort") else curve
    if inner["kind"] == "crowd":
        return 1
    return 2 if inner["kind"] == "binary" and inner is not curve else 0


def least_of(curves: list[Curve], epsilon: arb, enough: arb) -> tuple[arb, int]:
    """Any that is good enough will do; and which one that is, or is the least."""
    best, least = arb(1), 0
    for place, curve in enumerate(curves):
        found = upper(curve, epsilon, enough)
        best, least = best.min(found), place if found < best else least
        if best <= enough:
            break
    return best, least


def _crowd(curve: Curve, epsilon: arb, enough: arb) -> arb:
    """T16: laws of X against every third input; for the pool a curve of a report of any input against one,
    among so many users; or random cohorts."""
    checked_crowd(curve)
    lost = _count(curve, "n") * probability(curve.get("lost", 0.0)) * (2 + epsilon.expm1())
    if epsilon >= exact(curve["epsilon0"]):
        return lost
    best, left = arb(1), positive(enough - lost)
    for cut in _CUTS:
        best = best.min(_cut_crowd(curve, epsilon.expm1(), left, cut * float(left)))
        if best <= left or not enough > 0:
            break
    return best + lost


def _cut_crowd(curve: Curve, growth: arb, enough: arb, budget: float) -> arb:
    """Without rare large values, which add about the ``budget``."""
    share, rate = (float(curve.get(name, 1.0)) for name in ("fraction", "rate"))
    if "rows" in curve:
        made = (
            {name: curve[name] for name in ("rows", "missed", "spread")}
            if "spread" in curve
            else curve["rows"]
        )
        family, beyond = triples(canonical(made)).family(growth, budget / share)
    else:
        family, beyond = Family.cut(list(_of_laws(curve["laws"], growth)), budget / share)
    beyond, pool = arb(share) * beyond, _pool(canonical(curve)) if share == rate == 1.0 else None
    return _of_crowds(curve, family, growth, enough - beyond, pool) + beyond


def _of_crowds(curve: Curve, family: Family, growth: arb, enough: arb, pool: Pool | None) -> arb:
    """Of all laws of crowds of one value; in random cohorts without a pool."""
    n, share, rate = _count(curve, "n"), float(curve.get("fraction", 1.0)), float(curve.get("rate", 1.0))
    if share < 1.0:
        return without_pool(family.shared(probability(share), -growth), n, enough)
    if rate < 1.0:
        return by_coins(family, n, probability(rate), -growth, enough)
    assert pool is not None
    return crowd(family, n, pool, growth, enough)


def _of_laws(laws: list[list[tuple[float, ...]]], growth: arb) -> Iterator[Variable]:
    for rows in laws:
        hidden = [(near(gap) - growth * near(other), near(clone)) for _, other, gap, clone in rows]
        yield Variable([w / clone for w, clone in hidden], [clone for _, clone in hidden])


@lru_cache(maxsize=64)
def _pool(crowd: str) -> Pool:
    """Of everybody's common part m, of mass g: a report of any input, or of m/g for all, hidden by m."""
    curve = json.loads(crowd)
    local = exact(curve["epsilon0"])
    if "spread" in curve:
        laws = list(_between_rows(curve))
    else:
        if "rows" in curve:
            rows, mirrored = known(curve["rows"])
            pairs = list(_centred(rows))[: (len(rows) + 1) // 2 if mirrored else None]
        else:
            pairs = [_two_densities(low, high, local) for low, high in _ranges(curve, local)]
        laws = [
            law for rows in pairs for law in (rows, tuple((-gap, gap + other, m) for gap, other, m in rows))
        ]
    variance = max(float(sum((gap**2 / m for gap, _, m in rows), arb(0))) for rows in laws)
    found: dict[tuple[int, float], arb] = {}

    def at(users: int, log: float) -> arb:
        if (users, log) not in found:
            found[users, log] = _largest_of((Law(users, law) for law in laws), arb(log), arb(0))
        return found[users, log]

    return Pool(at, variance, local)


def _centred(rows: list[list[arb]]) -> Iterator[Types]:
    """(gap, other, clone) of each row against the least entries of all columns."""
    least = [reduce(arb.min, column) for column in zip(*rows, strict=True)]
    total = sum(least, arb(0))
    for row in rows:
        yield tuple((u - m / total, m / total, m) for u, m in zip(row, least, strict=True))


def _between_rows(curve: Curve) -> Iterator[Types]:
    """Of rows that span: a report of any input is below the one row and above the other (T16, section 9);
    each against the centre, both ways. Types with a spread are two."""
    rows, mirrored = known(curve["rows"])
    spread, missed = ([near(one) for one in curve[name]] for name in ("spread", "missed"))
    cells = [(k, 1 + sign * spread[k], arb(1) / 2) for sign in (1, -1) for k in range(len(spread))]
    least = [
        part * reduce(arb.min, (row[k] for row in rows)) * (1 - spread[k]) * (1 - missed[k])
        for k, _, part in cells
    ]
    total = sum(least, arb(0))
    for row in rows[: (len(rows) + 1) // 2 if mirrored and _is_mirrored(curve) else None]:
        high, low = (
            [part * row[k] * by * (1 + sign * missed[k]) for k, by, part in cells] for sign in (1, -1)
        )
        yield tuple((u - m / total, m / total, m) for u, m in zip(high, least, strict=True))
        yield tuple((m / total - v, v, m) for v, m in zip(low, least, strict=True))


def _is_mirrored(curve: Curve) -> bool:
    return all(curve[name] == curve[name][::-1] for name in ("spread", "missed"))


def _ranges(curve: Curve, local: arb) -> Iterator[tuple[arb, arb]]:
    """Of the mass of what is common: as it is said, or all from 1 down to 1/E, in ranges of no large variance
    (floats choose them)."""
    if curve.get("common") is not None:
        known = probability(curve["common"])
        yield known, known
        return
    grown, high = float(local.exp().upper()), 1.0
    variance = _WIDER * (math.sqrt(grown) - 1.0) ** 2
    while high * grown > 1.0:
        rise = high * grown - 1.0
        low = 1.0 / (1.0 + variance / rise) if rise * (grown - 1.0) > variance else 0.0
        yield (arb(low) if low else 1 / local.exp()), arb(high)
        high = low


def _two_densities(low: arb, high: arb, local: arb) -> Types:
    """Own is ``most`` times other on a set and ``low`` times elsewhere; ``low`` times other hides it."""
    most = (high * local.exp()).max(arb(1))
    inside = (1 - low) / (most - low)
    return ((most - 1) * inside, inside, low * inside), (
        (low - 1) * (1 - inside),
        1 - inside,
        low * (1 - inside),
    )


def _groups(curve: Curve, epsilon: arb, enough: arb) -> arb:
    """T21: everybody hides by one law, each group with a probability of its own; one direction."""
    rows = [tuple(row) for row in curve["types"]]
    missing, _ = checked_law(rows, hides=False)
    growth = epsilon.expm1()
    weights = [(near(gap) - growth * probability(other), clone) for _, other, gap, clone in rows]
    mass = sum((near(clone) for *_, clone in rows), arb(0))
    seen = sum((positive(w) for w, clone in weights if not clone), arb(0))
    hidden = [(w, near(clone) / mass) for w, clone in weights if clone]
    others = [
        ((near(share) * mass).min(arb(1)), _count({"": people}, "")) for share, people in curve["groups"]
    ]
    if not hidden or not others:
        return missing + sum((positive(w) for w, _ in weights), arb(0))
    if not all(0.0 <= share <= 1.0 + ROUNDING for share, _ in curve["groups"]):
        raise ValueError("a share must be in [0, 1]")
    law = Variable([w / p for w, p in hidden], [p for _, p in hidden], arb(0))
    return seen + missing + among_groups(law, others, positive(enough - seen - missing))


def _mixed_sum(curve: Curve, epsilon: arb, enough: arb) -> arb:
    """T17, T18: the curator's curve, and what the shares and the noise are off by; ``sized`` people were to
    add noise."""
    people = tuple(_count(curve, name) for name in ("n", "messages", "modulus"))
    off = mixing(*people) + probability(curve["noise_distance"])
    scale = exact(curve["scale"])
    if not scale > 0:
        raise ValueError(f"scale must be positive, got {curve['scale']!r}")
    levels, sized = _count(curve, "levels"), _count({"sized": people[0], **curve}, "sized")
    if sized <= people[0]:
        return noisy_sum(levels, scale, off, epsilon)
    return thinned_sum(levels, float(curve["scale"]), (people[0], sized), off, epsilon)


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
    own = _local(curve)
    others = _local({"epsilon0": curve["others"]}) if "others" in curve else own
    return binary(_count(curve, "n"), own, others, epsilon, enough)


def _binary_cohort(curve: Curve, epsilon: arb, enough: arb) -> arb:
    """T12'."""
    return binary_cohort(_count(curve, "n"), _local(curve), probability(curve["fraction"]), epsilon.expm1())


_KINDS: dict[str, Callable[[Curve, arb, arb], arb]] = {
    "clones": _clones,
    "clones-2021": _clones,
    "strong": _strong,
    "law": _law,
    "messages": _law,
    "matrix": _matrix,
    "binary": _binary,
    "binary-cohort": _binary_cohort,
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
