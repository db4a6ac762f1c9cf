"""A protocol in a file: what clients, shuffler and analyst agree on. It is public."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from shuffledp.collecting._protocol import Protocol

PROTOCOL_FILE = click.Path(exists=True, dir_okay=False)


def write_protocol(path: str, protocol: Protocol) -> None:
    """A new file. One that exists is left alone: reports may have been made with it."""
    from shuffledp._files import atomic_file

    with atomic_file(Path(path)) as partial:
        partial.write_text(json.dumps(protocol.to_dict(), indent=2) + "\n", encoding="utf-8")
    click.echo(f"wrote {path}", err=True)


def read_protocol(path: str) -> Protocol:
    """The protocol of a file that ``--plan`` wrote."""
    from shuffledp.collecting import protocol_from_dict

    try:
        return protocol_from_dict(json.loads(Path(path).read_text(encoding="utf-8")))
    except (TypeError, ValueError) as error:
        raise click.ClickException(f"{path} is no protocol: {error}") from error
