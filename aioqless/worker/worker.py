"""Worker: builds its parts, runs them, and stops them in order."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
from collections.abc import Callable, Sequence
from functools import partial

from redis import exceptions

from aioqless.client import Client
from aioqless.errors import AioqlessError
from aioqless.handlers import Source
from aioqless.hints import suggest_options
from aioqless.runtime.log import log
from aioqless.runtime.tasks import cancel_and_wait
from aioqless.store import ScriptStore
from aioqless.worker.context import Outage, Part, WorkerContext
from aioqless.worker.listener import Listener, RemoteControl
from aioqless.worker.lock_renewer import LockRenewal, LockRenewer
from aioqless.worker.memory_checks import ArchiveMonitor, check_eviction
from aioqless.worker.outcome_writer import OutcomeWriter
from aioqless.worker.poller import Poller, Slots
from aioqless.worker.registration import Registration
from aioqless.worker.runner import Runner
from aioqless.worker.scheduler import Declarations, Scheduler
from aioqless.worker.settings import Settings
from aioqless.worker.shared import CLOSE_INTERVAL, HostedWorker, Shared
from aioqless.worker.stable_name import NameLease
from aioqless.worker.subscriptions import Subscription

RELEASE_TIMEOUT = 1.0  # seconds for Redis to take back abandoned jobs and the worker's name
# Of a call of the lock renewer; a connection that is silent for a third of it is replaced while
# there is still time.
LOCKS_TIMEOUT = 15.0

_OF_SETTINGS = {
    each.name: f"Worker(client, app.jobs, settings=Settings({each.name}=...))"
    for each in dataclasses.fields(Settings)
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Hosted:
    """What the host of several workers, each of one namespace, gives to each of them.

    Attributes:
        host: What remote commands act on, and what stops if the name is lost. It listens to
            messages, and passes them to the worker's `listener`.
        shared: What they have in common; the host enters it before they run.
        outage: Whether Redis can be reached, if others find out, too.
        locks: Sends the renewals of locks, from another thread; closed at the end.
        slots: When it may pop.
        declarations: Its recurring jobs; None without a scheduler.
    """

    host: HostedWorker
    shared: Shared
    outage: Outage
    locks: ScriptStore
    slots: Slots
    declarations: Declarations | None


@suggest_options(
    {**_OF_SETTINGS, "queue": 'Worker(client, app.jobs, settings=Settings(queues=["mail"]))'}
)
class Worker(HostedWorker):
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
        hosted: What its host gives it, instead of jobs, settings, name and on_stopping, if it is
            one of several workers.

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
        hosted: Hosted | None = None,
    ) -> None:
        self._alone = hosted is None
        if hosted is None:
            hosted = self._host_itself(
                client, Shared(client, *jobs, settings=settings, name=name, on_stopping=on_stopping)
            )
        elif jobs or settings or name or on_stopping:
            raise TypeError("its host has the jobs, settings, name and on_stopping already")
        shared = hosted.shared
        super().__init__(client, shared)
        context = WorkerContext(
            client, shared.name, shared.settings, hosted.outage, shared.lifecycle
        )
        self._context = context
        parts = _check_parts(parts)
        self._lease: NameLease | None = None
        if shared.has_stable_name:
            self._lease = NameLease(context, on_lost=hosted.host.stop_at_once)
        self._renewer = LockRenewer(
            hosted.locks,
            shared.name,
            shared.running.by_jid,
            shared.watchdog,
            shared.settings.stuck_after,
            self._lease.renew if self._lease else None,
        )
        self._scheduler = Scheduler(context, hosted.declarations) if hosted.declarations else None
        self._poller = Poller(
            context,
            hosted.slots,
            lease=self._lease,
            caught_up=lambda: _have_caught_up(self._scheduler, *parts),
        )
        self._registration: Registration | None = None
        if not shared.settings.burst:
            self._registration = Registration(
                context, self._queue_names, logged=shared.logged_queues
            )
        self.listener = Listener(
            context,
            self._renewer,
            self._poller,
            RemoteControl(context.store, hosted.host),
            scheduler=self._scheduler,
            registration=self._registration,
        )
        self._writer = OutcomeWriter(context)
        self._runner = Runner(context, shared, self._renewer, self._writer)
        self._renewal = LockRenewal(self._renewer, context, shared.renewer_thread)
        beside = (
            self._renewal,
            self._writer,
            self.listener if self._alone else None,
            self._scheduler,
            self._registration,
            ArchiveMonitor(context.store),
        )
        self._beside = [part.run for part in beside if part is not None]
        self._beside += [partial(part.run, context) for part in parts]

    def _host_itself(self, client: Client, shared: Shared) -> Hosted:
        settings = shared.settings
        declarations = None
        if settings.scheduler:
            declarations = Declarations(client, shared.handlers, settings.subscriptions)
        return Hosted(
            host=self,
            shared=shared,
            outage=Outage(settings.reconnect),
            locks=client.dedicated_store("locks", LOCKS_TIMEOUT),
            slots=shared.running,
            declarations=declarations,
        )

    @property
    def recovered(self) -> int | None:
        """How many jobs of a former process of its name wait again, if there was one."""
        return self._lease.recovered if self._lease else None

    @property
    def ready(self) -> bool:
        """Whether it takes jobs: it reaches Redis, and is neither paused nor stopping."""
        reached = self._context.outage.reached
        return reached and not (self.paused or self._shared.lifecycle.stopping)

    @property
    def idle(self) -> bool:
        """Whether nothing more was ready at the last poll, and it waits for the next."""
        return self._poller.idle.is_set()

    @property
    def abandoned(self) -> list[str]:
        """The jids of jobs whose code had not stopped when the worker had to end."""
        return [run.job.jid for run in self._runner.abandoned]

    async def release_abandoned(self) -> None:
        """Release the abandoned jobs; they use no retry.

        For a process that exits right after: their code still runs.
        """
        with contextlib.suppress(AioqlessError, exceptions.RedisError, TimeoutError):
            async with asyncio.timeout(RELEASE_TIMEOUT):
                for run in self._runner.abandoned:
                    if not run.job.settled and run.stopped_by == "shutdown":
                        await self._client.store.release(
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
        """Serve a queue from now on, or with other limits if it is subscribed already.

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
        if self._alone:
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
        if self._alone:
            log.info("worker.unsubscribed", worker=self.name, queue=queue)

    def pause(self) -> None:
        """Take no new jobs until `resume`; running jobs are not affected.

        A pop under way may still bring some; `worker.paused` is logged when none is.
        """
        self._poller.pause()

    def resume(self) -> None:
        """Take jobs again."""
        if self.paused:
            self._poller.resume()
            if self._alone:
                log.info("worker.resumed", worker=self.name)

    def stop(self) -> None:
        """Begin a graceful shutdown: `run` returns when running jobs have ended or are released."""
        if self._poller.stop():  # it logs in its caller's context
            self._log_shutdown()

    def stop_at_once(self) -> None:
        """Begin a shutdown that releases running jobs without waiting for them."""
        self.stop()
        self._runner.release_all()

    async def run(self) -> None:
        """Work until stopped.

        Raises:
            NameTaken: Another worker has the name, or took it during an outage.
            redis.exceptions.RedisError: Redis refuses connections for good, such as to a database
                that doesn't exist.
        """
        async with self._reported() if self._alone else contextlib.nullcontext():
            await self._work()

    async def _work(self) -> None:
        async with self._lease or contextlib.nullcontext():
            if self._alone:
                if self.recovered is not None:
                    log.info("worker.recovered", jobs=self.recovered)
                self._log_start()
            await self._context.outage.check_server(partial(check_eviction, self._context))
            opened = self._shared if self._alone else contextlib.nullcontext()
            async with opened, asyncio.TaskGroup() as group:
                tasks = [group.create_task(run()) for run in self._beside]
                async with self._runner:
                    await self._poller.run(self._runner.start)
                await cancel_and_wait(*tasks, every=CLOSE_INTERVAL)  # nothing runs or is pending
            await self._deregister()
        if self._lease and self._lease.lost:
            raise self._lease.lost

    async def _deregister(self) -> None:
        """Remove the worker from the list; one that stays listed was killed."""
        if self._lease and self._lease.lost:  # another worker is listed by this name
            return
        with contextlib.suppress(AioqlessError, exceptions.RedisError, OSError):
            async with asyncio.timeout(RELEASE_TIMEOUT):
                await self._context.store.deregister(workers=[self.name])

    def _register(self) -> None:
        """Say in Redis soon which queues are served."""
        if self._registration is not None:
            self._registration.wake()

    def _queue_names(self) -> list[str]:
        return [each.queue for each in self._poller.subscriptions]


def _check_parts(parts: Sequence[Part]) -> tuple[Part, ...]:
    """Refuse what is no part; raise TypeError."""
    for part in parts if isinstance(parts, list | tuple) else (None,):
        if isinstance(part, type) or not callable(getattr(part, "run", None)):
            raise TypeError(f"parts must be a list of objects with a method run, not {parts!r}")
    return tuple(parts)


def _have_caught_up(*parts: object) -> bool:
    """Return whether the parts that put jobs have put those due at the start."""
    return all(getattr(part, "caught_up", True) for part in parts)
