"""What every command is made of: options in titled groups, numbers as people write them, an example.

>>> WHOLE.convert("1e6", None, None), WHOLE.convert("1_000_000", None, None)
(1000000, 1000000)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, TypeVar

import click

from shuffledp._digits import as_typed, written
from shuffledp._progress import quiet

if TYPE_CHECKING:  # generic for the type checker, but not at run time before click 8.4
    IntegerType = click.ParamType[int]
    FloatType = click.ParamType[float]
else:
    IntegerType = FloatType = click.ParamType

F = TypeVar("F", bound=Callable[..., Any])
Given = dict[str, Any]
"""The options of a command by name."""

OUTPUT = "Output"
AUTO = "auto"
"""In place of a number that is to be found."""
_NEAR = 0.7  # of difflib: what is less alike was meant by nobody
_SAMPLED = ("--population", "--rate")
_MEANT = {"--sampling": _SAMPLED, "--sampling-rate": _SAMPLED, "--sample-rate": _SAMPLED, "--q": _SAMPLED}
"""Words of the literature, and of other tools."""


class Option(click.Option):
    """An option that belongs to a titled group of the help."""

    def __init__(self, *args: Any, group: str = "Options", **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.group = group

    def get_help_extra(self, ctx: click.Context) -> Any:
        """A default of 1.0 is shown as 1."""
        extra = super().get_help_extra(ctx)
        if "default" in extra and isinstance(self.default, float):
            extra["default"] = written(self.default)
        return extra


def option(names: str, kind: Any, text: str, *, group: str, **settings: Any) -> Callable[[F], F]:
    """An option of a titled group.

    ``names``: what is typed and, where it differs, the parameter's name (``"--plan plan_file"``). ``kind``: a
    type, or what the help calls a plain text (``"NAME"``); None for a flag. ``text``: for the help."""
    if kind is None:
        settings["is_flag"] = True
    elif isinstance(kind, str):
        settings["metavar"] = kind
    else:
        settings["type"] = kind
    settings.setdefault("show_default", settings.get("default") not in (None, ""))
    return click.option(*names.split(), cls=Option, group=group, help=text, **settings)


def stacked(*options: Callable[[F], F]) -> Callable[[F], F]:
    """Several options as one decorator, shown in the order given."""

    def decorate(function: F) -> F:
        for each in reversed(options):
            function = each(function)
        return function

    return decorate


class Command(click.Command):
    """A command with a worked ``example``: lines that start with ``$`` and what they print."""

    def __init__(self, *args: Any, section: str, example: str, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.section = section
        self.example = example.strip()
        help_text = "Show the traceback of an error."
        self.params.append(Option(["--debug"], is_flag=True, expose_value=False, help=help_text))

    def invoke(self, ctx: click.Context) -> Any:
        """Run; what prints for machines shows no progress either."""
        with quiet() if ctx.params.get("as_json") else nullcontext():
            return super().invoke(ctx)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Options that do not exist get suggestions that are near, or what the word means here."""
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            wrong = error.option_name
            own = [name for parameter in self.params for name in parameter.opts if name.startswith("--")]
            meant = [name for name in own if name in _MEANT.get(wrong, ()) or name.startswith(wrong)]
            near = meant or get_close_matches(wrong, own, 2, _NEAR)
            hint = f" Did you mean {' or '.join(near)}?" if near else ""
            raise click.UsageError(f"no option {wrong}.{hint}", ctx) from error

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


@contextmanager
def wrong_usage() -> Iterator[None]:
    """What the library refuses in here was wrongly typed: status 2, and where to find help."""
    try:
        yield
    except (TypeError, ValueError) as error:
        raise click.UsageError(f"{error}.") from error


class Whole(IntegerType):
    """A whole number in [least, most], read exactly."""

    name = "n"  # in capitals, how the help calls the value

    def __init__(self, least: int = 1, most: int = 2**53) -> None:
        self.least, self.most = least, most

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        number = as_typed(value)
        # The range first: the integer of 1e999999999 would not fit anywhere.
        if number.is_nan() or not self.least <= number <= self.most or number % 1 != 0:
            most = "2^53" if self.most == 2**53 else f"{self.most:,}"
            self.fail(
                f"{value!r} is not a whole number in [{self.least:,}, {most}] (as 1200000, 1.2e6 or 1.2M).",
                param,
            )
        return int(number)


class WholeOrAuto(Whole):
    """A whole number, or the word auto."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return AUTO if value == AUTO else super().convert(value, param, ctx)


class RealOrAuto(FloatType):
    """A number, or the word auto."""

    name = "x"

    def __init__(self, number: Real) -> None:
        self.number = number

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return AUTO if value == AUTO else self.number.convert(value, param, ctx)


class Real(FloatType):
    """A number in [low, high]; ``positive`` leaves out a lower end of zero."""

    name = "x"

    def __init__(self, low: float = 0.0, high: float = math.inf, positive: bool = False) -> None:
        self.low, self.high, self.positive = low, high, positive

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        number = float(as_typed(value))
        inside = self.low <= number <= self.high and math.isfinite(number)
        if not inside or (self.positive and number == 0.0):
            self.fail(f"{value!r} is not a number in {self._range()}.", param)
        return number

    def _range(self) -> str:
        left = "(" if self.positive else "["
        right = "inf)" if math.isinf(self.high) else f"{self.high:g}]"
        return f"{left}{self.low:g}, {right}"


WHOLE = Whole()
EPSILON0 = Real(high=300.0)
PROBABILITY = Real(high=1.0)
POSITIVE_PROBABILITY = Real(high=1.0, positive=True)
EPSILON = Real()
POSITIVE = Real(positive=True)
FINITE = Real(low=-math.inf)
EXISTING_FILE = click.Path(exists=True, dir_okay=False)
