"""The calculator in a second browser: Debian's Firefox."""

import threading
from collections.abc import Iterator

import pytest
from web.firefox import FIREFOX, Firefox, started

from shuffledp.web import answer
from shuffledp.web._answer import DEFAULT
from shuffledp.web._server import Server

pytestmark = pytest.mark.skipif(FIREFOX is None, reason="no Firefox on this machine")
SMALL = {"krr": "4", "epsilon0": "1", "n": "3000", "delta": "1e-5"}
LINK = "#v=1&" + "&".join(f"{name}={value}" for name, value in SMALL.items())
SHOWS = "document.getElementById('epsilon').textContent === arguments[0]"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    made = Server()
    threading.Thread(target=made.serve_forever, daemon=True).start()
    yield made
    made.shutdown()
    made.server_close()


@pytest.fixture(scope="module")
def firefox() -> Iterator[Firefox]:
    with started() as made:
        yield made


def test_firefox_opens_links_takes_keys_draws_refuses_and_finds_targets(
    server: Server, firefox: Firefox
) -> None:
    firefox.goto(server.url)
    firefox.until(SHOWS, answer(DEFAULT)["epsilon"]["shown"])
    firefox.goto("about:blank")
    firefox.goto(server.url + LINK)
    shown = answer(SMALL)["epsilon"]["shown"]
    firefox.until(SHOWS, shown)
    firefox.until("document.querySelector('#honest tbody tr')")  # the last part
    assert firefox.run("return document.querySelector('#curve svg .line').getTotalLength()") > 100.0
    assert shown in firefox.text("#statements-panel-0") + firefox.text("#codes-panel-0")
    firefox.type("#n", "2,000")
    firefox.until(SHOWS, answer(SMALL | {"n": "2000"})["epsilon"]["shown"])
    firefox.type("#wanted", "0.2")
    firefox.run("document.getElementById('find').click()")
    firefox.until("!document.getElementById('use').hidden")
    firefox.run("document.getElementById('use').click()")
    firefox.until("Number(document.getElementById('epsilon').textContent) <= 0.2")
    firefox.run("history.back()")
    firefox.until(SHOWS, answer(SMALL | {"n": "2000"})["epsilon"]["shown"])
    firefox.type("#n", "many")
    firefox.until("document.getElementById('refusal').textContent.includes('whole number')")
    assert firefox.text("#epsilon") == "–"
    assert firefox.run("return document.getElementById('n').getAttribute('aria-invalid')") == "true"


def test_firefox_takes_a_hostile_link_for_text_and_scrolls_nothing_sideways(
    server: Server, firefox: Firefox
) -> None:
    firefox.ask("WebDriver:SetWindowRect", width=500, height=800)  # Firefox has no narrower windows
    firefox.goto("about:blank")
    firefox.goto(server.url + "#v=1&krr=5&epsilon0=3&n=<img src=x onerror=document.body.remove()>&delta=1e-7")
    firefox.until("document.getElementById('refusal').textContent.includes('<img')")
    assert firefox.run("return document.querySelectorAll('main img').length") == 0
    wide = "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert firefox.run(wide) <= 0
