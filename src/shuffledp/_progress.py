"""A progress line on the terminal: how much, how fast, how long still. Silent anywhere else.

    with Progress(total, what="rows") as progress:    counted work; total may be None
        progress.advance(4)
    with Progress.clock("calibrating"):               work of unknown length
    with expected(8, "calibrating") as step:          work of about so many steps, announced if it is long
        step()                                        (or step(3), for three)
        working()                                     (a part of a step, which may be long itself)
    with quiet():                                     nothing is shown in here

>>> with Progress(total=10) as progress:
...     progress.advance(4)
>>> progress.done
4
"""

from __future__ import annotations

import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass
from threading import Event, Thread
from time import monotonic
from types import TracebackType
from typing import ClassVar, Self, TextIO

from shuffledp.errors import LongWorkWarning

_BAR_CHARACTERS = 24
_USUAL_COLUMNS = 80
_SECONDS_BETWEEN = 0.1
_SECONDS_BEFORE_A_CLOCK = 1.0
_LONG = 10.0
"""Seconds of work that nobody needs to be warned of."""
_PATIENCE = 6.0
"""Seconds of work after which it is said that it may be long, if nothing foretold it."""
_SHORT = 1.0
"""Seconds of a first step that may be its own."""
_RESOLVED = 1e-9
"""Seconds: more than no time."""
_worked = getattr(time, "thread_time", monotonic)
"""Seconds of this thread's work; a browser's Python has the clock only."""
_quiet = ContextVar("quiet", default=False)


@dataclass(frozen=True)
class _Asked:
    """What is being worked on as a whole, since when, and what was announced."""

    what: str
    begun: float
    worked: float
    said: set[str]

    def share(self, now: float) -> float:
        """Of the time that has passed, what this thread has worked."""
        return min((_worked() - self.worked) / max(now - self.begun, _RESOLVED), 1.0)


_asked: ContextVar[_Asked | None] = ContextVar("asked", default=None)


class Progress:
    """Counts, and shows the count on ``stream`` (standard error) where that is a terminal.

    A thread of its own rewrites the line, so the clock goes on while a step takes long. The line ends
    however the work ends, also with Ctrl-C. Inside another's work nothing is shown: one line is enough.
    """

    _shown_now: ClassVar[Progress | None] = None

    def __init__(
        self,
        total: int | None = None,
        *,
        what: str = "rows",
        shown: bool = True,
        stream: TextIO | None = None,
    ) -> None:
        self.total, self.what, self.done = total, what, 0
        self._stream = sys.stderr if stream is None else stream
        self._shown = shown and not _quiet.get() and _can_rewrite(self._stream)
        self._counted, self._wait = True, _SECONDS_BETWEEN
        self._latest: Mapping[str, float] = {}
        self._longest = 0

    @classmethod
    def clock(cls, what: str, *, stream: TextIO | None = None) -> Self:
        """Only what is being done and for how long, gone at the end; nothing for short work."""
        progress = cls(what=what, stream=stream)
        progress._counted, progress._wait = False, _SECONDS_BEFORE_A_CLOCK
        return progress

    def advance(self, count: int = 1, latest: Mapping[str, float] | None = None) -> None:
        """So much more is done; ``latest`` are the latest numbers, shown beside the count."""
        self.done += count
        self._latest = latest or {}

    def __enter__(self) -> Self:
        self._start = monotonic()
        self._shown = self._shown and Progress._shown_now is None
        if self._shown:
            Progress._shown_now = self
            self._over = Event()
            self._thread = Thread(target=self._tick, daemon=True)
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._shown:
            return
        Progress._shown_now = None
        self._over.set()
        self._thread.join()
        if self._counted:
            self._write(self._text() + "\n")
        elif self._longest:
            self._write("\r")

    def _tick(self) -> None:
        wait = self._wait
        while not self._over.wait(wait):
            self._write(self._text())
            wait = _SECONDS_BETWEEN

    def _text(self) -> str:
        seconds = monotonic() - self._start
        if not self._counted:
            count = f", {self.done:,} evaluations" if self.done else ""
            return f"{self.what}{count}, {_clock(seconds)}"
        latest = "".join(f", {name}={value:.4g}" for name, value in self._latest.items())
        return line(self.done, self.total, seconds, self.what) + latest

    def _write(self, text: str) -> None:
        shown = text.rstrip("\r\n")
        end = text[len(shown) :]
        room = _columns(self._stream) - 1  # a wrapped line cannot be rewritten
        if len(shown) > room:
            shown = (shown.partition("] ")[2] or shown)[:room]  # the bar goes first
        self._longest = max(self._longest, len(shown))
        self._stream.write("\r" + shown.ljust(self._longest) + end)
        self._stream.flush()


