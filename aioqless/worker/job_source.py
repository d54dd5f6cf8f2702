"""JobSource: the parts of a worker that talk to Redis."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Self

from aioqless.errors import NameTaken
from aioqless.store import ScriptStore
from aioqless.worker.context import Part, WorkerContext
from aioqless.worker.listener import Listener
from aioqless.worker.lock_renewer import LockRenewal, LockRenewer
from aioqless.worker.memory_checks import ArchiveMonitor, check_eviction
from aioqless.worker.outcome_writer import OutcomeWriter
from aioqless.worker.poller import Poller, Slots
from aioqless.worker.registration import Registration
from aioqless.worker.remote_control import Controllable, RemoteControl
from aioqless.worker.runner import Runner
from aioqless.worker.scheduler import Declarations, Scheduler
from aioqless.worker.shared import Shared
from aioqless.worker.stable_name import NameLease

# Of a call of the lock renewer; a connection that is silent for a third of it is replaced while
# there is still time.
LOCKS_TIMEOUT = 15.0


class JobSource:
    """A namespace from which a worker takes jobs, and where it stores their outcomes.

    `async with` holds the worker's name, if that is a stable one.

    Args:
        context: Its client, name, settings, outage and lifecycle.
        worker: What remote commands act on: the worker, or one of several namespaces.
        shared: What it has in common with others.
        declarations: The recurring jobs of the handlers; None without a scheduler.
        locks: Sends the renewals of locks, from another thread; closed at the end.
        slots: When it may pop; default: while there are free slots.
        listens: Whether it subscribes to messages; else its owner passes them to `listener`.
        parts: What else runs beside the jobs.
    """

    def __init__(
        self,
        context: WorkerContext,
        worker: Controllable,
        shared: Shared,
        declarations: Declarations | None,
        *,
        locks: ScriptStore | None = None,
        slots: Slots | None = None,
        listens: bool = True,
        parts: Sequence[Part] = (),
    ) -> None:
        settings = context.settings
        self.outage = context.outage
        self.context = context
        self.store = store = context.store
        self._shared = shared
        self._lease: NameLease | None = None
        if shared.has_stable_name:
            self._lease = NameLease(context, on_lost=worker.stop_at_once)
        self.renewer = LockRenewer(
            locks or context.client.dedicated_store("locks", LOCKS_TIMEOUT),
            shared.name,
            shared.running.by_jid,
            shared.watchdog,
            settings.stuck_after,
            self._lease.renew if self._lease else None,
        )
        self.renewal = LockRenewal(self.renewer, context, shared.renewer_thread)
        self.scheduler: Scheduler | None = None
        if declarations is not None:
            self.scheduler = Scheduler(context, declarations)
        self.poller = Poller(
            context,
            slots or shared.running,
            lease=self._lease,
            caught_up=lambda: _have_caught_up(self.scheduler, *parts),
        )
        self._registration: Registration | None = None
        if not settings.burst:
            self._registration = Registration(
                context, self._queue_names, logged=shared.logged_queues
            )
        self.writer = OutcomeWriter(context)
        self.runner = Runner(context, shared, self.renewer, self.writer)
        self.listener = Listener(
            context,
            self.renewer,
            self.poller,
            RemoteControl(store, worker),
            scheduler=self.scheduler,
            registration=self._registration,
        )
        monitor = ArchiveMonitor(store)
        of_its_own = (
            self.renewal,
            self.writer,
            self.listener if listens else None,
            self.scheduler,
            self._registration,
            monitor,
        )
        self.runs = [part.run for part in of_its_own if part is not None]
        self.runs += [partial(part.run, context) for part in parts]

    @property
    def name_lost(self) -> NameTaken | None:
        """Which other worker has the name by now, if one has."""
        return self._lease.lost if self._lease else None

    @property
    def recovered(self) -> int | None:
        """How many jobs of a former process wait again, if there was one."""
        return self._lease.recovered if self._lease else None

    async def __aenter__(self) -> Self:
        if self._lease:
            await self._lease.__aenter__()
        return self

    async def __aexit__(self, *failed: object) -> None:
        if self._lease:
            await self._lease.__aexit__(*failed)

    async def check(self) -> None:
        """Refuse a Redis that evicts keys; wait while it is unavailable.

        Raises:
            AioqlessError: It evicts keys, and that is not allowed.
        """
        await self.outage.check_server(partial(check_eviction, self.context))

    async def run(self) -> None:
        """Pop and start jobs until stopped, and until they have ended or are released."""
        async with self.runner:
            await self.poller.run(self.runner.start)

    def register(self) -> None:
        """Say in Redis soon which queues are served."""
        if self._registration is not None:
            self._registration.wake()

    async def deregister(self) -> None:
        """Remove the worker from the list; one that stays listed was killed."""
        if not self.name_lost:
            await self.store.deregister(workers=[self.context.name])

    def _queue_names(self) -> list[str]:
        return [each.queue for each in self.poller.subscriptions]


def _have_caught_up(*parts: object) -> bool:
    """Return whether the parts that put jobs have put those due at the start."""
    return all(getattr(part, "caught_up", True) for part in parts)
