"""The picture of quantiles: the curve, its band, the intervals."""

from pathlib import Path

import numpy as np
import pytest

import shuffledp as sdp
from shuffledp import plotting

pytest.importorskip("matplotlib")
pytestmark = pytest.mark.quick


def test_the_curve_ends_at_one_and_shows_every_quantile(tmp_path: Path) -> None:
    protocol = sdp.QuantileProtocol(0, 10, bins=8, epsilon=1.0, delta=1e-6, n=500, branching=3)
    result = protocol.analyze(protocol.randomize(np.linspace(0, 10, 500)))
    ax = plotting.cumulative(result, truth=[2.5, 5.0, 7.5], ax=plotting.new_axes())
    curve = ax.lines[0]
    assert np.asarray(curve.get_ydata())[[0, -1]].tolist() == [0.0, 1.0]
    assert len(ax.lines) == 1 + 2 * 3 + 1
    assert ax.get_title().startswith("quantiles of 500 reports")
    plotting.save(ax, tmp_path / "quantiles.png")
    assert (tmp_path / "quantiles.png").stat().st_size > 1000
    with pytest.raises(ValueError, match="truth must have a number for each of 3"):
        result.plot(truth=[1.0], ax=plotting.new_axes())
