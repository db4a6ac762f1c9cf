"""Which settings to train with, found in seconds on data that may be looked at.

The mean of n reports is close to normal. So a rehearsal takes the mean clipped gradient of a *public* sample
and adds normal noise of the covariance that the mean of n de-biased reports of such gradients has: in every
direction (second_moment - |g|^2)/(d n), their whole variance spread evenly. (That of one PrivUnit report
differs from it along its own gradient only, a share of 1/d.) No report is drawn: a rehearsal costs what
training on the sample without privacy costs. Every setting is rehearsed with several seeds and judged by the
mean: the best of single seeds is the luckiest one.

>>> points = torch.randn(64, 3)
>>> found = search_settings(
...     torch.nn.Linear(3, 2), (points, (points.sum(dim=1) > 0).long()), torch.nn.functional.cross_entropy,
...     people=5_000, epsilon=2.0, delta=1e-5, rounds=[4], clips=[0.5], learning_rates=[0.1, 1.0], seeds=2,
... )
>>> len(found), found[0].accuracy >= found[1].accuracy
(2, True)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from itertools import product
from statistics import fmean, stdev
from typing import Any

import torch
from torch import Tensor, nn

from shuffledp import _validate
from shuffledp._progress import Progress
from shuffledp.learning._budget import epsilon0_for
from shuffledp.learning._clients import ClientData, Loss, PerExampleGradients, shaped_like, trainable
from shuffledp.learning._reports import parameter_count
from shuffledp.randomizers.privunit import PrivUnit
from shuffledp.randomizers.vectors import VectorRandomizer


@dataclass(frozen=True)
class Setting:
    """What to train with, and the mean accuracy of its rehearsals and their standard deviation."""

    rounds: int
    epsilon0: float
    clip: float
    learning_rate: float
    accuracy: float
    deviation: float


def normal_mean(randomizer: VectorRandomizer, rows: Tensor, n: int, generator: torch.Generator) -> Tensor:
    """The mean of n reports about gradients like these (rows), by normal noise (see module)."""
    norms = torch.linalg.vector_norm(rows, dim=1)
    shares = randomizer.radius / norms.clamp_min(randomizer.radius)  # that clipping leaves
    square = float(norms.clamp_max(randomizer.radius).square().mean())
    spread = math.sqrt((randomizer.second_moment - square) / (randomizer.dimension * n))
    noise = torch.randn(rows.shape[1], generator=generator, dtype=rows.dtype, device=rows.device)
    mean: Tensor = (shares @ rows) / len(rows)
    return mean + spread * noise


def search_settings(
    model: nn.Module,
    sample: Any,
    loss: Loss,
    *,
    people: int,
    epsilon: float,
    delta: float,
    rounds: Sequence[int],
    clips: Sequence[float],
    learning_rates: Sequence[float],
    cohort: int | None = None,
    least_reports: int | None = None,
    test: Any = None,
    seeds: int = 8,
    progress: bool = False,
) -> list[Setting]:
    """All combinations, the best first, for a classifier that ``people`` will train by PrivUnit reports.

    ``sample`` is a dataset or ``(X, y)`` of examples that may be looked at, a few hundred; ``test`` another
    (default: the same). ``cohort`` (default: all) and ``least_reports`` are those of the training. The model
    is not changed."""
    device = trainable(model)[0].device
    rows, seen = (ClientData(data, device) for data in (sample, sample if test is None else test))
    examples, held_out = (data.take(torch.arange(data.population)) for data in (rows, seen))
    crowd: dict[str, Any] = {"cohort": cohort or people, "population": people, "least_reports": least_reports}
    target: dict[str, Any] = {"epsilon": epsilon, "delta": delta}
    seeds, dimension = _validate.count("seeds", seeds, least=2), parameter_count(model)
    found = []
    combinations, reports = list(product(clips, learning_rates)), least_reports or cohort or people
    with Progress(len(rounds) * len(combinations), what="settings", shown=progress) as line:
        for count in rounds:
            local = epsilon0_for(PrivUnit, dimension=dimension, rounds=count, **crowd, **target)
            for clip, rate in combinations:
                rehearsal = _Rehearsal(loss, PrivUnit(dimension, local, clip), reports, count, rate)
                right = [rehearsal.of(model, examples, held_out, seed) for seed in range(seeds)]
                found.append(Setting(count, local, clip, rate, fmean(right), stdev(right)))
                line.advance()
    return sorted(found, key=lambda setting: -setting.accuracy)


@dataclass(frozen=True)
class _Rehearsal:
    loss: Loss
    randomizer: VectorRandomizer
    reports: int
    rounds: int
    rate: float

    def of(
        self, model: nn.Module, examples: tuple[Tensor, Tensor], held_out: tuple[Tensor, Tensor], seed: int
    ) -> float:
        """The accuracy that one seed leads to."""
        trained = deepcopy(model)
        gradients, parameters = PerExampleGradients(trained, self.loss), trainable(trained)
        generator = torch.Generator(parameters[0].device).manual_seed(seed)
        for _ in range(self.rounds):
            step = normal_mean(self.randomizer, gradients(*examples), self.reports, generator)
            with torch.no_grad():
                for value, part in zip(parameters, shaped_like(step, parameters), strict=True):
                    value.sub_(self.rate * part)
        with torch.no_grad():
            return float((trained(held_out[0]).argmax(dim=1) == held_out[1]).double().mean())
