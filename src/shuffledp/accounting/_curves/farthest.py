"""Which inputs are farthest from the blanket: the others need not be looked at (T16, docs/proofs/crowd.md).

Where somebody sends a report of R_z, or one of the blanket's own law m/gamma, X is R_z/m - alpha/gamma, or
1/gamma - alpha R_z/m, with probability m, and 0 else. So the law of R_z/m under m decides, for all alpha: an
input whose R_z/m is below that of another one in the convex order is never worse. For noise on a grid that
other one is an end. It is looked at in stop-loss curves, of rounded numbers: the larger law is moved by more
than they are off.
"""

from __future__ import annotations

import numpy as np

from shuffledp._certified.rounding import UNIT, Floats, down, gamma, up
from shuffledp.accounting._curves.stop_loss import Stops

Pair = tuple[Floats, Floats]

_MOVED = 2**17  # soundness: units, far more than entries, quotients and sums are off by
_APART = 16.0  # soundness: times what two rows that an input lies between differ by (docs/proofs/crowd.md)
_BEYOND = 0.5  # soundness: less than 2/3 (docs/proofs/crowd.md)
_UNITS = 16  # soundness: of a stop-loss curve, beside three for each value (stop_loss.py)


def farthest_pairs(high: Floats, low: Floats, clone: Floats, centre: Floats) -> list[tuple[Floats, Floats]]:
    """(own, other) of every row and the centre, both ways: of the farthest row, moved outward, and of those
    that are not proved to be nearer. All of ``clone`` is positive. An input lies between ``high`` and
    ``low``, which are one matrix where rows are inputs."""
    first = int(((high - centre) ** 2 / clone).sum(axis=1).argmax())
    apart = float((high - low).sum(axis=1).max()) + gamma(2 * clone.size)
    moved = _MOVED if high is low else _MOVED + _APART * apart / UNIT
    rows = list(zip(high, low, strict=True))
    others = [row for row in rows if not _is_nearer(row, rows[first], clone, moved)]
    ends = [(up(high[first], moved, tiny=0.0), centre), (centre, down(low[first], moved, tiny=0.0))]
    return [*ends, *(pair for own, other in others for pair in ((own, centre), (centre, other)))]


def _is_nearer(row: Pair, first: Pair, clone: Floats, moved: float) -> bool:
    """Whether row/clone is below first/clone, moved by half, in the convex order: from both sides.

    Between two values of the latter its curve is a line, and the other is convex: values are enough. From
    below, those up to where half of ``first`` lies beyond (docs/proofs/crowd.md: the rest follows)."""
    units = 3 * clone.size + _UNITS
    above = _stops(up(first[0] / clone, moved / 2.0, tiny=0.0), clone)
    high = _stops(up(row[0] / clone, 2, tiny=0.0), clone)
    calls = np.append(above.value[0], 0.0)
    if (up(high.calls(calls), units, tiny=0.0) > down(above.calls(calls), units, tiny=0.0)).any():
        return False
    below = _stops(down(first[1] / clone, moved / 2.0, tiny=0.0), clone)
    low = _stops(down(row[1] / clone, 2, tiny=0.0), clone)
    values, masses = above.value[0], np.cumsum(above.value[0] * above.weight[0])
    # No more than that is beyond.
    last = up(values[max(int((masses <= _BEYOND).sum()) - 1, 0)], 2, tiny=0.0)
    puts = np.append(last, below.value[0][below.value[0] <= last])
    return not (up(low.puts(puts), units, tiny=0.0) > down(below.puts(puts), units, tiny=0.0)).any()


def _stops(value: Floats, clone: Floats) -> Stops:
    order = np.argsort(-value)
    return Stops(value[order][None], clone[order][None])
