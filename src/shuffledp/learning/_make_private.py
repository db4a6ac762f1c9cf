"""One call from a model, an optimizer and data to private training, and a classifier with fit and predict.

>>> import torch
>>> X, y = torch.randn(400, 3), torch.arange(400) % 2
>>> model = torch.nn.Linear(3, 2)
>>> private = make_private(
...     model, torch.optim.SGD(model.parameters(), lr=0.5), (X + 3.0 * y[:, None], y),
...     torch.nn.functional.cross_entropy, epsilon=2.0, delta=1e-4, rounds=3, seed=1,
... )
>>> for _ in range(3):
...     private.step()
>>> float(private.epsilon(delta=1e-4)) <= 2.0
True
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader

from shuffledp import _html, _validate
from shuffledp.learning._budget import Budget, epsilon0_for
from shuffledp.learning._clients import Loss
from shuffledp.learning._reports import parameter_count
from shuffledp.learning._trainer import ShuffledTrainer
from shuffledp.randomizers.privunit import PrivUnit


def make_private(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    data: Any,
    loss: Loss,
    *,
    epsilon: float,
    delta: float,
    rounds: int,
    clip: float = 1.0,
    cohort: int | None = None,
    least_reports: int | None = None,
    **options: Any,
) -> ShuffledTrainer:
    """A trainer whose ``rounds`` rounds are (epsilon, delta)-DP together; ``step()`` is one of them.

    ``data`` is a dataset of one example per client, ``(X, y)``, or a DataLoader, whose batch size is then the
    size of a cohort (default: everybody). Reports are PrivUnit's, of gradients clipped at ``clip``, as noisy
    as the target asks. ``options`` are those of ShuffledTrainer."""
    if isinstance(data, DataLoader):
        cohort, data = data.batch_size if cohort is None else cohort, data.dataset
    people = len(data[1]) if isinstance(data, tuple) else len(data)
    size = (
        people if cohort is None else _validate.count("cohort", cohort, most=people, limit="the population")
    )
    shape: dict[str, Any] = {"dimension": parameter_count(model), "radius": _validate.positive("clip", clip)}
    target: dict[str, Any] = {"epsilon": epsilon, "delta": delta, "rounds": _validate.count("rounds", rounds)}
    crowd: dict[str, Any] = {"cohort": size, "population": people, "least_reports": least_reports}
    randomizer = PrivUnit(epsilon0=epsilon0_for(PrivUnit, **target, **crowd, **shape), **shape)
    given = options | {"cohort": size, "least_reports": least_reports, "budget": Budget(epsilon, delta)}
    return ShuffledTrainer(model, data, loss, randomizer=randomizer, optimizer=optimizer, **given)


def classifier(width: int, classes: int, hidden: int | None = None) -> nn.Module:
    """Linear, beginning at zero, or with one hidden layer."""
    if hidden is None:
        model = nn.Sequential(nn.Flatten(), nn.Linear(width, classes))
        for parameter in model.parameters():
            nn.init.zeros_(parameter)
        return model
    return nn.Sequential(nn.Flatten(), nn.Linear(width, hidden), nn.Tanh(), nn.Linear(hidden, classes))


class ShuffledClassifier:
    """A classifier of NumPy arrays: ``fit(X, y)``, ``predict(X)``; one row is one person.

    ``classes`` is the public list of all labels. Features should be about one in size, by a scaling that does
    not look at these people. After ``fit``: ``trainer_`` and ``epsilon_``, the certified bound.

    >>> y = np.arange(500) % 2
    >>> X = np.random.default_rng(1).normal(size=(500, 2)) + 4.0 * y[:, None] - 2.0
    >>> fitted = ShuffledClassifier([0, 1], epsilon=4.0, delta=1e-4, rounds=2, seed=1).fit(X, y)
    >>> fitted.score(X, y) > 0.9
    True
    """

    def __init__(
        self,
        classes: Sequence[Any],
        *,
        epsilon: float,
        delta: float,
        rounds: int = 100,
        hidden: int | None = None,
        learning_rate: float = 0.5,
        clip: float = 1.0,
        cohort: int | None = None,
        seed: int | None = None,
    ) -> None:
        self.classes = np.asarray(classes)
        if self.classes.ndim != 1 or not 2 <= len(np.unique(self.classes)) == len(self.classes):
            raise ValueError(f"classes must be at least two different labels, got {classes!r}")
        self.hidden, self.seed = hidden, seed
        self.learning_rate = _validate.positive("learning_rate", learning_rate)
        self.rounds = _validate.count("rounds", rounds)
        self._plan: dict[str, Any] = {"epsilon": epsilon, "delta": delta, "clip": clip, "cohort": cohort}

    def __repr__(self) -> str:
        plan = ", ".join(f"{name}={value!r}" for name, value in self._plan.items() if value is not None)
        return f"ShuffledClassifier({self.classes.tolist()}, {plan}, rounds={self.rounds})"

    def _repr_html_(self) -> str:
        fitted = self.trainer_.history._repr_html_() if hasattr(self, "trainer_") else ""
        return _html.text(repr(self)) + fitted

    def fit(self, X: Any, y: Any, *, progress: bool = False) -> Self:
        """All rounds, from the beginning. Ctrl-C ends them; ``trainer_`` is what came until then."""
        inputs, labels = _matrix(X), np.asarray(y)
        if labels.shape != inputs.shape[:1]:
            raise ValueError(
                f"y must hold one label per row of X, got {labels.shape} for {tuple(inputs.shape)}"
            )
        places = np.argmax(labels[:, None] == self.classes, axis=1)
        strange = labels != self.classes[places]
        if strange.any():
            raise ValueError(
                f"y must hold the classes only, {int(strange.sum())} of {len(labels)} are others"
            )
        if self.seed is not None:
            torch.manual_seed(self.seed)
        model = classifier(inputs.shape[1], len(self.classes), self.hidden)
        steps = torch.optim.SGD(model.parameters(), lr=self.learning_rate)
        people, loss = (inputs, torch.from_numpy(places)), nn.functional.cross_entropy
        plan = self._plan | {"rounds": self.rounds, "seed": self.seed}
        self.trainer_ = make_private(model, steps, people, loss, **plan)
        self.trainer_.run(self.rounds, every=self.rounds, progress=progress)
        self.epsilon_ = self.trainer_.epsilon(delta=self._plan["delta"])
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        """One row per row, one column per class."""
        if not hasattr(self, "trainer_"):
            raise RuntimeError("fit must be called before predict")
        with torch.no_grad():
            return np.asarray(self.trainer_.model(_matrix(X)).softmax(dim=1))

    def predict(self, X: Any) -> np.ndarray:
        """The most likely class of every row."""
        return np.asarray(self.classes[self.predict_proba(X).argmax(axis=1)])

    def score(self, X: Any, y: Any) -> float:
        """The share that is right, on data that may be looked at."""
        return float(np.mean(self.predict(X) == np.asarray(y)))


def _matrix(X: Any) -> torch.Tensor:
    array = np.asarray(X, np.float32)
    if array.ndim != 2:
        raise ValueError(f"X must be a matrix, one row per person, got shape {array.shape}")
    if not np.isfinite(array).all():
        raise ValueError("X must be finite")
    return torch.from_numpy(array)
