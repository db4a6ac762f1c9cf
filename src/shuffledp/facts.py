"""Facts: all that may be known of a local randomizer, as a value. The accountant asks for nothing else.

A randomizer hands over its ``Facts``; how it samples, and of which class it is, the accountant never
asks. So anybody can bring one: state what is true of it, and prove it, for every field says what must
be proved. What can be seen to be wrong is refused, but a false statement that cannot be seen makes
every number that follows from it false.

>>> coin = Facts.of_matrix([[0.75, 0.25], [0.25, 0.75]])
>>> round(coin.epsilon0.upper, 6)
1.098612
>>> Facts(epsilon0=1.0, total_variation=0.4).total_variation
0.4
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from shuffledp import _validate
from shuffledp._certified.rounding import CALL, capped, down, up
from shuffledp._spans.span import Span
from shuffledp.bound import Bound

_SLACK, _ROUNDED = 1e-6, 1e-12
"""Relative, of masses and ratios: what a check lets pass. A check finds mistakes; it proves nothing."""

_LARGEST_EPSILON0 = 1000.0  # what is finite and larger is a mistake


@dataclass(frozen=True)
class AmplificationLaw:
    """The law of the amplification variable X of two inputs x and x', per type of report.

    Reports are sorted into types; of equal ratios own : other : clone they are one type. Per type t,

        own[t]    the probability of the type under x,
        other[t]  the probability of the type under x',
        clone[t]  the mass of one other user's report that hides it (see below),
        gap[t]    own[t] - other[t], given apart so that it is accurate where the two are close.

    Among n users, for substitution neighbours and an adversary who knows everybody else's data,

        H_alpha <= (1/n) E[(X_1 + ... + X_n)_+],   X = (own[t] - alpha other[t]) / clone[t] w.p. clone[t],

    and X = 0 with the remaining probability (Balle, Bell, Gascon, Nissim 2019, Lemma 5.3, rewritten),
    if ``clone`` is the mass that *every* input puts on the type: the sum over its reports y of the
    smallest probability of y under any input, or less (the privacy blanket). With equality, if it is the
    whole law of a report of everybody else (``Facts.concrete``).

    ``error``: relative error of the masses of a law of ``Facts.concrete``, beyond rounding; the accountant
    takes it off the lower end. A law of ``Facts.above`` must be on the safe side by itself.

    >>> third = Fraction(1, 3)
    >>> AmplificationLaw.merged([(third, third, third), (2 * third, 2 * third, 2 * third)])
    AmplificationLaw(own=(1.0,), other=(1.0,), clone=(1.0,), gap=(0.0,))
    """

    own: tuple[float, ...]
    other: tuple[float, ...]
    clone: tuple[float, ...]
    gap: tuple[float, ...] = ()
    error: float = field(default=0.0, repr=False)

    def __post_init__(self) -> None:
        sizes = {len(self.own), len(self.other), len(self.clone), len(self.gap) or len(self.own)}
        if len(sizes) != 1 or not self.own:
            raise ValueError(f"own, other and clone must have one entry per type, got {self!r}")
        if not self.gap:
            gap = tuple(u - v for u, v in zip(self.own, self.other, strict=True))
            object.__setattr__(self, "gap", gap)
        for name in ("own", "other", "clone"):
            self._check_masses(name, getattr(self, name))
        for t, (u, v, g) in enumerate(zip(self.own, self.other, self.gap, strict=True)):
            if not abs(g - (u - v)) <= _SLACK * (u + v):
                raise ValueError(f"gap must be own - other, got gap[{t}] = {g!r} for {u!r} - {v!r}")
        if not 0.0 <= self.error < 0.1:
            raise ValueError(f"error must be in [0, 0.1), got {self.error!r}")

    @staticmethod
    def _check_masses(name: str, masses: tuple[float, ...]) -> None:
        least = 0.0 if name == "clone" else 1.0 - _SLACK
        if min(masses) >= 0.0 and least <= math.fsum(masses) <= 1.0 + _SLACK:
            return
        if not all(0.0 <= mass < math.inf for mass in masses):
            raise ValueError(f"{name} must hold probabilities, got {masses!r}")
        total = math.fsum(masses)
        if total > 1.0 + _SLACK:
            raise ValueError(f"{name} must not exceed 1 in all, got a sum of {total!r}")
        raise ValueError(f"{name} must sum to 1 over all types (the mean of X is 1 - alpha), got {total!r}")

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

    def among(self, clone: tuple[float, ...]) -> AmplificationLaw:
        """The same pair where everybody else's report has the types ``clone``."""
        return AmplificationLaw(self.own, self.other, clone, self.gap, self.error)

    def reversed(self) -> AmplificationLaw:
        """The same pair in the direction (x', x)."""
        return AmplificationLaw(self.other, self.own, self.clone, tuple(-g for g in self.gap), self.error)

    @property
    def gamma(self) -> float:
        """The blanket's mass: the probability that a user's report hides nothing of the user."""
        return min(1.0, sum(self.clone))

    @property
    def loss(self) -> float:
        """The largest log-ratio of own to other or other to own, over all types."""
        rows = zip(self.own, self.other, self.gap, strict=True)
        ratios = [math.inf if 0.0 in (u, v) else abs(g) / min(u, v) for u, v, g in rows if g != 0.0]
        return math.log1p(max(ratios, default=0.0))


