"""Joint tables of two or three attributes: how many people hold each combination, with all marginals.

One report names one cell of the table, among k1 k2 (k3) of them; no budget is divided. Marginals are sums of
cells, so everything is consistent, and a sum of m cells is itself a randomized response: a report names one
of them with probability p + (m - 1) q for those who belong there and m q for all others. So its intervals are
as exact as those of cells.

>>> people = TableProtocol({"age": ["young", "old"], "pet": ["cat", "dog"]}, epsilon=1.0, delta=1e-6, n=5000)
>>> result = people.analyze(people.randomize([("young", "cat")] * 2000 + [("old", "dog")] * 3000))
>>> bool(abs(result["young", "cat"].count - 2000) < 10 * result["young", "cat"].standard_error)
True
>>> result.marginal("age").categories
('young', 'old')
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from shuffledp import _validate
from shuffledp._certified.rounding import Floats
from shuffledp.collecting._accounted import Target
from shuffledp.collecting._choice import calibrated_response
from shuffledp.collecting._domain import MOST_CATEGORIES, CategoryIndex, as_column, checked_categories
from shuffledp.collecting.histogram import HistogramProtocol
from shuffledp.collecting.result import HistogramResult
from shuffledp.errors import DomainError
from shuffledp.randomizers.blanket_messages import BlanketMessages
from shuffledp.randomizers.frequency import FrequencyOracle
from shuffledp.randomizers.kary import KaryRandomizedResponse

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_ATTRIBUTES = 3
_ONE_CELL = (KaryRandomizedResponse, BlanketMessages)

Attributes = tuple[tuple[str, tuple[Any, ...]], ...]


@dataclass(frozen=True, init=False)
class TableProtocol(HistogramProtocol):
    """Count people by combinations of two or three attributes.

    ``attributes``: name -> public list of categories. Data are rows (tuples in the order of the attributes),
    or named columns: a mapping, a data frame, a structured array, a file. ``messages`` and ``max_epsilon0``:
    as of a ``HistogramProtocol``."""

    name: ClassVar[str] = "table"
    attributes: Attributes

    def __init__(
        self,
        attributes: Mapping[str, Any],
        epsilon: float,
        delta: float,
        n: int,
        randomizer: KaryRandomizedResponse | BlanketMessages | None = None,
        rounds: int = 1,
        messages: int | str = 1,
        max_epsilon0: float | None = None,
    ) -> None:
        if not isinstance(attributes, Mapping):
            raise TypeError(f"attributes must map names to lists of categories, got {attributes!r}")
        target = Target(epsilon, delta, n, rounds, most=max_epsilon0)
        self._choose(_checked(list(attributes.items())), target, randomizer, messages)

    @classmethod
    def check(cls, **domain: Any) -> None:
        _checked(list(domain["attributes"].items()))

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the attributes: the columns that are read from files and frames."""
        return tuple(name for name, _ in self.attributes)

    @property
    def reads_text(self) -> bool:
        return all(isinstance(category, str) for _, listed in self.attributes for category in listed)

    def encode(
        self, column: Any, *, rng: np.random.Generator | None = None, show_values: bool = False
    ) -> Any:
        """The number of each person's cell."""
        places = []
        for name, index, values in zip(self.columns, self._indices, self._columns(column), strict=True):
            try:
                places.append(index.places(values, show_values=show_values))
            except DomainError as error:
                error.add_note(f"in the attribute {name!r}")
                raise
        cells = np.ravel_multi_index(tuple(places), [len(listed) for _, listed in self.attributes])
        return np.asarray(cells)

    @cached_property
    def _indices(self) -> tuple[CategoryIndex, ...]:
        return tuple(CategoryIndex.of(listed) for _, listed in self.attributes)

    def _columns(self, data: Any) -> list[Any]:
        """One column per attribute, of equal lengths."""
        fields = getattr(getattr(data, "dtype", None), "names", None)
        if isinstance(data, Mapping) or hasattr(data, "columns") or fields:
            try:
                found = [data[name] for name in self.columns]
            except (KeyError, ValueError):
                raise ValueError(f"data must have the columns {', '.join(self.columns)}") from None
        else:
            rows = list(data)
            single = bool(rows) and all(
                isinstance(each, str) or not hasattr(each, "__len__") for each in rows
            )
            rows = [rows] if single else rows
            if any(isinstance(row, str) or len(row) != len(self.columns) for row in rows):
                raise ValueError(
                    f"data must be rows of {len(self.columns)} values: {', '.join(self.columns)}"
                )
            found = [list(part) for part in zip(*rows, strict=True)] if rows else [[]] * len(self.columns)
            found = [part[0] for part in found] if single else found
        if len({np.shape(as_column(part)) for part in found}) != 1:
            raise ValueError(f"the columns {', '.join(self.columns)} must be of equal lengths")
        return found

    def _best(self, messages: int | str, target: Target, most: int, prefer: str) -> FrequencyOracle:
        """Only reports that name one cell: sums of cells are then as exact as cells."""
        found = None if messages == 1 else super()._best(messages, target, most, prefer)
        return found if isinstance(found, _ONE_CELL) else calibrated_response(self.k, target)

    if TYPE_CHECKING:

        def analyze(self, reports: Any = None, **settings: Any) -> TableResult: ...

    def _result(self, *found: Any) -> TableResult:
        return TableResult(*self._found(*found), attributes=self.attributes)

    def _domain(self) -> dict[str, Any]:
        return {"attributes": [[name, list(listed)] for name, listed in self.attributes]}

    @classmethod
    def _described_domain(cls, description: dict[str, Any]) -> dict[str, Any]:
        return _checked(description["attributes"])

    def _accept(self, randomizer: Any) -> None:
        if not isinstance(randomizer, _ONE_CELL):
            raise TypeError(
                f"randomizer must be a KaryRandomizedResponse or BlanketMessages, got {randomizer!r}"
            )
        super()._accept(randomizer)


