"""Random puts with a debounce, between random events of their jobs, agree with a model."""

from __future__ import annotations

import asyncio
import json
import random
from dataclasses import dataclass, field

import pytest
from redis.asyncio import Redis

from aioqless.redis.connection import Connection
from aioqless.store import ScriptStore
from tests.lua.story import Story
from tests.lua.test_limits_model import CLEAR

DEBOUNCE, DEBOUNCE_MAX, LOCK = 30.0, 100.0, 60.0
STEPS = 14
AT_ONCE = 50
ACTIONS = (
    *["put"] * 6,
    *["pop"] * 4,
    *["wait"] * 3,
    *("complete", "retry", "release", "fail", "unfail", "cancel", "die", "move"),
)


@dataclass
class Pending:
    """The job that has not started, or was `retried` and is held by the one that runs."""

    jid: str
    data: int
    first: float
    due: float
    retried: bool = False


@dataclass
class Started:
    """The job that has started: it runs until its lock expires, or waits until it is due."""

    jid: str
    data: int
    first: float
    lock: float | None
    due: float = 0.0


@dataclass
class Case:
    """One key in a queue of its own, and the model of its jobs."""

    story: Story
    name: str
    rng: random.Random
    now: float = 5e9  # later than the clock, by which `cancel` goes
    puts: int = 0
    not_run: int | None = None  # the data of the last put, until it runs
    started: Started | None = None
    pending: Pending | None = None
    failed: dict[str, Started] = field(default_factory=dict)

    async def run(self) -> None:
        for _ in range(STEPS):
            self.now += self.rng.uniform(0.01, 5)
            await self.step(self.rng.choice(ACTIONS))
        await self.drain()

    async def step(self, action: str) -> None:
        job = self.started if self.started and self.started.lock is not None else None
        match action:
            case "put":
                await self.put()
            case "pop":
                await self.pop()
            case "wait":
                self.now += self.rng.uniform(1, 2 * LOCK)
            case "die" if job:
                self.now = max(self.now, (job.lock or 0) + 1)
            case "complete" if job:
                assert await self.story.complete(job.jid, self.now, queue=self.name) == "complete"
                self.end()
            case "retry" if job:
                await self.retry(job)
            case "release" if job:
                delay = self.rng.choice([0, 20])
                await self.story.release(job.jid, self.now, delay=delay)
                job.lock, job.due = None, self.now + delay
            case "fail" if job:
                await self.story.fail(job.jid, self.now, group=self.name)
                self.failed[job.jid] = job
                self.end()
            case "unfail" if self.failed:
                await self.unfail(self.rng.choice(sorted(self.failed)))
            case "cancel":
                await self.cancel()
            case "move" if self.pending:
                jid, data = self.pending.jid, f"{self.pending.data}"
                due = max(self.pending.due - self.now, 0)
                await self.story.store.requeue(
                    queue=self.name, jid=jid, klass="K", data=data, now=self.now, delay=due
                )

    async def put(self) -> None:
        self.puts += 1
        now, jid, data = self.now, f"{self.name}-{self.puts}", self.puts
        constraints = {"unique": self.name, "until": "done", "debounce": DEBOUNCE}
        constraints |= {"debounce_max": DEBOUNCE_MAX}
        if self.pending is None:
            self.pending = Pending(jid, data, now, 0)
        self.pending.data = self.not_run = data
        self.pending.retried = False
        self.pending.due = min(now + DEBOUNCE, max(now, self.pending.first + DEBOUNCE_MAX))
        with self.story.store.request() as request:
            put = self.story.store.put(
                queue=self.name, jid=jid, klass="K", data=f"{data}", now=now, retries=1000,
                constraints=json.dumps(constraints), request=request,
            )  # fmt: skip
            for _ in range(self.rng.choice([1, 1, 2])):  # the first reply may be lost
                assert await put == self.pending.jid

    async def pop(self) -> None:
        """Pop: only what the model says may start, and never two at once."""
        rows = await self.story.store.pop(queue=self.name, worker="ann", count=2, now=self.now)
        job, lost = self.started, self.started and self.started.lock
        if job and lost is not None and lost <= self.now and self.pending:
            self.end()  # superseded: it is not run again, and the next pop may take the other
            assert rows == []
            return
        expected: list[tuple[str, str]] = []
        if job and (job.due if lost is None else lost) <= self.now:
            expected = [(job.jid, f"{job.data}")]
        elif not job and self.pending and self.pending.due <= self.now:
            expected = [(self.pending.jid, f"{self.pending.data}")]
            first = self.pending.first
            self.started, self.pending = (
                Started(self.pending.jid, self.pending.data, first, 0),
                None,
            )
        assert [(row["jid"], row["data"]) for row in rows] == expected
        if expected and self.started:
            self.started.lock = rows[0]["expires"]
            if self.started.data == self.not_run:
                self.not_run = None

    async def retry(self, job: Started) -> None:
        delay = self.rng.choice([0, 20])
        before = (await self.story.get(job.jid))["remaining"]
        reply = await self.story.retry(job.jid, self.now, queue=self.name, delay=delay)
        if self.pending:
            assert reply == before
            assert await self.story.state(job.jid) == "complete"
            self.end()
        else:
            assert reply == before - 1
            job.lock, job.due = None, self.now + delay

    async def unfail(self, jid: str) -> None:
        await self.story.call("revive", "job", jid=jid, now=self.now)
        job = self.failed.pop(jid)
        if any(job.first < other.first for other in (self.started, self.pending) if other):
            assert await self.story.state(jid) == "complete"
        elif self.started and self.started.lock is not None:
            if self.pending:
                assert await self.story.state(self.pending.jid) == "complete"
            assert await self.story.state(jid) == "depends"
            self.pending = Pending(jid, job.data, job.first, self.now, retried=True)
        else:
            if self.started:
                assert await self.story.state(self.started.jid) == "complete"
            self.started = Started(jid, job.data, job.first, None, self.now)

    def end(self) -> None:
        """The job that has started ends: a retried one that it held takes its place."""
        self.started, held = None, self.pending
        if held and held.retried:
            self.started, self.pending = (
                Started(held.jid, held.data, held.first, None, held.due),
                None,
            )

    async def cancel(self) -> None:
        either = [job for job in (self.started, self.pending) if job]
        if not either:
            return
        job = self.rng.choice(either)
        assert await self.story.cancel(job.jid) == [job.jid]
        if job is self.pending:
            self.pending = self.not_run = None
        else:
            self.end()

    async def drain(self) -> None:
        """Run all to their ends: the last data is run, unless it was canceled."""
        while self.started or self.pending:
            self.now += DEBOUNCE_MAX + LOCK
            await self.pop()
            if self.started:
                await self.step("complete")
        assert self.not_run is None


@pytest.mark.parametrize("cases", [500, pytest.param(100_000, marks=pytest.mark.long)])
async def test_last_data_is_run_once_and_never_beside_another_run(
    cases: int, redis_url: str, namespace: str, redis: Redis
) -> None:
    connection = Connection(redis_url)
    story = Story(ScriptStore(connection, namespace), redis)
    for first in range(0, cases, AT_ONCE):
        await story.configure(grace_period=0, heartbeat=LOCK)
        batch = range(first, min(first + AT_ONCE, cases))
        await asyncio.gather(*(Case(story, f"q{n}", random.Random(n)).run() for n in batch))
        assert not await story.noted()
        if first == 0:
            found = (await story.store.check(now=6e9, budget=10_000))["found"]
            assert not [each for each in found if each["problem"] != "unique-without-job"], found
        await redis.eval(CLEAR, 0, story.key("*"))
    await connection.aclose()
