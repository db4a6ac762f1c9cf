"""The law of a randomizer's amplification variable, for its worst pair of inputs.

For two inputs x and x', reports are sorted into types. Per type t,

    own[t]    the probability of the type under x,
    other[t]  the probability of the type under x',
    clone[t]  the mass that *every* input puts there: the sum over the reports y of the type of the
              smallest probability of y under any input (the privacy blanket).

Then (Balle, Bell, Gascon, Nissim 2019, Lemma 5.3, rewritten) among n users, for substitution
neighbours and an adversary who knows everybody else's data,

    H_alpha <= (1/n) E[(X_1 + ... + X_n)_+],   X = (own[t] - alpha other[t]) / clone[t] w.p. clone[t],

and X = 0 with the remaining probability. Reports of equal ratios own : other : clone are one type.

>>> third = Fraction(1, 3)
>>> AmplificationLaw.merged([(third, third, third), (2 * third, 2 * third, 2 * third)])
AmplificationLaw(own=(1.0,), other=(1.0,), clone=(1.0,), gap=(0.0,))
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True)
class AmplificationLaw:
    """Probabilities per report type (see module). ``gap`` is own - other, accurate if they are close.

    Where ``gap`` is not given it is the difference of the floats."""

    own: tuple[float, ...]
    other: tuple[float, ...]
    clone: tuple[float, ...]
    gap: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        sizes = {len(self.own), len(self.other), len(self.clone), len(self.gap) or len(self.own)}
        if len(sizes) != 1 or not self.own:
            raise ValueError(f"own, other and clone must have one entry per type, got {self!r}")
        if not self.gap:
            gap = tuple(u - v for u, v in zip(self.own, self.other, strict=True))
            object.__setattr__(self, "gap", gap)

    @classmethod
    def merged(cls, types: Iterable[tuple[Fraction, Fraction, Fraction]]) -> AmplificationLaw:
        """From exact (own, other, clone); types of equal ratios are added, empty ones dropped."""
        total: dict[tuple[Fraction, ...], tuple[Fraction, Fraction, Fraction]] = {}
        for own, other, clone in types:
            if own or other:
                ratio = (own / (own + other), clone / (own + other))
                u, v, r = total.get(ratio, (Fraction(0), Fraction(0), Fraction(0)))
                total[ratio] = (u + own, v + other, r + clone)
        rows = [(*map(float, row), float(row[0] - row[1])) for row in total.values()]
        own_s, other_s, clone_s, gap_s = (tuple(column) for column in zip(*rows, strict=True))
        return cls(own_s, other_s, clone_s, gap_s)

    @property
    def gamma(self) -> float:
        """The blanket's mass: the probability that a user's report hides nothing of the user."""
        return min(1.0, sum(self.clone))
