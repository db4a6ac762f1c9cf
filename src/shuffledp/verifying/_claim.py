"""The claim of a certificate, derived again: an upper bound of delta(epsilon) of its rounds."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from flint import arb, ctx

from shuffledp._digits import rounded_up
from shuffledp._progress import Progress
from shuffledp.errors import NoCertificateError
from shuffledp.verifying._balls import positive
from shuffledp.verifying._curves import Curve, alternatives, least_of
from shuffledp.verifying._rounds import Losses, precision, thinned
from shuffledp.verifying._stated import Local, largest_loss, local_guarantee

_NEARLY = 2e-4, 3e-5, 3e-6, 3e-7  # speed: points of a grid that are confirmed up to here are raised
_PER_POINT = 500  # speed: how much points that are too high by a share may raise delta, as a multiple
_MOST_ROUNDS = 10**7  # speed
_BELOW = 1e-3  # speed: one that is off by more than this is wrong
_WIDER = (
    arb(2) ** -50
)  # tightness: of losses, so that a multiple of a float that is to be epsilon0 is no less
_RAISED = 1e-9  # speed, tightness: of a round's share of delta, by which all points are raised


def derived(content: dict[str, Any], bits: int) -> tuple[float, str]:
    """(an upper bound of delta at the claimed epsilon, rounded up; why it is not good enough, if so)."""
    epsilon, delta = float(content["claim"]["epsilon"]), float(content["claim"]["delta"])
    with ctx.workprec(bits):
        try:
            found = _bound(content, epsilon, delta)
        except NoCertificateError as refusal:
            return 1.0, str(refusal)
        above = _rounded_up(found)
        short = f"the best bound found is {rounded_up(above)}, and a claim of that delta can be verified"
        return above, "" if found <= arb(delta) else short


def _bound(content: dict[str, Any], epsilon: float, delta: float) -> arb:
    rounds = content["rounds"]
    if (alone := _alone(rounds, epsilon)) is not None and alone <= arb(delta):
        return alone
    if len(rounds) == 1 and rounds[0]["count"] == 1:
        with Progress.clock("verifying"):
            found = least_of(alternatives(rounds[0]["curve"]), arb(epsilon), arb(delta))[0]
        return found if alone is None else found.min(alone)
    if sum(part["count"] for part in rounds) > _MOST_ROUNDS:
        raise NoCertificateError(f"at most {_MOST_ROUNDS:,} rounds are verified")
    spacing = arb(float(content["spacing"])) * (1 + _WIDER)
    if not (spacing > 0 and delta > 0.0):
        raise NoCertificateError("several rounds need a grid of a positive spacing, and delta > 0")
    counts = [part["count"] for part in rounds]
    spare = arb(_RAISED * delta / sum(counts))
    grids = [_Grid.of(part, spacing, spare) for part in rounds]
    best = arb(1)
    for nearly in _NEARLY:
        steps = sum(grid.open(nearly) for grid in grids) + sum(c.bit_length() for c in counts)
        with Progress(steps, what="steps") as progress:
            grids = [grid.confirmed(nearly, progress) for grid in grids]
            best = best.min(_composed(grids, counts, epsilon, delta, progress))
        hopeless = best > arb(delta) * (1 + _PER_POINT * arb(nearly))
        if best <= arb(delta) or hopeless or all(grid.open(0.0) == 0 for grid in grids):
            break
    return best


def _alone(rounds: list[dict[str, Any]], epsilon: float) -> arb | None:
    """All delta0 together, whatever a crowd adds, and what epsilon lacks of the local epsilons L together:
    P(A) - e^epsilon Q(A) <= 1 - e^(epsilon - L) + delta0 if P(A) <= e^L Q(A) + delta0."""
    known = [(part["count"], local_guarantee(part)) for part in rounds]
    local = [(count, found) for count, found in known if found is not None]
    if len(local) < len(rounds):
        return None
    together = sum((count * _within(one) for count, one in local), arb(0))
    leak = _exactly(sum((count * one.delta0 for count, one in local), Fraction(0)))
    return leak - (-positive(together - arb(epsilon))).expm1()


def _within(local: Local) -> arb:
    """The local epsilon of a round, in a cohort."""
    if local.share == 1:
        return arb(local.epsilon0)
    return (_exactly(local.share) * arb(local.epsilon0).expm1()).log1p()


def _exactly(number: Fraction) -> arb:
    return arb(number.numerator) / arb(number.denominator)


def _composed(grids: list[_Grid], counts: list[int], epsilon: float, delta: float, progress: Progress) -> arb:
    """All rounds convolved (Theorem V2)."""
    step = math.gcd(*(thinned(grid.index) for grid in grids)) or 1
    bits, budget = precision(delta, counts)
    spacing = grids[0].spacing * step
    total: Losses | None = None
    with ctx.workprec(max(ctx.prec, bits + 64)):
        for count, grid in zip(counts, grids, strict=True):
            power = one = Losses.of(grid.vertices(step), spacing, bits, budget)
            for product in one.power(count, budget):
                power = product
                progress.advance()
            total = power if total is None else (total * power).cut(budget)
        assert total is not None
        return total.delta(arb(epsilon), spacing)


@dataclass(frozen=True)
class _Grid:
    """Points of a round's polygon: what the certificate says, and what was derived."""

    curve: Curve
    spacing: arb
    index: list[int]
    value: list[arb]
    bound: list[arb]

    @classmethod
    def of(cls, part: dict[str, Any], spacing: arb, spare: arb) -> _Grid:
        """All values are raised by what can be spared, so that next to nothing is no reason to refuse."""
        index, value = [int(j) for j in part["grid"]["index"]], [float(v) for v in part["grid"]["value"]]
        if len(index) != len(value) or not all(0.0 <= v <= 1.0 for v in value):
            raise NoCertificateError("a grid must have a value in [0, 1] at every index")
        local = largest_loss(part)
        beyond = [local is not None and bool(spacing * j >= arb(local)) for j in index]
        raised = [(arb(v) + spare).min(arb(1)) for v in value]
        return cls(part["curve"], spacing, index, raised, [arb(0 if b else 1) for b in beyond])

    def vertices(self, step: int) -> list[tuple[int, arb]]:
        """Indices in units of ``step``, and values that are confirmed, as numbers: balls widen masses."""
        rows = zip(self.index, self.value, self.bound, strict=True)
        return [(j // step, value.max(bound).upper()) for j, value, bound in rows]

    def open(self, nearly: float) -> int:
        """How many points are not confirmed up to ``nearly``."""
        return sum(not bound <= most for bound, most in zip(self.bound, self._most(nearly), strict=True))

    def _most(self, nearly: float) -> list[arb]:
        """What points may be found to be, at most."""
        return [value * (1 + arb(nearly)) for value in self.value]

    def confirmed(self, nearly: float, progress: Progress) -> _Grid:
        """With all points derived again, up to ``nearly``, or below a chord between two that are."""
        bound, curves = list(self.bound), alternatives(self.curve)
        alpha = [(self.spacing * j).exp() for j in self.index]
        enough, most = self._most(nearly), self._most(_BELOW)
        served = dict[int, int]()

        def derive(i: int, *near: int) -> None:
            """What serves at points next to it is tried first."""
            if not bound[i] <= enough[i]:
                first = sorted({served[j] for j in near if j in served})
                order = dict.fromkeys([*first, *range(len(curves))])
                found, place = least_of([curves[j] for j in order], self.spacing * self.index[i], enough[i])
                bound[i], served[i] = bound[i].min(found), list(order)[place]
                if not bound[i] <= most[i]:
                    raise NoCertificateError(
                        f"the grid is below the curve at index {self.index[i]}, as far as is seen here: "
                        "other analyses (best-leaked, blanket, clones) may be derived more closely"
                    )
                progress.advance()

        def between(low: int, high: int) -> None:
            """Curves are convex. Chords that are not low enough are halved."""
            slope = (bound[high] - bound[low]) / (alpha[high] - alpha[low])
            left = [i for i in range(low + 1, high) if not bound[i] <= enough[i]]
            chord = [bound[low] + slope * (alpha[i] - alpha[low]) for i in left]
            if all(value <= enough[i] for i, value in zip(left, chord, strict=True)):
                for i, value in zip(left, chord, strict=True):
                    bound[i] = value
                    progress.advance()
                return
            middle = (low + high) // 2
            derive(middle, low, high)
            between(low, middle)
            between(middle, high)

        if self.index:
            derive(0)
            derive(len(alpha) - 1)
            between(0, len(alpha) - 1)
        return replace(self, bound=bound)


def _rounded_up(ball: arb) -> float:
    """A double that is not below."""
    value = float(ball.upper())
    return math.nextafter(value, math.inf) if value > 0.0 else 0.0
