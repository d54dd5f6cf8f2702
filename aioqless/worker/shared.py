"""Shared: what several workers in one process may have in common."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import glob
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Sequence
from types import TracebackType
from typing import Self

import anyio
from redis import exceptions

from aioqless import validation
from aioqless.client import Client, worker_name
from aioqless.errors import AioqlessError
from aioqless.handlers import (
    Handlers,
    Hook,
    Middleware,
    MiddlewareStack,
    Resource,
    Resources,
    Source,
    declared,
)
from aioqless.runtime.log import bound, log
from aioqless.runtime.tasks import cancel_and_wait
from aioqless.store.script_composer import compose
from aioqless.worker.context import Lifecycle
from aioqless.worker.executors.process_pool import ProcessPool
from aioqless.worker.executors.thread_pool import ThreadPool
from aioqless.worker.lock_renewer import RenewerThread
from aioqless.worker.running_jobs import RunningJobs
from aioqless.worker.settings import Settings
from aioqless.worker.subscriptions import Subscription, find_unserved
from aioqless.worker.watchdog import LoopWatchdog, stack_of

CLOSE_INTERVAL = 10.0  # seconds for parts and resources to close before they are canceled again


class Shared:
    """Handlers and resources, slots and executors, the lock renewer's thread, one end for all.

    A worker makes its own, unless it is given one that others have, too. `async with` opens the
    resources and starts the thread; leave it when the workers have ended.

    Args:
        client: The client that handlers get injected.
        jobs: What runs, as for `Worker`.
        settings: How the workers behave; `concurrency` and other limits are those of all together.
        name: A stable name of all workers, each in its namespace; default: `host-pid-nonce`.
        on_stopping: Called once when they begin to stop.

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
        self.has_stable_name = name is not None
        self.handlers = Handlers.collect(*jobs)
        settings = settings or Settings()
        if settings.queues is None:  # a name with `*` in it stands for itself
            settings = dataclasses.replace(
                settings, queues=tuple(map(glob.escape, self.handlers.queues))
            )
        self.settings = settings
        self.middleware = _middleware_stack(jobs, self.handlers, client)
        self.lifecycle = Lifecycle(on_stopping, settings.recycle)
        self.running = RunningJobs(settings.concurrency)
        self.threads = ThreadPool(settings.executors.threads)
        self.processes = ProcessPool(self.handlers, settings.executors)
        self.watchdog = LoopWatchdog()
        self.renewer_thread = RenewerThread(self.running, self.watchdog)
        self.logged_queues: set[str] = set()  # queues that were logged as misspelled
        self.logged_klasses: set[str] = set()  # klasses without a handler that were logged
        self.opening = False  # resources are being opened, and nothing runs yet
        self._opened = contextlib.AsyncExitStack()

    async def __aenter__(self) -> Self:
        async with contextlib.AsyncExitStack() as stack:
            self.opening = True
            await stack.enter_async_context(self.middleware.resources.opened())
            self.opening = False
            await stack.enter_async_context(self.renewer_thread)
            stack.push_async_callback(self.processes.aclose)
            self._opened = stack.pop_all()
        return self

    async def __aexit__(
        self,
        failed: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._opened.__aexit__(failed, error, trace)


class HostedWorker(ABC):
    """What workers of one namespace and of several have in common.

    `async with` works in the background and drains when the block is left.

    Args:
        client: The client that handlers put with.
        shared: What its parts have in common.
    """

    def __init__(self, client: Client, shared: Shared) -> None:
        self.name = shared.name
        self.handlers = shared.handlers
        self.settings = shared.settings
        self._client = client
        self._shared = shared
        self._task: asyncio.Task[None] | None = None

    @property
    @abstractmethod
    def subscriptions(self) -> tuple[Subscription, ...]:
        """What it serves now, in order of preference."""

    @property
    @abstractmethod
    def paused(self) -> bool:
        """Whether it is paused."""

    @abstractmethod
    def subscribe(self, queue: str, *, limit: int | None = None, weight: int = 1) -> None:
        """Serve a queue from now on."""

    @abstractmethod
    def unsubscribe(self, queue: str) -> None:
        """Stop serving a queue."""

    @abstractmethod
    def pause(self) -> None:
        """Take no new jobs until `resume`."""

    @abstractmethod
    def resume(self) -> None:
        """Take jobs again."""

    @abstractmethod
    def stop(self) -> None:
        """Begin a graceful shutdown: `run` returns when running jobs have ended or are released."""

    @abstractmethod
    def stop_at_once(self) -> None:
        """Begin a shutdown that releases running jobs without waiting for them."""

    @abstractmethod
    async def run(self) -> None:
        """Work until stopped."""

    @property
    def healthy(self) -> bool:
        """Whether it is working."""
        return self._task is not None and not self._task.done()

    @property
    def recycling(self) -> bool:
        """Whether it has reached `max_jobs` or `max_memory`."""
        return self._shared.lifecycle.recycling

    @property
    def running(self) -> list[str]:
        """The jids of jobs that run, or whose outcome is not stored yet."""
        return list(self._shared.running.by_jid)

    @property
    def waits_for_redis(self) -> bool:
        """Whether outcomes are not stored yet. From any thread."""
        runs = self._shared.running.by_jid.copy().values()
        return any(run.ended and not run.job.settled for run in runs)

    @property
    def dropped_outcomes(self) -> bool:
        """Whether outcomes could not be stored before it had to end: their jobs run again."""
        return self._shared.lifecycle.dropped

    def dump_stacks(self, loop: asyncio.AbstractEventLoop) -> None:
        """Log the stack of every running job.

        Args:
            loop: The worker's loop. Call this from any other thread: the loop may be blocked.
        """
        runs = list(self._shared.running.by_jid.values())
        with bound(worker=self.name):
            for run in runs:
                seconds = round(time.monotonic() - run.started, 3)
                stack = stack_of(run, loop)
                log.info("job.stack_dumped", **run.log_fields, seconds=seconds, stack=stack)
            log.info("worker.stacks_dumped", running=len(runs))

    async def __aenter__(self) -> Self:
        name = f"aioqless worker {self.name}"
        self._task = asyncio.create_task(self._run_in_host(), name=name)
        return self

    async def _run_in_host(self) -> None:
        """Work; a resource that calls sys.exit ends the worker, and not the loop of its host."""
        try:
            await self.run()
        except SystemExit as left:
            error = AioqlessError(f"a resource of worker {self.name} wanted to exit: {left.code!r}")
            with bound(worker=self.name):
                log.error("worker.crashed", error=repr(error))
            raise error from left

    async def __aexit__(self, failed: type[BaseException] | None, *_: object) -> None:
        task = self._task
        if task is None:
            return
        if not task.done():
            self.stop()
            if (
                self._shared.opening
            ):  # nothing runs yet, and an unresponsive database is no reason to wait
                task.cancel()
        try:
            if self._shared.opening:
                await cancel_and_wait(task, every=CLOSE_INTERVAL)
            await asyncio.wait([task])
        except asyncio.CancelledError:  # the host can't wait: running jobs are released at once
            task.cancel()
            # A cancel scope of the host would cancel again at each iteration of the loop, and
            # nothing would be released.
            shield = anyio.CancelScope(shield=True)
            with shield, contextlib.suppress(Exception, asyncio.CancelledError):
                await task
            raise
        if (
            failed is None and not task.cancelled()
        ):  # the host's own error comes before a logged one
            task.result()

    def _log_start(self) -> None:
        log.info(
            "worker.started",
            queues=tuple(str(each) for each in self.subscriptions),
            concurrency=self.settings.concurrency,
            handlers=len(self.handlers),
        )
        named = dict.fromkeys(handler.queue for handler in self.handlers if handler.queue)
        if unserved := find_unserved(named, self.subscriptions):
            log.info("worker.queues_skipped", queues=unserved)

    def _log_shutdown(self) -> None:
        running = len(self._shared.running.by_jid)
        log.info("worker.shutdown_started", worker=self.name, running=running)

    @contextlib.asynccontextmanager
    async def _reported(self) -> AsyncIterator[None]:
        """Log the end of what is done within the block; handlers put with the client."""
        with bound(worker=self.name), self._client.as_current():
            try:
                # The first script takes long, since it reads all Lua libraries.
                await asyncio.to_thread(compose, "pop_many", self._client.namespace)
                yield
            except Exception as error:
                cause = _cause_of(error)
                log.error("worker.crashed", error=repr(cause or error))
                if cause is not None:
                    raise cause from None
                raise
            log.info("worker.stopped")


def _cause_of(error: Exception) -> Exception | None:
    """Return why a part of the worker refused to work, or Redis refused a part of it, if so."""
    match error:
        case ExceptionGroup(exceptions=(Exception() as first, *_)):
            known = isinstance(first, AioqlessError | exceptions.RedisError)
            return first if known else _cause_of(first)
    return None


def _middleware_stack(
    sources: Sequence[Source], handlers: Handlers, client: Client
) -> MiddlewareStack:
    """Collect middleware, hooks and resources, and check that each has what it takes."""
    resources = Resources(declared(Resource, sources), available={Client: client})
    for handler in handlers:
        resources.check(handler.fn, handler.takes.injected)
    return MiddlewareStack(declared(Middleware, sources), declared(Hook, sources), resources)
