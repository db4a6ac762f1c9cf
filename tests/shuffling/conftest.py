"""A small protocol for all tests of this folder: three categories, two percent of random answers."""

import pytest

import shuffledp as sdp
from shuffledp.collecting.histogram import HistogramProtocol

PETS = ("cat", "dog", "fish")


@pytest.fixture(scope="session")
def pets() -> HistogramProtocol:
    """Planned for 3000 reports."""
    answer = sdp.KaryRandomizedResponse(k=3, gamma=0.02)
    return HistogramProtocol(PETS, epsilon=8.0, delta=1e-6, n=3000, randomizer=answer)
