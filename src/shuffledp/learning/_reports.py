"""The two ends of the protocol: a client's randomized gradient and the server's estimate.

Usable in any federated framework: a client sends ``randomize_gradient(...)``, whatever shuffles
forgets who sent what, the server calls ``aggregate(...)``.

>>> import torch
>>> from shuffledp.randomizers.privunit import PrivUnit
>>> model = torch.nn.Linear(4, 2)
>>> randomizer = PrivUnit(dimension=parameter_count(model), epsilon0=2.0, radius=0.1)
>>> gradient = [torch.ones_like(p) for p in model.parameters()]
>>> reports = [randomize_gradient(gradient, randomizer) for _ in range(3)]
>>> [tuple(part.shape) for part in aggregate(reports, randomizer, like=model.parameters())]
[(2, 4), (2,)]
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, overload

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from shuffledp.learning._clients import flattened, shaped_like, trainable
from shuffledp.learning._messages import GradientShares
from shuffledp.learning._privunit_device import report_sum
from shuffledp.randomizers.leaning import LeaningUnit
from shuffledp.randomizers.privunit import PrivUnit
from shuffledp.randomizers.vectors import VectorRandomizer


def parameter_count(model: nn.Module) -> int:
    """The dimension of a client's gradient."""
    return sum(value.numel() for value in trainable(model))


def randomize_gradient(
    gradient: Tensor | Iterable[Tensor],
    randomizer: VectorRandomizer,
    *,
    rng: np.random.Generator | None = None,
) -> npt.NDArray[Any]:
    """One client's report: the gradient (a vector, or one tensor per parameter), clipped, randomized.

    Clipping is to the ball of the randomizer. Secure randomness unless ``rng`` is given."""
    vector = gradient if isinstance(gradient, Tensor) else flattened(gradient)
    flat = vector.detach().reshape(-1).to("cpu", torch.float64)
    if flat.numel() != randomizer.dimension:
        raise ValueError(
            f"gradient must have {randomizer.dimension} entries, the randomizer's dimension, "
            f"got {flat.numel()}"
        )
    refuse_non_finite(flat[None])
    return randomizer.randomize(randomizer.clip(flat.numpy()), rng=rng)


@overload
def aggregate(reports: Any, randomizer: VectorRandomizer) -> Tensor: ...
@overload
def aggregate(reports: Any, randomizer: VectorRandomizer, *, like: Iterable[Tensor]) -> list[Tensor]: ...
def aggregate(
    reports: Any, randomizer: VectorRandomizer, *, like: Iterable[Tensor] | None = None
) -> Tensor | list[Tensor]:
    """The unbiased estimate of the mean clipped gradient, a vector or shaped like some tensors.

    Give the reports as the shuffler did, in a random order: but for rounding, the mean does not
    depend on it."""
    rows = np.asarray(reports)
    if rows.shape[:1] == (0,):
        raise ValueError("reports must not be empty: there is no mean of no reports")
    estimate = torch.from_numpy(randomizer.mean(rows))
    return estimate if like is None else shaped_like(estimate, like)


def refuse_non_finite(rows: Tensor) -> None:
    """Gradients and their lengths must be finite: clipping inf or nan would send nonsense.

    The message is about one client's data, for whoever debugs a simulation: do not publish it."""
    if math.isfinite(float(torch.linalg.vector_norm(rows))):
        return  # an infinity or nan would have reached the norm of all rows
    finite = torch.isfinite(torch.linalg.vector_norm(rows, dim=1))
    if not bool(finite.all()):
        client = int((~finite).nonzero()[0])
        entry = int(rows[client].abs().nan_to_num(nan=math.inf).argmax())
        raise ValueError(
            f"gradients must be finite: client {client} of this cohort has "
            f"{float(rows[client, entry])} at entry {entry}; lower the step size or bound the loss"
        )


def simulated_sum(
    randomizer: VectorRandomizer | GradientShares, rows: Tensor, generator: torch.Generator | None
) -> Tensor:
    """The sum of the de-biased reports of gradients (rows), each clipped first.

    Without a generator the reports are drawn as a client would, exactly and securely; with one they
    are repeatable and protect nobody, and PrivUnit's and those that lean are drawn on the device, in single
    precision."""
    if generator is None:
        return _sampled(randomizer, rows, None)
    if isinstance(randomizer, (PrivUnit, LeaningUnit)):
        return report_sum(randomizer, rows, generator)
    seed = torch.randint(2**62, (1,), generator=generator, device=generator.device)
    return _sampled(randomizer, rows, np.random.default_rng(int(seed)))


def _sampled(
    randomizer: VectorRandomizer | GradientShares, rows: Tensor, rng: np.random.Generator | None
) -> Tensor:
    given = rows.to("cpu", torch.float64).numpy()
    if isinstance(randomizer, GradientShares):
        return torch.from_numpy(randomizer.summed(given, rng)).to(rows)
    clipped = randomizer.clip(given)
    total = randomizer.mean(randomizer.randomize(clipped, rng=rng)) * len(clipped)
    return torch.from_numpy(total).to(rows)
