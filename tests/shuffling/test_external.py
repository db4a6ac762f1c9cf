"""The shuffle through buckets on disk is uniform, and whole."""

from collections import Counter
from collections.abc import Iterator
from itertools import permutations
from math import factorial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2

from shuffledp._randomness.words import source
from shuffledp.shuffling.permutation import shuffled_batches

pytestmark = pytest.mark.quick


def shuffled(parts: list[np.ndarray], rows: int, folder: Path, seed: int) -> np.ndarray:
    n = sum(map(len, parts))
    words = source(np.random.default_rng(seed))
    return np.concatenate(list(shuffled_batches(parts, n, folder, words, rows_in_memory=rows)))


@pytest.mark.thorough
def test_all_orders_of_four_reports_in_two_buckets_are_equally_likely(tmp_path: Path) -> None:
    parts = [np.array([0, 1, 2], dtype=np.uint8), np.array([3], dtype=np.uint8)]
    runs, words = 2_400, source(np.random.default_rng(11))
    seen: Counter[tuple[int, ...]] = Counter()
    for _ in range(runs):
        out = np.concatenate(list(shuffled_batches(parts, 4, tmp_path, words, rows_in_memory=2)))
        seen[tuple(map(int, out))] += 1
    expected = runs / factorial(4)
    statistic = sum((seen[p] - expected) ** 2 / expected for p in permutations(range(4)))
    assert statistic < chi2.isf(1e-6, factorial(4) - 1)


@pytest.mark.parametrize("rows", [7, 1000, 10_000])
@pytest.mark.parametrize("shape", [(), (3,)])
def test_no_report_is_lost_and_no_order_is_left(rows: int, shape: tuple[int, ...], tmp_path: Path) -> None:
    n = 4000
    reports = np.arange(n * int(np.prod(shape, dtype=int)), dtype=np.uint32).reshape(n, *shape)
    out = shuffled(np.array_split(reports, 9), rows, tmp_path, seed=rows)
    ids = out.reshape(n, -1)[:, 0].astype(float)
    assert (out[np.argsort(ids)] == reports).all()
    assert abs(np.corrcoef(ids, np.arange(n))[0, 1]) * np.sqrt(n) < 5.5  # false alarm 4e-8
    assert not list(tmp_path.iterdir())


def test_nothing_is_given_out_before_everything_is_read(tmp_path: Path) -> None:
    def parts() -> Iterator[Any]:
        yield np.arange(10)
        raise RuntimeError("damaged")

    for rows in (5, 100):
        stream = shuffled_batches(parts(), 20, tmp_path, source(), rows_in_memory=rows)
        with pytest.raises(RuntimeError, match="damaged"):
            next(stream)


def test_no_batches_give_no_reports(tmp_path: Path) -> None:
    assert list(shuffled_batches([], 0, tmp_path, source(), rows_in_memory=5)) == []
