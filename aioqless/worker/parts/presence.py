"""Presence: beats, by which Redis knows that a worker lives, what it serves, and who is gone."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import time
from collections.abc import Callable
from typing import Self

import msgspec
from redis import exceptions

from aioqless.errors import AioqlessError, NameTaken
from aioqless.lua import constant
from aioqless.runtime.log import log
from aioqless.runtime.tasks import cancel_and_wait
from aioqless.store import Store
from aioqless.worker.context import NOT_NOW, WorkerContext, call_until_answered
from aioqless.worker.shared import ProcessIdentity

INTERVAL = 5.0  # seconds between two beats
OVERDUE = 1.0  # seconds after which the worker's loop sends a beat that the thread has not sent
LOOK_INTERVAL = 0.2  # seconds between two looks whether a name is free
NEVER = float("-inf")
LEAVE_TIMEOUT = 1.0  # seconds for Redis to drop the worker from its list


class LostWorker(msgspec.Struct, frozen=True):
    """A worker that is gone, and how many jobs it had."""

    worker: str
    jobs: int


class BeatReply(msgspec.Struct, frozen=True):
    """What the command `beat` returns; its header says what that is."""

    timeout: float
    waits: bool
    gone: list[LostWorker]


class Presence:
    """Sends beats; a worker that sends none for `worker-timeout` loses its name and its jobs.

    `async with` takes the worker's name and gives it up. It waits for the next beat of another
    worker that has the name, or for the end of that one, whose jobs are put back first.

    `beat` is called by the lock renewer in its thread, so that a blocked loop doesn't keep it from
    being sent; the rest on the worker's loop.

    Args:
        context: The worker.
        process: Returns what tells this worker from others of its name.
        on_lost: Called on the worker's loop when another worker has the name.

    Raises:
        NameTaken: Another worker has the name.

    Attributes:
        lost: Who has the name now.
    """

    def __init__(
        self,
        context: WorkerContext,
        process: Callable[[], ProcessIdentity],
        on_lost: Callable[[], object],
    ) -> None:
        self.lost: NameTaken | None = None
        self._context = context
        self._lifecycle = context.lifecycle
        self._lifecycle.on_change.append(self._note_change)
        self._worker = context.name
        self._process = process
        self._on_lost = on_lost
        self._sent = NEVER  # the latest beat that was recorded, by time.monotonic
        self._is_new = True  # what the worker serves must be sent at once
        self._timeout = float(constant("WORKER_TIMEOUT"))
        self._loop: asyncio.AbstractEventLoop | None = None
        self._sending: asyncio.Task[None] | None = None

    def _note_change(self) -> None:
        """Say soon what the worker serves now."""
        if not self._lifecycle.stopping:
            self._is_new = True

    async def __aenter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        silent = -1.0  # for how long the present holder of the name has been
        while not self._lifecycle.stopping:
            try:
                reply = await call_until_answered(
                    self._context, lambda: self._send(self._context.store)
                )
            except NameTaken as taken:
                # Its next beat tells whether the holder lives.
                if taken.detail["silent"] < silent:
                    raise
                if silent < 0:
                    log.info("worker.waits_for_name", why=str(taken))
                silent = taken.detail["silent"]
            else:
                if reply is not None:
                    self._context.outage.record_success()
                    if not reply.waits:
                        break
            await asyncio.sleep(LOOK_INTERVAL)
        self._sending = asyncio.create_task(self._send_overdue())
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._sending is not None:
            await cancel_and_wait(self._sending)
        if self.lost is None:
            with contextlib.suppress(AioqlessError, exceptions.RedisError, OSError):
                async with asyncio.timeout(LEAVE_TIMEOUT):
                    await self._context.store.deregister(
                        workers=[self._worker], id=self._process().id
                    )

    async def beat(self, store: Store, *, interval: float = INTERVAL) -> bool:
        """Send a beat when it is time; return whether Redis was called.

        If another worker has the name by now, stop this one. The first beat is left to
        `__aenter__`, which waits for the jobs of a former process.
        """
        if self.lost is not None or self._sent == NEVER:
            return False
        if not self._is_new and time.monotonic() - self._sent < interval:
            return False
        try:
            await self._send(store)
        except NameTaken as taken:
            self.lost = taken
            if self._loop is not None:
                self._loop.call_soon_threadsafe(self._on_lost)
            log.error("worker.name_lost", why=str(taken))
        return True

    async def holds(self) -> bool:
        """Return whether the worker may act under its name; ask Redis if it may be gone."""
        while self.lost is None and time.monotonic() - self._sent > self._timeout:
            asked = time.monotonic()
            try:
                if not await self.beat(self._context.store):
                    return False  # it was stopped before it had the name
            except NOT_NOW as error:
                await self._context.outage.wait_after_failure(error, asked)
                if self._lifecycle.stopping:
                    return False
        return self.lost is None

    async def _send_overdue(self) -> None:
        """Send what the thread does not, as while resources are opened."""
        while True:
            await asyncio.sleep(OVERDUE)
            with contextlib.suppress(*NOT_NOW):
                await self.beat(self._context.store, interval=INTERVAL + OVERDUE)

    async def _send(self, store: Store) -> BeatReply:
        process = self._process()
        asked, was_new, self._is_new = time.monotonic(), self._is_new, False
        try:
            record = await store.beat(
                worker=self._worker,
                process=msgspec.json.encode(
                    {"id": process.id, "host": socket.gethostname(), "pid": os.getpid()}
                ),
                queues=[each.queue for each in self._lifecycle.subscriptions],
                after=" ".join(process.after) or None,
            )
        except BaseException:
            self._is_new = was_new or self._is_new
            raise
        reply = msgspec.convert(record, BeatReply)
        self._timeout = reply.timeout
        if not reply.waits:
            self._sent = asked
        for each in reply.gone:
            log.warning("worker.recovered", of=each.worker, jobs=each.jobs)
        return reply
