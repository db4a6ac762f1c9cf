"""The documentation: the site builds without a warning, the reference is whole, no link is dead."""

import functools
import html
import http.server
import json
import re
import shutil
import subprocess
import sys
import threading
import tomllib
from pathlib import Path

import pytest
from click import Context

import shuffledp as sdp
from shuffledp.cli.main import cli
from shuffledp.literature.as_published import (
    balle_2019 as balle_2019,
    biswas_2022 as biswas_2022,
    girgis_2021 as girgis_2021,
    koskela_2021 as koskela_2021,
    koskela_2023 as koskela_2023,
)

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
PUBLISH = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from publish_docs import publish
publish(Path(sys.argv[2]), Path(sys.argv[3]), sys.argv[4])
"""
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")),
    *sorted(page for page in DOCS.rglob("*.md") if "_build" not in page.parts),
]
LINK = re.compile(r"\]\(([^)\s]+)\)")
FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"`([\w.-]+/(?:[\w./-]*(?:/|\.\w+))?)`")
"""A path in the prose of the pages about the house."""
HOUSE = [
    ROOT / "CONTRIBUTING.md",
    ROOT / "SECURITY.md",
    *sorted((DOCS / "decisions").glob("*.md")),
    *(DOCS / f"{name}.md" for name in ("architecture", "mathematics", "releasing", "versions")),
]
PAPERS = (balle_2019, biswas_2022, girgis_2021, koskela_2021, koskela_2023)


def words_under(folder: str) -> set[str]:
    """All names in the pages of a folder."""
    text = " ".join(page.read_text(encoding="utf-8") for page in (DOCS / folder).rglob("*.md"))
    return set(re.findall(r"\w+", text))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site; any warning is an error."""
    for needed in ("furo", "myst_parser", "sphinx", "sphinx_copybutton"):
        pytest.importorskip(needed)
    folder = tmp_path_factory.mktemp("docs")
    # Without the contents beside each page of the reference, which take a third of the time.
    short = ["-D", "toc_object_entries=0"]
    options = ["-q", "-W", "--keep-going", "-b", "html", *short, "-d", str(folder / "trees")]
    command = [sys.executable, "-m", "sphinx", *options, str(DOCS), str(folder / "html")]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder / "html"


def test_the_site_has_types_parameters_sources_copy_buttons_and_every_command(site: Path) -> None:
    page = (site / "reference" / "accounting.html").read_text(encoding="utf-8")
    words = re.sub(r"<[^>]+>", "", page)
    assert "honest_fraction: float = 1.0" in words
    assert re.search(r"honest_fraction \(float\) – at least this share", words)
    assert 'href="../_modules/shuffledp/accounting/mechanism.html#Shuffled"' in page
    assert "copybutton.js" in page
    commands = (site / "reference" / "command-line.html").read_text(encoding="utf-8")
    for name in cli.list_commands(Context(cli)):
        assert f"Usage: shuffledp {name} [OPTIONS]" in commands


@pytest.mark.parametrize(
    "asked",
    [
        "privacy amplification by shuffling",
        "privacy blanket",
        "stronger clones",
        "RDP",
        "Renyi",
        "PLD",
        "RAPPOR",
        "GRR",
        "local differential privacy",
        "advanced composition",
        "subsample",
        "sampling rate",
        "Poisson sampling",
        "dishonest",
        "federated learning",
        "DP-SGD",
        "multi-message",
        "hockey-stick",
    ],
)
def test_the_search_finds_the_words_of_the_literature(site: Path, asked: str) -> None:
    """A page of the manual that has all the words, as the site's own index and stemmer have them."""
    from sphinx.search.en import SearchEnglish

    text = (site / "searchindex.js").read_text(encoding="utf-8")
    index = json.loads(text[text.index("{") : text.rindex("}") + 1])
    language = SearchEnglish({})
    words = [language.stem(word) for word in language.split(asked.lower()) if language.word_filter(word)]
    assert words
    pages = set(range(len(index["docnames"])))
    for word in words:
        here = [index[part].get(word, []) for part in ("terms", "titleterms")]
        pages &= {one for found in here for one in (found if isinstance(found, list) else [found])}
    rooms = {index["docnames"][page].partition("/")[0] for page in pages}
    assert rooms & {"how-to", "tutorials", "explanation", "reference"}, rooms
    assert rooms & {"how-to", "tutorials", "explanation", "glossary"}, rooms


