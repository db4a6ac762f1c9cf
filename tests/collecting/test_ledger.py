"""The ledger composes what was collected from the same people, and stops at the budget."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from shuffledp import KaryRandomizedResponse
from shuffledp.accounting.mechanism import Shuffled
from shuffledp.collecting import _log
from shuffledp.collecting._log import locked
from shuffledp.collecting.histogram import HistogramProtocol
from shuffledp.collecting.ledger import Ledger
from shuffledp.collecting.number import SumProtocol
from shuffledp.errors import (
    BudgetExceededError,
    LogCorruptError,
    OverspentWarning,
    TornLineWarning,
    WeakerPrivacyWarning,
)

pytestmark = pytest.mark.quick

SOURCE = Path(__file__).parents[2] / "src"
BUDGET = (0.43, 1e-6)


@cache
def survey() -> HistogramProtocol:
    """Three times it stays below the budget, four times not."""
    answer = KaryRandomizedResponse(k=4, epsilon0=1.5)
    return HistogramProtocol(range(4), epsilon=0.3, delta=1e-6, n=1000, randomizer=answer)


@cache
def total() -> SumProtocol:
    answer = KaryRandomizedResponse(k=3, epsilon0=1.0)
    return SumProtocol(0, 1, epsilon=0.3, delta=1e-6, n=1000, randomizer=answer)


def composed(*mechanisms: Any) -> float:
    one, *more = mechanisms
    for other in more:
        one = one + other
    return one.upper_epsilon(delta=1e-6)


ONE = Shuffled(KaryRandomizedResponse(k=4, epsilon0=1.5), n=1000)
SUM = Shuffled(KaryRandomizedResponse(k=3, epsilon0=1.0), n=1000)


def test_different_collections_on_the_same_people_are_composed(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger", BUDGET)
    assert ledger.epsilon("readers") == 0.0
    ledger.reserve(survey(), population="readers")
    assert ledger.epsilon("readers") == composed(ONE)
    ledger.reserve(total(), population="readers", note="monthly")
    assert ledger.epsilon("readers") == composed(ONE, SUM)
    assert [c.note for c in ledger.collections] == ["", "monthly"]


def test_other_people_have_a_budget_of_their_own(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger", BUDGET)
    ledger.reserve(survey(), population="readers")
    ledger.reserve(survey(), population="writers")
    assert ledger.epsilon("writers") == composed(ONE)


def test_a_collection_beyond_the_budget_is_refused_before_it_is_run(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger", BUDGET)
    assert composed(3 * ONE) <= 0.43 < composed(4 * ONE)
    for _ in range(3):
        ledger.reserve(survey(), population="readers")
    before = (tmp_path / "ledger").read_bytes()
    assert ledger.epsilon_with(survey(), population="readers") == composed(4 * ONE)
    with pytest.raises(BudgetExceededError, match=r"the budget is 0\.43") as caught:
        ledger.reserve(survey(), population="readers")
    assert caught.value.epsilon == composed(4 * ONE)
    assert (tmp_path / "ledger").read_bytes() == before
    # The file remembers, not the object.
    with pytest.raises(BudgetExceededError):
        Ledger(tmp_path / "ledger", BUDGET).reserve(survey(), population="readers")


def test_a_released_reservation_costs_nothing(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger", BUDGET)
    ticket = ledger.reserve(survey(), population="readers")
    ledger.release(ticket)
    assert ledger.epsilon("readers") == 0.0
    with pytest.raises(ValueError, match="is released already"):
        ledger.release(ticket)
    with pytest.raises(ValueError, match="is released already"):
        ledger.commit(ticket, survey(), honest=1000)


def test_a_reservation_that_was_never_settled_goes_on_counting(tmp_path: Path) -> None:
    Ledger(tmp_path / "ledger", BUDGET).reserve(survey(), population="readers")
    assert Ledger(tmp_path / "ledger", BUDGET).epsilon("readers") == composed(ONE)


def test_a_commitment_counts_the_reports_that_came(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger", BUDGET)
    ticket = ledger.reserve(survey(), population="readers")
    reports = survey().randomize([0, 1, 2, 3] * 200)
    with pytest.warns(WeakerPrivacyWarning):
        result = survey().analyze(reports, ledger=ledger, reservation=ticket)
    fewer = Shuffled(survey().randomizer, n=800)
    assert result.privacy.total_epsilon == ledger.epsilon("readers") == composed(fewer)
    assert "all collections on 'readers' together" in result.privacy.text
    with pytest.raises(ValueError, match="is committed already"):
        survey().analyze(reports, ledger=ledger, reservation=ticket)


def test_every_use_of_a_ledger_checks_its_file_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checked: list[int] = []

    def counting(path: Path, file: Any, read: Any = _log._read) -> Any:
        records, end = read(path, file)
        checked.append(len(records))
        return records, end

    monkeypatch.setattr(_log, "_read", counting)
    ledger = Ledger(tmp_path / "ledger", BUDGET)
    assert checked == [0]
    ticket = ledger.reserve(survey(), population="readers")
    assert checked == [0, 1]
    stored = Ledger.stored(tmp_path / "ledger")
    assert stored == ledger
    result = survey().analyze(survey().randomize([0] * 1000), ledger=stored, reservation=ticket)
    assert checked == [0, 1, 2]
    assert result.privacy.total_epsilon == ledger.epsilon("readers")
    assert [c.status for c in ledger.collections] == ["committed"]
    assert ledger.hashes[-1] == ledger.head
    assert checked == [0, 1, 2, 3, 3, 3, 3]


def test_a_file_that_was_changed_since_the_last_use_is_noticed_by_the_next(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger", BUDGET)
    ticket = ledger.reserve(survey(), population="readers", note="monthly")
    whole = (tmp_path / "ledger").read_bytes()
    (tmp_path / "ledger").write_bytes(whole.replace(b"monthly", b"yearly!"))
    with pytest.raises(LogCorruptError, match="line 2"):
        survey().analyze(survey().randomize([0] * 1000), ledger=ledger, reservation=ticket)
    assert (tmp_path / "ledger").read_bytes() == whole.replace(b"monthly", b"yearly!")


def test_too_few_reports_are_recorded_warned_about_and_end_the_budget(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger", BUDGET)
    ticket = ledger.reserve(survey(), population="readers")
    with pytest.warns(OverspentWarning, match="beyond the budget"):
        ledger.commit(ticket, survey(), honest=10)
    assert ledger.epsilon("readers") > 0.43
    with pytest.raises(BudgetExceededError):
        ledger.reserve(total(), population="readers")


def test_a_reservation_is_for_one_protocol(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger", BUDGET)
    ticket = ledger.reserve(survey(), population="readers")
    with pytest.raises(ValueError, match="made for another protocol"):
        ledger.commit(ticket, total(), honest=1000)
    with pytest.raises(ValueError, match="reservation must be one of"):
        ledger.commit("nothing", survey(), honest=1000)


def test_the_budget_can_not_be_changed(tmp_path: Path) -> None:
    Ledger(tmp_path / "ledger", BUDGET)
    with pytest.raises(ValueError, match=r"budget must be \(0\.43, 1e-06\)"):
        Ledger(tmp_path / "ledger", (5.0, 1e-6))


def test_a_lost_or_foreign_file_is_noticed(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger", BUDGET)
    (tmp_path / "ledger").unlink()
    with pytest.raises(LogCorruptError, match="not a ledger"):
        ledger.reserve(survey(), population="readers")
    with locked(tmp_path / "foreign") as log:
        log.append({"something": "else"})
    with pytest.raises(LogCorruptError, match="not a ledger"):
        Ledger(tmp_path / "foreign", BUDGET)
    with pytest.raises(LogCorruptError, match="no budget"):
        Ledger.stored(tmp_path / "foreign")
    with pytest.raises(FileNotFoundError):
        Ledger.stored(tmp_path / "nowhere")
    with locked(tmp_path / "alike") as log:
        log.append({"epsilon": 1.0, "delta": 1e-6})
    with pytest.raises(LogCorruptError, match="not a ledger"):
        Ledger.stored(tmp_path / "alike").reserve(survey(), population="readers")


def test_the_head_shows_that_lines_were_removed(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger", BUDGET)
    ledger.reserve(survey(), population="readers")
    head = ledger.head
    lines = (tmp_path / "ledger").read_bytes().splitlines(keepends=True)
    (tmp_path / "ledger").write_bytes(b"".join(lines[:-1]))
    assert ledger.head != head


@pytest.mark.parametrize("budget", [1.0, (1.0,), (0.0, 1e-6), (1.0, 0.0), (1.0, 2.0)])
def test_impossible_budgets_are_refused(tmp_path: Path, budget: Any) -> None:
    with pytest.raises((TypeError, ValueError), match="budget"):
        Ledger(tmp_path / "ledger", budget)
    assert not (tmp_path / "ledger").exists()


RESERVES = """
import os, signal, sys
from shuffledp.collecting import _log as chained_log
from shuffledp.errors import BudgetExceededError
from shuffledp.collecting.ledger import Ledger
from shuffledp.collecting.histogram import HistogramProtocol
from shuffledp import KaryRandomizedResponse

