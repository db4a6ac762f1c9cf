"""Who is asked in a round, and in which order: a uniformly random subset of fixed size, and its data.

The amplification by subsampling holds because nobody knows who was drawn, so the draw is secure
unless a generator is given. The ``cohort`` smallest of independent random words, in their order, are a
uniformly random subset in a uniformly random order: all orders of distinct words are equally likely,
and where two of the words that matter are equal all are drawn again.

The order is the shuffler's permutation. The sum of the reports hardly depends on it, but its last bits
do: rounding depends on who comes first. In a random order, what the server gets is computed from the
shuffled reports, as the accountant assumes.
"""

from __future__ import annotations

from collections.abc import Sized
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.utils.data import TensorDataset, default_collate

from shuffledp._randomness.words import Uint64s, source


def draw_cohort(population: int, cohort: int, generator: torch.Generator | None) -> Tensor:
    """Indices of a uniformly random subset, in a uniformly random order."""
    if generator is not None:
        drawn = torch.randperm(population, generator=generator, device=generator.device)
        return drawn[:cohort]
    words = source()
    while True:
        keys = words.draw(population)
        order = _smallest(keys, min(cohort + 1, population))
        if np.diff(keys[order]).all():  # no two are equal
            return torch.from_numpy(order[:cohort].astype(np.int64))


def _smallest(keys: Uint64s, count: int) -> npt.NDArray[np.intp]:
    """Where the ``count`` smallest keys are, in order."""
    some = np.argpartition(keys, count - 1)[:count] if count < keys.size else np.arange(count)
    return np.asarray(some[np.argsort(keys[some])])


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
        if type(self.dataset) is TensorDataset:  # a subclass may transform what it gives
            columns = self.dataset.tensors
            picked = [column[indices.to(column.device)] for column in columns]
        else:
            rows = [self.dataset[index] for index in indices.tolist()]
            picked = list(default_collate(rows))
        if len(picked) != 2:
            raise ValueError(
                f"dataset must give pairs (input, target), got {len(picked)} values per client"
            )
        inputs, targets = (self._tensor(part) for part in picked)
        return inputs, targets

    def _tensor(self, part: Any) -> Tensor:
        if not isinstance(part, Tensor):
            raise TypeError(
                "dataset must give inputs and targets that stack into tensors, "
                f"got {type(part).__name__}"
            )
        return part.to(self.device)
