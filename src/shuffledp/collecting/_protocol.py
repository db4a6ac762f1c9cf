"""What every protocol is: clients encode and randomize, somebody shuffles, an analyst counts and debiases.

A protocol is a frozen value. Its parameters are public, travel as JSON (``to_dict``) and are the same
for clients, shuffler and analyst; private data and generators are arguments of its methods.

    column --encode--> inputs --randomizer--> reports --(shuffle)--> count --> tally --analyze--> result

Tallies of different pieces of the reports add up, so an engine needs only ``randomize`` and ``count``
on batches, a sum, and one ``analyze(tally=..., n=...)`` at the end.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from shuffledp import _html, _json, _validate
from shuffledp._digits import written
from shuffledp._randomness.words import is_simulated, marked
from shuffledp.accounting.mechanism import Mechanism
from shuffledp.collecting._accounted import PLAN, Target, certified_epsilon, one_round
from shuffledp.collecting.statement import PrivacyStatement, state_privacy
from shuffledp.errors import TooFewReportsError, short
from shuffledp.randomizers._categories import Counts
from shuffledp.randomizers.registry import describe, restore
from shuffledp.shuffling._batches import Mask, passing, tally_of_possible

FORMAT_VERSION = 1
"""Of ``to_dict``. A reader refuses what it does not know."""
_MOST_USERS = 2**40


class Protocol(ABC):
    """One randomizer with the encoding before it and the analysis after it, which gives a result.

    ``n``: the planned number of honest reports in one shuffle. ``epsilon``, ``delta``: the target that
    ``rounds`` collections on the same people meet together."""

    name: ClassVar[str]
    needs_all: ClassVar[bool] = False
    """Whether a missing message spoils the result of all others."""
    randomizer: Any
    n: int
    epsilon: float
    delta: float
    rounds: int

    @property
    def reads_text(self) -> bool:
        """Whether values are strings: then fields of a CSV file must stay as they are written."""
        return False

    @abstractmethod
    def encode(
        self, column: Any, *, rng: np.random.Generator | None = None, show_values: bool = False
    ) -> Any:
        """The randomizer's inputs for raw values (an array, a list, or one value).

        DomainError for missing values and values outside the domain. ``rng`` is used only where the
        encoding is itself random (rounding of numbers); ``show_values``: the error may show some of them."""

    def randomize(
        self, column: Any, *, rng: np.random.Generator | None = None, show_values: bool = False
    ) -> Any:
        """What the clients send: one report per value, or one report for one value.

        Secure and exact; ``rng`` makes it repeatable, for simulations only, and marks it as simulated.
        ``show_values``: an error may show values that are not in the domain."""
        inputs = self.encode(column, rng=rng, show_values=show_values)
        return marked(self.randomizer.randomize(inputs, rng=rng), rng is not None)

    @property
    def messages(self) -> int:
        """How many messages each person sends."""
        return int(getattr(self.randomizer, "messages", 1))

    def people(self, sent: int) -> int:
        """How many people sent so many messages; where some are missing, as many as can have sent all of
        theirs: what is missing hides nobody. ValueError where the result says nothing then."""
        return exact_people(self, sent) if self.needs_all else sent // self.messages

    @property
    def bytes_per_person(self) -> int:
        """What each person sends, without whatever carries it."""
        return self.messages * self.report_dtype.itemsize * math.prod(self.report_shape)

    @property
    def report_dtype(self) -> np.dtype[Any]:
        """The type of a report's numbers."""
        dtype: np.dtype[Any] = np.dtype(self.randomizer.report_dtype)
        return dtype

    @property
    def report_shape(self) -> tuple[int, ...]:
        """The shape of one report: () for a number, (width,) for a row of numbers."""
        return tuple(self.randomizer.report_shape)

    def count(self, reports: Any) -> Counts:
        """The tally: all that the analysis needs of (shuffled) reports. Checks every report.

        Tallies of pieces add up to the tally of the whole."""
        return marked(self._tally(reports), is_simulated(reports))

    def _tally(self, reports: Any) -> Counts:
        counts: Counts = self.randomizer.support(reports)
        return counts

    def possible(self, reports: Any) -> Mask:
        """Which of the reports the randomizer can have sent. One that it cannot costs itself, no other.

        TypeError or ValueError where all are of another type or width."""
        rows = np.asarray(reports).reshape(-1, *self.report_shape)
        own = getattr(self.randomizer, "possible", None)
        return np.asarray(own(rows)) if own is not None else passing(self.count, rows)

    @cached_property
    def tally_size(self) -> int:
        """The length of a tally."""
        return len(self.count(np.empty((0, *self.report_shape), dtype=self.report_dtype)))

    def people_in(self, tally: Counts) -> int:
        """How many people's reports a tally counts, where it says so."""
        raise ValueError("tally needs n, the number of reports it counts")

    def most_in_tally(self, n: int) -> int:
        """What no entry of a tally of n people's reports exceeds."""
        return n * self.messages

    @abstractmethod
    def estimate(self, tally: Counts, n: int) -> Any:
        """Unbiased, from the tally of n reports."""

    def analyze(
        self,
        reports: Any = None,
        *,
        tally: Any = None,
        n: int | None = None,
        confidence: float = 0.95,
        **assumptions: Any,
    ) -> Any:
        """Unbiased estimates with error bars, from shuffled reports or from their tally and number.

        ``assumptions`` (see ``collecting.statement.state_privacy``): honest_fraction, minimum_honest,
        rounds, ledger, reservation."""
        seen, received, remarks = checked_tally(self, reports, tally, n, assumptions)
        aside = remarks.get("set_aside", 0)
        if aside and self.needs_all and self.messages > 1:
            raise ValueError(f"{aside} messages are none of this protocol: the sum of all says nothing")
        self._check(seen, received)
        return self._result(seen, received, state_privacy(self, received, **remarks), confidence)

    @abstractmethod
    def _check(self, tally: Counts, n: int) -> None:
        """ValueError for a tally that n people's reports cannot have, or that says nothing."""

    @abstractmethod
    def _result(self, tally: Counts, n: int, privacy: PrivacyStatement, confidence: float) -> Any:
        """What the analyst gets."""

    def mechanism(self, *, honest: int | None = None, rounds: int | None = None) -> Mechanism:
        """What the accountant sees: ``rounds`` shuffles of ``honest`` reports (default: as planned)."""
        users = self.n if honest is None else honest
        return one_round(self.randomizer, users) * (self.rounds if rounds is None else rounds)

    def to_dict(self) -> dict[str, Any]:
        """All parameters, ready for JSON; ``protocol_from_dict`` gives the same protocol back."""
        plan = {name: getattr(self, name) for name in PLAN}
        return {
            "protocol": self.name,
            "version": FORMAT_VERSION,
            **self._domain(),
            "randomizer": describe(self.randomizer),
            **plan,
        }

    @abstractmethod
    def _domain(self) -> dict[str, Any]:
        """What may be asked: all parameters but the plan and the randomizer, ready for JSON."""

    @classmethod
    def from_dict(cls, description: dict[str, Any]) -> Self:
        """The protocol that ``to_dict`` described; nothing is calibrated again, but it is certified again."""
        self = cls.described(description)
        require_target(self)
        return self

    @classmethod
    def described(cls, description: dict[str, Any]) -> Self:
        """The protocol of a description that somebody vouches for, not certified: see ``collecting.plan``."""
        checked_description(description, cls.name)
        self = cls.__new__(cls)
        try:
            plan = Target(*(description[name] for name in PLAN)).plan
            self._assign(**self._described_domain(description), **plan)
            self._accept(restore(description["randomizer"]))
        except KeyError as missing:
            raise ValueError(f"the description of the protocol has no {missing}") from None
        unknown = [key for key in description if key not in self.to_dict()]
        if unknown:
            raise ValueError(f"the description of the protocol has unknown keys: {short(unknown)}")
        if _json.canonical(description) != _json.canonical(self.to_dict()):
            raise ValueError("the description of the protocol is not written as this release writes it")
        return self

    @classmethod
    def check(cls, **domain: Any) -> None:
        """ValueError or TypeError for what nobody can be asked, whatever the plan."""
        cls._described_domain(domain)

    @classmethod
    @abstractmethod
    def _described_domain(cls, description: dict[str, Any]) -> dict[str, Any]:
        """The fields of ``_domain``, checked."""

    @abstractmethod
    def _accept(self, randomizer: Any) -> None:
        """Set the randomizer, if it suits the domain."""

    def _assign(self, **fields: Any) -> None:
        _validate.assign(self, **fields)

    @property
    def fingerprint(self) -> str:
        """64 hexadecimal digits that differ for protocols whose reports must not be mixed."""
        return _json.fingerprint(self.to_dict())

    def _repr_html_(self) -> str:
        rows = [
            ("target", f"epsilon = {written(self.epsilon)} at delta = {written(self.delta)}"),
            ("reports", f"at least {self.n:,} honest ones in each round"),
            ("rounds", f"{self.rounds:,}"),
            ("messages", f"{self.messages:,} a person, {self.bytes_per_person:,} bytes"),
            ("randomizer", repr(self.randomizer)),
            ("fingerprint", self.fingerprint),
        ]
        return _html.table([], rows, f"{self.name}, planned")


