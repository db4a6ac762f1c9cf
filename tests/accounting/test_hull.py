"""Convex hulls of points."""

import numpy as np
import pytest

from shuffledp.accounting._rounds.loss import lower_hull

pytestmark = pytest.mark.quick


def test_the_lower_hull_drops_what_lies_above() -> None:
    x = np.array([0.0, 1.0, 2.0, 3.0, 4.0])
    assert lower_hull(x, np.array([4.0, 1.0, 2.0, 0.0, 0.0])).tolist() == [0, 1, 3, 4]
