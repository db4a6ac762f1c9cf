"""What has been collected from whom, and how much privacy is left.

A ledger is one append-only file (see ``shuffledp._log``). Before a collection its cost is reserved: the
accountant composes it with everything collected from the same population (adaptively: each collection
may depend on the results before it), and refuses it if the certified total would exceed the budget.
Afterwards it is committed with the honest reports that really came, or released if it never ran. A
reservation that is neither (a crash) goes on counting as planned; analyze the reports again to commit
what really came. A file of reports may be analyzed again after that as well: it is not counted twice.

A population is a set of people, named by the caller; people must not be in two populations. A budget never
comes about by a slip: a ledger is created, and a new population begun, only where that is asked for. Fewer
honest reports than reserved may cost more than the budget: that has happened then, so it is recorded,
warned about, and nothing more can be reserved.

>>> import tempfile
>>> from shuffledp import KaryRandomizedResponse
>>> from shuffledp.collecting.histogram import HistogramProtocol
>>> survey = HistogramProtocol(["no", "yes"], epsilon=0.5, delta=1e-8, n=10_000)
>>> with tempfile.TemporaryDirectory() as folder:
...     ledger = Ledger(folder + "/ledger.jsonl", budget=(1.0, 1e-6), create=True)
...     ticket = ledger.reserve(survey, population="readers", new_population=True)
...     result = survey.analyze(
...         survey.randomize(["yes"] * 10_000), ledger=ledger, reservation=ticket
...     )
...     result.privacy.total_epsilon < 0.5
True
"""

from __future__ import annotations

import math
import os
import uuid
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

from shuffledp import __version__, _json, _validate
from shuffledp._digits import rounded_up
from shuffledp._log import OpenLog, create as create_log, locked
from shuffledp.accounting._ends.moments import LogMoments
from shuffledp.accounting.cohort import Cohort
from shuffledp.accounting.mechanism import Composition, Mechanism, Shuffled
from shuffledp.accounting.mixed_vectors import MixedVectors
from shuffledp.collecting._accounted import certified_epsilon, one_round
from shuffledp.collecting._protocol import Protocol
from shuffledp.errors import BudgetExceededError, LogCorruptError, NoCertificateError, OverspentWarning, short
from shuffledp.randomizers.registry import describe, restore
from shuffledp.randomizers.split_vectors import SplitVectors

_VERSION = 1
_COHORT = ("analysis", "population", "honest_fraction")


@dataclass(frozen=True)
class Collection:
    """One collection of the ledger: ``status`` is "reserved", "committed" or "released".

    ``batch`` names the reports that were committed, if they came from a file, and ``memory`` their place
    in the shuffler's memory. ``moments``: of its privacy loss, as this release computes them. ``training``:
    rounds of training, how many and who is asked; ``honest`` is the n of a round then."""

    id: str
    population: str
    fingerprint: str
    randomizer: dict[str, Any]
    honest: int
    status: str
    note: str
    batch: str | None = None
    memory: tuple[str, int] | None = None
    moments: LogMoments | None = None
    training: dict[str, Any] | None = None

    @property
    def mechanism(self) -> Mechanism:
        """What it costs."""
        randomizer = restore(self.randomizer)
        if self.training is None:
            return one_round(randomizer, self.honest)
        if isinstance(randomizer, SplitVectors):
            vectors = one_round(randomizer, self.honest)
            assert isinstance(vectors, MixedVectors)
            return Cohort(vectors, int(self.training["population"])) * int(self.training["rounds"])
        cohort = {name: self.training[name] for name in _COHORT}
        return Shuffled(randomizer, n=self.honest, **cohort) * int(self.training["rounds"])


