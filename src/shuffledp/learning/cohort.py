"""Who is asked in a round: a uniformly random subset of fixed size, and its data.

The amplification by subsampling holds because nobody knows who was drawn, so the draw is secure
unless a generator is given. The ``cohort`` smallest of independent random words are a uniformly
random subset: all orders of distinct words are equally likely, and a tie at the border is drawn again.
"""

from __future__ import annotations

from collections.abc import Sized
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import TensorDataset, default_collate

from shuffledp.randomness.words import source


def draw_cohort(population: int, cohort: int, generator: torch.Generator | None) -> Tensor:
    """Indices of a uniformly random subset (everybody, in order, if that is all)."""
    if cohort == population:
        return torch.arange(population, device=None if generator is None else generator.device)
    if generator is not None:
        drawn = torch.randperm(population, generator=generator, device=generator.device)
        return drawn[:cohort]
    words = source()
    while True:
        keys = words.draw(population)
        order = np.argpartition(keys, (cohort - 1, cohort))
        if keys[order[cohort - 1]] != keys[order[cohort]]:
            return torch.from_numpy(order[:cohort].astype(np.int64))


class ClientData:
    """A map-style dataset of (input, target), one client each."""

    def __init__(self, dataset: Any, device: torch.device) -> None:
        if not isinstance(dataset, Sized) or not hasattr(dataset, "__getitem__"):
            raise TypeError(
                "dataset must be map-style, with __len__ and __getitem__, "
                f"got {type(dataset).__name__}"
            )
        if len(dataset) == 0:
            raise ValueError("dataset must hold at least one client, got an empty one")
        self.dataset, self.device, self.population = dataset, device, len(dataset)

    def take(self, indices: Tensor) -> tuple[Tensor, Tensor]:
        """The inputs and targets of some clients, on the model's device."""
        if isinstance(self.dataset, TensorDataset):
            columns = self.dataset.tensors
            picked = [column[indices.to(column.device)] for column in columns]
        else:
            rows = [self.dataset[index] for index in indices.tolist()]
            picked = list(default_collate(rows))
        if len(picked) != 2:
            raise ValueError(
                f"dataset must give pairs (input, target), got {len(picked)} values per client"
            )
        inputs, targets = (torch.as_tensor(part).to(self.device) for part in picked)
        return inputs, targets
