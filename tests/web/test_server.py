"""``shuffledp web``: a real server process and real requests."""

import http.client
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest

from shuffledp.web._server import Server

QUESTION = {"krr": "4", "epsilon0": "1", "n": "1000", "delta": "1e-5"}
SLOW = {"gaussian": "0.3", "levels": "64", "n": "1e6", "rounds": "100000", "delta": "1e-12"}


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    threading.Thread(target=made.serve_forever, daemon=True).start()
    yield made
    made.shutdown()
    made.server_close()


def asked(url: str, body: bytes | None = None, **headers: str) -> tuple[int, http.client.HTTPMessage, bytes]:
    """GET /, or POST /answer with a body; what is sent as headers replaces what a browser would send."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=60)
    sent = {
        "Content-Type": "application/json",
        **{name.replace("_", "-"): value for name, value in headers.items()},
    }
    connection.request("GET" if body is None else "POST", "/" if body is None else "/answer", body, sent)
    response = connection.getresponse()
    try:
        return response.status, response.headers, response.read()
    finally:
        connection.close()


def posted(url: str, question: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(asked(url, json.dumps(question).encode())[2])
    return found


def test_the_page_comes_with_a_number_and_a_policy_that_allows_nothing_foreign(server: Server) -> None:
    status, headers, body = asked(server.url)
    assert status == 200
    assert b'"shown": "' in body
    policy = headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe-inline" not in policy
    assert b"style=" not in body
    assert b"<script>" not in body


def test_only_the_calculators_own_page_may_ask(server: Server) -> None:
    body = json.dumps(QUESTION).encode()
    own = server.url.rstrip("/")
    assert asked(server.url, body, Origin=own)[0] == 200
    assert asked(server.url, body, Origin="https://evil.example")[0] == 403
    assert asked(server.url, body, Origin="null")[0] == 403
    assert asked(server.url, body, Host="evil.example")[0] == 403
    assert asked(server.url, None, Host="evil.example:80")[0] == 403
    assert asked(server.url, body, Content_Type="text/plain")[0] == 400
    assert asked(server.url, b"{" + b" " * 20_000)[0] == 400


def test_what_is_no_json_is_refused_with_a_sentence(server: Server) -> None:
    for body in (b"", b"[1]", b"{", b"\xff", b"[" * 9000):
        status, _, answer = asked(server.url, body)
        assert status == 200
        assert "refusal" in json.loads(answer)


def test_work_that_takes_too_long_is_ended_and_the_command_is_handed_over() -> None:
    server = Server(limit=1.5)
    try:
        found = server.calculator.ask(dict(SLOW))
        assert "shuffledp epsilon --gaussian 0.3" in found["refusal"]
        server.calculator.limit = 60.0
        assert server.calculator.ask(dict(QUESTION))["epsilon"]["upper"] > 0.0
    finally:
        server.server_close()


def test_a_newer_question_of_the_same_page_ends_the_older_one_and_others_wait(server: Server) -> None:
    found: dict[str, dict[str, Any]] = {}

    def ask(name: str, question: dict[str, Any], page: str) -> threading.Thread:
        thread = threading.Thread(
            target=lambda: found.update({name: posted(server.url, {**question, "page": page})})
        )
        thread.start()
        time.sleep(0.5)
        return thread

    threads = [ask("old", SLOW, "a"), ask("other", QUESTION, "b")]
    assert not found  # one at a time: the other page waits
    threads.append(ask("new", QUESTION, "a"))
    for thread in threads:
        thread.join(60)
    assert "newer question" in found["old"]["refusal"]
    assert found["new"]["epsilon"] == found["other"]["epsilon"]


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_the_command_stops_cleanly_and_leaves_no_process(stop: signal.Signals) -> None:
    command = [sys.executable, "-m", "shuffledp", "web", "--no-browser", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        url = process.stdout.readline().split()[2]
        assert posted(url, QUESTION)["epsilon"]["upper"] > 0.0
        children = subprocess.run(
            ["ps", "-o", "pid=", "--ppid", str(process.pid)], capture_output=True, text=True, check=False
        )
        process.send_signal(stop)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 0
    assert errors == "stopped\n"
    assert children.stdout.split()
    for child in children.stdout.split():
        with pytest.raises(ProcessLookupError):
            os.kill(int(child), 0)


def test_a_port_that_is_taken_is_an_error_of_one_line(server: Server) -> None:
    port = urlsplit(server.url).port
    command = [sys.executable, "-m", "shuffledp", "web", "--no-browser", "--port", str(port)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "--port 0 takes a free one" in done.stderr
    assert done.stderr.count("\n") == 1
