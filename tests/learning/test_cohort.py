"""Who is asked, in which order, and what is read of them."""

from collections import Counter
from collections.abc import Callable
from itertools import combinations, permutations
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from torch.utils.data import Dataset, TensorDataset

from shuffledp._randomness.words import GeneratorWords
from shuffledp.learning import _clients as clients
from shuffledp.learning._clients import ClientData, draw_cohort

CPU = torch.device("cpu")


def chi_square_of_subsets(draw: Callable[..., Any]) -> float:
    """55 degrees of freedom: above 130 once in 2 * 10^7 for a uniform subset."""
    counts = Counter(tuple(sorted(draw().tolist())) for _ in range(5600))
    assert set(counts) <= set(combinations(range(8), 3))
    return sum((counts[subset] - 100) ** 2 / 100 for subset in combinations(range(8), 3))


def test_all_cohorts_are_equally_likely_with_secure_words(monkeypatch: pytest.MonkeyPatch) -> None:
    words = GeneratorWords(np.random.default_rng(1))  # the same words every time
    monkeypatch.setattr(clients, "source", lambda: words)
    assert chi_square_of_subsets(lambda: draw_cohort(8, 3, None)) < 130


def test_all_cohorts_are_equally_likely_with_a_generator() -> None:
    generator = torch.Generator().manual_seed(2)
    assert chi_square_of_subsets(lambda: draw_cohort(8, 3, generator)) < 130


def chi_square_of_orders(draw: Callable[..., Any], size: int, cohort: int) -> float:
    """23 degrees of freedom for both uses below: above 80 once in 3 * 10^7."""
    counts = Counter(tuple(draw().tolist()) for _ in range(2400))
    orders = list(permutations(range(size), cohort))
    assert len(orders) == 24
    assert set(counts) <= set(orders)
    return sum((counts[order] - 100) ** 2 / 100 for order in orders)


@pytest.mark.parametrize("size", [3, 4])
@pytest.mark.parametrize("secure", [True, False])
def test_all_orders_of_a_cohort_are_equally_likely_also_when_it_is_everybody(
    monkeypatch: pytest.MonkeyPatch, secure: bool, size: int
) -> None:
    """The order in which reports are added shows in the rounding, so it must be the shuffler's."""
    words = GeneratorWords(np.random.default_rng(3))
    monkeypatch.setattr(clients, "source", lambda: words)
    generator = None if secure else torch.Generator().manual_seed(4)
    assert chi_square_of_orders(lambda: draw_cohort(4, size, generator), 4, size) < 80


@pytest.mark.parametrize("tied", [[5, 5, 9, 11], [9, 5, 5, 11], [9, 5, 11, 5]])
def test_a_tie_that_matters_is_drawn_again(monkeypatch: pytest.MonkeyPatch, tied: list[int]) -> None:
    class Tied:
        draws = iter([np.array(tied, np.uint64), np.array([7, 2, 9, 9], np.uint64)])

        def draw(self, count: int) -> npt.NDArray[np.uint64]:
            return next(self.draws)

    monkeypatch.setattr(clients, "source", Tied)
    assert draw_cohort(4, 1, None).tolist() == [1]


class Squares(Dataset):
    def __len__(self) -> int:
        return 5

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        return torch.tensor([float(index)]), index * index


def test_any_map_style_dataset_is_read_by_index() -> None:
    inputs, targets = ClientData(Squares(), CPU).take(torch.tensor([3, 1]))
    assert inputs.tolist() == [[3.0], [1.0]]
    assert targets.tolist() == [9, 1]


def test_a_tensor_dataset_is_read_by_index() -> None:
    data = ClientData(TensorDataset(torch.arange(6).reshape(3, 2), torch.arange(3)), CPU)
    inputs, targets = data.take(torch.tensor([2]))
    assert (inputs.tolist(), targets.tolist()) == ([[4, 5]], [2])


def test_a_tensor_dataset_that_transforms_is_asked_client_by_client() -> None:
    class Doubled(TensorDataset):
        def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
            example, target = super().__getitem__(index)
            return 2 * example, target

    data = ClientData(Doubled(torch.arange(6).reshape(3, 2), torch.arange(3)), CPU)
    inputs, targets = data.take(torch.tensor([2]))
    assert (inputs.tolist(), targets.tolist()) == ([[8, 10]], [2])


def test_inputs_that_are_not_tensors_are_named() -> None:
    data = ClientData([({"pixels": 1.0}, 0)], CPU)
    with pytest.raises(TypeError, match="stack into tensors, got dict"):
        data.take(torch.tensor([0]))


def test_an_empty_dataset_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one client"):
        ClientData(TensorDataset(torch.zeros(0, 1)), CPU)


def test_a_stream_is_refused() -> None:
    with pytest.raises(TypeError, match="map-style"):
        ClientData(iter([]), CPU)


def test_more_than_input_and_target_is_refused() -> None:
    data = ClientData(TensorDataset(*(torch.zeros(2) for _ in range(3))), CPU)
    with pytest.raises(ValueError, match="3 values per client"):
        data.take(torch.tensor([0]))
