"""A network that tells drawings of one random prototype from drawings of another: features from dice alone.

Contrastive learning (InfoNCE) on pairs of views; the last layers are thrown away and the pooled maps kept.
No image of anybody is seen, so the features cost no privacy and may be shipped to every client.
"""

from __future__ import annotations

import time
from types import ModuleType

import torch
from plan import Size
from torch import Tensor, nn
from torch.nn import functional


class _Block(nn.Module):
    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.straight = nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False),
            nn.GroupNorm(8, outputs),
            nn.ReLU(),
            nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False),
            nn.GroupNorm(8, outputs),
        )
        same = inputs == outputs and stride == 1
        self.around = nn.Identity() if same else nn.Conv2d(inputs, outputs, 1, stride, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return functional.relu(self.around(x) + self.straight(x))


def network(width: int) -> nn.Sequential:
    """(n, 28, 28) images -> (n, 16 width) numbers: maps of 7 x 7, averaged over quarters."""
    return nn.Sequential(
        nn.Unflatten(1, (1, 28)),
        nn.Conv2d(1, width, 3, 1, 1, bias=False),
        nn.GroupNorm(8, width),
        nn.ReLU(),
        _Block(width, width, 1),
        _Block(width, 2 * width, 2),
        _Block(2 * width, 2 * width, 1),
        _Block(2 * width, 4 * width, 2),
        _Block(4 * width, 4 * width, 1),
        nn.AdaptiveAvgPool2d(2),
        nn.Flatten(),
    )


def learned(family: ModuleType, size: Size, device: str, seed: int = 0) -> nn.Sequential:
    """Trained to find, among ``size.batch`` prototypes of the family, the one that a view was drawn from."""
    torch.manual_seed(seed)
    generator = torch.Generator(device).manual_seed(seed + 17)
    body = network(size.width).to(device)
    head = nn.Sequential(nn.Linear(16 * size.width, 1024), nn.ReLU(), nn.Linear(1024, 256)).to(device)
    optimizer = torch.optim.AdamW([*body.parameters(), *head.parameters()], weight_decay=1e-4)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 2e-3, total_steps=size.steps, pct_start=0.1)
    twin = torch.arange(2 * size.batch, device=device).roll(size.batch)
    start = time.monotonic()
    for step in range(size.steps):
        drawn = family.prototypes(size.batch, generator)
        images = torch.cat([family.view(drawn, generator) for _ in range(2)])
        with torch.autocast(device, torch.bfloat16, enabled=device == "cuda"):
            codes = functional.normalize(head(body(images)).float())
        alike = (codes @ codes.T / 0.1).fill_diagonal_(-torch.inf)
        loss = functional.cross_entropy(alike, twin)
        optimizer.zero_grad()
        torch.autograd.backward(loss)
        optimizer.step()
        schedule.step()
        if step % 500 == 0 or step == size.steps - 1:
            right = float((alike.argmax(dim=1) == twin).float().mean())
            print(
                f"{family.__name__}, step {step}: {right:.3f} found, {time.monotonic() - start:.0f} s",
                flush=True,
            )
    return body.eval()


@torch.no_grad()
def embedded(body: nn.Sequential, images: Tensor) -> Tensor:
    with torch.autocast(images.device.type, torch.bfloat16, enabled=images.device.type == "cuda"):
        return torch.cat([body(block).float() for block in torch.split(images, 2000)])
