"""The clients: who is asked in a round, in which order, and the gradient of everybody's own example.

The amplification by subsampling holds because nobody knows who was drawn, so the draw is secure
unless a generator is given. The ``cohort`` smallest of independent random words, in their order, are a
uniformly random subset in a uniformly random order: all orders of distinct words are equally likely,
and where two of the words that matter are equal all are drawn again.

The order is the shuffler's permutation. The sum of the reports hardly depends on it, but its last bits
do: rounding depends on who comes first. In a random order, what the server gets is computed from the
shuffled reports, as the accountant assumes.

>>> model = torch.nn.Linear(2, 1, bias=False)
>>> gradients = PerExampleGradients(model, torch.nn.functional.mse_loss)
>>> gradients(torch.eye(2), torch.zeros(2, 1)).shape  # two clients, two parameters
torch.Size([2, 2])
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sized
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap
from torch.nn.modules.batchnorm import _BatchNorm, _NormBase
from torch.utils.data import TensorDataset, default_collate

from shuffledp._randomness.uniform import open_uniforms
from shuffledp._randomness.words import Uint64s, source

Loss = Callable[[Tensor, Tensor], Tensor]


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


def draw_events(probability: float, count: int, generator: torch.Generator | None) -> Tensor:
    """Independent events, of a probability that only simulates something."""
    if generator is not None:
        return torch.rand(count, generator=generator, device=generator.device) < probability
    return torch.from_numpy(open_uniforms(count, source()) <= probability)


def _smallest(keys: Uint64s, count: int) -> npt.NDArray[np.intp]:
    """Where the ``count`` smallest keys are, in order."""
    some = np.argpartition(keys, count - 1)[:count] if count < keys.size else np.arange(count)
    return np.asarray(some[np.argsort(keys[some])])


class ClientData:
    """A map-style dataset of (input, target), one client each."""

    def __init__(self, dataset: Any, device: torch.device) -> None:
        if isinstance(dataset, tuple) and len(dataset) == 2:  # (X, y), as scikit-learn takes them
            dataset = TensorDataset(*(torch.as_tensor(column) for column in dataset))
        if not isinstance(dataset, Sized) or not hasattr(dataset, "__getitem__"):
            raise TypeError(
                f"dataset must be map-style, with __len__ and __getitem__, got {type(dataset).__name__}"
            )
        if len(dataset) == 0:
            raise ValueError("dataset must hold at least one client, got an empty one")
        self.dataset, self.device, self.population = dataset, device, len(dataset)

    def groups(self, indices: Tensor) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """(places among the indices, inputs, targets) of clients who are computed together."""
        yield torch.arange(len(indices)), *self.take(indices)

    def take(self, indices: Tensor) -> tuple[Tensor, Tensor]:
        """The inputs and targets of some clients, on the model's device."""
        if type(self.dataset) is TensorDataset:  # a subclass may transform what it gives
            columns = self.dataset.tensors
            picked = [column[indices.to(column.device)] for column in columns]
        else:
            rows = [self.dataset[index] for index in indices.tolist()]
            picked = list(default_collate(rows))
        if len(picked) != 2:
            raise ValueError(f"dataset must give pairs (input, target), got {len(picked)} values per client")
        inputs, targets = (self._tensor(part) for part in picked)
        return inputs, targets

    def _tensor(self, part: Any) -> Tensor:
        if not isinstance(part, Tensor):
            raise TypeError(
                f"dataset must give inputs and targets that stack into tensors, got {type(part).__name__}"
            )
        return part.to(self.device)


class UserData(ClientData):
    """A sequence of users, each with (inputs, targets) of as many records as they have, or none."""

    def __init__(self, dataset: Any, device: torch.device) -> None:
        if isinstance(dataset, tuple) or not isinstance(dataset, Sized):
            raise TypeError(
                f"dataset must be a list of users' (inputs, targets), got {type(dataset).__name__}"
            )
        super().__init__(dataset, device)

    def groups(self, indices: Tensor) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """Those with the same number of records together; who has none has no gradient."""
        users = [tuple(torch.as_tensor(part) for part in self.dataset[index]) for index in indices.tolist()]
        if any(len(user) != 2 or len(user[0]) != len(user[1]) for user in users):
            raise ValueError("dataset must give (inputs, targets) of equal length for every user")
        for size in sorted({len(user[1]) for user in users} - {0}):
            places = [place for place, user in enumerate(users) if len(user[1]) == size]
            columns = (torch.stack([users[place][column] for place in places]) for column in (0, 1))
            inputs, targets = (column.to(self.device) for column in columns)
            yield torch.tensor(places), inputs, targets


