"""A certified enclosure."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal, localcontext
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt

from shuffledp import _html
from shuffledp._digits import rounded_down, rounded_up

if TYPE_CHECKING:
    from shuffledp.verifying.certificate import Certificate
    from shuffledp.verifying.verification import Verification


@dataclass(frozen=True, eq=False)
class Bound:
    """The true value lies in [lower, upper]. ``float(bound)`` is the upper, safe end.

    It is also what is compared (``bound < 1``) and, rounded up, what is formatted. ``round`` keeps both ends,
    rounded outward. Vectorised questions give arrays in both fields.

    >>> float(Bound(lower=0.9, upper=1.0))
    1.0
    >>> 0.95 in Bound(lower=0.9, upper=1.0)
    True
    >>> bound = Bound(lower=0.61252, upper=0.61312)
    >>> f"{bound:.3f}", round(bound, 3), bound < 0.6132
    ('0.614', Bound(lower=0.612, upper=0.614), True)
    >>> low, high = bound
    """

    lower: Any
    upper: Any
    source: Callable[[], Any] | None = field(default=None, repr=False, compare=False)
    """What writes the certificate of the upper end, if that can be verified."""
    limit: Callable[[], Bound] | None = field(default=None, repr=False, compare=False)
    """What finds the mu of the Gaussian limit of what was asked about (``Mechanism.gaussian_limit``)."""

    def __post_init__(self) -> None:
        if not np.all(np.asarray(self.lower) <= np.asarray(self.upper)):
            raise ValueError(f"lower must not exceed upper, got {self.lower!r} and {self.upper!r}")

    def __float__(self) -> float:
        return float(self.upper)

    def __contains__(self, value: float) -> bool:
        return bool(np.all((np.asarray(self.lower) <= value) & (value <= np.asarray(self.upper))))

    def __iter__(self) -> Iterator[Any]:
        return iter((self.lower, self.upper))

    def __lt__(self, other: Any) -> Any:
        return self.upper < _upper(other)

    def __le__(self, other: Any) -> Any:
        return self.upper <= _upper(other)

    def __gt__(self, other: Any) -> Any:
        return self.upper > _upper(other)

    def __ge__(self, other: Any) -> Any:
        return self.upper >= _upper(other)

    def __format__(self, spec: str) -> str:
        """The upper end, rounded up; without a format both ends."""
        return _outward(float(self), spec, ROUND_CEILING) if spec else str(self)

    def __round__(self, digits: int = 0) -> Bound:
        low = _outward(float(self.lower), f".{digits}f", ROUND_FLOOR)
        return Bound(float(low), float(_outward(float(self), f".{digits}f", ROUND_CEILING)))

    def _repr_html_(self) -> str:
        if np.ndim(self.upper):
            return _html.text(repr(self))
        shown = f"<b>at most {rounded_up(self.upper)}</b>, at least {rounded_down(self.lower)}"
        return shown if self.limit is None else f"{shown} (Gaussian limit: mu = {self.limit().upper:.3g})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Bound):
            return NotImplemented
        return bool(np.array_equal(self.lower, other.lower) and np.array_equal(self.upper, other.upper))

    def __hash__(self) -> int:
        return hash((self.lower, self.upper))

    def certificate(self) -> Certificate:
        """All that is needed to check the upper end again, elsewhere (``save`` makes a file of it)."""
        if self.source is None:
            raise ValueError("only the answer to a question about one epsilon or delta has a certificate")
        return cast("Certificate", self.source())

    def verify(self, *, bits: int = 256) -> Verification:
        """The upper end, derived again by other mathematics in ball arithmetic (extra ``verify``)."""
        return self.certificate().verify(bits=bits)

    @classmethod
    def of(cls, lower: npt.NDArray[np.float64], upper: npt.NDArray[np.float64], like: Any) -> Bound:
        """Shaped like the question: floats for a number, arrays for an array."""
        shape = np.shape(like)
        if shape == ():
            return cls(float(lower.reshape(())), float(upper.reshape(())))
        return cls(lower.reshape(shape), upper.reshape(shape))


def _upper(other: Any) -> Any:
    return other.upper if isinstance(other, Bound) else other


def _outward(value: float, spec: str, rounding: str) -> str:
    """Formatted like a float, rounded one way from the shortest decimal that reads as ``value``."""
    if not math.isfinite(value):
        return f"{value:{spec}}"
    with localcontext() as context:
        context.rounding = rounding
        return f"{Decimal(repr(value)):{spec}}"
