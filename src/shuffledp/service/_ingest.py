"""Group commit: reports that arrive while one transaction is under way share the next one.

A report is acknowledged when its transaction is on the disk. The queue is bounded: beyond it a report is
refused at once, so that memory does not grow with the load.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

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
