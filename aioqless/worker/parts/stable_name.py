"""The lease of a stable worker name: two workers never hold it at once."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import time
from collections.abc import Callable
from functools import partial
from typing import Self

import msgspec

from aioqless.errors import NameTaken
from aioqless.lua import constant
from aioqless.runtime.log import log
from aioqless.store import Store
from aioqless.worker.context import NOT_NOW, WorkerContext, call_until_answered

LEASE = constant("NAME_LEASE_TTL")  # seconds; after it, another worker may take the name
RENEW = 20.0
NEVER = float("-inf")
RELEASE_TIMEOUT = 5.0


class NameLease:
    """`async with` takes the name and releases it.

    `renew` is called by the lock renewer in its thread; the rest on the worker's loop.

    Raises:
        NameTaken: Another worker has the name.
    """

    def __init__(self, context: WorkerContext, id: str, on_lost: Callable[[], object]) -> None:
        self.lost: NameTaken | None = None  # who has the name now
        self._context = context
        self._store = context.store
        self._worker = context.name
        self._on_lost = on_lost  # called on the worker's loop
        self._id = id
        self._renewed = NEVER
        self._loop: asyncio.AbstractEventLoop | None = None

    async def __aenter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        claimed = await call_until_answered(self._context, lambda: self._claim(self._store))
        if claimed is not None:
            self._context.outage.record_success()
        if claimed == "taken over":
            jobs = 0
            recover = partial(self._store.name_lease_recover, worker=self._worker, id=self._id)
            while count := await call_until_answered(self._context, recover):
                jobs += count
            log.info("worker.recovered", of=self._worker, jobs=jobs)
        return self

    async def __aexit__(self, *_: object) -> None:
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
                self._context.outage.record_failure(error, asked)
                return False
        return self.lost is None

    async def _claim(self, store: Store) -> str:
        process = {"id": self._id, "host": socket.gethostname(), "pid": os.getpid()}
        asked = time.monotonic()
        answer = await store.name_lease_claim(
            worker=self._worker, process=msgspec.json.encode(process)
        )
        self._renewed = asked
        return answer
