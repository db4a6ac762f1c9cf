"""One thread: the tensors here are small, and the tests share their machine."""

from functools import cache

import pytest
import torch

from shuffledp.learning import _budget

torch.set_num_threads(1)

_CALIBRATED_ONCE = cache(_budget.rounds_for)


@pytest.fixture(autouse=True)
def budgets_are_calibrated_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The trainers of these tests are much the same, and a calibration takes a second."""
    monkeypatch.setattr(_budget, "rounds_for", _CALIBRATED_ONCE)
