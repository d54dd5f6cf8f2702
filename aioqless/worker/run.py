"""Run: one attempt of one job in this worker."""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from aioqless.client.job import Job, Reason
from aioqless.handlers import Handler


@dataclass(eq=False)
class Run:
    """The runner makes it, starts its task and ends it; `stop` may be called by whoever learns a
    reason.

    `started` is by the loop's clock. The lock lasted `lock` seconds when it was last renewed, by
    the heart, and lasts until `deadline` at least, by time.monotonic, which all threads share: of
    Redis' clock only differences count, for after a fail-over it may be another."""

    job: Job
    started: float
    lock: float
    deadline: float
    task: asyncio.Task[Any] | None = (
        None  # the one that the handler runs in, while it may be cancelled
    )
    ended: bool = False  # the handler has
    watcher: asyncio.Task[None] | None = None  # the runner's, which ends when the outcome is stored
    stopped_by: Reason | None = None
    handler: Handler | None = None  # None: no handler here claims the klass
    result: Any = None
    kept: bytes | None = None  # what is kept of the result
    data: bytes | None = None
    error: BaseException | None = None
    left: bool = False  # its code doesn't stop, and the worker ends without it
    counted: float | None = None  # since when its time is counted, if not since it started

    @property
    def timeout(self) -> float | None:
        """How many seconds it may take."""
        return self.handler.timeout if self.handler else None

    def time_left(self) -> float | None:
        """How many seconds it may still take; None: as many as it likes."""
        if self.timeout is None:
            return None
        now = asyncio.get_running_loop().time()
        since = self.started if self.counted is None else self.counted
        return self.timeout if since == math.inf else max(0.0, since + self.timeout - now)

    @contextlib.contextmanager
    def waiting(self) -> Iterator[None]:
        """Where it waits for a thread or a process: its time is counted from then on."""
        self.counted = math.inf
        try:
            yield
        finally:
            self.counted = asyncio.get_running_loop().time()

    @property
    def who(self) -> dict[str, str]:
        """What every log line about it says."""
        return {"jid": self.job.jid, "klass": self.job.klass, "queue": self.job.queue}

    def stop(self, reason: Reason) -> None:
        """Record why, then cancel the handler; the first reason counts."""
        if self.stopped_by is None:
            self.stopped_by = self.job.stopped = reason
            if self.task is not None:
                self.task.cancel()
