"""A uniformly random order of more reports than memory holds (Rao 1961, Sandelius 1962).

Every report goes to one of B buckets on disk, chosen uniformly and independently; then each bucket is
permuted uniformly in memory, and the buckets are put one after the other. Order the reports by
(bucket, position inside): that is the order of independent uniform real numbers of which the bucket is
the leading digit in base B, so all orders are equally likely, exactly. The buckets' sizes, the only
trace of the method, are independent of the reports.

>>> import numpy as np, tempfile
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

from shuffledp._randomness.uniform import uniform
from shuffledp._randomness.words import Words
from shuffledp.shuffling.permutation import permuted

Reports = npt.NDArray[Any]


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
