from __future__ import annotations

import contextlib
import signal
from typing import Any

import click

from shuffledp.cli.options import OUTPUT, Whole, command, option

PORT = 8765
EXAMPLE = """
$ shuffledp web
calculator at http://127.0.0.1:8765/ (Ctrl-C stops it)
"""


@command(section="Accounting", example=EXAMPLE)
@option(
    "--port", Whole(0, 65535), f"Port; 0 is any free one.  [default: {PORT}, or a free one]", group=OUTPUT
)
@option("--no-browser", None, "Do not open the browser.", group=OUTPUT)
def web(port: int | None, no_browser: bool) -> None:
    """The calculator as a page in your browser.

    It is served to this machine alone, and nothing that is typed leaves it."""
    import webbrowser

    server = _server(port)
    signal.signal(signal.SIGTERM, _stop)
    try:
        click.echo(f"calculator at {server.url} (Ctrl-C stops it)")
        if not no_browser:
            webbrowser.open(server.url)
        with contextlib.suppress(KeyboardInterrupt):
            server.serve_forever()
    finally:
        server.server_close()
    click.echo("stopped", err=True)


def _stop(*_: Any) -> None:
    raise KeyboardInterrupt


def _server(port: int | None) -> Any:
    from shuffledp.web._server import Server

    if port is not None:
        try:
            return Server(port)
        except OSError as error:
            raise click.ClickException(
                f"port {port} cannot be used ({error.strerror}); --port 0 takes a free one."
            ) from error
    try:
        return Server(PORT)
    except OSError:
        return Server()
