"""Shared: what the consumers of a worker have in common."""

from __future__ import annotations

import contextlib
import dataclasses
import glob
import secrets
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Protocol

from aioqless import validation
from aioqless.client import Client, extensions, worker_name
from aioqless.handlers import (
    Handler,
    Handlers,
    Hook,
    Middleware,
    MiddlewareStack,
    Resource,
    Resources,
    Source,
    declared,
)
from aioqless.runtime.log import log
from aioqless.worker.context import Lifecycle
from aioqless.worker.lock_renewer import RenewerThread
from aioqless.worker.run_counts import RunCounts
from aioqless.worker.running_jobs import Run, RunningJobs
from aioqless.worker.settings import Settings, find_version
from aioqless.worker.thread_pool import ThreadPool
from aioqless.worker.watchdog import LoopWatchdog


@dataclasses.dataclass(frozen=True)
class ProcessIdentity:
    """What tells a worker from others of its name.

    Attributes:
        id: Its own id, unique.
        after: The ids of former workers of this name that are known to have ended.
    """

    id: str = dataclasses.field(default_factory=lambda: secrets.token_hex(8))
    after: tuple[str, ...] = ()


class Processes(Protocol):
    """Where handlers with `executor="process"` run; a protocol, since an extension brings it."""

    async def perform(self, runs: Sequence[Run], handler: Handler[...]) -> object:
        """Call a handler; return what it returned, or raise what it raised, when it has stopped."""

    async def aclose(self) -> None:
        """End all processes."""


class Shared:
    """Handlers and resources, slots and executors, the lock renewer's thread, one end for all.

    Args:
        client: The client that handlers get injected.
        jobs: What runs, as for `Worker`.
        settings: How the worker behaves; limits are those of all consumers together.
        name: A stable name, in each namespace; default: `host-pid-nonce`.
        on_stopping: Called once when the worker begins to stop.

    Raises:
        TypeError, ValueError, AioqlessError: As for `Worker`.
    """

    def __init__(
        self,
        client: Client,
        *jobs: Source,
        settings: Settings | None = None,
        name: str | None = None,
        on_stopping: Callable[[], object] | None = None,
    ) -> None:
        self.name = worker_name() if name is None else validation.check_name("name", name)
        self.process = ProcessIdentity()  # replaced before the start, if ever
        self.handlers = Handlers.collect(*jobs)
        settings = settings or Settings()
        if settings.queues is None:  # a name with `*` in it stands for itself
            settings = dataclasses.replace(
                settings, queues=tuple(map(glob.escape, self.handlers.queues))
            )
        version = validation.fit_name(settings.version_label or find_version()) or None
        self.settings = settings = dataclasses.replace(settings, version_label=version)
        self.counts = RunCounts()
        available: dict[object, object] = {Client: client, RunCounts: self.counts}
        self.middleware = _middleware_stack(jobs, self.handlers, available)
        self.lifecycle = Lifecycle(self.name, settings, on_stopping)
        self.running = RunningJobs(self.name, settings.concurrency)
        self.threads = ThreadPool(settings.threads)
        self.processes: Processes | None = None
        if any(handler.executor for handler in self.handlers):
            self.processes = extensions.load("process_pool").ProcessPool(self.handlers, settings)
        self.watchdog = LoopWatchdog()
        self.renewer_thread = RenewerThread(self.running, self.watchdog)
        self.logged_klasses: set[str] = set()  # klasses without a handler that were logged
        self.opening = False  # resources are being opened, and nothing runs yet

    def stop(self) -> None:
        """Begin a graceful shutdown."""
        if self.lifecycle.stop():
            running = len(self.running.by_jid)
            log.info("worker.shutdown_started", worker=self.name, running=running)

    def stop_at_once(self) -> None:
        """Begin a shutdown that releases running jobs without waiting for them."""
        self.stop()
        self.lifecycle.release()
        for run in self.running.by_jid.values():
            run.stop("shutdown")

    @contextlib.asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        """Open resources and start the thread; leave the block when the consumers have ended."""
        async with contextlib.AsyncExitStack() as stack:
            self.opening = True
            await stack.enter_async_context(self.middleware.resources.opened())
            self.opening = False
            await stack.enter_async_context(self.renewer_thread.started())
            if self.processes is not None:
                stack.push_async_callback(self.processes.aclose)
            yield


def _middleware_stack(
    sources: Sequence[Source], handlers: Handlers, available: Mapping[object, object]
) -> MiddlewareStack:
    """Collect middleware, hooks and resources, and check that each has what it takes."""
    resources = Resources(declared(Resource, sources), available=available)
    for handler in handlers:
        resources.check(handler.fn, handler.takes.injected)
    return MiddlewareStack(declared(Middleware, sources), declared(Hook, sources), resources)
