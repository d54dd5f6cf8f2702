"""How all queues are just now, and were the last minutes: looked at once for everybody."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
from redis import exceptions

from aioqless.client import Client
from aioqless.client.archive import Archive

KEPT = 90  # samples
MOST_QUEUES = 10_000
PAGE = 500  # queues a call, for which Redis is busy some milliseconds
FRESH = 2.0  # seconds
# seconds for which jobs wait, while none runs, before one wonders whether their queue is served
PATIENCE = 30
# seconds without a pop or a renewed lock after which a worker that doesn't listen either counts as
# lost
SILENCE = 30
FORGOTTEN = 3600  # seconds after which a lost worker is no reason for an alarm any more
A_CALL = 100  # workers


class QueueNow(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A queue's counts, and today's totals."""

    name: str
    waiting: int = 0
    running: int = 0
    stalled: int = 0
    scheduled: int = 0
    depends: int = 0
    recurring: int = 0
    paused: bool = False
    popped: int = 0
    completed: int = 0
    failures: int = 0
    retries: int = 0  # explicit ones and lost locks


@dataclass(frozen=True, kw_only=True)
class Health:
    """How Redis is. Memory in bytes, 0 for no limit."""

    version: str = ""
    memory: int = 0
    memory_limit: int = 0
    policy: str = ""
    durable: str = ""
    saved: bool = True
    clients: int = 0
    commands: int = 0
    uptime: int = 0
    fragmentation: float = 0


@dataclass(frozen=True, kw_only=True)
class Sample:
    """Everything at one moment: `when` in seconds since 1970. `failed` are the jobs in each failure
    group, `workers` as they are known."""

    when: float = 0
    queues: tuple[QueueNow, ...] = ()
    failed: Mapping[str, int] = field(default_factory=dict)
    workers: tuple[Mapping[str, Any], ...] = ()
    health: Health = field(default_factory=Health)
    unread: str | None = None  # what is wrong with the archive
    unserved: Mapping[str, int] = field(
        default_factory=dict
    )  # as `unserved` finds them among all queues
    lost: Mapping[str, float] = field(
        default_factory=dict
    )  # as `lost` finds them among all workers

    def sum(self, what: str) -> int:
        """One count of all queues together."""
        return sum(getattr(queue, what) for queue in self.queues)


