"""Worker: builds its parts, runs them, and stops them in order."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
from collections.abc import Callable, Sequence

from redis import exceptions

from aioqless.client import Client
from aioqless.errors import AioqlessError
from aioqless.handlers import Source
from aioqless.hints import suggest_options
from aioqless.runtime.log import log
from aioqless.runtime.tasks import cancel_and_wait
from aioqless.store import ScriptStore
from aioqless.worker.context import Part, WorkerContext
from aioqless.worker.job_source import JobSource
from aioqless.worker.listener import Listener
from aioqless.worker.outage import Outage
from aioqless.worker.poller import Slots
from aioqless.worker.remote_control import Controllable
from aioqless.worker.scheduler import Declarations
from aioqless.worker.settings import Settings
from aioqless.worker.shared import CLOSE_INTERVAL, HostedWorker, Shared
from aioqless.worker.subscriptions import Subscription

RELEASE_TIMEOUT = 1.0  # seconds for Redis to take back abandoned jobs and the worker's name

_OF_SETTINGS = {
    each.name: f"Worker(client, app.jobs, settings=Settings({each.name}=...))"
    for each in dataclasses.fields(Settings)
}


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
        shared: What it has in common with other workers of this process, instead of jobs, settings,
            name and on_stopping; who made it enters it before they run.
        outage: Whether Redis can be reached, if others find out, too.
        locks: Sends the renewals of locks, from another thread; closed at the end.
        slots: When it may pop; default: while there are free slots.
        declarations: Its recurring jobs; default: those of all handlers.
        controlled: What remote commands act on, and what stops if the name is lost; default: it.
        listens: Whether it subscribes to messages; else who made it passes them to `listener`.

    Raises:
        TypeError: One of `jobs` is something else.
        ValueError: There is no handler.
        AioqlessError: Handlers and resources don't fit together.
    """

    def __init__(  # noqa: PLR0913  # the last seven are for hosts of several workers
        self,
        client: Client,
        *jobs: Source,
        settings: Settings | None = None,
        name: str | None = None,
        on_stopping: Callable[[], object] | None = None,
        parts: Sequence[Part] = (),
        shared: Shared | None = None,
        outage: Outage | None = None,
        locks: ScriptStore | None = None,
        slots: Slots | None = None,
        declarations: Declarations | None = None,
        controlled: Controllable | None = None,
        listens: bool = True,
    ) -> None:
        self._own: Shared | None = None  # what it shares with no one
        if shared is None:
            shared = Shared(client, *jobs, settings=settings, name=name, on_stopping=on_stopping)
            self._own = shared
        elif jobs or settings or name or on_stopping:
            raise TypeError("shared has the jobs, settings, name and on_stopping already")
        super().__init__(client, shared)
        if declarations is None and self.settings.scheduler:
            declarations = Declarations(client, self.handlers, self.settings.subscriptions)
        outage = outage or Outage(self.settings.reconnect)
        context = WorkerContext(client, shared.name, self.settings, outage, shared.lifecycle)
        self._source = JobSource(
            context,
            controlled or self,
            shared,
            declarations,
            locks=locks,
            slots=slots,
            listens=listens,
            parts=_check_parts(parts),
        )

    @property
    def listener(self) -> Listener:
        """Handles the messages to it; for a host that subscribes in its place."""
        return self._source.listener

    @property
    def recovered(self) -> int | None:
        """How many jobs of a former process of its name wait again, if there was one."""
        return self._source.recovered

    @property
    def ready(self) -> bool:
        """Whether it takes jobs: it reaches Redis, and is neither paused nor stopping."""
        reached = self._source.outage.reached
        return reached and not (self.paused or self._shared.lifecycle.stopping)

    @property
    def idle(self) -> bool:
        """Whether nothing more was ready at the last poll, and it waits for the next."""
        return self._source.poller.idle.is_set()

    @property
    def abandoned(self) -> list[str]:
        """The jids of jobs whose code had not stopped when the worker had to end."""
        return [run.job.jid for run in self._source.runner.abandoned]

    async def release_abandoned(self) -> None:
        """Release the abandoned jobs; they use no retry.

        For a process that exits right after: their code still runs.
        """
        with contextlib.suppress(AioqlessError, exceptions.RedisError, TimeoutError):
            async with asyncio.timeout(RELEASE_TIMEOUT):
                for run in self._source.runner.abandoned:
                    if not run.job.settled and run.stopped_by == "shutdown":
                        await self._client.store.release(
                            jid=run.job.jid, worker=self.name, fence=run.job.fence
                        )

    @property
    def subscriptions(self) -> tuple[Subscription, ...]:
        """What it serves now, in order of preference."""
        return tuple(self._source.poller.subscriptions)

    @property
    def paused(self) -> bool:
        """Whether it is paused."""
        return self._source.poller.paused

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
        self._source.poller.subscribe(subscription)
        self._source.register()
        if self._own:
            log.info("worker.subscribed", worker=self.name, queue=str(subscription))

    def unsubscribe(self, queue: str) -> None:
        """Stop serving a queue; running jobs are not affected.

        Args:
            queue: Name or pattern, as it was subscribed.

        Raises:
            ValueError: It is not subscribed by this name.
        """
        self._source.poller.unsubscribe(queue)
        self._source.register()
        if self._own:
            log.info("worker.unsubscribed", worker=self.name, queue=queue)

    def pause(self) -> None:
        """Take no new jobs until `resume`; running jobs are not affected.

        A pop under way may still bring some; `worker.paused` is logged when none is.
        """
        self._source.poller.pause()

    def resume(self) -> None:
        """Take jobs again."""
        if self.paused:
            self._source.poller.resume()
            if self._own:
                log.info("worker.resumed", worker=self.name)

    def stop(self) -> None:
        """Begin a graceful shutdown: `run` returns when running jobs have ended or are released."""
        if self._source.poller.stop():  # it logs in its caller's context
            self._log_shutdown()

    def stop_at_once(self) -> None:
        """Begin a shutdown that releases running jobs without waiting for them."""
        self.stop()
        self._source.runner.release_all()

    async def run(self) -> None:
        """Work until stopped.

        Raises:
            NameTaken: Another worker has the name, or took it during an outage.
            redis.exceptions.RedisError: Redis refuses connections for good, such as to a database
                that doesn't exist.
        """
        if self._own is None:
            await self._work()
        else:
            async with self._reported():
                await self._work()

    async def _work(self) -> None:
        async with self._source:
            if self._own is not None:
                if self.recovered is not None:
                    log.info("worker.recovered", jobs=self.recovered)
                self._log_start()
            await self._source.check()
            async with self._own or contextlib.nullcontext(), asyncio.TaskGroup() as group:
                tasks = [group.create_task(run()) for run in self._source.runs]
                await self._source.run()
                await cancel_and_wait(*tasks, every=CLOSE_INTERVAL)  # nothing runs or is pending
            with contextlib.suppress(AioqlessError, exceptions.RedisError, OSError):
                async with asyncio.timeout(RELEASE_TIMEOUT):
                    await self._source.deregister()
        if self._source.name_lost:
            raise self._source.name_lost


def _check_parts(parts: Sequence[Part]) -> tuple[Part, ...]:
    """Refuse what is no part; raise TypeError."""
    for part in parts if isinstance(parts, list | tuple) else (None,):
        if isinstance(part, type) or not callable(getattr(part, "run", None)):
            raise TypeError(f"parts must be a list of objects with a method run, not {parts!r}")
    return tuple(parts)
