"""Random pen strokes: images that look like writing but are drawn by dice, not taken from any person.

They stand in for the data where a training set would otherwise be needed: features are learned, centred
and evened out on them, so that no client's image is touched before it is randomized.
"""

from __future__ import annotations

import torch
from torch import Tensor

_SIZE, _BOX, _POINTS = 28, 20.0, 32
_JITTER, _TURN, _STRETCH, _SLANT = 0.25, 0.3, 0.15, 0.35
"""How far two drawings of one prototype differ: control points, radians, log scale, shear."""


def prototypes(count: int, generator: torch.Generator) -> Tensor:
    """(count, 2, 6, 2) control points of two curves; half of the time the second is the first again."""
    device = generator.device
    control = torch.randn(count, 2, 6, 2, generator=generator, device=device)
    control[:, :, 1:] = control[:, :, :-1] * 0.3 + control[:, :, 1:]
    single = torch.rand(count, generator=generator, device=device) < 0.5
    control[single, 1] = control[single, 0]
    return control


def view(control: Tensor, generator: torch.Generator) -> Tensor:
    """(count, 28, 28) images in [0, 1]: the prototypes drawn by another hand, in a box of 20 pixels."""
    count, device = len(control), control.device
    shaken = control + _JITTER * torch.randn(control.shape, generator=generator, device=device)
    single = (control[:, 0] == control[:, 1]).all(dim=(1, 2))
    shaken[single, 1] = shaken[single, 0]
    points = _fitted(_slanted(torch.cat([_curve(shaken[:, 0]), _curve(shaken[:, 1])], dim=1), generator))
    width = 0.6 + 1.4 * torch.rand(count, 1, generator=generator, device=device)
    axis = torch.arange(_SIZE, device=device) - 0.5 * (_SIZE - 1)
    grid = torch.cartesian_prod(axis, axis)
    nearest = torch.cat(
        [torch.cdist(p, grid.expand(len(p), -1, -1)).amin(dim=1) for p in torch.split(points, 512)]
    )
    return _centred((0.5 + width - nearest).clamp(0.0, 1.0).reshape(count, _SIZE, _SIZE))


def _curve(control: Tensor) -> Tensor:
    """A random cubic followed by a second one that leaves where the first ends, smoothly."""
    joint, leave = control[:, 3], 2.0 * control[:, 3] - control[:, 2]
    end = torch.stack([joint, leave, control[:, 4], control[:, 5]], dim=1)
    return torch.cat([_bezier(control[:, :4]), _bezier(end)], dim=1)


def _bezier(control: Tensor) -> Tensor:
    t = torch.linspace(0.0, 1.0, _POINTS, device=control.device)
    basis = torch.stack([(1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t * t * (1 - t), t**3])
    return torch.einsum("nkc,kp->npc", control, basis)


def _slanted(points: Tensor, generator: torch.Generator) -> Tensor:
    """Turned, stretched and sheared a little, each image in its own way."""
    spread = 2.0 * torch.rand(4, len(points), generator=generator, device=points.device) - 1.0
    turn, slant = _TURN * spread[0], _SLANT * spread[1]
    tall, wide = torch.exp(_STRETCH * spread[2]), torch.exp(_STRETCH * spread[3])
    cos, sin = torch.cos(turn), torch.sin(turn)
    rows = [
        torch.stack([cos * tall, slant * cos - sin * wide]),
        torch.stack([sin * tall, slant * sin + cos * wide]),
    ]
    return points @ torch.stack(rows).permute(2, 1, 0)


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
