"""The pages of proofs: every number that is cited is a theorem there, and every theorem is cited."""

import re
import unicodedata
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PROOFS = ROOT / "docs" / "proofs"
NUMBER = re.compile(r"(?<![\w.])([TV]\d{1,2}'?)(?![\w'])")
HEADING = re.compile(r"^#+ .*$|^\*\*T\d+'?.*$", re.MULTILINE)
SOURCE = re.compile(r"((?:[A-Z][\w-]+, )*[A-Z][\w-]+) (\d{4})\b")
PARTS = ("Conditions", "References", "Code", "Tests")
PATH = re.compile(r"`((?:src|tests|docs)/[\w./-]+\.(?:py|md|json))`")

pytestmark = pytest.mark.quick


def text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def theorems() -> dict[str, Path]:
    """The numbers in headings, with their pages."""
    pages = [page for page in sorted(PROOFS.glob("*.md")) if page.name != "index.md"]
    return {
        number: page
        for page in pages
        for heading in HEADING.findall(text(page))
        for number in NUMBER.findall(heading)
    }


def cited(folder: str) -> set[str]:
    here = Path(__file__).name
    return {
        number
        for path in (ROOT / folder).rglob("*.py")
        if path.name != here
        for number in NUMBER.findall(text(path))
    }


def test_every_cited_number_is_a_theorem() -> None:
    known = theorems().keys()
    assert not cited("src") - known
    assert not cited("tests") - known
    for page in (ROOT / "docs").rglob("*.md"):
        if "_build" not in page.parts and page.parent.name != "papers":
            assert not set(NUMBER.findall(text(page))) - known, page


def family(numbers: set[str]) -> set[str]:
    """T5' is of the family of T5."""
    return {number.rstrip("'") for number in numbers}


def test_every_theorem_is_used_and_checked() -> None:
    numbers = family(set(theorems()))
    assert {f"T{i}" for i in range(1, 16)} <= numbers
    assert not numbers - family(cited("src")), "used nowhere"
    assert not numbers - family(cited("tests")), "checked nowhere"


def test_every_theorem_is_in_the_table() -> None:
    assert not set(theorems()) - set(NUMBER.findall(text(PROOFS / "index.md")))


def parts(page: str) -> dict[str, dict[str, str]]:
    """What a page says of each of its theorems, in its last section."""
    found = {}
    for item in re.split(
        r"^\* ", page.partition("\n## Conditions, references, code, tests\n")[2], flags=re.M
    )[1:]:
        number, *rest = re.split(r"\*(Conditions|References|Code|Tests):\*", " ".join(item.split()))
        found[number.strip(" *")] = {
            name: said.strip() for name, said in zip(rest[::2], rest[1::2], strict=True)
        }
    return found


def missing(page: str, bibliography: str) -> list[str]:
    """What a page of proofs lacks: a part of a theorem, a proof, a source, a file that cites the theorem."""
    found, lacks = parts(page), []
    title = HEADING.findall(page)[0]
    numbers = {n for heading in HEADING.findall(page) for n in NUMBER.findall(heading)}
    for number in numbers - found.keys() if NUMBER.search(title) else set():
        if not any(each.startswith(f"{number} (") for each in found):
            lacks.append(f"{number} has no conditions, references, code and tests")
    for number, said in found.items():
        lacks += [f"{number} lacks {part}" for part in PARTS if not said.get(part, "").strip(". ")]
        base = NUMBER.findall(number)
        for part, folder in (("Code", "src/shuffledp/"), ("Tests", "")):
            files = [ROOT / (folder + name) for name in re.findall(r"`([\w./]+\.py)`", said.get(part, ""))]
            lacks += [f"{number}: {file} is not there" for file in files if not file.exists()]
            cites = (
                (base[0] in NUMBER.findall(text(file)) for file in files if file.exists()) if base else [True]
            )
            lacks += [] if any(cites) else [f"none of the files under {part} cites {number}"]
        for authors, year in SOURCE.findall(said.get("References", "")):
            entries = (entry for entry in bibliography.split("\n- ") if year in entry)
            if not any(all(name in entry for name in authors.split(", ")) for entry in entries):
                lacks.append(f"{number}: {authors} {year} is not in the bibliography")
        if not SOURCE.search(said.get("References", "")) and "our own" not in said.get("References", ""):
            lacks.append(f"{number} names neither a source nor that it is our own")
        place = (
            page.find(f"\n## Theorem {number}")
            if f"\n## Theorem {number}" in page
            else page.find(f"\n## {number}")
        )
        proof = re.search(r"Proof.*?(?:QED|\\square|for safety)", page[max(place, 0) :], re.S)
        if not proof:
            lacks.append(f"{number} has no proof")
    return lacks


def pages_with_theorems() -> list[Path]:
    return [
        page for page in sorted(PROOFS.glob("*.md")) if page.stem not in {"index", "symbols", "bibliography"}
    ]


@pytest.mark.parametrize("page", pages_with_theorems(), ids=lambda page: page.stem)
def test_every_theorem_has_conditions_proof_references_code_and_tests(page: Path) -> None:
    assert parts(text(page)), "no section of conditions, references, code and tests"
    assert not missing(text(page), text(PROOFS / "bibliography.md"))


def test_a_missing_part_is_noticed() -> None:
    page, bibliography = text(PROOFS / "order.md"), text(PROOFS / "bibliography.md")
    for part in PARTS:
        assert missing(re.sub(rf"(\*\*T4\*\* .*?\*{part}:\*)[^*]+", r"\1 ", page, flags=re.S), bibliography)
    assert missing(page.replace("QED", ""), bibliography)
    assert missing(page, bibliography.replace("Zhu, Dong, Wang", "Zhu"))
    assert missing(re.sub(r"\* \*\*T4\*\*.*", "", page, flags=re.S), bibliography)
    assert missing(page.replace("test_properties.py", "test_golden.py"), bibliography)


