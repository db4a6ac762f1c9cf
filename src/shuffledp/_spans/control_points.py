"""Rows that span many inputs, and types of reports: guesses (T16, section 9). Others prove what they miss.

Masses of the types are a curve, of inputs from 0 to 1; rows are control points of a curve next to it:

* of smooth noise, of a cubic spline (its basis is positive and sums to one);
* of noise with a kink at zero, like Laplace's, corners of the polygon of tangents at the ends of types. For
  Laplace noise this is exact: below a type all R_x are multiples of one law, above it likewise.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from shuffledp._certified.rounding import Floats, positive
from shuffledp._spans.span import Span

_ADDED_VARIANCE = 0.003, 0.005  # tightness: of X, by what types hide; where each type has a row
_WIDEST, _WIDER, _SELDOM = 0.2, 0.36, 1e-8  # tightness: of a type, in log rho, and where reports are so rare
_MOST_TYPES = 220, 36  # speed; where each type has a row
_KINKED = 0.6  # speed: how straight log f is at zero; of a parabola this is a third
_PIECES = (3, 4, 6, 8, 12, 16)  # speed: of a spline
_FITTED = 16  # speed: places in each
_DEGREE, _LEAST = 3, 0.5  # tightness: of the least mass of any input
_CLOSE, _USEFUL = 4e-6, 1e-3  # tightness: what mixtures may miss in the mean, in deviations of X
_LARGEST_SPREAD = 0.95  # soundness: below one
_NOT_WORTH_IT = 1e-12  # speed: a spread that is as well counted as missed


def closest(
    found: Iterable[tuple[Floats, Floats]], spread: Floats, lost: float, deviation: float
) -> Span | None:
    """The first rows that miss little enough, or those that miss least: of (rows, missed)."""
    best: Span | None = None
    within = np.where(spread > _NOT_WORTH_IT, np.maximum(spread, spread[::-1]), 0.0)
    for rows, missed in found:
        missed = missed + np.where(within > 0.0, 0.0, spread)
        if not ((rows > 0.0).all() and missed.max() < 1.0 and spread.max() < _LARGEST_SPREAD):
            continue
        span = Span(rows, within, np.maximum(missed, missed[::-1]), lost)
        best = span if best is None or span.excess < best.excess else best
        if span.excess <= _CLOSE * deviation:
            break
    return best if best is not None and best.excess <= _USEFUL * deviation else None


def is_kinked(log_f: Floats) -> bool:
    """Of noise 0, h and 2 h, h being small."""
    first, second = -np.diff(log_f)
    return bool(first > _KINKED * second)


def steps_of_types(
    rate: Floats, density: Floats, variance: float, width: float, kinked: bool
) -> Floats | None:
    """How many types there are from the middle of all reports up to each place, outwards: ``rate`` is that of
    log rho, ``density`` that of reports, all inputs' largest, ``variance`` that of X. None: too many."""
    third = np.cbrt(rate**2 * density)
    wanted = np.sqrt(width * third.sum() / (2.0 * _ADDED_VARIANCE[kinked] * positive(variance))) * third
    widest = np.where(kinked | (density < _SELDOM * density[0]), _WIDER, _WIDEST)
    steps = np.cumsum(np.maximum(wanted, rate / widest)) * width
    useful = math.isfinite(steps[-1]) and 1.0 < steps[-1] < _MOST_TYPES[kinked] / 2
    return np.asarray(steps) if useful else None


def splines(x: Floats, masses: Floats) -> Iterator[tuple[Floats, Floats]]:
    """Rows whose spline over [0, 1] comes near the masses at x, in relative terms; and the weights there."""
    for pieces in _PIECES:
        weights = _basis(x, pieces)
        step = max(1, (x.size - 1) // (_FITTED * pieces))
        fitted = masses[::step]
        if len(fitted) <= pieces + _DEGREE:
            return
        found = [
            np.linalg.lstsq(weights[::step] / column[:, None], np.ones(column.size), rcond=None)[0]
            for column in fitted.T
        ]
        # Where reports are so rare that masses are coarse, curves may have control points below zero.
        yield mirrored(np.maximum(np.stack(found, axis=1), _LEAST * masses.min(axis=0))), weights


def _basis(x: Floats, pieces: int) -> Floats:
    """B-splines on [0, 1], the first and the last one at its ends: positive, with the sum 1."""
    inner = np.arange(pieces + 1.0) / pieces
    knots = np.concatenate([np.zeros(_DEGREE), inner, np.ones(_DEGREE)])
    found = ((x[:, None] >= knots[:-1]) & (x[:, None] < knots[1:])).astype(np.float64)
    found[x == 1.0, pieces + _DEGREE - 1] = 1.0
    for degree in range(1, _DEGREE + 1):
        before, after = knots[degree:-1] - knots[: -degree - 1], knots[degree + 1 :] - knots[1:-degree]
        rising = np.where(before > 0.0, x[:, None] - knots[: -degree - 1], 0.0) / np.where(
            before > 0.0, before, 1.0
        )
        falling = np.where(after > 0.0, knots[degree + 1 :] - x[:, None], 0.0) / np.where(
            after > 0.0, after, 1.0
        )
        found = rising * found[:, :-1] + falling * found[:, 1:]
    return found


def polygon(
    masses: Floats, knots: npt.NDArray[np.intp], slopes: Floats, following: int
) -> tuple[Floats, Floats]:
    """Both ends, and of every two knots the corner where their tangents meet; weights that give the masses
    their parts below a type, and above it: from its knot to ``following`` beyond the next."""
    at = masses[knots]
    corners = [_corner(*pair) for pair in pairwise(zip(at, slopes, strict=True))]
    rows = mirrored(np.stack([masses[0], *corners, masses[-1]]))
    weights = np.zeros((len(masses), len(rows)))
    for cell, (first, last) in enumerate(pairwise(knots.tolist())):
        some, near = slice(first, last + following + 1), slice(cell, cell + 3)
        parts = _around(rows[near], cell + 1), _around(masses[some], cell + 1)
        weights[some, near] = np.linalg.solve(parts[0], parts[1]).T
    return rows, weights


def _around(rows: Floats, own: int) -> Floats:
    """Masses below a type, above it, and of all."""
    return np.stack([rows[:, :own].sum(axis=1), rows[:, own + 1 :].sum(axis=1), rows.sum(axis=1)])


def _corner(first: tuple[Floats, Floats], second: tuple[Floats, Floats]) -> Floats:
    """Where two tangents come nearest to each other: (point, slope) each."""
    scale = 1.0 / np.sqrt(first[0] * second[0])
    lines = np.stack([first[1] * scale, second[1] * scale], axis=1)
    there, back = np.linalg.lstsq(lines, (second[0] - first[0]) * scale, rcond=None)[0]
    return np.asarray(0.5 * (first[0] + there * first[1] + second[0] - back * second[1]))


def mirrored(rows: Floats) -> Floats:
    """Rows that sum to one, mirror images of each other: inputs are."""
    both = 0.5 * (rows + rows[::-1, ::-1])
    return np.asarray(both / both.sum(axis=1, keepdims=True))
