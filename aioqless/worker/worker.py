"""Worker: builds its parts, runs them, and stops them in order."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import glob
import time
from collections.abc import Callable, Sequence
from typing import Self

import anyio
from redis import exceptions

from aioqless import validation
from aioqless.client import Client, worker_name
from aioqless.errors import AioqlessError, suggest_options
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
from aioqless.worker.importer import ImportLoop
from aioqless.worker.lifecycle import Lifecycle
from aioqless.worker.listener import Listener
from aioqless.worker.lock_renewer import RenewerThread
from aioqless.worker.memory_checks import ArchiveMonitor, check_eviction
from aioqless.worker.outage import Outage
from aioqless.worker.outcome_writer import OutcomeWriter
from aioqless.worker.poller import Poller
from aioqless.worker.registration import Registration
from aioqless.worker.remote_control import RemoteControl
from aioqless.worker.runner import Runner
from aioqless.worker.running_jobs import RunningJobs
from aioqless.worker.scheduler import Declarations, Scheduler
from aioqless.worker.settings import Settings
from aioqless.worker.stable_name import NameLease
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
    ) -> None:
        self.name = worker_name() if name is None else validation.check_name("name", name)
        self.handlers = Handlers.collect(*jobs)
        settings = settings or Settings()
        if settings.queues is None:  # a name with `*` in it stands for itself
            settings = dataclasses.replace(
                settings, queues=tuple(map(glob.escape, self.handlers.queues))
            )
        self.settings = settings
        self._middleware = _middleware_stack(jobs, self.handlers, client)
        self._client = client
        self._store = store = client.store
        self._lifecycle = lifecycle = Lifecycle(on_stopping, settings.recycle)
        self._outage = outage = Outage(settings.reconnect)
        self._running = running = RunningJobs(settings.concurrency)
        self._lease: NameLease | None = None
        if name is not None:
            self._lease = NameLease(store, name, outage, lifecycle, on_lost=self.stop_at_once)
        self._renewer = RenewerThread(
            client,
            self.name,
            running,
            outage,
            stuck_after=settings.stuck_after,
            chore=self._lease.renew if self._lease else None,
        )
        self._scheduler: Scheduler | None = None
        if settings.scheduler:
            declarations = Declarations(client, self.handlers, settings.subscriptions)
            self._scheduler = Scheduler(store, declarations, outage)
        self._imports = [
            ImportLoop(client, source, outage, settings.poll) for source in settings.importers
        ]
        self._poller = Poller(
            client,
            self.name,
            running,
            outage,
            lifecycle,
            settings,
            lease=self._lease,
            feeders=[each for each in (self._scheduler, *self._imports) if each is not None],
        )
        self._registration: Registration | None = None
        if not settings.burst:
            self._registration = Registration(client, self.name, self._queue_names, outage)
        self._writer = OutcomeWriter(store, self.name, outage, lifecycle)
        self._runner = Runner(
            self.handlers,
            self._middleware,
            self._writer,
            settings,
            running,
            lifecycle,
            on_short_lock=self._renewer.watch,
            on_end=self._poller.run_ended,
        )
        remote_control = RemoteControl(store, self)
        self._listener = Listener(
            client,
            self.name,
            self._renewer,
            self._poller,
            remote_control,
            scheduler=self._scheduler,
            registration=self._registration,
        )
        self._archive_monitor = ArchiveMonitor(store)
        self._task: asyncio.Task[None] | None = None
        self._opening = False

    @property
    def healthy(self) -> bool:
        """Whether it is working."""
        return self._task is not None and not self._task.done()

    @property
    def ready(self) -> bool:
        """Whether it takes jobs: it reaches Redis, and is neither paused nor stopping."""
        return self._outage.reached and not (self._poller.paused or self._lifecycle.stopping)

    @property
    def idle(self) -> bool:
        """Whether nothing more was ready at the last poll, and it waits for the next."""
        return self._poller.idle.is_set()

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
        return [run.job.jid for run in self._runner.abandoned]

    @property
    def waits_for_redis(self) -> bool:
        """Whether outcomes wait for Redis, which is away, while locks last. From any thread."""
        runs = self._running.by_jid.copy().values()
        return not self._outage.reached and any(
            run.ended and time.monotonic() < run.deadline for run in runs
        )

    async def release_abandoned(self) -> None:
        """Release the abandoned jobs; they use no retry.

        For a process that exits right after: their code still runs.
        """
        with contextlib.suppress(AioqlessError, exceptions.RedisError, TimeoutError):
            async with asyncio.timeout(RELEASE_TIMEOUT):
                for run in self._runner.abandoned:
                    if not run.job.settled and run.stopped_by == "shutdown":
                        await self._store.release(
                            jid=run.job.jid, worker=self.name, fence=run.job.fence
                        )

    @property
    def subscriptions(self) -> tuple[Subscription, ...]:
        """What it serves now, in order of preference."""
        return tuple(self._poller.subscriptions)

    @property
    def paused(self) -> bool:
        """Whether it is paused."""
        return self._poller.paused

    def subscribe(self, queue: str, *, limit: int | None = None, weight: int = 1) -> None:
        """Serve a queue from now on, or under other terms if it is subscribed already.

        Args:
            queue: Name or pattern.
            limit: Maximum number of its jobs at once in this worker.
            weight: How often it is asked first, where the order is weighted.

        Raises:
            ValueError: A value is out of range, or the order is not weighted.
        """
        subscription = Subscription(queue, limit, weight)
        self._poller.subscribe(subscription)
        self._register()
        log.info("worker.subscribed", worker=self.name, queue=str(subscription))

    def unsubscribe(self, queue: str) -> None:
        """Stop serving a queue; running jobs are not affected.

        Args:
            queue: Name or pattern, as it was subscribed.

        Raises:
            ValueError: It is not subscribed by this name.
        """
        self._poller.unsubscribe(queue)
        self._register()
        log.info("worker.unsubscribed", worker=self.name, queue=queue)

    def _register(self) -> None:
        if self._registration is not None:
            self._registration.wake()

    def _queue_names(self) -> list[str]:
        return [each.queue for each in self._poller.subscriptions]

    def pause(self) -> None:
        """Take no new jobs until `resume`; running jobs are not affected.

        A pop under way may still bring some; `worker.paused` is logged when none is.
        """
        self._poller.pause()

    def resume(self) -> None:
        """Take jobs again."""
        if self.paused:
            self._poller.resume()
            log.info("worker.resumed", worker=self.name)

    def stop(self) -> None:
        """Begin a graceful shutdown: `run` returns when running jobs have ended or are released."""
        if self._poller.stop():  # it logs in its caller's context
            running = len(self._running.by_jid)
            log.info("worker.shutdown_started", worker=self.name, running=running)

    def stop_at_once(self) -> None:
        """Begin a shutdown that releases running jobs without waiting for them."""
        self.stop()
        self._runner.release_all()

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
        """
        with bound(worker=self.name), self._client.as_current():
            try:
                async with self._lease or contextlib.nullcontext():
                    await self._work()
                if self._lease and self._lease.lost:
                    raise self._lease.lost
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
        allowed = self.settings.allow_eviction
        await check_eviction(self._store, self._outage, self._lifecycle, allowed=allowed)
        self._opening = True
        async with self._middleware.resources.opened(), asyncio.TaskGroup() as group:
            self._opening = False
            parts = (
                self._writer,
                self._renewer,
                self._listener,
                self._scheduler,
                self._registration,
                self._archive_monitor,
                *self._imports,
            )
            tasks = [group.create_task(part.run()) for part in parts if part is not None]
            async with self._runner, asyncio.TaskGroup() as polling:
                polling.create_task(self._poller.run(self._runner.start))
            await cancel_and_wait(*tasks, every=CLOSE_INTERVAL)  # nothing runs or is pending now
        if not (self._lease and self._lease.lost):
            with contextlib.suppress(AioqlessError, exceptions.RedisError, OSError):
                async with asyncio.timeout(RELEASE_TIMEOUT):  # one that stays listed was killed
                    await self._store.deregister(workers=[self.name])

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


def _cause_of(error: Exception) -> AioqlessError | None:
    """Return the AioqlessError by which a part of the worker refused to work, if one did."""
    match error:
        case ExceptionGroup(exceptions=(Exception() as first, *_)):
            return first if isinstance(first, AioqlessError) else _cause_of(first)
    return None


def _middleware_stack(
    sources: Sequence[Source], handlers: Handlers, client: Client
) -> MiddlewareStack:
    """Collect middleware, hooks and resources, and check that each has what it takes."""
    resources = Resources(declared(Resource, sources), available={Client: client})
    for handler in handlers:
        resources.check(handler.fn, handler.takes.injected)
    return MiddlewareStack(declared(Middleware, sources), declared(Hook, sources), resources)