@dataclass(frozen=True, eq=False, repr=False)
class Matrix:
    """Probabilities of finitely many reports: row x, column y is that of report y on input x.

    A value: read-only, equal if all entries are equal."""

    rows: npt.NDArray[np.float64]

    def __post_init__(self) -> None:
        checked = _validate.row_stochastic("matrix", self.rows)
        checked.setflags(write=False)
        object.__setattr__(self, "rows", checked)

    @cached_property
    def epsilon0(self) -> float:
        """The tight local epsilon: the largest log-ratio in a column (inf if a zero meets a non-zero)."""
        top, bottom = self.rows.max(axis=0), self.rows.min(axis=0)
        if np.any((bottom == 0.0) & (top > 0.0)):
            return math.inf
        used = top > 0.0
        excess = float(((top - bottom)[used] / bottom[used]).max())
        # The (normalised) matrix is taken as exact: a difference, a quotient and a logarithm are not.
        return up(math.log1p(excess), operations=CALL + 2, tiny=0.0)

    def __repr__(self) -> str:
        return f"Matrix({' x '.join(map(str, self.rows.shape))})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Matrix):
            return NotImplemented
        return np.array_equal(self.rows, other.rows)

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((self.rows.shape, self.rows.tobytes()))


@dataclass(frozen=True)
class Response:
    """k-ary randomized response: with probability ``gamma`` a uniformly random one of k symbols, else the
    truth. ``truth`` = 1 - gamma, given apart so that it is accurate where gamma is close to 1."""

    k: int
    gamma: float
    truth: float

    def __post_init__(self) -> None:
        _validate.count("k", self.k, least=2)
        if not (self.gamma > 0.0 <= self.truth and abs(self.gamma + self.truth - 1.0) <= _SLACK):
            raise ValueError(f"gamma and truth must be probabilities that sum to 1, got {self!r}")


@dataclass(frozen=True)
class Blanket:
    """A part of everybody's report, of probability ``mass``, that has one law whatever the input, and for
    all randomizers of the same ``shape``, whatever their epsilon0: their reports are of one kind, and this
    part is uniform. ``law``: above every pair of inputs if no more than this part hides a report.

    ``mass`` None: the part differs with epsilon0, but ``law`` has the same types of reports for all of the
    shape, within each of which the part is uniform. ``watched``: what a person shows among others who all
    hold a third input, by types that are the same for all of the shape: it gives a lower end."""

    shape: str
    law: AmplificationLaw
    mass: float | None
    watched: AmplificationLaw | None = None


def enclosed(rounded_up: float, most: float | None = None) -> Bound:
    """[attained, never exceeded] of a local epsilon known as a logarithm of count CALL + 2, rounded up.

    ``most``: what is never exceeded, if that was asked for and is larger."""
    return Bound(down(rounded_up, operations=2 * (CALL + 6), tiny=0.0), rounded_up if most is None else most)


def response_probabilities(k: int, epsilon0: float) -> tuple[float, float, float]:
    """(p, E p, (E - 1) p) with p = 1/(E + k - 1), E = e^epsilon0, each to a few units, without overflow."""
    decay = math.exp(-epsilon0)
    total = 1.0 + (k - 1) * decay
    return decay / total, 1.0 / total, -math.expm1(-epsilon0) / total


