"""One call to private training: the plan that it makes is the accountant's, and it learns."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from shuffledp import PrivUnit, Shuffled
from shuffledp.learning import ShuffledClassifier, make_private

LOSS = nn.functional.cross_entropy
PLAN: Any = {"epsilon": 2.0, "delta": 1e-4, "rounds": 2}


def people(count: int = 500) -> tuple[np.ndarray, np.ndarray]:
    labels = np.arange(count) % 2
    return np.random.default_rng(1).normal(size=(count, 3)) / 4 + labels[:, None] - 0.5, labels


def test_one_call_makes_a_loop_private() -> None:
    X, y = people()
    model = nn.Linear(3, 2)
    data: Any = DataLoader(TensorDataset(torch.from_numpy(X).float(), torch.from_numpy(y)), batch_size=500)
    steps = torch.optim.SGD(model.parameters(), lr=0.5)
    private = make_private(model, steps, data, LOSS, **PLAN, clip=0.5, seed=1)
    one = Shuffled(PrivUnit(8, private.randomizer.epsilon0), n=500)
    assert 1.9 < (2 * one).upper_epsilon(delta=1e-4) <= 2.0
    for _ in range(2):
        private.step()
    assert private.spending.rounds_left == 0
    assert private.randomizer.radius == 0.5


def test_fit_and_predict_are_those_of_arrays() -> None:
    X, y = people()
    names = np.array(["cat", "dog"])[y]
    fitted = ShuffledClassifier(["cat", "dog"], **PLAN, seed=1).fit(X, names)
    assert repr(fitted).startswith("ShuffledClassifier(['cat', 'dog'], epsilon=")
    assert "<table" in fitted._repr_html_()
    assert fitted.score(X, names) > 0.9
    assert set(fitted.predict(X)) == {"cat", "dog"}
    assert fitted.predict_proba(X).shape == (500, 2)
    assert float(fitted.epsilon_) <= 2.0


def test_wrong_arrays_are_named() -> None:
    X, y = people(20)
    plain = ShuffledClassifier([0, 1], **PLAN)
    with pytest.raises(RuntimeError, match="fit must be called"):
        plain.predict(X)
    with pytest.raises(ValueError, match="1 of 20 are others"):
        plain.fit(X, np.where(np.arange(20) == 3, 7, y))
    with pytest.raises(ValueError, match="one label per row"):
        plain.fit(X, y[:-1])
    with pytest.raises(ValueError, match="X must be finite"):
        plain.fit(np.where(X > 0.9, np.nan, X) * np.nan, y)
    with pytest.raises(ValueError, match="one row per person"):
        plain.fit(X[:, 0], y)
    with pytest.raises(ValueError, match="at least two different labels"):
        ShuffledClassifier([1, 1], **PLAN)
    with pytest.raises(ValueError, match=r"cohort must be in \[1, 20\]"):
        ShuffledClassifier([0, 1], **PLAN, cohort=21).fit(X, y)
