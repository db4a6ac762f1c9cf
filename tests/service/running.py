"""A shuffler in a process of its own, and clients that send it bodies."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shuffledp as sdp
from shuffledp.service.documents import Signed, Task
from shuffledp.service.keys import AnalystKey, KeyRing
from shuffledp.service.sealing import PublicKey, new_id, seal
from shuffledp.service.shuffler import Shuffler

SOURCE = str(Path(sdp.__file__).parent.parent)
ANSWERS = ("no", "yes", "perhaps")
START_SECONDS = 60.0


@cache
def survey(n: int = 300) -> sdp.HistogramProtocol:
    """The question of most tests."""
    return sdp.HistogramProtocol(list(ANSWERS), epsilon=1.0, delta=1e-6, n=n)


@dataclass
class Setting:
    """A shuffler's folder with tasks, the analyst's key, and processes that serve it."""

    folder: Path
    store: str | None = None
    running: list["Running"] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.key = AnalystKey.new(self.folder / "analyst.key")
        self.data = self.folder / "shuffler"

    def create(self, name: str = "pets", protocol: Any = None, **settings: Any) -> Task:
        """A new task, signed and registered."""
        with self.shuffler() as shuffler:
            identity = shuffler.keys.public
            signing = {"key": self.key.signs, "analyst": self.key.public, "shuffler": identity}
            task = Task.new(name, survey() if protocol is None else protocol, **signing)
            shuffler.create(task.signed, **settings)
        return task

    def shuffler(self) -> Shuffler:
        """The same folder, in this process."""
        return Shuffler(self.data, self.store)

    def start(self, *options: str, folder: Path | None = None, **settings: Any) -> "Running":
        """Serve it in a new process."""
        where = ["--folder", str(folder or self.data), "--port", "0", "--every", "0.1"]
        store = [] if self.store is None else ["--store", self.store]
        log = self.folder / f"log-{len(self.running)}.txt"
        made = Running([*where, *store, *options], log, **settings)
        self.running.append(made)
        return made

    @property
    def logs(self) -> bytes:
        """All that all processes have said."""
        return b"".join(one.log.read_bytes() for one in self.running)

    @property
    def stored(self) -> bytes:
        """All bytes of the store: of its files, or of every row of the database."""
        if self.store is None:
            return b"".join(path.read_bytes() for path in sorted(self.data.glob("store.sqlite*")))
        psycopg = pytest.importorskip("psycopg")
        with closing(psycopg.connect(self.store)) as database:
            kept = b""
            for (name,) in database.execute("SELECT relname FROM pg_stat_user_tables").fetchall():
                with database.cursor().copy(f"COPY {name} TO STDOUT (FORMAT binary)") as rows:
                    kept += b"".join(map(bytes, rows))
            return kept

    def batches(self) -> list[Path]:
        """Released files."""
        return sorted((self.data / "batches").glob("*.parquet"))


class Running:
    """One process of ``shuffledp serve``."""

    def __init__(self, options: Sequence[str], log: Path, prefix: Sequence[str] = (), code: str = "") -> None:
        self.log = log
        run = ["-c", code] if code else ["-m", "shuffledp"]
        command = [*prefix, sys.executable, *run, "serve", *options]
        environment = os.environ | {"PYTHONPATH": SOURCE}
        with log.open("wb") as file:
            self.process = subprocess.Popen(command, stderr=file, stdout=file, env=environment)
        self.address = self._address()

    def _address(self) -> str:
        end = time.monotonic() + START_SECONDS
        while time.monotonic() < end and self.process.poll() is None:
            for line in self.log.read_text().splitlines():
                if '"listening"' in line and line.endswith("}"):
                    return str(json.loads(line)["address"])
            time.sleep(0.02)
        raise AssertionError(self.log.read_text())

    @property
    def port(self) -> int:
        return int(self.address.rsplit(":", 1)[1])

    def kill(self) -> None:
        """As a power cut would, as far as the process is concerned."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self) -> int:
        """Gracefully; gives the exit status."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(30)

    def get(self, path: str) -> bytes:
        with urllib.request.urlopen(self.address + path, timeout=30) as answer:
            return bytes(answer.read())

    def post(self, body: bytes, name: str = "pets") -> int:
        """The status of one body."""
        return asyncio.run(post_all(self.port, [body], name=name, connections=1))[0]

    def post_all(self, bodies: Sequence[bytes], *, connections: int = 16, name: str = "pets") -> list[int]:
        """The status of each body, 0 where there was no answer."""
        return asyncio.run(post_all(self.port, bodies, name=name, connections=connections))

    @property
    def memory(self) -> int:
        """Resident bytes."""
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")


def public_key(setting: Setting, task: Task) -> PublicKey:
    """The shuffler's key of the day, as a client gets it."""
    return task.shuffler_key(Signed.from_dict(KeyRing.open(setting.data / "keys").document.to_dict()))


def sealed(setting: Setting, task: Task, values: Iterable[Any]) -> list[bytes]:
    """One body per value, as a client makes them."""
    key = public_key(setting, task)
    return [sealed_report(task, key, report(task, value)) for value in values]


def report(task: Task, value: Any) -> list[bytes]:
    """All messages of a person."""
    protocol, dtype = task.protocol, task.protocol.report_dtype.newbyteorder("<")
    rows = np.asarray(protocol.randomize(value), dtype=dtype).reshape(-1, *protocol.report_shape)
    return [row.tobytes() for row in rows]


def sealed_report(
    task: Task, key: PublicKey, content: bytes | Sequence[bytes], name: bytes | None = None
) -> bytes:
    return seal(content, task.id, task.analyst, key, name or new_id())


def request(body: bytes, name: str = "pets", length: object = None) -> bytes:
    """The bytes of one submission."""
    told = len(body) if length is None else length
    head = f"POST /tasks/{name}/reports HTTP/1.1\r\nHost: survey.example\r\nContent-Length: {told}\r\n\r\n"
    return head.encode() + body


async def post_all(
    port: int, bodies: Sequence[bytes], *, name: str = "pets", connections: int = 16
) -> list[int]:
    """Each connection takes the next body until there is none; a broken one is opened again once."""
    statuses, places = [0] * len(bodies), iter(range(len(bodies)))

    async def client() -> None:
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            return
        try:
            for place in places:
                writer.write(request(bodies[place], name))
                statuses[place], keep = await answer_of(reader)
                if not keep:
                    writer.close()
                    reader, writer = await asyncio.open_connection("127.0.0.1", port)
        except (OSError, EOFError, ValueError):
            pass  # the server is gone: what was not answered stays 0
        finally:
            writer.close()

    await asyncio.gather(*(client() for _ in range(min(connections, len(bodies)))))
    return statuses


async def answer_of(reader: asyncio.StreamReader) -> tuple[int, bool]:
    """(status, whether the connection stays open)."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
    length = [line.split(":")[1] for line in head.split("\r\n") if line.startswith("content-length:")]
    await reader.readexactly(int(length[0]) if length else 0)
    return int(head.split()[1]), "connection: close" not in head
