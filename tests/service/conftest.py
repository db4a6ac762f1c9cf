"""Both stores: a file, and a real PostgreSQL server from the package pgserver."""

import itertools
import subprocess
import warnings
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from service.running import Setting

_NAMES = itertools.count()
pytest.importorskip("fcntl", reason="the shuffler runs on POSIX systems")


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A server of its own for the tests of this process."""
    pgserver = pytest.importorskip("pgserver", reason="PostgreSQL for the tests comes with pgserver")
    pytest.importorskip("psycopg")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # where it keeps its sockets
        server = started(pgserver, tmp_path_factory.mktemp("postgres"))
    yield server
    server.cleanup()


def started(pgserver: Any, folder: Path) -> Any:
    """The package gives a start ten seconds, which a busy machine may need more than once."""
    for attempt in range(5):
        with suppress(subprocess.SubprocessError):
            return pgserver.get_server(folder / str(attempt // 2))
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