class _Book:
    """The file while it is locked, every line of it checked, and the collections that they add up to."""

    def __init__(self, log: OpenLog, path: Path) -> None:
        self.path, self._log = path, log
        first = log.records[0].content if log.records else {}
        if first.get("ledger") != _VERSION:
            raise LogCorruptError(f"{path}: not a ledger of version {_VERSION}")
        self.budget = _checked_budget((first.get("epsilon"), first.get("delta")))
        self._populations = tuple(first.get("populations", ()))
        self.collections: dict[str, Collection] = {}
        for record in log.records[1:]:
            try:
                _apply(self.collections, record.content)
            except (KeyError, TypeError, ValueError) as error:
                raise LogCorruptError(f"{path}: line {record.number + 1} means nothing ({error})") from None

    @property
    def hashes(self) -> tuple[str, ...]:
        return tuple(record.hash for record in self._log.records)

    def write(self, content: dict[str, Any]) -> None:
        """One more line, on the disk before it counts."""
        _apply(self.collections, self._log.append(content | {"time": _now()}).content)

    def known(self, reservation: str) -> Collection:
        found = self.collections.get(reservation)
        if found is None:
            raise ValueError(f"reservation must be one of {self.path}, got {reservation!r}")
        return found

    def check_population(self, name: str, new: bool) -> None:
        """ValueError where a name is new by mistake: it would have a budget of its own."""
        known = sorted({*self._populations, *(found.population for found in self.collections.values())})
        if not new and name not in known:
            raise ValueError(
                f"population must be one of {short(known)}, got {name!r}; new_population=True "
                "(--new-population) begins another"
            )
        if new and name in known:
            raise ValueError(f"population {name!r} is not new: {self.path} knows it")

    def quick_epsilon(self, population: str, asked: Collection) -> float:
        """At least what all collections on a population cost with the one that is asked for, soon.

        Infinite where some moments are not known."""
        total = LogMoments()
        counted = (
            c for c in self.collections.values() if c.population == population and c.status != "released"
        )
        for found in (*counted, asked):
            if found.moments is None:
                return math.inf
            total = total + found.moments
        return total.upper_epsilon(self.budget[1])

    def check_batch(self, batch: str | None, memory: tuple[str, int] | None) -> None:
        """ValueError for reports that another reservation has paid for, or that may be mixed again."""
        for found in self.collections.values():
            if batch is not None and found.batch == batch:
                raise ValueError(f"the batch {batch!r} was committed under another reservation")
            if memory is not None and found.memory == tuple(memory):
                raise ValueError(
                    f"the batch {batch!r} has number {memory[1]} of its shuffler, as {found.batch!r} has: "
                    "the shuffler's memory was set back, and the same reports may be in both"
                )

    def spent(self, population: str) -> Mechanism:
        total: Mechanism = Composition(())
        for found in self.collections.values():
            if found.population == population and found.status != "released":
                total = total + found.mechanism
        return total