def checked_description(description: Any, *names: str) -> str:
    """The protocol's name in a description of a known version."""
    if not isinstance(description, dict):
        raise TypeError(f"the description of a protocol must be a dict, got {description!r}")
    name, version = description.get("protocol"), description.get("version")
    if name not in names:
        raise ValueError(f"protocol must be {' or '.join(map(repr, names))}, got {name!r}")
    if version != FORMAT_VERSION:
        raise ValueError(f"version must be {FORMAT_VERSION} for this release, got {version!r}")
    return str(name)


def exact_people(protocol: Protocol, sent: int) -> int:
    """How many people sent so many messages. ValueError where one is missing: then a sum says nothing."""
    if sent % protocol.messages:
        raise ValueError(
            f"reports must be {protocol.messages} messages of every person, got {sent}: one is missing, "
            "damaged or added"
        )
    return sent // protocol.messages


class Tallied(NamedTuple):
    """The tally of n reports, and what a statement should say about them."""

    tally: Counts
    n: int
    remarks: dict[str, Any]


def checked_tally(
    protocol: Protocol, reports: Any, tally: Any, n: int | None, assumptions: dict[str, Any]
) -> Tallied:
    """From reports or from a tally (exactly one of them is given), with the ``assumptions`` about them.

    Reports that the randomizer cannot have sent are set aside."""
    if (reports is None) == (tally is None):
        raise ValueError("give either reports or tally (with n)")
    given = tally if reports is None else reports
    remarks = assumptions | {"simulated": assumptions.get("simulated", False) or is_simulated(given)}
    if reports is None:
        return Tallied(*_checked_counts(protocol, tally, n), remarks)
    if n is not None:
        raise ValueError(f"n is the number of reports when reports are given, got {n=}")
    rows = np.asarray(reports)
    if not rows.size:
        raise TooFewReportsError("reports must hold at least one, got none")
    rows = rows[None] if rows.ndim == len(protocol.report_shape) else rows
    exact_people(protocol, len(rows))  # what is set aside was sent; what is missing may have hidden somebody
    counted, aside = tally_of_possible(protocol, rows)
    users = protocol.people(len(rows) - aside)
    if users == 0 and aside:
        raise ValueError(f"reports must be ones of {protocol.randomizer!r}, got none among {aside}")
    return Tallied(counted, _validate.count("n", users), remarks | {"set_aside": aside})