ENTRY = re.compile(r"(?P<who>[^:*]+): \*(?P<title>[^*]+[.?])\* (?P<where>.*)", re.S)
IDENTIFIER = re.compile(r"arXiv \d{4}\.\d{4,5}\b|DOI 10\.\d{4,5}/[^\s,]+[\w)]|OpenReview \w{10,}")
UNNUMBERED = {  # no number that we could check
    "Ishai, Kushilevitz, Ostrovsky, Sahai",
    "Trefethen",
    "Loader",
    "Wang, Blocki, Li, Jha",
    "Girgis, Data, Diggavi, Kairouz, Suresh",
}


def unsaid(entry: str) -> list[str]:
    """What an entry of the bibliography does not say: title, where and when, a number to find it by."""
    found = ENTRY.fullmatch(" ".join(entry.split()))
    if not found:
        return ["authors: *Title.* where"]
    where = found["where"]
    place = re.sub(r"arXiv .*|\(.*?\)|[\d\s.,]", "", where) or IDENTIFIER.search(where)
    lacks = [] if place else ["a venue"]
    lacks += [] if re.search(r"\b(19|20)\d\d\b(?!\.\d)", IDENTIFIER.sub("", where)) else ["a year"]
    return lacks + ([] if IDENTIFIER.search(where) or found["who"] in UNNUMBERED else ["arXiv or DOI"])


def test_every_entry_of_the_bibliography_can_be_found() -> None:
    entries = re.findall(r"^- (.*?)(?=^- |^\*\*|\Z)", text(PROOFS / "bibliography.md"), re.M | re.S)
    assert len(entries) > 40
    assert {entry: lacks for entry in entries if (lacks := unsaid(entry))} == {}
    numbers = [number for entry in entries for number in IDENTIFIER.findall(entry)]
    assert len(set(numbers)) == len(numbers), "a number stands twice"
    for wrong, missed in (
        ("A: *T.* 2018.", "arXiv or DOI"),
        ("A: *T.* CRYPTO. arXiv 1903.02837.", "a year"),
        ("A, arXiv 1903.02837", "authors"),
        ("A: *T.* 2018.", "a venue"),
    ):
        assert missed in " ".join(unsaid(wrong)), wrong


NAMES = r"[A-Z][^\W\d_]+(?:(?:, and |, | and )[A-Z][^\W\d_]+)*"
CITED = re.compile(rf"\b({NAMES})(?: et al\.)?(?:'s)?,? \(?((?:19|20)\d\d)\b")
NO_PAPERS = {"April", "ICLR", "Their", "Okabe"}  # months, a conference, a colour scheme
UNSEEN = {"Rao", "Sandelius"}  # no record that we could compare with


def folded(words: str) -> str:
    """Without accents."""
    return unicodedata.normalize("NFKD", words).encode("ascii", "ignore").decode()


def test_every_paper_that_code_or_pages_cite_is_in_the_bibliography() -> None:
    entries = folded(text(PROOFS / "bibliography.md")).split("\n- ")
    files = [*(ROOT / "src").rglob("*.py"), *(ROOT / "src").rglob("*.md"), ROOT / "README.md"]
    files += [page for page in (ROOT / "docs").rglob("*.md") if page.name != "mutation.md"]
    missing, found = set(), 0
    for file in files:
        for authors, year in CITED.findall(folded(" ".join(text(file).split()))):
            names = re.split(r", and |, | and ", authors)
            found += 1
            if names[0] not in NO_PAPERS | UNSEEN:
                known = (entry for entry in entries if year in entry)
                if not any(all(name in entry for name in names) for entry in known):
                    missing.add((authors, year, file.name))
    assert found > 300
    assert missing == set()


def test_proofs_are_not_in_docstrings() -> None:
    """A docstring is for who reads the code; what takes more than 36 lines belongs on a page."""
    for path in (ROOT / "src").rglob("*.py"):
        for said in re.findall(r'"""(.*?)"""', text(path), re.S):
            assert said.strip().count("\n") < 36, f"{path} has a docstring of more than 36 lines"
            assert not re.search(r"\bQED\b|^\s*\**Proof[.*:]", said, re.M), (
                f"{path} has a proof in a docstring"
            )


def test_e_is_never_an_expectation() -> None:
    """E is e^epsilon0; expectations have a letter of their own (the index of symbols)."""
    for page in PROOFS.glob("*.md"):
        for formula in re.findall(r"\$\$.*?\$\$|\$[^$]+\$", text(page), re.S):
            wrong = re.search(r"(?<![A-Za-z\\{])E(?:_\S+)?(?:\\,)?\s*(?:\\[Bb]igg?l?)?\[", formula)
            assert not wrong, f"{page.name}: {formula}"


def test_pages_that_write_a_for_alpha_are_in_the_index_of_symbols() -> None:
    index = text(PROOFS / "symbols.md")
    (row,) = (line for line in index.splitlines() if line.startswith("| $a$ |"))
    uses = {
        page.name
        for page in PROOFS.glob("*.md")
        if page.name != "symbols.md" and re.search(r"\ba = (?:\\alpha|e\^)|\ba\s+R_\{x'\}", text(page))
    }
    assert len(uses) > 7
    assert {name for name in uses if f"]({name})" not in row} == set()


def test_files_that_the_proofs_name_exist() -> None:
    for page in PROOFS.glob("*.md"):
        for name in PATH.findall(text(page)):
            assert (ROOT / name).exists(), f"{page.name} names {name}"
