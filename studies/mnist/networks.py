"""The models of the study."""

from __future__ import annotations

from torch import nn


def linear(inputs: int) -> nn.Module:
    """Ten scores from fixed features; the features hold a constant, so there is no bias."""
    model = nn.Linear(inputs, 10, bias=False)
    nn.init.zeros_(model.weight)
    return model


def small_cnn(filters: int = 32) -> nn.Module:
    """26,010 parameters: two convolutions and two dense layers with tanh, common in this field.

    The learning paper's Table 1 is not in our copy; this is a network of about that size. With 16 ``filters``
    in the second convolution it is that of its authors' code: 13,706 parameters."""
    return nn.Sequential(
        nn.Conv2d(1, 16, 8, stride=2, padding=3),
        nn.Tanh(),
        nn.MaxPool2d(2, 1),
        nn.Conv2d(16, filters, 4, stride=2),
        nn.Tanh(),
        nn.MaxPool2d(2, 1),
        nn.Flatten(),
        nn.Linear(filters * 4 * 4, 32),
        nn.Tanh(),
        nn.Linear(32, 10),
    )