@dataclass(frozen=True, init=False)
class Ledger:
    """The ledger in the file ``path``, or with ``create=True`` a new one; ``budget``: (epsilon, delta).

    The budget holds for every population on its own, and can not be changed later; of a ledger that exists it
    need not be given. ``populations`` are known from the start. Every method checks the whole file, once."""

    path: Path
    budget: tuple[float, float]

    def __init__(
        self,
        path: str | os.PathLike[str],
        budget: tuple[float, float] | None = None,
        *,
        create: bool = False,
        populations: Sequence[str] = (),
    ) -> None:
        object.__setattr__(self, "path", Path(path))
        given = None if budget is None else _checked_budget(budget)
        if create:
            if given is None:
                raise ValueError("a new ledger needs a budget")
            names = sorted(_checked_text("population", name, least=1) for name in populations)
            first = {"ledger": _VERSION, "epsilon": given[0], "delta": given[1], "populations": names}
            create_log(self.path, first | {"time": _now()})
        elif populations:
            raise ValueError(
                f"populations are those of {self.path}: reserve(..., new_population=True) adds one"
            )
        with self._open(write=False) as book:
            object.__setattr__(self, "budget", book.budget)
        if given not in (None, self.budget):
            raise ValueError(f"budget must be {self.budget} as in {self.path}, got {given}")

    @contextmanager
    def _open(self, write: bool) -> Iterator[_Book]:
        """The file, locked and checked."""
        try:
            with locked(self.path, write=write) as log:
                yield _Book(log, self.path)
        except FileNotFoundError:
            raise FileNotFoundError(
                f"no ledger {str(self.path)!r}: a new one is made by create=True or `shuffledp ledger init`"
            ) from None
        except IsADirectoryError:
            raise IsADirectoryError(f"{str(self.path)!r} is a folder: a ledger is a file") from None

    @property
    def delta(self) -> float:
        """The budget's delta."""
        return self.budget[1]

    @property
    def hashes(self) -> tuple[str, ...]:
        """The hash of every line."""
        with self._open(write=False) as book:
            return book.hashes

    @property
    def head(self) -> str:
        """The hash of the last line: kept elsewhere, it shows that no line was removed since."""
        return self.hashes[-1]

    @property
    def collections(self) -> tuple[Collection, ...]:
        """All collections, in the order of their reservation."""
        with self._open(write=False) as book:
            return tuple(book.collections.values())

    def spent(self, population: str) -> Mechanism:
        """Everything that counts for a population: a composition that the accountant can be asked."""
        with self._open(write=False) as book:
            return book.spent(population)

    def epsilon(self, population: str) -> float:
        """The certified epsilon of ``spent`` at the budget's delta."""
        return self._epsilon(self.spent(population))

    def epsilon_with(self, protocol: Protocol, *, population: str, rounds: int | None = None) -> float:
        """What ``epsilon`` would become with ``rounds`` more collections as planned (default: all)."""
        return self._epsilon(self.spent(population) + protocol.mechanism(rounds=rounds))

    def reserve(
        self,
        protocol: Protocol,
        *,
        population: str,
        new_population: bool = False,
        honest: int | None = None,
        note: str = "",
    ) -> str:
        """Set the cost of one collection (one round) aside, before it is run; gives its id.

        ``new_population``: nothing was ever collected from these people; a name that is not known is refused
        without it, and a known one with it. ``honest``: the honest reports to count on (default: as planned).
        BudgetExceededError if the total would exceed the budget: then nothing is recorded."""
        name = _checked_text("population", population, least=1)
        users = _validate.count("honest", protocol.n if honest is None else honest, most=protocol.n)
        asked = Collection(
            uuid.uuid4().hex,
            name,
            protocol.fingerprint,
            describe(protocol.randomizer),
            users,
            "reserved",
            _checked_text("note", note),
        )
        return self._reserve(asked, new_population)

    def reserve_rounds(
        self, one: Any, rounds: int, *, population: str, new_population: bool = False, note: str = ""
    ) -> str:
        """As ``reserve``, for so many rounds of training (or else) on these people: of a ``Shuffled``
        round, or one of gradients in shares."""
        count = _validate.count("rounds", rounds)
        if one.rate is not None:
            raise ValueError(f"a round must be of a cohort of fixed size, got one with rate={one.rate!r}")
        training = {"rounds": count} | {name: getattr(one, name) for name in _COHORT}
        randomizer = describe(getattr(one.randomizer, "split", one.randomizer))
        asked = Collection(
            uuid.uuid4().hex,
            _checked_text("population", population, least=1),
            _json.fingerprint({"randomizer": randomizer, "n": one.n} | training),
            randomizer,
            one.n,
            "reserved",
            _checked_text("note", note),
            training=training,
        )
        return self._reserve(asked, new_population)

    def commit_rounds(self, reservation: str, *, rounds: int) -> None:
        """Record how many of the reserved rounds were run; the others are given back."""
        with self._open(write=True) as book:
            found = book.known(reservation)
            _require_reserved(found)
            if found.training is None:
                raise ValueError(f"reservation {reservation!r} is of one collection: use commit")
            run = _validate.count("rounds", rounds, least=0, most=found.training["rounds"])
            if run == 0:
                book.write({"release": reservation})
                return
            done = replace(found, training=found.training | {"rounds": run})
            cost = _stored_moments(_moments(done.mechanism, self.delta))
            book.write({"commit": reservation, "honest": found.honest, "rounds": run, "moments": cost})

    def _reserve(self, asked: Collection, new_population: bool) -> str:
        name = asked.population
        asked = replace(asked, moments=_moments(asked.mechanism, self.delta))
        with self._open(write=True) as book:
            book.check_population(name, new_population)
            total = book.quick_epsilon(name, asked)  # far from the budget that is enough
            if total > self.budget[0]:
                total = self._epsilon(book.spent(name) + asked.mechanism)
            if total > self.budget[0]:
                raise BudgetExceededError(
                    f"all collections on {name!r} together would be certified for epsilon = "
                    f"{rounded_up(total, 6)} at delta = {self.budget[1]:g}; "
                    f"the budget is {self.budget[0]:.6g}",
                    budget=self.budget,
                    epsilon=total,
                    population=name,
                )
            book.write(_reservation(asked))
        return asked.id

    def commit(
        self,
        reservation: str,
        protocol: Protocol,
        *,
        honest: int,
        batch: str | None = None,
        memory: tuple[str, int] | None = None,
    ) -> str:
        """Record that a reserved collection was run with ``honest`` reports; gives its population.

        ``batch`` names the reports. To analyze the same ones again (after a crash, say) costs nothing:
        a commitment with the name and number of an earlier one is not recorded again. ``memory``: the name of
        the shuffler's memory and the batch's number there; two batches of one number are refused, for the
        shuffler has forgotten the first, and its reports may be in the second."""
        found, spent = self._committed(reservation, protocol, honest, batch, memory)
        if honest < found.honest:
            self._warn(found, honest, self._epsilon(spent))
        return found.population

    def settle(
        self, reservation: str, protocol: Protocol, *, honest: int, **reports: Any
    ) -> tuple[str, float]:
        """As ``commit``; gives the population and its ``epsilon`` with this collection."""
        found, spent = self._committed(reservation, protocol, honest, **reports)
        total = self._epsilon(spent)
        self._warn(found, honest, total)
        return found.population, total

    def _committed(
        self,
        reservation: str,
        protocol: Protocol,
        honest: int,
        batch: str | None = None,
        memory: tuple[str, int] | None = None,
    ) -> tuple[Collection, Mechanism]:
        """The collection as it was before, and all that counts for its population now."""
        users = _validate.count("honest", honest, most=protocol.n)
        with self._open(write=True) as book:
            found = book.known(reservation)
            if found.fingerprint != protocol.fingerprint:
                raise ValueError(f"reservation {reservation!r} was made for another protocol")
            if batch is not None and (found.status, found.batch) == ("committed", batch):
                _require_unchanged(found, users)
            else:
                _require_reserved(found)
                book.check_batch(batch, memory)
                entry = {"commit": reservation, "honest": users, "batch": batch, "memory": memory}
                if users != found.honest:
                    cost = _moments(replace(found, honest=users).mechanism, self.delta)
                    entry["moments"] = _stored_moments(cost)
                book.write(entry)
            return found, book.spent(found.population)

    def _warn(self, reserved: Collection, honest: int, total: float) -> None:
        if honest < reserved.honest and total > self.budget[0]:
            warnings.warn(
                f"{honest} honest reports instead of {reserved.honest}: {reserved.population!r} is at "
                f"epsilon = {rounded_up(total, 6)}, beyond the budget of {self.budget[0]:.6g}",
                OverspentWarning,
                stacklevel=3,
            )

    def release(self, reservation: str) -> None:
        """Give a reservation back. Only if no report of the collection has left a client."""
        with self._open(write=True) as book:
            _require_reserved(book.known(reservation))
            book.write({"release": reservation})

    def _epsilon(self, mechanism: Mechanism) -> float:
        return certified_epsilon(mechanism, self.delta) if mechanism.parts else 0.0


