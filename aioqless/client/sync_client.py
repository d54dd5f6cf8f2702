"""SyncClient: the client of code without an event loop, such as a script or a view of Django.

A thread runs the event loop of an async client. The parts of a client are classes here, too, with
the same names, whose methods wait for those of the async client.
"""

from __future__ import annotations

import asyncio
import functools
import os
import threading
import weakref
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from concurrent.futures import CancelledError, Future
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeVar

from anyio.from_thread import BlockingPortal
from typing_extensions import TypeVar as DefaultedTypeVar
from typing_extensions import Unpack

from aioqless.client.archive import Archive
from aioqless.client.client import Client
from aioqless.client.config import Config
from aioqless.client.jid import Jid
from aioqless.client.job_set import JobSet
from aioqless.client.jobs import Jobs
from aioqless.client.new_job import Branch, Klass, NewJob
from aioqless.client.put_options import PutOptions
from aioqless.client.queue import Queue
from aioqless.client.recurring import RecurringJob, RecurringJobs
from aioqless.client.redis_server import Server
from aioqless.client.workers import Workers
from aioqless.hints import suggest_put
from aioqless.validation import Seconds

A = TypeVar("A")  # the async object
P = ParamSpec("P")
T = TypeVar("T")
Result = DefaultedTypeVar("Result", default=Any)


