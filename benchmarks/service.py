"""How fast the running shuffler is: beside a server that only answers, single commits, opening alone.

    python benchmarks/service.py [--reports 1e6] [--output docs/performance-service.md]

Real processes on loopback, SQLite in a file. CPU seconds are those of the server's process (or of this one
and its children); where a disk is waited for, seconds are wall-clock. Needs the extra ``service``.
"""

import argparse
import json
import os
import resource
import secrets
import selectors
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import numpy as np
from collect import named
from report import CHECK_HEADER, ROW_HEADER, Check, Row, short, table

import shuffledp as sdp
from shuffledp.service.batches import open_batch, opened_reports, task_of
from shuffledp.service.documents import Task
from shuffledp.service.keys import AnalystKey
from shuffledp.service.sealing import inner_size, new_id, open_outer, seal
from shuffledp.service.shuffler import Shuffler
from shuffledp.service.store import Report
from shuffledp.shuffling.report_files import open_reports

REPORTS = 10**6
POSTED = 3_000
REPEATS = 5
DISTINCT = 10_000
CONNECTIONS = 128
GIBIBYTE = 2**30

ONLY_ANSWERS = """
from starlette.responses import PlainTextResponse
from shuffledp.service.server import Service
async def submit(self, request):
    await request.body()
    return PlainTextResponse("accepted", 202)
Service.submit = submit
from shuffledp.cli.main import main
main()
"""

PAGE = """# Performance of the running shuffler

Written by `make bench-service`, which measures everything again; do not edit.

Real processes on loopback, the embedded store (SQLite) in a file; reports of one byte, {body} bytes with both
seals. The load generator shares the cores. CPU seconds are those of the server's process, or of the
analyst's and its children; a ratio compares two times of the same run; of a single report, medians of
alternating runs. {setting}
{cores} cores; mean load of the machine {before:.1f} before and {after:.1f} after.

{goals}

{checks}
"""


def main() -> None:
    """Measure everything; print the page, or write it."""
    parser = argparse.ArgumentParser(description="Benchmarks of the running shuffler.")
    parser.add_argument("--reports", type=float, default=REPORTS, help="of the large batch")
    parser.add_argument("--output", type=Path, help="write the page here instead of printing it")
    chosen = parser.parse_args()
    before = os.getloadavg()[0]
    with TemporaryDirectory(prefix="shuffledp-bench-") as folder:
        bench = Bench(Path(folder))
        figures = [*bench.ingest(), *bench.commits(), *bench.batch(int(chosen.reports))]
    text = PAGE.format(
        body=len(bench.body()),
        setting=", ".join(map(named, ("shuffledp", "starlette", "uvicorn", "cryptography"))) + ".",
        cores=os.cpu_count(),
        before=before,
        after=os.getloadavg()[0],
        goals=table(ROW_HEADER, [f.cells() for f in figures if isinstance(f, Row)]),
        checks=table(CHECK_HEADER, [f.cells() for f in figures if isinstance(f, Check)]),
    )
    if chosen.output is None:
        print(text)
    else:
        chosen.output.write_text(text, encoding="utf-8")
        print(f"wrote {chosen.output}")


