"""CSV files without pyarrow, in other encodings, through a pipe; and blank answers, which do not vanish."""

import gzip
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from shuffledp.cli.main import cli
from shuffledp.shuffling import columns
from shuffledp.shuffling._separated import Separated

pytestmark = pytest.mark.quick
Read = Callable[..., list[object]]


@pytest.fixture(params=["pyarrow", "standard library"])
def read(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Read:
    """A column of a file, by either way."""
    if request.param == "pyarrow":
        pytest.importorskip("pyarrow")
    else:
        monkeypatch.setattr(columns, "find_spec", lambda name: None)
    return lambda path, name=None, **how: [
        value for batch in columns.open_column(path, name, **how) for value in batch.tolist()
    ]


def test_both_ways_read_the_same(read: Read, tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text('pet,age\ncat,3\n"do,g",4\n,5\n"a\nb",6\n', encoding="utf-8")
    assert read(file, "pet", text=True) == ["cat", "do,g", None, "a\nb"]
    assert read(file, "age") == [3, 4, 5, 6]
    with gzip.open(tmp_path / "a.csv.gz", "wt") as packed:
        packed.write("x\n1.5\n\n2\n")
    assert [value for value in read(tmp_path / "a.csv.gz") if value == value] == [1.5, 2.0] or read(
        tmp_path / "a.csv.gz"
    ) == [1.5, None, 2.0]


def test_a_blank_line_of_a_one_column_file_is_somebody_who_did_not_answer(read: Read, tmp_path: Path) -> None:
    file = tmp_path / "pets.csv"
    file.write_text("pet\ncat\n\n\ndog\n")
    assert read(file, text=True) == ["cat", None, None, "dog"]


def test_other_delimiters_and_encodings_and_pipes_are_read_on_the_command_line(tmp_path: Path) -> None:
    text = "größe;pet\n1;cat\n2;dog\n3;cat\n" + "4;cat\n" * 197
    (tmp_path / "a.csv").write_text(text, encoding="utf-16")
    options = shlex.split("--column pet --categories cat,dog --epsilon 5 --delta 1e-3 --json --delimiter ';'")

    def run(data: str, *more: str, **pipe: Any) -> str:
        line = ["histogram", data, *options, *more]
        return CliRunner().invoke(cli, line, prog_name="shuffledp", **pipe).output

    assert '"n": 200' in run(str(tmp_path / "a.csv"), "--encoding", "utf-16")
    assert '"n": 200' in run("-", input=text.encode())
    assert "name its encoding" in run(str(tmp_path / "a.csv"))


def test_a_wrong_delimiter_gets_a_hint() -> None:
    with pytest.raises(ValueError, match="is the delimiter another one"):
        columns.open_column(Separated(b"size;pet\n1;a\n"), "pet")


def test_a_short_row_is_named() -> None:
    with pytest.raises(ValueError, match="row 3 has 1 fields, the first 2"):
        list(columns.open_column(Separated(b"a,b\n1,2\n1\n"), "a"))
