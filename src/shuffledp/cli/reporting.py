"""What the library has to say besides its answer, as one line of standard error each."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click


@contextmanager
def one_line_each() -> Iterator[None]:
    """Warnings of the library, and its refusals that are no errors of a value (a budget, a file)."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = _show
        try:
            yield
        except RuntimeError as error:
            if type(error).__module__.partition(".")[0] == "shuffledp":
                raise click.ClickException(str(error)) from error
            raise


def _show(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
    click.echo(f"shuffledp: warning: {' '.join(str(message).split())}", err=True)