class SyncPart(Generic[A]):
    """A part of a synchronous client."""

    def __init__(self, client: SyncClient, find: Callable[[Client], A]) -> None:
        self._client = client
        self._find = find

    def run(
        self,
        method: Callable[Concatenate[A, P], Coroutine[Any, Any, T]],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """Call a method of the async object, and wait for its result."""
        return self._client.call(lambda client: method(self._find(client), *args, **kwargs))


def _sync(
    method: Callable[Concatenate[A, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[SyncPart[A], P], T]:
    """Return the method of a part that waits for the method of the async client's part."""

    @functools.wraps(method)
    def wait(part: SyncPart[A], /, *args: P.args, **kwargs: P.kwargs) -> T:
        return part.run(method, *args, **kwargs)

    return wait


class SyncQueue(SyncPart[Queue]):
    """A queue, as `aioqless.Queue`; `client.queue(name)` makes one."""

    put = _sync(Queue.put)
    put_many = _sync(Queue.put_many)
    put_encoded = _sync(Queue.put_encoded)
    put_flow = _sync(Queue.put_flow)
    pop = _sync(Queue.pop)
    peek = _sync(Queue.peek)
    recur = _sync(Queue.recur)
    unfail = _sync(Queue.unfail)
    jids = _sync(Queue.jids)
    counts = _sync(Queue.counts)
    lag = _sync(Queue.lag)
    tenants = _sync(Queue.tenants)
    length = _sync(Queue.length)
    stats = _sync(Queue.stats)
    days = _sync(Queue.days)
    pause = _sync(Queue.pause)
    resume = _sync(Queue.resume)
    clear = _sync(Queue.clear)
    forget = _sync(Queue.forget)


class SyncJobs(SyncPart[Jobs]):
    """Jobs by jid, state or tag, as `client.jobs` of the async client."""

    get = _sync(Jobs.get)
    multiget = _sync(Jobs.multiget)
    wait = _sync(Jobs.wait)
    result = _sync(Jobs.result)
    position = _sync(Jobs.position)
    complete_jids = _sync(Jobs.complete_jids)
    failed_counts = _sync(Jobs.failed_counts)
    failed_in = _sync(Jobs.failed_in)
    failed_jids = _sync(Jobs.failed_jids)
    tracked = _sync(Jobs.tracked)
    track = _sync(Jobs.track)
    untrack = _sync(Jobs.untrack)
    tagged_jids = _sync(Jobs.tagged_jids)
    tags = _sync(Jobs.tags)
    summaries = _sync(Jobs.summaries)
    failure_groups = _sync(Jobs.failure_groups)
    search = _sync(Jobs.search)
    retry = _sync(Jobs.retry)
    edit = _sync(Jobs.edit)
    steps = _sync(Jobs.steps)
    retry_group = _sync(Jobs.retry_group)
    cancel = _sync(Jobs.cancel)
    cancel_many = _sync(Jobs.cancel_many)
    retry_many = _sync(Jobs.retry_many)
    move_many = _sync(Jobs.move_many)
    tag_many = _sync(Jobs.tag_many)
    untag_many = _sync(Jobs.untag_many)
    set_priority_many = _sync(Jobs.set_priority_many)
    unlock = _sync(Jobs.unlock)
    signal = _sync(Jobs.signal)


class SyncJobSet(SyncPart[JobSet]):
    """A job set, as `aioqless.JobSet`; `client.job_set(name)` makes one."""

    put = _sync(JobSet.put)
    put_many = _sync(JobSet.put_many)
    put_flow = _sync(JobSet.put_flow)
    close = _sync(JobSet.close)
    status = _sync(JobSet.status)
    retry_failed = _sync(JobSet.retry_failed)
    cancel = _sync(JobSet.cancel)


class SyncRecurringJobs(SyncPart[RecurringJobs]):
    """Recurring jobs, as `client.recurring` of the async client."""

    get = _sync(RecurringJobs.get)
    page = _sync(RecurringJobs.page)

    def all(self) -> list[RecurringJob]:
        """Return all recurring jobs, also those of other qless clients."""

        async def read(client: Client) -> list[RecurringJob]:
            return [each async for each in client.recurring.all()]

        return self._client.call(read)


class SyncWorkers(SyncPart[Workers]):
    """Workers, and remote commands to them, as `client.workers` of the async client."""

    counts = _sync(Workers.counts)
    jobs = _sync(Workers.jobs)
    working = _sync(Workers.working)
    deregister = _sync(Workers.deregister)
    show = _sync(Workers.show)
    stack = _sync(Workers.stack)
    subscribe = _sync(Workers.subscribe)
    unsubscribe = _sync(Workers.unsubscribe)
    pause = _sync(Workers.pause)
    resume = _sync(Workers.resume)
    stop = _sync(Workers.stop)


class SyncConfig(SyncPart[Config]):
    """Configuration that all clients and workers share, as `client.config` of the async client."""

    get = _sync(Config.get)
    all = _sync(Config.all)
    set = _sync(Config.set)
    unset = _sync(Config.unset)


class SyncServer(SyncPart[Server]):
    """The Redis server, as `client.server` of the async client."""

    info = _sync(Server.info)
    slow_commands = _sync(Server.slow_commands)


class SyncArchive(SyncPart[Archive]):
    """The stream of ended jobs, as `client.archive` of the async client."""

    state = _sync(Archive.state)
    trim = _sync(Archive.trim)
    sweep = _sync(Archive.sweep)


@suggest_put("`client.put(handler.data(name=...), delay=60)`")
class SyncClient(SyncPart[Client]):
    """A synchronous `aioqless.Client`; one serves all threads of a process.

    The first call connects. A client that was made before a fork connects again in each child. A
    process may end without closing it. Calls raise the errors of the async client, and RuntimeError
    on a thread that runs an event loop.

    Args:
        url: Where Redis is, as in `aioqless.Client`.
        options: The other arguments of `aioqless.Client`.
    """

    def __init__(self, url: str | None = None, **options: Any) -> None:
        super().__init__(self, lambda client: client)
        Client(url, **options)  # raises for wrong arguments
        self._make: Callable[[], Client] = lambda: Client(url, **options)
        self._thread: _Thread | None = None
        self._starting = threading.Lock()
        self.jobs = SyncJobs(self, lambda client: client.jobs)
        self.recurring = SyncRecurringJobs(self, lambda client: client.recurring)
        self.workers = SyncWorkers(self, lambda client: client.workers)
        self.config = SyncConfig(self, lambda client: client.config)
        self.server = SyncServer(self, lambda client: client.server)
        self.archive = SyncArchive(self, lambda client: client.archive)
        _clients.add(self)

    put_flow = _sync(Client.put_flow)
    recur = _sync(Client.recur)
    job_sets = _sync(Client.job_sets)
    queues = _sync(Client.queues)
    ping = _sync(Client.ping)
    lags = _sync(Client.lags)
    check = _sync(Client.check)

    def put(
        self,
        job: str | Klass[Result] | NewJob[Result],
        data: object = None,
        *,
        queue: str | None = None,
        wait: Seconds = 0,
        **options: Unpack[PutOptions],
    ) -> Jid[Result]:
        """Put a job, and return its jid when Redis has it: see `aioqless.Client.put`."""
        return self.call(lambda client: client.put(job, data, queue=queue, wait=wait, **options))

    def put_many(
        self,
        jobs: Iterable[NewJob[Result]],
        *,
        queue: str | None = None,
        wait: Seconds = 0,
        spread: Seconds = 0,
    ) -> list[Jid[Result]]:
        """Put many jobs: see `aioqless.Client.put_many`."""
        return self.call(
            lambda client: client.put_many(jobs, queue=queue, wait=wait, spread=spread)
        )

    def queue(self, name: str) -> SyncQueue:
        """Return a queue; it needn't exist yet.

        Args:
            name: Name of the queue.
        """
        return SyncQueue(self, lambda client: client.queue(name))

    def job_set(
        self, name: str, *, then: Branch | None = None, when_ended: Branch | None = None
    ) -> SyncJobSet:
        """Return a job set: see `aioqless.Client.job_set`."""
        return SyncJobSet(
            self, lambda client: client.job_set(name, then=then, when_ended=when_ended)
        )

    def result(self, jid: Jid[Result], timeout: Seconds | None = None) -> Result:
        """Wait for the end of a job, and return its result, as `Jid.result` does.

        Args:
            jid: What `put` returned.
            timeout: Time to wait at most.
        """
        return self.call(lambda _: jid.result(timeout))

    def call(self, act: Callable[[Client], Awaitable[T]]) -> T:
        """Call the async client, and return its result.

        For methods of a job or a recurring job: `client.call(lambda _: job.refresh())`.

        Args:
            act: Takes the async client, and returns an awaitable.
        """
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            pass
        else:
            raise RuntimeError(
                "this would block the event loop that it is called on: use aioqless.Client here"
            )
        with self._starting:
            if self._thread is None or not self._thread.is_alive():
                self._thread = _Thread(self._make())
            thread = self._thread
        return thread.call(act)

    def close(self) -> None:
        """Close the connection after the calls in progress; a later call connects again."""
        with self._starting:
            thread, self._thread = self._thread, None
        if thread is not None:
            thread.end()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def reset_after_fork(self) -> None:
        """Forget the thread, which stayed with the parent process."""
        self._thread = None
        self._starting = threading.Lock()


class _Thread(threading.Thread):
    """Runs an event loop with a connected client; as a daemon thread it keeps no process alive.

    `anyio.from_thread.start_blocking_portal` would run the thread, too, but has to be left before
    the process ends: it would wait forever in a forked child, or at an exit without `close`.
    """

    def __init__(self, client: Client) -> None:
        super().__init__(name="aioqless", daemon=True)
        self._client = client
        self._portal: Future[BlockingPortal] = Future()
        self.start()

    def call(self, act: Callable[[Client], Awaitable[T]]) -> T:
        """Await what `act` returns on the event loop; return its result."""
        future = self._portal.result().start_task_soon(act, self._client)
        try:
            return future.result()
        except CancelledError:  # an Exception, which handlers may catch
            raise asyncio.CancelledError from None
        except BaseException:  # such as KeyboardInterrupt: the caller doesn't wait any more
            future.cancel()
            raise

    def end(self) -> None:
        """End the thread after the calls in progress."""
        if self._portal.exception() is None:
            portal = self._portal.result()
            portal.start_task_soon(portal.stop)
        self.join()

    def run(self) -> None:
        """Run the event loop."""
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        try:
            async with self._client, BlockingPortal() as portal:
                self._portal.set_result(portal)
                await portal.sleep_until_stopped()
        except Exception as error:
            if self._portal.done():
                raise
            self._portal.set_exception(error)


_clients: weakref.WeakSet[SyncClient] = weakref.WeakSet()


def _after_fork() -> None:
    for client in _clients:
        client.reset_after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
