"""Who is asked, and what is read of them."""

from collections import Counter
from itertools import combinations

import numpy as np
import pytest
import torch
from torch.utils.data import Dataset, TensorDataset

from shuffledp.learning import cohort
from shuffledp.learning.cohort import ClientData, draw_cohort
from shuffledp.randomness.words import GeneratorWords

CPU = torch.device("cpu")


def chi_square_of_subsets(draw):
    """55 degrees of freedom: above 130 once in 2 * 10^7 for a uniform subset."""
    counts = Counter(tuple(sorted(draw().tolist())) for _ in range(5600))
    assert set(counts) <= set(combinations(range(8), 3))
    return sum((counts[subset] - 100) ** 2 / 100 for subset in combinations(range(8), 3))


def test_all_cohorts_are_equally_likely_with_secure_words(monkeypatch):
    words = GeneratorWords(np.random.default_rng(1))  # the same words every time
    monkeypatch.setattr(cohort, "source", lambda: words)
    assert chi_square_of_subsets(lambda: draw_cohort(8, 3, None)) < 130


def test_all_cohorts_are_equally_likely_with_a_generator():
    generator = torch.Generator().manual_seed(2)
    assert chi_square_of_subsets(lambda: draw_cohort(8, 3, generator)) < 130


def test_a_tie_at_the_border_is_drawn_again(monkeypatch):
    class Tied:
        draws = iter([np.array([5, 5, 9], np.uint64), np.array([7, 2, 9], np.uint64)])

        def draw(self, count):
            return next(self.draws)

    monkeypatch.setattr(cohort, "source", Tied)
    assert draw_cohort(3, 1, None).tolist() == [1]


def test_everybody_is_asked_in_order_when_that_is_all():
    assert draw_cohort(4, 4, None).tolist() == [0, 1, 2, 3]


class Squares(Dataset):
    def __len__(self):
        return 5

    def __getitem__(self, index):
        return torch.tensor([float(index)]), index * index


def test_any_map_style_dataset_is_read_by_index():
    inputs, targets = ClientData(Squares(), CPU).take(torch.tensor([3, 1]))
    assert inputs.tolist() == [[3.0], [1.0]]
    assert targets.tolist() == [9, 1]


def test_a_tensor_dataset_is_read_by_index():
    data = ClientData(TensorDataset(torch.arange(6).reshape(3, 2), torch.arange(3)), CPU)
    inputs, targets = data.take(torch.tensor([2]))
    assert (inputs.tolist(), targets.tolist()) == ([[4, 5]], [2])


def test_an_empty_dataset_is_refused():
    with pytest.raises(ValueError, match="at least one client"):
        ClientData(TensorDataset(torch.zeros(0, 1)), CPU)


def test_a_stream_is_refused():
    with pytest.raises(TypeError, match="map-style"):
        ClientData(iter([]), CPU)


def test_more_than_input_and_target_is_refused():
    data = ClientData(TensorDataset(*(torch.zeros(2) for _ in range(3))), CPU)
    with pytest.raises(ValueError, match="3 values per client"):
        data.take(torch.tensor([0]))