def _require_reserved(collection: Collection) -> None:
    if collection.status != "reserved":
        raise ValueError(f"reservation {collection.id!r} is {collection.status} already")


def _require_unchanged(collection: Collection, honest: int) -> None:
    if collection.honest != honest:
        raise ValueError(
            f"reservation {collection.id!r} is committed already, with {collection.honest} honest "
            f"reports; got {honest}"
        )


def _checked_budget(budget: Any) -> tuple[float, float]:
    try:
        epsilon, delta = budget
    except (TypeError, ValueError):
        raise TypeError(f"budget must be (epsilon, delta), got {budget!r}") from None
    level = _validate.probability("budget[1] (delta)", delta, positive=True)
    return _validate.positive("budget[0] (epsilon)", epsilon), level


def _checked_text(name: str, value: Any, least: int = 0) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a string, got {value!r}")
    if not least <= len(value) <= 1000:
        raise ValueError(f"{name} must have {least} to 1000 characters, got {len(value)}")
    return value


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


@lru_cache(maxsize=256)
def _moments(mechanism: Mechanism, delta: float) -> LogMoments | None:
    try:
        return LogMoments.of(mechanism._rounds(), delta)
    except NoCertificateError:
        return None  # then the composition is asked


def _stored_moments(moments: LogMoments | None) -> dict[str, Any] | None:
    return None if moments is None else {"release": __version__, "numbers": moments.to_list()}


def _known_moments(stored: Any) -> LogMoments | None:
    """Those of this release only: another one may have corrected a bound."""
    if stored is None or stored["release"] != __version__:
        return None
    return LogMoments.from_list(stored["numbers"])


def _reservation(collection: Collection) -> dict[str, Any]:
    names = ("population", "fingerprint", "randomizer", "honest", "note")
    fields = {name: getattr(collection, name) for name in names}
    if collection.training is not None:
        fields["training"] = collection.training
    return {"reserve": collection.id, **fields, "moments": _stored_moments(collection.moments)}


def _apply(state: dict[str, Collection], content: dict[str, Any]) -> None:
    fields = dict(content)
    fields.pop("time")
    if "reserve" in fields:
        moments = _known_moments(fields.pop("moments", None))
        collection = Collection(id=fields.pop("reserve"), status="reserved", moments=moments, **fields)
        state[collection.id] = collection
    elif "commit" in fields:
        found = state[fields["commit"]]
        memory = fields.get("memory")
        changes = {"honest": fields["honest"], "batch": fields.get("batch")}
        changes["memory"] = None if memory is None else (memory[0], memory[1])
        if "rounds" in fields:
            changes["training"] = (found.training or {}) | {"rounds": fields["rounds"]}
        if fields["honest"] != found.honest or "rounds" in fields:
            changes["moments"] = _known_moments(fields.get("moments"))
        state[found.id] = _changed(found, "committed", **changes)
    else:
        found = state[fields["release"]]
        state[found.id] = _changed(found, "released")


def _changed(collection: Collection, status: str, **changes: Any) -> Collection:
    _require_reserved(collection)
    return replace(collection, status=status, **changes)
