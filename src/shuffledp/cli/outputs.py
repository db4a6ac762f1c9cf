"""Files that a command writes: checked before any work is done, and whole or not there at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from shuffledp.cli.command import option
from shuffledp.cli.printing import OUTPUT

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def _checked(context: click.Context, parameter: click.Parameter, path: str | None) -> str | None:
    """A name in a folder that can be written: what was collected must not be lost in the end."""
    folder = Path(path or ".").absolute().parent
    if path is not None and not (folder.is_dir() and os.access(folder, os.W_OK)):
        raise click.ClickException(f"{path} cannot be written: no folder {folder} to write to.")
    return path


def output_option(
    *names: str, help: str, group: str = OUTPUT, **settings: Any
) -> Callable[..., Any]:
    """An option that names a file to be written."""
    path = click.Path(dir_okay=False, writable=True)
    return option(
        *names, type=path, callback=_checked, metavar="FILE", help=help, group=group, **settings
    )


csv_option = output_option("--csv", "csv_file", help="Write the numbers in full.")


@contextmanager
def replacing(path: str) -> Iterator[Path]:
    """A file to write, which takes the place of ``path`` when the block ends without an error."""
    target = Path(path)
    partial = target.with_name(f"{target.stem}.{secrets.token_hex(8)}.partial{target.suffix}")
    try:
        yield partial
        os.replace(partial, target)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
    click.echo(f"wrote {path}", err=True)


def write_text(path: str, text: str) -> None:
    """The text, as a file that replaces another one of the name."""
    with replacing(path) as partial:
        partial.write_text(text, encoding="utf-8")


def write_picture(path: str, ax: Axes) -> None:
    """The figure of ``ax``, in the format of the file's suffix."""
    from shuffledp import plotting

    with replacing(path) as partial:
        plotting.save(ax, partial)
