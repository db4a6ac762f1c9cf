from __future__ import annotations

import click

from shuffledp._digits import rounded_up, written
from shuffledp.cli.options import WHOLE, command, option
from shuffledp.cli.output import json_option, print_answer, print_json

EXAMPLE = """
$ shuffledp verify month.json
verified: delta(0.23748) <= 9.9915e-9 by Arb at 256 bits
"""


@command(section="Accounting", example=EXAMPLE)
@click.argument("file", type=click.Path(exists=True, dir_okay=False))
@option("--bits", WHOLE, "Precision of the ball arithmetic.", group="Question", default=256)
@json_option
def verify(file: str, bits: int, as_json: bool) -> None:
    """Check a certificate by other mathematics, in ball arithmetic.

    FILE was written by --certificate of epsilon, delta or calibrate. Nothing of the accountant's
    numerics is used; python-flint is needed (the extra `verify`). Exit status 1 if the claim is not
    confirmed."""
    from shuffledp import Certificate

    read = Certificate.load(file)
    found = read.verify(bits=bits)
    if as_json:
        print_json(verified=found.verified, found=found.found, reason=found.reason, epsilon=found.epsilon)
    else:
        claim = f"epsilon = {rounded_up(found.epsilon)}, delta = {written(found.delta)}"
        print_answer(str(found), [("claim", claim), ("about", read.about), ("certificate", file)])
    if not found:
        raise click.exceptions.Exit(1)
