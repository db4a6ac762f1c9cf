"""One line that is rewritten: rounds, how fast, and the latest numbers (accuracy, epsilon)."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from typing import TextIO

from shuffledp._progress import line

_SECONDS_BETWEEN = 0.1


class ProgressBar:
    """Rewrites its line at most ten times a second; ends it with a newline.

    >>> import io
    >>> out = io.StringIO()
    >>> bar = ProgressBar(2, out)
    >>> bar.show(2, {"accuracy": 0.97}); bar.close()
    >>> out.getvalue().strip().endswith("accuracy=0.97")
    True
    """

    def __init__(self, total: int, out: TextIO | None = None) -> None:
        self.total, self.out = total, out or sys.stderr
        self._start = time.monotonic()
        self._shown, self._longest = -1.0, 0

    def show(self, done: int, values: Mapping[str, float]) -> None:
        seconds = time.monotonic() - self._start
        if seconds - self._shown < _SECONDS_BETWEEN and done < self.total:
            return
        self._shown = seconds
        facts = "".join(f", {name}={value:.4g}" for name, value in values.items())
        text = line(done, self.total, seconds, "rounds") + facts
        self._longest = max(self._longest, len(text))
        self.out.write("\r" + text.ljust(self._longest))
        self.out.flush()

    def close(self) -> None:
        self.out.write("\n")
        self.out.flush()


class Silent(ProgressBar):
    """Shows nothing."""

    def show(self, done: int, values: Mapping[str, float]) -> None:
        pass

    def close(self) -> None:
        pass
