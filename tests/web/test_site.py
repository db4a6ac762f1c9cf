"""The public site: the same numbers in the browser's own Python, and the golden numbers on that build."""

import functools
import http.server
import json
import os
import pickle
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from web.firefox import FIREFOX, started

from shuffledp.web import answer
from shuffledp.web._answer import DEFAULT, catalogue

pytestmark = pytest.mark.skipif(
    shutil.which("node") is None or shutil.which("npm") is None, reason="needs node and npm"
)
HERE = Path(__file__).parent
ROOT = HERE.parents[1]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A site that was built (``SITE=``), or one built now with the engine that npm has."""
    if "SITE" in os.environ:
        return Path(os.environ["SITE"]).resolve()
    made = tmp_path_factory.mktemp("site") / "site"
    done = subprocess.run(
        [sys.executable, "tools/site.py", str(made)], cwd=ROOT, check=False, capture_output=True
    )
    if done.returncode:
        pytest.skip("the engine cannot be fetched")
    return made


@contextmanager
def served(folder: Path) -> Iterator[str]:
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(folder))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


@pytest.fixture
def url(site: Path) -> Iterator[str]:
    with served(site) as address:
        yield address


def questions() -> Iterator[dict[str, str]]:
    """Twenty: every randomizer, and every knob that is not a randomizer's own."""
    small = {"k": "4", "epsilon0": "1", "dimension": "8", "sigma": "2"}
    for entry in catalogue():
        needed = {one["name"]: small[one["name"]] for one in entry["parameters"] if not one["optional"]}
        if entry["option"] in ("laplace", "gaussian"):
            needed["levels"] = "1"
        own = needed.pop(entry["takes"]) if entry["takes"] else "1"
        yield {entry["option"]: own, **needed, "n": "40", "delta": "1e-4"}
    plain = {"krr": "4", "epsilon0": "1", "n": "3000", "delta": "1e-5"}
    for change in (
        {"rounds": "12"},
        {"rounds": "365", "n": "1000000"},
        {"population": "60000"},
        {"honest_fraction": "0.9"},
        {"population": "60000", "honest_fraction": "0.9", "dropout": "0.1"},
        {"delta": "1e-12"},
        {"n": "1e9", "epsilon0": "6"},
    ):
        yield plain | change


def fragment(question: dict[str, str]) -> str:
    return "#v=1&" + "&".join(f"{name}={value}" for name, value in question.items())


def test_the_browsers_own_python_shows_the_same_digits_and_no_byte_leaves_the_page(url: str) -> None:
    pytest.importorskip("playwright")
    from playwright.sync_api import expect, sync_playwright

    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("no Chromium on this machine")
    requested: list[str] = []
    wrong: list[str] = []
    asked = list(questions())
    assert len(asked) == len(catalogue()) + 7
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page()
        page.set_default_timeout(120_000)  # of a busy machine
        expect.set_options(timeout=120_000)
        page.on("request", lambda request: requested.append(request.url))
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("console", lambda message: wrong.append(message.text))
        page.goto(url)  # the number is there before Python is
        expect(page.locator("#epsilon")).to_have_text(answer(DEFAULT)["epsilon"]["shown"], timeout=10_000)
        for question in [DEFAULT, *asked]:
            page.evaluate("(hash) => { location.hash = hash }", fragment(question))
            found = answer(question)
            expect(page.locator("#meaning")).to_have_text(found["meaning"])
            expect(page.locator("#epsilon")).to_have_text(found["epsilon"]["shown"])
        page.locator("#n").fill("many")  # a refusal takes the number away
        expect(page.locator("#refusal")).to_contain_text("must be a whole number")
        expect(page.locator("#epsilon")).to_have_text("–")
        expect(page.locator("#n")).to_have_attribute("aria-invalid", "true")
        page.context.set_offline(True)  # what was loaded is enough
        page.locator("#n").fill("2,000")
        expect(page.locator("#epsilon")).to_have_text(answer(asked[-1] | {"n": "2000"})["epsilon"]["shown"])
        browser.close()
    assert not wrong
    assert all(each.startswith((url, "about:", "blob:")) for each in requested)


@pytest.mark.slow
@pytest.mark.skipif(FIREFOX is None, reason="no Firefox on this machine")
def test_firefoxs_own_python_shows_the_same_digits(url: str) -> None:
    with started() as firefox:
        for question in list(questions())[::4]:
            firefox.goto("about:blank")
            firefox.goto(url + fragment(question))
            firefox.until(
                "document.getElementById('epsilon').textContent === arguments[0]",
                answer(question)["epsilon"]["shown"],
            )


def test_an_engine_that_cannot_start_is_a_sentence(site: Path, tmp_path: Path) -> None:
    pytest.importorskip("playwright")
    from playwright.sync_api import expect, sync_playwright

    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("no Chromium on this machine")
    shutil.copytree(site, tmp_path / "site")
    (tmp_path / "site" / "engine" / "pyodide.asm.wasm").unlink()
    with served(tmp_path / "site") as url, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page()
        page.set_default_timeout(120_000)  # of a busy machine
        page.goto(url + fragment(next(questions())))
        expect(page.locator("#refusal")).to_contain_text("Python could not be started in this browser")
        expect(page.locator("#epsilon")).to_have_text("–")
        browser.close()


def test_wheels_that_are_not_the_pinned_ones_are_refused(site: Path, tmp_path: Path) -> None:
    lock = json.loads((site / "engine" / "pyodide-lock.json").read_text(encoding="utf-8"))["packages"]
    command = [sys.executable, "tools/site.py", str(tmp_path / "site"), "--engine", str(tmp_path)]

    def refused() -> str:
        done = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)
        assert done.returncode == 1
        return done.stderr

    assert f"has no {lock['numpy']['file_name']}" in refused()
    (tmp_path / lock["numpy"]["file_name"]).write_bytes(b"something else")
    assert f"SHA-256 is not {lock['numpy']['sha256']}" in refused()


def golden(mode: str, file: Path) -> subprocess.CompletedProcess[str]:
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-n",
        "0",
        "-p",
        "web.replay",
        "-p",
        "no:cacheprovider",
        "--hypothesis-seed=0",
        "-s",
    ]
    environment = {**os.environ, "SHUFFLEDP_REPLAY": f"{mode}:{file}"}
    environment["PYTHONPATH"] = os.pathsep.join([str(ROOT / "tests"), str(ROOT / "src")])
    tests = ["tests/accounting/test_golden.py", "tests/accounting/test_brute_force_participation.py"]
    return subprocess.run(
        [*command, *tests], cwd=ROOT, env=environment, check=False, capture_output=True, text=True
    )


@pytest.mark.slow
def test_the_golden_numbers_hold_with_the_answers_of_the_sites_engine(site: Path, tmp_path: Path) -> None:
    questions, answers = tmp_path / "questions", tmp_path / "answers"
    recorded = golden("record", questions)
    assert recorded.returncode == 0, recorded.stdout
    command = ["node", str(HERE / "wasm.mjs"), str(site), str(HERE), str(questions), str(answers)]
    subprocess.run(command, check=True)
    asked, told = pickle.loads(questions.read_bytes()), pickle.loads(answers.read_bytes())
    assert asked.keys() == told.keys()
    replayed = golden("replay", answers)
    assert replayed.returncode == 0, replayed.stdout
    found = re.search(r"replayed (\d+), answered here (\d+)", replayed.stdout)
    assert found
    assert int(found[1]) >= len(asked)
    assert int(found[2]) < int(found[1])
    print(f"{len(asked)} questions, {found[0]}")
