from __future__ import annotations

import click

from shuffledp.cli.files import folder_option, opened_shuffler, store_option
from shuffledp.cli.options import WHOLE, Real, Whole, command, option
from shuffledp.cli.output import print_answer

SERVER = "Server"

EXAMPLE = """
$ shuffledp serve --folder shuffler --check
shuffler: ready to serve 1 task
"""


@command(section="Service", example=EXAMPLE)
@folder_option
@store_option
@option("--host", "ADDRESS", "A proxy that speaks TLS belongs in front.", group=SERVER, default="127.0.0.1")
@option("--port", Whole(least=0, most=65535), "0 takes a free one.", group=SERVER, default=8440)
@option("--capacity", WHOLE, "Reports under way at once; beyond them, 503.", group=SERVER, default=4096)
@option("--group", WHOLE, "Reports in one transaction, at most.", group=SERVER, default=1024)
@option("--no-release", None, "Take reports only; another process releases.", group=SERVER)
@option("--every", Real(positive=True), "Seconds between looks at what waits.", group=SERVER, default=1.0)
@option("--page", click.Path(exists=True, file_okay=False), "A folder to show at /survey/.", group=SERVER)
@option("--check", None, "Only open everything, and say what there is.", group=SERVER)
def serve(
    folder: str,
    store: str | None,
    host: str,
    port: int,
    capacity: int,
    group: int,
    no_release: bool,
    every: float,
    page: str | None,
    check: bool,
) -> None:
    """Run the shuffler: take sealed reports, release batches.

    A report is acknowledged when it is on the disk. A batch appears in FOLDER/batches as soon as a task
    has enough reports. SIGTERM or Ctrl-C stop it; nothing that was acknowledged is lost, not by kill -9
    either. Tasks are made by `shuffledp task`."""
    with opened_shuffler(folder, store) as shuffler:
        if check:
            names = sorted(shuffler.collections)
            rows = [(name, f"{shuffler.pending(name):,} reports wait") for name in names]
            print_answer(f"{folder}: ready to serve {len(names)} task{'s' * (len(names) != 1)}", rows)
            return
        from shuffledp.service.server import serve as run

        settings = {"capacity": capacity, "group": group, "every": every, "static": page}
        run(shuffler, host=host, port=port, release=not no_release, **settings)
