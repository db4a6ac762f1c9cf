"""Multinomials are enumerated whole."""

import numpy as np
import pytest

from shuffledp._certified.multinomial import enumerate_multinomial, outcomes

pytestmark = pytest.mark.quick


def test_a_multinomial_is_enumerated_whole() -> None:
    counts, p = enumerate_multinomial(6, np.array([0.2, 0.3, 0.5]))
    assert len(counts) == outcomes(6, 3) == 28
    assert p.sum() == pytest.approx(1.0, rel=1e-13)
    assert (counts * p[:, None]).sum(axis=0) == pytest.approx([1.2, 1.8, 3.0], rel=1e-12)
