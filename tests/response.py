"""k-ary randomized response as the accountant sees it, for tests."""

from shuffledp.accounting._witnesses import Witness, witness
from shuffledp.facts import response_crowds


def krr_witnesses(k: int, epsilon0: float, n: int) -> list[Witness]:
    """Others hold a third symbol (k >= 3), or x."""
    return [witness(law, n) for law in response_crowds(k, epsilon0)]
