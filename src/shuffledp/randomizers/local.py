"""Any epsilon0-LDP randomizer, known by its epsilon0 and perhaps its total variation."""

from __future__ import annotations

import math
from dataclasses import dataclass

from shuffledp import _validate
from shuffledp._certified.rounding import CALL, up
from shuffledp.bound import Bound
from shuffledp.facts import AmplificationLaw, Facts, response_crowds

_MOST_SYMBOLS = 1e12  # of the member of the class that gives the lower end; speed


@dataclass(frozen=True)
class LocalRandomizer:
    """Any randomizer R with R(x)(S) <= e^epsilon0 R(x')(S) for all inputs x, x' and sets S.

    ``total_variation``, if known, is the largest total variation distance between R(x) and R(x').
    It is at most tanh(epsilon0/2), the value of binary randomized response.

    >>> LocalRandomizer(epsilon0=1.0)
    LocalRandomizer(epsilon0=1.0, total_variation=None)
    """

    epsilon0: float
    total_variation: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon0", _validate.epsilon0(self.epsilon0))
        if self.total_variation is not None:
            known = _validate.probability("total_variation", self.total_variation)
            most = math.tanh(0.5 * self.epsilon0)
            if known - most > 1e-12 * most:
                raise ValueError(
                    f"total_variation must be in [0, tanh(epsilon0/2)] = [0, {most!r}], "
                    f"got {self.total_variation!r}"
                )
            object.__setattr__(self, "total_variation", min(known, most))

    def facts(self) -> Facts:
        """epsilon0 and the total variation. The lower end is that of the worst member of the class known."""
        return Facts(
            Bound(self.epsilon0, self.epsilon0), total_variation=self.total_variation, concrete=self._member()
        )

    def _member(self) -> tuple[AmplificationLaw, ...]:
        """k-ary randomized response, k the least (from 3) that the facts allow.

        All others hold a third symbol: among small k, that is the worst for all but tiny crowds."""
        known = self.total_variation
        if known is None:
            return response_crowds(3, self.epsilon0)[:1]
        if known == 0.0 or self.epsilon0 == 0.0:
            return ()
        # (E - 1)/(E + k - 1) <= total variation.
        k = up(math.expm1(self.epsilon0) * ((1.0 - known) / known), operations=CALL + 3)
        if k > _MOST_SYMBOLS:
            return ()
        return response_crowds(max(3, math.ceil(k)), self.epsilon0)[:1]
