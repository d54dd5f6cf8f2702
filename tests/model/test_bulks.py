"""Random puts, pops, cancellations and retries of jobs that gather agree with their rules."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Collection
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from hypothesis import example, given, note
from hypothesis import strategies as st
from redis.asyncio import Redis

from aioqless.redis.connection import Connection
from aioqless.store import ScriptStore
from tests.lua.job_rows import row_fields

SIZE, WITHIN = 3, 5.0
KEYS = ("x", "y")
BULK = row_fields().index("x-bulk")

Step: TypeAlias = tuple[str, int, int]
steps = st.lists(
    st.tuples(
        st.sampled_from(
            ["put", "put", "put", "pop", "pop", "pass", "cancel", "end", "rank", "peer"]
        ),
        st.integers(0, 11),
        st.integers(0, 9),
    ),
    max_size=40,
)


@dataclass
class Gathering:
    """A job of the model: `ready` is when it begins to gather."""

    key: str
    ready: float
    priority: int
    fence: str = ""
    runs: int = 0


@dataclass
class Bulks:
    """The rules: which jobs a pop may bring together, and which it must."""

    store: ScriptStore
    redis: Redis
    now: float = 1000.0
    jobs: dict[str, Gathering] = field(default_factory=dict)  # those that wait or gather
    running: dict[str, Gathering] = field(default_factory=dict)
    put: int = 0

    async def step(self, what: str, number: int, more: int) -> None:
        self.now += 0.001
        await getattr(self, f"do_{what}")(number, more)
        await self.check_index()

    async def do_put(self, number: int, more: int) -> None:
        jid, delay = f"j{self.put}", (0, 0, 4)[number % 3]
        self.put += 1
        job = Gathering(KEYS[number % 2], self.now + delay, more % 3)
        own = {"bulk": job.key, "size": SIZE, "within": WITHIN}
        await self.store.put(
            queue="q", jid=jid, klass="K", data="1", now=self.now, delay=delay,
            priority=-job.priority, constraints=json.dumps(own, separators=(",", ":")),
        )  # fmt: skip
        self.jobs[jid] = job

    async def do_pass(self, number: int, more: int) -> None:
        self.now += number / 2

    async def do_cancel(self, number: int, more: int) -> None:
        if jid := self._any(self.jobs, number):
            await self.store.cancel(jids=[jid])
            del self.jobs[jid]

    async def do_rank(self, number: int, more: int) -> None:
        if jid := self._any(self.jobs, number):
            self.jobs[jid].priority = more
            await self.store.priority(jid=jid, priority=-more)

    async def do_end(self, number: int, more: int) -> None:
        if not (jid := self._any(self.running, number)):
            return
        job = self.running.pop(jid)
        held = {"jid": jid, "worker": "ann", "fence": job.fence, "now": self.now}
        if more % 3 == 0:
            await self.store.retry(**held, queue="q", delay=3)  # type: ignore[arg-type]
            job.ready = self.now + 3
        elif more % 3 == 1:
            await self.store.release(**held)  # type: ignore[arg-type]
        else:
            await self.store.complete(**held, queue="q")  # type: ignore[arg-type]
            return
        self.jobs[jid] = job

    async def do_peer(self, number: int, more: int) -> None:
        """Pop as a worker without bulk handlers does: one by one."""
        rows = await self._pop(more % 3 + 1, together=None)
        assert len(rows) <= more % 3 + 1
        for jid, _, fence in rows:
            assert self._is_ready(jid), "it was popped before its delay had passed"
            self._start(jid, fence)

    async def do_pop(self, number: int, more: int) -> None:
        slots = more % 3 + 1
        waiting = {jid.decode() for jid in await self._members("q:q-work")}
        rows = await self._pop(slots, together="1")
        bulks: dict[str, list[str]] = {}
        for jid, bulk, _ in rows:
            bulks.setdefault(bulk or jid, []).append(jid)
        assert len(bulks) <= slots
        fences = {jid: fence for jid, _, fence in rows}
        for first, jids in bulks.items():
            self._check_bulk(first, jids, waiting, fences.keys())
            for jid in jids:
                self._start(jid, fences[jid])
        if len(bulks) < slots:
            self._check_left()

    def _check_bulk(
        self, first: str, jids: list[str], waiting: set[str], popped: Collection[str]
    ) -> None:
        assert jids[0] == first
        assert len(jids) <= SIZE
        assert len({self.jobs[jid].key for jid in jids}) == 1
        assert all(self._is_ready(jid) for jid in jids), "it was popped before its delay had passed"
        key = self.jobs[first].key
        ready = [jid for jid, job in self.jobs.items() if job.key == key and self._is_ready(jid)]
        overdue = any(self._is_overdue(jid) for jid in jids)
        assert overdue or len(ready) >= SIZE or waiting & set(jids), "neither full nor due"
        # a delay that ends while others are taken can make a bulk of its own, in the same pop
        left = [jid for jid in ready if jid not in popped]
        assert len(jids) == SIZE or not [jid for jid in left if self._is_overdue(jid)]

    def _check_left(self) -> None:
        """After a pop with free slots nothing is left that is due, and no key is full."""
        counts = Counter(job.key for jid, job in self.jobs.items() if self._is_ready(jid))
        assert all(count < SIZE for count in counts.values())
        assert not [jid for jid in self.jobs if self._is_overdue(jid)]

    def _is_ready(self, jid: str) -> bool:
        return self.jobs[jid].ready <= self.now

    def _is_overdue(self, jid: str) -> bool:
        return self.jobs[jid].ready + WITHIN <= self.now

    def _start(self, jid: str, fence: str) -> None:
        job = self.running[jid] = self.jobs.pop(jid)
        job.fence = fence
        job.runs += 1

    async def _pop(self, count: int, together: str | None) -> list[tuple[str, str, str]]:
        rows: list[Any]
        rows, *_ = await self.store.pop_many(
            worker="ann", count=count, now=self.now, order="ordered", batch=[{"queue": "q"}],
            together=together,
        )  # fmt: skip
        return [
            (
                row[0].decode(),
                (row[BULK] or b"").decode() if len(row) > BULK + 1 else "",
                row[9].decode(),
            )
            for row in rows
        ]

    async def check_index(self) -> None:
        """The index has ready jobs alone, and all of them once a pop has looked at them."""
        for key in KEYS:
            for jid in await self._members(f"x:bulk:1:q:{key}"):
                job = self.jobs.get(jid.decode())
                assert job is not None and job.key == key and self._is_ready(jid.decode())

    async def _members(self, name: str) -> list[bytes]:
        found: Any = await self.redis.zrange(f"{self.store.namespace}:{name}", 0, -1)
        return list(found)

    @staticmethod
    def _any(jobs: dict[str, Gathering], number: int) -> str | None:
        return list(jobs)[number % len(jobs)] if jobs else None


@given(steps)
@example([*[("put", number, 0) for number in (0, 0, 1, 1, 5)], ("pass", 2, 0), ("put", 8, 0)])
@example(
    [("put", number, 0) for number in (0,) * 8 + (2, 2, 5, 5, 8)] + [("pop", 0, 0), ("end", 0, 0)]
)
def test_pops_bring_what_the_rules_say(redis_url: str, plan: list[Step]) -> None:
    async def run() -> None:
        namespace, connection = "bulks", Connection(redis_url)
        async with Redis.from_url(redis_url) as redis, aclosing(connection):
            if left := await redis.keys(f"{namespace}:*"):
                await redis.delete(*left)
            bulks = Bulks(ScriptStore(connection, namespace), redis)
            for what, number, more in plan:
                await bulks.step(what, number, more)
            while bulks.jobs:  # nothing is lost
                bulks.now += 10
                await bulks.do_pop(0, 2)
            assert not await redis.keys(f"{namespace}:x:bulk:*")

    note(plan)
    asyncio.run(run())
