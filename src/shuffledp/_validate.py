"""Checks at the public border. Every error names the parameter, the value and what is allowed."""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from numbers import Integral, Real
from typing import Any

import numpy as np
import numpy.typing as npt

MAX_COUNT = 2**53
MAX_EPSILON0 = 300.0
MAX_SAMPLED_EPSILON0 = 36.0


def assign(value: object, **fields: Any) -> None:
    """Set fields of a frozen value while it is made."""
    for name, checked in fields.items():
        object.__setattr__(value, name, checked)


def _real(name: str, value: Any) -> float:
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Real):
        raise TypeError(f"{name} must be a real number, got {value!r}")
    return float(value)


def count(name: str, value: Any, *, least: int = 1, most: int = MAX_COUNT, limit: str = "") -> int:
    """A whole number in [least, most]; floats such as 1e6 are accepted when they are whole.

    ``limit`` says what ``most`` is, where it is no limit of the accountant."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Real):
        raise TypeError(f"{name} must be a whole number in [{least}, {most}], got {value!r}")
    if not isinstance(value, Integral) and not float(value).is_integer():
        raise ValueError(f"{name} must be a whole number in [{least}, {most}], got {value!r}")
    whole = int(value if isinstance(value, Integral) else float(value))
    if not least <= whole <= most:
        reason = "; no certificate can be given beyond" if whole > most and not limit else ""
        known = f"[{least}, {most}], {limit}" if limit else f"[{least}, {most}]"
        raise ValueError(f"{name} must be in {known}, got {value!r}{reason}")
    return whole


def epsilon0(value: Any, name: str = "epsilon0") -> float:
    """A local epsilon in [0, MAX_EPSILON0]."""
    number = _real(name, value)
    if not 0.0 <= number <= MAX_EPSILON0:
        reason = "; no certificate can be given beyond" if number > MAX_EPSILON0 else ""
        raise ValueError(f"{name} must be in [0, {MAX_EPSILON0:g}], got {value!r}{reason}")
    return number


def probability(name: str, value: Any, *, positive: bool = False) -> float:
    """A number in [0, 1], or in (0, 1] if ``positive``."""
    number = _real(name, value)
    if not (number > 0.0 if positive else number >= 0.0) or not number <= 1.0:
        raise ValueError(f"{name} must be in {'(' if positive else '['}0, 1], got {value!r}")
    return number


def part_of(share: float, people: int) -> int:
    """That share of so many people, rounded down. The share is the decimal that was written: 0.7 of 1,000 are
    700, although the binary number is a little less."""
    return people if share == 1.0 else math.floor(Fraction(repr(float(share))) * people)


def tolerance(value: Any) -> float:
    """The relative numerical looseness allowed, in [1e-7, 0.5]."""
    number = _real("tolerance", value)
    if not 1e-7 <= number <= 0.5:
        raise ValueError(f"tolerance must be in [1e-07, 0.5], got {value!r}")
    return number


def non_negative(name: str, value: Any, *, most: float = math.inf) -> npt.NDArray[np.float64]:
    """A number or array of numbers in [0, inf), or in [0, most]."""
    if isinstance(value, (bool, np.bool_, str, bytes)):
        raise TypeError(f"{name} must be a number or an array of numbers, got {value!r}")
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be a number or an array of numbers, got {value!r}") from None
    bad = ~((array >= 0.0) & (array <= most) & np.isfinite(array))
    if bad.any():
        allowed = f"[0, {most:g}]" if math.isfinite(most) else "[0, inf)"
        raise ValueError(f"{name} must be in {allowed}, got {float(array[bad][0])!r}")
    return array


def positive(name: str, value: Any) -> float:
    """A finite number above zero."""
    number = _real(name, value)
    if not 0.0 < number < math.inf:
        raise ValueError(f"{name} must be in (0, inf), got {value!r}")
    return number


def one_of(name: str, value: Any, allowed: Iterable[str]) -> str:
    """One of some words."""
    words = list(allowed)
    if value not in words:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, words))}, got {value!r}")
    return str(value)


def row_stochastic(name: str, value: Any) -> npt.NDArray[np.float64]:
    """A matrix of at least one row and column, entries >= 0, rows that sum to one (within 1e-9)."""
    try:
        matrix = np.array(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be a two-dimensional array of numbers") from None
    if matrix.ndim != 2 or 0 in matrix.shape:
        raise ValueError(f"{name} must have two dimensions, each >= 1, got shape {matrix.shape}")
    bad = np.argwhere(~((matrix >= 0.0) & np.isfinite(matrix)))
    if bad.size:
        row, column = map(int, bad[0])
        entry = float(matrix[row, column])
        raise ValueError(f"{name} entries must be in [0, 1], got {name}[{row}][{column}] = {entry!r}")
    total = matrix.sum(axis=1)
    worst = int(np.argmax(np.abs(total - 1.0)))
    if abs(total[worst] - 1.0) > 1e-9:
        raise ValueError(
            f"{name} rows must sum to 1 (within 1e-9), row {worst} sums to {float(total[worst])!r}"
        )
    return np.asarray(matrix / total[:, None])


def integers(name: str, value: Any) -> npt.NDArray[np.integer[Any]]:
    """A whole number or a one-dimensional array of whole numbers, in the machine's byte order."""
    try:
        array = np.asarray(value)
    except ValueError:  # rows of different lengths
        raise ValueError(f"{name} must be a number or one-dimensional") from None
    if array.size == 0 and isinstance(value, (list, tuple)):
        array = array.astype(np.int64)
    if array.dtype.kind not in "iu":
        raise TypeError(f"{name} must be whole numbers (an integer dtype), got dtype {array.dtype}")
    if array.ndim > 1:
        raise ValueError(f"{name} must be a number or one-dimensional, got shape {array.shape}")
    return np.asarray(array, dtype=array.dtype.newbyteorder("="))