class Bench:
    """A shuffler's folder with one task."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.key = AnalystKey.new(folder / "analyst.key")
        plan = sdp.HistogramProtocol(["no", "yes", "perhaps"], epsilon=1.0, delta=1e-6, n=1000)
        with Shuffler(folder / "shuffler") as shuffler:
            identity = shuffler.keys.public
            signing = {"key": self.key.signs, "analyst": self.key.public, "shuffler": identity}
            self.task = Task.new("pets", plan, **signing)
            self.collection = shuffler.create(self.task.signed)
            self.public = self.task.shuffler_key(shuffler.keys.document)
            self.private = shuffler.keys.private

    def body(self) -> bytes:
        """One submission."""
        report = np.asarray(self.task.protocol.randomize("yes")).tobytes()
        return seal(report, self.task.id, self.task.analyst, self.public, new_id())

    def ingest(self) -> Iterator[Row]:
        """A report, from its first byte to its 202, beside a server that only answers 202."""
        costs: dict[str, list[tuple[float, float]]] = {"": [], ONLY_ANSWERS: []}
        for code in ("", ONLY_ANSWERS) * REPEATS:
            bodies = [self.body() for _ in range(POSTED)]
            with Served(self.folder / "shuffler", code) as served:
                posted(served.port, bodies[: POSTED // 4])
                start, wall = served.cpu, time.perf_counter()
                posted(served.port, bodies[POSTED // 4 :])
                count = POSTED - POSTED // 4
                costs[code].append(((served.cpu - start) / count, (time.perf_counter() - wall) / count))
        (ours, waited), (bare, bare_waited) = (
            map(median, zip(*some, strict=True)) for some in costs.values()
        )
        what = f"one report, with {CONNECTIONS} clients at once: open, store, acknowledge (wall)"
        yield Row(what, waited, bare_waited, "only answering 202", at_most=2.0)
        yield Row("the same, CPU of the server", ours)
        yield Row("only answering 202, CPU of the server", bare)

    def commits(self) -> Iterator[Row]:
        """Group commit beside single commits, wall-clock: a disk is waited for."""
        with Shuffler(self.folder / "commits") as shuffler:
            grouped, single = self.made(4000), self.made(200)
            start = time.perf_counter()
            for first in range(0, len(grouped), 500):
                shuffler.store.add(grouped[first : first + 500])
            middle = time.perf_counter()
            for one in single:
                shuffler.store.add([one])
            end = time.perf_counter()
        ours, alone = (middle - start) / len(grouped), (end - middle) / len(single)
        yield Row(
            "one report in a group commit of 500 (wall)", ours, alone, "a commit of its own", at_least=5.0
        )

    def made(self, count: int) -> list[Report]:
        """Reports with new ids and a few thousand different seals."""
        if not hasattr(self, "_inner"):
            some = [open_outer(self.body(), self.task.id, self.private)[1] for _ in range(DISTINCT)]
            self._inner = some
        return [
            Report(self.collection.key, secrets.token_bytes(16), self._inner[i % DISTINCT])
            for i in range(count)
        ]

    def batch(self, reports: int) -> Iterator[Row | Check]:
        """A large batch: waiting, released, opened, counted."""
        with Shuffler(self.folder / "shuffler") as shuffler:
            for _ in range(0, reports, 10_000):
                shuffler.store.add(self.made(10_000))
        size = short(reports)
        with Served(self.folder / "shuffler", "", "--no-release") as served:
            posted(served.port, [self.body() for _ in range(500)])
            waiting = served.memory("VmRSS")
            what = f"memory of the service while {size} reports wait: under 256 MiB"
            yield Check(what, f"{waiting / 2**20:.0f} MiB", waiting < GIBIBYTE // 4)
        code = "from shuffledp.cli.main import main; main()"
        command = [
            sys.executable,
            "-c",
            code,
            "task",
            "release",
            "pets",
            "--folder",
            str(self.folder / "shuffler"),
        ]
        wall = time.perf_counter()
        with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
            _, _, used = os.wait4(process.pid, 0)
            process.returncode = 0
        yield Row(f"mix and release {size} reports (CPU)", used.ru_utime + used.ru_stime)
        yield Row(f"mix and release {size} reports (wall)", time.perf_counter() - wall)
        peak = used.ru_maxrss * 1024
        yield Check(
            f"memory of a release of {size} reports: under 1 GiB", f"{peak / 2**20:.0f} MiB", peak < GIBIBYTE
        )
        (path,) = (self.folder / "shuffler" / "batches").glob("*.parquet")
        start = cpu()
        stored = open_reports(path)
        for _ in opened_reports(stored, task_of(stored, self.key), self.key):
            pass
        middle = cpu()
        found = open_batch(path, self.key)
        what = f"open and count a batch of {size} (CPU)"
        yield Row(what, cpu() - middle, middle - start, "opening alone", at_most=1.3)
        yield Check("every report was counted", f"{found.n:,} of {stored.n:,}", found.n == stored.n)
        yield Check("width of a report that waits", f"{inner_size(self.task.report_bytes)} bytes", True)


def cpu() -> float:
    """CPU seconds of this process and its children so far."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


class Served:
    """A process of ``shuffledp serve``."""

    def __init__(self, folder: Path, code: str, *options: str) -> None:
        run = ["-c", code] if code else ["-m", "shuffledp"]
        where = ["serve", "--folder", str(folder), "--port", "0", "--no-release", *options]
        command = [sys.executable, *run, *dict.fromkeys(where)]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        assert self.process.stderr is not None
        self.port = int(json.loads(self.process.stderr.readline())["address"].rsplit(":", 1)[1])

    def __enter__(self) -> "Served":
        return self

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        self.process.communicate()

    @property
    def cpu(self) -> float:
        """CPU seconds so far."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def memory(self, which: str) -> int:
        """Bytes."""
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        (found,) = [line for line in lines if line.startswith(f"{which}:")]
        return 1024 * int(found.split()[1])


def posted(port: int, bodies: Sequence[bytes]) -> None:
    """Send all bodies; every one must be answered 202.

    One loop over plain sockets: it costs far less than the server, so that the server is what is measured."""
    rest, waiting = iter(bodies), selectors.DefaultSelector()

    def send_next(connection: socket.socket) -> None:
        body = next(rest, None)
        if body is None:
            waiting.unregister(connection)
            connection.close()
            return
        head = f"POST /tasks/pets/reports HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
        connection.sendall(head.encode() + body)

    for _ in range(min(CONNECTIONS, len(bodies))):
        connection = socket.create_connection(("127.0.0.1", port))
        waiting.register(connection, selectors.EVENT_READ, bytearray())
        send_next(connection)
    while waiting.get_map():
        for key, _ in waiting.select():
            ready, answer = key.fileobj, key.data
            assert isinstance(ready, socket.socket)
            answer += ready.recv(4096)
            head, end, text = bytes(answer).lower().partition(b"\r\n\r\n")
            if end and len(text) == int(head.split(b"content-length:")[1].split(b"\r\n")[0]):
                assert b" 202 " in head, head
                answer.clear()
                send_next(ready)


if __name__ == "__main__":
    main()
