"""The HTTP side of the shuffler (Starlette on uvicorn; extra ``service``)::

    GET  /                       the page: tasks, counts against thresholds, what is promised
    GET  /tasks/NAME             the signed task, and the shuffler's signed key of the day
    POST /tasks/NAME/reports     one sealed report, of exactly the task's size
         202 on the disk   409 came before   400, 411, 413 not a report   422 unknown key
         408 too slow      503 with Retry-After: no room, or no disk
    GET  /health, /metrics

No address, value or time of arrival is read, logged or kept. Slow clients have ``HEAD_SECONDS`` for their
headers and ``BODY_SECONDS`` for the body; all the same, put a proxy in front that speaks TLS.

Group commit: reports that arrive while one transaction is under way share the next one. A report is
acknowledged when its transaction is on the disk. The queue is bounded: beyond it a report is refused at once,
so that memory does not grow with the load.
"""

from __future__ import annotations

import asyncio
import logging
import math
import os
import signal
import socket
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import cache, partial
from typing import Any

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from uvicorn import Config, Server
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from shuffledp.errors import SealError, ShuffledpError, UnknownKeyError
from shuffledp.service._page import log, metrics, page
from shuffledp.service.shuffler import Collection, Shuffler
from shuffledp.service.store import Report, Store

ACCEPTED, BEFORE, BUSY, UNAVAILABLE = "accepted", "came before", "no room", "no store"
"""What became of a report; only the first two are on the disk."""


class Ingest:
    """A queue in front of a store, for one event loop."""

    def __init__(self, store: Store, *, capacity: int, group: int) -> None:
        self._store, self.capacity, self._group = store, capacity, group
        self._waiting: list[tuple[Report, asyncio.Future[str]]] = []
        self._under_way = self.groups = 0
        self._some, self._stopping = asyncio.Event(), False
        self.healthy = True
        self._loop, self._thread = asyncio.get_running_loop(), ThreadPoolExecutor(1, "commit")
        self._worker = asyncio.create_task(self._work())

    @property
    def length(self) -> int:
        """Reports that are not on the disk yet."""
        return len(self._waiting) + self._under_way

    def add(self, report: Report) -> asyncio.Future[str]:
        """What became of a report, when that is settled."""
        done: asyncio.Future[str] = self._loop.create_future()
        if self.length >= self.capacity or self._stopping:
            done.set_result(BUSY)
        else:
            self._waiting.append((report, done))
            self._some.set()
        return done

    async def _work(self) -> None:
        while self._waiting or not self._stopping:
            await self._some.wait()
            group, self._waiting = self._waiting[: self._group], self._waiting[self._group :]
            if not self._waiting and not self._stopping:
                self._some.clear()
            if not group:
                continue
            self._under_way = len(group)
            try:
                new = await self._loop.run_in_executor(
                    self._thread, self._store.add, [one for one, _ in group]
                )
                self.healthy = True
            except Exception:  # a full disk, a database that is away: whatever it is, nobody is told 202
                self.healthy, new = False, []
            self._under_way, self.groups = 0, self.groups + 1
            told = [ACCEPTED if one else BEFORE for one in new] or [UNAVAILABLE] * len(group)
            for outcome, (_, done) in zip(told, group, strict=True):
                if not done.done():  # else the client has gone
                    done.set_result(outcome)

    async def stop(self) -> None:
        """Commit what is there, take nothing more."""
        self._stopping = True
        self._some.set()
        await self._worker
        self._thread.shutdown()


HEAD_SECONDS, BODY_SECONDS = 10.0, 10.0
_ANYBODY = {"Access-Control-Allow-Origin": "*"}  # sealed reports come from any page
_PREFLIGHT = _ANYBODY | {
    "Access-Control-Allow-Methods": "GET, POST",
    "Access-Control-Allow-Headers": "content-type",
    "Access-Control-Max-Age": "86400",
}
_LATER, _GO = _ANYBODY | {"Retry-After": "1"}, _ANYBODY | {"Connection": "close"}
_HEADERS = {BUSY: _LATER, UNAVAILABLE: _LATER, "too slow": _GO, "without length": _GO, "of another size": _GO}
"""By outcome: who sends something else is not read any further."""
_LOG_SECONDS = 60.0
_PAGE_SECONDS = 2.0  # a page is counted again after so long: asking often costs the store nothing


