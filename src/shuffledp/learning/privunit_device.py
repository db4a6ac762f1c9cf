"""PrivUnit reports simulated on the device that holds the gradients: fast, repeatable, not secure.

The law is that of ``randomizers.privunit``. A report about the unit vector u is composed of its height
s = <V, u> (drawn from the cap or from the rest, by a table of the quantiles of the density
(1 - s^2)^((d - 3)/2)) and a uniform direction orthogonal to u:

    V = s u + sqrt(1 - s^2) (g - <g, u> u) / |g - <g, u> u|,   g standard normal.

Only the sum of the reports is needed, so no report is written down.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from shuffledp.randomizers.privunit import PrivUnit
from shuffledp.randomness.uniform import WORD

_NODES = 1 << 14
_FEW = 100
_TINY = 1e-30


def report_sum(randomizer: PrivUnit, rows: Tensor, generator: torch.Generator) -> Tensor:
    """The sum of the de-biased reports of the rows, each first clipped to the radius."""
    axis = _sphere_points(rows, randomizer.radius, generator)
    height = _heights(randomizer, axis, generator)
    normal = torch.randn(axis.shape, generator=generator, device=axis.device, dtype=axis.dtype)
    along = torch.einsum("ij,ij->i", normal, axis)
    if randomizer.dimension < _FEW:
        # Otherwise |g|^2 - <g, u>^2 cancels where g happens to be nearly parallel to u.
        normal = normal - along[:, None] * axis
        along = torch.zeros_like(along)
    across = torch.linalg.vector_norm(normal, dim=1).square() - along.square()
    weight = ((1.0 - height.square()) / across.clamp_min(_TINY)).sqrt()
    total: Tensor = weight @ normal + (height - weight * along) @ axis
    return total * (randomizer.radius / randomizer.mean_length)


def _sphere_points(rows: Tensor, radius: float, generator: torch.Generator) -> Tensor:
    """+-row/|row|, the sign so that the mean is the clipped row; zero goes to the first axis."""
    norm = torch.linalg.vector_norm(rows, dim=1)
    share = (norm / radius).clamp_max(1.0)
    sign = torch.where(2.0 * _uniform(norm, generator) - 1.0 < share, 1.0, -1.0)
    nonzero = norm > _TINY
    scale = torch.where(nonzero, sign / norm.clamp_min(_TINY), 0.0)
    points: Tensor = rows * scale[:, None]
    points[:, 0] = torch.where(nonzero, points[:, 0], sign)
    return points


def _uniform(like: Tensor, generator: torch.Generator) -> Tensor:
    return torch.rand(like.shape, generator=generator, device=like.device, dtype=like.dtype)


def _heights(randomizer: PrivUnit, axis: Tensor, generator: torch.Generator) -> Tensor:
    inside, rest = (torch.as_tensor(t).to(axis) for t in quantiles(randomizer))
    draw = _uniform(axis[:, 0], generator)
    capped = _uniform(axis[:, 0], generator) < randomizer.weight / WORD
    place = draw * (_NODES - 1)
    low = place.long().clamp_max(_NODES - 2)
    part = place - low
    table = torch.where(capped[:, None], _pair(inside, low), _pair(rest, low))
    return torch.lerp(table[:, 0], table[:, 1], part)


def _pair(table: Tensor, low: Tensor) -> Tensor:
    return torch.stack([table[low], table[low + 1]], dim=1)


@lru_cache(maxsize=16)
def quantiles(randomizer: PrivUnit) -> tuple[np.ndarray, np.ndarray]:
    """Heights at equal steps of probability, in the cap and outside it."""
    threshold, dimension = randomizer.cap.threshold, randomizer.dimension
    # Beyond 12 standard deviations the density is below e^-70 of its peak.
    reach = min(1.0, 12.0 / np.sqrt(dimension) + abs(threshold))
    return (
        _quantiles(threshold, reach, dimension),
        _quantiles(-reach, threshold, dimension),
    )


def _quantiles(low: float, high: float, dimension: int) -> np.ndarray:
    # s = sin(angle): the density becomes cos(angle)^(d - 2), finite at the poles for every d >= 2.
    angle = np.linspace(np.arcsin(low), np.arcsin(high), 1 << 18)
    cosine = np.maximum(np.cos(angle), 1e-300)
    log_density = (dimension - 2) * np.log(cosine)
    density = np.exp(log_density - log_density.max())
    mass = np.concatenate([[0.0], np.cumsum(0.5 * (density[1:] + density[:-1]))])
    return np.asarray(np.sin(np.interp(np.linspace(0.0, mass[-1], _NODES), mass, angle)))
