"""The ledger composes what was collected from the same people, and stops at the budget."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from shuffledp import KaryRandomizedResponse, _log
from shuffledp.accounting.mechanism import Shuffled
from shuffledp.collecting import ledger as ledger_room
from shuffledp.collecting._accounted import certified_epsilon
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


def reserve(ledger: Ledger, protocol: Any, *, population: str, **options: Any) -> str:
    """A reservation; a population that is not known yet is asked for."""
    known = {collection.population for collection in ledger.collections}
    return ledger.reserve(protocol, population=population, new_population=population not in known, **options)


def test_different_collections_on_the_same_people_are_composed(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger", BUDGET, create=True)
    assert ledger.epsilon("readers") == 0.0
    reserve(ledger, survey(), population="readers")
    assert ledger.epsilon("readers") == composed(ONE)
    reserve(ledger, total(), population="readers", note="monthly")
    assert ledger.epsilon("readers") == composed(ONE, SUM)
    assert [c.note for c in ledger.collections] == ["", "monthly"]


def test_other_people_have_a_budget_of_their_own(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger", BUDGET, create=True)
    reserve(ledger, survey(), population="readers")
    reserve(ledger, survey(), population="writers")
    assert ledger.epsilon("writers") == composed(ONE)


def test_a_collection_beyond_the_budget_is_refused_before_it_is_run(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger", BUDGET, create=True)
    assert composed(3 * ONE) <= 0.43 < composed(4 * ONE)
    for _ in range(3):
        reserve(ledger, survey(), population="readers")
    before = (tmp_path / "ledger").read_bytes()
    assert ledger.epsilon_with(survey(), population="readers") == composed(4 * ONE)
    with pytest.raises(BudgetExceededError, match=r"the budget is 0\.43") as caught:
        reserve(ledger, survey(), population="readers")
    assert caught.value.epsilon == composed(4 * ONE)
    assert (tmp_path / "ledger").read_bytes() == before
    # The file remembers, not the object.
    with pytest.raises(BudgetExceededError):
        reserve(Ledger(tmp_path / "ledger", BUDGET), survey(), population="readers")


def test_a_released_reservation_costs_nothing(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger", BUDGET, create=True)
    ticket = reserve(ledger, survey(), population="readers")
    ledger.release(ticket)
    assert ledger.epsilon("readers") == 0.0
    with pytest.raises(ValueError, match="is released already"):
        ledger.release(ticket)
    with pytest.raises(ValueError, match="is released already"):
        ledger.commit(ticket, survey(), honest=1000)


def test_a_reservation_that_was_never_settled_goes_on_counting(tmp_path: Path) -> None:
    reserve(Ledger(tmp_path / "ledger", BUDGET, create=True), survey(), population="readers")
    assert Ledger(tmp_path / "ledger", BUDGET).epsilon("readers") == composed(ONE)


def test_a_commitment_counts_the_reports_that_came(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger", BUDGET, create=True)
    ticket = reserve(ledger, survey(), population="readers")
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
    ledger = Ledger(tmp_path / "ledger", BUDGET, create=True)
    assert checked == [1]
    ticket = ledger.reserve(survey(), population="readers", new_population=True)
    assert checked == [1, 1]
    stored = Ledger(tmp_path / "ledger")
    assert stored == ledger
    result = survey().analyze(survey().randomize([0] * 1000), ledger=stored, reservation=ticket)
    assert checked == [1, 1, 2, 2]
    assert result.privacy.total_epsilon == ledger.epsilon("readers")
    assert [c.status for c in ledger.collections] == ["committed"]
    assert ledger.hashes[-1] == ledger.head
    assert checked == [1, 1, 2, 2, 3, 3, 3, 3]


def test_a_file_that_was_changed_since_the_last_use_is_noticed_by_the_next(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger", BUDGET, create=True)
    ticket = reserve(ledger, survey(), population="readers", note="monthly")
    whole = (tmp_path / "ledger").read_bytes()
    (tmp_path / "ledger").write_bytes(whole.replace(b"monthly", b"yearly!"))
    with pytest.raises(LogCorruptError, match="line 2"):
        survey().analyze(survey().randomize([0] * 1000), ledger=ledger, reservation=ticket)
    assert (tmp_path / "ledger").read_bytes() == whole.replace(b"monthly", b"yearly!")


def test_too_few_reports_are_recorded_warned_about_and_end_the_budget(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger", BUDGET, create=True)
    ticket = reserve(ledger, survey(), population="readers")
    with pytest.warns(OverspentWarning, match="beyond the budget"):
        ledger.commit(ticket, survey(), honest=10)
    assert ledger.epsilon("readers") > 0.43
    with pytest.raises(BudgetExceededError):
        reserve(ledger, total(), population="readers")


def test_a_reservation_is_for_one_protocol(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger", BUDGET, create=True)
    ticket = reserve(ledger, survey(), population="readers")
    with pytest.raises(ValueError, match="made for another protocol"):
        ledger.commit(ticket, total(), honest=1000)
    with pytest.raises(ValueError, match="reservation must be one of"):
        ledger.commit("nothing", survey(), honest=1000)


def test_the_budget_can_not_be_changed(tmp_path: Path) -> None:
    Ledger(tmp_path / "ledger", BUDGET, create=True)
    with pytest.raises(ValueError, match=r"budget must be \(0\.43, 1e-06\)"):
        Ledger(tmp_path / "ledger", (5.0, 1e-6))


def test_a_lost_or_foreign_file_is_noticed(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger", BUDGET, create=True)
    (tmp_path / "ledger").unlink()
    with pytest.raises(FileNotFoundError, match="no ledger"):
        ledger.reserve(survey(), population="readers", new_population=True)
    for content in ({"something": "else"}, {"epsilon": 1.0, "delta": 1e-6}):
        _log.create(tmp_path / "foreign", content)
        with pytest.raises(LogCorruptError, match="not a ledger"):
            Ledger(tmp_path / "foreign")
        (tmp_path / "foreign").unlink()


def test_a_ledger_that_should_exist_is_never_created(tmp_path: Path) -> None:
    """A mistyped or deleted path would be a fresh, full budget."""
    ledger = Ledger(tmp_path / "ledger", BUDGET, create=True)
    for open_it in (lambda path: Ledger(path, BUDGET), Ledger):
        with pytest.raises(FileNotFoundError, match=r"create=True or `shuffledp ledger init`"):
            open_it(tmp_path / "legder")
    with pytest.raises(FileExistsError):
        Ledger(tmp_path / "ledger", BUDGET, create=True)
    (tmp_path / "ledger").unlink()
    for use in (lambda: ledger.head, lambda: ledger.epsilon("readers"), lambda: ledger.release("x")):
        with pytest.raises(FileNotFoundError, match="no ledger"):
            use()
    assert not list(tmp_path.iterdir())
    with pytest.raises(ValueError, match="needs a budget"):
        Ledger(tmp_path / "ledger", create=True)


def test_a_new_population_must_be_asked_for(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger", BUDGET, create=True)
    with pytest.raises(ValueError, match="population must be one of"):
        ledger.reserve(survey(), population="readers")
    ledger.reserve(survey(), population="readers", new_population=True)
    with pytest.raises(ValueError, match=r"one of \['readers'\], got 'raeders'"):
        ledger.reserve(survey(), population="raeders")
    with pytest.raises(ValueError, match="is not new"):
        ledger.reserve(survey(), population="readers", new_population=True)
    assert len(ledger.collections) == 1


@pytest.mark.skipif(os.name == "nt", reason="needs POSIX permissions")
def test_reading_needs_no_right_to_write() -> None:
    with tempfile.TemporaryDirectory() as folder:  # others may pass through it
        read_without_the_right_to_write(Path(folder))


def read_without_the_right_to_write(folder: Path) -> None:
    ledger = Ledger(folder / "ledger", BUDGET, create=True)
    ledger.reserve(survey(), population="readers", new_population=True)
    code = (
        "import os, sys; from shuffledp.collecting.ledger import Ledger\n"
        "if os.getuid() == 0: os.setuid(65534)\n"
        "assert not os.access(sys.argv[1], os.W_OK)\n"
        "print(Ledger(sys.argv[1]).head)"
    )
    (folder / "ledger").chmod(0o444)
    folder.chmod(0o755)
    command = [sys.executable, "-c", code, str(folder / "ledger")]
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": str(SOURCE)}, capture_output=True)
    assert done.stdout.decode().strip() == ledger.head, done.stderr


WAITS = """
import sys
from shuffledp import KaryRandomizedResponse
from shuffledp.collecting.histogram import HistogramProtocol
from shuffledp.collecting.ledger import Ledger