class Service:
    """One process of the shuffler."""

    def __init__(
        self,
        shuffler: Shuffler,
        *,
        capacity: int = 4096,
        group: int = 1024,
        release: bool = True,
        every: float = 1.0,
        static: str | None = None,
    ) -> None:
        self.shuffler, self._capacity, self._group = shuffler, capacity, group
        self._release, self._every = release, every
        self.counts: Counter[tuple[str, str]] = Counter()
        self._failing: dict[str, str | None] = {}
        self._shown: tuple[float, str] = (-math.inf, "")
        self._reading: dict[asyncio.Task[Any], float] = {}  # whose body is waited for, since when
        self._ingest: Ingest
        routes: list[Any] = [
            Route("/", self.home),
            Route("/health", self.health),
            Route("/metrics", self.metrics),
            Route("/tasks/{name}", self.task),
            Route("/tasks/{name}/reports", self.submit, methods=["POST", "OPTIONS"]),
        ]
        if static is not None:
            routes.append(Mount("/survey", StaticFiles(directory=static, html=True)))
        self.app = Starlette(routes=routes, lifespan=self._running)

    @asynccontextmanager
    async def _running(self, app: Starlette) -> AsyncIterator[None]:
        self._ingest = Ingest(self.shuffler.store, capacity=self._capacity, group=self._group)
        self._thread = ThreadPoolExecutor(1, "release")
        looking = [asyncio.create_task(work) for work in (self._look_after(), self._hurry())]
        try:
            yield
        finally:
            for work in looking:
                work.cancel()
            await self._ingest.stop()
            await asyncio.to_thread(self._thread.shutdown)  # a release that is under way ends
            log("stopped")

    async def submit(self, request: Request) -> Response:
        """Take one report."""
        if request.method == "OPTIONS":
            return Response(status_code=204, headers=_PREFLIGHT)
        name = request.path_params["name"]
        collection = self.shuffler.collections.get(name)
        if collection is None:
            return _answer(404, "no such task")
        status, outcome = await self._submitted(request, collection)
        self.counts[name, outcome] += 1
        return _answer(status, outcome)

    async def _submitted(self, request: Request, collection: Collection) -> tuple[int, str]:
        wanted, told = collection.body_bytes, None
        for field, value in request.scope["headers"]:  # without a mapping of all of them
            if field == b"content-length":
                told = value
        if told is None:
            return 411, "without length"
        if told != b"%d" % wanted:
            return (413 if told.isdigit() and int(told[:9]) > wanted else 400), "of another size"
        if len(self._reading) + self._ingest.length >= self._capacity:
            return 503, BUSY
        reader = asyncio.current_task()
        assert reader is not None
        self._reading[reader] = time.monotonic()
        try:
            body = await request.body()
        except asyncio.CancelledError:  # by ``_hurry``
            reader.uncancel()
            return 408, "too slow"
        except ClientDisconnect:
            return 400, "cut off"
        finally:
            del self._reading[reader]
        try:
            report = self.shuffler.opened(collection, body)
        except SealError as error:
            unknown = isinstance(error, UnknownKeyError)
            return (422, "of an unknown key") if unknown else (400, "not opened")
        outcome = await self._ingest.add(report)
        return {ACCEPTED: 202, BEFORE: 409}.get(outcome, 503), outcome

    async def _hurry(self) -> None:
        """Let clients go whose body takes too long: one clock for all of them."""
        while True:
            await asyncio.sleep(BODY_SECONDS / 8)
            late = time.monotonic() - BODY_SECONDS
            for reader in [reader for reader, since in self._reading.items() if since < late]:
                reader.cancel()

    async def task(self, request: Request) -> Response:
        """The signed task and key."""
        collection = self.shuffler.collections.get(request.path_params["name"])
        if collection is None:
            return _answer(404, "no such task")
        signed, key = collection.task.signed.to_dict(), self.shuffler.keys.document.to_dict()
        return JSONResponse({"task": signed, "key": key}, headers=_ANYBODY | {"Cache-Control": "max-age=60"})

    async def home(self, request: Request) -> Response:
        """For people."""
        if time.monotonic() - self._shown[0] > _PAGE_SECONDS:
            names = sorted(self.shuffler.collections)
            found = await asyncio.to_thread(lambda: [self.shuffler.status(name) for name in names])
            self._shown = (time.monotonic(), page(found))
        return HTMLResponse(self._shown[1])

    async def health(self, request: Request) -> Response:
        """200 while reports can be kept."""
        healthy = self._ingest.healthy
        return JSONResponse({"status": "ok" if healthy else "no store"}, 200 if healthy else 503)

    async def metrics(self, request: Request) -> Response:
        """For Prometheus."""
        found = self.shuffler.collections
        pending = await asyncio.to_thread(lambda: {name: self.shuffler.pending(name) for name in found})
        gauges = {"queue_length": self._ingest.length, "group_commits": self._ingest.groups}
        return PlainTextResponse(metrics(self.counts, gauges, pending))

    async def _look_after(self) -> None:
        """Tasks, keys, releases; a line in the log when something has come."""
        told, last = sum(self.counts.values()), time.monotonic()
        while True:
            await asyncio.get_running_loop().run_in_executor(self._thread, self._round)
            if time.monotonic() - last > _LOG_SECONDS and sum(self.counts.values()) != told:
                told, last = sum(self.counts.values()), time.monotonic()
                log("reports", **{f"{task}: {outcome}": n for (task, outcome), n in self.counts.items()})
            await asyncio.sleep(self._every)

    def _round(self) -> None:
        """One look at every task; what fails is told once, and tried again."""
        self._attempt("", self.shuffler.refresh)
        for name in self.shuffler.collections if self._release else ():
            self._attempt(name, partial(self._release_if_ready, name))

    def _release_if_ready(self, name: str) -> None:
        if self.shuffler.pending(name) >= self.shuffler.collection(name).stored.minimum:
            path = self.shuffler.release_if_ready(name)
            if path is not None:
                log("released", task=name, file=path.name)

    def _attempt(self, name: str, work: Callable[[], None]) -> None:
        try:
            work()
            reason = None
        except Exception as error:  # the text of a foreign error could quote what came in
            reason = str(error) if isinstance(error, ShuffledpError) else type(error).__name__
        if reason is not None and reason != self._failing.get(name):
            log("not released", task=name, reason=reason)
        self._failing[name] = reason


