"""A progress line on the terminal: how many rows, how fast, how long still. Silent anywhere else.

>>> with Progress(total=10) as progress:
...     progress.advance(4)
>>> progress.done
4
"""

from __future__ import annotations

import sys
from time import monotonic
from types import TracebackType
from typing import Self, TextIO

_WIDTH = 24
_SECONDS_BETWEEN = 0.1


class Progress:
    """Counts rows, and shows them on ``stream`` (standard error) where that is a terminal."""

    def __init__(
        self, total: int | None = None, *, what: str = "rows", stream: TextIO | None = None
    ) -> None:
        self.total, self.what, self.done = total, what, 0
        self._stream = sys.stderr if stream is None else stream
        self._shown = self._stream is not None and self._stream.isatty()
        self._start = self._last = monotonic()
        self._longest = 0

    def advance(self, rows: int) -> None:
        """Some more rows are done."""
        self.done += rows
        now = monotonic()
        if self._shown and now - self._last >= _SECONDS_BETWEEN:
            self._last = now
            self._show(now)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._shown:
            self._show(monotonic())
            self._stream.write("\n")
            self._stream.flush()

    def _show(self, now: float) -> None:
        text = line(self.done, self.total, now - self._start, self.what)
        self._longest = max(self._longest, len(text))
        self._stream.write("\r" + text.ljust(self._longest))
        self._stream.flush()


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
    full = done * _WIDTH // total
    bar = f"[{'#' * full}{' ' * (_WIDTH - full)}] {100 * done // total}% "
    return bar + said + (f"{_clock((total - done) / rate)} left" if rate else "? left")


def _per_second(rate: float) -> str:
    return f"{rate / 1e6:.2f} M" if rate >= 1e6 else f"{rate:,.0f}"


def _clock(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
