"""The public site: the same numbers in the browser's own Python, and the golden numbers on that build."""

import functools
import http.server
import os
import pickle
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from shuffledp.web import answer
from shuffledp.web._answer import DEFAULT, catalogue

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        shutil.which("node") is None or shutil.which("npm") is None, reason="needs node and npm"
    ),
]
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


@pytest.fixture
def url(site: Path) -> Iterator[str]:
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(site))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


def test_the_browsers_own_python_shows_the_same_digits_for_every_randomizer(url: str) -> None:
    pytest.importorskip("playwright")
    from playwright.sync_api import expect, sync_playwright

    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("no Chromium on this machine")
    requested: list[str] = []
    wrong: list[str] = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page()
        page.on("request", lambda request: requested.append(request.url))
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.goto(url)
        expect(page.locator("#epsilon")).to_have_text(answer(DEFAULT)["epsilon"]["shown"])
        for entry in catalogue():
            small = {"k": "4", "epsilon0": "1", "dimension": "8", "sigma": "2"}
            needed = {one["name"]: small[one["name"]] for one in entry["parameters"] if not one["optional"]}
            if entry["option"] in ("laplace", "gaussian"):
                needed["levels"] = "2"
            own = needed.pop(entry["takes"]) if entry["takes"] else "1"
            question = {entry["option"]: own, **needed, "n": "1200", "delta": "1e-3"}
            page.goto("about:blank")
            page.goto(url + "#v=1&" + "&".join(f"{name}={value}" for name, value in question.items()))
            shown = answer(question)["epsilon"]["shown"]
            expect(page.locator("#epsilon")).to_have_text(shown, timeout=120_000)
        browser.close()
    assert not wrong
    assert all(each.startswith((url, "about:", "blob:")) for each in requested)


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
        "-s",
    ]
    environment = {**os.environ, "SHUFFLEDP_REPLAY": f"{mode}:{file}"}
    environment["PYTHONPATH"] = os.pathsep.join([str(ROOT / "tests"), str(ROOT / "src")])
    test = "tests/accounting/test_golden.py"
    return subprocess.run(
        [*command, test], cwd=ROOT, env=environment, check=False, capture_output=True, text=True
    )


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
