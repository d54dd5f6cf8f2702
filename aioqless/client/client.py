"""Client: a connection to the queues of one namespace."""

from __future__ import annotations

import asyncio
import copy
import os
import re
import secrets
import socket
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import TYPE_CHECKING, Self, cast
from weakref import WeakKeyDictionary, WeakSet

import msgspec
from redis.asyncio import Redis
from redis.credentials import CredentialProvider
from typing_extensions import Unpack

from aioqless import validation
from aioqless.client import extensions, job_data
from aioqless.client.access import RedisAccess
from aioqless.client.archive import Archive
from aioqless.client.codec import Codec
from aioqless.client.config import Config
from aioqless.client.consistency import Finding, check_consistency
from aioqless.client.coverage import find_wait
from aioqless.client.events.filters import EventSelector
from aioqless.client.events.stream import Stream
from aioqless.client.internals import Internals
from aioqless.client.jid import Jid
from aioqless.client.job.backend import JobBackend
from aioqless.client.job.progress_reporter import ProgressReporter
from aioqless.client.job.state import JobSetStatus
from aioqless.client.job.watcher import JobWatcher
from aioqless.client.job_set import JobSet, list_sets
from aioqless.client.jobs import Jobs
from aioqless.client.new_job import Branch, Klass, NewJob, R
from aioqless.client.put_options import FlowOptions, PutOptions, RecurOptions
from aioqless.client.put_sender import CLOSED, PutHook
from aioqless.client.queue import Queue
from aioqless.client.queue_statistics import QueueOverview
from aioqless.client.recurring import RecurringJob, RecurringJobs, recur
from aioqless.client.redis_server import Server
from aioqless.client.url import find_url
from aioqless.client.workers import Workers
from aioqless.client.workflows import Flow, Step
from aioqless.hints import suggest_async_with, suggest_options, suggest_put
from aioqless.redis.address import redact_url
from aioqless.redis.connection import CommandConnection
from aioqless.redis.durability import Durability
from aioqless.redis.resp_protocol import OTHER_LOOP
from aioqless.store import ScriptStore
from aioqless.validation import Seconds

if TYPE_CHECKING:  # no more of an extension is known here
    from aioqless.contrib.metrics import Metrics

QUEUES_PER_CALL = 250  # with their totals: 3 ms of Redis

# Parts of the URL, which other libraries take one by one.
_OF_THE_URL = {
    name: f"Client(aioqless.redis_url({name}=...))"
    for name in ("host", "port", "db", "username", "password", "tls")
}


