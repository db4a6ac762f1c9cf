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
_FORMATS = {".csv": "csv", ".parquet": "parquet", ".pq": "parquet"}


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
    import numpy as np
    import torch
    from torch.utils.data import TensorDataset

    names = layout.features or [name for name in _column_names(path) if name != layout.label]
    inputs = np.stack([_feature(path, name) for name in names], axis=1)
    if layout.ends is not None:
        low, high = layout.ends
        beyond = int(np.sum((inputs < low) | (inputs > high)))
        if beyond:
            click.echo(
                f"{beyond:,} of {inputs.size:,} features are beyond --low and --high: clipped", err=True
            )
        inputs = 2.0 * (np.clip(inputs, low, high) - low) / (high - low) - 1.0
    targets = _places(path, layout.label, layout.classes)
    return TensorDataset(torch.from_numpy(inputs.astype(np.float32)), torch.from_numpy(targets))


def _column(path: str, name: str, *, text: bool = False) -> Any:
    import numpy as np

    from shuffledp.shuffling.columns import open_column

    parts = list(open_column(path, name, text=text))
    return np.concatenate(parts) if parts else np.zeros(0)


def _places(path: str, label: str, classes: tuple[str, ...]) -> Any:
    """The place of each person's class; labels that are whole numbers are known by their digits."""
    import numpy as np

    from shuffledp.collecting._domain import CategoryIndex

    column = _column(path, label, text=True)
    as_text = column.astype(np.str_) if column.dtype.kind in "iu" else column
    return np.asarray(CategoryIndex.of(classes).places(as_text), dtype=np.int64)


def _feature(path: str, name: str) -> Any:
    """One feature; missing values are an error that counts them."""
    import numpy as np

    from shuffledp.collecting._domain import missing_in, refuse

    column = _column(path, name)
    missing = missing_in(column)
    refuse(column, missing, np.zeros_like(missing))
    if column.dtype.kind not in "biuf":
        raise click.ClickException(f"feature {name!r} must be numbers, got {column.dtype}")
    return column.astype(np.float64)


def _column_names(path: str) -> Sequence[str]:
    """All columns of a file, asked of the reader of tables."""
    from shuffledp._extras import needed

    kind = _FORMATS.get(Path(path).suffix.lower())
    if kind is None:
        raise click.UsageError(f"--features must be given for {path}.")
    dataset = needed("pyarrow.dataset", extra="collect").dataset(path, format=kind)
    names: Sequence[str] = dataset.schema.names
    return names
