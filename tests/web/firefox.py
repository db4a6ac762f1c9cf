"""Debian's Firefox without a driver: Marionette, which is built in, speaks JSON over a local socket."""

import json
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

FIREFOX = shutil.which("firefox-esr") or shutil.which("firefox")
PREFERENCES = """
user_pref("marionette.port", 0);
user_pref("app.update.auto", false);
user_pref("datareporting.policy.dataSubmissionEnabled", false);
user_pref("browser.shell.checkDefaultBrowser", false);
user_pref("browser.startup.homepage_override.mstone", "ignore");
"""
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"  # the name that WebDriver gives to references
WAIT = 60.0


class Firefox:
    """A window that goes to pages, runs scripts and types."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=2 * WAIT)
        self._stream = self._socket.makefile("rb")
        self._sent = 0
        self._message()  # who it is
        self.ask("WebDriver:NewSession", capabilities={"alwaysMatch": {"acceptInsecureCerts": False}})

    def _message(self) -> Any:
        size = b""
        while not size.endswith(b":"):
            size += self._stream.read(1)
        return json.loads(self._stream.read(int(size[:-1])))

    def ask(self, command: str, **parameters: Any) -> Any:
        """The result of a command of WebDriver."""
        self._sent += 1
        body = json.dumps([0, self._sent, command, parameters]).encode()
        self._socket.sendall(b"%d:%s" % (len(body), body))
        _, _, error, result = self._message()
        assert error is None, error
        return result.get("value") if isinstance(result, dict) else result

    def close(self) -> None:
        self._stream.close()
        self._socket.close()

    def goto(self, url: str) -> None:
        self.ask("WebDriver:Navigate", url=url)

    def run(self, script: str, *args: Any) -> Any:
        """What a function's body returns on the page."""
        return self.ask("WebDriver:ExecuteScript", script=script, args=list(args), sandbox=None)

    def text(self, selector: str) -> str:
        return str(self.run("return document.querySelector(arguments[0]).textContent", selector))

    def type(self, selector: str, text: str) -> None:
        """Real keys, in place of what the field holds."""
        found = self.ask("WebDriver:FindElement", using="css selector", value=selector)[ELEMENT]
        self.ask("WebDriver:ElementClear", id=found)
        self.ask("WebDriver:ElementSendKeys", id=found, text=text)

    def until(self, script: str, *args: Any) -> None:
        """Wait until an expression holds on the page."""
        end = time.monotonic() + WAIT
        while not self.run(f"return Boolean({script})", *args):
            assert time.monotonic() < end, f"still not: {script}, {args}"
            time.sleep(0.05)


@contextmanager
def started() -> Iterator[Firefox]:
    """A Firefox of its own, with an empty profile, headless."""
    assert FIREFOX is not None
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        (Path(profile) / "user.js").write_text(PREFERENCES)
        command = [FIREFOX, "--headless", "--marionette", "--no-remote", "--profile", profile]
        quiet = subprocess.DEVNULL
        process = subprocess.Popen(command, stdout=quiet, stderr=quiet)
        try:
            port = Path(profile) / "MarionetteActivePort"
            end = time.monotonic() + WAIT
            while not (port.exists() and port.read_text().strip()):
                assert process.poll() is None, "Firefox ended"
                assert time.monotonic() < end, "Firefox does not start"
                time.sleep(0.05)
            with closing(Firefox(int(port.read_text()))) as firefox:
                yield firefox
        finally:
            process.terminate()
            process.wait(30)