def response_crowds(k: int, epsilon0: float) -> tuple[AmplificationLaw, ...]:
    """k-ary randomized response where all others hold a third symbol (k >= 3), and where they hold x.

    Others who hold x' are the latter, reversed."""
    p, ep, gap = response_probabilities(k, epsilon0)
    rest = (k - 2) * p
    same = AmplificationLaw((ep, p, rest), (p, ep, rest), (ep, p, rest), (gap, -gap, 0.0))
    if k == 2:
        return (same,)
    left = (k - 3) * p
    own, other, clone = (ep, p, p, left), (p, ep, p, left), (p, p, ep, left)
    return AmplificationLaw(own, other, clone, (gap, -gap, 0.0, 0.0)), same


def crowds_of_any(epsilon0: float) -> tuple[AmplificationLaw, ...]:
    """Of any randomizer, every law of a crowd of one value is below a mixture of these five (T16:
    docs/proofs/crowd.md, section 7)."""
    decay, rise = math.exp(-epsilon0), -math.expm1(-epsilon0)
    part = 1.0 / (2.0 + decay)  # of inputs that avoid a symbol of their own, in 1/E
    own, other, clone = (part, part, part * decay), (part * decay, part, part), (part, part * decay, part)
    avoiding = AmplificationLaw(own, other, clone, (part * rise, 0.0, -part * rise))
    high, low = 1.0 / (1.0 + decay), decay / (1.0 + decay)
    alike = AmplificationLaw((high, low), (high, low), (low, high), (0.0, 0.0))
    return (*response_crowds(3, epsilon0)[:1], *response_crowds(2, epsilon0), avoiding, alike)


