from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from shuffledp._digits import rounded_down, rounded_up, written
from shuffledp._progress import Progress
from shuffledp.cli.files import open_ledger, read_protocol
from shuffledp.cli.options import EXISTING_FILE, POSITIVE, POSITIVE_PROBABILITY, WHOLE, Given, command, option
from shuffledp.cli.output import json_option, print_answer, print_headline, print_json, print_table

if TYPE_CHECKING:
    from shuffledp.collecting.ledger import Collection, Ledger

EXAMPLE = """
$ shuffledp ledger init readers.jsonl --epsilon 2 --delta 1e-6 --population readers
readers.jsonl: a budget of epsilon = 2 at delta = 1e-6 for each population

$ shuffledp ledger reserve readers.jsonl --population readers --protocol survey.json

$ shuffledp ledger show readers.jsonl
readers.jsonl: a budget of epsilon = 2 at delta = 1e-6 for each population

  population  collections  epsilon spent    left
  readers               1        0.99738  1.0026
"""


@command(section="Collecting", example=EXAMPLE)
@click.argument("action", type=click.Choice(["init", "show", "check", "reserve", "release"]))
@click.argument("file", type=click.Path(dir_okay=False))
@option("--epsilon", POSITIVE, "Of the budget.", group="init")
@option("--delta", POSITIVE_PROBABILITY, "Of the budget.", group="init")
@option("--head", "HASH", "A line that must still be there.", group="check")
@option(
    "--protocol protocol_file",
    EXISTING_FILE,
    "The collection: `check` says what it would cost.",
    group="reserve, check",
)
@option("--population", "NAME", "The people who are asked.", group="init, reserve, check")
@option("--new-population", None, "They were never asked before.", group="reserve")
@option("--honest", WHOLE, "Honest reports to count on.  [default: as planned]", group="reserve")
@option("--note", "TEXT", "Kept with the reservation.", group="reserve", default="")
@option("--reservation", "ID", "What is given back.", group="release")
@json_option
def ledger(action: str, file: str, **given: Any) -> None:
    """The privacy spent on the same people, and what is left.

    \b
    init     a new file with a budget that can not be changed later
    show     what was collected from whom, spent and left
    check    is the file as it was written, and would a protocol still fit?
    reserve  set a collection aside before it is run; prints its id
    release  give a reservation back whose reports never left a client

    FILE is append-only: every line confirms those before it. Collections are composed by the
    accountant: what fits is not a matter of subtraction."""
    if action == "init":
        _create(file, given)
    elif not Path(file).is_file():
        raise click.ClickException(f"no ledger {file}: make one with `shuffledp ledger init`")
    else:
        actions = {"show": _show, "check": _check, "reserve": _reserve, "release": _release}
        actions[action](open_ledger(file), given)


def _create(file: str, given: Given) -> None:
    from shuffledp.collecting.ledger import Ledger

    _need(given, "epsilon", "delta")
    if Path(file).exists():
        raise click.ClickException(f"{file} exists already")
    names = [] if given["population"] is None else [given["population"]]
    made = Ledger(file, (given["epsilon"], given["delta"]), create=True, populations=names)
    if given["as_json"]:
        print_json(budget=_budget(made), head=made.head)
    else:
        click.secho(_headline(made), bold=True)


def _show(found: Ledger, given: Given) -> None:
    collections = found.collections
    names = sorted({collection.population for collection in collections})
    with Progress.clock("adding up"):
        rows = [_spent(found, name, collections) for name in names]
    if given["as_json"]:
        listed = [_entry(collection) for collection in collections]
        print_json(budget=_budget(found), populations=rows, collections=listed, head=found.head)
        return
    print_headline(_headline(found))
    _print_populations(rows)
    _print_collections(collections)
    click.echo(f"\n  head  {found.head}")


def _check(found: Ledger, given: Given) -> None:
    hashes = found.hashes
    if given["head"] is not None and given["head"] not in hashes:
        raise click.ClickException(f"{found.path}: the line {given['head']} is missing at the end")
    answer: Given = {"lines": len(hashes), "head": hashes[-1]}
    rows = [("lines", f"{len(hashes):,}, every one as it was written"), ("head", hashes[-1])]
    if given["protocol_file"] is not None:
        _need(given, "population")
        protocol = read_protocol(given["protocol_file"])
        with Progress.clock("adding up"):
            after = found.epsilon_with(protocol, population=given["population"], rounds=1)
        answer |= {"epsilon_with": after, "fits": after <= found.budget[0]}
        fits = "fits" if answer["fits"] else "would be refused"
        rows.append(("protocol", f"{fits}: epsilon <= {rounded_up(after)} with it"))
    if given["as_json"]:
        print_json(**answer)
    else:
        print_answer(_headline(found), rows)
    if not answer.get("fits", True):
        click.get_current_context().exit(1)


def _reserve(found: Ledger, given: Given) -> None:
    _need(given, "protocol_file", "population")
    protocol = read_protocol(given["protocol_file"])
    with Progress.clock("adding up"):
        ticket = found.reserve(
            protocol,
            population=given["population"],
            new_population=given["new_population"],
            honest=given["honest"],
            note=given["note"],
        )
    if given["as_json"]:
        print_json(reservation=ticket, epsilon=found.epsilon(given["population"]))
        return
    click.echo(ticket)  # alone on standard output, for scripts
    commit = f"shuffledp analyze ... --ledger {found.path} --reservation {ticket}"
    click.echo(f"reserved; commit it: {commit}", err=True)


def _release(found: Ledger, given: Given) -> None:
    _need(given, "reservation")
    found.release(given["reservation"])
    if given["as_json"]:
        print_json(released=given["reservation"])
    else:
        click.echo(f"released {given['reservation']}")


def _need(given: Given, *names: str) -> None:
    for name in names:
        if given[name] is None:
            raise click.UsageError(f"Missing option '--{name.removesuffix('_file')}'.")


def _headline(found: Ledger) -> str:
    epsilon, delta = map(written, found.budget)
    return f"{found.path}: a budget of epsilon = {epsilon} at delta = {delta} for each population"


def _budget(found: Ledger) -> Given:
    return dict(zip(("epsilon", "delta"), found.budget, strict=True))


def _spent(found: Ledger, population: str, collections: tuple[Collection, ...]) -> Given:
    epsilon = found.epsilon(population)
    counted = [c for c in collections if c.population == population and c.status != "released"]
    left = max(0.0, found.budget[0] - epsilon)
    return {"population": population, "collections": len(counted), "epsilon": epsilon, "left": left}


def _entry(collection: Collection) -> Given:
    names = ("id", "population", "status", "honest", "note", "randomizer", "fingerprint")
    return {name: getattr(collection, name) for name in names}


def _print_populations(rows: list[Given]) -> None:
    if not rows:
        click.echo("  nothing was collected yet")
        return
    cells = [("population", "collections", "epsilon spent", "left")]
    for row in rows:
        left = rounded_down(row["left"]) if row["left"] > 0.0 else "nothing"
        spent = rounded_up(row["epsilon"])
        cells.append((row["population"], f"{row['collections']:,}", spent, left))
    print_table(cells, first="<")


def _print_collections(collections: tuple[Collection, ...]) -> None:
    if collections:
        click.echo()
        header = ("id", "population", "status", "honest", "note")
        rows = [(c.id, c.population, c.status, f"{c.honest:,}", c.note) for c in collections]
        print_table([header, *rows], align="<")
