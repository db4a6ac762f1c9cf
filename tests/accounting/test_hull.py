"""Convex hulls of points."""

import numpy as np
import pytest

from shuffledp.accounting._rounds.loss import lower_hull

pytestmark = pytest.mark.quick


def test_the_lower_hull_drops_what_lies_above() -> None:
    x = np.array([0.0, 1.0, 2.0, 3.0, 4.0])
    assert lower_hull(x, np.array([4.0, 1.0, 2.0, 0.0, 0.0])).tolist() == [0, 1, 3, 4]


@pytest.mark.parametrize("kind", ["rough", "dome", "stairs"])
def test_the_lower_hull_is_that_of_all_chords(kind: str) -> None:
    """Few passes are enough for rounding; of a dome, point after point must go."""
    rng = np.random.default_rng(2)
    for size in (2, 3, 10, 60):
        x = np.cumsum(rng.integers(1, 9, size)).astype(float)
        y = {
            "rough": rng.integers(0, 50, size).astype(float),
            "dome": -((x - x.mean()) ** 2),
            "stairs": np.repeat(np.arange(size, 0.0, -1.0), 2)[:size],
        }[kind]
        found = lower_hull(x, y)
        assert {0, size - 1} <= set(found.tolist())
        assert np.all(np.diff(np.diff(y[found]) / np.diff(x[found])) > 0.0)
        assert np.all(np.interp(x, x[found], y[found]) <= y + 1e-9)
