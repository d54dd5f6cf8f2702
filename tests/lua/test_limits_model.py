"""Random steps with jobs of several limits, compared with a model of what may start."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.lua.story import Story
from tests.lua.test_several_limits import costs, limited, slots, starts

CLEAR = "for _, key in ipairs(redis.call('KEYS', ARGV[1])) do redis.call('DEL', key) end"
PERIOD = 20.0
SLOTS = {"a": 1, "b": 2, "c": 1}
RATES = {"r": 2, "s": 100}
QUEUES = ("mail", "post")
KEYS = (*SLOTS, *RATES)

JOBS = st.tuples(
    st.lists(st.sampled_from(KEYS), min_size=1, max_size=4, unique=True),
    st.integers(0, 100),
    st.sampled_from(QUEUES),
    st.integers(-1, 1),
)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), JOBS),
        st.tuples(st.just("pop"), st.tuples(st.sampled_from(QUEUES), st.integers(1, 5))),
        st.tuples(
            st.sampled_from(("complete", "retry", "release", "throttle", "decline", "timeout")),
            st.integers(0, 9),
        ),
        st.tuples(st.just("cancel"), st.integers(0, 30)),
        st.tuples(st.just("priority"), st.integers(0, 30)),
        st.tuples(st.just("wait"), st.floats(0.5, 50)),
        st.tuples(st.just("die"), st.just(0)),
    ),
    max_size=60,
)


@dataclass
class Model:
    """The jobs, what has started when, and which keys are paused."""

    story: Story
    now: float = 1e9
    numbers: itertools.count[int] = field(default_factory=itertools.count)
    jobs: dict[str, tuple[list[str], int, str]] = field(default_factory=dict)
    running: dict[str, float] = field(default_factory=dict)  # when its lock expires
    lost: dict[str, float] = field(default_factory=dict)  # its worker has died
    # when which job started, and what it took of which key
    started: list[tuple[float, str, str, float]] = field(default_factory=list)
    paused: dict[str, float] = field(default_factory=dict)

    async def step(self, name: str, value: Any) -> None:
        self.now += 0.01
        match name:
            case "put":
                await self._put(*value)
            case "pop":
                await self.pop(*value)
            case "wait":
                self.now += value
                for jid in self.running:
                    if jid not in self.lost:
                        await self.story.heartbeat(jid, self.now)
                        self.running[jid] = self.now + 60
            case "die":
                self.lost |= {jid: expires + 10 for jid, expires in self.running.items()}
            case "cancel" if f"j{value}" in self.jobs:
                await self.story.cancel(f"j{value}")
                self._forget(f"j{value}")
            case "priority" if f"j{value}" in self.jobs:
                await self.story.store.priority(jid=f"j{value}", priority=value % 3 - 1)
            case _:
                held = [jid for jid in self.running if jid not in self.lost]
                if isinstance(value, int) and value < len(held):
                    await self._end(name, held[value])

    async def _put(self, keys: list[str], cost: int, queue: str, priority: int) -> None:
        jid = f"j{next(self.numbers)}"
        self.jobs[jid] = (keys, cost, queue)
        each = [
            slots(key, SLOTS[key])
            if key in SLOTS
            else costs(key, cost, RATES[key], PERIOD)
            if key == "s"
            else starts(key, RATES[key], PERIOD)
            for key in keys
        ]
        await self.story.put(jid, self.now, queue=queue, priority=priority, **limited(*each))

    async def pop(self, queue: str, count: int) -> list[str]:
        popped = await self.story.pop(self.now, queue=queue, count=count)
        for jid in popped:
            keys, cost, _ = self.jobs[jid]
            assert jid not in self.running or jid in self.lost, "it runs already"
            self.lost.pop(jid, None)
            self.running[jid] = self.now + 60
            for key in keys:
                assert self.paused.get(key, 0) <= self.now, f"{key} is paused"
                self.started.append((self.now, jid, key, cost if key == "s" else 1))
        self._check()
        return popped

    def _check(self) -> None:
        running = Counter(
            key
            for jid in self.running
            for key in self.jobs[jid][0]
            if self.lost.get(jid, self.now + 1) > self.now
        )
        assert all(running[key] <= most for key, most in SLOTS.items())
        used = Counter[str]()
        for at, _, key, cost in self.started:
            if at > self.now - PERIOD + 1e-6:
                used[key] += cost  # type: ignore[assignment]
        assert all(used[key] <= most + 1e-6 for key, most in RATES.items())

    async def _end(self, how: str, jid: str) -> None:
        keys, _, queue = self.jobs[jid]
        story, at = self.story, self.now
        del self.running[jid]
        match how:
            case "complete":
                await story.complete(jid, at, queue=queue)
                del self.jobs[jid]
            case "retry" if await story.retry(jid, at, queue=queue) < 0:
                del self.jobs[jid]
            case "release":
                await story.release(jid, at)
            case "throttle":
                await story.release(jid, at, delay=5, paused_key=keys[0])
                self.paused[keys[0]] = max(self.paused.get(keys[0], 0), at + 5)
            case "decline":
                await story.store.decline(
                    jid=jid, worker="ann", now=at, delay=1, timeout=1e6, group="g", message="m"
                )
                last = max(each[0] for each in self.started if each[1] == jid)
                self.started = [each for each in self.started if each[:2] != (last, jid)]
            case "timeout":
                await story.timeout(jid, at=at)

    async def forget_failed(self) -> None:
        """Forget jobs that have lost more locks than they have retries."""
        for jid in list(self.lost):
            if await self.story.state(jid) == "failed":
                self._forget(jid)

    def _forget(self, jid: str) -> None:
        for known in (self.jobs, self.running, self.lost):
            known.pop(jid, None)

    async def drain(self) -> None:
        """Run all jobs to their ends: none waits forever, and no slot is lost."""
        for jid in set(self.running) - set(self.lost):
            await self._end("complete", jid)
        stalled = 0
        while self.jobs and stalled < 10:
            self.now += PERIOD + 75
            before = len(self.jobs)
            for queue in QUEUES:
                for jid in await self.pop(queue, 9):
                    await self._end("complete", jid)
            await self.forget_failed()
            stalled = stalled + 1 if len(self.jobs) == before else 0
        assert not self.jobs, "a job waits forever"


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(STEPS)
async def test_limits_are_never_exceeded_and_no_job_waits_forever(
    story: Story, steps: list[tuple[str, Any]]
) -> None:
    await story.ask("EVAL", CLEAR, 0, story.key("*"))
    model = Model(story)
    for name, value in steps:
        await model.step(name, value)
        await model.forget_failed()
    await model.drain()
    left = await story.ask("KEYS", story.key("x:*"))
    names = {key.decode().removeprefix(f"{story.namespace}:x:").partition(":")[0] for key in left}
    assert not names & {"limit-running", "held-back", "overdue"}
