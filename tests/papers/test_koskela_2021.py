"""The misread clones and the one-dimensional counts of the 2021 paper."""

import math

import numpy as np
import pytest

from oracles.golden import Golden, entries
from shuffledp.accounting._curves.clones import clones_2021, strong_adversary
from shuffledp.literature.as_published.koskela_2021 import clones_as_published, marginals_as_published
from shuffledp.papers._result import Panel, Setting
from shuffledp.papers.koskela_2021._figures import figure_1

pytestmark = pytest.mark.quick


@pytest.mark.parametrize("golden", entries("fmt21_p1eq51_delta"), ids=str)
def test_the_pair_as_printed_has_its_golden_values(golden: Golden) -> None:
    epsilon0, n, epsilon = golden.number("eps0"), golden.params["n"], golden.number("eps")
    assert clones_as_published(epsilon0, n, epsilon) == pytest.approx(golden.delta, rel=1e-9)
    assert clones_2021(epsilon0, n).support(np.array([epsilon]), 1e-4).value[0] <= golden.delta


def test_the_pair_as_printed_is_useless_for_small_epsilon0() -> None:
    """The 2021 clones give nothing at all beyond epsilon0; the printed pair still has a large delta."""
    assert float(clones_2021(0.1, 20).upper(np.array([0.1]), 1e-3)[0]) < 1e-15
    assert clones_as_published(0.1, 20, 0.1) > 0.05


def test_counts_of_one_symbol_fall_below_the_strong_adversary() -> None:
    """n = 1000, k = 4, gamma = 1/4, epsilon = 1/2: 1.5e-7 and 2.4e-5 where the truth is 1.68e-4."""
    forward, backward = marginals_as_published(1000, 4, 0.25, 0.5)
    assert forward == pytest.approx(1.5e-7, rel=0.05)
    assert backward == pytest.approx(2.4e-5, rel=0.05)
    profile = strong_adversary(4, 0.25, 0.75, 1000)
    truth = float(profile.support(np.array([0.5]), 1e-4).value[0])
    assert truth == pytest.approx(1.68e-4, rel=0.01)
    assert max(forward, backward) < truth


def test_bad_input_is_named() -> None:
    with pytest.raises(ValueError, match="epsilon0 must be in"):
        clones_as_published(-1.0, 10, 0.1)
    with pytest.raises(ValueError, match="gamma must be in"):
        marginals_as_published(10, 2, math.nan, 0.1)


def test_the_figure_draws_the_larger_of_the_two_directions() -> None:
    """Indistinguishability asks for both; the smaller one would make the paper look worse than it is."""
    (_, formulas, _) = figure_1.run(Setting(quick=True)).panels
    assert isinstance(formulas, Panel)
    (drawn,) = (curve for curve in formulas.curves if curve.name.startswith("one-dimensional"))
    for epsilon, value in zip(drawn.x, drawn.y, strict=True):
        assert value == max(marginals_as_published(1000, 4, 0.25, float(epsilon)))
