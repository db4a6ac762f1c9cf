"""``--plot FILE``: checked before anything is computed, drawn without a window."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from shuffledp.cli.command import option
from shuffledp.cli.printing import OUTPUT

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def _checked(context: click.Context, parameter: click.Parameter, path: str | None) -> str | None:
    """The name of a file that can be a picture, with matplotlib at hand."""
    if path is None:
        return None
    from shuffledp.plotting._style import file_format, require_matplotlib

    try:
        file_format(path)
    except ValueError as error:
        raise click.BadParameter(f"{error}.") from error
    require_matplotlib()
    return path


plot_option = option(
    "--plot",
    "plot_file",
    type=click.Path(dir_okay=False, writable=True),
    callback=_checked,
    metavar="FILE",
    help="Draw a .png, .svg or .pdf file.",
    group=OUTPUT,
)


def save_picture(ax: Axes, path: str) -> None:
    """Write the file and say so, apart from the answer."""
    from shuffledp import plotting

    plotting.save(ax, path)
    click.echo(f"wrote {path}", err=True)
