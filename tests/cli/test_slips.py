"""What newcomers stumbled over: a slip gets a sentence that helps, and no answer is withheld without need."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

import shuffledp as sdp

pytestmark = pytest.mark.quick
Run = Callable[..., Result]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("espilon", "Did you mean 'epsilon'?"),
        ("epsilon --n 1000 --delta 1e-6", "describe the randomizer: --epsilon0, or one of its own options"),
        ("epsilon --epsilon0 1 --n 12,00 --delta 1e-6", "(as 1200000, 1.2e6 or 1.2M)"),
        ("epsilon --sampling 0.1", "Did you mean --population or --rate?"),
        ("epsilon --honest 0.9", "Did you mean --honest-fraction?"),
        ("reproduce koskela-2023-fig-4", "near are koskela-2023-figure-4"),
        ("histogram - --delimiter ;; --categories a,b --epsilon 1 --delta 1e-6", "one character"),
    ],
)
def test_a_slip_gets_a_hint(shuffledp: Run, line: str, words: str) -> None:
    result = shuffledp(line)
    assert result.exit_code == 2
    assert words in result.stderr


def test_the_local_epsilon_is_an_answer_where_the_crowd_adds_nothing(shuffledp: Run) -> None:
    result = shuffledp("epsilon --krr 3 --epsilon0 20 --n 1000 --delta 1e-6")
    assert result.exit_code == 0
    low, high = sdp.Shuffled(sdp.KaryRandomizedResponse(k=3, epsilon0=20.0), n=1000).epsilon(delta=1e-6)
    assert 0.999 * 20.0 <= low <= high <= 20.0


def test_a_header_in_a_matrix_is_said_to_be_one(shuffledp: Run, tmp_path: Path) -> None:
    (tmp_path / "m.csv").write_text("a,b\n0.9,0.1\n0.1,0.9\n")
    assert "no header" in shuffledp(f"epsilon --matrix {tmp_path / 'm.csv'} --n 100 --delta 1e-3").stderr


def test_a_zero_in_a_matrix_is_explained(shuffledp: Run, tmp_path: Path) -> None:
    (tmp_path / "m.csv").write_text("1,0\n0.3,0.7\n")
    result = shuffledp(f"epsilon --matrix {tmp_path / 'm.csv'} --n 100 --delta 1e-6")
    assert result.stdout.startswith("epsilon <= inf")
    assert "No finite epsilon holds at delta = 1e-6: some report is possible for one value" in result.stderr


def test_reports_are_not_called_what_they_are_not(shuffledp: Run, tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    shuffledp(f"histogram --categories a,b --epsilon 1 --delta 1e-3 --n 100 --plan {plan}")
    result = shuffledp(f"randomize --value a --protocol {plan} -o {tmp_path / 'one.csv'}")
    assert result.exit_code == 2
    assert "call it" in result.stderr
    assert "one.parquet" in result.stderr
    assert not (tmp_path / "one.csv").exists()


def test_what_cannot_be_written_is_noticed_before_anything_is_spent(shuffledp: Run, tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text("pet\n" + "cat\ndog\n" * 50)
    line = f"histogram {tmp_path / 'p.csv'} --categories cat,dog --epsilon 1 --delta 1e-3"
    result = shuffledp(f"{line} --csv /proc/estimates.csv")
    assert result.exit_code == 1
    assert "/proc/estimates.csv cannot be written" in result.stderr
    assert result.stdout == ""
    assert "partial" not in result.stderr
    result = shuffledp(line)
    assert result.exit_code == 0
    assert "Another one about the same people adds to its epsilon" in result.stderr
    assert "adds to its epsilon" not in shuffledp(f"{line} --simulation").stderr


def test_a_torn_line_of_a_ledger_is_told_once(shuffledp: Run, tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text("pet\n" + "cat\ndog\n" * 50)
    ledger = tmp_path / "l.jsonl"
    shuffledp(f"ledger init {ledger} --epsilon 3 --delta 1e-2 --population users")
    with ledger.open("a") as file:
        file.write('{"torn')
    line = f"histogram {tmp_path / 'p.csv'} --categories cat,dog --epsilon 1 --delta 1e-3"
    result = shuffledp(f"{line} --ledger {ledger} --population users")
    assert result.exit_code == 0, result.stderr
    assert result.stderr.count("was cut by a crash") == 1
    assert "adds to its epsilon" not in result.stderr


def test_another_encoding_is_asked_for_by_name(shuffledp: Run, tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_bytes("größe;pet\n1;cat\n2;cat\n".encode("latin-1"))
    line = f"histogram {tmp_path / 'p.csv'} --categories cat,dog --epsilon 1 --delta 1e-3"
    assert "p.csv' is not written in utf-8: name its encoding" in shuffledp(line).stderr
    assert shuffledp(line + " --encoding latin-1 --delimiter ; --column pet").exit_code == 0


def test_a_file_without_rows_is_named(shuffledp: Run, tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text("pet\n")
    result = shuffledp(f"histogram {tmp_path / 'p.csv'} --categories cat,dog --epsilon 1 --delta 1e-3")
    assert "p.csv has no rows" in result.stderr


def test_errors_name_places_and_no_private_values(shuffledp: Run, tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text("pet\ncat\nfrog\n")
    result = shuffledp(f"histogram {tmp_path / 'p.csv'} --categories cat,dog --epsilon 1 --delta 1e-3")
    assert "1 of 2 values" in result.stderr
    assert "frog" not in result.stderr


@pytest.mark.thorough
@pytest.mark.skipif(sys.platform == "win32", reason="pipes of POSIX")
def test_a_reader_that_has_seen_enough_is_no_error() -> None:
    line = f"{sys.executable} -m shuffledp compare --krr 3 --epsilon0 1 --n 100 --delta 1e-6 | head -1"
    done = subprocess.run(["bash", "-o", "pipefail", "-c", line], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""


def test_wrong_first_arguments_are_named(tmp_path: Path) -> None:
    wrong: object = "epsilon0"
    with pytest.raises(TypeError, match="randomizer must be"):
        sdp.calibrate(wrong, epsilon=1.0, delta=1e-6, n=100)
    with pytest.raises(ValueError, match=r"got 1$"):
        sdp.HistogramProtocol(["a"], epsilon=1.0, delta=1e-6, n=100)
    survey = sdp.HistogramProtocol(["a", "b"], epsilon=1.0, delta=1e-3, n=100)
    with pytest.raises(sdp.TooFewReportsError, match="reports must hold at least one, got none"):
        survey.analyze([])
    with pytest.raises(TypeError, match="real numbers, but 1 of its 2 values are not"):
        sdp.MeanProtocol(0.0, 1.0, epsilon=1.0, delta=1e-3, n=100).randomize([0.5, "half"])
    with pytest.raises(IsADirectoryError, match="is a folder"):
        sdp.Ledger(tmp_path)
    assert sorted(set(dir(sdp))) == dir(sdp)
    assert "Any" not in dir(sdp)
