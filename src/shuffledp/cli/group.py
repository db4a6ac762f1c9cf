"""A group of commands found by file name and loaded on demand, with errors of one line each."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Sequence
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, NoReturn

import click

INTERRUPTED = 130
"""The exit status shells give to a process ended by Ctrl-C."""


class InterruptedByUser(click.ClickException):
    """Ctrl-C, as an error with a message and a status of its own."""

    exit_code = INTERRUPTED


class CommandDirectory(click.Group):
    """Every module of ``package`` holds one command, a function of the same name."""

    def __init__(self, *args: Any, package: str, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.package = package

    def list_commands(self, ctx: click.Context) -> list[str]:
        found = iter_modules(import_module(self.package).__path__)
        return sorted(module.name.replace("_", "-") for module in found)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.list_commands(ctx):
            return None
        name = cmd_name.replace("-", "_")
        command: click.Command = getattr(import_module(f"{self.package}.{name}"), name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """One list per section, in the order in which the sections are first met."""
        sections: dict[str, list[tuple[str, str]]] = {}
        width = formatter.width - 6 - max(map(len, self.list_commands(ctx)))
        for name in self.list_commands(ctx):
            command = self.get_command(ctx, name)
            if command is not None and not command.hidden:
                row = (name, command.get_short_help_str(width))
                sections.setdefault(getattr(command, "section", "Commands"), []).append(row)
        last = sections.pop("Help", None)
        for title, rows in [*sections.items(), *([("Help", last)] if last else [])]:
            with formatter.section(title):
                formatter.write_dl(rows)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as error:
            raise InterruptedByUser("interrupted") from error

    def main(self, args: Sequence[str] | None = None, *rest: Any, **settings: Any) -> NoReturn:
        """Run, report an error on one line, exit. No arguments at all: show the help."""
        given = list(sys.argv[1:] if args is None else args) or ["--help"]
        settings["standalone_mode"] = False
        try:
            status = super().main(given, *rest, **settings)
        except Exception as error:
            if "--debug" in given:  # also where parsing failed before the option was read
                traceback.print_exc()
            click.echo(_one_line(error), err=True)
            sys.exit(error.exit_code if isinstance(error, click.ClickException) else 1)
        # Without standalone mode click returns the status of --help, --version and ctx.exit.
        sys.exit(status if isinstance(status, int) else 0)


def _one_line(error: Exception) -> str:
    """``shuffledp epsilon: error: what was wrong``; what a user cannot have caused names its type."""
    path, message = "shuffledp", str(error)
    if isinstance(error, click.ClickException):
        message = error.format_message()
        if isinstance(error, click.UsageError) and error.ctx is not None:
            path = error.ctx.command_path
            message += f" See `{path} --help`."
    elif not isinstance(error, (ValueError, OSError, ImportError)):
        message = f"{type(error).__name__}: {error} (--debug shows the traceback)"
    return f"{path}: error: {' '.join(message.split())}"
