"""Every error and warning of the package::

    ShuffledpError
      NoCertificateError      (ValueError)      no bound can be certified for these numbers
      OutsideRangeError       (ValueError)      a theorem says nothing about these parameters
      BudgetExceededError     (RuntimeError)    a collection, or a round of training, would cost too much
      LogCorruptError         (RuntimeError)    the file of a ledger is not what was written
      PlanError               (ValueError)      a plan that must not be run: forged, changed, or too revealing
      DomainError             (ValueError)      values that are missing or outside the domain
      QuestionError           (ValueError)      a question of the calculator without an answer
      TooFewReportsError      (ValueError)      a small crowd hides nobody
      ReportFileError         (ValueError)      a file that cannot be used as reports
        DamagedReportsError                     it is truncated, corrupted or changed
        UnknownVersionError                     this release does not know its version
        MixedReportsError                       its reports do not belong together
      SealError               (ValueError)      a sealed report that a key, for a task, does not open
        UnknownKeyError                         it is sealed to a key that the shuffler does not have
      SubmitError             (RuntimeError)    a running shuffler took no report
      LostJournalError        (RuntimeError)    a store of released batches without their journal
    ShuffledpWarning          (UserWarning)
      CoarserBoundWarning                       the bound holds, but is not as close as was asked
      LongWorkWarning                           an answer will take more than ten seconds
      WeakerPrivacyWarning                      fewer honest reports than planned
      OverspentWarning                          a collection cost more than the budget
      TornLineWarning                           a crash cut the last line of a ledger

Each error is also the built-in one in brackets. Wrong arguments are plain ValueErrors and TypeErrors.

>>> try:
...     raise TooFewReportsError("at least 1000 reports are needed for a shuffle, got 3")
... except ShuffledpError as error:
...     isinstance(error, ValueError)
True
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar


class ShuffledpError(Exception):
    """The base of all errors that are this package's own."""


class ShuffledpWarning(UserWarning):
    """The base of all its warnings."""


class NoCertificateError(ShuffledpError, ValueError):
    """The certified evaluation would need more work or precision than is allowed."""


class OutsideRangeError(ShuffledpError, ValueError):
    """The theorem says nothing about these parameters."""


class BudgetExceededError(ShuffledpError, RuntimeError):
    """A collection or a round of training would cost more than is left. It must not be run.

    Attributes:
        budget: (epsilon, delta), the most that may be spent.
        epsilon: the certified total with it; None where rounds are counted instead.
        population: whose budget it is; None for that of a training run.
    """

    def __init__(
        self,
        message: str,
        *,
        budget: tuple[float, float] | None = None,
        epsilon: float | None = None,
        population: str | None = None,
    ) -> None:
        super().__init__(message)
        self.budget, self.epsilon, self.population = budget, epsilon, population


class LogCorruptError(ShuffledpError, RuntimeError):
    """The file is not what was written: it must not be relied on."""


class PlanError(ShuffledpError, ValueError):
    """A plan that must not be run: no plan, not the one that was pinned or signed, or too revealing."""


class DomainError(ShuffledpError, ValueError):
    """Values that are missing or outside the domain.

    Attributes:
        total: how many values there were.
        missing, outside: how many of them were missing, or not in the domain.
        examples: (index, value) of the first few, where whoever called asked to see values.
    """

    MOST_EXAMPLES: ClassVar[int] = 5

    def __init__(
        self, total: int, missing: int, outside: int, examples: Sequence[tuple[int, Any]] = ()
    ) -> None:
        self.total, self.missing, self.outside = total, missing, outside
        self.examples = tuple(examples)
        listed = ", ".join(f"[{index}] {short(value)}" for index, value in self.examples)
        super().__init__(
            f"{missing + outside} of {total} values are not in the domain: {missing} missing, "
            f"{outside} outside it" + (f"; first ones: {listed}" if listed else "")
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.total, self.missing, self.outside, self.examples)


class QuestionError(ShuffledpError, ValueError):
    """A question of the calculator without an answer; ``knob``: the part that is to blame, if one is."""

    def __init__(self, sentence: str, knob: str = "") -> None:
        super().__init__(sentence)
        self.knob = knob

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.knob)


class TooFewReportsError(ShuffledpError, ValueError):
    """A batch is smaller than the shuffler's minimum: a small crowd hides nobody."""


class ReportFileError(ShuffledpError, ValueError):
    """A file that cannot be used as reports."""


class DamagedReportsError(ReportFileError):
    """A file that is truncated, corrupted or changed."""


class UnknownVersionError(ReportFileError):
    """A file of a version that this release does not know."""


class MixedReportsError(ReportFileError):
    """Reports that do not belong together: of different protocols, or the same ones twice."""


class SealError(ShuffledpError, ValueError):
    """A sealed report that this key, for this task, does not open."""


class UnknownKeyError(SealError):
    """Sealed to a key that the shuffler does not have, or has no more."""


class SubmitError(ShuffledpError, RuntimeError):
    """The shuffler refused the report, or could not be reached."""


class LostJournalError(ShuffledpError, RuntimeError):
    """The store has released batches of which this folder knows nothing."""


class CoarserBoundWarning(ShuffledpWarning):
    """The bound holds, but that it is as close as was asked could not be certified."""


class LongWorkWarning(ShuffledpWarning):
    """The answer will take more than ten seconds: a larger tolerance, or fewer points, take less."""


class WeakerPrivacyWarning(ShuffledpWarning):
    """Fewer honest reports than planned: the statement is weaker than the plan."""


class OverspentWarning(ShuffledpWarning):
    """A collection had so few honest reports that it cost more than the budget."""


class TornLineWarning(ShuffledpWarning):
    """A crash cut the last line; what it would have said was never confirmed to anybody."""


def short(value: Any) -> str:
    """A value in a message: at most 60 characters of it."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
