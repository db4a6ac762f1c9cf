"""All items, by paper."""

from __future__ import annotations

from shuffledp.papers._result import Item
from shuffledp.papers.balle_2019 import _figures as balle_2019
from shuffledp.papers.balle_2019 import _summation as balle_2019_summation
from shuffledp.papers.biswas_2022 import _figures as biswas_2022
from shuffledp.papers.biswas_2022 import _utility as biswas_2022_utility
from shuffledp.papers.girgis_2021 import _figures as girgis_2021
from shuffledp.papers.koskela_2021 import _figures as koskela_2021
from shuffledp.papers.koskela_2023 import _figures as koskela_2023
from shuffledp.papers.koskela_2023 import _gaussian as koskela_2023_gaussian

ITEMS: tuple[Item, ...] = (
    *koskela_2023.ITEMS,
    *koskela_2023_gaussian.ITEMS,
    *koskela_2021.ITEMS,
    *balle_2019.ITEMS,
    *balle_2019_summation.ITEMS,
    *biswas_2022.ITEMS,
    *biswas_2022_utility.ITEMS,
    *girgis_2021.ITEMS,
)
BY_NAME = {item.name: item for item in ITEMS}


def named(names: tuple[str, ...]) -> list[Item]:
    """The items of these names, in the order of the list; a ValueError names what is unknown."""
    unknown = [name for name in names if name not in BY_NAME]
    if unknown:
        raise ValueError(
            f"NAME must be one of {', '.join(BY_NAME)}, got {', '.join(map(repr, unknown))}"
        )
    return [item for item in ITEMS if item.name in names]