answer = KaryRandomizedResponse(k=4, epsilon0=1.5)
survey = HistogramProtocol(range(4), epsilon=0.3, delta=1e-6, n=1000, randomizer=answer)
ledger = Ledger(sys.argv[1])
print("ready", flush=True)
sys.stdin.readline()
print(ledger.reserve(survey, population="readers", new_population=True))
"""


@pytest.mark.skipif(os.name == "nt", reason="an open file cannot be replaced there")
@pytest.mark.parametrize("what", ["replaced", "deleted"])
def test_a_file_replaced_or_deleted_under_a_waiting_writer_is_noticed(tmp_path: Path, what: str) -> None:
    """An acknowledged reservation is in the file that others read."""
    path = tmp_path / "ledger"
    ledger = Ledger(path, BUDGET, create=True)
    command = [sys.executable, "-c", WAITS, str(path)]
    pipes: Any = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with subprocess.Popen(
        command, env={**os.environ, "PYTHONPATH": str(SOURCE)}, text=True, **pipes
    ) as waiting:
        assert waiting.stdout.readline() == "ready\n"
        with _log.locked(path, write=True):
            waiting.stdin.write("\n")
            waiting.stdin.flush()
            time.sleep(0.5)  # it waits for the lock now, or will: both must be noticed
            if what == "replaced":
                (tmp_path / "copy").write_bytes(path.read_bytes())
                (tmp_path / "copy").replace(path)
            else:
                path.unlink()
        ticket, errors = waiting.communicate(timeout=60)
    if what == "replaced":
        assert [collection.id for collection in ledger.collections] == [ticket.strip()], errors
    else:
        assert (ticket, path.exists()) == ("", False)
        assert "no ledger" in errors


@pytest.mark.skipif(os.name == "nt", reason="an open file cannot be replaced there")
def test_a_file_replaced_while_a_line_is_written_confirms_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "ledger"
    ledger = Ledger(path, BUDGET, create=True)

    def replaced(file: Any, line: bytes, write: Any = _log._write_all) -> None:
        (tmp_path / "copy").write_bytes(path.read_bytes())
        (tmp_path / "copy").replace(path)
        write(file, line)

    monkeypatch.setattr(_log, "_write_all", replaced)
    with pytest.raises(LogCorruptError, match="replaced or deleted"):
        ledger.reserve(survey(), population="readers", new_population=True)
    assert ledger.collections == ()


def test_a_batch_is_committed_once(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger", BUDGET, create=True)
    first, second = (reserve(ledger, survey(), population="readers") for _ in range(2))
    ledger.commit(first, survey(), honest=1000, batch="b" * 32)
    ledger.commit(first, survey(), honest=1000, batch="b" * 32)  # again, after a crash for instance
    with pytest.raises(ValueError, match="was committed under another reservation"):
        ledger.commit(second, survey(), honest=1000, batch="b" * 32)
    with pytest.raises(ValueError, match=r"honest must be in \[1, 1000\]"):
        ledger.commit(second, survey(), honest=1001)


def test_the_head_shows_that_lines_were_removed(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger", BUDGET, create=True)
    reserve(ledger, survey(), population="readers")
    head = ledger.head
    lines = (tmp_path / "ledger").read_bytes().splitlines(keepends=True)
    (tmp_path / "ledger").write_bytes(b"".join(lines[:-1]))
    assert ledger.head != head


@pytest.mark.parametrize("budget", [1.0, (1.0,), (0.0, 1e-6), (1.0, 0.0), (1.0, 2.0)])
def test_impossible_budgets_are_refused(tmp_path: Path, budget: Any) -> None:
    with pytest.raises((TypeError, ValueError), match="budget"):
        Ledger(tmp_path / "ledger", budget, create=True)
    assert not (tmp_path / "ledger").exists()


RESERVES = """
import os, signal, sys
from shuffledp import _log as chained_log
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


