"""Reports of vectors simulated on the device that holds the gradients. **For simulations only.**

The draws are repeatable and in the gradients' precision: whoever knows the seed knows the noise, and
the last bits of a report depend on the gradient. What a person sends comes from
``randomizers.privunit``, whose law this follows. A report about the unit vector u is composed of its
height s = <V, u>, drawn from the cap or from the rest, and a uniform direction orthogonal to u:

    V = s u + sqrt(1 - s^2) (g - <g, u> u) / |g - <g, u> u|,   g standard normal.

Heights have the density (1 - s^2)^((d - 3)/2). A table gives the height beyond which, away from the
threshold, only a share e^-t of the cap (or of the rest) lies, at equal steps of t; t is drawn from the
exponential law. The height is smooth in t far into the tail, so that straight lines between the nodes
leave the mean within a few millionths. Only the sum of the reports is needed, so no report is
written down. Those of ``randomizers.leaning`` are normal vectors whose height is, with probability
``weight``, drawn anew, in proportion to r(t) e^(-t^2/2).
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from shuffledp._randomness.uniform import WORD
from shuffledp.randomizers.leaning import LeaningUnit
from shuffledp.randomizers.privunit import PrivUnit

_NODES = 1 << 16  # of the table of heights; accuracy of the simulation
_STEPS = 1 << 18  # of the integral behind it; likewise
DEEPEST = 37.0
"""In units of t. A draw of 53 bits is never deeper: 2^-53 = e^-36.7."""
_FEW_DIMENSIONS = 100  # below, <g, u>^2 is no small part of |g|^2
_TINY = 1e-30  # of lengths and masses that divide: keeps quotients finite


def report_sum(randomizer: PrivUnit | LeaningUnit, rows: Tensor, generator: torch.Generator) -> Tensor:
    """The sum of the de-biased reports of the rows, each first clipped to the radius."""
    rows, scale = _sphere_points(rows, randomizer.radius, generator)
    if isinstance(randomizer, PrivUnit):
        summed = _caps(randomizer, rows, scale, generator)
    else:
        summed = _leaning(randomizer, rows, scale, generator)
    return summed * (randomizer.radius / randomizer.mean_length)


def _caps(randomizer: PrivUnit, rows: Tensor, scale: Tensor, generator: torch.Generator) -> Tensor:
    height = _heights(randomizer, scale, generator)
    normal, along = _normal(rows, scale, generator)
    if randomizer.dimension < _FEW_DIMENSIONS:
        # Otherwise |g|^2 - <g, u>^2 cancels where g happens to be nearly parallel to u.
        normal = normal - (along * scale)[:, None] * rows
        along = torch.zeros_like(along)
    across = torch.linalg.vector_norm(normal, dim=1).square() - along.square()
    weight = ((1.0 - height.square()) / across.clamp_min(_TINY)).sqrt()
    total: Tensor = weight @ normal + ((height - weight * along) * scale) @ rows
    return total


def _normal(rows: Tensor, scale: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Normal vectors, and their heights."""
    normal = torch.randn(rows.shape, generator=generator, device=rows.device, dtype=rows.dtype)
    return normal, torch.linalg.vecdot(normal, rows) * scale


def _leaning(randomizer: LeaningUnit, rows: Tensor, scale: Tensor, generator: torch.Generator) -> Tensor:
    """Some heights are drawn in proportion to r, the others stay."""
    normal, along = _normal(rows, scale, generator)
    heights, rises = randomizer.shape.heights, randomizer.shape.rises
    nodes = np.linspace(heights[0], heights[-1] + 4.0, _NODES)
    beyond = np.cumsum((np.interp(nodes, heights, rises) * np.exp(-0.5 * nodes**2))[::-1])
    place = _uniform(along, generator).double().cpu().numpy()
    drawn = torch.from_numpy(np.interp(place, beyond / beyond[-1], nodes[::-1])).to(along)
    lifted = _uniform(along, generator) < randomizer.weight / WORD
    total: Tensor = normal.sum(dim=0) + (torch.where(lifted, drawn - along, 0.0) * scale) @ rows
    return total


def _sphere_points(rows: Tensor, radius: float, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Rows, and what to multiply them by: +-row/|row|, the sign so that the mean is the clipped row.

    Zero goes to the first axis. The products are not written down: they would be as large as the rows."""
    norm = torch.linalg.vector_norm(rows, dim=1)
    sign = torch.where(2.0 * _uniform(norm, generator) - 1.0 < (norm / radius).clamp_max(1.0), 1.0, -1.0)
    zero = norm <= _TINY
    if bool(zero.any()):
        rows = rows.masked_fill(zero[:, None], 0.0)
        rows[zero, 0] = 1.0
    return rows, sign / norm.masked_fill(zero, 1.0)


def _uniform(like: Tensor, generator: torch.Generator) -> Tensor:
    return torch.rand(like.shape, generator=generator, device=like.device, dtype=like.dtype)


def _heights(randomizer: PrivUnit, scale: Tensor, generator: torch.Generator) -> Tensor:
    inside, rest = _on_device(randomizer, scale.device, scale.dtype)
    depth = -torch.log1p(-_uniform(scale, generator))
    capped = _uniform(scale, generator) < randomizer.weight / WORD
    place = depth * ((_NODES - 1) / DEEPEST)
    low = place.long().clamp_max(_NODES - 2)
    before, after = (torch.where(capped, inside[at], rest[at]) for at in (low, low + 1))
    return torch.lerp(before, after, (place - low).clamp_max(1.0))


@lru_cache(maxsize=16)
def _on_device(randomizer: PrivUnit, device: torch.device, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    inside, rest = height_tables(randomizer)
    return torch.from_numpy(inside).to(device, dtype), torch.from_numpy(rest).to(device, dtype)


@lru_cache(maxsize=16)
def height_tables(randomizer: PrivUnit) -> tuple[np.ndarray, np.ndarray]:
    """Heights at equal steps of t in [0, DEEPEST]: from the threshold up into the cap, and down."""
    threshold, dimension = randomizer.cap.threshold, randomizer.dimension
    # Beyond 12 standard deviations the density is below e^-70 of its peak.
    reach = min(1.0, 12.0 / np.sqrt(dimension) + abs(threshold))
    return (_heights_at_depths(threshold, reach, dimension), _heights_at_depths(threshold, -reach, dimension))


def _heights_at_depths(start: float, end: float, dimension: int) -> np.ndarray:
    # s = sin(angle): the density becomes cos(angle)^(d - 2), finite at the poles for every d >= 2.
    angle = np.linspace(np.arcsin(start), np.arcsin(end), _STEPS)
    log_density = (dimension - 2) * np.log(np.maximum(np.cos(angle), _TINY))
    density = np.exp(log_density - log_density.max())
    # Summed from the far end, so that the small masses there keep their digits.
    beyond = np.cumsum(0.5 * (density[1:] + density[:-1])[::-1])[::-1]
    known = np.count_nonzero(beyond > _TINY * beyond[0])
    depth = -np.log(beyond[:known] / beyond[0])
    nodes = np.linspace(0.0, DEEPEST, _NODES)
    return np.asarray(np.sin(np.interp(nodes, depth, angle[:known])))
