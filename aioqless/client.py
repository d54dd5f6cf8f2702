"""Client: one connection to one namespace, and its doors: queues, jobs, workers, config, events."""

from __future__ import annotations

import asyncio
import os
import re
import secrets
import socket
from typing import Any, Self

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from aioqless import data, names
from aioqless.config import Config
from aioqless.connection import Connection
from aioqless.jobs import Job
from aioqless.pubsub import Events
from aioqless.puts import Puts
from aioqless.queue import Queue
from aioqless.recurring import RecurringJob
from aioqless.scripts import Scripts


class Client:
    """The queues of one namespace on one Redis: `async with Client(url) as client`.

    Without a URL: AIOQLESS_URL, else REDIS_URL, else a private server shared by all that run without one on this machine
    (aioqless[embedded]). `namespace` is the prefix of all keys; `ql` is the one that other qless clients use. A call that takes longer
    than `timeout` seconds is given up; data of more than `max_data` bytes are refused.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        namespace: str = "ql",
        timeout: float = 30.0,
        max_data: int = data.LIMIT,
        name: str | None = None,
    ) -> None:
        self.url = url or os.environ.get("AIOQLESS_URL") or os.environ.get("REDIS_URL")
        self.namespace = namespace
        self.name = names.checked("name", worker_name() if name is None else name)
        self.max_data = int(names.checked_number("max_data", max_data, least=1))
        self._timeout = names.checked_number("timeout", timeout, least=0.001)
        self._private: dict[str, str] = {}
        self._doors: _Doors | None = None

    async def __aenter__(self) -> Self:
        if self.url is None:
            await self._ensure_private()
        before = self._ensure_private if self._private else None
        url = self.url or ""
        connection = Connection(url, timeout=self._timeout, name=self.name, before=before)
        scripts = Scripts(connection, self.namespace)
        if self._private:
            await connection.execute("PING")  # the private server goes when nobody is connected
        # For subscriptions. No blind retries and no time-outs: a subscription waits for as long as nothing happens.
        redis = Redis.from_url(url, retry=Retry(NoBackoff(), 0), socket_timeout=None)
        self._doors = _Doors(redis, scripts, self)
        return self

    async def _ensure_private(self) -> None:
        """Start the private server unless it runs."""
        from aioqless import embedded

        server = await asyncio.to_thread(embedded.ensure)
        self.url = server.url
        self._private = {"program": server.program, "data": str(server.data_dir)}

    async def __aexit__(self, *_: object) -> None:
        if self._doors:
            doors, self._doors = self._doors, None
            await doors.scripts.connection.aclose()
            await doors.redis.aclose()

    @property
    def _open(self) -> _Doors:
        if self._doors is None:
            raise RuntimeError("the client isn't connected: use it within `async with Client(...) as client:`")
        return self._doors

    @property
    def where(self) -> dict[str, str]:
        """Which Redis is used, for a log: its url without the password, and for a private server its program and data directory."""
        return {"url": re.sub(r"//[^@/]*@", "//", self.url or ""), **self._private}

    @property
    def redis(self) -> Redis:
        """Connections of redis-py's to the same Redis, for what goes beyond the queues."""
        return self._open.redis

    @property
    def scripts(self) -> Scripts:
        """Every command of the state machine, by the names of its arguments."""
        return self._open.scripts

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

    def queue(self, name: str) -> Queue:
        """One queue; it needn't exist yet."""
        return Queue(self.scripts, self._open.puts, name, worker=self.name, max_data=self.max_data)

    async def queues(self, *, offset: int = 0, count: int = 1000) -> list[dict[str, Any]]:
        """The counts of all known queues, by when each was first seen: {name, waiting, running, stalled, scheduled, ...}."""
        counts: list[dict[str, Any]] = await self.scripts("queues", offset=offset, count=count)
        return counts

    async def check(self, *, resolve: bool = False) -> list[dict[str, Any]]:
        """Walk the whole namespace for what can't be right; with `resolve`, mend it without losing a job.

        Returns what was found, each a dict with `problem` and what it is about. Other calls go on in between.
        """
        found: list[dict[str, Any]] = []
        cursor = "0"
        while True:
            step = await self.scripts("check", resolve="resolve" if resolve else None, cursor=cursor)
            found += step["found"]
            cursor = step["cursor"]
            if cursor == "0":
                return found