answer = KaryRandomizedResponse(k=4, epsilon0=1.5)
survey = HistogramProtocol(range(4), epsilon=0.3, delta=1e-6, n=1000, randomizer=answer)
ledger = Ledger(sys.argv[1], (0.43, 1e-6))
if sys.argv[2] == "die":
    def torn(record, previous, line=chained_log._line):
        with open(sys.argv[1], "ab") as file:
            file.write(line(record, previous)[:-1])
        os.kill(os.getpid(), signal.SIGKILL)
    chained_log._line = torn
try:
    for _ in range(3):
        ledger.reserve(survey, population="readers")
except BudgetExceededError:
    pass
"""


def reserve_elsewhere(path: Path, how: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", RESERVES, str(path), how]
    return subprocess.Popen(command, env={**os.environ, "PYTHONPATH": str(SOURCE)})


def test_processes_at_the_same_time_can_not_overspend(tmp_path: Path) -> None:
    processes = [reserve_elsewhere(tmp_path / "ledger", "live") for _ in range(2)]
    assert [process.wait() for process in processes] == [0, 0]
    ledger = Ledger(tmp_path / "ledger", BUDGET)
    assert len(ledger.collections) == 3
    assert ledger.epsilon("readers") == composed(3 * ONE)


def test_a_reservation_killed_before_its_last_byte_does_not_count(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    Ledger(path, BUDGET)
    assert reserve_elsewhere(path, "die").wait() == -signal.SIGKILL
    with pytest.warns(TornLineWarning):
        ledger = Ledger(path, BUDGET)
    with pytest.warns(TornLineWarning):
        ledger.reserve(total(), population="readers")
    assert ledger.epsilon("readers") == composed(SUM)
