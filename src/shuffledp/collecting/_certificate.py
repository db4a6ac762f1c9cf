"""The epsilon that a protocol, a statement or a ledger may promise: the accountant's upper end.

A few rounds of binary randomized response are analysed exactly, the worst case over everybody else's
data included. To a thousandth (the accountant's default) that takes minutes for a million people; to five
thousandths, seconds. The answer is an upper bound either way, and hardly larger (0.2 % in practice).

>>> from shuffledp import KaryRandomizedResponse, Shuffled
>>> daily = Shuffled(KaryRandomizedResponse(k=2, epsilon0=3.0), n=10_000)
>>> tolerance_for(daily), tolerance_for(30 * daily)
(0.001, 0.005)
"""

from __future__ import annotations

from functools import lru_cache

from shuffledp.accounting.mechanism import DEFAULT_TOLERANCE, Mechanism, Shuffled
from shuffledp.randomizers.kary import KaryRandomizedResponse

_BINARY_ROUNDS = 5e-3


@lru_cache(maxsize=256)
def certified_epsilon(mechanism: Mechanism, delta: float) -> float:
    """The accountant's upper end, remembered: many collections have the same plan."""
    return mechanism.upper_epsilon(delta=delta, tolerance=tolerance_for(mechanism))


def tolerance_for(mechanism: Mechanism) -> float:
    """How much larger than the exact epsilon the certified one may be, relatively."""
    rounds = sum(count for _, count in mechanism.parts)
    binary = any(_is_binary(part) for part, _ in mechanism.parts)
    return _BINARY_ROUNDS if binary and rounds > 1 else DEFAULT_TOLERANCE


def _is_binary(part: Mechanism) -> bool:
    randomizer = part.randomizer if isinstance(part, Shuffled) else None
    return isinstance(randomizer, KaryRandomizedResponse) and randomizer.k == 2
