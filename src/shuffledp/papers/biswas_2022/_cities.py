"""Where people check in: files of places, or a synthetic city.

A file (.csv or .csv.gz) has a header and the columns latitude, longitude and, if there is one, checkins
(else each row is one check-in). Its box is that of Biswas et al. 2022 for San Francisco or Paris where all
its places lie inside, else the box of its own places. A box is cut into the paper's grid of cells.
"""

from __future__ import annotations

import csv
import gzip
import io
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from shuffledp._certified.rounding import Floats

Integers = npt.NDArray[np.int64]
Box = tuple[float, float, float, float]

SAN_FRANCISCO: Box = (37.7228, 37.7946, -122.5153, -122.3789)
PARIS: Box = (48.8286, 48.8798, 2.2855, 2.3909)
BOXES = {"San Francisco": (SAN_FRANCISCO, (24, 17)), "Paris": (PARIS, (16, 12))}
"""South, north, west, east; cells from west to east and from south to north."""
OTHER_GRID = (24, 17)


@dataclass(frozen=True)
class City:
    """Check-ins per cell, row by row from the south-west; ``source`` says where they are from, ``places``
    where they were made: (east, north) of the south-west corner, in cells."""

    name: str
    source: str
    counts: Integers
    grid: tuple[int, int]
    places: tuple[Floats, Floats]

    @property
    def total(self) -> int:
        return int(self.counts.sum())

    @property
    def everybody(self) -> Integers:
        """The cell of each check-in."""
        return np.repeat(np.arange(self.counts.size), self.counts)

    def draw(self, n: int, rng: np.random.Generator) -> Integers:
        """The cells of n people, drawn with replacement."""
        return rng.choice(self.counts.size, size=n, p=self.counts / self.total).astype(np.int64)

    def as_map(self, values: Floats) -> Floats:
        return np.asarray(values, dtype=np.float64).reshape(self.grid[1], self.grid[0])


def cities(data: Path | None) -> list[City]:
    """The cities of a file or of all csv files of a folder; the synthetic one if there are none."""
    if data is None:
        return [synthetic()]
    files = [data] if data.is_file() else sorted(data.glob("*.csv*"))
    if not files:
        raise ValueError(f"--data must be a csv file or a folder with csv files, got {str(data)!r}")
    return [read(file) for file in files]


def read(path: Path) -> City:
    """A city from a file of places."""
    latitude, longitude, checkins = _columns(path)
    name, (south, north, west, east), grid = _box(path, latitude, longitude)
    places = _across(longitude, west, east, grid[0]), _across(latitude, south, north, grid[1])
    column, row = (_cell(*each) for each in zip(places, grid, strict=True))
    counts = np.bincount(row * grid[0] + column, weights=checkins, minlength=grid[0] * grid[1])
    source = f"{path.name}, {int(checkins.sum()):,} check-ins"
    return City(name, source, counts.astype(np.int64), grid, places)


def _box(path: Path, latitude: Floats, longitude: Floats) -> tuple[str, Box, tuple[int, int]]:
    """The paper's city if all places lie inside, else a box of their own."""
    south, north, west, east = latitude.min(), latitude.max(), longitude.min(), longitude.max()
    for name, (box, grid) in BOXES.items():
        if box[0] <= south and north <= box[1] and box[2] <= west and east <= box[3]:
            return name, box, grid
    title = path.name.split(".")[0].replace("_", " ").title()
    return title, (south, north, west, east), OTHER_GRID


def _columns(path: Path) -> tuple[Floats, Floats, Integers]:
    raw = path.read_bytes()
    text = (gzip.decompress(raw) if path.suffix == ".gz" else raw).decode("utf-8")
    rows = list(csv.DictReader(io.StringIO(text)))
    try:
        places = [(float(r["latitude"]), float(r["longitude"])) for r in rows]
        counts = [int(r.get("checkins") or 1) for r in rows]
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(
            f"{path.name} must have the columns latitude, longitude and perhaps checkins: {error}"
        ) from error
    if not places:
        raise ValueError(f"{path.name} must have at least one place, got none")
    latitude, longitude = np.array(places).T
    return latitude, longitude, np.array(counts, dtype=np.int64)


def _across(value: Floats, low: float, high: float, cells: int) -> Floats:
    return (value - low) / ((high - low) or 1.0) * cells


def _cell(place: Floats, cells: int) -> Integers:
    return np.clip(np.floor(place), 0, cells - 1).astype(np.int64)


def synthetic(total: int = 120_000) -> City:
    """A city drawn by dice: a dense centre, some quarters, a thin rest. Nobody's data."""
    rng = np.random.default_rng(2022)
    columns, rows = OTHER_GRID
    x, y = np.meshgrid(np.arange(columns) + 0.5, np.arange(rows) + 0.5)
    density = np.full((rows, columns), 0.02)
    centres = rng.uniform([2.0, 2.0], [columns - 2.0, rows - 2.0], size=(9, 2))
    heights, widths = rng.pareto(1.2, size=9) + 0.3, rng.uniform(0.6, 2.4, size=9)
    for (cx, cy), height, width in zip(centres, heights, widths, strict=True):
        density += height * np.exp(-((x - cx) ** 2 + (y - cy) ** 2) / (2.0 * width**2))
    law = (density / density.sum()).ravel()
    counts = rng.multinomial(total, law).astype(np.int64)
    seen = counts.reshape(rows, columns) > 0
    return City("a synthetic city", f"synthetic, {total:,} check-ins", counts, OTHER_GRID, (x[seen], y[seen]))
