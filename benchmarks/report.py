"""The measured figures as a Markdown page: every verdict is computed from the figures beside it."""

import math
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

COMMAND = "make bench"


@dataclass(frozen=True)
class Row:
    """One figure and its goals: bounds of the ratio to the baseline, or of our own seconds.

    Attributes:
        what: what was measured.
        ours: our seconds.
        baseline: seconds of the baseline (or of the reference that the ratio is taken to).
        beside: the baseline in words.
        at_least: the ratio baseline / ours must reach this.
        at_most: the ratio ours / baseline must not pass this.
        within: our seconds must not pass this.
    """

    what: str
    ours: float
    baseline: float | None = None
    beside: str = ""
    at_least: float | None = None
    at_most: float | None = None
    within: float | None = None

    @property
    def met(self) -> bool | None:
        """Whether every goal of the row is met; None when it has none."""
        verdicts = []
        if self.within is not None:
            verdicts.append(self.ours <= self.within)
        if self.at_least is not None and self.baseline is not None:
            verdicts.append(self.baseline >= self.at_least * self.ours)
        if self.at_most is not None and self.baseline is not None:
            verdicts.append(self.ours <= self.at_most * self.baseline)
        return all(verdicts) if verdicts else None

    def cells(self) -> list[str]:
        """The row of the table of goals."""
        return [self.what, seconds(self.ours), *self._beside(), self._goal(), mark(self.met)]

    def _beside(self) -> list[str]:
        if self.baseline is None:
            return ["", "", ""]
        if self.at_most is not None:
            ratio = f"{self.ours / self.baseline:.3g} of it"
        else:
            ratio = f"{self.baseline / self.ours:,.3g} times faster"
        return [self.beside, seconds(self.baseline), ratio]

    def _goal(self) -> str:
        goals = []
        if self.within is not None:
            goals.append(f"within {seconds(self.within)}")
        if self.at_least is not None:
            goals.append(f"at least {self.at_least:,g} times faster")
        if self.at_most is not None:
            goals.append(f"at most {self.at_most:g} of it")
        return ", ".join(goals)


@dataclass(frozen=True)
class Check:
    """A statement about values, with what was seen and whether it holds."""

    what: str
    seen: str
    holds: bool

    def cells(self) -> list[str]:
        """The row of the table of checks."""
        return [self.what, self.seen, mark(self.holds)]


ROW_HEADER = ["what", "ours", "beside", "its time", "ratio", "goal", "met"]
CHECK_HEADER = ["what", "seen", "holds"]


PATIENCE = 60.0
"""CPU seconds after which a question is given up."""


def seconds(value: float) -> str:
    """Seconds in a readable unit."""
    if value == math.inf:
        return f"above {PATIENCE:g} s"
    if value < 0.9995:
        return f"{1e3 * value:.3g} ms"
    return f"{value:.3g} s"


def short(number: float) -> str:
    """A round number in few characters: 2, 100, 1e6, 1e-12."""
    if 1 <= number <= 100:
        return f"{number:g}"
    return f"{number:.0e}".replace("e+", "e").replace("e0", "e").replace("e-0", "e-")


def mark(verdict: bool | None) -> str:
    """yes, no, or nothing."""
    return "" if verdict is None else "yes" if verdict else "**no**"


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def setting() -> str:
    """Where the figures come from: versions and processor."""
    versions = []
    for package in ("shuffledp", "numpy", "scipy", "dp-accounting"):
        try:
            versions.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            versions.append(f"{package} not installed")
    return f"Python {platform.python_version()}, {', '.join(versions)}, {platform.machine()}."
