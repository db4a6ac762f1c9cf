"""Entry point of the ``shuffledp`` command: finds commands by file name, reports errors on one line.

Exit status: 0 answered, 1 no answer (no certificate, a target out of reach, a file that cannot be
written), 2 wrong usage, 130 interrupted.
"""

from __future__ import annotations

import os
import sys
import traceback
import warnings
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from pkgutil import iter_modules
from typing import Any, NoReturn

import click

from shuffledp import __version__
from shuffledp.cli import commands
from shuffledp.errors import ShuffledpError

_REFUSALS = (ShuffledpError, ValueError, OSError, ImportError)
"""What a user can have caused."""


class InterruptedByUser(click.ClickException):
    """Ctrl-C, as an error with a message and the status that shells give to it."""

    exit_code = 130


class CommandDirectory(click.Group):
    """Every module of ``cli/commands`` holds one command, a function of the same name."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(module.name.replace("_", "-") for module in iter_modules(commands.__path__))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.list_commands(ctx):
            return None
        name = cmd_name.replace("-", "_")
        command: click.Command = getattr(import_module(f"{commands.__name__}.{name}"), name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """A misspelt command gets the nearest one."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            near = get_close_matches(args[0], self.list_commands(ctx), 1)
            raise click.UsageError(
                f"{error.message}{f' Did you mean {near[0]!r}?' * bool(near)}", ctx
            ) from error

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """One list per section, in the order in which the sections are first met."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for name in self.list_commands(ctx):
            command = self.get_command(ctx, name)
            if command is not None and not command.hidden:
                row = (name, command.get_short_help_str(limit=100))  # wrapped, not cut
                sections.setdefault(getattr(command, "section", "Commands"), []).append(row)
        for title, rows in sorted(sections.items(), key=lambda section: section[0] == "Help"):
            with formatter.section(title):
                formatter.write_dl(rows)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; a warning of the library is one line of standard error."""
        with warnings.catch_warnings():
            warnings.simplefilter("always", UserWarning)
            warnings.showwarning = _shown_once()
            try:
                return super().invoke(ctx)
            except KeyboardInterrupt as error:
                raise InterruptedByUser("interrupted") from error
            except BrokenPipeError as error:  # click would call that a failure
                raise click.exceptions.Exit(0) from error

    def main(self, args: Sequence[str] | None = None, *rest: Any, **settings: Any) -> NoReturn:
        """Run, report an error on one line, exit. No arguments at all: show the help."""
        given = list(sys.argv[1:] if args is None else args) or ["--help"]
        settings["standalone_mode"] = False
        try:
            status = super().main(given, *rest, **settings)
            sys.stdout.flush()
        except BrokenPipeError:  # whoever read this has seen enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(0)
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
    elif not isinstance(error, _REFUSALS):
        message = f"{type(error).__name__}: {error} (--debug shows the traceback)"
    return f"{path}: error: {' '.join(message.split())}"


def _shown_once() -> Callable[..., None]:
    """Each warning is a line, which is not repeated."""
    seen: set[str] = set()

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        line = f"shuffledp: warning: {' '.join(str(message).split())}"
        if line not in seen:
            seen.add(line)
            click.echo(line, err=True)

    return show


def _color() -> bool | None:
    """None lets click decide: colour on a terminal only. See https://no-color.org."""
    return False if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb" else None


def _load(_: click.Context, __: click.Parameter, paths: tuple[str, ...]) -> None:
    for path in dict.fromkeys(paths):
        name = Path(path).stem
        spec = spec_from_file_location(name, path)
        if spec is None or spec.loader is None:
            raise click.BadParameter(f"{path!r} is not a Python file.")
        module = module_from_spec(spec)
        sys.modules.setdefault(name, module)  # where classes look up their names
        spec.loader.exec_module(module)


@click.group(
    cls=CommandDirectory,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="`shuffledp COMMAND --help` shows a worked example of each.",
)
@click.option("--debug", is_flag=True, expose_value=False, help="Show the traceback of an error.")
@click.option(
    "--load",
    type=click.Path(exists=True, dir_okay=False),
    multiple=True,
    is_eager=True,  # before the command's options are made, which are read off the registry
    expose_value=False,
    callback=_load,
    metavar="FILE.py",
    help="Run a file of yours first that registers randomizers.",
)
@click.version_option(__version__, prog_name="shuffledp", message="%(prog)s %(version)s")
@click.pass_context
def cli(context: click.Context) -> None:
    """Differential privacy in the shuffle model, certified.

    Numbers may be written 1000000, 1_000_000, 1,000,000, 1e6 or 1M.
    """
    context.color = _color()


def main() -> None:
    """Run the command line and exit with its status."""
    cli.main(prog_name="shuffledp")
