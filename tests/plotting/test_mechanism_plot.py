"""`.plot()` of a mechanism."""

import matplotlib as mpl
from matplotlib import pyplot

import shuffledp as sdp

mpl.use("Agg")


def test_a_mechanism_draws_its_privacy_curve() -> None:
    axes = sdp.Shuffled(sdp.LocalRandomizer(epsilon0=1.0), n=1000).plot()
    assert axes.get_xlabel()
    assert axes.get_ylabel()
    assert axes.get_yscale() == "log"
    assert axes.get_lines()
    pyplot.close("all")