def _checked(attributes: Any) -> dict[str, Any]:
    """The attributes and their combinations."""
    try:
        pairs = [(name, listed) for name, listed in attributes]
    except (TypeError, ValueError):
        raise TypeError(f"attributes must map names to lists of categories, got {attributes!r}") from None
    if not 2 <= len(pairs) <= MOST_ATTRIBUTES:
        raise ValueError(f"attributes must be 2 to {MOST_ATTRIBUTES}, got {len(pairs)}")
    for name, _ in pairs:
        if not isinstance(name, str) or not name:
            raise TypeError(f"the name of an attribute must be a text, got {name!r}")
    if len({name for name, _ in pairs}) != len(pairs):
        raise ValueError(f"attributes must have different names, got {[name for name, _ in pairs]}")
    known = tuple((name, checked_categories(listed)) for name, listed in pairs)
    cells = int(np.prod([len(listed) for _, listed in known], dtype=object))
    if cells > MOST_CATEGORIES:
        raise ValueError(f"attributes must have at most {MOST_CATEGORIES} combinations, got {cells}")
    return {
        "attributes": known,
        "categories": tuple(product(*(listed for _, listed in known))),
        "other": None,
    }


@dataclass(frozen=True, eq=False, kw_only=True)
class TableResult(HistogramResult):
    """People by combination: ``result["old", "cat"]``, ``result.marginal("age")``, ``result.table()``."""

    attributes: Attributes

    def marginal(self, *names: str) -> HistogramResult:
        """Counts by some of the attributes, summed over all others; a table again if there are two."""
        known = [name for name, _ in self.attributes]
        if not names or len(set(names)) != len(names) or not set(names) <= set(known):
            raise ValueError(f"names must be different ones of {known}, got {list(names)}")
        shape = [len(listed) for _, listed in self.attributes]
        axes = [known.index(name) for name in names]
        left = tuple(axis for axis in range(len(shape)) if axis not in axes)
        support = self.support.reshape(shape).transpose(*axes, *left)
        support = support.reshape(*(shape[axis] for axis in axes), -1).sum(axis=-1).reshape(-1)
        merged: Any = Merged(self.randomizer, int(np.prod([shape[axis] for axis in left], dtype=object)))
        listed = [self.attributes[axis] for axis in axes]
        fields = (support, self.n, merged, self.privacy, self.confidence)
        if len(listed) == 1:
            return HistogramResult(listed[0][1], *fields)
        return TableResult(tuple(product(*(each for _, each in listed))), *fields, attributes=tuple(listed))

    @property
    def labels(self) -> list[str]:
        """The combinations."""
        return [", ".join(map(str, cell)) for cell in self.categories]

    def table(self) -> Floats:
        """The counts as an array, one axis per attribute."""
        return self.counts.reshape([len(listed) for _, listed in self.attributes])

    def columns(self, confidence: float | None = None) -> dict[str, list[Any]]:
        """One row per cell; the attributes are columns of their own."""
        rest = super().columns(confidence)
        cells = rest.pop("category")
        keys = {name: [cell[i] for cell in cells] for i, (name, _) in enumerate(self.attributes)}
        clash = set(keys) & set(rest)
        return {(f"{name}_" if name in clash else name): column for name, column in keys.items()} | rest

    def plot(self, *, truth: Any = None, confidence: float | None = None, ax: Axes | None = None) -> Axes:
        """Two attributes: a map of the counts; else a row per cell (needs matplotlib)."""
        from shuffledp.plotting._rows import table

        if len(self.attributes) == 2 and truth is None:
            return table(self, ax=ax)
        return super().plot(truth=truth, confidence=confidence, ax=ax)


@dataclass(frozen=True)
class Merged:
    """A randomizer whose reports name one category, seen by groups of ``size`` categories each.

    Sums over groups have the law of a randomizer of the groups; this is what the analyst needs of it."""

    randomizer: Any
    size: int

    @property
    def k(self) -> int:
        """The number of groups."""
        return int(self.randomizer.k) // self.size

    @property
    def messages(self) -> int:
        """How many messages each person sends."""
        return int(getattr(self.randomizer, "messages", 1))

    @property
    def support_probability(self) -> tuple[float, float] | None:
        """Of the own group, and of a given other one; None for several messages."""
        if self.messages > 1:
            return None
        p, q = self.randomizer.support_probability
        return p + (self.size - 1) * q, self.size * q

    @property
    def support_size(self) -> int | None:
        """Every report names one group."""
        return 1 if self.messages == 1 else None

    def estimate(self, support: Any, n: int) -> Floats:
        """Unbiased estimates of how many of n people hold a category of each group."""
        seen = _validate.counts("support", support, self.k, n * self.messages)
        if self.support_probability is None:
            return np.asarray(seen - n * self.randomizer.slots * self.size * self.randomizer.clone)
        p, q = self.support_probability
        return np.asarray((seen - n * q) / (p - q))

    def variance(self, counts: Any, n: int) -> Floats:
        """The exact variance of each estimate."""
        held = _validate.counts("counts", counts, self.k, n)
        if self.support_probability is None:
            chance = self.size * self.randomizer.clone
            return np.full(held.shape, n * self.randomizer.slots * chance * (1.0 - chance))
        p, q = self.support_probability
        return np.asarray((held * p * (1.0 - p) + (n - held) * q * (1.0 - q)) / (p - q) ** 2)
