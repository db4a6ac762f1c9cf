"""Random silhouettes: a few rounded, tapered, bent and textured patches, often mirrored, drawn by dice.

They stand in for pictures of objects as random strokes do for writing: nobody's data.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

_SIZE = 28
_SHOWN = (1.0, 0.7, 0.5, 0.4, 0.3)
"""How likely the first, second, ... patch is there."""
_CUT = (0.0, 0.15, 0.25, 0.35, 0.35)
"""How likely it is a hole."""


@dataclass(frozen=True)
class Prototypes:
    """(count, patches) numbers each, but for ``mirrored`` (count)."""

    mirrored: Tensor
    row: Tensor
    column: Tensor
    height: Tensor
    width: Tensor
    turn: Tensor
    roundness: Tensor
    tone: Tensor
    shown: Tensor
    cut: Tensor
    stripes: Tensor
    stripe_turn: Tensor
    stripe_depth: Tensor
    stripe_phase: Tensor
    taper: Tensor
    bend: Tensor

    def __len__(self) -> int:
        return len(self.mirrored)


def prototypes(count: int, generator: torch.Generator) -> Prototypes:
    device, shape = generator.device, (count, len(_SHOWN))

    def uniform(low: float = 0.0, high: float = 1.0) -> Tensor:
        return low + (high - low) * torch.rand(shape, generator=generator, device=device)

    def normal(deviation: float) -> Tensor:
        return deviation * torch.randn(shape, generator=generator, device=device)

    return Prototypes(
        mirrored=torch.rand(count, generator=generator, device=device) < 0.75,
        row=uniform(-0.6, 0.6),
        column=uniform(-0.6, 0.6),
        height=0.35 * torch.exp(normal(0.55)),
        width=0.35 * torch.exp(normal(0.55)),
        turn=uniform(-math.pi / 2, math.pi / 2),
        roundness=1.0 + torch.exp(uniform(0.0, 2.2)),
        tone=uniform(),
        shown=uniform() < torch.tensor(_SHOWN, device=device),
        cut=uniform() < torch.tensor(_CUT, device=device),
        stripes=3.0 * math.pi * torch.exp(uniform(0.0, 1.8)),
        stripe_turn=uniform(0.0, math.pi),
        stripe_depth=0.5 * uniform() * (uniform() < 0.4),
        stripe_phase=uniform(0.0, 2.0 * math.pi),
        taper=normal(0.3),
        bend=normal(0.3),
    )


def view(drawn: Prototypes, generator: torch.Generator) -> Tensor:
    """(count, 28, 28) images in [0, 1]: the prototypes moved, lit and patterned a little differently."""
    count, device = len(drawn), drawn.mirrored.device

    def spread(size: float) -> Tensor:
        return size * (2.0 * torch.rand(count, 1, 1, generator=generator, device=device) - 1.0)

    def normal(deviation: float) -> Tensor:
        return deviation * torch.randn(count, 1, 1, generator=generator, device=device)

    rows, columns = _canvas(spread, device)
    columns = torch.where(drawn.mirrored[:, None, None], columns.abs(), columns)
    light, contrast = spread(0.25), torch.exp(normal(0.35))
    image = torch.zeros(count, _SIZE, _SIZE, device=device)
    for i in range(len(_SHOWN)):
        one = {name: value[:, i, None, None] for name, value in vars(drawn).items() if name != "mirrored"}
        aside = one["column"].abs() * (1.0 if i else 0.15)
        middle = torch.where(drawn.mirrored[:, None, None], aside, one["column"]) + normal(0.06)
        along, across = _turned(rows - one["row"] - normal(0.06), columns - middle, one["turn"] + normal(0.1))
        height, width = (one[name] * torch.exp(normal(0.12)) for name in ("height", "width"))
        inside = _inside(along / height, across / width, one) * torch.minimum(height, width)
        mask = torch.sigmoid(40.0 * inside) * one["shown"]
        wave = torch.cos(
            _turned(rows, columns, one["stripe_turn"])[0] * one["stripes"] + one["stripe_phase"] + normal(1.0)
        )
        tone = (0.15 + 0.85 * one["tone"] + light + normal(0.08)).clamp(0.05, 1.0)
        tone = tone * (1.0 - one["stripe_depth"] * (0.5 + 0.5 * wave)) * ~one["cut"]
        image = image * (1.0 - mask) + mask * tone
    image = image.clamp(0.0, 1.0) ** contrast
    grain = torch.randn(count, 1, _SIZE, _SIZE, generator=generator, device=device)
    depth = 0.15 * torch.rand(count, 1, 1, generator=generator, device=device) * (image > 0.03)
    return _filled((image + depth * functional.avg_pool2d(grain, 3, 1, 1)[:, 0]).clamp(0.0, 1.0))


def _canvas(spread: object, device: torch.device) -> tuple[Tensor, Tensor]:
    """Where every pixel lies, in [-1, 1] both ways, after a small move of the whole picture."""
    assert callable(spread)
    line = torch.linspace(-1.0, 1.0, _SIZE, device=device)
    rows, columns = line[None, :, None], line[None, None, :]
    turn, tall, wide, slant = spread(0.15), torch.exp(spread(0.2)), torch.exp(spread(0.2)), spread(0.15)
    cos, sin = torch.cos(turn), torch.sin(turn)
    down = cos * tall * rows + (slant - sin * wide) * columns + spread(0.12)
    return down, sin * tall * rows + cos * wide * columns + spread(0.12)


def _turned(rows: Tensor, columns: Tensor, turn: Tensor) -> tuple[Tensor, Tensor]:
    cos, sin = torch.cos(turn), torch.sin(turn)
    return cos * rows + sin * columns, cos * columns - sin * rows


def _inside(along: Tensor, across: Tensor, one: dict[str, Tensor]) -> Tensor:
    """One less the superelliptic distance from a patch's centre: positive within."""
    narrowed = across / (1.0 + one["taper"] * along).clamp_min(0.2) + one["bend"] * along**2
    power = one["roundness"]
    return 1.0 - (along.abs().clamp_min(1e-3) ** power + narrowed.abs().clamp_min(1e-3) ** power) ** (
        1.0 / power
    )


def _filled(image: Tensor) -> Tensor:
    """Cut to what is drawn, and enlarged until the longer side fills the frame."""
    count, device = len(image), image.device
    axis = torch.arange(_SIZE, device=device, dtype=torch.float32)
    ends = []
    for dim in (2, 1):
        there = (image > 0.05).any(dim=dim)
        low = torch.where(there, axis, torch.full_like(axis, float(_SIZE))).amin(dim=1).clamp(max=_SIZE - 1)
        high = torch.where(there, axis, torch.full_like(axis, -1.0)).amax(dim=1).clamp(min=0)
        ends.append((low, high))
    half = torch.maximum(*(high - low for low, high in ends)).clamp_min(6.0) / 2.0 + 0.5
    move = torch.zeros(count, 2, 3, device=device)
    move[:, 0, 0] = move[:, 1, 1] = half / (_SIZE / 2)
    for i, (low, high) in enumerate(reversed(ends)):
        move[:, i, 2] = ((low + high) / 2 - (_SIZE - 1) / 2) / (_SIZE / 2)
    grid = functional.affine_grid(move, [count, 1, _SIZE, _SIZE], align_corners=False)
    return functional.grid_sample(image[:, None], grid, align_corners=False)[:, 0]
