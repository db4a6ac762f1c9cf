from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from shuffledp.cli.collecting import (
    MESSAGES,
    collect,
    collecting_options,
    column_option,
    data_argument,
    messages_options,
    question,
)
from shuffledp.cli.options import EXISTING_FILE, command

EXAMPLE = """
$ shuffledp histogram pets.csv --categories cat,dog,fish --epsilon 1 --delta 1e-6
histogram of 100,000 reports, epsilon <= 0.99738 at delta = 1e-6

  category     count  std. error  1% lies  95% from        to
  cat       50,000.3         8.0  1,001.3  49,985.0  50,016.0
  dog       34,994.1         7.6  1,001.3  34,979.0  35,009.0
  fish      15,005.6         7.1  1,001.3  14,992.0  15,019.0

$ shuffledp histogram --categories a,b --n 1e5 --plan q.json --epsilon 1 --delta 1e-6
histogram planned: epsilon <= 0.99557 at delta = 1e-6
"""


@command(section="Collecting", example=EXAMPLE)
@data_argument
@column_option
@question("--categories", "A,B,...", "The public list, separated by commas.")
@question("--categories-file", EXISTING_FILE, "Instead: one category per line, or a .json list.")
@question("--numeric", None, "The categories are whole numbers, as the column's type is.")
@question("--other", "NAME", "The category of what is missing or not in the list; else an error.")
@messages_options
@collecting_options
def histogram(
    categories: str | None, categories_file: str | None, numeric: bool, other: Any, **given: Any
) -> None:
    """Count people by category, with certified privacy.

    DATA is a .csv, .tsv, .parquet, .arrow or .feather file with a row per person. Estimates are
    unbiased; each has its own interval. The randomizer is chosen for the smallest error."""
    listed = _categories(categories, categories_file)
    if numeric:
        listed, other = [_whole(each) for each in listed], _whole(other)

    collect("HistogramProtocol", MESSAGES, given, categories=listed, other=other)


def _categories(written: str | None, path: str | None) -> list[Any]:
    if (written is None) == (path is None):
        raise click.UsageError("give one of --categories and --categories-file.")
    if path is None:
        return [each.strip() for each in (written or "").split(",")]
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
        if Path(path).suffix.lower() != ".json":
            return [line.strip() for line in text.splitlines() if line.strip()]
        listed = json.loads(text)
    except ValueError as error:
        raise click.UsageError(f"--categories-file {path}: {error}.") from error
    if not isinstance(listed, list):
        raise click.UsageError(f"--categories-file {path}: a .json file must hold a list.")
    return listed


def _whole(category: Any) -> int | None:
    try:
        return None if category is None else int(category)
    except (TypeError, ValueError):
        raise click.UsageError(f"--numeric categories must be whole numbers, got {category!r}.") from None