class PerExampleGradients:
    """(inputs, targets) of n clients -> their gradients as the rows of an (n, parameters) matrix.

    ``loss(output, target)`` is called with one example at a time, in a batch of one. Only parameters
    that require a gradient count, in the order of ``model.parameters()``."""

    def __init__(self, model: nn.Module, loss: Loss) -> None:
        refuse_batch_statistics(model)
        self.model, self.loss = model, loss
        self._rows: Callable[..., Any] = vmap(grad(self._one), in_dims=(None, 0, 0), randomness="different")

    def _one(self, parameters: dict[str, Tensor], example: Tensor, target: Tensor) -> Tensor:
        output = functional_call(self.model, parameters, (example.unsqueeze(0),))
        return self.loss(output, target.unsqueeze(0))

    def __call__(self, inputs: Tensor, targets: Tensor) -> Tensor:
        named = {name: value.detach() for name, value in self.model.named_parameters() if value.requires_grad}
        before = _versions(self.model)
        rows = self._rows(named, inputs, targets)
        refuse_changed_buffers(self.model, before)
        return torch.cat([rows[name].flatten(start_dim=1) for name in named], dim=1)


class LocalUpdates(PerExampleGradients):
    """Users with many records each: how far ``steps`` steps of gradient descent on all of one's own go, over
    ``rate``. One step is the gradient of the user's mean loss."""

    def __init__(self, model: nn.Module, loss: Loss, steps: int, rate: float) -> None:
        super().__init__(model, loss)
        self.steps, self.rate = steps, rate
        self._rows = vmap(self._moved, in_dims=(None, 0, 0), randomness="different")

    def _moved(self, start: dict[str, Tensor], inputs: Tensor, targets: Tensor) -> Any:
        def own_loss(parameters: dict[str, Tensor]) -> Tensor:
            return self.loss(functional_call(self.model, parameters, (inputs,)), targets)

        now = start
        for _ in range(self.steps):
            slope = grad(own_loss)(now)
            now = {name: value - self.rate * slope[name] for name, value in now.items()}
        return {name: (value - now[name]) / self.rate for name, value in start.items()}


def refuse_batch_statistics(model: nn.Module) -> None:
    """A layer that mixes the examples of a batch has no gradient of one client."""
    for name, module in model.named_modules():
        tracked = isinstance(module, _NormBase) and module.track_running_stats
        if tracked or isinstance(module, _BatchNorm):
            raise ValueError(
                f"model must not use batch statistics: {name or 'the model'} is "
                f"{type(module).__name__}; use GroupNorm or LayerNorm, which see one example"
            )


def _versions(model: nn.Module) -> dict[str, tuple[int, int]]:
    """Changes whenever a buffer is replaced or written to."""
    return {name: (id(value), value._version) for name, value in model.named_buffers()}


def refuse_changed_buffers(model: nn.Module, before: dict[str, tuple[int, int]]) -> None:
    """What a model keeps of its inputs is not randomized, and would leave with the model."""
    after = _versions(model)
    changed = [name for name in before | after if before.get(name) != after.get(name)]
    if changed:
        raise ValueError(
            f"model must not change its buffers while it reads the clients' data, but "
            f"{changed[0]!r} did: what it keeps of them would not be private"
        )


def trainable(model: nn.Module) -> list[nn.Parameter]:
    """The parameters that are learned."""
    found = [value for value in model.parameters() if value.requires_grad]
    if not found:
        raise ValueError("model must have at least one parameter that requires a gradient")
    return found


def flattened(parts: Iterable[Tensor]) -> Tensor:
    """Tensors as one long vector."""
    return torch.cat([part.detach().reshape(-1) for part in parts])


def shaped_like(vector: Tensor, parts: Iterable[Tensor]) -> list[Tensor]:
    """The inverse of ``flattened``."""
    like = list(parts)
    sizes = [part.numel() for part in like]
    if vector.shape != (sum(sizes),):
        raise ValueError(f"vector must have shape ({sum(sizes)},), got {tuple(vector.shape)}")
    pieces = torch.split_with_sizes(vector, sizes)
    return [piece.reshape(part.shape).to(part.dtype) for piece, part in zip(pieces, like, strict=True)]
