"""What goes wrong is said on one line of standard error, with the status that scripts rely on."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from click.testing import Result

import shuffledp as sdp

pytestmark = pytest.mark.quick

Run = Callable[..., Result]

GOOD = "epsilon --krr 4 --epsilon0 1 --n 1000 --delta 1e-6"
ABOUT = "calibrate --solve-for {} --krr 4 --epsilon0 1 --epsilon 1 --delta 0.1"


def refused(result: Result, status: int, *words: str) -> None:
    """One line on standard error with these words, nothing on standard output."""
    assert result.exit_code == status, result.output
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1
    assert result.stderr.startswith("shuffledp")
    assert ": error: " in result.stderr
    for word in words:
        assert word in result.stderr


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("epsilo", ["No such command", "epsilo"]),
        ("epsilon --krr 4", ["--delta"]),
        ("epsilon --krr 4 --epsilon0 1 --delta 1e-6", ["--n"]),
        ("epsilon --krr 4 --n 1000 --delta 1e-6", ["--krr", "--epsilon0 or --gamma"]),
        ("epsilon --n 1000 --delta 1e-6", ["--epsilon0"]),
        ("epsilon --krr 4 --epsilon0 1 --gamma 0.5 --n 9 --delta 0.1", ["not both"]),
        ("epsilon --krr 4 --binary --epsilon0 1 --n 9 --delta 0.1", ["--krr and --binary"]),
        ("epsilon --krr 4 --total-variation 0.1 --epsilon0 1 --n 9 --delta 0.1", ["--krr"]),
        ("epsilon --epsilon0 1 --total-variation 0.9 --n 9 --delta 0.1", ["total_variation", "0.9"]),
        (GOOD + " --population 10", ["population", "10"]),
        (GOOD + " --honest-fraction 0", ["--honest-fraction", "(0, 1]"]),
        (GOOD + " --poisson", ["--poisson", "--population"]),
        (GOOD + " --population 1e4 --rate 0.1", ["--rate", "--n"]),
        ("epsilon --local --epsilon0 1 --delta0 2 --n 9 --delta 0.1", ["--delta0", "[0, 1]"]),
        (GOOD.replace("krr 4", "local") + " --analysis strong", ["analysis", "'strong'"]),
        (GOOD + " --analysis magic", ["--analysis", "magic", "blanket"]),
        (GOOD.replace("1000", "0"), ["--n", "'0'", "[1, "]),
        (GOOD.replace("1000", "1.5"), ["--n", "'1.5'", "whole"]),
        (GOOD.replace("1000", "many"), ["--n", "'many'"]),
        (GOOD.replace("1000", "nan"), ["--n", "'nan'"]),
        (GOOD.replace("1000", "1e999999999"), ["--n", "1e999999999"]),
        (GOOD.replace("1000", "9007199254740993"), ["--n", "9007199254740993"]),
        (GOOD.replace("1e-6", "1.1"), ["--delta", "'1.1'", "[0, 1]"]),
        (GOOD.replace("1e-6", "-1e-9"), ["--delta", "'-1e-9'"]),
        (GOOD.replace("1e-6", "nan"), ["--delta", "'nan'"]),
        (GOOD.replace("--epsilon0 1", "--epsilon0 1000"), ["--epsilon0", "'1000'", "[0, 300]"]),
        (GOOD.replace("krr 4", "krr 1"), ["--krr", "'1'"]),
        (GOOD + " --tolerance 0", ["--tolerance", "'0'"]),
        ("delta --krr 4 --epsilon0 1 --n 9 --epsilon inf", ["--epsilon", "'inf'"]),
        ("epsilon --matrix no-such.csv --n 9 --delta 0.1", ["--matrix", "no-such.csv"]),
        ("calibrate --krr 4 --epsilon 1 --delta 0.1", ["--n"]),
        ("calibrate --krr 4 --epsilon 0 --n 9 --delta 0.1", ["--epsilon", "(0, inf)"]),
        ("calibrate --krr 4 --epsilon0 1 --n 9 --epsilon 1 --delta 0.1", ["leave out --epsilon0"]),
        ("calibrate --gaussian 1 --n 9 --epsilon 1 --delta 0.1", ["sigma", "value of --gaussian", "rounds"]),
        ("calibrate --gaussian --solve-for n --epsilon 1 --delta 0.1", ["--gaussian needs its SIGMA"]),
        ("calibrate --gaussian --solve-for epsilon0 --n 9 --epsilon 1 --delta 0.1", ["sigma, n, rounds"]),
        ("calibrate --gaussian --epsilon0 1 --n 9 --epsilon 1 --delta 0.1", ["--epsilon0", "--gaussian"]),
        ("calibrate --solve-for sigma --krr 4 --n 9 --epsilon 1 --delta 0.1", ["--krr: epsilon0, gamma"]),
        ("epsilon --gaussian auto --n 9 --delta 0.1", ["--gaussian", "auto"]),
        ("calibrate --solve-for gamma --epsilon 1 --n 9 --delta 0.1", ["gamma", "--local"]),
        ("calibrate --krr 4 --epsilon 1 --n 9 --population 5 --delta 0.1", ["--population", "--n 9"]),
        ("calibrate --solve-for n --krr 4 --epsilon0 1 --n 9 --epsilon 1 --delta 0.1", ["n is to be found"]),
        ("calibrate --solve-for cohort --krr 4 --epsilon0 1 --epsilon 1 --delta 0.1", ["--population"]),
        (ABOUT.format("n") + " --population 100", ["--population", "--solve-for cohort"]),
        (ABOUT.format("n") + " --population 100 --poisson", ["--population", "--solve-for cohort"]),
        (ABOUT.format("cohort") + " --population 100 --rate 0.1", ["--rate", "--solve-for cohort"]),
        (ABOUT.format("rounds") + " --n 9 --population 100 --rate 0.1", ["--rate", "--n"]),
        (ABOUT.format("rounds") + " --population 100 --rate 0.1 --poisson", ["--rate", "leave out"]),
        (ABOUT.format("rounds") + " --rate 0.1", ["--rate needs --population"]),
        (ABOUT.format("rounds") + " --population 100", ["--n"]),
        ("calibrate --epsilon 1 --n 9 --delta 0.1 --analysis strong", ["analysis", "'strong'"]),
        ("curve --krr 4 --epsilon0 1 --n 9 --delta 0.1", ["--delta"]),
        ("curve --against n --krr 4 --epsilon0 1", ["--delta"]),
        ("curve --against n --krr 4 --epsilon0 1 --n 9 --delta 0.1", ["--n"]),
        ("curve --against n --epsilon0 1 --from 1.5 --delta 0.1", ["--from", "1.5"]),
        ("curve --krr 4 --epsilon0 1 --n 9 --from 2 --to 1", ["--from", "2", "1"]),
        ("curve --krr 4 --epsilon0 1 --n 9 --plot curve.jpg", ["--plot", ".png", "curve.jpg"]),
        ("curve --krr 4 --epsilon0 1 --n 9 --json --csv -", ["--json", "--csv"]),
        ("compare --krr 4 --epsilon0 1 --n 9", ["--delta", "--epsilon"]),
        ("compare --krr 4 --epsilon0 1 --n 9 --delta 0", ["--delta", "(0, 1]"]),
        ("epsilon --unary 4 --size 2 --epsilon0 1 --n 9 --delta 0.1", ["--size", "--unary"]),
        ("epsilon --hashing 4 --symbols 4 --epsilon0 1 --n 9 --delta 0.1", ["symbols", "prime"]),
        ("epsilon --gaussian 0 --n 9 --delta 0.1", ["sigma", "0"]),
        ("completion tcsh", ["tcsh", "bash"]),
    ],
)
def test_wrong_usage_has_status_two_and_names_the_option(shuffledp: Run, line: str, words: list[str]) -> None:
    refused(shuffledp(line), 2, *words)


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("m.csv", "0.5,0.5\n0.5,half\n", ["m.csv", "line 2", "half"]),
        ("m.csv", "", ["matrix", "shape"]),
        ("m.csv", "0.5,0.5\n0.5\n", ["matrix"]),
        ("m.csv", "0.9,0.2\n0.5,0.5\n", ["matrix", "sum to 1"]),
        ("m.csv", "1.5,-0.5\n0.5,0.5\n", ["matrix", "-0.5"]),
        ("m.json", "[[0.5, 0.5], [0.5,", ["m.json"]),
        ("m.json", '{"rows": 2}', ["matrix"]),
        ("m.npy", "not an array", ["m.npy"]),
        ("m.txt", "0.5 0.5", [".csv", "m.txt"]),
    ],
)
def test_a_bad_matrix_file_is_wrong_usage(
    shuffledp: Run, tmp_path: Path, name: str, content: str, words: list[str]
) -> None:
    (tmp_path / name).write_text(content)
    refused(shuffledp(f"epsilon --matrix {tmp_path / name} --n 9 --delta 0.1"), 2, *words)


def test_a_pickled_matrix_is_not_unpickled(shuffledp: Run, tmp_path: Path) -> None:
    file = tmp_path / "m.npy"
    np.save(file, np.array([[object()]], dtype=object), allow_pickle=True)
    refused(shuffledp(f"epsilon --matrix {file} --n 9 --delta 0.1"), 2, "m.npy", "pickle")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (
            "calibrate --solve-for rounds --epsilon0 4 --n 10 --epsilon 0.1 --delta 1e-8",
            ["not even rounds = 1"],
        ),
        ("calibrate --solve-for n --epsilon0 4 --epsilon 1e-20 --delta 1e-8", [f"no n up to {2**53}"]),
    ],
)
def test_a_target_out_of_reach_has_status_one(shuffledp: Run, line: str, words: list[str]) -> None:
    refused(shuffledp(line), 1, *words)


def test_no_certificate_has_status_one(shuffledp: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def uncertified(*_: object, **__: object) -> None:
        raise sdp.NoCertificateError("no certificate for\nthese numbers")

    monkeypatch.setattr(sdp.Mechanism, "epsilon", uncertified)
    refused(shuffledp(GOOD), 1, "no certificate for these numbers")


def test_a_file_that_cannot_be_written_has_status_one(shuffledp: Run, tmp_path: Path) -> None:
    line = f"curve --krr 4 --epsilon0 1 --n 9 --points 2 --csv {tmp_path / 'no' / 'curve.csv'}"
    refused(shuffledp(line), 1, "curve.csv")


def test_a_defect_names_its_type_and_debug_shows_where(
    shuffledp: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def defect(*_: object, **__: object) -> None:
        raise ArithmeticError("contradiction")

    monkeypatch.setattr(sdp.Mechanism, "epsilon", defect)
    refused(shuffledp(GOOD), 1, "ArithmeticError: contradiction", "--debug")
    for line in (GOOD + " --debug", "--debug " + GOOD):
        result = shuffledp(line)
        assert result.exit_code == 1
        assert "Traceback" in result.stderr
        assert "in defect" in result.stderr


def test_debug_shows_the_traceback_of_wrong_usage_too(shuffledp: Run) -> None:
    result = shuffledp("epsilon --krr 1 --debug")
    assert result.exit_code == 2
    assert "Traceback" in result.stderr
