"""Client: one connection to one namespace, and the doors to all that is there."""

from __future__ import annotations

import asyncio
import copy
import os
import re
import secrets
import socket
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, Self

from redis import exceptions
from redis.asyncio import Redis
from typing_extensions import Unpack

from aioqless import validation
from aioqless.client import json_data
from aioqless.client import url as address
from aioqless.client.archive import Archive
from aioqless.client.audit_log import AuditLog
from aioqless.client.codec import Codec
from aioqless.client.config import Config
from aioqless.client.events import Events
from aioqless.client.extensions import codec_from_environment, server_provider
from aioqless.client.job.progress_reporter import ProgressReporter
from aioqless.client.job.services import Services
from aioqless.client.job.watcher import JobWatcher
from aioqless.client.jobs import Jobs
from aioqless.client.keyspace import Keyspace
from aioqless.client.options import More, connection_name, patience_of, timeout_of
from aioqless.client.put import NewJob, Puts
from aioqless.client.queue import Queue
from aioqless.client.recurring import RecurringJob
from aioqless.client.recurring.listing import recurring_jobs, recurring_page
from aioqless.client.reservations import Reservations
from aioqless.client.server import Server
from aioqless.client.sessions import SessionRecords
from aioqless.client.workers import Workers
from aioqless.errors import ServerUnavailable
from aioqless.redis import Address, Topology, make_redis, make_topology, redact_url
from aioqless.redis.connection import CommandConnection, Connection
from aioqless.redis.durability import DurableWrites
from aioqless.store import ATTEMPTS, ScriptStore


