"""The secure shuffle of reports: a uniformly random permutation, exactly, in memory or through the disk.

Every report gets a random key, and the reports are sorted by their keys. Key and payload share one
64-bit word, the key in front, so that one plain sort of whole numbers moves both: the payload is the
report itself where it has at most 32 bits, and its index otherwise.

Keys of b bits are the first b of infinitely many random bits. Reports whose keys are equal (about
n^2 / 2^(b+1) pairs) draw further bits until they differ, so the order is that of independent uniform real
numbers: all n! permutations are equally likely, at total variation distance zero. That holds for ideal
random words; the secure source's AES key stream is as good as indistinguishable from them.

More reports than memory holds (Rao 1961, Sandelius 1962): every report goes to one of B buckets on disk,
chosen uniformly and independently; then each bucket is permuted uniformly in memory, and the buckets are put
one after the other. Order the reports by (bucket, position inside): that is the order of independent uniform
real numbers of which the bucket is the leading digit in base B, so all orders are equally likely, exactly.
The buckets' sizes, the only trace of the method, are independent of the reports.

>>> import numpy as np, tempfile
>>> shuffled = shuffle(np.arange(5, dtype=np.uint8))
>>> sorted(int(report) for report in shuffled)
[0, 1, 2, 3, 4]
>>> from shuffledp._randomness.words import source
>>> parts = [np.arange(5), np.arange(5, 9)]
>>> with tempfile.TemporaryDirectory() as folder:
...     out = list(shuffled_batches(parts, 9, Path(folder), source(), rows_in_memory=4))
>>> sorted(np.concatenate(out).tolist())
[0, 1, 2, 3, 4, 5, 6, 7, 8]
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from shuffledp import _validate
from shuffledp._randomness.uniform import uniform
from shuffledp._randomness.words import Uint64s, Words, is_simulated, marked, source
from shuffledp.errors import TooFewReportsError

Reports = npt.NDArray[Any]

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


def buckets_for(n: int, rows_in_memory: int) -> int:
    """How many buckets, so that one of them holds about ``rows_in_memory`` reports at most.

    >>> buckets_for(10, 10), buckets_for(11, 10)
    (1, 2)
    """
    return max(1, -(-n // rows_in_memory))


def shuffled_batches(
    batches: Iterable[Reports], n: int, folder: Path, words: Words, *, rows_in_memory: int
) -> Iterator[Reports]:
    """The reports of all batches (about n) in uniformly random order, in new batches.

    Nothing is given out before all batches are read. ``folder`` takes the buckets."""
    buckets = buckets_for(n, rows_in_memory)
    if buckets == 1:
        held = [np.array(batch) for batch in batches]
        if held:
            yield permuted(np.concatenate(held), words)
        return
    kind = _spread(batches, buckets, folder, words)
    for path in (_path(folder, bucket) for bucket in range(buckets)):
        if path.exists():
            reports = np.fromfile(path, dtype=kind.dtype).reshape(-1, *kind.shape[1:])
            path.unlink()
            yield permuted(reports, words)


def _spread(batches: Iterable[Reports], buckets: int, folder: Path, words: Words) -> Reports:
    """Every report into a random bucket. Gives an empty batch, for type and shape."""
    kind: Reports = np.zeros(0)
    for batch in batches:
        kind = batch[:0]
        chosen = uniform(words, buckets, len(batch)).astype(np.min_scalar_type(buckets))
        grouped = batch[np.argsort(chosen, kind="stable")]
        ends = np.cumsum(np.bincount(chosen, minlength=buckets))
        for bucket, part in enumerate(np.split(grouped, ends[:-1])):
            if len(part):
                # Opened each time: more buckets than files may be open are no trouble.
                with open(_path(folder, bucket), "ab") as file:
                    file.write(np.ascontiguousarray(part).data)
    return kind


def _path(folder: Path, bucket: int) -> Path:
    return folder / f"bucket-{bucket}"
