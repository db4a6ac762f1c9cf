"""What it means for a bound to be sound, and to be tight.

A *curve* gives the exact profile of something as a function of epsilon: delta = curve(epsilon),
never increasing. Values may be fractions, balls or floats.

- Sound: the lower end is not above the truth, the upper end not below.
- Tight: the upper end is at most what the curve says for an epsilon smaller by the tolerance
  (relative), which is how far shuffledp promises to be from its analysis.

The comparisons allow for rounding only. `CONVERSION` is the effect of passing log(E) and log(alpha)
as floats where the exact computation has rational E and alpha; it is 100 times what two roundings
to double precision can do to the profiles in question.
"""

from collections.abc import Callable
from fractions import Fraction
from math import exp

from flint import arb

CONVERSION = 1e-12
FLOOR = 1e-300  # below this, doubles lose relative accuracy

Exact = Fraction | float | arb
Curve = Callable[[float], Exact]


def rational_exp(epsilon: float) -> Fraction:
    """The fraction nearest to e^epsilon in double precision."""
    return Fraction(exp(epsilon))


def rational_curve(profile: Callable[[Fraction], Fraction]) -> Curve:
    """A curve in epsilon from a profile in alpha."""
    return lambda epsilon: profile(rational_exp(epsilon))


def value(exact: Exact) -> float:
    """The exact number as the nearest float."""
    return float(exact.mid()) if isinstance(exact, arb) else float(exact)


def _low(exact: Exact) -> float:
    """No number in the ball is smaller."""
    return float(exact.lower()) if isinstance(exact, arb) else float(exact)


def _high(exact: Exact) -> float:
    """No number in the ball is larger."""
    return float(exact.upper()) if isinstance(exact, arb) else float(exact)


def assert_encloses(bound: object, truth: Exact, slack: float = CONVERSION) -> None:
    """lower <= truth <= upper."""
    assert_at_most(bound.lower, truth, slack)
    assert_at_least(bound.upper, truth, slack)


def assert_at_least(upper: float, truth: Exact, slack: float = CONVERSION) -> None:
    """An upper end covers the truth."""
    assert upper >= _low(truth) * (1 - slack) - FLOOR, f"UNSOUND: {upper!r} < {value(truth)!r}"


def assert_at_most(lower: float, truth: Exact, slack: float = CONVERSION) -> None:
    """A lower end stays below the truth. Absolute slack: the truth may be zero at a kink."""
    assert 0 <= lower <= _high(truth) * (1 + slack) + _absolute(slack), (
        f"UNSOUND: lower end {lower!r} > {value(truth)!r}"
    )


def assert_delta_tight(upper: float, curve: Curve, epsilon: float, tolerance: float) -> None:
    """The upper end of delta(epsilon) is within the tolerance of the curve."""
    allowed = max(value(curve(epsilon * (1 - tolerance))), value(curve(epsilon)) * (1 + tolerance))
    assert upper <= allowed * (1 + 1e-8) + FLOOR, (
        f"LOOSE: {upper!r} > {allowed!r}, the exact value is {value(curve(epsilon))!r}"
    )


def assert_epsilon_sound(bound: object, curve: Curve, delta: float) -> None:
    """At the upper end the curve has come down to delta; below the lower end it has not."""
    upper, lower = bound.upper, bound.lower
    assert 0 <= lower <= upper
    assert_epsilon_covers(upper, curve, delta)
    assert_epsilon_below(lower, curve, delta)


def assert_epsilon_covers(upper: float, curve: Curve, delta: float) -> None:
    """At the upper end the curve has come down to delta."""
    reached = _low(curve(upper * (1 + 1e-14) + 1e-15))
    assert reached <= delta * (1 + 1e-9), f"UNSOUND: delta({upper!r}) = {reached!r} > {delta!r}"


def assert_epsilon_below(lower: float, curve: Curve, delta: float) -> None:
    """Just below the lower end the curve is still above delta."""
    if lower > 0:
        still = _high(curve(lower * (1 - 1e-9)))
        assert still >= delta * (1 - 1e-9), f"UNSOUND: lower end, delta({lower!r}) = {still!r} < {delta!r}"


def assert_epsilon_tight(upper: float, curve: Curve, delta: float, tolerance: float) -> None:
    """An epsilon smaller by the tolerance would not do."""
    if upper > 0:
        still = _high(curve(upper / (1 + tolerance) * (1 - 1e-9)))
        assert still >= delta * (1 - 1e-9), (
            f"LOOSE: delta({upper!r} / (1 + {tolerance})) = {still!r} < {delta!r}"
        )


def _absolute(slack: float) -> float:
    return slack * 1e-3 if slack else 0.0
