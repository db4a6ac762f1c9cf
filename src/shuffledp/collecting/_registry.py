"""All protocols by name."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from shuffledp.collecting._protocol import Protocol, checked_description

_HOMES = {
    "histogram": ("histogram", "HistogramProtocol"),
    "mean": ("number", "MeanProtocol"),
    "sum": ("number", "SumProtocol"),
}


def protocol_from_dict(description: dict[str, Any]) -> Protocol:
    """The protocol that ``Protocol.to_dict`` described; nothing is calibrated again.

    >>> from shuffledp.collecting.histogram import HistogramProtocol
    >>> survey = HistogramProtocol([1, 2, 3], epsilon=1.0, delta=1e-6, n=1000)
    >>> protocol_from_dict(survey.to_dict()) == survey
    True
    """
    module, name = _HOMES[checked_description(description, *_HOMES)]
    kind = getattr(import_module(f"shuffledp.collecting.{module}"), name)
    protocol = kind.from_dict(description)
    assert isinstance(protocol, Protocol)
    return protocol
