"""Whose a stable name is: two workers never have it at once, and one that is restarted takes back
what its former incarnation held."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

import msgspec

from aioqless.errors import NameTaken
from aioqless.log import log
from aioqless.lua import constant
from aioqless.store import Store
from aioqless.worker.outage import NOT_NOW, Outage

# as the script has it: silent for longer, it may be replaced by one that can't see whether it lives
PROMISE = constant("NAME_LEASE_TTL")
RENEW = 20.0
PATIENCE = 5.0  # for leaving it when Redis is away

_here: set[str] = set()  # the incarnations of this process that haven't ended


class Incarnation:
    """One life of a worker with a stable name: `async with` claims the name and leaves it. Raises
    NameTaken.

    Owns since when the claim holds. `renew` is called by the heart in its thread; the rest on the
    worker's loop."""

    def __init__(
        self,
        store: Store,
        worker: str,
        outage: Outage,
        lost: Callable[[], object],
        stopping: Callable[[], bool],
    ) -> None:
        self.taken: NameTaken | None = None  # who has the name now, when it was lost
        self._store = store
        self._worker = worker
        self._outage = outage
        self._lost = lost  # called on the worker's loop
        self._stopping = stopping
        self._id = secrets.token_hex(8)
        self._renewed = float("-inf")
        self._loop: asyncio.AbstractEventLoop | None = None

    async def __aenter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        _here.add(self._id)
        try:
            took_over = (
                await self._until_redis_answers(lambda: self._claim(self._store)) == "taken over"
            )
        except BaseException:
            _here.discard(self._id)
            raise
        recovered = 0
        while took_over and (count := await self._until_redis_answers(self._recover)):
            recovered += count
        if took_over:
            log.info("worker.recovered", jobs=recovered)
        return self

    async def __aexit__(self, *_: object) -> None:
        _here.discard(self._id)
        with contextlib.suppress(*NOT_NOW, TimeoutError):
            async with asyncio.timeout(PATIENCE):
                await self._store.incarnation_leave(worker=self._worker, id=self._id)

    async def renew(self, store: Store) -> bool:
        """Claim the name again when it is time, and return whether Redis was asked. If another
        worker has it by now, stop this one."""
        if self.taken is not None or time.monotonic() - self._renewed < RENEW:
            return False
        try:
            await self._claim(store)
        except NameTaken as taken:
            self.taken = taken
            if self._loop is not None:
                self._loop.call_soon_threadsafe(self._lost)
            log.error("worker.name_lost", why=str(taken))
        return True

    async def holds(self) -> bool:
        """Whether it may act under the name: after a silence as long as the promise, it asks before
        it does."""
        if self.taken is None and time.monotonic() - self._renewed > PROMISE:
            asked = time.monotonic()
            try:
                await self.renew(self._store)
            except NOT_NOW as away:
                self._outage.lost(away, asked)
                return False
        return self.taken is None

    async def _until_redis_answers(self, call: Callable[[], Any]) -> Any:
        """Its answer; None when told to stop meanwhile."""
        while not self._stopping():
            asked = time.monotonic()
            try:
                answer = await call()
            except NOT_NOW as away:
                await self._outage.pause(away, asked)
            else:
                self._outage.found()
                return answer
        return None

    async def _claim(self, store: Store, gone: str | None = None) -> str:
        told = msgspec.json.encode(
            {"id": self._id, "host": socket.gethostname(), **_this_process()}
        )
        asked = time.monotonic()
        try:
            answer: str = await store.incarnation_claim(worker=self._worker, told=told, gone=gone)
        except NameTaken as taken:
            if gone is None and _is_gone(taken.detail):
                return await self._claim(store, taken.detail["id"])
            raise
        self._renewed = asked
        return answer

    async def _recover(self) -> int:
        count: int = await self._store.incarnation_recover(worker=self._worker, id=self._id)
        return count


def _this_process() -> dict[str, Any]:
    """Which process this is; its `place` is where process numbers mean the same, empty where nobody
    can tell."""
    try:
        place = f"{Path('/proc/sys/kernel/random/boot_id').read_text().strip()} {Path('/proc/self/ns/pid').readlink()}"
        started = _started(os.getpid())[1]
    except OSError:
        place, started = "", ""
    return {"place": place, "pid": os.getpid(), "started": started}


def _started(pid: int) -> tuple[str, str]:
    """A process' state and when it began, which no other process of its number has in common."""
    fields = (
        Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    )  # its name before that may hold anything
    return fields[0], fields[19]


def _is_gone(former: dict[str, Any]) -> bool:
    """Whether a former incarnation is proven gone: it was a process in sight of this one, and is
    there no more."""
    here = _this_process()
    if not here["place"] or former.get("place") != here["place"]:
        return False
    if former["pid"] == here["pid"] and former["started"] == here["started"]:
        return former["id"] not in _here
    return not _lives(int(former["pid"]), former["started"])


def _lives(pid: int, started: str) -> bool:
    """One that is stopped lives; one whose parent hasn't looked after its end doesn't."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    try:
        state, since = _started(pid)
    except OSError:  # it is hidden, or has just ended: the next attempt will tell
        return True
    return since == started and state not in "ZX"