def test_formulas_inside_a_line_can_be_broken_on_a_phone(site: Path) -> None:
    """A piece that a line cannot break has at most 30 signs: 390 pixels; longer ones would be cut off."""
    pieces = [
        html.unescape(re.sub(r"<[^>]+>", "", piece))
        for page in site.rglob("*.html")
        for piece in re.findall(r'<math[^>]*"inline">(.*?)</math>', page.read_text(encoding="utf-8"), re.S)
    ]
    assert len(pieces) > 5000
    assert [piece for piece in pieces if len(piece) > 30] == []


def test_the_version_switch_leads_to_the_same_page_of_another_version(site: Path, tmp_path: Path) -> None:
    pytest.importorskip("playwright")
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("no Chromium on this machine")
    from playwright.sync_api import expect, sync_playwright

    for version in ("0.9.0", "0.10.0", "0.10.0.dev0"):
        command = [sys.executable, "-c", PUBLISH, str(ROOT / "tools"), str(tmp_path), str(site), version]
        subprocess.run(command, check=True)
    assert json.loads((tmp_path / "versions.json").read_text()) == ["0.10.0", "0.10.0.dev0", "0.9.0"]
    (tmp_path / "0.9.0" / "glossary.html").unlink()
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(tmp_path))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    first = f"http://127.0.0.1:{server.server_port}/"
    with sync_playwright() as playwright:
        page = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"]).new_page()
        page.set_default_timeout(120_000)  # of a busy machine
        page.goto(first)
        expect(page).to_have_url(first + "0.10.0/")
        page.goto(first + "0.10.0/how-to/compare.html")
        page.get_by_label("Version").select_option("0.9.0")
        expect(page).to_have_url(first + "0.9.0/how-to/compare.html")
        page.goto(first + "0.10.0/glossary.html")
        page.get_by_label("Version").select_option("0.9.0")
        expect(page).to_have_url(first + "0.9.0/")
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("name", sdp.__all__)
def test_every_public_name_is_in_the_reference(name: str) -> None:
    assert name in words_under("reference")


def test_every_command_is_on_the_page_about_the_command_line() -> None:
    page = (DOCS / "how-to" / "command-line.md").read_text(encoding="utf-8")
    missing = [name for name in cli.list_commands(Context(cli)) if f"`{name}`" not in page]
    assert not missing


def test_every_formula_as_published_has_a_counterexample_in_the_errata() -> None:
    shown = words_under("explanation")
    printed = {name for paper in PAPERS for name in vars(paper) if name.endswith("_as_published")}
    assert printed
    # The joint reading of the weak tail is sound; the strong one stands for both.
    assert printed - shown == {"weak_tail_joint_as_published"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_relative_link_leads_to_a_file(page: Path) -> None:
    prose = FENCED.sub("", page.read_text(encoding="utf-8"))
    targets = [link.split("#")[0] for link in LINK.findall(prose)]
    for target in filter(None, targets):
        if "://" not in target:
            assert (page.parent / target).exists(), target


@pytest.mark.parametrize("page", HOUSE, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_path_that_a_page_about_the_house_names_exists(page: Path) -> None:
    prose = FENCED.sub("", page.read_text(encoding="utf-8"))
    rooms = (ROOT, ROOT / "src" / "shuffledp", ROOT / "src" / "shuffledp" / "accounting")
    for path in CODE.findall(prose):
        assert any((room / path).exists() for room in rooms), path


def test_the_version_and_the_metadata_have_one_source() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert settings["project"]["dynamic"] == ["version"]
    assert settings["tool"]["hatch"]["version"]["path"] == "src/shuffledp/__init__.py"
    assert f"\nversion: {sdp.__version__}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")


def test_the_oldest_packages_tested_are_the_oldest_allowed() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = settings["optional-dependencies"]
    allowed = " ".join([*settings["dependencies"], *extras["collect"], *extras["dev"]])
    for line in (ROOT / "oldest.txt").read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            name, _, version = line.partition("==")
            lowest = re.search(rf"\b{name}>=([\d.]+)", allowed)
            assert lowest, name
            assert version.startswith(lowest[1]), line


def test_every_room_of_the_tests_is_touched_by_the_quick_tier() -> None:
    rooms = {path.parent for path in (ROOT / "tests").glob("*/test_*.py")}
    rooms -= {ROOT / "tests" / "oracles"}  # they are tested by what they judge
    marked = {
        path.parent
        for path in (ROOT / "tests").glob("*/test_*.py")
        if "pytest.mark.quick" in path.read_text(encoding="utf-8")
    }
    assert rooms <= marked, rooms - marked
