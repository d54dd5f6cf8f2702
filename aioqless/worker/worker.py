"""Worker: controls what runs jobs, in a host program or as a process; Consumer: its parts."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from functools import partial
from typing import Self

import anyio
from redis import exceptions

from aioqless.client import Client, acting_as
from aioqless.client.new_job import DEFAULT_QUEUE
from aioqless.errors import AioqlessError
from aioqless.handlers import Source
from aioqless.hints import suggest_options
from aioqless.runtime.log import bound, log
from aioqless.runtime.tasks import cancel_and_wait
from aioqless.store import ScriptStore
from aioqless.store.script_composer import compose
from aioqless.worker.context import Outage, Part, WorkerContext
from aioqless.worker.lock_renewer import LockRenewer, LostLocks
from aioqless.worker.outcome_writer import OutcomeWriter
from aioqless.worker.parts.listener import Listener, RemoteControl
from aioqless.worker.parts.memory_checks import ArchiveMonitor, check_eviction
from aioqless.worker.parts.presence import Presence
from aioqless.worker.parts.scheduler import Declarations, Scheduler
from aioqless.worker.poller import Poller, Slots
from aioqless.worker.runner import OUTCOME_TIMEOUT, Runner
from aioqless.worker.settings import Settings
from aioqless.worker.shared import ProcessIdentity, Shared
from aioqless.worker.subscriptions import Subscription, find_unserved
from aioqless.worker.watchdog import stack_of

CLOSE_INTERVAL = 10.0  # seconds for parts and resources to close before they are canceled again
# Of a call of the lock renewer; a connection that is silent for a third of it is replaced while
# there is still time.
LOCKS_TIMEOUT = 15.0

_OF_SETTINGS = {
    each.name: f"Worker(client, app.jobs, settings=Settings({each.name}=...))"
    for each in dataclasses.fields(Settings)
}


class Consumer:
    """Takes and runs the jobs of one namespace.

    Args:
        client: The client of the namespace.
        shared: What it has in common with other consumers of the same worker.
        declarations: The recurring jobs that it declares; None without a scheduler.
        outage: Whether Redis can be reached, if others find out, too.
        locks: Sends the renewals of locks, from another thread; closed at the end.
        slots: When it may pop; default: whenever a slot is free.
        parts: What runs beside its jobs.
    """

    def __init__(
        self,
        client: Client,
        shared: Shared,
        declarations: Declarations | None,
        *,
        outage: Outage | None = None,
        locks: ScriptStore | None = None,
        slots: Slots | None = None,
        parts: Sequence[Part] = (),
    ) -> None:
        self._context = context = WorkerContext(
            client,
            shared.name,
            shared.settings,
            outage or Outage(shared.settings.reconnect),
            shared.lifecycle,
        )
        self._presence = Presence(context, shared)
        self._renewer = LockRenewer(
            locks or client.internals.access.make_dedicated_store("locks", LOCKS_TIMEOUT),
            shared.name,
            shared.running.by_jid,
            shared.watchdog,
            shared.settings.stuck_after,
            self._presence.beat,
        )
        self._scheduler = Scheduler(context, declarations) if declarations else None
        self._poller = Poller(
            context,
            shared.running,
            slots or shared.running,
            holds_name=self._presence.holds,
            caught_up=lambda: all(
                getattr(part, "caught_up", True) for part in (self._scheduler, *parts)
            ),
            takes_bulks=shared.handlers.takes_bulks,
        )
        self.listener = Listener(
            context,
            self._renewer,
            self._poller,
            RemoteControl(context.store, shared),
            shared.running,
            scheduler=self._scheduler,
        )
        self._writer = OutcomeWriter(context)
        self._runner = Runner(context, shared, self._renewer, self._writer, self._poller.note_end)
        self._lost_locks = LostLocks(self._renewer, context, shared.renewer_thread)
        own = (self._lost_locks, self._writer, self._scheduler)
        self._beside = [part.run for part in own if part is not None]
        self._beside += [partial(part.run, context) for part in (ArchiveMonitor(), *parts)]

    @property
    def reached(self) -> bool:
        """Whether Redis answered the last call."""
        return self._context.outage.reached

    @property
    def idle(self) -> bool:
        """Whether nothing more was ready at the last poll, and it waits for the next."""
        return self._poller.idle.is_set()

    @property
    def abandoned(self) -> list[str]:
        """The jids of jobs whose code had not stopped when it had to end."""
        return [run.job.jid for run in self._runner.abandoned]

    async def release_abandoned(self) -> None:
        """Release the abandoned jobs; log each that Redis refuses or doesn't release in time."""
        until = asyncio.get_running_loop().time() + OUTCOME_TIMEOUT
        for run in self._runner.abandoned:
            if run.job.settled or run.stopped_by != "shutdown":
                continue
            job = run.job
            try:
                async with asyncio.timeout_at(until):
                    await self._context.store.release(
                        jid=job.jid, worker=self._context.name, fence=job.fence
                    )
            except (AioqlessError, exceptions.RedisError, TimeoutError) as error:
                self._context.lifecycle.note_dropped()
                log.error(
                    "job.outcome_dropped",
                    **run.log_fields,
                    outcome="released",
                    why=str(error) or f"Redis did not answer within {OUTCOME_TIMEOUT:g} s",
                )

    @contextlib.asynccontextmanager
    async def named(self) -> AsyncIterator[None]:
        """Hold the name within the block, and let others know that the worker lives.

        Raises:
            NameTaken: Another worker has the name, or took it during an outage.
        """
        async with self._presence:
            yield
        if self._presence.lost:
            raise self._presence.lost

    async def check_server(self) -> None:
        """Refuse a Redis that evicts keys; wait while it is unavailable."""
        await check_eviction(self._context)

    async def run(self, *beside: Callable[[], Coroutine[object, object, None]]) -> None:
        """Take and run jobs until stopped.

        Args:
            beside: What else runs meanwhile.
        """
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(run()) for run in (*self._beside, *beside)]
            async with self._runner.finishing():
                if self._scheduler is not None:
                    await self._scheduler.declared.wait()
                await self._poller.run(self._runner.start)
            await cancel_and_wait(*tasks, every=CLOSE_INTERVAL)  # nothing runs or is pending


