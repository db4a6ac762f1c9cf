from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from shuffledp._digits import rounded_up, written
from shuffledp.cli.files import (
    folder_option,
    opened_shuffler,
    output_option,
    read_protocol,
    store_option,
    write_text,
)
from shuffledp.cli.options import EXISTING_FILE, WHOLE, Given, Whole, command, option
from shuffledp.cli.output import json_option, print_answer, print_json

if TYPE_CHECKING:
    from shuffledp.service.documents import Task
    from shuffledp.service.shuffler import Shuffler

EXAMPLE = """
$ shuffledp task keys --key analyst.key
analyst.key: a new key of an analyst

$ shuffledp task create pets --plan survey.json --key analyst.key
pets: collecting, epsilon <= 0.99738 at delta = 1e-6

$ shuffledp task status pets
pets: 0 of 100,000 reports, 0 batches released
"""


@command(section="Service", example=EXAMPLE)
@click.argument("action", type=click.Choice(["keys", "sign", "create", "status", "release", "delete"]))
@click.argument("name", required=False)
@option("--plan plan_file", EXISTING_FILE, "From `shuffledp histogram --plan`.", group="sign, create")
@option("--key key_file", click.Path(dir_okay=False), "The analyst's key.", group="keys, sign, create")
@option("--shuffler identity", "HEX", "Whom the task is for: see `task keys`.", group="sign")
@output_option("--output -o", "The signed task, for the shuffler.", group="sign")
@option("--signed signed_file", EXISTING_FILE, "A task that the analyst signed.", group="create")
@option("--minimum", WHOLE, "Reports in a batch.  [default: the plan's n]", group="create")
@option(
    "--spread",
    Whole(least=0, most=2**20),
    "Wait for up to so many more, at random.",
    group="create",
    default=0,
)
@option("--rotate", None, "A new key of the day; old ones still open.", group="keys")
@option("--retire", None, "Delete all keys of the day but the newest.", group="keys")
@folder_option
@store_option
@json_option
def task(action: str, name: str | None, **given: Any) -> None:
    """Tasks of a shuffler, and the keys of its two sides.

    \b
    keys     with --key FILE: a new key of an analyst; else the shuffler's
    sign     analyst: a task for the shuffler with this identity
    create   shuffler: collect for a signed task (or sign it here, with --key)
    status   how many reports wait for which threshold
    release  mix what waits into FOLDER/batches, if it is enough
    delete   forget a task and what waits

    A batch never has fewer than --minimum reports, which is at least the plan's n."""
    actions = {"sign": _sign, "create": _create, "release": _release, "delete": _delete}
    if action == "keys":
        _keys(given)
    elif action == "status":
        _status(name, given)
    elif name is None and given["signed_file"] is None:
        raise click.UsageError(f"`task {action}` needs the NAME of a task.")
    else:
        actions[action](str(name), given)


def _shuffler(given: Given) -> Shuffler:
    return opened_shuffler(given["folder"], given["store"])


def _keys(given: Given) -> None:
    from shuffledp.service.keys import AnalystKey, KeyRing

    if given["key_file"] is not None:
        made = AnalystKey.new(given["key_file"])
        line, rows = f"{given['key_file']}: a new key of an analyst", [("clients pin", made.signer.hex())]
        _say(given, line, rows, {"signer": made.signer.hex(), "public": made.public.hex()})
        return
    ring = KeyRing.open(Path(given["folder"]) / "keys")
    ring = ring.rotated() if given["rotate"] else ring
    ring = ring.retired() if given["retire"] else ring
    identity, days = ring.public.hex(), len(ring.private)
    rows = [("identity", identity), ("keys of the day", f"{days}")]
    _say(given, f"{given['folder']}: a shuffler", rows, {"identity": identity, "keys": days})


def _signed(name: str, identity: bytes, given: Given) -> Task:
    from shuffledp.service.documents import Task
    from shuffledp.service.keys import AnalystKey

    if given["plan_file"] is None or given["key_file"] is None:
        raise click.UsageError("a task is made with --plan and --key, or is --signed.")
    key = AnalystKey.read(given["key_file"])
    protocol = read_protocol(given["plan_file"])
    return Task.new(name, protocol, key=key.signs, analyst=key.public, shuffler=identity)


def _sign(name: str, given: Given) -> None:
    if given["identity"] is None or given["output"] is None:
        raise click.UsageError("`task sign` needs --shuffler and --output.")
    made = _signed(name, bytes.fromhex(given["identity"]), given)
    write_text(given["output"], json.dumps(made.signed.to_dict()) + "\n", replace=False)
    _say(given, f"{name}: signed", [("clients pin", made.signed.signer.hex())], made.signed.to_dict())


def _create(name: str, given: Given) -> None:
    from shuffledp.service.documents import Signed

    with _shuffler(given) as shuffler:
        if given["signed_file"] is not None:
            signed = Signed.from_dict(json.loads(Path(given["signed_file"]).read_text(encoding="utf-8")))
        else:
            signed = _signed(name, shuffler.keys.public, given).signed
        made = shuffler.create(signed, minimum=given["minimum"], spread=given["spread"])
        found = shuffler.status(made.task.name)
    alone = "Python alone (see the plan's randomizer)"
    rows = [
        ("clients pin", signed.signer.hex()),
        ("plan", found["fingerprint"]),
        ("a batch", f"at least {found['minimum']:,} reports"),
        ("clients", "Python and JavaScript" if made.task.content["sampler"] else alone),
    ]
    epsilon = rounded_up(found["epsilon"])
    line = f"{found['name']}: collecting, epsilon <= {epsilon} at delta = {written(found['delta'])}"
    _say(given, line, rows, found | {"signer": signed.signer.hex()})


def _status(name: str | None, given: Given) -> None:
    with _shuffler(given) as shuffler:
        names = sorted(shuffler.collections) if name is None else [name]
        found = [shuffler.status(each) for each in names]
    if given["as_json"]:
        print_json(tasks=found)
        return
    for each in found:
        counts = (
            f"{each['pending']:,} of {each['minimum']:,} reports, {len(each['batches'])} batches released"
        )
        rows = [("plan", each["fingerprint"]), ("epsilon", f"<= {rounded_up(each['epsilon'])}, certified")]
        print_answer(f"{each['name']}: {counts}", rows)


def _release(name: str, given: Given) -> None:
    with _shuffler(given) as shuffler:
        path = shuffler.release(name)
    _say(given, f"{name}: released", [("file", str(path))], {"file": str(path)})


def _delete(name: str, given: Given) -> None:
    with _shuffler(given) as shuffler:
        shuffler.delete(name)
    _say(given, f"{name}: deleted", [], {"deleted": name})


def _say(given: Given, line: str, rows: list[tuple[str, str]], answer: Given) -> None:
    if given["as_json"]:
        print_json(**answer)
    elif rows:
        print_answer(line, rows)
    else:
        click.secho(line, bold=True)