def _checked_counts(protocol: Protocol, tally: Any, n: int | None) -> tuple[Counts, int]:
    counts = np.atleast_1d(_validate.integers("tally", tally)).astype(np.int64)
    users = _validate.count("n", protocol.people_in(counts) if n is None else n, most=_MOST_USERS)
    if counts.shape != (protocol.tally_size,):
        raise ValueError(f"tally must have shape ({protocol.tally_size},), got {counts.shape}")
    most = protocol.most_in_tally(users)
    if counts.min() < 0 or counts.max() > most:
        raise ValueError(
            f"tally must be in [0, {most}] for n = {users}, got {counts.min()} .. {counts.max()}"
        )
    return counts, users


def require_target(protocol: Protocol, most: float = math.inf) -> None:
    """ValueError unless the protocol as planned is certified to meet its own target.

    ``most``: what one report may reveal alone."""
    if math.isfinite(most):
        alone = protocol.randomizer.facts()
        if alone.epsilon0.upper > most or alone.delta0 > 0.0:
            raise ValueError(
                f"max_epsilon0 = {most!r} is less than one report of {protocol.randomizer!r} reveals"
            )
    certified = certified_epsilon(protocol.mechanism(), protocol.delta)
    if certified > protocol.epsilon:
        raise ValueError(
            f"randomizer must meet epsilon = {protocol.epsilon!r} at delta = {protocol.delta!r} for "
            f"n = {protocol.n} and rounds = {protocol.rounds}, but {protocol.randomizer!r} is "
            f"certified for {certified!r} only"
        )