@cache
def _answer(status: int, outcome: str) -> Response:
    """One of a few answers, which are made once."""
    return PlainTextResponse(outcome + "\n", status, _HEADERS.get(outcome, _ANYBODY))


class PatientProtocol(HttpToolsProtocol):
    """HTTP that waits for headers for a while, not for ever."""

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._deadline = self.loop.call_later(HEAD_SECONDS, self._too_slow)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._deadline.cancel()
        self._deadline = self.loop.call_later(HEAD_SECONDS, self._too_slow)

    def on_headers_complete(self) -> None:
        self._deadline.cancel()
        super().on_headers_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        self._deadline.cancel()
        super().connection_lost(exc)

    def _too_slow(self) -> None:
        if not self.transport.is_closing():
            self.transport.close()


class _Lines(logging.Handler):
    """What uvicorn has to say, without tracebacks: they could show what came in."""

    def emit(self, record: logging.LogRecord) -> None:
        log("server", message=str(record.msg))


def serve(shuffler: Shuffler, *, host: str = "127.0.0.1", port: int = 8440, **settings: Any) -> None:
    """Run until SIGTERM or Ctrl-C; what was taken is committed first."""
    os.umask(0o077)
    if settings.get("release", True):
        shuffler.reconcile()
    service = Service(shuffler, **settings)
    listening = socket.create_server((host, port), backlog=2048, reuse_port=False)
    config = Config(
        service.app,
        http=PatientProtocol,
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=5,
        timeout_graceful_shutdown=10,
    )
    logger = logging.getLogger("uvicorn.error")
    logger.handlers, logger.propagate = [_Lines(logging.WARNING)], False
    for number in (signal.SIGTERM, signal.SIGINT):  # uvicorn raises them again when all is done
        signal.signal(number, lambda *_: None)
    log(
        "listening", address=f"http://{host}:{listening.getsockname()[1]}", tasks=sorted(shuffler.collections)
    )
    Server(config).run(sockets=[listening])