@pytest.mark.thorough
def test_processes_at_the_same_time_can_not_overspend(tmp_path: Path) -> None:
    known = Ledger(tmp_path / "ledger", BUDGET, create=True)
    known.release(reserve(known, survey(), population="readers"))
    processes = [reserve_elsewhere(tmp_path / "ledger", "live") for _ in range(2)]
    assert [process.wait() for process in processes] == [0, 0]
    ledger = Ledger(tmp_path / "ledger", BUDGET)
    assert [c.status for c in ledger.collections] == ["released", *["reserved"] * 3]
    assert ledger.epsilon("readers") == composed(3 * ONE)


def test_a_reservation_killed_before_its_last_byte_does_not_count(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    known = Ledger(path, BUDGET, create=True)
    known.release(reserve(known, survey(), population="readers"))
    assert reserve_elsewhere(path, "die").wait() == -signal.SIGKILL
    with pytest.warns(TornLineWarning):
        ledger = Ledger(path, BUDGET)
    with pytest.warns(TornLineWarning):
        ledger.reserve(total(), population="readers")
    assert ledger.epsilon("readers") == composed(SUM)


@pytest.mark.thorough
def test_a_reservation_is_quick_after_a_hundred_different_collections(tmp_path: Path) -> None:
    """Below 0.2 s of a processor, also in a new process, which remembers nothing but the file."""
    ledger = Ledger(tmp_path / "ledger", (3.0, 1e-6), create=True, populations=["readers"])
    for i in range(100):
        answer = KaryRandomizedResponse(k=3 + i % 5, epsilon0=1.0 + 0.005 * i)
        asked = HistogramProtocol.__new__(HistogramProtocol)
        asked._assign(categories=tuple(range(answer.k)), other=None, rounds=1, randomizer=answer)
        asked._assign(epsilon=1.0, delta=1e-6, n=10_000 + 7 * i)
        ledger.reserve(asked, population="readers")
    certified_epsilon.cache_clear()
    ledger_room._moments.cache_clear()
    start = time.process_time()
    ledger.reserve(survey(), population="readers")
    assert time.process_time() - start < 0.2
    assert len(ledger.collections) == 101


def test_the_quick_answer_never_lets_too_much_pass(tmp_path: Path) -> None:
    """Whatever is granted fits the budget by the composition itself, and what fits is granted."""
    ledger = Ledger(tmp_path / "ledger", BUDGET, create=True, populations=["readers"])
    granted = 0
    with suppress(BudgetExceededError):
        while ledger.reserve(survey(), population="readers"):
            granted += 1
    assert composed(granted * ONE) <= 0.43 < composed((granted + 1) * ONE)