class Sampler:
    """Owns the latest sample, and the rates of the last minutes: completed and failed a second, of
    each queue and of all."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._looking = asyncio.Lock()
        self.latest = Sample()
        self._looked = -1e9
        self._rates: dict[str, deque[tuple[float, float, float]]] = {}

    async def fresh(self, client: Client | None = None, within: float = FRESH) -> Sample:
        """The latest sample, taken anew unless it is of the last `within` seconds."""
        async with self._looking:
            if time.monotonic() - self._looked > within:
                sample = await self._look(client or self._client)
                self._remember(sample, time.monotonic())
        return self.latest

    def rates(self, queue: str = "") -> list[tuple[float, float, float]]:
        """(when, completed a second, failed a second) up to now; without a queue, of all
        together."""
        return list(self._rates.get(queue, ()))

    async def _look(self, client: Client) -> Sample:
        queues = msgspec.convert(await _all(client.queues), tuple[QueueNow, ...])
        failed = await client.jobs.failed()
        workers = tuple(await client.workers.counts())
        unread = (await Archive(client.store).state()).trouble(now := time.time())
        return Sample(
            when=now,
            queues=queues,
            failed=failed,
            workers=workers,
            health=await health(client),
            unread=unread,
            unserved=await unserved(client, queues),
            lost=await lost(client, [each["name"] for each in workers], now),
        )

    def _remember(self, sample: Sample, now: float) -> None:
        before, passed = {queue.name: queue for queue in self.latest.queues}, now - self._looked
        self.latest, self._looked = sample, now
        if passed > 3600:  # the first, or the first for long: nothing is known of what was between
            self._rates = {}
            return
        done = failed = 0.0
        for queue in sample.queues:
            if earlier := before.get(queue.name):
                completed = _grown(earlier.completed, queue.completed) / passed
                failures = _grown(earlier.failures, queue.failures) / passed
                self._keep(queue.name, sample.when, completed, failures)
                done, failed = done + completed, failed + failures
        self._keep("", sample.when, done, failed)
        for gone in self._rates.keys() - {queue.name for queue in sample.queues} - {""}:
            del self._rates[gone]

    def _keep(self, queue: str, when: float, done: float, failed: float) -> None:
        self._rates.setdefault(queue, deque(maxlen=KEPT)).append((when, done, failed))


def _grown(before: int, after: int) -> int:
    """How much a counter grew that begins anew each day."""
    return after - before if after >= before else after


async def unserved(client: Client, queues: Iterable[QueueNow]) -> dict[str, int]:
    """Those of some queues that no worker seems to serve, since jobs wait there, none runs, and the
    first in line could have run for long: with since when it could."""
    names = [
        queue.name for queue in queues if queue.waiting and not queue.running and not queue.paused
    ]
    lags: list[float] = []
    for first in range(0, len(names), PAGE):
        lags += await client.store.lag(queues=names[first : first + PAGE])
    return {
        name: round(time.time() - lag)
        for name, lag in zip(names, lags, strict=True)
        if lag > PATIENCE
    }


async def lost(client: Client, names: Sequence[str], now: float) -> dict[str, float]:
    """The workers that disappeared without stopping: when each was last seen. `names` are in the
    order of that, the latest first.

    A worker that stops leaves the list. One that is paused is silent, but listens; one of another
    client may have a long job."""
    silent: dict[str, float] = {}
    for end in range(len(names), 0, -A_CALL):
        seen = await client.workers.working(*names[max(0, end - A_CALL) : end], most=0)
        silent |= {
            worker.name: worker.seen
            for worker in seen
            if worker.seen < now - SILENCE and not worker.jobs
        }
        if seen[0].seen >= now - SILENCE:
            break
    if not silent:
        return {}
    channels = {f"{client.namespace}:w:{name}": name for name in silent}
    try:
        counts = await client.store.connection.execute("PUBSUB", "NUMSUB", *channels)
    except exceptions.ResponseError:  # not permitted: nothing is known
        return {}
    listening = {
        channel.decode("utf-8", "surrogateescape")
        for channel, count in zip(counts[::2], counts[1::2], strict=True)
        if count
    }
    return {name: silent[name] for channel, name in channels.items() if channel not in listening}


async def _all(read: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    while len(found) < MOST_QUEUES and (page := await read(offset=len(found), count=PAGE)):
        found += page
        if len(page) < PAGE:
            break
    return found


async def health(client: Client) -> Health:
    """What Redis says of itself."""
    said = parsed((await client.store.connection.execute("INFO")).decode("utf-8", "replace"))
    aof = said.get("aof_enabled") == "1"
    return Health(
        version=said.get("valkey_version") or said.get("redis_version", ""),
        memory=int(said.get("used_memory", 0)),
        memory_limit=int(said.get("maxmemory", 0)),
        policy=said.get("maxmemory_policy", ""),
        durable=kept_by(said),
        saved=(
            said.get("aof_last_write_status", "ok")
            if aof
            else said.get("rdb_last_bgsave_status", "ok")
        )
        == "ok",
        clients=int(said.get("connected_clients", 0)),
        commands=int(said.get("instantaneous_ops_per_sec", 0)),
        uptime=int(said.get("uptime_in_seconds", 0)),
        fragmentation=float(said.get("mem_fragmentation_ratio", 0)),
    )


def kept_by(said: Mapping[str, str]) -> str:
    """What would be left of the jobs if Redis ended now, from the fields of INFO."""
    if said.get("aof_enabled") == "1":
        return "append-only file"
    # rdb_last_save_time doesn't tell: before the first snapshot it is the time of the start
    return (
        "snapshots"
        if int(said.get("rdb_last_bgsave_time_sec", -1)) >= 0
        else "nothing since it started"
    )


def parsed(text: str) -> dict[str, str]:
    """The fields of INFO's reply."""
    return dict(
        line.split(":", 1) for line in text.splitlines() if ":" in line and not line.startswith("#")
    )
