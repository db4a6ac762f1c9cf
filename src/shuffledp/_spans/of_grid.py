"""Rows that span noise on a fine grid: hundreds of inputs and reports, by some ten rows (T16, section 9).

Inputs are rows of a matrix, from one end of the grid to the other, and types reports next to each other. What
is guessed is as on the line (control_points.py); all inputs and all reports are compared with it.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from shuffledp._certified.rounding import CALL, Floats, gamma, positive, up
from shuffledp._spans.control_points import closest, is_kinked, polygon, splines, steps_of_types
from shuffledp._spans.span import Span

_UNITS = 64  # soundness: operations of a mass, a mixture or a quotient
_FEW = 18, 100  # speed: inputs, of which all triples are looked at; where noise has a kink
_COARSE = 0.6  # tightness: a spread inside a type
_LEAST = 1e-12  # soundness: of what mixtures miss, more than roundings of sums and of weights

Places = npt.NDArray[np.intp]


def span_of_grid(matrix: Floats) -> Span | None:
    """Of rows of positive probabilities, the first mirror images of the last. None: no few come near, or
    all triples of inputs serve as well."""
    if len(matrix) <= min(_FEW):
        return None
    middle, pad = len(matrix) // 2, (matrix.shape[1] - len(matrix)) // 2
    kinked = pad == 0 and is_kinked(np.log(matrix[middle, middle : middle + 3]))
    starts = _types(matrix, kinked) if len(matrix) > _FEW[kinked] else None
    if starts is None:
        return None
    starts = _parted(matrix, starts)
    masses = np.add.reduceat(matrix, starts, axis=1)
    guesses = [_chords(masses, starts)] if kinked else splines(np.linspace(0.0, 1.0, len(matrix)), masses)
    found = ((rows, _missed(masses, rows, weights)) for rows, weights in guesses)
    apart = (masses[0] - masses[-1]) ** 2 / masses[middle]
    return closest(found, _spreads(matrix, starts), 0.0, float(np.sqrt(apart.sum())))


def _types(matrix: Floats, kinked: bool) -> Places | None:
    """The first report of each type, mirror images of each other; with a kink the reports at both ends are
    types of their own, as all noise beyond them is there. None: there would be too many."""
    reports, log_rho = matrix.shape[1], np.log(matrix[0] / matrix[-1])
    half = reports // 2
    outward = np.arange(half - 1, -1, -1)
    variance = float(((matrix[0] - matrix[-1]) ** 2 / matrix[len(matrix) // 2]).sum())
    rate, density = np.abs(np.diff(log_rho))[outward], matrix.max(axis=0)[outward]
    steps = steps_of_types(rate, density, variance, 1.0, kinked)
    if steps is None or steps.size < 2 * steps[-1]:
        return None
    if kinked:
        types = 2 * int(np.ceil(steps[-1])) + 1
        inner = np.rint(np.arange(1, types // 2 + 1) * ((reports - 2) / types)).astype(np.intp) + 1
        left = np.concatenate([[0, 1], inner])
    else:
        cells = np.ceil(steps[-1])
        numbers = np.minimum(np.floor(steps * (cells / steps[-1])), cells - 1.0)
        left = np.append(0, half - 1 - np.flatnonzero(np.diff(numbers))[::-1])
    return np.unique(np.concatenate([left, reports - left[1:]]))


def _parted(matrix: Floats, starts: Places) -> Places:
    """Types inside which inputs differ too much, in single reports: so rare that whole weights are coarse."""
    coarse = _spreads(matrix, starts) > _COARSE
    coarse |= coarse[::-1]
    lasts = np.append(starts[1:], matrix.shape[1])
    parts = [np.arange(first, last) for first, last in zip(starts[coarse], lasts[coarse], strict=True)]
    return np.unique(np.concatenate([starts, *parts]))


def _spreads(matrix: Floats, starts: Places) -> Floats:
    """Of every type: by how much any two inputs' reports of it may differ."""
    masses = np.add.reduceat(matrix, starts, axis=1)
    given = np.log(matrix) - np.log(np.repeat(masses, np.diff(np.append(starts, matrix.shape[1])), axis=1))
    most = np.maximum.reduceat(given.max(axis=0) - given.min(axis=0), starts)
    most = np.minimum(
        most + gamma(4 * CALL) * (2.0 + np.abs(given).max()) + gamma(_UNITS + matrix.shape[1]), 1.0
    )
    single = np.diff(np.append(starts, matrix.shape[1])) == 1
    # c_x/c_z is at most e^most, and (c_x - c_y)/c_z at most e^most (e^most - 1).
    return np.where(single, 0.0, up(np.exp(most) * np.expm1(most), 4 * CALL))


def _missed(masses: Floats, rows: Floats, weights: Floats) -> Floats:
    """By which share mixtures miss the masses of any input."""
    weights = np.maximum(weights, 0.0)
    mixed = weights @ rows / positive(weights.sum(axis=1, keepdims=True))
    off = np.abs(masses / positive(mixed) - 1.0).max(axis=0)
    return np.asarray(up(off + 2.0 * gamma(_UNITS + masses.shape[1] + 2 * len(rows)) + _LEAST, _UNITS))


def _chords(masses: Floats, starts: Places) -> tuple[Floats, Floats]:
    """Rows and weights of noise with a kink: at the end of every type the line through it and the next."""
    knots = starts[1:] - 1
    return polygon(masses, knots, masses[knots + 1] - masses[knots], 1)
