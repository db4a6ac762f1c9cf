"""Features and a class per person, from a table in a file or from a folder of MNIST's idx files.

Everything that shapes the model is public: the names of the classes and the range of the features
are given, never read off the data.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from torch.utils.data import TensorDataset

DIGITS = tuple("0123456789")


@dataclass(frozen=True)
class Layout:
    """What the columns mean: ``features`` None for all but the label, ``ends`` None to take them as
    they are."""

    label: str | None
    classes: tuple[str, ...]
    features: tuple[str, ...] | None
    ends: tuple[float, float] | None


def read_labelled(path: str, layout: Layout, split: str) -> TensorDataset:
    """(inputs, classes): a folder is taken for MNIST, of which ``split`` is read."""
    if Path(path).is_dir():
        from shuffledp.learning import load_mnist

        return load_mnist(path, split)
    if layout.label is None or not layout.classes:
        raise click.UsageError("a table needs --label and --classes.")
    return _of_table(path, layout, layout.label)


def _of_table(path: str, layout: Layout, label: str) -> TensorDataset:
    import numpy as np
    import torch
    from torch.utils.data import TensorDataset

    from shuffledp.collecting._domain import CategoryIndex
    from shuffledp.shuffling.columns import open_column

    names = layout.features or [name for name in _column_names(path) if name != label]
    inputs = np.stack([_numbers(path, name) for name in names], axis=1)
    if layout.ends is not None:
        low, high = layout.ends
        inputs = 2.0 * (np.clip(inputs, low, high) - low) / (high - low) - 1.0
    index = CategoryIndex.of(layout.classes)
    parts = [_places(index, batch) for batch in open_column(path, label, text=True)]
    targets = np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)
    return TensorDataset(torch.from_numpy(inputs.astype(np.float32)), torch.from_numpy(targets))


def _places(index: Any, batch: Any) -> Any:
    """Labels that are whole numbers are known by their digits."""
    import numpy as np

    as_text = batch.astype(np.str_) if batch.dtype.kind in "iu" else batch
    return np.asarray(index.places(as_text), dtype=np.int64)


def _numbers(path: str, name: str) -> Any:
    """One feature; missing values are an error that counts them."""
    import numpy as np

    from shuffledp.collecting._domain import missing_in, refuse
    from shuffledp.shuffling.columns import open_column

    parts = list(open_column(path, name))
    column = np.concatenate(parts) if parts else np.zeros(0)
    missing = missing_in(column)
    refuse(column, missing, np.zeros_like(missing))
    if column.dtype.kind not in "biuf":
        raise click.ClickException(f"feature {name!r} must be numbers, got {column.dtype}")
    return column.astype(np.float64)


def _column_names(path: str) -> Sequence[str]:
    """All columns of a file, asked of the reader of tables."""
    from shuffledp.shuffling._extras import needed

    dataset = needed("pyarrow.dataset", extra="collect")
    formats = {".csv": "csv", ".parquet": "parquet", ".pq": "parquet"}
    kind = formats.get(Path(path).suffix.lower())
    if kind is None:
        raise click.UsageError(f"--features must be given for {path}.")
    if not Path(path).is_file():
        raise FileNotFoundError(f"data must be an existing file, got {path!r}")
    names: Sequence[str] = dataset.dataset(path, format=kind).schema.names
    return names
