"""The secure shuffle of reports in memory: a uniformly random permutation, exactly.

Every report gets a random key, and the reports are sorted by their keys. Key and payload share one
64-bit word, the key in front, so that one plain sort of whole numbers moves both: the payload is the
report itself where it has at most 32 bits, and its index otherwise.

Keys of b bits are the first b of infinitely many random bits. Reports whose keys are equal (about
n^2 / 2^(b+1) pairs) draw further bits until they differ, so the order is that of independent uniform real
numbers: all n! permutations are equally likely, at total variation distance zero. That holds for ideal
random words; the secure source's AES key stream is as good as indistinguishable from them.

>>> import numpy as np
>>> shuffled = shuffle(np.arange(5, dtype=np.uint8))
>>> sorted(int(report) for report in shuffled)
[0, 1, 2, 3, 4]
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from shuffledp import _validate
from shuffledp._randomness.simulated import is_simulated, marked
from shuffledp._randomness.words import Uint64s, Words, source
from shuffledp.errors import TooFewReportsError

Reports = npt.NDArray[Any]

WORD_BITS = 64
_MOST_PAYLOAD_BITS = 32  # the key has the other ones: few ties (speed)


def shuffle(reports: Any, *, minimum: int = 1, rng: np.random.Generator | None = None) -> npt.NDArray[Any]:
    """The reports (rows of an array) in a fresh, uniformly random order, as a new array.

    Refuses fewer than ``minimum`` of them. ``rng`` makes it repeatable, for simulations only."""
    rows = np.asarray(reports)
    if rows.ndim == 0:
        raise ValueError(f"reports must be an array of at least one dimension, got {reports!r}")
    check_enough(len(rows), minimum)
    return marked(permuted(rows, source(rng)), rng is not None or is_simulated(reports))


def check_enough(n: int, minimum: int, remark: str = "") -> None:
    """TooFewReportsError unless there are at least ``minimum`` reports, ``minimum`` being 1 or more."""
    least = _validate.count("minimum", minimum)
    if n < least:
        needed = "report is" if least == 1 else "reports are"
        raise TooFewReportsError(f"at least {least} {needed} needed for a shuffle, got {n}{remark}")


def permuted(rows: Reports, words: Words) -> Reports:
    """The rows in uniformly random order, as a new array."""
    bits = 8 * rows.dtype.itemsize
    if rows.ndim == 1 and rows.dtype.kind in "iufb" and bits <= _MOST_PAYLOAD_BITS:
        payload = np.ascontiguousarray(rows).view(f"u{rows.dtype.itemsize}")
        return in_random_order(payload, bits, words).astype(payload.dtype).view(rows.dtype)
    index = np.arange(len(rows), dtype=np.uint64)
    return rows[in_random_order(index, max(1, len(rows).bit_length()), words)]


def in_random_order(payload: npt.NDArray[Any], payload_bits: int, words: Words) -> Uint64s:
    """Unsigned whole numbers below 2^payload_bits in uniformly random order."""
    mask = np.uint64(2**payload_bits - 1)
    packed = words.draw(len(payload))
    np.bitwise_and(packed, ~mask, out=packed)
    np.bitwise_or(packed, payload, out=packed)
    packed.sort()
    _settle_ties(packed, np.uint64(payload_bits), words)
    return np.bitwise_and(packed, mask, out=packed)


def _settle_ties(packed: Uint64s, shift: np.uint64, words: Words) -> None:
    """Permute every run of equal keys uniformly; the sort has put it in the order of its payloads."""
    tied = _tied(packed, shift)
    while tied.size:
        # Runs stay where they are: the old key decides first, the new word second. Whatever of one
        # run is tied again is mixed as a whole: which places that are does not depend on payloads.
        order = np.lexsort((new := words.draw(tied.size), packed[tied] >> shift))
        packed[tied] = packed[tied[order]]
        tied = tied[_same_as_a_neighbour(packed[tied] >> shift, new[order])]


def _tied(packed: Uint64s, shift: np.uint64) -> npt.NDArray[np.intp]:
    """The positions of sorted words whose key is also a neighbour's, in pieces that fit a cache."""
    step = 1 << 16
    found = []
    for start in range(0, len(packed), step):
        keys = packed[start : start + step + 1] >> shift  # one more: pairs across the border
        pairs = np.flatnonzero(keys[1:] == keys[:-1]) + start
        found += [pairs, pairs + 1]
    return np.unique(np.concatenate(found)) if found else np.zeros(0, dtype=np.intp)


def _same_as_a_neighbour(*columns: Uint64s) -> npt.NDArray[np.bool_]:
    """Which entries of sorted columns equal the entry before or after in all columns."""
    equal = np.logical_and.reduce([column[1:] == column[:-1] for column in columns])
    same = np.zeros(len(columns[0]), dtype=np.bool_)
    same[1:] |= equal
    same[:-1] |= equal
    return same
