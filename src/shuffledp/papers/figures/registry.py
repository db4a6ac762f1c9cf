"""All items, by paper."""

from __future__ import annotations

from shuffledp.papers.figures import (
    balle_2019,
    balle_2019_summation,
    biswas_2022,
    biswas_2022_utility,
    girgis_2021,
    koskela_2021,
    koskela_2023,
    koskela_2023_gaussian,
)
from shuffledp.papers.figures.result import Item

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
