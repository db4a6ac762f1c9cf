"""Files that a command writes, whole or not at all, and files that it reads.

An option that names a file to be written is checked before any work is done: what was collected
must not be lost in the end.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any

import click

from shuffledp._files import atomic_file
from shuffledp.cli.options import EXISTING_FILE, OUTPUT, Given, option, stacked

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from shuffledp.collecting._protocol import Protocol
    from shuffledp.collecting.ledger import Ledger
    from shuffledp.service.shuffler import Shuffler


def _writable(context: click.Context, parameter: click.Parameter, path: str | None) -> str | None:
    """A name in a folder that can be written to, or a pipe or a device."""
    if path in (None, "-") or (Path(path).exists() and not Path(path).is_file()):
        return path
    folder = Path(path).absolute().parent
    try:  # before anything is computed or spent
        with TemporaryFile(dir=folder):
            return path
    except OSError:
        raise click.ClickException(f"{path} cannot be written: no folder {folder} to write to.") from None


def _reports(context: click.Context, parameter: click.Parameter, path: str) -> str | None:
    """The name of a Parquet file, or one that does not say otherwise."""
    if Path(path).suffix.lower() in (".csv", ".tsv", ".txt", ".json", ".arrow", ".feather"):
        raise click.BadParameter(f"reports are Parquet files: call it {Path(path).with_suffix('.parquet')}.")
    return _writable(context, parameter, path)


def _drawable(context: click.Context, parameter: click.Parameter, path: str | None) -> str | None:
    """The name of a file that can be a picture, with matplotlib at hand."""
    if path is not None:
        from shuffledp.plotting._style import file_format, require_matplotlib

        try:
            file_format(path)
        except ValueError as error:
            raise click.BadParameter(f"{error}.") from error
        require_matplotlib()
    return _writable(context, parameter, path)


def output_option(
    names: str, text: str, *, group: str = OUTPUT, dash: bool = False, **settings: Any
) -> Callable[..., Any]:
    """An option that names a file to be written; ``dash``: or - for standard output."""
    kind = click.Path(dir_okay=False, writable=True, allow_dash=dash)
    return option(names, kind, text, group=group, **{"callback": _writable, **settings})


def _keep_title(context: click.Context, parameter: click.Parameter, text: str | None) -> None:
    context.meta["title"] = text


def reports_option(text: str) -> Callable[..., Any]:
    """The file of reports that is written."""
    return output_option("--output -o", text, required=True, callback=_reports)


plot_option = stacked(
    output_option("--plot plot_file", "Draw a .png, .svg or .pdf file.", callback=_drawable),
    option("--title", "TEXT", "Of the picture.", group=OUTPUT, expose_value=False, callback=_keep_title),
)


@contextmanager
def written_file(path: str, *, replace: bool = True) -> Iterator[Path]:
    """A file to write, which becomes ``path`` when the block ends without an error, and says so."""
    with atomic_file(Path(path), replace=replace) as partial:
        yield partial
    click.echo(f"wrote {path}", err=True)


def write_text(path: str, text: str, *, replace: bool = True) -> None:
    """A text file."""
    with written_file(path, replace=replace) as partial:
        partial.write_text(text, encoding="utf-8")


def write_picture(path: str, ax: Axes) -> None:
    """The figure of ``ax``, in the format of the file's suffix."""
    from shuffledp import plotting

    title = click.get_current_context().meta.get("title")
    if title is not None:
        ax.set_title(title, parse_math=False)
    plotting.save(ax, path)
    click.echo(f"wrote {path}", err=True)


def write_protocol(path: str, protocol: Protocol) -> None:
    """A new file. One that exists is left alone: reports may have been made with it."""
    write_text(path, json.dumps(protocol.to_dict(), indent=2) + "\n", replace=False)


PLAN = "Plan"
protocol_option = option(
    "--protocol protocol_file",
    EXISTING_FILE,
    "From `shuffledp histogram --plan`, or sum or mean; or signed.",
    group=PLAN,
    required=True,
)
check_options = stacked(
    option("--fingerprint", "DIGITS", "What the plan must have.", group=PLAN),
    option("--public-key", "DIGITS", "What must have signed the plan.  [else: certified again]", group=PLAN),
)


def read_protocol(path: str, given: Given | None = None) -> Protocol:
    """The plan in a file, if it passes the checks that were ``given`` on the command line."""
    from shuffledp.collecting.plan import load_plan
    from shuffledp.errors import PlanError

    checks = {name: (given or {}).get(name) for name in ("fingerprint", "public_key", "max_epsilon0")}
    try:
        plan = json.loads(Path(path).read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise click.ClickException(f"{path} is no protocol: {error}") from error
    try:
        return load_plan(plan, **checks)
    except PlanError as error:
        raise click.ClickException(f"{path} is no protocol to use: {error}") from error


def protocol_of_reports(path: str, given: Given) -> Protocol:
    """What a file of reports says of itself, certified again."""
    from shuffledp.collecting.plan import load_plan
    from shuffledp.shuffling.report_files import open_reports

    if given.get("public_key") is not None:
        raise click.UsageError("--public-key needs --protocol, a signed plan.")
    header = open_reports(path).header
    if header.stage == "sealed":
        raise click.ClickException(f"{path} is sealed: give the analyst's --key")
    return load_plan(header.protocol, fingerprint=given.get("fingerprint"))


def open_ledger(path: str) -> Ledger:
    """The ledger of a file that exists; its budget is in the first line."""
    from shuffledp.collecting.ledger import Ledger

    return Ledger(path)


def read_matrix(path: str) -> Any:
    """Rows from a .csv, .json (a list of rows) or .npy file, not yet checked to be probabilities."""
    file = Path(path)
    reader = _MATRIX_READERS.get(file.suffix.lower())
    if reader is None:
        known = ", ".join(_MATRIX_READERS)
        raise click.UsageError(f"--matrix must be one of {known}, got {path!r}.")
    try:
        return reader(file)
    except (ValueError, EOFError) as error:
        raise click.UsageError(f"--matrix {path}: {error}.") from error


def _matrix_of_csv(file: Path) -> list[list[float]]:
    with file.open(newline="", encoding="utf-8-sig") as lines:
        reader = csv.reader(lines)
        return [_numbers(row, reader.line_num) for row in reader if row]


def _numbers(row: list[str], line: int) -> list[float]:
    try:
        return [float(cell) for cell in row]
    except ValueError as error:
        hint = " (rows of numbers, no header)" if line == 1 else ""
        raise ValueError(f"line {line}: {error}{hint}") from None


def _matrix_of_npy(file: Path) -> Any:
    import numpy as np

    return np.load(file, allow_pickle=False)


_MATRIX_READERS: dict[str, Callable[[Path], Any]] = {
    ".csv": _matrix_of_csv,
    ".json": lambda file: json.loads(file.read_text(encoding="utf-8")),
    ".npy": _matrix_of_npy,
}


SHUFFLER = "Shuffler"

folder_option = option(
    "--folder", "FOLDER", "Keys, journal, batches, store.", group=SHUFFLER, default="shuffler"
)
store_option = option(
    "--store",
    "URL",
    "postgresql://... for several hosts.  [default: a file in FOLDER]",
    group=SHUFFLER,
    envvar="SHUFFLEDP_STORE",  # an address with a password stays out of `ps`
)


def opened_shuffler(folder: str, store: str | None) -> Shuffler:
    """The shuffler of a folder."""
    from shuffledp.service.shuffler import Shuffler

    return Shuffler(folder, store)
