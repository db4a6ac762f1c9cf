"""Both stores: a file, and a real PostgreSQL server from the package pgserver."""

import itertools
import shutil
import signal
import subprocess
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from service.running import Setting

_NAMES = itertools.count()
pytest.importorskip("fcntl", reason="the shuffler runs on POSIX systems")


@pytest.fixture(scope="session")
def postgres() -> Iterator[Any]:
    """A server of its own for the tests of this process.

    Not in pytest's folder: any other pytest that starts closes that to the user who runs the server."""
    pgserver = pytest.importorskip("pgserver", reason="PostgreSQL for the tests comes with pgserver")
    pytest.importorskip("psycopg")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # where it keeps its sockets
        folder = Path(tempfile.mkdtemp(prefix="shuffledp-postgres-"))
        server = patiently(lambda attempt: pgserver.get_server(folder / str(attempt // 4), cleanup_mode=None))
    yield server
    crash(server)  # nothing of it is wanted any more
    shutil.rmtree(folder, ignore_errors=True)


def crash(server: Any) -> None:
    """PostgreSQL ends at once: what is not in its log is lost."""
    psutil = pytest.importorskip("psutil")  # which pgserver needs
    with suppress(psutil.NoSuchProcess):
        process = psutil.Process(server.get_pid())
        process.send_signal(signal.SIGQUIT)
        while process.status() != psutil.STATUS_ZOMBIE:
            time.sleep(0.02)


def patiently(start: Callable[[int], Any]) -> Any:
    """The package gives a start ten seconds; a busy machine that recovers a database needs a minute."""
    for attempt in range(12):
        with suppress(subprocess.SubprocessError, AssertionError):  # not yet, or still not ready
            return start(attempt)
        time.sleep(attempt)
    raise TimeoutError("PostgreSQL did not start")


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.slow)])
def each(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Setting]:
    """The same as ``setting``, for what PostgreSQL repeats: that is left to the slow tests."""
    yield from _on(request, tmp_path)


@pytest.fixture(params=["sqlite", "postgres"])
def setting(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Setting]:
    """An empty shuffler on each store; its processes end with the test."""
    yield from _on(request, tmp_path)


def _on(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Setting]:
    address = None
    if request.param == "postgres":
        server = request.getfixturevalue("postgres")
        name = f"test{next(_NAMES)}"
        server.psql(f"CREATE DATABASE {name};")
        address = server.get_uri(name)
    yield from _ended(Setting(tmp_path, address))


@pytest.fixture
def embedded(tmp_path: Path) -> Iterator[Setting]:
    """An empty shuffler on a file."""
    yield from _ended(Setting(tmp_path))


def _ended(setting: Setting) -> Iterator[Setting]:
    yield setting
    for one in setting.running:
        if one.process.poll() is None:
            one.kill()
