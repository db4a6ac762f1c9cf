"""The calculator on this machine: the page and its answers, for this machine's browser alone.

Questions are computed one at a time, in a process of their own: one that takes too long is ended, and so is
one that the same page has replaced by a newer one. Other sites cannot ask: ``Host`` and
``Origin`` are checked.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from typing import Any

from shuffledp import __version__
from shuffledp.web._answer import DEFAULT, answer, catalogue

LIMIT = 60.0
"""Seconds for one part of an answer."""
_MOST_WAITING = 8  # questions of other pages
_MOST_BYTES = 10_000  # of a question
_TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
POLICY = (
    "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; img-src 'self'; "
    "worker-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'"
)
_HEADERS = {
    "Content-Security-Policy": f"{POLICY}; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_TOO_LONG = (
    "This takes longer than {limit:g} seconds, too long for a page. The command line takes its time: {shell}"
)
_BUSY = "Another page is being answered: please wait a little."
_REPLACED = "A newer question took the place of this one."


class Calculator:
    """One process that computes, one question at a time."""

    def __init__(self, limit: float = LIMIT) -> None:
        self.limit = limit
        self._turn = threading.Lock()
        self._waiting = threading.Semaphore(_MOST_WAITING)
        self._process: subprocess.Popen[str] | None = None
        self._asker = ""
        self._why = ""

    def ask(self, question: dict[str, Any]) -> dict[str, Any]:
        """The answer, or a refusal: too long, too many are waiting, or replaced."""
        asker = str(question.pop("page", ""))
        if asker and asker == self._asker:
            self._end(_REPLACED)
        if not self._waiting.acquire(blocking=False):
            return {"refusal": _BUSY, "knob": ""}
        try:
            with self._turn:
                self._asker, self._why = asker, ""
                try:
                    return self._computed(question)
                finally:
                    self._asker = ""
        finally:
            self._waiting.release()

    def _computed(self, question: dict[str, Any]) -> dict[str, Any]:
        process = self._started()
        timer = threading.Timer(self.limit, self._end, [_TOO_LONG])
        timer.start()
        line = ""
        try:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(json.dumps(question) + "\n")
            process.stdin.flush()
            line = process.stdout.readline()
        except OSError:
            pass  # it was ended
        finally:
            timer.cancel()
        if line:
            found: dict[str, Any] = json.loads(line)
            return found
        self.close()
        why = self._why or "The computation ended unexpectedly, perhaps for want of memory."
        return {"refusal": why.format(limit=self.limit, shell=_shell(question)), "knob": ""}

    def _started(self) -> subprocess.Popen[str]:
        if self._process is None or self._process.poll() is not None:
            command = [sys.executable, "-c", "from shuffledp.web._server import compute; compute()"]
            pipe = subprocess.PIPE
            # In a group of its own: Ctrl-C is for the server, which then ends it.
            self._process = subprocess.Popen(
                command, stdin=pipe, stdout=pipe, text=True, start_new_session=True
            )
        return self._process

    def _end(self, why: str) -> None:
        self._why = why
        if self._process is not None:
            self._process.kill()

    def close(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.communicate()


def compute() -> None:
    """Answer the questions of standard input, a line each, until it ends."""
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line)), allow_nan=False), flush=True)


def _shell(question: dict[str, Any]) -> str:
    from shuffledp.errors import QuestionError
    from shuffledp.web._question import read, shell

    try:
        return shell(read(question)).strip()
    except QuestionError:
        return "shuffledp epsilon --help"


def page(first: dict[str, Any]) -> str:
    """The page with its first answer in it: there is a number before any engine runs."""
    html = (files("shuffledp.web") / "page" / "index.html").read_text(encoding="utf-8")
    known = {"version": __version__, "catalogue": catalogue(), "question": DEFAULT, "answers": first}
    return html.replace("{}", json.dumps(known).replace("<", "\\u003c"), 1)


class _Handler(BaseHTTPRequestHandler):
    server: Server
    server_version = "shuffledp"
    sys_version = ""
    timeout = 30  # of a connection that says nothing

    def do_GET(self) -> None:
        name = self.path.partition("?")[0].removeprefix("/") or "index.html"
        if not self._allowed():
            return
        if name == "index.html":
            self._send(HTTPStatus.OK, "text/html", page(self.server.first).encode())
        elif name in self.server.assets:
            kind = _TYPES[name[name.rindex(".") :]]
            self._send(HTTPStatus.OK, kind, (files("shuffledp.web") / "page" / name).read_bytes())
        else:
            self._send(HTTPStatus.NOT_FOUND, "text/plain", b"There is no such page.")

    def do_POST(self) -> None:
        if not self._allowed():
            return
        size = self.headers.get("Content-Length", "")
        kind = self.headers.get("Content-Type", "").partition(";")[0]
        if (
            self.path != "/answer"
            or kind != "application/json"
            or not size.isdecimal()
            or int(size) > _MOST_BYTES
        ):
            self.close_connection = True
            self._send(
                HTTPStatus.BAD_REQUEST, "text/plain", b"A question is a small JSON object, posted to /answer."
            )
            return
        try:
            question = json.loads(self.rfile.read(int(size)))
        except (ValueError, RecursionError):
            question = None
        asked = question if isinstance(question, dict) else {"ask": "?"}
        found = self.server.calculator.ask(asked)
        self._send(HTTPStatus.OK, "application/json", json.dumps(found).encode())

    def _allowed(self) -> bool:
        """Only this machine's own page may ask: no other site, no other name for this address."""
        port = self.server.server_address[1]
        hosts = {f"{name}:{port}" for name in ("127.0.0.1", "localhost")}
        host, origin = self.headers.get("Host", ""), self.headers.get("Origin")
        if host in hosts and origin in (None, f"http://{host}"):
            return True
        self.close_connection = True
        self._send(HTTPStatus.FORBIDDEN, "text/plain", b"This calculator answers to its own page alone.")
        return False

    def _send(self, status: HTTPStatus, kind: str, body: bytes) -> None:
        try:
            self.send_response(status)
            headers = {**_HEADERS, "Content-Type": f"{kind}; charset=utf-8", "Content-Length": str(len(body))}
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)
        except ConnectionError:
            self.close_connection = True  # the page went away

    def log_message(self, format: str, *args: Any) -> None:
        """Questions are nobody's business."""


class Server(ThreadingHTTPServer):
    """Serves until ``shutdown``; ``server_close`` ends the computation too."""

    daemon_threads = True

    def __init__(self, port: int = 0, *, limit: float = LIMIT) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.calculator = Calculator(limit)
        self.first = {"epsilon": answer(DEFAULT)}
        folder = files("shuffledp.web") / "page"
        self.assets = {file.name for file in folder.iterdir() if "." in file.name}

    @property
    def url(self) -> str:
        """Where the page is."""
        return f"http://127.0.0.1:{self.server_address[1]}/"

    def server_close(self) -> None:
        super().server_close()
        if hasattr(self, "calculator"):  # not if the port was taken
            self.calculator.close()