class AnyWorker(ABC):
    """A worker of one namespace or of several: a consumer for each, which `run` runs.

    `async with` works in the background and drains when the block is left.

    Args:
        client: The client that handlers put with.
        shared: What its consumers have in common.
    """

    _consumers: Sequence[Consumer]

    def __init__(self, client: Client, shared: Shared) -> None:
        self.name = shared.name
        self.handlers = shared.handlers
        self.settings = shared.settings
        self._client = client
        self._shared = shared
        self._releasing = False
        self._task: asyncio.Task[None] | None = None

    @abstractmethod
    async def run(self) -> None:
        """Work until stopped.

        Raises:
            NameTaken: Another worker has the name, or took it during an outage.
            redis.exceptions.RedisError: Redis refuses connections for good, such as to a database
                that doesn't exist.
        """

    def identify(self, id: str, *, after: Sequence[str] = ()) -> None:
        """Say before the start which process it is, for a supervisor that sees processes end.

        Args:
            id: What tells it from others of its name; unique.
            after: The ids of former processes of this name that have ended: their jobs are put
                back at once, and the name is free.
        """
        self._shared.process = ProcessIdentity(id, tuple(after))

    @property
    def ready(self) -> bool:
        """Whether it takes jobs: it reaches Redis, and is neither paused nor stopping."""
        reached = any(consumer.reached for consumer in self._consumers)
        return reached and not (self.paused or self._shared.lifecycle.stopping)

    @property
    def idle(self) -> bool:
        """Whether nothing more was ready at the last poll, and it waits for the next."""
        return all(consumer.idle for consumer in self._consumers)

    @property
    def subscriptions(self) -> tuple[Subscription, ...]:
        """What it serves now, in order of preference."""
        return self._shared.lifecycle.subscriptions

    @property
    def paused(self) -> bool:
        """Whether it is paused."""
        return self._shared.running.paused

    def subscribe(self, queue: str, *, limit: int | None = None, weight: int = 1) -> None:
        """Serve a queue from now on, or with other limits if it is subscribed already.

        Args:
            queue: Name or pattern.
            limit: Maximum number of its jobs at once in this worker.
            weight: How often it is asked first, where the order is weighted.

        Raises:
            ValueError: A value is out of range, or the order is not weighted.
        """
        self._shared.lifecycle.subscribe(Subscription(queue, limit, weight))

    def unsubscribe(self, queue: str) -> None:
        """Stop serving a queue; running jobs are not affected.

        Args:
            queue: Name or pattern, as it was subscribed.

        Raises:
            ValueError: It is not subscribed by this name.
        """
        self._shared.lifecycle.unsubscribe(queue)

    def pause(self) -> None:
        """Take no new jobs until `resume`; running jobs are not affected.

        A pop under way may still bring some; `worker.paused` is logged when none is.
        """
        self._shared.running.pause()

    def resume(self) -> None:
        """Take jobs again."""
        self._shared.running.resume()

    def stop(self) -> None:
        """Begin a graceful shutdown: `run` returns when running jobs have ended or are released."""
        self._shared.stop()  # it logs in its caller's context

    def stop_at_once(self) -> None:
        """Begin a shutdown that releases running jobs without waiting for them."""
        self._shared.stop_at_once()

    @property
    def abandoned(self) -> list[str]:
        """The jids of jobs whose code had not stopped when the worker had to end."""
        return [jid for consumer in self._consumers for jid in consumer.abandoned]

    async def release_abandoned(self) -> None:
        """Release the abandoned jobs; they use no retry.

        For a process that exits right after: their code still runs.
        """
        self._releasing = True
        await asyncio.gather(*(consumer.release_abandoned() for consumer in self._consumers))
        self._releasing = False

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
        """Whether outcomes are not stored yet, or jobs not released. From any thread."""
        runs = self._shared.running.by_jid.copy().values()
        return self._releasing or any(run.ended and not run.job.settled for run in runs)

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
            # Nothing runs yet, and an unresponsive database is no reason to wait.
            if self._shared.opening:
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
        # The host's own error comes before a logged one.
        if failed is None and not task.cancelled():
            task.result()

    async def compose_scripts(self) -> None:
        """Compose the first scripts, which takes long: they read all Lua libraries.

        `run` does so.
        """
        for command in ("pop_many", "complete_many"):
            await asyncio.to_thread(compose, command, self._client.namespace)

    def _log_start(self) -> None:
        log.info(
            "worker.started",
            queues=tuple(str(each) for each in self.subscriptions),
            concurrency=self.settings.concurrency,
            handlers=len(self.handlers),
        )
        named = dict.fromkeys(
            handler.queue or DEFAULT_QUEUE
            for handler in self.handlers
            if handler.queue or handler.recurrence
        )
        if unserved := find_unserved(named, self.subscriptions):
            log.info("worker.queues_skipped", queues=unserved)

    @contextlib.asynccontextmanager
    async def _reported(self) -> AsyncIterator[None]:
        """Log the end of what is done within the block; handlers put with the client."""
        with bound(worker=self.name), self._client.as_current(), acting_as(self.name):
            try:
                await self.compose_scripts()
                yield
            except Exception as error:
                cause = _cause_of(error)
                log.error("worker.crashed", error=repr(cause or error))
                if cause is not None:
                    raise cause from None
                raise
            log.info("worker.stopped")


