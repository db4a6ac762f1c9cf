"""From raw values to a protocol's inputs, or a clear account of what does not belong.

Missing are None, nan, not-a-time and masked entries. What is neither missing nor in the domain is
outside. Both are errors unless the protocol was made with a place for them.

>>> CategoryIndex.of(["no", "yes"]).places(["yes", "no", "yes"])
array([1, 0, 1])
>>> CategoryIndex.of(["no", "yes"]).places(["yes", None, "maybe"])
Traceback (most recent call last):
    ...
shuffledp.errors.DomainError: 2 of 3 values are not in the domain: 1 missing, 1 outside it

What people answered is not for logs: values and their places are shown only where that is asked for.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import repeat
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt

from shuffledp._certified.rounding import Floats
from shuffledp.errors import DomainError

Places = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

MOST_CATEGORIES = 2**20
OUTSIDE = ("error", "clip")
"""What is done with numbers beyond the ends of a domain."""
_EXACT = 2**53
_COMPARABLE = {"i": "biuf", "U": "U"}
"""Kinds of arrays that can be compared with categories of a kind."""


def refuse(column: npt.NDArray[Any], missing: Mask, outside: Mask, show_values: bool = False) -> None:
    """DomainError unless both masks are empty."""
    wrong = np.flatnonzero(missing | outside)
    if wrong.size:
        flat = column.reshape(-1)
        shown = wrong[: DomainError.MOST_EXAMPLES] if show_values else ()
        examples = [(int(i), _python(flat[i])) for i in shown]
        raise DomainError(flat.size, int(missing.sum()), int(outside.sum()), examples)


def _python(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def checked_categories(categories: Any) -> tuple[Any, ...]:
    """At least two different strings, whole numbers, booleans or finite numbers."""
    if isinstance(categories, (str, bytes)) or not hasattr(categories, "__len__"):
        raise TypeError(f"categories must be a list of values, got {categories!r}")
    size = len(categories)
    if not 2 <= size <= MOST_CATEGORIES:
        raise ValueError(
            f"categories must hold 2 to {MOST_CATEGORIES} values, got {size}"
            + ("; a larger domain needs a coarser public list (a grid, or hashes of the values)" * (size > 2))
        )
    plain = tuple(_plain(value) for value in categories)
    seen: set[Hashable] = set()
    for place, value in enumerate(plain):
        if value in seen:
            raise ValueError(f"categories must be different, got {value!r} again at {place}")
        seen.add(value)
    return plain


def _plain(value: Any) -> Any:
    """A category as JSON knows it."""
    value = _python(value)
    if isinstance(value, (str, bool, int)) or (isinstance(value, float) and math.isfinite(value)):
        return value
    raise TypeError(f"categories must be strings, whole or finite numbers, got {value!r}")


@dataclass(frozen=True, eq=False)
class CategoryIndex:
    """The place of each category, for looking up columns.

    ``ranked`` are the categories in order and ``order`` their places, if all are whole numbers or all
    are strings: then arrays of their kind are looked up without a loop."""

    known: dict[Any, int]
    ranked: npt.NDArray[Any] | None
    order: Places
    consecutive: bool

    @classmethod
    def of(cls, categories: Sequence[Any]) -> CategoryIndex:
        known = {category: place for place, category in enumerate(categories)}
        whole = all(isinstance(c, int) and abs(c) < _EXACT for c in categories)
        if not whole and not all(isinstance(c, str) for c in categories):
            return cls(known, None, np.zeros(0, dtype=np.int64), False)
        array = np.array(categories, dtype=np.int64 if whole else np.str_)
        order = np.argsort(array, kind="stable").astype(np.int64)
        ranked = array[order]
        gapless = whole and int(ranked[-1]) - int(ranked[0]) + 1 == len(ranked)
        return cls(known, ranked, order, gapless and bool((array == ranked).all()))

    def places(self, column: Any, other: int | None = None, *, show_values: bool = False) -> Any:
        """The place of each value; ``other`` for what is missing or not there, else a DomainError."""
        array = as_column(column)
        if self.consecutive and array.dtype.kind in "iu" and array.size and self._spans(array):
            assert self.ranked is not None
            first = int(self.ranked[0])
            return array.astype(np.int64) - first if first else array
        places = self._look_up(array)
        wrong = places < 0
        if other is not None:
            return np.where(wrong, other, places)
        if wrong.any():
            missing = missing_in(array).reshape(-1)
            refuse(array, missing, wrong.reshape(-1) & ~missing, show_values)
        return places

    def _spans(self, array: npt.NDArray[Any]) -> bool:
        """Whether all values of an array are categories, which are consecutive numbers."""
        assert self.ranked is not None
        return bool(int(self.ranked[0]) <= int(array.min()) <= int(array.max()) <= int(self.ranked[-1]))

    def _look_up(self, array: npt.NDArray[Any]) -> Places:
        """Places, -1 for what is not there."""
        if self.ranked is not None and array.dtype.kind in _COMPARABLE[self.ranked.dtype.kind]:
            # Beyond 2^53 integers are compared as floats, but no category lies there.
            at = np.minimum(np.searchsorted(self.ranked, array), len(self.ranked) - 1)
            return np.where(self.ranked[at] == array, self.order[at], -1)
        values = array.reshape(-1).tolist()
        try:
            found = list(map(self.known.get, values, repeat(-1)))
        except TypeError:  # lists and the like
            found = [self.known.get(v, -1) if isinstance(v, Hashable) else -1 for v in values]
        return np.array(found, dtype=np.int64).reshape(array.shape)


def as_column(column: Any) -> npt.NDArray[Any]:
    """One value (no dimension) or a one-dimensional array; masked entries become None."""
    array: npt.NDArray[Any]
    if isinstance(column, np.ma.MaskedArray):
        array = np.array(column.data, dtype=object)
        array[np.ma.getmaskarray(column)] = None
    elif isinstance(column, (list, tuple)):
        array = _as_typed(column)
    elif hasattr(column, "collect_schema"):  # of polars
        raise TypeError(f"column is not computed yet, got a {type(column).__name__}: take .collect()[name]")
    else:
        array = np.asarray(column)
    if array.ndim > 1:
        raise ValueError(f"column must be one value or one-dimensional, got shape {array.shape}")
    return array


def _as_typed(values: Sequence[Any]) -> npt.NDArray[Any]:
    """An array that keeps every value: NumPy would turn [1, "a"] into strings."""
    kinds = {type(value) for value in values}
    if len(kinds) == 1 and kinds <= {str, int, float, bool}:
        return np.asarray(values)
    array = np.empty(len(values), dtype=object)
    for place, value in enumerate(values):
        array[place] = value
    return array


def numbers_in(
    column: Any, low: float, high: float, *, clip: bool = False, show_values: bool = False
) -> Floats:
    """The column as numbers in [low, high]; DomainError for what is none. ``clip``: to the nearer end."""
    array = as_column(column)
    missing = missing_in(array)
    numbers = _as_numbers(array, missing)
    if clip:
        numbers = np.where(missing, numbers, np.clip(numbers, low, high))
    inside = (numbers >= low) & (numbers <= high)
    refuse(array, missing.reshape(-1), (~inside & ~missing).reshape(-1), show_values)
    return numbers


def _as_numbers(array: npt.NDArray[Any], missing: Mask) -> Floats:
    """Real numbers as floats; what is missing becomes nan."""
    if array.dtype.kind == "O":
        array = np.where(missing, np.nan, array)
    try:
        if array.dtype.kind not in "iufO":
            raise TypeError
        return np.asarray(array, dtype=np.float64)
    except (TypeError, ValueError):
        wrong = sum(not isinstance(each, Real) for each in array.reshape(-1).tolist())
        raise TypeError(
            f"column must be real numbers, but {wrong:,} of its {array.size:,} values are not (texts?)"
        ) from None


def missing_in(array: npt.NDArray[Any]) -> Mask:
    """Where nothing was given."""
    if array.dtype.kind == "f":
        return np.asarray(np.isnan(array))
    if array.dtype.kind in "mM":
        return np.asarray(np.isnat(array))
    if array.dtype.kind != "O":
        return np.zeros(array.shape, dtype=np.bool_)
    found = [_is_missing(value) for value in array.reshape(-1)]
    return np.array(found, dtype=np.bool_).reshape(array.shape)


def _is_missing(value: Any) -> bool:
    if value is None:
        return True
    try:
        return bool(value != value)  # nan, not-a-time
    except (TypeError, ValueError):  # pandas.NA is neither equal nor different
        return True