@dataclass(frozen=True, repr=False)
class Facts:
    """What is true of a randomizer. Whoever states it must have proved it (see the fields).

    Everything but ``epsilon0`` may be left out: then bounds are wider, or an analysis does not apply."""

    epsilon0: Any  # a Bound, once made
    """[some loss is at least, no loss exceeds]: R(x)(S) <= e^upper R(x')(S) + delta0 for all inputs and sets
    of reports. The lower end is the loss of some report of some two inputs; it is the answer at delta = 0. A
    number stands for [0, number]: nothing is known to be attained."""

    delta0: float = 0.0
    """Approximate local privacy: what R(x)(S) may exceed e^epsilon0 R(x')(S) by."""

    total_variation: float | None = None
    """At least the total variation distance of the reports of any two inputs, for the universal bound."""

    above: tuple[AmplificationLaw, ...] = ()
    """Laws of which every ordered pair of inputs lies below one, in either direction: for every alpha >= 1
    and t, E[(X - t)_+] is at most that law's (the increasing convex order of X). Without cohorts it is enough
    that (1/n) E[(X_1 + ... + X_n)_+] is, for every alpha >= 1 and n."""

    concrete: tuple[AmplificationLaw, ...] = ()
    """Laws that real neighbouring datasets reach: ``clone`` is the whole law of every other user's report (of
    some input, or of inputs drawn at random). They give the lower end."""

    crowds: tuple[AmplificationLaw, ...] = ()
    """Laws of X where all others hold one input: ``clone`` is its whole law. Of every two inputs and every
    third, in one direction, X is one of these laws or a mixture of some, or below one in the convex order,
    whatever alpha (docs/proofs/crowd.md). They give an upper end. Where only ``epsilon0`` is known, they are
    those of any randomizer."""

    common: float | None = None
    """The mass of a part that the reports of all inputs share, where none of them is anywhere more than
    e^epsilon0 times that part. None: not known. Only the crowd theorem asks, with ``crowds``."""

    span: Span | None = None
    """Few rows of which the reports of all inputs are mixtures (docs/proofs/crowd.md, section 9), in place of
    ``crowds``: where inputs or reports are very many, or a continuum."""

    matrix: Matrix | None = None
    """All probabilities, of finitely many inputs and reports. Without ``above`` all pairs of inputs are
    compared; the rows also give datasets for the lower end."""

    response: Response | None = None
    """The randomizer is k-ary randomized response: the strong adversary's analysis applies, and for k = 2 the
    exact one."""

    blanket: Blanket | None = None
    """What it has in common with others of its shape, for rounds of several groups."""

    @property
    def _is_bare(self) -> bool:
        known = (self.matrix, self.total_variation, self.response, self.span)
        stated = bool(self.above or self.crowds) or self.delta0 != 0.0
        return not stated and all(each is None for each in known)

    def __post_init__(self) -> None:
        if not isinstance(self.epsilon0, Bound):
            object.__setattr__(self, "epsilon0", Bound(0.0, _validate.epsilon0(self.epsilon0)))
        if self._is_bare and 0.0 < self.epsilon0.upper < math.inf:
            object.__setattr__(self, "crowds", crowds_of_any(self.epsilon0.upper))
        self._check_kinds()
        object.__setattr__(self, "delta0", _validate.probability("delta0", self.delta0))
        for name, value in (("above", self.above), ("concrete", self.concrete), ("crowds", self.crowds)):
            object.__setattr__(self, name, tuple(value))
        self._check_total_variation()
        self._check_common()
        self._check_laws()
        self._check_matrix()
        self._check_response()

    @classmethod
    def of_response(
        cls, k: int, epsilon0: float, *, gamma: float | None = None, realised: float | None = None
    ) -> Facts:
        """Of k-ary randomized response (Warner 1965 for k = 2). All pairs of inputs have one law.

        ``gamma``: the blanket's mass, if that is what was asked for. ``realised``: the epsilon0 that is
        really sampled, if smaller; lower ends are then those of it."""
        p, ep, gap = response_probabilities(k, epsilon0)
        rest = (k - 2) * p
        law = AmplificationLaw((ep, p, rest), (p, ep, rest), (p, p, rest), (gap, -gap, 0.0))
        attained = epsilon0 if realised is None else realised
        return cls(
            Bound(attained, epsilon0),
            total_variation=gap,
            above=(law,),
            concrete=response_crowds(k, attained),
            crowds=response_crowds(k, epsilon0) if k == 2 else (),
            common=min(1.0, k * p),
            response=Response(k, min(1.0, k * p) if gamma is None else gamma, gap),
            blanket=Blanket(f"uniform over {k} symbols", law, min(1.0, k * p)),
        )

    @classmethod
    def of_law(cls, law: AmplificationLaw, epsilon0: float, *others: tuple[float, ...]) -> Facts:
        """Of a randomizer whose worst pair of inputs has this law, at every alpha and n, both ways.

        ``others``: the types of a report of users who hold some third input, for the lower end; x itself
        is always tried."""
        most = _validate.epsilon0(epsilon0)
        concrete = tuple(law.among(clone) for clone in (*others, law.own))
        return cls(Bound(min(most, law.loss * (1.0 - _SLACK)), most), above=(law,), concrete=concrete)

    @classmethod
    def of_matrix(cls, matrix: Any) -> Facts:
        """Of a randomizer with finitely many inputs and reports (rows sum to one)."""
        known = matrix if isinstance(matrix, Matrix) else Matrix(matrix)
        return cls(enclosed(known.epsilon0), matrix=known)

    def __repr__(self) -> str:
        known = {
            "delta0": self.delta0 or None,
            "total_variation": self.total_variation,
            "above": f"<{len(self.above)} laws>" if self.above else None,
            "concrete": f"<{len(self.concrete)} laws>" if self.concrete else None,
            "matrix": self.matrix,
            "response": self.response,
        }
        stated = [f"{name}={value}" for name, value in known.items() if value is not None]
        return f"Facts({', '.join([f'epsilon0={self.epsilon0!r}', *stated])})"

    def _check_kinds(self) -> None:
        for end in (self.epsilon0.lower, self.epsilon0.upper):
            if not (0.0 <= end <= _LARGEST_EPSILON0 or end == math.inf):
                raise ValueError(f"epsilon0 must be in [0, {_LARGEST_EPSILON0:g}] or inf, got {end!r}")
        for name, laws in (("above", self.above), ("concrete", self.concrete), ("crowds", self.crowds)):
            listed = isinstance(laws, (tuple, list))
            if not listed or not all(isinstance(law, AmplificationLaw) for law in laws):
                raise TypeError(f"{name} must be a tuple of AmplificationLaw, got {laws!r}")
        for kind, value in ((Span, self.span), (Matrix, self.matrix), (Response, self.response)):
            if value is not None and not isinstance(value, kind):
                raise TypeError(f"{kind.__name__.lower()} must be a {kind.__name__}, got {value!r}")

    def _check_common(self) -> None:
        if self.common is None:
            return
        known = _validate.probability("common", self.common)
        least = math.exp(-capped(float(self.epsilon0.upper)))  # times e^epsilon0, a whole report
        if known < least * (1.0 - _SLACK):
            raise ValueError(f"common must be in [{least!r}, 1] for this epsilon0, got {known!r}")

    def _check_total_variation(self) -> None:
        if self.total_variation is None:
            return
        known = _validate.probability("total_variation", self.total_variation)
        decay = math.exp(-capped(float(self.epsilon0.upper)))
        most = (1.0 - decay + 2.0 * self.delta0 * decay) / (1.0 + decay)
        if known > most * (1.0 + _SLACK):
            raise ValueError(f"total_variation must be in [0, {most!r}] for this epsilon0, got {known!r}")
        seen = [math.fsum(max(gap, 0.0) for gap in law.gap) for law in self.concrete]
        if self.response is not None:
            seen.append(self.response.truth)
        if self.matrix is not None:
            first, last = self.matrix.rows[0], self.matrix.rows[-1]
            seen.append(float(np.maximum(first - last, 0.0).sum()))
        apart = max(seen, default=0.0)
        if apart > known * (1.0 + _SLACK) + _SLACK * known:
            raise ValueError(
                f"total_variation must be at least that of the concrete laws, {apart!r}, got {known!r}"
            )

    def _check_laws(self) -> None:
        for law in self.above:
            for t, (u, v, c) in enumerate(zip(law.own, law.other, law.clone, strict=True)):
                if c > min(u, v) * (1.0 + _SLACK):
                    raise ValueError(
                        "clone must not exceed own or other in a law of `above` (it is what every input "
                        f"sends), got clone[{t}] = {c!r}, own[{t}] = {u!r}, other[{t}] = {v!r}"
                    )
        for law in (*self.concrete, *self.crowds):
            if not abs(math.fsum(law.clone) - 1.0) <= _SLACK:
                raise ValueError(
                    "clone must sum to 1 in a law of `concrete` or `crowds` (the whole law of a report), got "
                    f"{math.fsum(law.clone)!r}"
                )
        for law in self.concrete if self.delta0 > 0.0 else ():
            self._check_leak(law.own, law.other)
            self._check_leak(law.other, law.own)
        for law in (*self.above, *self.concrete, *self.crowds):
            if self.delta0 == 0.0 and law.loss > self.epsilon0.upper * (1.0 + _SLACK) + _SLACK:
                raise ValueError(
                    f"epsilon0 must be at least the largest loss of its own laws, {law.loss!r}, got "
                    f"{self.epsilon0.upper!r}"
                )

    def _check_leak(self, own: Any, other: Any) -> None:
        """Two real inputs: what one sends beyond e^epsilon0 times the other is at most delta0."""
        growth = math.exp(capped(float(self.epsilon0.upper)))
        leak = float(np.maximum(np.asarray(own) - growth * np.asarray(other), 0.0).sum())
        if leak > self.delta0 * (1.0 + _SLACK) + _SLACK * _SLACK:
            raise ValueError(
                f"delta0 must be at least what two inputs leak at this epsilon0, {leak!r}, got "
                f"{self.delta0!r}"
            )

    def _check_matrix(self) -> None:
        if self.matrix is None:
            return
        tight = self.matrix.epsilon0
        for x, y in ((0, -1), (-1, 0)) if self.delta0 > 0.0 else ():
            self._check_leak(self.matrix.rows[x], self.matrix.rows[y])
        if self.delta0 == 0.0 and not tight <= self.epsilon0.upper * (1.0 + _SLACK) + _SLACK:
            raise ValueError(
                f"epsilon0 must be at least that of the matrix, {tight!r}, got {self.epsilon0.upper!r}"
            )
        if self.epsilon0.lower > tight * (1.0 + _ROUNDED) + _ROUNDED:  # of logarithms near zero
            raise ValueError(
                f"epsilon0.lower must be attained by the matrix, which has {tight!r}, got "
                f"{self.epsilon0.lower!r}"
            )

    def _check_response(self) -> None:
        if self.response is None:
            return
        local = math.log1p(self.response.k * self.response.truth / self.response.gamma)
        if not abs(local - self.epsilon0.upper) <= _SLACK * (1.0 + local):
            raise ValueError(f"epsilon0 must be that of the response, {local!r}, got {self.epsilon0.upper!r}")


class Randomizer(Protocol):
    """What the accountant wants of a randomizer."""

    def facts(self) -> Facts:
        """Everything that may be known of it."""
        ...
