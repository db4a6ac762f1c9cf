from __future__ import annotations

import json

import click

from shuffledp.cli.files import output_option, read_protocol, write_text
from shuffledp.cli.options import EXISTING_FILE, command, option
from shuffledp.cli.output import json_option, print_answer, print_json

EXAMPLE = """
$ shuffledp sign survey.json --key analyst.key -o signed.json
survey.json: certified and signed
"""


@command(section="Collecting", example=EXAMPLE)
@click.argument("plan", metavar="PLAN", type=EXISTING_FILE)
@option("--key key_file", EXISTING_FILE, "From `shuffledp task keys --key`.", group="Plan", required=True)
@output_option("--output -o", "A new file, for clients and shuffler.", required=True)
@json_option
def sign(plan: str, key_file: str, output: str, as_json: bool) -> None:
    """Certify a plan and sign it (Ed25519).

    Whoever has the public key uses the signed plan in place of PLAN, with --public-key: `randomize`,
    `shuffle` and `analyze` then refuse any other, and need not certify it again."""
    from shuffledp.collecting.plan import short_fingerprint, sign_plan
    from shuffledp.service.keys import AnalystKey

    protocol, key = read_protocol(plan), AnalystKey.read(key_file)
    signed = sign_plan(protocol, key.signs.private_bytes_raw().hex())
    write_text(output, json.dumps(signed) + "\n", replace=False)
    public, fingerprint = key.signer.hex(), short_fingerprint(protocol)
    if as_json:
        print_json(output=output, public_key=public, fingerprint=fingerprint)
    else:
        rows = [("public key", public), ("fingerprint", fingerprint)]
        print_answer(f"{plan}: certified and signed", rows)
