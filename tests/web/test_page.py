"""The calculator in a real browser: Debian's Chromium, by Playwright."""

import hashlib
import json
import shlex
import shutil
import subprocess
import tarfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from click.testing import CliRunner

from shuffledp._digits import rounded_down, rounded_up
from shuffledp.cli.main import cli
from shuffledp.web import answer
from shuffledp.web._answer import DEFAULT, catalogue
from shuffledp.web._server import Server

pytest.importorskip("playwright")
from playwright.sync_api import Browser, Page, Route, expect, sync_playwright

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")
SMALL = {"krr": "4", "epsilon0": "1", "n": "3000", "delta": "1e-5"}
AXE_SHA256 = "0f2b4d7dcdf7d1219df8d1959ad68e565f51d14c3f0d88bb71cd59abeb956292"
NPM = Path(__file__).parents[2] / "build" / "npm"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    made = Server()
    threading.Thread(target=made.serve_forever, daemon=True).start()
    yield made
    made.shutdown()
    made.server_close()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        made = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield made
        made.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A page on which nothing may go wrong: no error, no message, no request to elsewhere."""
    context = browser.new_context(permissions=["clipboard-read", "clipboard-write"])
    made = context.new_page()
    made.set_default_timeout(60_000)
    expect.set_options(timeout=60_000)
    wrong: list[str] = []
    made.on("console", lambda message: wrong.append(message.text))
    made.on("pageerror", lambda error: wrong.append(str(error)))
    made.on(
        "request", lambda request: wrong.append(request.url) if "//127.0.0.1:" not in request.url else None
    )
    yield made
    context.close()
    assert not wrong


def link(question: dict[str, str]) -> str:
    return "#v=1&" + "&".join(f"{name}={quote(value)}" for name, value in question.items())


def settled(page: Page, shown: str) -> None:
    expect(page.locator("#epsilon")).to_have_text(shown)
    expect(page.locator("#honest tbody tr")).not_to_have_count(0)


def test_the_default_number_is_there_before_any_engine_and_is_the_engines(server: Server, page: Page) -> None:
    waiting: list[Route] = []
    page.route("**/answer", lambda route: waiting.append(route))
    page.goto(server.url)
    shown = answer(DEFAULT)["epsilon"]["shown"]
    expect(page.locator("#epsilon")).to_have_text(shown)
    for route in waiting:
        route.continue_()
    page.unroute("**/answer")
    expect(page.locator("#meaning")).not_to_be_empty()
    page.locator("#rounds").fill("13")
    expect(page.locator("#epsilon")).not_to_have_text(shown)
    page.locator("#rounds").fill("12")
    expect(page.locator("#epsilon")).to_have_text(shown)  # now by the engine


def test_every_randomizer_can_be_chosen_and_shows_the_number_of_the_command_line(
    server: Server, page: Page
) -> None:
    def only_the_number(route: Route) -> None:
        """The other parts are asked in other tests."""
        if json.loads(route.request.post_data or "")["ask"] == "epsilon":
            route.continue_()
        else:
            route.fulfill(json={"refusal": "Not asked here.", "knob": ""})

    page.route("**/answer", only_the_number)
    page.goto(server.url + link({"krr": "2", "epsilon0": "1", "n": "40", "delta": "1e-4"}))
    page.evaluate("document.getElementById('more').open = true")
    small = {"k": "4", "epsilon0": "1", "dimension": "8", "sigma": "2", "levels": "1"}
    for entry in catalogue():
        option = entry["option"]
        page.locator("#randomizer").select_option(option)
        for name in (one["name"] for one in entry["parameters"]):
            if not page.locator(f"#{name}").input_value() or name in ("k", "dimension", "sigma"):
                page.locator(f"#{name}").fill(small.get(name, ""))
        expect(page.locator("#codes-panel-1")).to_contain_text(f"--{option}")
        shell = shlex.split(page.locator("#codes-panel-1").text_content() or "")
        told = json.loads(CliRunner().invoke(cli, [*shell[1:], "--json"], prog_name=shell[0]).stdout)
        expect(page.locator("#epsilon")).to_have_text(rounded_up(told["upper"]))
        expect(page.locator("#gauge")).to_contain_text(
            f"between {rounded_down(told['lower'])} and {rounded_up(told['upper'])}"
        )
        assert told["inputs"]["n"] == 40


def test_a_link_brings_the_question_back_and_the_back_button_the_one_before(
    server: Server, page: Page
) -> None:
    page.goto(server.url + link(SMALL))
    first = answer(SMALL)["epsilon"]["shown"]
    settled(page, first)
    page.locator("#n").fill("2,000")
    second = answer(SMALL | {"n": "2000"})["epsilon"]["shown"]
    settled(page, second)
    page.locator("#copy-link").click()
    copied = page.evaluate("navigator.clipboard.readText()")
    page.go_back()
    settled(page, first)
    expect(page.locator("#n")).to_have_value("3,000")
    page.goto("about:blank")
    page.goto(copied)
    settled(page, second)
    expect(page.locator("#made")).to_be_empty()
    page.goto("about:blank")
    page.goto(copied.replace(f"made={second}", "made=0.5").replace("by=", "by=0.0."))
    expect(page.locator("#made")).to_contain_text("shuffledp 0.0.")
    expect(page.locator("#made")).to_contain_text("which certified 0.5.")


HOSTILE = [
    "#v=1&krr=5&epsilon0=3&n=<img src=x onerror=alert(1)>&delta=1e-7",
    "#v=1&krr=%3Cscript%3Ealert(1)%3C/script%3E&epsilon0=3&n=10&delta=1e-7",
    "#v=1&krr=5&epsilon0=3&n=10&delta=1e-7&made=<b>0</b>&by=%22%3E<svg onload=alert(1)>",
    "#v=1&__proto__=1&constructor=2&krr=5&epsilon0=3&n=10&delta=1e-7",
    "#v=9&krr=5",
    "#v=1&krr=5&binary=1&epsilon0=3&n=10&delta=1e-7",
    "#%E0%A4%A&&&=&krr",
    "#v=1&krr=5&epsilon0=1e308&n=1e308&delta=1e-7",
    "#v=1&krr=5&epsilon0=3&n=10&delta=1e-7&" + "x" * 100_000,
]


def test_a_hostile_link_is_a_sentence_or_an_answer_and_never_markup(server: Server, page: Page) -> None:
    page.on("dialog", lambda dialog: pytest.fail(dialog.message))
    for fragment in HOSTILE:
        page.goto("about:blank")
        page.goto(server.url + fragment)
        expect(page.locator("#refusal:not(:empty), #meaning:not(:empty)")).to_have_count(1)
        assert page.locator("main img, main script, main svg[onload], main b b").count() == 0
        if page.locator("#refusal").text_content():
            expect(page.locator("#epsilon")).to_have_text("–")
            assert not page.locator("#meaning").text_content()


def test_what_is_copied_is_the_librarys_statement_its_record_and_code_that_runs(
    server: Server, page: Page
) -> None:
    page.goto(server.url + link(SMALL))
    found = answer(SMALL)
    settled(page, found["epsilon"]["shown"])

    def copied(tabs: str, index: int) -> str:
        page.locator(f"#{tabs}-tab-{index}").click()
        button = page.locator(f"#{tabs} > button")
        button.click()
        expect(button).to_have_text("Copied")
        return str(page.evaluate("navigator.clipboard.readText()"))

    assert copied("statements", 0) == found["statement"]["plain"]
    assert copied("statements", 1) == found["statement"]["formal"]
    assert copied("statements", 2) == found["registry"]
    names: dict[str, Any] = {}
    exec(copied("codes", 0), names)
    assert float(names["bound"]) == found["epsilon"]["upper"]
    assert copied("codes", 1) == found["shell"]


def test_while_a_slider_is_dragged_no_old_number_is_shown_and_the_last_question_wins(
    server: Server, page: Page
) -> None:
    page.goto(server.url + link(SMALL))
    settled(page, answer(SMALL)["epsilon"]["shown"])
    seen = page.evaluate(
        """async () => {
            const slider = document.querySelector('#n').closest('.knob').querySelector('[type=range]');
            const seen = [];
            for (let value = 300; value <= 700; value += 20) {
                slider.value = String(value);
                slider.dispatchEvent(new Event('input'));
                seen.push(document.getElementById('epsilon').textContent);
                seen.push(document.getElementById('meaning').textContent);
                await new Promise((done) => setTimeout(done, 10));
            }
            return seen;
        }"""
    )
    assert set(seen) == {"…", ""}
    n = page.locator("#n").input_value()
    settled(page, answer(SMALL | {"n": n})["epsilon"]["shown"])


def test_a_refusal_takes_the_number_away_and_points_at_its_knob(server: Server, page: Page) -> None:
    page.goto(server.url + link(SMALL))
    settled(page, answer(SMALL)["epsilon"]["shown"])
    page.locator("#n").fill("many")
    expect(page.locator("#refusal")).to_contain_text("People in one round must be a whole number")
    expect(page.locator("#epsilon")).to_have_text("–")
    expect(page.locator("#n")).to_have_attribute("aria-invalid", "true")
    assert not page.locator("#curve svg").count()
    page.locator("#n").fill("1.2k")
    settled(page, answer(SMALL | {"n": "1200"})["epsilon"]["shown"])
    expect(page.locator("#n")).to_have_attribute("aria-invalid", "false")


def test_people_who_flip_coins_are_one_tick_away_and_the_limit_stands_beside_the_answer(
    server: Server, page: Page
) -> None:
    question = {**SMALL, "population": "90000"}
    page.goto(server.url + link(question))
    settled(page, answer(question)["epsilon"]["shown"])
    page.locator("#poisson").check()
    found = answer({**question, "poisson": "1"})
    settled(page, found["epsilon"]["shown"])
    assert "poisson=1" in page.evaluate("location.hash")
    expect(page.locator("#gauge")).to_contain_text(f"Limit of many people: {found['limit']}")
    expect(page.locator("#compare-text")).to_contain_text("coins of their own")
    page.locator("#population").fill("")
    expect(page.locator("#population-wrong")).to_contain_text("how many are they?")


def test_a_server_that_is_gone_is_a_sentence(server: Server, browser: Browser) -> None:
    page = browser.new_page()
    page.set_default_timeout(60_000)
    page.goto(server.url + link(SMALL))
    settled(page, answer(SMALL)["epsilon"]["shown"])
    page.route("**/answer", lambda route: route.fulfill(status=503, body="gone", content_type="text/plain"))
    page.locator("#n").fill("1100")
    expect(page.locator("#refusal")).to_contain_text("Is it still running?")
    page.close()


def test_a_target_is_found_and_used_by_keyboard_alone(server: Server, page: Page) -> None:
    page.goto(server.url + link(SMALL))
    expect(page.locator("#meaning")).not_to_be_empty()  # other parts are still computed
    page.locator("#wanted").focus()
    page.keyboard.press("Control+a")
    page.keyboard.type("0.2")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator("#found")).to_contain_text("epsilon is at most 0.")
    page.locator("#use").focus()
    page.keyboard.press("Enter")
    expect(page.locator("#meaning")).not_to_be_empty()
    assert float(page.locator("#epsilon").text_content() or "nan") <= 0.2
    page.locator("#statements-tab-0").focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator("#statements-tab-1")).to_be_focused()
    expect(page.locator("#statements-panel-1")).to_be_visible()


@pytest.fixture(scope="session")
def axe() -> str:
    """The program of axe-core, fetched by npm once."""
    if shutil.which("npm") is None:
        pytest.skip("no npm on this machine")
    archive = NPM / "axe-core-4.10.3.tgz"
    if not archive.exists():
        NPM.mkdir(parents=True, exist_ok=True)
        done = subprocess.run(
            ["npm", "pack", "axe-core@4.10.3"], cwd=NPM, capture_output=True, text=True, check=False
        )
        if done.returncode:
            pytest.skip("axe-core cannot be fetched")
    assert hashlib.sha256(archive.read_bytes()).hexdigest() == AXE_SHA256
    with tarfile.open(archive) as files:
        file = files.extractfile("package/axe.min.js")
        assert file is not None
        return file.read().decode()


@pytest.mark.parametrize(("width", "scheme"), [(390, "dark"), (1280, "light")])
def test_axe_finds_nothing_and_nothing_scrolls_sideways(
    server: Server, browser: Browser, axe: str, width: int, scheme: Any
) -> None:
    context = browser.new_context(
        viewport={"width": width, "height": 800},
        color_scheme=scheme,
        reduced_motion="reduce",
        bypass_csp=True,
    )
    page = context.new_page()
    page.set_default_timeout(60_000)
    page.goto(server.url + link(SMALL | {"n": "100", "epsilon0": "2", "delta": "1e-3"}))
    expect(page.locator("#honest tbody tr")).not_to_have_count(0, timeout=60_000)
    expect(page.locator("#compare s")).not_to_have_count(0)
    page.evaluate(axe)
    found = json.loads(page.evaluate("axe.run().then((found) => JSON.stringify(found.violations))"))
    assert [(one["id"], [node["html"] for node in one["nodes"]]) for one in found] == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    context.close()


def test_on_paper_there_are_the_answer_and_all_texts_but_no_knobs(server: Server, page: Page) -> None:
    page.goto(server.url + link(SMALL))
    settled(page, answer(SMALL)["epsilon"]["shown"])
    page.emulate_media(media="print")
    expect(page.locator("#knobs")).to_be_hidden()
    expect(page.locator("#epsilon")).to_be_visible()
    for index in range(3):
        expect(page.locator(f"#statements-panel-{index}")).to_be_visible()


def test_a_page_opened_as_a_file_says_what_to_do(browser: Browser) -> None:
    from importlib.resources import files

    page = browser.new_page()
    page.set_default_timeout(60_000)
    page.goto(f"file://{files('shuffledp.web')}/page/index.html")
    expect(page.locator(".fallback")).to_be_visible()
    expect(page.locator(".fallback")).to_contain_text("shuffledp web")
    page.close()
