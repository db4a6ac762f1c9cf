from __future__ import annotations

from functools import partial
from pathlib import Path

import click

from shuffledp.cli.options import command, option

WHAT, HOW = "What", "How"

EXAMPLE = """
$ shuffledp reproduce --list
$ shuffledp reproduce biswas-2022-table-4 -o papers
"""


@command(section="Papers", example=EXAMPLE)
@click.argument("names", metavar="[NAME]...", nargs=-1)
@option("--list listed", None, "List all names and stop.", group=WHAT)
@option("--all everything", None, "Run all of them.", group=WHAT)
@option("--quick", None, "Coarse grids: everything in a few minutes.", group=HOW)
@option(
    "--output -o",
    click.Path(file_okay=False, path_type=Path),
    "Folder for NAME.md, NAME.png and NAME.csv.",
    group=HOW,
    default=Path("papers"),
    metavar="DIR",
)
@option(
    "--data",
    click.Path(exists=True, path_type=Path),
    "Check-ins for the maps of a city: a csv file with latitude, longitude and checkins, or a "
    "folder of such files. Without it, a synthetic city.",
    group=HOW,
)
@option("--force", None, "Run also what is finished.", group=HOW)
def reproduce(
    names: tuple[str, ...],
    listed: bool,
    everything: bool,
    quick: bool,
    output: Path,
    data: Path | None,
    force: bool,
) -> None:
    """Figures and tables of the papers, computed again.

    Each gets a page with a picture, its numbers, and what differs from the paper and why. What is
    finished is not run again, so an interrupted run goes on where it stopped."""
    if sum((bool(names), listed, everything)) != 1:
        raise click.UsageError("give names, --list or --all.")
    from shuffledp import __version__
    from shuffledp.papers import _runner
    from shuffledp.papers._result import Setting
    from shuffledp.plotting._style import require_matplotlib

    if listed:
        width = max(len(item.name) for item in _runner.ITEMS)
        for item in _runner.ITEMS:
            click.echo(f"{item.name:<{width}}  {item.title}")
        return
    try:
        items = list(_runner.ITEMS) if everything else _runner.named(names)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    require_matplotlib()  # before minutes of work: every item has a picture
    setting = Setting(quick, data, __version__)
    tell = partial(click.echo, err=True)
    for page in _runner.reproduce(items, setting, output, force=force, tell=tell):
        click.echo(page)
