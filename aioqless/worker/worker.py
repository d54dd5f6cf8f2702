"""Worker: builds its parts, runs them, and stops them in order."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import time
from collections.abc import Callable, Sequence
from typing import Self

import anyio
from redis import exceptions

from aioqless.client import Client
from aioqless.errors import AioqlessError
from aioqless.handlers import Source
from aioqless.hints import suggest_options
from aioqless.runtime.log import bound, log
from aioqless.runtime.tasks import cancel_and_wait
from aioqless.store import ScriptStore
from aioqless.store.script_composer import compose
from aioqless.worker.job_source import JobSource
from aioqless.worker.outage import Outage
from aioqless.worker.scheduler import Declarations
from aioqless.worker.settings import Settings
from aioqless.worker.shared import Shared
from aioqless.worker.subscriptions import Subscription, find_unserved
from aioqless.worker.watchdog import stack_of

CLOSE_INTERVAL = 10.0  # seconds for parts and resources to close before they are canceled again
RELEASE_TIMEOUT = 1.0  # seconds for Redis to take back abandoned jobs and the worker's name

_OF_SETTINGS = {
    each.name: f"Worker(client, app.jobs, settings=Settings({each.name}=...))"
    for each in dataclasses.fields(Settings)
}


@suggest_options(
    {**_OF_SETTINGS, "queue": 'Worker(client, app.jobs, settings=Settings(queues=["mail"]))'}
)
class Worker:
    """Runs the jobs of some queues with the handlers of some modules, on the running loop.

    `async with Worker(client, app.jobs):` works in the background and drains when the block is
    left. It installs no signal handlers and never cancels its host: if a part of it breaks, the
    others stop, `healthy` turns false, and leaving the block raises the error.

    Args:
        client: The client whose namespace it works in.
        jobs: Modules or their dotted names, what `@job`, `@resource`, `@middleware`, `@on_finish`
            and `@on_lag` make, and lists of these.
        settings: How it behaves.
        name: A stable name, which only one worker may have at a time; default: `host-pid-nonce`.
        on_stopping: Called once when it begins to stop, for whatever reason.
        shared: What it has in common with other workers of this process, instead of jobs, settings,
            name and on_stopping; who made it enters it before they run.
        outage: Whether Redis can be reached, if others find out, too.
        locks: Sends the renewals of locks, from another thread; closed at the end.

    Raises:
        TypeError: One of `jobs` is something else.
        ValueError: There is no handler.
        AioqlessError: Handlers and resources don't fit together.
    """

    def __init__(
        self,
        client: Client,
        *jobs: Source,
        settings: Settings | None = None,
        name: str | None = None,
        on_stopping: Callable[[], object] | None = None,
        shared: Shared | None = None,
        outage: Outage | None = None,
        locks: ScriptStore | None = None,
    ) -> None:
        self._own: Shared | None = None  # what it shares with no one
        if shared is None:
            shared = Shared(client, *jobs, settings=settings, name=name, on_stopping=on_stopping)
            self._own = shared
        elif jobs or settings or name or on_stopping:
            raise TypeError("shared has the jobs, settings, name and on_stopping already")
        self._client = client
        self._shared = shared
        self.name = shared.name
        self.handlers = shared.handlers
        self.settings = shared.settings
        self._lifecycle = shared.lifecycle
        self._running = shared.running
        self._outage = outage
        self._locks = locks
        self._sources = self._make_sources()
        self._task: asyncio.Task[None] | None = None
        self._opening = False

    def _make_sources(self) -> Sequence[JobSource]:
        """Make what it takes jobs from: one namespace, unless an extension overrides this."""
        declarations: Declarations | None = None
        if self.settings.scheduler:
            served = self.settings.subscriptions
            declarations = Declarations(self._client, self.handlers, served)
        return [
            JobSource(
                self._client,
                self,
                self._shared,
                declarations,
                outage=self._outage,
                locks=self._locks,
            )
        ]

    @property
    def healthy(self) -> bool:
        """Whether it is working."""
        return self._task is not None and not self._task.done()

    @property
    def ready(self) -> bool:
        """Whether it takes jobs: it reaches Redis, and is neither paused nor stopping."""
        reached = any(source.outage.reached for source in self._sources)
        return reached and not (self.paused or self._lifecycle.stopping)

    @property
    def idle(self) -> bool:
        """Whether nothing more was ready at the last poll, and it waits for the next."""
        return all(source.poller.idle.is_set() for source in self._sources)

    @property
    def recycling(self) -> bool:
        """Whether it has reached `max_jobs` or `max_memory`."""
        return self._lifecycle.recycling

    @property
    def running(self) -> list[str]:
        """The jids of jobs that run, or whose outcome is not stored yet."""
        return list(self._running.by_jid)

    @property
    def abandoned(self) -> list[str]:
        """The jids of jobs whose code had not stopped when the worker had to end."""
        return [run.job.jid for source in self._sources for run in source.runner.abandoned]

    @property
    def waits_for_redis(self) -> bool:
        """Whether outcomes are not stored yet. From any thread."""
        runs = self._running.by_jid.copy().values()
        return any(run.ended and not run.job.settled for run in runs)

    @property
    def dropped_outcomes(self) -> bool:
        """Whether outcomes could not be stored before it had to end: their jobs run again."""
        return self._lifecycle.dropped

    async def release_abandoned(self) -> None:
        """Release the abandoned jobs; they use no retry.

        For a process that exits right after: their code still runs.
        """
        with contextlib.suppress(AioqlessError, exceptions.RedisError, TimeoutError):
            async with asyncio.timeout(RELEASE_TIMEOUT):
                for source in self._sources:
                    for run in source.runner.abandoned:
                        if not run.job.settled and run.stopped_by == "shutdown":
                            await source.store.release(
                                jid=run.job.jid, worker=self.name, fence=run.job.fence
                            )

    @property
    def subscriptions(self) -> tuple[Subscription, ...]:
        """What it serves now, in order of preference."""
        return tuple(self._sources[0].poller.subscriptions)

    @property
    def paused(self) -> bool:
        """Whether it is paused."""
        return self._sources[0].poller.paused

    def subscribe(self, queue: str, *, limit: int | None = None, weight: int = 1) -> None:
        """Serve a queue from now on, or with other limits if it is subscribed already.

        Args:
            queue: Name or pattern.
            limit: Maximum number of its jobs at once in this worker.
            weight: How often it is asked first, where the order is weighted.

        Raises:
            ValueError: A value is out of range, or the order is not weighted.
        """
        subscription = Subscription(queue, limit, weight)
        for source in self._sources:
            source.poller.subscribe(subscription)
            source.register()
        log.info("worker.subscribed", worker=self.name, queue=str(subscription))

    def unsubscribe(self, queue: str) -> None:
        """Stop serving a queue; running jobs are not affected.

        Args:
            queue: Name or pattern, as it was subscribed.

        Raises:
            ValueError: It is not subscribed by this name.
        """
        for source in self._sources:
            source.poller.unsubscribe(queue)
            source.register()
        log.info("worker.unsubscribed", worker=self.name, queue=queue)

    def pause(self) -> None:
        """Take no new jobs until `resume`; running jobs are not affected.

        A pop under way may still bring some; `worker.paused` is logged when none is.
        """
        for source in self._sources:
            source.poller.pause()

    def resume(self) -> None:
        """Take jobs again."""
        if self.paused:
            for source in self._sources:
                source.poller.resume()
            log.info("worker.resumed", worker=self.name)

    def stop(self) -> None:
        """Begin a graceful shutdown: `run` returns when running jobs have ended or are released."""
        began = [source.poller.stop() for source in self._sources]
        if any(began):  # it logs in its caller's context
            running = len(self._running.by_jid)
            log.info("worker.shutdown_started", worker=self.name, running=running)

    def stop_at_once(self) -> None:
        """Begin a shutdown that releases running jobs without waiting for them."""
        self.stop()
        for source in self._sources:
            source.runner.release_all()

    def dump_stacks(self, loop: asyncio.AbstractEventLoop) -> None:
        """Log the stack of every running job.

        Args:
            loop: The worker's loop. Call this from any other thread: the loop may be blocked.
        """
        runs = list(self._running.by_jid.values())
        with bound(worker=self.name):
            for run in runs:
                seconds = round(time.monotonic() - run.started, 3)
                stack = stack_of(run, loop)
                log.info("job.stack_dumped", **run.log_fields, seconds=seconds, stack=stack)
            log.info("worker.stacks_dumped", running=len(runs))

    async def run(self) -> None:
        """Work until stopped.

        Raises:
            NameTaken: Another worker has the name, or took it during an outage.
            redis.exceptions.RedisError: Redis refuses connections for good, such as to a database
                that doesn't exist.
        """
        with bound(worker=self.name), self._client.as_current():
            try:
                # The first script takes long, since it reads all Lua libraries.
                await asyncio.to_thread(compose, "pop_many", self._client.namespace)
                async with contextlib.AsyncExitStack() as stack:
                    for source in self._sources:
                        await stack.enter_async_context(source)
                    await self._work()
                for source in self._sources:
                    if source.name_lost:
                        raise source.name_lost
            except Exception as error:
                cause = _cause_of(error)
                log.error("worker.crashed", error=repr(cause or error))
                if cause is not None:
                    raise cause from None
                raise
            log.info("worker.stopped")

    async def _work(self) -> None:
        log.info(
            "worker.started",
            queues=tuple(str(each) for each in self.subscriptions),
            concurrency=self.settings.concurrency,
            handlers=len(self.handlers),
        )
        named = dict.fromkeys(handler.queue for handler in self.handlers if handler.queue)
        if unserved := find_unserved(named, self.subscriptions):
            log.info("worker.queues_skipped", queues=unserved)
        for source in self._sources:
            await source.check()
        self._opening = True
        async with self._own or contextlib.nullcontext(), asyncio.TaskGroup() as group:
            self._opening = False
            parts = [part for source in self._sources for part in source.parts]
            tasks = [group.create_task(part.run()) for part in parts]
            async with asyncio.TaskGroup() as working:
                for source in self._sources:
                    working.create_task(source.run())
            await cancel_and_wait(*tasks, every=CLOSE_INTERVAL)  # nothing runs or is pending now
        with contextlib.suppress(AioqlessError, exceptions.RedisError, OSError):
            async with asyncio.timeout(RELEASE_TIMEOUT):
                await asyncio.gather(
                    *(source.deregister() for source in self._sources), return_exceptions=True
                )

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
            if self._opening:  # nothing runs yet, and an unresponsive database is no reason to wait
                task.cancel()
        try:
            if self._opening:
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


def _cause_of(error: Exception) -> Exception | None:
    """Return why a part of the worker refused to work, or Redis refused a part of it, if so."""
    match error:
        case ExceptionGroup(exceptions=(Exception() as first, *_)):
            known = isinstance(first, AioqlessError | exceptions.RedisError)
            return first if known else _cause_of(first)
    return None
