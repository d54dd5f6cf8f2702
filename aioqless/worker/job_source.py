"""JobSource: the parts of a worker that talk to Redis."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple, Protocol, Self

from aioqless.client import Client
from aioqless.errors import NameTaken
from aioqless.runtime.log import log
from aioqless.store import ScriptStore
from aioqless.worker.importer import ImportLoop
from aioqless.worker.lifecycle import Lifecycle
from aioqless.worker.listener import Listener
from aioqless.worker.lock_renewer import LockRenewer
from aioqless.worker.memory_checks import ArchiveMonitor, check_eviction
from aioqless.worker.outage import Outage
from aioqless.worker.outcome_writer import OutcomeWriter
from aioqless.worker.poller import Poller, Slots
from aioqless.worker.registration import Registration
from aioqless.worker.remote_control import Controllable, RemoteControl
from aioqless.worker.runner import Runner
from aioqless.worker.running_jobs import RunningJobs
from aioqless.worker.scheduler import Declarations, Scheduler
from aioqless.worker.settings import Settings
from aioqless.worker.stable_name import NameLease
from aioqless.worker.watchdog import LoopWatchdog

# Of a call of the lock renewer; a connection that is silent for a third of it is replaced while
# there is still time.
LOCKS_TIMEOUT = 15.0


class Part(Protocol):
    """A part of a worker that works in the background."""

    async def run(self) -> None:
        """Work until canceled."""


class SourceWorker(Controllable, Protocol):
    """The worker, as its sources know it."""

    @property
    def name(self) -> str:
        """Its name in Redis."""

    @property
    def has_stable_name(self) -> bool:
        """Whether only one worker may have that name."""

    @property
    def settings(self) -> Settings:
        """How it behaves."""

    def stop_at_once(self) -> None:
        """Begin a shutdown that releases running jobs."""


class Shared(NamedTuple):
    """What a source shares with other sources of its worker.

    Attributes:
        locks: Sends the renewals of locks, from another thread; closed at the end.
        slots: Says when the source may pop.
        outage: Whether its Redis can be reached.
        logged: The queues that a line of the log has named as misspelled.
    """

    locks: ScriptStore
    slots: Slots
    outage: Outage
    logged: set[str]


class JobSource:
    """A namespace from which a worker takes jobs, and where it stores their outcomes.

    A worker has one, unless an extension gives it several. `async with` holds the worker's name, if
    that is a stable one.

    Args:
        client: The client of the namespace.
        worker: The worker.
        declarations: The recurring jobs of the handlers; None without a scheduler.
        running: The running jobs of the worker.
        lifecycle: Whether the worker is stopping.
        watchdog: Watches the worker's loop.
        shared: What it shares with other sources of the worker; None: it is the only one.
    """

    def __init__(
        self,
        client: Client,
        worker: SourceWorker,
        declarations: Declarations | None,
        running: RunningJobs,
        lifecycle: Lifecycle,
        watchdog: LoopWatchdog,
        *,
        shared: Shared | None = None,
    ) -> None:
        settings, store = worker.settings, client.store
        if shared is None:
            locks = client.dedicated_store("locks", LOCKS_TIMEOUT)
            shared = Shared(locks, running, Outage(settings.reconnect), set())
        self.store = store
        self.outage = outage = shared.outage
        self._worker = worker
        self._lifecycle = lifecycle
        self._lease: NameLease | None = None
        if worker.has_stable_name:
            lost = worker.stop_at_once
            self._lease = NameLease(store, worker.name, outage, lifecycle, on_lost=lost)
        self.renewer = LockRenewer(
            shared.locks,
            worker.name,
            running.by_jid,
            watchdog,
            settings.stuck_after,
            self._lease.renew if self._lease else None,
        )
        self.scheduler: Scheduler | None = None
        if declarations is not None:
            self.scheduler = Scheduler(store, declarations, outage)
        imports = [
            ImportLoop(client, source, outage, settings.poll) for source in settings.importers
        ]
        self.poller = Poller(
            client,
            worker.name,
            shared.slots,
            outage,
            lifecycle,
            settings,
            lease=self._lease,
            feeders=[each for each in (self.scheduler, *imports) if each is not None],
        )
        self._registration: Registration | None = None
        if not settings.burst:
            self._registration = Registration(
                client, worker.name, self._queue_names, outage, logged=shared.logged
            )
        self.writer = OutcomeWriter(store, worker.name, outage, lifecycle)
        self.listener = Listener(
            client,
            worker.name,
            self.renewer,
            self.poller,
            RemoteControl(store, worker),
            scheduler=self.scheduler,
            registration=self._registration,
        )
        monitor = ArchiveMonitor(store)
        parts = (
            self.writer,
            self.listener,
            self.scheduler,
            self._registration,
            monitor,
            *imports,
        )
        self.parts: list[Part] = [part for part in parts if part is not None]

    @property
    def name_lost(self) -> NameTaken | None:
        """Which other worker has the name by now, if one has."""
        return self._lease.lost if self._lease else None

    async def __aenter__(self) -> Self:
        if self._lease:
            await self._lease.__aenter__()
            if self._lease.recovered is not None:
                self.log_recovered(self._lease.recovered)
        return self

    async def __aexit__(self, *failed: object) -> None:
        if self._lease:
            await self._lease.__aexit__(*failed)

    def log_recovered(self, jobs: int) -> None:
        """Log how many jobs of a former process wait again."""
        log.info("worker.recovered", jobs=jobs)

    async def check(self) -> None:
        """Refuse a Redis that evicts keys; wait while it is unavailable.

        Raises:
            AioqlessError: It evicts keys, and that is not allowed.
        """
        allowed = self._worker.settings.allow_eviction
        await check_eviction(self.store, self.outage, self._lifecycle, allowed=allowed)

    async def run(self, runner: Runner) -> None:
        """Pop and start jobs until stopped."""
        await self.poller.run(partial(runner.start, self))

    def register(self) -> None:
        """Say in Redis soon which queues are served."""
        if self._registration is not None:
            self._registration.wake()

    async def deregister(self) -> None:
        """Remove the worker from the list; one that stays listed was killed."""
        if not self.name_lost:
            await self.store.deregister(workers=[self._worker.name])

    def _queue_names(self) -> list[str]:
        return [each.queue for each in self.poller.subscriptions]
