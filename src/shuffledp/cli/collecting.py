"""One collection in one process, or the plan of one for three: what all questions share.

DATA given       calibrate for its rows, randomize, count, analyze
--plan FILE      calibrate for --n reports and write the protocol, for `shuffledp randomize`
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import shuffledp
from shuffledp._digits import rounded_up, written
from shuffledp._progress import Progress
from shuffledp.cli.files import open_ledger, output_option, write_protocol
from shuffledp.cli.options import (
    EXISTING_FILE,
    FINITE,
    POSITIVE,
    POSITIVE_PROBABILITY,
    WHOLE,
    Given,
    Whole,
    WholeOrAuto,
    option,
    stacked,
    wrong_usage,
)
from shuffledp.cli.output import present, print_answer, print_json, result_options

if TYPE_CHECKING:
    from shuffledp.collecting._protocol import Protocol

Make = Callable[..., "Protocol"]

ENGINES = tuple(
    name.removesuffix("Engine").lower()
    for name in shuffledp.__all__
    if name.endswith("Engine") and name != "Engine"
)
"""The engines among the public names: SparkEngine is asked for as spark."""


def _known(context: click.Context, parameter: click.Parameter, engine: str) -> str:
    if engine not in ENGINES:
        raise click.BadParameter(f"no engine {engine!r}; there are {' and '.join(ENGINES)}.")
    return engine


question = partial(option, group="Question")
privacy = partial(option, group="Privacy")
RUN = "How it runs"
COSTS = ("messages", "bytes_per_person", "worst_standard_error", "one_dishonest")
LEDGER = "Ledger"


def _keep(context: click.Context, parameter: click.Parameter, value: str | None) -> None:
    if value is not None:
        context.meta[str(parameter.name)] = value


def _as_written(context: click.Context, parameter: click.Parameter, data: str | None) -> Any:
    """DATA as the options say that it is written; - is the standard input, read whole."""
    how = {name: context.meta[name] for name in ("delimiter", "encoding") if name in context.meta}
    if data is None or (data != "-" and not how):
        return data
    from shuffledp.shuffling._separated import Separated

    if len(how.get("delimiter", ",")) != 1:
        raise click.BadParameter("--delimiter must be one character.")
    return Separated(sys.stdin.buffer.read() if data == "-" else Path(data), **how)


data_argument = click.argument("data", required=False, metavar="[DATA]", callback=_as_written)
_kept: dict[str, Any] = {"expose_value": False, "is_eager": True, "callback": _keep}
written_options = stacked(
    question("--delimiter", "CHAR", "Between the fields of a CSV file.  [default: by its name]", **_kept),
    question("--encoding", "NAME", "Of a CSV file, such as utf-16 or latin-1.  [default: utf-8]", **_kept),
)
column_option = stacked(question("--column", "NAME", "Needed if there are several."), written_options)
honest_option = privacy(
    "--honest-fraction",
    POSITIVE_PROBABILITY,
    "Count only on so many of the reports to hide people.",
    default=1.0,
)
statement_options = stacked(
    privacy("--round", WHOLE, "This is collection number R of the planned ones.", default=1, metavar="R"),
    honest_option,
)
ledger_option = option(
    "--ledger ledger_file", EXISTING_FILE, "Record this collection; see `shuffledp ledger`.", group=LEDGER
)
target_options = stacked(
    privacy("--epsilon", POSITIVE, "Target.", required=True),
    privacy("--delta", POSITIVE_PROBABILITY, "Target.", required=True),
    privacy("--n", WHOLE, "Honest reports planned for.  [default: those of DATA]"),
    privacy("--max-epsilon0", POSITIVE, "The most that one report may reveal alone."),
)
run_options = stacked(
    output_option("--plan plan_file", "Collect nothing: write the protocol to a new file.", group=RUN),
    option(
        "--simulation", None, "Show the truth beside the estimates. Not private: for made-up data.", group=RUN
    ),
    option("--show-values", None, "Let errors show values and rows that are not in the domain.", group=RUN),
    result_options,
)
collecting_options = stacked(
    target_options,
    privacy(
        "--rounds",
        WHOLE,
        "Collections on the same people that meet the target together.",
        default=1,
        metavar="T",
    ),
    statement_options,
    ledger_option,
    option("--population", "NAME", "The people who are asked.", group=LEDGER),
    option("--new-population", None, "They were never asked before.", group=LEDGER),
    option(
        "--engine",
        "NAME",
        f"One of {', '.join(ENGINES)}; embedded is this process.",
        group=RUN,
        default="embedded",
        callback=_known,
    ),
    run_options,
)
messages_option = question(
    "--messages",
    WholeOrAuto(most=64),
    "Messages a person: 1, or several that err less but rest on the shuffler alone; auto: what is better.",
    default="1",
    metavar="M|auto",
)
messages_options = stacked(
    messages_option,
    question("--max-messages", Whole(most=64), "The most that auto takes.  [default: 12]"),
    question(
        "--prefer",
        click.Choice(["error", "worst", "messages", "robustness"]),
        "What auto chooses by: the error, that of the worst count (histograms), the fewest messages, or the "
        "least that one dishonest person can do.",
        default="error",
        metavar="WHAT",
    ),
)
MESSAGES = ("messages", "max_messages", "prefer")
INTERVAL = ("low", "high", "outside")
ORDERED = (*INTERVAL, "bins", "branching")
NUMBER = (*INTERVAL, "levels", *MESSAGES)
interval_options = stacked(
    data_argument,
    column_option,
    question("--low", FINITE, "Least number.", required=True),
    question("--high", FINITE, "Largest.", required=True),
    question(
        "--outside",
        click.Choice(["error", "clip"]),
        "Numbers beyond an end: error, or clip to that end.",
        default="error",
        metavar="WHAT",
    ),
)
ordered_options = stacked(
    interval_options,
    question("--bins", Whole(least=2, most=2**14), "Equal pieces of the interval.", default=100),
    question("--branching", Whole(least=2), "Children of a node of the tree.  [default: the best]"),
    collecting_options,
)
number_options = stacked(
    interval_options,
    question("--levels", Whole(most=2**14), "Grid steps from low to high.  [default: the best number]"),
    messages_options,
    collecting_options,
)


def collect(kind: str, names: Sequence[str], given: Given, **asked: Any) -> None:
    """Run the command of a question: ``kind`` is the class of ``shuffledp``, which takes the options of these
    ``names`` and what is ``asked``."""
    settings = {name: given.pop(name) for name in names} | asked
    made = getattr(shuffledp, kind)
    with wrong_usage():
        made.check(**settings)
    collect_or_plan(partial(made, **settings), given)


def typed(asked: str) -> list[Any]:
    """Numbers, or pairs of them as 18:30, separated by commas."""
    with wrong_usage():
        numbers = [tuple(float(part) for part in each.split(":")) for each in asked.split(",")]
    return [each[0] if len(each) == 1 else each for each in numbers]


def collect_or_plan(make: Make, given: Given, collect: Callable[[Given], None] | None = None) -> None:
    """Run the command: ``make(epsilon=, delta=, n=, rounds=)`` gives the protocol.

    ``collect``: what is done instead where one protocol is not all."""
    _check_usage(given)
    if given["plan_file"] is None:
        (partial(_collect, make) if collect is None else collect)(given)
    else:
        _plan(make, given)


def _check_usage(given: Given) -> None:
    """Either data or a plan, and nothing that contradicts it."""
    planned = given["plan_file"] is not None
    if planned == (given["data"] is not None):
        raise click.UsageError("give either DATA to collect from, or --plan FILE with --n.")
    if planned and given["n"] is None:
        raise click.UsageError("--plan needs --n, the honest reports to count on.")
    for name in ("csv", "plot", "statement", "ledger"):
        if planned and given[f"{name}_file"] is not None:
            raise click.UsageError(f"--{name} needs DATA: a plan has no result.")
    if given["simulation"] and given["ledger_file"] is not None:
        raise click.UsageError("--simulation collects from nobody: leave out --ledger.")
    if given["simulation"] and given["statement_file"] is not None:
        raise click.UsageError("--simulation is not private: leave out --statement.")
    with_ledger(given, "population")
    if given["round"] > given["rounds"]:
        raise click.UsageError(f"--round must be at most --rounds {given['rounds']}.")


def with_ledger(given: Given, name: str) -> None:
    """A ledger goes with a population or a reservation."""
    if (given["ledger_file"] is None) != (given[name] is None):
        raise click.UsageError(f"--ledger and --{name} go together.")


def _planned(make: Make, given: Given, n: int) -> Protocol:
    target = {name: given[name] for name in ("epsilon", "delta", "rounds", "max_epsilon0")}
    with Progress.clock("choosing and calibrating a randomizer"):
        return make(n=n, **target)


def _plan(make: Make, given: Given) -> None:
    from shuffledp.cli.questions import limit_fields, limit_row
    from shuffledp.collecting._accounted import certified_epsilon
    from shuffledp.collecting.plan import short_fingerprint

    protocol = _planned(make, given, given["n"])
    with Progress.clock("bounding epsilon"):
        mechanism: Any = protocol.mechanism()
        certified = certified_epsilon(mechanism, protocol.delta)
    write_protocol(given["plan_file"], protocol)
    crowded = protocol.messages == 1  # with more, noise of one size hides: no Gaussian limit of many people
    if given["as_json"]:
        told = {"epsilon": certified, "delta": protocol.delta, "fingerprint": protocol.fingerprint}
        told |= _known_costs(protocol) | (limit_fields(mechanism) if crowded else {})
        print_json(protocol=protocol.to_dict(), **told)
        return
    print_answer(
        f"{protocol.name} planned: epsilon <= {rounded_up(certified)} at delta = {written(protocol.delta)}",
        [
            ("reports", f"at least {protocol.n:,} honest ones in each round"),
            ("rounds", f"{protocol.rounds:,}"),
            *([limit_row(mechanism)] if crowded else []),
            *_costs(protocol),
            ("randomizer", repr(protocol.randomizer)),
            ("fingerprint", short_fingerprint(protocol)),
        ],
    )


def _costs(protocol: Any) -> list[tuple[str, str]]:
    """What each person sends; how far the answer is off and what one liar can do, where that is known."""
    size = f"{protocol.messages:,} a person, {protocol.bytes_per_person:,} bytes"
    known = _known_costs(protocol)
    lines = [("messages", size)]
    if "worst_standard_error" in known:
        lines.append(("std. error", f"at most {known['worst_standard_error']:.4g}, for the worst data"))
    if "one_dishonest" in known:
        lines.append(("one liar", f"can move it by {known['one_dishonest']:.4g}"))
    return lines


def _known_costs(protocol: Any) -> dict[str, Any]:
    return {name: getattr(protocol, name) for name in COSTS if hasattr(protocol, name)}


_COUNTED = (
    "shuffledp: note: this was a release. Another one about the same people adds to its epsilon, also of the "
    "same file: --ledger keeps count."
)


def _collect(make: Make, given: Given) -> None:
    protocol = _planned(make, given, given["n"] or _honest_rows(given))
    truth = None
    if given["simulation"]:
        truth = _true_answer(protocol, given["data"], given["column"])
    present(_analyzed(protocol, given), given, truth)
    if truth is None and given["ledger_file"] is None:
        click.echo(_COUNTED, err=True)


def _honest_rows(given: Given) -> int:
    """The honest ones among the rows of the data; counting those of a CSV file reads it once."""
    from shuffledp.collecting.statement import honest_reports
    from shuffledp.shuffling.columns import open_column
    from shuffledp.shuffling.permutation import check_enough

    column = open_column(given["data"], given["column"], text=True)
    rows = sum(map(len, column)) if column.length is None else column.length
    check_enough(rows, 1, f": {given['data']} has no rows")
    return honest_reports(rows, rows, given["honest_fraction"], None)


def _analyzed(protocol: Protocol, given: Given) -> Any:
    """Reserved in the ledger before anything is randomized; given back if it comes to nothing."""
    from shuffledp.shuffling.engine import tallied
    from shuffledp.shuffling.permutation import check_enough

    assumptions: Given = {"honest_fraction": given["honest_fraction"], "rounds": given["round"]}
    if given["n"] is None:  # planned for the honest ones among the rows
        assumptions |= {"honest_fraction": 1.0, "minimum_honest": protocol.n}
    if given["ledger_file"] is not None:
        ledger = open_ledger(given["ledger_file"])
        ticket = ledger.reserve(
            protocol, population=given["population"], new_population=given["new_population"]
        )
        assumptions |= {"ledger": ledger, "reservation": ticket}
    try:
        engine = getattr(shuffledp, f"{given['engine'].capitalize()}Engine")()
        done = tallied(protocol, given["data"], given["column"], engine, show_values=given["show_values"])
        check_enough(done.n, 1)
    except BaseException as error:
        if given["ledger_file"] is not None:
            ledger.release(ticket)  # nothing of it was seen outside of this command
        if isinstance(error, TypeError):  # a column of the wrong type is the data's fault
            raise click.ClickException(str(error)) from error
        raise
    with Progress.clock("bounding epsilon"):
        return protocol.analyze(tally=done.tally, n=done.n, confidence=given["confidence"], **assumptions)


def _true_answer(protocol: Any, data: Any, column: str | None) -> Any:
    """What no private collection ever sees: counts, quantiles, or the sum or mean of a column.

    Each number is in [low, high], or is moved to an end where the protocol moves it."""
    import numpy as np

    from shuffledp.shuffling.columns import open_column

    batches = open_column(data, column, text=protocol.reads_text)
    if hasattr(protocol, "truth"):
        k = protocol.randomizer.k
        counts = (np.bincount(protocol.encode(batch), minlength=k) for batch in batches)
        return protocol.truth(sum(counts, start=np.zeros(k, dtype=np.int64)))
    if protocol.name == "vector-mean":
        parts = [protocol.vectors(batch) for batch in batches]
        return np.concatenate(parts).mean(axis=0)
    sums, rows = [], 0
    for batch in batches:
        numbers = np.asarray(batch, dtype=np.float64)
        sums.append(math.fsum(np.clip(numbers, protocol.low, protocol.high)))
        rows += len(numbers)
    return math.fsum(sums) / (rows if protocol.name == "mean" else 1)