@suggest_options(_OF_THE_URL)
@suggest_put(
    "`await client.put(handler.data(name=...), delay=60)`",
    {"client.jobs": Jobs, "client.queue(name)": Queue, "client.workers": Workers},
)
@suggest_async_with
class Client:
    """The queues of one namespace on one Redis: `async with Client(url) as client`.

    Attributes:
        namespace: Prefix of all keys.
        name: Name of the client.
        max_data: Maximum size of a job's data, in bytes.
        codec: Encodes data and results.
        on_put: Hooks that change each job before it is put.
    """

    def __init__(  # noqa: PLR0913  # the options of a client; all but the first by name
        self,
        url: str | None = None,
        *,
        namespace: str | None = None,
        timeout: Seconds | None = None,
        max_data: int = job_data.MAX_BYTES,
        name: str | None = None,
        patience: Seconds | None = None,
        credentials: CredentialProvider | None = None,
        durability: Durability | None = None,
        codec: Codec | None = None,
        on_put: Iterable[PutHook] = (),
        clock: Callable[[], float] | None = None,
        access: RedisAccess | None = None,
    ) -> None:
        """Make a client; it connects when it is entered.

        Args:
            url: URL of Redis, which `redis_url` makes of its parts; default: AIOQLESS_URL, else
                REDIS_URL, else AIOQLESS_HOST, AIOQLESS_PORT and AIOQLESS_DB, else a private server
                that all clients of this user share (`aioqless[private-redis]`). A URL without a
                password gets AIOQLESS_PASSWORD.
            namespace: Prefix of all keys; default: AIOQLESS_NAMESPACE, else `ql`, which other qless
                clients use.
            timeout: Seconds for one call, with connecting and all attempts; default: the URL's
                socket_timeout, else 30, or 15 with Sentinel or Cluster. A connection that is silent
                for a third of it is closed, and the call sent again on another.
            max_data: Maximum size of a job's data, in bytes.
            name: Name of the client, which pops use as worker; default: one that no other process
                has.
            patience: Seconds for which a call is tried again while Redis is unavailable; default:
                15 with Sentinel or Cluster, else 0.
            credentials: redis-py's provider of user and password, asked for each connection.
            durability: Which replicas and disks must have a write before it is answered.
            codec: Encodes data and results, such as `Encryption`; default: what
                AIOQLESS_ENCRYPTION_KEYS asks for.
            on_put: Hooks, each of which gets a job before it is put, and returns it, as it is or
                changed.
            clock: Returns the time in place of Redis' clock, for tests.
            access: What makes its connections, in place of the options that say how.

        Raises:
            TypeError: An option has the wrong type.
            ValueError: An option is out of range, or the URL isn't one of Redis.
        """
        self.namespace = (
            (os.environ.get("AIOQLESS_NAMESPACE") or "ql") if namespace is None else namespace
        )
        self.name = validation.check_name("name", worker_name() if name is None else name)
        self.max_data = int(validation.check_number("max_data", max_data, least=1))
        self.codec = codec or extensions.codec_from_environment()
        self.on_put = list(on_put)
        self._access = access or RedisAccess(
            find_url(url),
            self.namespace,
            self.name,
            timeout=timeout,
            patience=patience,
            credentials=credentials,
            durability=durability,
            clock=clock,
        )
        self._connected: Internals | None = None
        self._was_closed = False
        self._loop: asyncio.AbstractEventLoop | None = None  # where it is open

    async def __aenter__(self) -> Self:
        await self._access.open()
        store = self._access.make_store()
        if self._access.private:  # the private server stops without connections
            await store.connection.execute("PING")
        self._connected = self._connect(self._access.make_redis(), store)
        if not self._access.is_shared:
            self._loop = asyncio.get_running_loop()
            _open_clients.setdefault(self._loop, WeakSet()).add(self)
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._loop is not None:
            _open_clients[self._loop].discard(self)
            self._loop = None
        if self._connected:
            connected, self._connected, self._was_closed = self._connected, None, True
            connected.sender.close()
            await connected.backend.aclose()
            await connected.store.aclose()
            await connected.redis.aclose()
            await self._access.aclose()

    @property
    def url(self) -> str | None:
        """URL of Redis; None for the private server before it is started."""
        return self._access.url

    @property
    def endpoint(self) -> dict[str, str]:
        """The Redis that is used, for logs.

        Its URL without the password; for a private server its program and data directory, too.
        """
        return {
            "url": re.sub(r"//[^@/]*@", "//", redact_url(self.url or "")),
            **self._access.private,
        }

    @property
    def redis(self) -> Redis:
        """A redis-py client of the same Redis, for commands beyond the queues."""
        return self.internals.redis

    @property
    def jobs(self) -> Jobs:
        """Jobs by jid, state or tag."""
        return self.internals.jobs

    @property
    def recurring(self) -> RecurringJobs:
        """The recurring jobs."""
        return self.internals.recurring

    @property
    def workers(self) -> Workers:
        """Workers, and remote commands to them."""
        return self.internals.workers

    @property
    def config(self) -> Config:
        """Configuration that all clients and workers share."""
        return self.internals.config

    def events(
        self,
        *,
        queue: str | Collection[str] | None = None,
        jid: str | Collection[str] | None = None,
        kind: str | Collection[str] | None = None,
        tracked: bool = False,
    ) -> Stream:
        """Return a stream of the events of the namespace from now on.

        Redis keeps no events. After an outage, or if the reader is so slow that Redis disconnects
        it, an event `Missed` says which period is missing; filters do not apply to it. Times are in
        seconds since 1970 by this machine's clock. The queue of an event is None if neither the
        event nor an earlier one of the job names it; with a filter of queues it is looked up.

        Example:
            async for event in client.events(kind=["completed", "failed"]): ...

        Args:
            queue: Names of queues.
            jid: Jids of jobs.
            kind: Kinds of events.
            tracked: Only tracked jobs: the latest 1,000, and jobs that are tracked later.

        Raises:
            TypeError: A name is not a string.
            ValueError: There is no such kind, or a name is not valid.
            redis.exceptions.ConnectionError: Redis can't be reached at the start.
        """
        opened = self.internals
        selector = EventSelector(opened.store, queue, jid, kind, tracked)
        return Stream(opened.subscriber, selector, lambda: self._connected is not opened)

    @property
    def server(self) -> Server:
        """The Redis server."""
        return Server(self.internals.store)

    @property
    def archive(self) -> Archive:
        """The stream of ended jobs."""
        return Archive(self.internals.store)

    @property
    def metrics(self) -> Metrics:
        """What has run by klass and queue, and deploy marks."""
        return cast("Metrics", extensions.load("metrics").Metrics(self.internals.store))

    def queue(self, name: str) -> Queue:
        """Return a queue; it needn't exist yet.

        Args:
            name: Name of the queue.
        """
        return Queue(self.internals.backend, self.internals.sender, name, self.name)

    async def put(
        self,
        job: str | Klass[R] | NewJob[R],
        data: object = None,
        *,
        queue: str | None = None,
        wait: Seconds = 0,
        **options: Unpack[PutOptions],
    ) -> Jid[R]:
        """Put (enqueue) one job: `client.put(greet.data(name="Ada"), delay=60)`.

        `put(resize.data(path="a.png"))` is checked by type checkers; `put(resize, {"path":
        "a.png"})` and, for a handler in another process, `put("app.jobs.resize", {...})` only when
        they are called. A jid that exists is moved to the queue with the options given, unless
        `if_exists` says otherwise. If another job has the `unique` key, nothing is put.

        Args:
            job: A handler, its klass, or a new job.
            data: The job's data, unless `job` is a new job.
            queue: Name of the queue; default: the handler's, else "default".
            wait: Time to wait while the queue, or Redis, is full.
            options: See PutOptions.

        Returns:
            The job's jid, or that of the job that has its unique key: a string with methods.

        Raises:
            JobExists: The jid or the unique key is taken, and `if_exists` is "raise".
            NoSuchJob: A job that it depends on doesn't exist; see `missing`.
            InvalidData: The data can't be encoded, or isn't what the handler takes.
            QueueFull: The queue, or Redis, has no room.
            TypeError: Put has no such option, or one has the wrong type.
            ValueError: An option is out of range.
        """
        return await self.internals.sender.put(NewJob.of(job, data, options), queue, wait)

    async def put_many(
        self,
        jobs: Iterable[NewJob[R]],
        *,
        queue: str | None = None,
        wait: Seconds = 0,
        spread: Seconds = 0,
    ) -> list[Jid[R]]:
        """Put many jobs, in few calls of a bounded size.

        All are checked before the first is sent.

        Args:
            jobs: The jobs; those of one queue in the order in which they are to run.
            queue: Name of the queue; default: that of each handler, else "default".
            wait: Time to wait while a queue, or Redis, is full.
            spread: Time over which the jobs are spread evenly; those with a delay or a time of
                their own keep it.

        Returns:
            Their jids, in order.

        Raises:
            PutManyError: Some were refused, or it isn't known whether they were put; an
                ExceptionGroup with the jids.
            QueueFull: Redis has no memory left.
        """
        return await self.internals.sender.put_many(jobs, queue, wait, spread)

    async def put_flow(
        self,
        flow: Step,
        *,
        queue: str | None = None,
        wait: Seconds = 0,
        **options: Unpack[FlowOptions],
    ) -> Flow:
        """Put a workflow, jobs that depend on each other, in one step: all of them, or none.

        Args:
            flow: A chain, a group or a job.
            queue: Queue of jobs without `in_queue`; default: that of each handler, else "default".
            wait: Time to wait while a queue, or Redis, is full.
            options: See FlowOptions.

        Returns:
            The jids.

        Raises:
            JobExists: A jid or a unique key is taken, and `if_exists` of its job is "raise".
            NoSuchJob: A job that one depends on doesn't exist.
            QueueFull: A queue, or Redis, has no room.
            ValueError: The workflow has more than 1,000 jobs or 10,000 dependencies, or what `put`
                raises it for.
        """
        return await self.internals.sender.put_flow(flow, queue, wait, options)

    def job_set(
        self, name: str, *, then: Branch | None = None, when_ended: Branch | None = None
    ) -> JobSet:
        """Return a job set: jobs that are followed, retried and canceled as one.

        It is created by the first put or close, which stores the callbacks. Its name is free again
        7 days after its end.

        Args:
            name: Name of the set.
            then: The job that is put, once, when the set is closed and all members are complete.
            when_ended: The job that is put, once, when the set is closed and all members have
                ended: complete, failed, canceled, or held by a failed dependency.

        Raises:
            ValueError: A callback has an option that none can have.
        """
        return JobSet(self.internals.backend, self.internals.sender, name, then, when_ended)

    async def job_sets(self, *, offset: int = 0, count: int = 25) -> list[JobSetStatus]:
        """Return job sets, the latest first, without their failure groups.

        Args:
            offset: Number of sets to skip.
            count: Maximum number of sets, at most 100.
        """
        return await list_sets(self.internals.backend, offset, count)

    async def recur(
        self,
        job: str | Klass | NewJob,
        data: object = None,
        *,
        queue: str | None = None,
        **options: Unpack[RecurOptions],
    ) -> RecurringJob:
        """Make a recurring job, or change the one with this jid.

        A job that is changed starts its schedule again, keeps its count, and stays paused if it is.

        Args:
            job: A handler, its klass, or a new job.
            data: The data of its instances, unless `job` is a new job.
            queue: Name of the queue; default: the handler's, else "default".
            options: See RecurOptions; a jid, and either `every` or `cron`, are required.

        Raises:
            InvalidData: The data can't be encoded, or isn't what the handler takes.
            TypeError: There is no such option, one has the wrong type, or there is no jid.
            ValueError: An option is out of range.
        """
        return await recur(self.internals.backend, job, data, queue, options)

    @contextmanager
    def as_current(self) -> Iterator[Self]:
        """Let handlers put with this client within the block: `await greet.put(name="Ada")`.

        Only needed where an event loop has several open clients; a worker's jobs put with the
        worker's own.
        """
        token = _current.set(self)
        try:
            yield self
        finally:
            _current.reset(token)

    @staticmethod
    def current() -> Client:
        """Return the client that `handler.put` uses.

        It is that of `as_current`, in a job that of its worker, else the one client that is open on
        this event loop.

        Raises:
            RuntimeError: There is none, or there are several.
        """
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            raise RuntimeError(
                "no event loop runs in this thread: code without one, such as a handler that is a "
                "plain `def`, puts with a synchronous client, aioqless.SyncClient"
            ) from None
        chosen = _current.get()
        clients = list(_open_clients.get(loop, ()))
        if chosen in clients:
            return chosen
        match clients:
            case [client]:
                return client
            case [] if chosen is not None and chosen._loop is not None:  # noqa: SLF001  # this class
                why = OTHER_LOOP
            case []:
                why = (
                    "no client is open on this event loop: `async with Client(...) as client:`, "
                    "in a test without Redis `async with aioqless.testing.MemoryClient():`"
                )
            case several:
                why = f"{len(several)} clients are open on this event loop: choose one"
        raise RuntimeError(
            f"{why}, or call client.put(handler.data(...)), or use `with client.as_current():`"
        )

    async def queues(self, *, offset: int = 0, count: int = 1000) -> list[QueueOverview]:
        """Return the counts and today's totals of the known queues, by when each was first seen.

        Args:
            offset: Number of queues to skip.
            count: Maximum number of queues.
        """
        found: list[QueueOverview] = []
        while left := count - len(found):
            asked = min(left, QUEUES_PER_CALL)
            counts = await self.internals.store.queues(
                offset=offset + len(found), count=asked, totals="today"
            )
            found += msgspec.convert(counts, list[QueueOverview])
            if len(counts) < asked:
                break
        return found

    async def ping(self) -> None:
        """Return when Redis answers, as a readiness check of a program that only puts jobs.

        Raises:
            redis.exceptions.RedisError: It doesn't answer in time, or refuses the client.
        """
        await self.internals.store.now()

    async def lags(self, *queues: str) -> list[float]:
        """Return how many seconds ago the next job of each queue could have started; 0 for none.

        Args:
            queues: Names of queues.
        """
        return await self.internals.store.lag(queues=queues) if queues else []

    async def check(
        self, *, resolve: bool = False, step: Callable[[int], object] = lambda _: None
    ) -> list[Finding]:
        """Check the whole namespace for inconsistencies, in calls of a bounded size.

        Args:
            resolve: Repair what is found; no job is lost.
            step: Called after each call with the number of things it looked at.

        Returns:
            What was found.
        """
        return await check_consistency(self.internals.store, resolve=resolve, step=step)

    def with_connection(self, wrap: Callable[[CommandConnection], CommandConnection]) -> Client:
        """Return a view of this client whose commands go over a wrapped connection.

        The wrapper may throttle or count commands. The view has no lifecycle of its own: it is
        neither entered nor closed.

        Args:
            wrap: Wraps the client's connection.
        """
        other = copy.copy(self)
        store = self._access.wrap_store(self.internals.store, wrap)
        other._connected = other._connect(self.redis, store)  # noqa: SLF001  # of the same class
        return other

    @property
    def internals(self) -> Internals:
        """What workers and extensions use of a client."""
        if self._connected is None:
            raise RuntimeError(
                CLOSED
                if self._was_closed
                else "the client isn't connected: use it within `async with Client(...) as client:`"
            )
        return self._connected

    def _connect(self, redis: Redis, store: ScriptStore) -> Internals:
        subscriber = self._access.make_subscriber(redis)
        watcher = partial(JobWatcher, subscriber, partial(find_wait, store))
        progress, output = ProgressReporter(store), watcher(output=True)
        backend = JobBackend(store, self.codec, self.max_data, watcher(), progress, output)
        return Internals(
            access=self._access,
            redis=redis,
            store=store,
            backend=backend,
            sender=self._access.make_sender(backend, self.on_put),
            jobs=Jobs(backend),
            recurring=RecurringJobs(backend),
            workers=Workers(redis, store),
            config=Config(store),
            subscriber=subscriber,
        )


_current: ContextVar[Client | None] = ContextVar("aioqless_client", default=None)
_open_clients: WeakKeyDictionary[asyncio.AbstractEventLoop, WeakSet[Client]] = WeakKeyDictionary()


def worker_name() -> str:
    """Return a unique name for this process: `host-pid-nonce`."""
    return f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(3)}"
