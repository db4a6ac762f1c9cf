"""Any randomizer, known by its epsilon0 and perhaps its total variation, or its delta0."""

from __future__ import annotations

import math
from dataclasses import dataclass

from shuffledp import _validate
from shuffledp._certified.rounding import CALL, down
from shuffledp.bound import Bound
from shuffledp.facts import AmplificationLaw, Facts


@dataclass(frozen=True)
class LocalRandomizer:
    """Any randomizer R with R(x)(S) <= e^epsilon0 R(x')(S) for all inputs x, x' and sets S.

    ``total_variation``, if known, is the largest total variation distance between R(x) and R(x').
    It is at most tanh(epsilon0/2), the value of binary randomized response.

    ``delta0`` > 0: only R(x)(S) <= e^epsilon0 R(x')(S) + delta0. Then delta is larger by some six
    delta0 in every round, however many people there are (T9', docs/proofs/approximate-local.md).

    >>> LocalRandomizer(epsilon0=1.0)
    LocalRandomizer(epsilon0=1.0, total_variation=None)
    >>> LocalRandomizer(epsilon0=1.0, delta0=1e-12)
    LocalRandomizer(epsilon0=1.0, total_variation=None, delta0=1e-12)
    """

    epsilon0: float
    total_variation: float | None = None
    delta0: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon0", _validate.epsilon0(self.epsilon0))
        object.__setattr__(self, "delta0", _validate.probability("delta0", self.delta0))
        if self.total_variation is not None and self.delta0 > 0.0:
            raise ValueError("total_variation must be left out with delta0 > 0: no bound uses both")
        if self.total_variation is not None:
            known = _validate.probability("total_variation", self.total_variation)
            most = math.tanh(0.5 * self.epsilon0)
            if known - most > 1e-12 * most:
                raise ValueError(
                    f"total_variation must be in [0, tanh(epsilon0/2)] = [0, {most!r}], "
                    f"got {self.total_variation!r}"
                )
            object.__setattr__(self, "total_variation", min(known, most))

    def __repr__(self) -> str:
        leak = f", delta0={self.delta0!r}" if self.delta0 else ""
        return f"LocalRandomizer(epsilon0={self.epsilon0!r}, total_variation={self.total_variation!r}{leak})"

    def facts(self) -> Facts:
        """epsilon0 and the total variation, or delta0. Lower ends are those of members of the class."""
        local = Bound(self.epsilon0, self.epsilon0)
        members = self._members()
        if self.delta0 > 0.0:
            members = (*map(self._leaking, members), *members)
        return Facts(local, self.delta0, self.total_variation, concrete=members)

    def _leaking(self, member: AmplificationLaw) -> AmplificationLaw:
        """With probability delta0 the input itself is sent, else what the member sends."""
        kept, leak = 1.0 - self.delta0, self.delta0

        def sent(masses: tuple[float, ...], *inputs: float) -> tuple[float, ...]:
            return (*(kept * mass for mass in masses), *(leak * chance for chance in inputs))

        like_x = member.clone == member.own
        crowd = (1.0, 0.0, 0.0) if like_x else (0.0, 0.0, 1.0)
        own, other = sent(member.own, 1.0, 0.0, 0.0), sent(member.other, 0.0, 1.0, 0.0)
        return AmplificationLaw(own, other, sent(member.clone, *crowd), sent(member.gap, 1.0, -1.0, 0.0))

    def _members(self) -> tuple[AmplificationLaw, ...]:
        """Randomizers of the class: x and x' send their own symbol with probability E s, the other's with s.

        E = e^epsilon0, (E - 1) s is the total variation. With s <= 1/(E + 2) all others hold a third
        symbol of that kind: the worst for large epsilon0. With s <= 1/(E + 1) they hold x, for small
        epsilon0: binary response. What is not sent so is sent alike by all, and tells nothing."""
        if self.total_variation == 0.0 or self.epsilon0 == 0.0:
            return ()
        decay = math.exp(-self.epsilon0)
        rise = -math.expm1(-self.epsilon0)
        # In units of 1/E: E s = share. Rounded down: a smaller one is a member, too.
        known = math.inf if self.total_variation is None else self.total_variation / rise
        crowds = []
        for symbols in (3, 2):
            most = 1.0 / (1.0 + (symbols - 1) * decay)
            share = down(min(known, most), operations=2 * CALL + 4)
            low, gap = share * decay, share * rise
            left = max(0.0, 1.0 - share - (symbols - 1) * low)
            thirds = (low,) * (symbols - 2)
            own, other = (share, low, *thirds, left), (low, share, *thirds, left)
            clone = own if symbols == 2 else (low, low, share, left)
            crowds.append(AmplificationLaw(own, other, clone, (gap, -gap, *(0.0 for _ in thirds), 0.0)))
        return tuple(crowds)
