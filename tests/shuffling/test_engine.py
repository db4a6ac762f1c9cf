"""An engine is one file with two verbs: whatever has them runs every protocol."""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pytest

from shuffledp import KaryRandomizedResponse
from shuffledp.collecting.histogram import HistogramProtocol
from shuffledp.collecting.number import MeanProtocol
from shuffledp.errors import DomainError, TooFewReportsError
from shuffledp.shuffling.columns import open_column
from shuffledp.shuffling.engine import EmbeddedEngine, Engine, Partial, Step, collect, counted, tallied

pytestmark = pytest.mark.quick


class BackwardsEngine(Engine):
    """The last batch first, all partial results in a list."""

    def map_batches(self, step: Step, data: Any, column: Any, *, text: bool = False) -> Any:
        batches = list(open_column(data, column, text=text, rows=100).numbered())
        return [counted(step, *batch) for batch in reversed(batches)]

    def merge(self, partials: Iterable[Partial]) -> Partial:
        return sum(partials, start=Partial())


@pytest.fixture(params=[BackwardsEngine, EmbeddedEngine])
def engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    return request.param()


def test_any_engine_runs_a_histogram(engine: Engine, pets: HistogramProtocol) -> None:
    result = collect(pets, ["cat", "dog", "dog"] * 1000, engine=engine, minimum=3000)
    truth = np.array([1000, 2000, 0])
    spread = np.sqrt(pets.randomizer.variance(truth, 3000))
    assert result.n == 3000
    assert (np.abs(result.counts - truth) < 7 * spread).all()  # false alarm below 1e-9


def test_any_engine_runs_a_mean(engine: Engine) -> None:
    answer = KaryRandomizedResponse(k=5, epsilon0=3.0)
    ages = MeanProtocol(0, 100, epsilon=3.0, delta=1e-6, n=1000, randomizer=answer)
    result = collect(ages, np.linspace(0, 100, 1000), engine=engine)
    assert abs(result.value - 50) < 7 * ages.worst_standard_error  # false alarm below 1e-9


def test_any_engine_counts_what_was_rejected(engine: Engine, pets: HistogramProtocol) -> None:
    column = np.array(["cat"] * 1000, dtype=object)
    column[[3, 999]] = [None, "hen"]
    with pytest.raises(DomainError) as caught:
        tallied(pets, column, engine=engine, show_values=True)
    assert caught.value.examples == ((3, None), (999, "hen"))
    assert (caught.value.total, caught.value.missing, caught.value.outside) == (1000, 1, 1)


def test_any_engine_refuses_a_small_crowd(engine: Engine, pets: HistogramProtocol) -> None:
    with pytest.raises(TooFewReportsError, match="got 0"):
        collect(pets, [], engine=engine)
