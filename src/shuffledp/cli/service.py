"""What ``serve`` and ``task`` share: the shuffler's folder and store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shuffledp.cli.options import option

if TYPE_CHECKING:
    from shuffledp.service.shuffler import Shuffler

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
