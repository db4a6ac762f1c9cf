"""Reports that are sets of categories, packed eight to a byte (the first category is bit 0 of byte 0)."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from shuffledp.randomizers._categories import Counts, Integers, chunks
from shuffledp.randomizers.frequency import FrequencyRandomizer

Bits = npt.NDArray[np.bool_]


class SetRandomizer(FrequencyRandomizer):
    """Every report is a set of categories: row of ceil(k / 8) bytes. It supports those it contains."""

    @property
    def _words_per_value(self) -> int:
        return self.k

    @property
    def report_dtype(self) -> np.dtype[np.unsignedinteger[Any]]:
        """Bytes."""
        return np.dtype(np.uint8)

    @property
    def report_shape(self) -> tuple[int, ...]:
        """ceil(k / 8) bytes."""
        return (-(-self.k // 8),)

    def _checked_reports(self, reports: Any) -> Integers:
        array = np.asarray(reports)
        if array.dtype != np.uint8:
            raise TypeError(f"reports must be packed bits of dtype uint8, got dtype {array.dtype}")
        rows = array[None] if array.ndim == 1 else array
        (width,) = self.report_shape
        if rows.ndim != 2 or rows.shape[1] != width:
            raise ValueError(
                f"reports must have shape (n, {width}) for k = {self.k}, got {array.shape}"
            )
        used = np.uint8(self.k - 8 * (width - 1))
        beyond = np.flatnonzero(rows[:, -1] >> used) if used < 8 else np.empty(0, dtype=np.intp)
        if beyond.size:
            raise ValueError(
                f"reports must have no bits beyond category {self.k - 1}, "
                f"got reports[{beyond[0]}] = {rows[beyond[0]]}"
            )
        return rows

    def _count(self, reports: Integers) -> Counts:
        total = np.zeros(self.k, dtype=np.int64)
        for part in chunks(len(reports), *self.report_shape):
            total += unpacked(reports[part], self.k).sum(axis=0, dtype=np.int64)
        return total


def packed(bits: Bits) -> Integers:
    """Rows of bits as rows of bytes."""
    return np.packbits(bits, axis=1, bitorder="little")


def unpacked(reports: Integers, k: int) -> npt.NDArray[np.uint8]:
    """Rows of bytes as rows of k zeros and ones."""
    return np.unpackbits(reports, axis=1, count=k, bitorder="little")