@contextmanager
def quiet() -> Iterator[None]:
    """No progress is shown in here, whoever counts."""
    token = _quiet.set(True)
    try:
        yield
    finally:
        _quiet.reset(token)


@contextmanager
def expected(about: int, what: str, prepared: bool = False) -> Iterator[Callable[..., None]]:
    """Work of about so many like steps; each ends with a call of what is given, and a clock counts it.

    As soon as steps show that all will take long, a warning says how long: once, however often the same work
    is part of another. What no step foretold is said after some seconds of the whole. Counted is the work of
    this thread, not the waiting on a busy machine; it is asked for where the clock alone does not settle it.
    ``prepared``: the first step prepares the others; if it is short, it is not taken for one of them."""
    begun, done = monotonic(), 0
    outer = _asked.get()
    asked = outer or _Asked(what, begun, _worked(), set())
    token, before, first = _asked.set(asked), begun, prepared

    def step(count: int = 1) -> None:
        nonlocal done, before, first
        done += count
        shown = Progress._shown_now
        if shown is not None and not shown._counted:
            shown.done += count
        now = monotonic()
        passed, last, before = now - begun, (now - before) / count, now
        whole = passed + max(about - done, 0) * min(passed / done, last)
        preparing, first = first, False
        if whole <= _LONG and now - asked.begun <= _PATIENCE:
            return  # no thread works longer than time passes
        share = asked.share(now)
        passed, whole = share * passed, share * whole
        short = preparing and passed < _SHORT
        if whole > _LONG and not short and what not in asked.said:
            _warn(asked, what, f"will take about {_duration(whole)}, of which {_duration(passed)} are over")
        else:
            working()

    try:
        with Progress.clock(what) if outer is None else nullcontext():  # one line is enough
            yield step
    finally:
        _asked.reset(token)


def working() -> None:
    """Called where work is part of no step: what has taken some seconds may take long, and nobody said so."""
    if (asked := _asked.get()) is not None and not asked.said:
        now = monotonic()
        if now - asked.begun > _PATIENCE and (since := asked.share(now) * (now - asked.begun)) > _PATIENCE:
            _warn(asked, asked.what, f"has taken {_duration(since)}, and may take long")


def _warn(asked: _Asked, what: str, told: str) -> None:
    asked.said.add(what)
    warnings.warn(f"{what} {told}", LongWorkWarning, stacklevel=3)


def _duration(seconds: float) -> str:
    """
    >>> _duration(12.3), _duration(200.0)
    ('12 s', '3 minutes')
    """
    return f"{seconds:.0f} s" if seconds < 120.0 else f"{seconds / 60.0:.0f} minutes"


def _can_rewrite(stream: TextIO | None) -> bool:
    """A terminal that can go back to the beginning of its line."""
    return stream is not None and stream.isatty() and os.environ.get("TERM") != "dumb"


def _columns(stream: TextIO) -> int:
    try:
        return os.get_terminal_size(stream.fileno()).columns or _USUAL_COLUMNS
    except OSError:
        return _USUAL_COLUMNS


def line(done: int, total: int | None, seconds: float, what: str = "rows") -> str:
    """What is shown after some seconds.

    >>> line(500, 1000, 2.0)
    '[############            ] 50% 500 rows, 250 rows/s, 0:02 left'
    >>> line(3_000_000, None, 1.5)
    '3,000,000 rows, 2.00 M rows/s, 0:01'
    """
    rate = done / seconds if seconds > 0 else 0.0
    said = f"{done:,} {what}, {_per_second(rate)} {what}/s, "
    if not total or done > total:
        return said + _clock(seconds)
    full = done * _BAR_CHARACTERS // total
    bar = f"[{'#' * full}{' ' * (_BAR_CHARACTERS - full)}] {100 * done // total}% "
    return bar + said + (f"{_clock((total - done) / rate)} left" if rate else "? left")


def _per_second(rate: float) -> str:
    """
    >>> _per_second(2.5e6), _per_second(1366.0), _per_second(0.125)
    ('2.50 M', '1,366', '0.12')
    """
    if rate >= 1e6:
        return f"{rate / 1e6:.2f} M"
    return f"{rate:,.0f}" if rate >= 10 else f"{rate:.2g}"


def _clock(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
