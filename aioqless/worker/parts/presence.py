"""Presence: beats, by which Redis knows that a worker lives, what it serves and has run."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import time
from importlib import import_module
from typing import Self

import msgspec
from redis import exceptions

from aioqless.errors import AioqlessError, NameTaken
from aioqless.lua import constant
from aioqless.runtime.log import log
from aioqless.runtime.tasks import cancel_and_wait
from aioqless.store import Store
from aioqless.worker.context import NOT_NOW, WorkerContext, call_until_answered, memory_in_use
from aioqless.worker.shared import Shared

INTERVAL = 5.0  # seconds between two beats
OVERDUE = 1.0  # seconds after which the worker's loop sends a beat that the thread has not sent
LOOK_INTERVAL = 0.2  # seconds between two looks whether a name is free
NEVER = float("-inf")
LEAVE_TIMEOUT = 1.0  # seconds for the last counts, and for Redis to drop the worker from its list


class LostWorker(msgspec.Struct, frozen=True):
    """A worker that is gone, and how many jobs it had."""

    worker: str
    jobs: int


class BeatReply(msgspec.Struct):
    """What the command `beat` returns; its header says what that is.

    Attributes:
        more: Whether counts are left for the next beat.
    """

    timeout: float
    waits: bool
    gone: list[LostWorker]
    more: bool = False


class Presence:
    """Sends beats; a worker that sends none for `worker-timeout` loses its name and its jobs.

    `async with` takes the worker's name and gives it up. It waits for the next beat of another
    worker that has the name, or for the end of that one, whose jobs are put back first.

    A beat also has what the process uses, and what the worker has run since the latest beat that
    was answered; it is added once, although beats are sent again. What a killed worker has counted
    since is lost.

    `beat` is called by the lock renewer in its thread, so that a blocked loop doesn't keep it from
    being sent; the rest on the worker's loop.

    Args:
        context: The worker.
        shared: What tells this worker from others of its name, what it uses and has run; stopped
            when another worker has the name.

    Raises:
        NameTaken: Another worker has the name.

    Attributes:
        lost: Who has the name now.
    """

    def __init__(self, context: WorkerContext, shared: Shared) -> None:
        self.lost: NameTaken | None = None
        self._context = context
        self._lifecycle = context.lifecycle
        self._lifecycle.on_change.append(self._note_change)
        self._worker = context.name
        self._shared = shared
        self._reporter = shared.counts.make_reporter()
        self._started = time.time()
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
                        self._reporter.active = True
                        break
            await asyncio.sleep(LOOK_INTERVAL)
        self._sending = asyncio.create_task(self._send_overdue())
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._sending is not None:
            await cancel_and_wait(self._sending)
        if self.lost is None:
            store = self._context.store
            with contextlib.suppress(AioqlessError, exceptions.RedisError, OSError):
                async with asyncio.timeout(LEAVE_TIMEOUT):
                    while self._reporter.next():
                        await self._send_all(store)
                    await store.deregister(workers=[self._worker], id=self._shared.process.id)
        self._reporter.active = False

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
            await self._send_all(store)
        except NameTaken as taken:
            self.lost = taken
            self._reporter.active = False
            if self._loop is not None:
                self._loop.call_soon_threadsafe(self._shared.stop_at_once)
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

    async def _send_all(self, store: Store) -> None:
        """Send a beat; more than one if there are many counts."""
        while (await self._send(store)).more:
            pass

    async def _send(self, store: Store) -> BeatReply:
        process, report = self._shared.process, self._reporter.next()
        asked, was_new, self._is_new = time.monotonic(), self._is_new, False
        try:
            record = await store.beat(
                worker=self._worker,
                process=msgspec.json.encode({"id": process.id, **self._facts()}),
                queues=[each.queue for each in self._lifecycle.subscriptions],
                after=" ".join(process.after) or None,
                number=report.number if report else None,
                counts=report.counts if report else None,
            )
        except BaseException:
            self._is_new = was_new or self._is_new
            raise
        reply = msgspec.convert(record, BeatReply)
        self._timeout = reply.timeout
        if not reply.waits:
            self._sent = asked
            reply.more = self._reporter.note_answer(report)
        for each in reply.gone:
            log.warning("worker.recovered", of=each.worker, jobs=each.jobs)
        return reply

    def _facts(self) -> dict[str, object]:
        """Return what the worker is and uses."""
        running = self._shared.running
        return {
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "aioqless": import_module("aioqless").__version__,
            "version": self._context.settings.version_label,
            "started": self._started,
            "memory": memory_in_use(),
            "busy": len(running.slots),
            "slots": running.concurrency,
        }
