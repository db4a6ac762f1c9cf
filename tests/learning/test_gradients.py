"""Per-example gradients against plain autograd, one example at a time."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from shuffledp.learning._clients import PerExampleGradients, flattened, shaped_like, trainable

pytestmark = pytest.mark.quick


def one_by_one(
    model: nn.Module, loss: Callable[..., Any], inputs: torch.Tensor, targets: torch.Tensor
) -> torch.Tensor:
    rows = []
    for example, target in zip(inputs, targets, strict=True):
        model.zero_grad()
        loss(model(example[None]), target[None]).backward()
        rows.append(torch.cat([p.grad.reshape(-1) for p in model.parameters()]))
    return torch.stack(rows)


def test_every_row_is_the_gradient_of_that_client_alone() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(1, 2, 3), nn.Tanh(), nn.MaxPool2d(2), nn.Flatten(), nn.GroupNorm(2, 18), nn.Linear(18, 4)
    ).double()
    inputs, targets = torch.randn(5, 1, 8, 8).double(), torch.tensor([0, 1, 2, 3, 1])
    loss = nn.functional.cross_entropy
    rows = PerExampleGradients(model, loss)(inputs, targets)
    torch.testing.assert_close(rows, one_by_one(model, loss, inputs, targets))


def test_frozen_parameters_are_left_out() -> None:
    model = nn.Sequential(nn.Linear(3, 2), nn.Linear(2, 1))
    model[0].requires_grad_(False)
    rows = PerExampleGradients(model, nn.functional.mse_loss)(torch.randn(4, 3), torch.zeros(4, 1))
    assert rows.shape == (4, 3)


def test_gradients_follow_the_parameters_as_they_change() -> None:
    model = nn.Linear(1, 1, bias=False)
    gradients = PerExampleGradients(model, nn.functional.mse_loss)
    for value in (1.0, 3.0):
        nn.init.constant_(model.weight, value)
        rows = gradients(torch.ones(1, 1), torch.zeros(1, 1))
        assert rows.item() == pytest.approx(2 * value)


@pytest.mark.parametrize(
    "layer", [nn.BatchNorm1d(3), nn.BatchNorm2d(3), nn.InstanceNorm1d(3, track_running_stats=True)]
)
def test_layers_that_mix_clients_are_refused(layer: Any) -> None:
    with pytest.raises(ValueError, match="batch statistics: 1 is"):
        PerExampleGradients(nn.Sequential(nn.Linear(3, 3), layer), nn.functional.mse_loss)


class Remembers(nn.Module):
    """Keeps something of what it has seen, in one of two ways."""

    def __init__(self, how: str) -> None:
        super().__init__()
        self.layer, self.how = nn.Linear(3, 1), how
        self.seen: torch.Tensor
        self.register_buffer("seen", torch.zeros(()))

    def forward(self, inputs: torch.Tensor) -> torch.Tensor | None:
        if self.how == "replaces":
            self.seen = self.seen + inputs.detach().mean()
        elif self.how == "writes":
            self.seen += inputs.detach().mean()
        return self.layer(inputs)


def test_a_model_that_keeps_something_of_its_inputs_is_refused() -> None:
    gradients = PerExampleGradients(Remembers("replaces"), nn.functional.mse_loss)
    with pytest.raises(ValueError, match=r"must not change its buffers .* 'seen' did"):
        gradients(torch.randn(4, 3), torch.zeros(4, 1))


def test_a_model_that_writes_into_a_buffer_is_refused_by_torch_itself() -> None:
    gradients = PerExampleGradients(Remembers("writes"), nn.functional.mse_loss)
    with pytest.raises(RuntimeError, match="in-place operation"):
        gradients(torch.randn(4, 3), torch.zeros(4, 1))


def test_a_model_whose_buffers_stay_as_they_are_is_accepted() -> None:
    gradients = PerExampleGradients(Remembers("nothing"), nn.functional.mse_loss)
    assert gradients(torch.randn(4, 3), torch.zeros(4, 1)).shape == (4, 4)


def test_flattening_and_shaping_are_inverse() -> None:
    parts = [torch.randn(2, 3), torch.randn(4)]
    back = shaped_like(flattened(parts), parts)
    assert all(torch.equal(a, b) for a, b in zip(parts, back, strict=True))


def test_a_vector_of_another_length_is_refused() -> None:
    with pytest.raises(ValueError, match=r"shape \(3,\)"):
        shaped_like(torch.zeros(4), [torch.zeros(3)])


def test_a_model_with_nothing_to_learn_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one parameter"):
        trainable(nn.Tanh())