def below(
    name: str, array: npt.NDArray[np.integer[Any]], bound: int, offset: int = 0
) -> npt.NDArray[np.unsignedinteger[Any]]:
    """The integers as unsigned ones in [0, bound). The place of the first offender is said, counted from
    offset, and not what it is: it may be somebody's answer."""
    width = array.dtype.itemsize
    unsigned = np.ascontiguousarray(array).view(f"u{width}")  # what is negative becomes large
    outside = min(bound, 2 ** (8 * width - (array.dtype.kind == "i")))
    if unsigned.size and int(unsigned.max()) >= outside:
        first = int(np.argmax(unsigned >= outside))
        raise ValueError(f"{name} must be in [0, {bound - 1}], got another at {name}[{offset + first}]")
    return unsigned


def counts(name: str, value: Any, size: int, most: int) -> npt.NDArray[np.float64]:
    """``size`` numbers in [0, most]."""
    array = non_negative(name, value)
    if array.shape != (size,):
        raise ValueError(f"{name} must have shape ({size},), got {array.shape}")
    if (array > most).any():
        first = int(np.argmax(array > most))
        raise ValueError(f"{name} must be in [0, {most}], got {name}[{first}] = {array[first]}")
    return array


def above(name: str, value: Any, bound: float) -> float:
    """A finite number strictly above ``bound``."""
    number = _real(name, value)
    if not bound < number < math.inf:
        raise ValueError(f"{name} must be in ({bound:g}, inf), got {value!r}")
    return number


def sampled_epsilon0(value: Any) -> float:
    """A local epsilon that weights out of 2^64 can realise well."""
    number = _real("epsilon0", value)
    if not 1e-6 <= number <= MAX_SAMPLED_EPSILON0:
        raise ValueError(
            f"epsilon0 must be in [1e-06, {MAX_SAMPLED_EPSILON0:g}] to be sampled exactly, got {value!r}"
        )
    return number


def reals(name: str, value: Any, low: float, high: float) -> npt.NDArray[np.float64]:
    """A number or a one-dimensional array of numbers in [low, high]; the first offender is named."""
    try:
        raw = np.asarray(value)
    except ValueError:
        raise ValueError(f"{name} must be a number or one-dimensional") from None
    if raw.dtype.kind not in "iuf":
        raise TypeError(f"{name} must be real numbers, got dtype {raw.dtype}")
    if raw.ndim > 1:
        raise ValueError(f"{name} must be a number or one-dimensional, got shape {raw.shape}")
    array = raw.astype(np.float64)
    bad = ~((array >= low) & (array <= high))
    if bad.any():
        first = int(np.argmax(bad))
        where = f"{name}[{first}]" if raw.ndim else name
        raise ValueError(f"{name} must be in [{low!r}, {high!r}], got another at {where}")
    return array


def finite(name: str, value: Any) -> float:
    """A finite number."""
    number = _real(name, value)
    if not math.isfinite(number):
        raise ValueError(f"{name} must be a finite number, got {value!r}")
    return number
