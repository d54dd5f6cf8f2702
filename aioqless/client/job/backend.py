"""JobBackend: what connects jobs and queues to their client."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from concurrent import futures
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from aioqless.client import job_data
from aioqless.client.codec import Codec, PlainCodec
from aioqless.client.job.progress_reporter import Reporter
from aioqless.client.job.watcher import JobWatcher
from aioqless.runtime.tasks import is_on_loop
from aioqless.store import OfflineStore, Store
from aioqless.store.offline_store import refusal

T = TypeVar("T")


@dataclass(frozen=True)
class RunContext:
    """What a worker gives to the runs of its jobs, of which steps, cursors and output are made.

    Attributes:
        loop: The event loop that it runs on.
        is_draining: Whether it shuts down gracefully.
        call_in_thread: Calls a function in one of its threads.
        park_after: For how many seconds a run waits before it parks.
    """

    loop: asyncio.AbstractEventLoop
    is_draining: Callable[[], bool]
    call_in_thread: Callable[[Callable[[], object]], Awaitable[object]]
    park_after: float

    def is_on_loop(self) -> bool:
        """Return whether the caller is a coroutine on the worker's loop; else it is a thread."""
        return is_on_loop(self.loop)

    def wait(self, work: Coroutine[object, object, T]) -> T:
        """Run a coroutine on the worker's loop, and wait for it in this thread."""
        try:
            return asyncio.run_coroutine_threadsafe(work, self.loop).result()
        except futures.CancelledError:  # an Exception, which handlers may catch
            raise asyncio.CancelledError from None


class OutputWriter(Protocol):
    """Takes what a run emits: for Redis, for the worker of a process, or for a test."""

    def emit(self, value: object) -> None:
        """Take a value. May be called in any thread."""

    async def flush(self) -> None:
        """Wait until all of it is sent."""


class ClientPart(Protocol):
    """What an extension makes for a client."""

    async def aclose(self) -> None:
        """End what it does; called when the client is closed."""


@dataclass(frozen=True)
class JobBackend:
    """The collaborators of a job, which a client shares with all jobs and queues that it returns.

    Attributes:
        store: Runs commands.
        codec: Encodes and decodes data and results.
        max_data: Maximum size of data, in bytes.
        job_watcher: Waits for changes of jobs; None without a connection.
        progress_reporter: Sends progress; None without a connection.
        output_job_watcher: Waits for output of jobs; None without a connection.
        parts: What extensions have made for the client, by name.
    """

    store: Store
    codec: Codec
    max_data: int = job_data.MAX_BYTES
    job_watcher: JobWatcher | None = None
    progress_reporter: Reporter | None = None
    output_job_watcher: JobWatcher | None = None
    parts: dict[str, ClientPart] = field(default_factory=dict, compare=False)

    @classmethod
    def offline(cls, max_data: int = job_data.MAX_BYTES) -> JobBackend:
        """Return the backend of a job in a process that has no connection to Redis."""
        return cls(OfflineStore(), PlainCodec(), max_data)

    async def aclose(self) -> None:
        """End what waits and sends for the client."""
        for part in (self.watcher, self.output_watcher, *self.parts.values()):
            await part.aclose()

    @property
    def watcher(self) -> JobWatcher:
        """Waits for changes of jobs.

        Raises:
            AioqlessError: There is no connection.
        """
        if self.job_watcher is None:
            raise refusal("wait")
        return self.job_watcher

    @property
    def output_watcher(self) -> JobWatcher:
        """Waits for output of jobs, and for their ends.

        Raises:
            AioqlessError: There is no connection.
        """
        if self.output_job_watcher is None:
            raise refusal("output")
        return self.output_job_watcher

    @property
    def reporter(self) -> Reporter:
        """Sends progress.

        Raises:
            AioqlessError: There is no connection.
        """
        if self.progress_reporter is None:
            raise refusal("progress")
        return self.progress_reporter
