"""Pictures of certified answers. Needs matplotlib: ``pip install 'shuffledp[plot]'``.

Each function draws on ``ax``, or on new axes when there is none, and returns the axes:

    privacy_curve(mechanism)                       delta against epsilon, with the certified band
    epsilon_against("n", values, bound, delta=d)   epsilon against n, rounds or epsilon0
    bounds_compared(rows, lower=...)               several bounds of the same quantity
    histogram(result, truth=...)                   a collected histogram with its error bars
    estimate(results, truth=...)                   collected sums or means with theirs
    cumulative(result, truth=...)                  quantiles, and the share of people below each number
    table(result)                                  a map of a joint table of two attributes
    learning_curve(history)                        accuracy against epsilon or rounds
    save(ax, "curve.pdf")                          png, svg or pdf
"""

from shuffledp.plotting._curves import delta_against_epsilon, epsilon_against, learning_curve, privacy_curve
from shuffledp.plotting._rows import bounds_compared, cumulative, estimate, histogram, table
from shuffledp.plotting._style import new_axes, save

__all__ = [
    "bounds_compared",
    "cumulative",
    "delta_against_epsilon",
    "epsilon_against",
    "estimate",
    "histogram",
    "learning_curve",
    "new_axes",
    "privacy_curve",
    "save",
    "table",
]
