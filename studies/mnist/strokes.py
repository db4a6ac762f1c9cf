"""Random pen strokes: images that look like writing but are drawn by dice, not taken from any person.

They stand in for the data where a training set would otherwise be needed, to centre and whiten the
features, so that no client's image is touched before it is randomized.
"""

from __future__ import annotations

import torch
from torch import Tensor

_SIZE, _BOX, _POINTS = 28, 20.0, 64


def random_strokes(count: int, generator: torch.Generator, device: str = "cpu") -> Tensor:
    """(count, 28, 28) images in [0, 1]: one or two smooth curves in a box of 20 pixels, centred by mass."""
    return torch.cat([_drawn(rows, generator, device) for rows in _chunks(count, 500)])


def _chunks(count: int, most: int) -> list[int]:
    return [min(most, count - start) for start in range(0, count, most)]


def _drawn(count: int, generator: torch.Generator, device: str) -> Tensor:
    pieces = [_curve(count, generator, device) for _ in range(2)]
    second = torch.rand(count, generator=generator, device=device) < 0.5
    # A curve that is not wanted is drawn on top of the first.
    pieces[1] = torch.where(second[:, None, None], pieces[1], pieces[0])
    points = _fitted(torch.cat(pieces, dim=1))
    width = 1.0 + 0.8 * torch.rand(count, 1, generator=generator, device=device)
    axis = torch.arange(_SIZE, device=device) - 0.5 * (_SIZE - 1)
    grid = torch.cartesian_prod(axis, axis)
    nearest = torch.cdist(points, grid.expand(count, -1, -1)).amin(dim=1)
    ink = (0.5 + width - nearest).clamp(0.0, 1.0).reshape(count, _SIZE, _SIZE)
    return _centred(ink)


def _curve(count: int, generator: torch.Generator, device: str) -> Tensor:
    """A random cubic followed by a second one that leaves where the first ends, smoothly."""
    control = torch.randn(count, 6, 2, generator=generator, device=device)
    control[:, 1:] = control[:, :-1] * 0.3 + control[:, 1:]
    joint, leave = control[:, 3], 2.0 * control[:, 3] - control[:, 2]
    end = torch.stack([joint, leave, control[:, 4], control[:, 5]], dim=1)
    return torch.cat([_bezier(control[:, :4]), _bezier(end)], dim=1)


def _bezier(control: Tensor) -> Tensor:
    t = torch.linspace(0.0, 1.0, _POINTS, device=control.device)
    basis = torch.stack([(1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t * t * (1 - t), t**3])
    return torch.einsum("nkc,kp->npc", control, basis)


def _fitted(points: Tensor) -> Tensor:
    low, high = points.amin(dim=1, keepdim=True), points.amax(dim=1, keepdim=True)
    span = (high - low).amax(dim=2, keepdim=True)
    return (points - 0.5 * (low + high)) * ((_BOX - 3.0) / span)


def _centred(ink: Tensor) -> Tensor:
    """Moved by whole pixels (around the edge) so that the centre of mass is the centre."""
    axis = torch.arange(_SIZE, device=ink.device)
    mass = ink.sum(dim=(1, 2)).clamp_min(1e-6)
    moves = [((0.5 * (_SIZE - 1) - (ink.sum(dim=d) * axis).sum(dim=1) / mass).round().long()) for d in (2, 1)]
    rows = (axis[None, :] - moves[0][:, None]) % _SIZE
    columns = (axis[None, :] - moves[1][:, None]) % _SIZE
    picked = torch.take_along_dim(ink, rows[:, :, None].expand(-1, -1, _SIZE), dim=1)
    return torch.take_along_dim(picked, columns[:, None, :].expand(-1, _SIZE, -1), dim=2)