class Jobs:
    """Jobs by their jid, their state, their tags."""

    def __init__(self, scripts: Scripts, max_data: int) -> None:
        self._scripts = scripts
        self._max_data = max_data

    async def get(self, jid: str) -> Job | None:
        """The job; None when there is none."""
        record = await self._scripts("get", jid=jid)
        return None if record is None else self._job(record)

    async def multiget(self, *jids: str) -> list[Job]:
        """Those of the jobs that exist, in the order asked; at most 1,000 a call."""
        return [self._job(record) for record in await self._scripts("multiget", jids=jids)]

    async def recurring(self, jid: str) -> RecurringJob | None:
        """The recurring job; None when there is none."""
        record = await self._scripts("recur", "get", jid=jid)
        return None if record is None else RecurringJob(self._scripts, record)

    async def complete(self, *, offset: int = 0, count: int = 25) -> list[str]:
        """The jids of completed jobs that are still kept, the latest first."""
        jids: list[str] = await self._scripts("jobs", state="complete", offset=offset, count=count)
        return jids

    async def failed(self) -> dict[str, int]:
        """How many jobs failed in each group."""
        counts: dict[str, int] = await self._scripts("failed")
        return counts

    async def failed_in(self, group: str, *, start: int = 0, limit: int = 25) -> tuple[int, list[Job]]:
        """How many jobs failed in a group, and some of them, the latest first."""
        page = await self._scripts("failed", group=group, start=start, limit=limit)
        return page["total"], [self._job(record) for record in page["jobs"]]

    async def tracked(self) -> tuple[list[Job], list[str]]:
        """The tracked jobs, and the jids of those that are tracked but gone."""
        page = await self._scripts("track")
        return [self._job(record) for record in page["jobs"]], page["expired"]

    async def tagged(self, tag: str, *, offset: int = 0, count: int = 25) -> tuple[int, list[str]]:
        """How many jobs have the tag, and the jids of some, by when they got it."""
        page = await self._scripts("tag", "get", tag=tag, offset=offset, count=count)
        return page["total"], page["jobs"]

    async def tags(self, *, offset: int = 0, count: int = 100) -> list[str]:
        """The tags of two jobs or more, the commonest first."""
        tags: list[str] = await self._scripts("tag", "top", offset=offset, count=count)
        return tags

    async def cancel(self, *jids: str) -> list[str]:
        """Delete jobs; returns the jids of those that were. Raises HasDependents when one that depends on them isn't named."""
        gone: list[str] = await self._scripts("cancel", jids=jids)
        return gone

    async def timeout(self, *jids: str) -> None:
        """Take running jobs from their workers; they are next in line before all others."""
        await self._scripts("timeout", jids=jids)

    def _job(self, record: dict[str, Any]) -> Job:
        return Job(self._scripts, record, max_data=self._max_data)


class Workers:
    """Workers as Redis knows them: by pops and heartbeats."""

    def __init__(self, scripts: Scripts) -> None:
        self._scripts = scripts

    async def counts(self) -> list[dict[str, Any]]:
        """[{name, jobs, stalled}], last seen first."""
        counts: list[dict[str, Any]] = await self._scripts("workers")
        return counts

    async def jobs(self, name: str) -> dict[str, list[str]]:
        """{jobs, stalled}: the jids that a worker holds, and those of them whose lock ran out."""
        held: dict[str, list[str]] = await self._scripts("workers", worker=name)
        return held

    async def deregister(self, *workers: str) -> None:
        """Take workers off the list of those known."""
        await self._scripts("deregister", workers=workers)


class _Doors:
    """What a connected client has."""

    def __init__(self, redis: Redis, scripts: Scripts, client: Client) -> None:
        self.redis = redis
        self.scripts = scripts
        self.puts = Puts(scripts)
        self.jobs = Jobs(scripts, client.max_data)
        self.workers = Workers(scripts)
        self.config = Config(scripts)
        self.events = Events(redis, client.namespace)


def worker_name() -> str:
    """A name that no other process has or had, nor any other qless client on this machine: `host-pid-nonce`."""
    return f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(3)}"
