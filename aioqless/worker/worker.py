"""Worker: builds the parts, runs them, and stops them in order."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Sequence
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
from aioqless.log import bound, log
from aioqless.waiting import cancel_and_wait
from aioqless.worker.archive_monitor import Unread
from aioqless.worker.finisher import Finisher
from aioqless.worker.importer import Intake
from aioqless.worker.listener import Listener
from aioqless.worker.lock_renewer import TIMEOUT
from aioqless.worker.name_lease import Incarnation
from aioqless.worker.outage import Outage
from aioqless.worker.poller import Poller
from aioqless.worker.redis_checks import check_eviction
from aioqless.worker.remote_control import Orders
from aioqless.worker.renewer_thread import Heartbeater
from aioqless.worker.runner import Runner
from aioqless.worker.schedule_sync import Declarations
from aioqless.worker.scheduler import Scheduler
from aioqless.worker.settings import Settings
from aioqless.worker.stack_dump import stack_of
from aioqless.worker.subscriptions import Subscription

CLOSING = 10.0  # seconds for the parts and resources to close before they are canceled again
RELEASING = (
    1.0  # seconds for Redis to take back jobs whose code can't be stopped, and the worker's name
)


class Worker:
    """Performs the jobs of some queues with the handlers of some modules, on the running loop.

    `async with Worker(client, app.jobs):` works in the background and drains when the block is
    left. It installs no signal handlers and never cancels its host: if a part of it breaks, the
    others stop, `healthy` turns false, and leaving the block raises what happened.

    `jobs` are modules or their dotted names, what `@job`, `@resource`, `@middleware` and `@on_finish` make,
    and lists of these. Making a worker raises TypeError for anything else, ValueError if there is
    no handler, and AioqlessError for handlers that don't fit together."""

    def __init__(
        self,
        client: Client,
        *jobs: Source,
        settings: Settings | None = None,
        name: str | None = None,
    ) -> None:
        self.name = worker_name() if name is None else validation.checked("name", name)
        self.settings = settings or Settings()
        self.handlers = Handlers.collect(*jobs)
        self._surroundings = _surroundings(jobs, self.handlers, client)
        self._store = store = client.store
        self._outage = outage = Outage(self.settings.reconnect, self.settings.reconnect_max)
        self._finisher = Finisher(store, self.name, outage)
        self._runner = Runner(self.handlers, self._surroundings, self._finisher, self.settings)
        self._heartbeater = Heartbeater(
            client.apart("heart", TIMEOUT),
            store,
            self.name,
            self._runner,
            outage,
            self.settings.stuck_after,
        )
        self._poller = Poller(
            store, self.name, self._runner, outage, self.settings, client.services
        )
        self._scheduler = None
        if self.settings.scheduler:
            declarations = Declarations(
                self.handlers, self.settings.subscriptions, client.max_data, client.codec
            )
            self._scheduler = Scheduler(store, declarations, outage)
        self._intakes = [
            Intake(store, source, outage, self.settings.poll) for source in self.settings.intake
        ]
        bring = [part for part in (self._scheduler, *self._intakes) if part is not None]
        self._poller.all_looked = lambda: all(part.looked for part in bring)
        self._listener = Listener(
            client,
            self.name,
            self._heartbeater,
            self._poller,
            Orders(store, self),
            self._scheduler,
        )
        self._incarnation = (
            None
            if name is None
            else Incarnation(store, name, outage, self.stop_at_once, lambda: self._poller.stopping)
        )
        if self._incarnation is not None:
            self._heartbeater.do_beside(self._incarnation.renew)
            self._poller.may_pop = self._incarnation.holds
        self._unread = Unread(store)
        self.notify_stopping: Callable[[], object] = lambda: (
            None
        )  # called when it begins to stop, for whatever reason
        self._poller.notify_stopping = lambda: self.notify_stopping()
        self._running: asyncio.Task[None] | None = None
        self._opening = False

    @property
    def healthy(self) -> bool:
        """Whether it is working."""
        return self._running is not None and not self._running.done()

    @property
    def ready(self) -> bool:
        """Whether it takes jobs: it reaches Redis, and was told neither to pause nor to stop."""
        return self._outage.reached and not (self._poller.paused or self._poller.stopping)

    @property
    def recycling(self) -> bool:
        """Whether it has done its share, by `max_jobs` or `max_memory`."""
        return self._poller.share.done

    @property
    def running(self) -> list[str]:
        """The jids of what runs now, and of what has ended and isn't stored yet."""
        return list(self._runner.running)

    @property
    def left_running(self) -> list[str]:
        """The jids of jobs whose code hadn't stopped when the worker had to end."""
        return [run.job.jid for run in self._runner.left]

    @property
    def waits_for_redis(self) -> bool:
        """Whether it keeps outcomes that Redis, which is away, may still take before their locks
        expire. From any thread."""
        runs = self._runner.running.copy().values()
        return not self._outage.reached and any(
            run.ended and time.monotonic() < run.deadline for run in runs
        )

    async def release_left(self) -> None:
        """Release the jobs in `left_running` at no cost of a retry. For a process that ends right
        after: their code still runs."""
        with contextlib.suppress(AioqlessError, exceptions.RedisError, TimeoutError):
            async with asyncio.timeout(RELEASING):
                for run in self._runner.left:
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
        """Whether it pops nothing for now."""
        return self._poller.paused

    def subscribe(self, queue: str, *, limit: int | None = None, weight: int = 1) -> None:
        """Serve a queue, or all that match a pattern, from now on; one that is subscribed already,
        under these terms. Raises ValueError."""
        subscription = Subscription(queue, limit, weight)
        self._poller.subscribe(subscription)
        log.info("worker.subscribed", worker=self.name, queue=str(subscription))

    def unsubscribe(self, queue: str) -> None:
        """Serve a queue no longer; what runs of it goes on. Raises ValueError when it isn't
        subscribed by this name."""
        self._poller.unsubscribe(queue)
        log.info("worker.unsubscribed", worker=self.name, queue=queue)

    def pause(self) -> None:
        """Pop no more until `resume`; what runs goes on. A pop that is under way may still bring
        some: the log says when none is."""
        self._poller.pause()

    def resume(self) -> None:
        """Pop again."""
        if self.paused:
            self._poller.resume()
            log.info("worker.resumed", worker=self.name)

    def stop(self) -> None:
        """Pop no more; `run` returns when what runs has ended or was handed back."""
        stopping = self._poller.stopping
        self._poller.stop()
        if not stopping:
            log.info(
                "worker.shutdown_started", worker=self.name, running=len(self._runner.running)
            )  # in its caller's context

    def stop_at_once(self) -> None:
        """Hand back what runs without waiting for it."""
        self.stop()
        self._runner.hand_back()

    def dump_stacks(self, loop: asyncio.AbstractEventLoop) -> None:
        """Log every run with the lines it has come to. From any thread but the loop's, which may be
        blocked."""
        runs = list(self._runner.running.values())
        with bound(worker=self.name):
            for run in runs:
                log.info(
                    "job.stack_dumped",
                    **run.who,
                    seconds=round(loop.time() - run.started, 3),
                    stack=stack_of(run, loop),
                )
            log.info("worker.stacks_dumped", running=len(runs))

    async def run(self) -> None:
        """Work until told to stop. Raises NameTaken for a name that another worker has, or takes
        while this one can't be heard of."""
        with bound(worker=self.name):
            try:
                async with self._incarnation or contextlib.nullcontext():
                    await self._work()
                if self._incarnation and self._incarnation.taken:
                    raise self._incarnation.taken
            except Exception as error:
                refused = _refusal_in(error)
                log.error("worker.crashed", error=repr(refused or error))
                if refused is not None:
                    raise refused from None
                raise
            log.info("worker.stopped")

    async def _work(self) -> None:
        queues = tuple(str(each) for each in self.subscriptions)
        log.info(
            "worker.started",
            queues=queues,
            concurrency=self.settings.concurrency,
            handlers=len(self.handlers),
        )
        await check_eviction(
            self._store,
            self._outage,
            lambda: self._poller.stopping,
            allowed=self.settings.allow_eviction,
        )
        self._opening = True
        async with self._surroundings.resources.opened(), asyncio.TaskGroup() as helpers:
            self._opening = False
            parts = (
                self._finisher,
                self._heartbeater,
                self._listener,
                self._scheduler,
                self._unread,
                *self._intakes,
            )
            running = [helpers.create_task(part.run()) for part in parts if part is not None]
            async with self._runner:
                await self._poller.run()
            await cancel_and_wait(
                *running, every=CLOSING
            )  # nothing runs and nothing is pending by now
        if not (self._incarnation and self._incarnation.taken):
            with contextlib.suppress(AioqlessError, exceptions.RedisError, OSError):
                async with asyncio.timeout(RELEASING):  # workers that stay on the list were killed
                    await self._store.deregister(workers=[self.name])

    async def __aenter__(self) -> Self:
        self._running = asyncio.create_task(
            self._run_within_host(), name=f"aioqless worker {self.name}"
        )
        return self

    async def _run_within_host(self) -> None:
        """Work; a resource that calls sys.exit ends the worker, and not the loop of its host."""
        try:
            await self.run()
        except SystemExit as left:
            error = AioqlessError(f"a resource of worker {self.name} wanted to exit: {left.code!r}")
            with bound(worker=self.name):
                log.error("worker.crashed", error=repr(error))
            raise error from left

    async def __aexit__(self, failed: type[BaseException] | None, *_: object) -> None:
        if self._running is None:
            return
        if not self._running.done():
            self.stop()
            if (
                self._opening
            ):  # nothing runs yet, and a database that doesn't answer is no reason to stay
                self._running.cancel()
        try:
            if (
                self._opening
            ):  # nothing runs yet, and a database that doesn't answer is no reason to stay
                await cancel_and_wait(self._running, every=CLOSING)
            await asyncio.wait([self._running])
        except asyncio.CancelledError:  # the host can't wait: what runs is handed back at once
            self._running.cancel()
            # A scope of anyio's would cancel again at each turn of the loop, and nothing would be
            # handed back.
            with (
                anyio.CancelScope(shield=True),
                contextlib.suppress(Exception, asyncio.CancelledError),
            ):
                await self._running
            raise
        if (
            failed is None and not self._running.cancelled()
        ):  # what the host raises comes before what is logged already
            self._running.result()


def _refusal_in(error: Exception) -> AioqlessError | None:
    """What a part of the worker refused to work with, when that ended it."""
    match error:
        case ExceptionGroup(exceptions=(Exception() as first, *_)):
            return first if isinstance(first, AioqlessError) else _refusal_in(first)
    return None


def _surroundings(sources: Sequence[Source], handlers: Handlers, client: Client) -> MiddlewareStack:
    """What the modules put around their handlers, if all that these need is there. Raises
    AioqlessError."""
    resources = Resources(declared(Resource, sources), there={Client: client})
    for handler in handlers:
        resources.check(handler.fn, handler.takes.given)
    return MiddlewareStack(declared(Middleware, sources), declared(Hook, sources), resources)