class Client:
    """The queues of one namespace on one Redis: `async with Client(url) as client`.

    Without a URL: AIOQLESS_URL, else REDIS_URL, else AIOQLESS_HOST, AIOQLESS_PORT and AIOQLESS_DB,
    else a private server shared by all that run without one on this machine (aioqless[private-redis]).
    `redis_url` makes one of its parts; a URL without a password gets AIOQLESS_PASSWORD. `namespace`
    is the prefix of all keys, else AIOQLESS_NAMESPACE, else `ql`, which other qless clients use. A
    call that takes longer than `timeout` seconds (else the URL's socket_timeout, else 30, or 15
    with sentinels or a Cluster), connecting and all attempts included, is given up; a connection
    that is silent for a third of it is given up before that, and the call sent again on another.
    Data of more than `max_data` bytes is refused. `patience` is for how many seconds a call is
    tried while another server takes over (15 with sentinels or a Cluster, else 0), `durability` who
    must have a write before it is answered. `credentials` is a provider of redis-py's, asked at
    each connection. Everything goes by Redis' clock; `clock` is another, for tests."""

    def __init__(
        self,
        url: str | None = None,
        *,
        namespace: str | None = None,
        timeout: float | None = None,
        max_data: int = json_data.LIMIT,
        name: str | None = None,
        **more: Unpack[More],
    ) -> None:
        self.url = address.found(url)
        self.namespace = (
            (os.environ.get("AIOQLESS_NAMESPACE") or "ql") if namespace is None else namespace
        )
        self.name = validation.check_name("name", worker_name() if name is None else name)
        self.max_data = int(validation.check_number("max_data", max_data, least=1))
        self.context: Callable[[NewJob], Mapping[str, str]] | None = (
            None  # makes the context of a job that is put without one
        )
        if unknown := more.keys() - More.__annotations__.keys():
            raise TypeError(f"a client has no option {', '.join(sorted(unknown))}")
        self._clock = more.get("clock")
        self._durability = more.get("durability")
        self.codec: Codec = more.get("codec") or codec_from_environment()
        self._credentials = more.get("credentials")
        self._address = self._read_address()
        self._connection_name = connection_name(self._address, self.name)
        self._timeout = timeout_of(self._address, timeout)
        self._patience = patience_of(self._address, more)
        self._private: dict[str, str] = {}
        self._doors: _Doors | None = None

    async def __aenter__(self) -> Self:
        if self.url is None:
            await self._ensure_private()
        store = self._shared_store()
        if self._private:  # the private server stops when nobody is connected
            await store.connection.execute("PING")
        redis = make_redis(
            self._topology(),
            connect_timeout=self._timeout / ATTEMPTS,
            reply_timeout=self._timeout,
            name=f"{self._connection_name}.redis",
        )
        self._doors = _Doors(redis, store, self)
        return self

    def _read_address(self) -> Address | None:
        """What the URL says; checks that it goes with the namespace, too."""
        address = None if self.url is None else Address.parse(self.url, self._credentials)
        if address is not None:
            make_topology(address, self.namespace)
        return address

    def _topology(self) -> Topology:
        """Of one connection: what it learns of a fail-over is its own."""
        assert self._address is not None
        return make_topology(self._address, self.namespace)

    def _shared_store(self) -> ScriptStore:
        name, timeout = self._connection_name, self._timeout
        connection, durable = self._connection(name, timeout / ATTEMPTS), None
        if self._durability is not None:
            extra = self._durability.timeout
            apart = self._connection(f"{name}.durable", timeout / ATTEMPTS + extra)
            durable, timeout = DurableWrites(apart, self._durability), timeout + extra
        return self._store_over(connection, timeout, durable)

    def _store_over(
        self, connection: CommandConnection, timeout: float, durable: DurableWrites | None = None
    ) -> ScriptStore:
        return ScriptStore(
            connection,
            self.namespace,
            limit=timeout,
            patience=self._patience,
            durable=durable,
            clock=self._clock,
        )

    def _connection(self, name: str, timeout: float) -> Connection:
        before = self._rejoin_private if self._private else None
        return Connection(self._topology(), timeout=timeout, name=name, before_connect=before)

    def apart(self, name: str, timeout: float) -> ScriptStore:
        """The same commands over a connection of its own, for a loop in another thread. Redis knows
        it as `<name of the client>.<name>`. It connects when it is first used, gives up a call
        after `timeout` seconds or the client's, and is closed by who asked for it."""
        timeout = min(timeout, self._timeout)
        connection = self._connection(f"{self._connection_name}.{name}", timeout / ATTEMPTS)
        return self._store_over(connection, timeout)

    def with_connection(self, wrap: Callable[[CommandConnection], CommandConnection]) -> Client:
        """Return a view of this client whose commands go over a wrapped connection.

        The wrapper may throttle or count commands. The view has no lifecycle of its own: it is
        neither entered nor closed.
        """
        connection = wrap(self.store.connection)
        other = copy.copy(self)
        other._doors = _Doors(self.redis, self._store_over(connection, self._timeout), other)
        return other

    async def _ensure_private(self) -> None:
        """Start the private server unless it runs."""
        server = await asyncio.to_thread(server_provider().ensure)
        self.url = server.url
        self._address = self._read_address()
        self._private = {"program": server.program, "data": str(server.data_dir)}

    async def _rejoin_private(self) -> None:
        """Before each connection to the private server: one that can't be started is an outage as
        any other."""
        try:
            await self._ensure_private()
        except ServerUnavailable as error:
            raise exceptions.ConnectionError(str(error)) from None

    async def __aexit__(self, *_: object) -> None:
        if self._doors:
            doors, self._doors = self._doors, None
            doors.events.close()
            await doors.services.watcher.aclose()
            await doors.store.aclose()
            await doors.redis.aclose()

    @property
    def _open(self) -> _Doors:
        if self._doors is None:
            raise RuntimeError(
                "the client isn't connected: use it within `async with Client(...) as client:`"
            )
        return self._doors

    @property
    def where(self) -> dict[str, str]:
        """Which Redis is used, for a log: its url without the password, and for a private server
        its program and data directory."""
        return {"url": re.sub(r"//[^@/]*@", "//", redact_url(self.url or "")), **self._private}

    @property
    def redis(self) -> Redis:
        """Connections of redis-py's to the same Redis, for what goes beyond the queues."""
        return self._open.redis

    @property
    def store(self) -> ScriptStore:
        """Every command of the state machine, by the names of its arguments."""
        return self._open.store

    @property
    def services(self) -> Services:
        """What the jobs and queues of this client share."""
        return self._open.services

    @property
    def jobs(self) -> Jobs:
        """Jobs, wherever they are."""
        return self._open.jobs

    @property
    def workers(self) -> Workers:
        """Who works, and on what."""
        return self._open.workers

    @property
    def config(self) -> Config:
        """What all clients and workers share."""
        return self._open.config

    @property
    def events(self) -> Events:
        """What happens, as it happens."""
        return self._open.events

    @property
    def server(self) -> Server:
        """The Redis server."""
        return Server(self.store)

    @property
    def archive(self) -> Archive:
        """The stream of ended jobs."""
        return Archive(self.store)

    @property
    def audit_log(self) -> AuditLog:
        """What users of the dashboard did."""
        return AuditLog(self.store)

    @property
    def sessions(self) -> SessionRecords:
        """Records of open browser sessions."""
        return SessionRecords(self.store)

    @property
    def keyspace(self) -> Keyspace:
        """The keys of the namespace, for tools that scan all of it."""
        return Keyspace(self.store)

    @property
    def reservations(self) -> Reservations:
        """Jobs that people hold for a limited time."""
        return Reservations(self.services)

    def queue(self, name: str) -> Queue:
        """One queue; it needn't exist yet."""
        return Queue(self.services, self._open.puts, name, worker=self.name)

    async def queues(self, *, offset: int = 0, count: int = 1000) -> list[dict[str, Any]]:
        """The counts of all known queues, by when each was first seen: {name, waiting, running,
        stalled, scheduled, depends, recurring, paused}, and what today (UTC) came to so far in
        each: popped, completed, failures, retries."""
        counts: list[dict[str, Any]] = await self.store.queues(
            offset=offset, count=count, totals="today"
        )
        return counts

    async def lags(self, *queues: str) -> list[float]:
        """Return how many seconds ago the next job of each queue could have started; 0 for none."""
        lags: list[float] = await self.store.lag(queues=queues) if queues else []
        return lags

    async def timed_recurring(self, *, offset: int = 0, count: int = 100) -> list[RecurringJob]:
        """Return a page of the recurring jobs that no queue lists.

        These are those with a cron expression, by when they are due, and all paused ones. Others
        are listed by `queue(name).recurring()`.
        """
        return await recurring_page(self.services, None, offset, count)

    def recurring(self) -> AsyncIterator[RecurringJob]:
        """All recurring jobs, those of other qless clients too: `async for each in
        client.recurring(): ...`

        First those with a cron expression, by when they are due, and all that are paused; then
        those with an interval, queue by queue. They are read a page at a time: one that is put or
        moved meanwhile may be missing, or there twice."""
        return recurring_jobs(self.services)

    async def check(
        self, *, resolve: bool = False, step: Callable[[int], object] = lambda _: None
    ) -> list[dict[str, Any]]:
        """Walk the whole namespace for what can't be right; with `resolve`, mend it without losing
        a job.

        Returns what was found, each a dict with `problem`, `mended` and what it is about. Other
        calls go on in between; `step` is called with how many more things were looked at."""
        found: list[dict[str, Any]] = []
        cursor = "0"
        while True:
            portion = await self.store.check(resolve="resolve" if resolve else None, cursor=cursor)
            found += portion["found"]
            cursor = portion["cursor"]
            step(portion["examined"])
            if cursor == "0":
                return found


class _Doors:
    """What a connected client has."""

    def __init__(self, redis: Redis, store: ScriptStore, client: Client) -> None:
        self.redis = redis
        self.store = store
        self.services = Services(
            store,
            client.codec,
            client.max_data,
            JobWatcher(redis, store),
            ProgressReporter(store),
        )
        self.puts = Puts(store, lambda job: client.context(job) if client.context else None)
        self.jobs = Jobs(self.services)
        self.workers = Workers(redis, store)
        self.config = Config(store)
        self.events = Events(redis, store)


def worker_name() -> str:
    """A name that no other process has or had, nor any other qless client on this machine:
    `host-pid-nonce`."""
    return f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(3)}"
