"""One collection in one process, or the plan of one for three: what histogram, sum and mean share.

DATA given       calibrate for its rows, randomize, count, analyze
--plan FILE      calibrate for --n reports and write the protocol, for `shuffledp randomize`
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import click

from shuffledp._digits import rounded_up, written
from shuffledp.cli.command import option, stacked
from shuffledp.cli.ledgers import both_or_neither, open_ledger, population_options
from shuffledp.cli.numbers import POSITIVE, WHOLE, Real
from shuffledp.cli.outputs import output_option
from shuffledp.cli.printing import print_answer, print_json
from shuffledp.cli.protocol_files import write_protocol
from shuffledp.cli.reporting import one_line_each
from shuffledp.cli.results import present, result_options
from shuffledp.cli.truth import true_answer

if TYPE_CHECKING:
    from shuffledp.collecting._protocol import Protocol
    from shuffledp.shuffling.engine import Engine

Given = dict[str, Any]
Make = Callable[..., "Protocol"]

PRIVACY = "Privacy"
RUN = "How it runs"
data_argument = click.argument("data", required=False, metavar="[DATA]")
column_option = option(
    "--column", metavar="NAME", help="Needed if there are several.", group="Question"
)
honest_option = option(
    "--honest-fraction",
    type=Real(high=1.0, positive=True),
    default=1.0,
    metavar="X",
    help="Count only on so many of the reports to hide people.  [default: 1]",
    group=PRIVACY,
)
round_option = option(
    "--round",
    type=WHOLE,
    default=1,
    metavar="R",
    help="This is collection number R of the planned ones.  [default: 1]",
    group=PRIVACY,
)
_plan_options = stacked(
    option("--epsilon", type=POSITIVE, required=True, metavar="X", help="Target.", group=PRIVACY),
    option(
        "--delta",
        type=Real(high=1.0, positive=True),
        required=True,
        metavar="X",
        help="Target.",
        group=PRIVACY,
    ),
    option(
        "--n",
        type=WHOLE,
        metavar="N",
        help="Honest reports planned for.  [default: those of DATA]",
        group=PRIVACY,
    ),
    option(
        "--rounds",
        type=WHOLE,
        default=1,
        metavar="T",
        help="Collections on the same people that meet the target together.  [default: 1]",
        group=PRIVACY,
    ),
    round_option,
    honest_option,
)
_run_options = stacked(
    output_option(
        "--plan", "plan_file", help="Collect nothing: write the protocol to a new file.", group=RUN
    ),
    option(
        "--engine",
        default="embedded",
        metavar="NAME",
        help="A module of shuffledp.shuffling: embedded (this process), spark.  [default: embedded]",
        group=RUN,
    ),
    option(
        "--simulation",
        is_flag=True,
        help="Show the truth beside the estimates. Not private: for made-up data.",
        group=RUN,
    ),
)
collecting_options = stacked(_plan_options, population_options, _run_options, result_options)


def collect_or_plan(make: Make, given: Given) -> None:
    """Run the command: ``make(epsilon=, delta=, n=, rounds=)`` gives the protocol."""
    check_usage(given)
    with one_line_each():
        if given["plan_file"] is None:
            _collect(make, given)
        else:
            _plan(make, given)


def check_usage(given: Given) -> None:
    """Either data or a plan, and nothing that contradicts it."""
    planned = given["plan_file"] is not None
    if planned == (given["data"] is not None):
        raise click.UsageError("give either DATA to collect from, or --plan FILE with --n.")
    if planned and given["n"] is None:
        raise click.UsageError("--plan needs --n, the honest reports to count on.")
    files = ("csv_file", "plot_file", "statement_file", "ledger_file")
    unfit = [name for name in files if given[name] is not None]
    if unfit and planned:
        raise click.UsageError(f"{_flag(unfit[0])} needs DATA: a plan has no result.")
    if given["simulation"] and given["ledger_file"] is not None:
        raise click.UsageError("--simulation collects from nobody: leave out --ledger.")
    if given["simulation"] and given["statement_file"] is not None:
        raise click.UsageError("--simulation is not private: leave out --statement.")
    both_or_neither(given["ledger_file"], given["population"], "--population")
    if given["round"] > given["rounds"]:
        raise click.UsageError(f"--round must be at most --rounds {given['rounds']}.")


def _flag(name: str) -> str:
    return "--" + name.removesuffix("_file")


def _target(given: Given, n: int) -> Given:
    return {"n": n, **{name: given[name] for name in ("epsilon", "delta", "rounds")}}


def _plan(make: Make, given: Given) -> None:
    from shuffledp.collecting._protocol import certified_epsilon

    protocol = make(**_target(given, given["n"]))
    write_protocol(given["plan_file"], protocol)
    certified = certified_epsilon(protocol.mechanism(), protocol.delta)
    if given["as_json"]:
        print_json(protocol=protocol.to_dict(), epsilon=certified, delta=protocol.delta)
        return
    print_answer(
        f"{protocol.name} planned: epsilon <= {rounded_up(certified)} "
        f"at delta = {written(protocol.delta)}",
        [
            ("reports", f"at least {protocol.n:,} honest ones in each round"),
            ("rounds", f"{protocol.rounds:,}"),
            ("randomizer", repr(protocol.randomizer)),
        ],
    )


def _collect(make: Make, given: Given) -> None:
    engine = _engine(given["engine"])
    protocol = make(**_target(given, given["n"] or _honest_rows(given)))
    truth = None
    if given["simulation"]:
        truth = true_answer(protocol, given["data"], given["column"])
    present(_analyzed(protocol, engine, given), given, truth)


def _engine(name: str) -> Engine:
    """``NameEngine`` of the module ``shuffledp.shuffling.name``: a new engine is one new file."""
    home = f"shuffledp.shuffling.{name}"
    known = name.isidentifier() and find_spec(home) is not None
    kind = getattr(import_module(home), f"{name.capitalize()}Engine", None) if known else None
    if kind is None:
        text = f"no engine {name!r}; there are embedded and spark"
        raise click.BadParameter(text, param_hint="--engine")
    engine: Engine = kind()
    return engine


def _honest_rows(given: Given) -> int:
    """The honest ones among the rows of the data; counting those of a CSV file reads it once."""
    from shuffledp.collecting.statement import honest_reports
    from shuffledp.shuffling.columns import open_column
    from shuffledp.shuffling.permutation import check_enough

    column = open_column(given["data"], given["column"], text=True)
    rows = sum(map(len, column)) if column.length is None else column.length
    check_enough(rows, 1)
    return honest_reports(rows, given["honest_fraction"], None)


def _analyzed(protocol: Protocol, engine: Engine, given: Given) -> Any:
    """Reserved in the ledger before anything is randomized; given back if it comes to nothing."""
    from shuffledp.shuffling.engine import tallied
    from shuffledp.shuffling.permutation import check_enough

    assumptions: Given = {"honest_fraction": given["honest_fraction"], "rounds": given["round"]}
    if given["ledger_file"] is not None:
        ledger = open_ledger(given["ledger_file"])
        ticket = ledger.reserve(protocol, population=given["population"])
        assumptions |= {"ledger": ledger, "reservation": ticket}
    try:
        done = _readable(lambda: tallied(protocol, given["data"], given["column"], engine))
        check_enough(done.n, 1)
    except BaseException:
        if given["ledger_file"] is not None:
            ledger.release(ticket)  # nothing of it was seen outside of this command
        raise
    return protocol.analyze(
        tally=done.tally, n=done.n, confidence=given["confidence"], **assumptions
    )


def _readable(read: Callable[[], Any]) -> Any:
    """What ``read`` gives; a column of the wrong type is the data's fault, not a defect."""
    try:
        return read()
    except TypeError as error:
        raise click.ClickException(str(error)) from error
