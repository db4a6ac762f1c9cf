"""What every command has: a worked example in its help, options in titled groups, ``--debug``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])


class Option(click.Option):
    """An option that belongs to a titled group of the help."""

    def __init__(self, *args: Any, group: str = "Options", **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.group = group


class Command(click.Command):
    """A command with a worked ``example``: lines that start with ``$`` and what they print."""

    def __init__(self, *args: Any, section: str, example: str, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.section = section
        self.example = example.strip()
        help_text = "Show the traceback of an error."
        self.params.append(Option(["--debug"], is_flag=True, expose_value=False, help=help_text))

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        groups: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            row = parameter.get_help_record(ctx)
            if row is not None and isinstance(parameter, click.Option):
                groups.setdefault(getattr(parameter, "group", "Options"), []).append(row)
        for title, rows in groups.items():
            with formatter.section(title):
                formatter.write_dl(rows)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The example as it stands: no line of it is wrapped."""
        with formatter.section("Example"):
            for line in self.example.splitlines():
                formatter.write(f"  {line}".rstrip() + "\n")


def command(*, section: str, example: str) -> Callable[[Callable[..., Any]], Command]:
    """Make a function a command of the help's ``section``."""
    return click.command(cls=Command, section=section, example=example)


def option(*names: str, group: str, **settings: Any) -> Callable[[F], F]:
    """An option of a titled group."""
    return click.option(*names, cls=Option, group=group, **settings)


def stacked(*options: Callable[[F], F]) -> Callable[[F], F]:
    """Several options as one decorator, shown in the order given."""

    def decorate(function: F) -> F:
        for each in reversed(options):
            function = each(function)
        return function

    return decorate
