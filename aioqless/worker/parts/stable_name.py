"""The lease of a stable worker name: two workers never hold it at once.

A worker that is restarted under its name takes back the jobs that its former process held.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import socket
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Self, TypedDict, TypeVar

import msgspec

from aioqless.errors import NameTaken
from aioqless.lua import constant
from aioqless.runtime.log import log
from aioqless.store import Store
from aioqless.worker.context import NOT_NOW, WorkerContext

T = TypeVar("T")

LEASE = constant("NAME_LEASE_TTL")  # seconds; after it, another worker may take the name
RENEW = 20.0
NEVER = float("-inf")
RELEASE_TIMEOUT = 5.0


class ThisProcess(TypedDict):
    """What tells a process from others, in Redis."""

    place: str
    pid: int
    started: str


_here: set[str] = set()  # the leases of this process that are held


class NameLease:
    """`async with` takes the name and releases it.

    `renew` is called by the lock renewer in its thread; the rest on the worker's loop.

    Raises:
        NameTaken: Another worker has the name.
    """

    def __init__(self, context: WorkerContext, on_lost: Callable[[], object]) -> None:
        self.lost: NameTaken | None = None  # who has the name now
        self.recovered: int | None = None  # jobs of a former process, if there was one
        self._store = context.store
        self._worker = context.name
        self._outage = context.outage
        self._lifecycle = context.lifecycle
        self._on_lost = on_lost  # called on the worker's loop
        self._id = secrets.token_hex(8)
        self._renewed = NEVER
        self._loop: asyncio.AbstractEventLoop | None = None

    async def __aenter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        _here.add(self._id)
        try:
            claimed = await self._until_answered(lambda: self._claim(self._store))
        except BaseException:
            _here.discard(self._id)
            raise
        if claimed == "taken over":
            self.recovered = 0
            while count := await self._until_answered(self._recover):
                self.recovered += count
        return self

    async def __aexit__(self, *_: object) -> None:
        _here.discard(self._id)
        with contextlib.suppress(*NOT_NOW, TimeoutError):
            async with asyncio.timeout(RELEASE_TIMEOUT):
                await self._store.name_lease_leave(worker=self._worker, id=self._id)

    async def renew(self, store: Store) -> bool:
        """Renew the lease when it is time; return whether Redis was called.

        If another worker has the name by now, stop this one. A lease that isn't taken yet is left
        to `__aenter__`, which recovers jobs if it takes the name over.
        """
        if self.lost is not None or self._renewed == NEVER:
            return False
        if time.monotonic() - self._renewed < RENEW:
            return False
        try:
            await self._claim(store)
        except NameTaken as taken:
            self.lost = taken
            if self._loop is not None:
                self._loop.call_soon_threadsafe(self._on_lost)
            log.error("worker.name_lost", why=str(taken))
        return True

    async def holds(self) -> bool:
        """Return whether the worker may act under the name; ask Redis if the lease has expired."""
        if self.lost is None and time.monotonic() - self._renewed > LEASE:
            asked = time.monotonic()
            try:
                await self.renew(self._store)
            except NOT_NOW as error:
                self._outage.record_failure(error, asked)
                return False
        return self.lost is None

    async def _until_answered(self, call: Callable[[], Awaitable[T]]) -> T | None:
        """Call until Redis answers; return None when stopped meanwhile."""
        while not self._lifecycle.stopping:
            asked = time.monotonic()
            try:
                answer = await call()
            except NOT_NOW as error:
                await self._outage.wait_after_failure(error, asked)
            else:
                self._outage.record_success()
                return answer
        return None

    async def _claim(self, store: Store, gone: str | None = None) -> str:
        process = msgspec.json.encode(
            {"id": self._id, "host": socket.gethostname(), **_this_process()}
        )
        asked = time.monotonic()
        try:
            answer = await store.name_lease_claim(worker=self._worker, process=process, gone=gone)
        except NameTaken as taken:
            if gone is None and _is_gone(taken.detail):
                return await self._claim(store, taken.detail["id"])
            raise
        self._renewed = asked
        return answer

    async def _recover(self) -> int:
        return await self._store.name_lease_recover(worker=self._worker, id=self._id)


def _this_process() -> ThisProcess:
    """Return which process this is.

    Its `place` is the boot and PID namespace in which process ids are comparable, empty where that
    is unknown.
    """
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        place = f"{boot} {Path('/proc/self/ns/pid').readlink()}"
        started = _started(os.getpid())[1]
    except OSError:
        place, started = "", ""
    return {"place": place, "pid": os.getpid(), "started": started}


def _started(pid: int) -> tuple[str, str]:
    """Return a process's state and start time, which tells it from others of its id."""
    stat = Path(f"/proc/{pid}/stat").read_text()
    fields = stat.rpartition(")")[2].split()  # the name before that may contain anything
    return fields[0], fields[19]


def _is_gone(former: dict[str, Any]) -> bool:
    """Return whether a former process is proven gone: its process was visible here."""
    here = _this_process()
    if not here["place"] or former.get("place") != here["place"]:
        return False
    if former["pid"] == here["pid"] and former["started"] == here["started"]:
        return former["id"] not in _here
    return not _is_alive(int(former["pid"]), former["started"])


def _is_alive(pid: int, started: str) -> bool:
    """Return whether a process exists; a stopped one does, a zombie does not."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    try:
        state, since = _started(pid)
    except OSError:  # it is hidden, or has just ended: the next attempt finds out
        return True
    return since == started and state not in "ZX"