@suggest_options(
    {**_OF_SETTINGS, "queue": 'Worker(client, app.jobs, settings=Settings(queues=["mail"]))'}
)
class Worker(AnyWorker):
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
        parts: What runs beside its jobs; each has a method `run`.

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
        parts: Sequence[Part] = (),
    ) -> None:
        shared = Shared(client, *jobs, settings=settings, name=name, on_stopping=on_stopping)
        super().__init__(client, shared)
        declarations = None
        if self.settings.scheduler:
            declarations = Declarations(client, self.handlers)
        self._consumer = Consumer(client, shared, declarations, parts=_check_parts(parts))
        self._consumers = (self._consumer,)

    async def run(self) -> None:
        """Work until stopped: see `AnyWorker.run`."""
        consumer = self._consumer
        async with self._reported():
            self._log_start()
            async with consumer.named():
                await consumer.check_server()
                async with self._shared.opened():
                    await consumer.run(consumer.listener.run)


def _cause_of(error: Exception) -> Exception | None:
    """Return why a part of the worker refused to work, or Redis refused a part of it, if so."""
    match error:
        case ExceptionGroup(exceptions=(Exception() as first, *_)):
            known = isinstance(first, AioqlessError | exceptions.RedisError)
            return first if known else _cause_of(first)
    return None


def _check_parts(parts: Sequence[Part]) -> tuple[Part, ...]:
    """Refuse what is no part; raise TypeError."""
    for part in parts if isinstance(parts, list | tuple) else (None,):
        if isinstance(part, type) or not callable(getattr(part, "run", None)):
            raise TypeError(f"parts must be a list of objects with a method run, not {parts!r}")
    return tuple(parts)
