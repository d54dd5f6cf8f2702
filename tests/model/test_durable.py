"""Random runs agree with a model: what steps, waits, sleeps and calls return, who is woken when."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, field
from typing import Any

import pytest
from redis.asyncio import Redis

from aioqless.errors import AlreadySignaled, NoSuchJob, WrongState
from aioqless.redis.connection import Connection
from aioqless.store import ScriptStore
from tests.lua.story import Story

JIDS = ["a", "b"]
STEPS = 80
HOUR, MINUTE = 3600, 60
CHILD = json.dumps({"queue": "kids", "klass": "Child", "data": "1"})


@dataclass
class Parent:
    """A job of the model.

    Attributes:
        entries: By kind and name, as Redis has them: values; deadlines of waits; jids of calls.
        parked: What it waits for while it is scheduled.
        due: From when on it may run.
    """

    state: str = "waiting"  # or scheduled, running, failed, complete; none: it isn't there
    entries: dict[str, Any] = field(default_factory=dict)
    parked: list[str] = field(default_factory=list)
    due: float = 0

    def replace(self, old: str, new: str, value: Any) -> None:
        self.entries.pop(old, None)
        self.entries[new] = value

    def wake(self, waits: str) -> None:
        if self.state == "scheduled" and waits in self.parked:
            self.state, self.parked = "waiting", []

    def due_of(self, waits: str, now: float) -> float:
        kind, _, name = waits.partition(":")
        if waits not in self.entries or (kind == "wait" and f"signal:{name}" in self.entries):
            return now
        return now + MINUTE if kind == "call" else self.entries[waits] or now + HOUR


class Life:
    """One namespace, in which random things happen to two jobs, those that they call, and a model.

    Every event has a method, which acts on both and compares the replies.
    """

    def __init__(self, story: Story, seed: int) -> None:
        self.story = story
        self.rng = random.Random(seed)
        self.now = 1.0
        self.parents = {jid: Parent("none") for jid in JIDS}
        self.children: dict[str, tuple[str, str, bool]] = {}  # that have not ended

    def name(self) -> str:
        return self.rng.choice(["x", "y", "z"])

    def any_in(self, *states: str) -> tuple[str, Parent] | None:
        found = [(jid, parent) for jid, parent in self.parents.items() if parent.state in states]
        return self.rng.choice(found) if found else None

    async def put(self) -> None:
        if found := self.any_in("none", "complete", "failed", "scheduled"):
            jid, _ = found
            await self.story.put(jid, self.now, retries=1000)
            self.parents[jid] = Parent()
            self.let_go(jid)

    def let_go(self, jid: str) -> None:
        """Forget the parent of the children of a job: their ends change nothing."""
        for child, (parent, name, detached) in self.children.items():
            if parent == jid:
                self.children[child] = ("", name, detached)

    async def pop(self) -> None:
        due = {
            jid
            for jid, parent in self.parents.items()
            if parent.state == "waiting" or (parent.state == "scheduled" and parent.due <= self.now)
        }
        assert {*await self.story.pop(self.now, count=len(JIDS))} == due
        for jid in due:
            self.parents[jid].state, self.parents[jid].parked = "running", []

    async def step(self) -> None:
        if found := self.any_in("running"):
            jid, parent = found
            name, value = self.name(), self.rng.randrange(1000)
            held = {"jid": jid, "worker": "ann", "now": self.now}
            await self.story.call("step", kind="step", name=name, result=str(value), **held)
            parent.entries.setdefault(f"step:{name}", value)

    async def wait(self) -> None:
        if found := self.any_in("running"):
            jid, parent = found
            name, timeout = self.name(), self.rng.choice([None, 0, 3, 40])
            reply = await self._wait(jid, "wait", name, timeout)
            for ending in ("received", "signal", "timeout"):
                if f"{ending}:{name}" in parent.entries:
                    assert reply[0] == ending
                    return
            self._expect_wait(parent, "wait", "timeout", name, timeout, reply)

    async def sleep(self) -> None:
        if found := self.any_in("running"):
            jid, parent = found
            name, delay = self.name(), self.rng.choice([0, 3, 40])
            reply = await self._wait(jid, "sleep", name, delay)
            if f"slept:{name}" in parent.entries:
                assert reply[0] == "slept"
            else:
                self._expect_wait(parent, "sleep", "slept", name, delay, reply)

    async def _wait(
        self, jid: str, kind: str, name: str, timeout: float | None, **more: Any
    ) -> list[str]:
        given = {"jid": jid, "worker": "ann", "now": self.now, "timeout": timeout, **more}
        reply: list[str] = await self.story.call("wait", wait_kind=kind, name=name, **given)
        return reply

    def _expect_wait(
        self, parent: Parent, kind: str, end: str, name: str, timeout: float | None, reply: Any
    ) -> None:
        deadline = parent.entries.setdefault(
            f"{kind}:{name}", None if timeout is None else self.now + timeout
        )
        if deadline is None or deadline > self.now:
            left = "" if deadline is None else f"{deadline - self.now:g}"
            assert reply == [kind, left]
        else:
            assert reply[0] == end
            parent.replace(f"{kind}:{name}", f"{end}:{name}", None)

    async def receive(self) -> None:
        if found := self.any_in("running"):
            jid, parent = found
            name = self.name()
            if f"signal:{name}" in parent.entries:
                _, entry = await self._wait(jid, "wait", name, None)
                number = int(entry.split()[0])
                ending, _ = await self._wait(jid, "wait", name, None, accept=number)
                assert ending == "received"
                parent.entries.pop(f"wait:{name}", None)
                value = parent.entries[f"signal:{name}"]
                parent.replace(f"signal:{name}", f"received:{name}", value)

    async def signal(self) -> None:
        jid, name = self.rng.choice(JIDS), self.name()
        value, replace = self.rng.randrange(1000), self.rng.random() < 0.3
        parent = self.parents[jid]
        refusal = self._refusal(parent, name, replace=replace)
        given = {"jid": jid, "name": name, "result": str(value), "now": self.now}
        sending = self.story.call("signal", replace="yes" if replace else None, **given)
        if refusal is None:
            await sending
            parent.entries[f"signal:{name}"] = value
            parent.wake(f"wait:{name}")
        else:
            with pytest.raises(refusal):
                await sending

    def _refusal(self, parent: Parent, name: str, *, replace: bool) -> type[Exception] | None:
        if parent.state == "none":
            return NoSuchJob
        if parent.state == "complete" or (parent.state == "failed" and not replace):
            return WrongState
        endings = ("received", "signal", "timeout")
        has = {kind for kind in endings if f"{kind}:{name}" in parent.entries}
        if "received" in has or ("signal" in has and not replace):
            return AlreadySignaled
        deadline = parent.entries.get(f"wait:{name}")
        is_over = deadline is not None and deadline <= self.now and "signal" not in has
        return WrongState if is_over or "timeout" in has else None

    async def call(self) -> None:
        if found := self.any_in("running"):
            jid, parent = found
            name, detached = self.name(), self.rng.random() < 0.3
            given = {"jid": jid, "worker": "ann", "now": self.now, "child": CHILD}
            detach = "yes" if detached else None
            ending, text = await self.story.call("call", name=name, detach=detach, **given)
            if f"called:{name}" in parent.entries:
                assert ending == "called"
            elif child := parent.entries.get(f"call:{name}"):
                assert (ending, text) == ("call", child)
            else:
                assert ending == "call" and text not in self.children
                parent.entries[f"call:{name}"] = text
                self.children[text] = jid, name, detached

    async def end_child(self) -> None:
        if not (popped := await self.story.pop(self.now, queue="kids", worker="bob")):
            return
        how = self.rng.choice(["complete", "fail", "cancel", "retry"])
        [jid] = popped
        if how == "complete":
            given = {"worker": "bob", "queue": "kids", "durable": "1 7"}
            await self.story.complete(jid, self.now, **given)
        elif how == "fail":
            await self.story.fail(jid, self.now, worker="bob", group="g", message="no")
        elif how == "cancel":
            await self.story.cancel(jid)
        else:
            await self.story.retry(jid, self.now, worker="bob", queue="kids")
            return
        parent, name, _ = self.children.pop(jid)
        if parent:
            group = "canceled" if how == "cancel" else "g"
            ended = {"result": 7} if how == "complete" else {"group": group}
            self.parents[parent].replace(f"call:{name}", f"called:{name}", {"jid": jid, **ended})
            self.parents[parent].wake(f"call:{name}")

    async def park(self) -> None:
        if found := self.any_in("running"):
            jid, parent = found
            kinds = ("wait", "sleep", "call")
            waits = [each for each in parent.entries if each.partition(":")[0] in kinds]
            if not waits:
                return
            waits = self.rng.sample(waits, self.rng.randint(1, len(waits)))
            due = min(self.now + HOUR, *(parent.due_of(each, self.now) for each in waits))
            parent.state = await self.story.release(jid, self.now, waiting=waits)
            assert parent.state == ("scheduled" if due > self.now else "waiting")
            if parent.state == "scheduled":
                parent.parked, parent.due = waits, due

    async def retry(self) -> None:
        if found := self.any_in("running"):
            jid, parent = found
            delay = self.rng.choice([0, 5])
            await self.story.retry(jid, self.now, delay=delay)
            parent.state, parent.due = "scheduled" if delay else "waiting", self.now + delay

    async def fail(self) -> None:
        if found := self.any_in("running"):
            jid, parent = found
            await self.story.fail(jid, self.now)
            parent.state = "failed"

    async def revive(self) -> None:
        if found := self.any_in("failed"):
            jid, parent = found
            await self.story.store.revive_job(jid=jid, now=self.now)
            parent.state = "waiting"

    async def complete(self) -> None:
        if found := self.any_in("running"):
            jid, _ = found
            await self.story.complete(jid, self.now, durable="1")
            self.parents[jid] = Parent("complete")
            self.let_go(jid)

    async def cancel(self) -> None:
        if found := self.any_in("waiting", "scheduled", "running", "failed"):
            jid, _ = found
            await self.story.cancel(jid)
            for child, (parent, _, detached) in [*self.children.items()]:
                if parent == jid and not detached:
                    del self.children[child]
            self.parents[jid] = Parent("none")
            self.let_go(jid)

    async def compare(self) -> None:
        """Compare states, what is stored, and what jobs wait for."""
        for jid, parent in self.parents.items():
            job = await self.story.get(jid)
            assert (job["state"] if job else "none") == parent.state
            found = await self.story.call("steps", jid=jid)
            entries = {
                field: json.loads(entry.split(" ", 3)[3])
                for field, entry in zip(found[::2], found[1::2], strict=True)
                if ":" in field
            }
            assert {each: _value(each, entries[each]) for each in entries} == parent.entries
            if job:
                held = job.get("held_back")
                waits = held["waits_for"] if isinstance(held, dict) else []
                assert waits == parent.parked
                assert not waits or held["until"] == parent.due
        children = [*self.children]
        states = await self.story.store.states(jids=children) if children else []
        assert all(state in ("waiting", "running", "scheduled") for state in states)


def _value(field: str, value: Any) -> Any:
    """Return an entry's value as the model has it."""
    if field.startswith("call:"):
        return value["jid"]
    if field.startswith("called:"):
        return {name: each for name, each in value.items() if name != "message"}
    return value


EVENTS = (
    *("put", "put", "pop", "pop", "pop", "pop", "step", "wait", "wait", "sleep", "receive"),
    *("signal", "signal", "signal", "call", "call", "end_child", "end_child", "park", "park"),
    *("park", "retry", "fail", "revive", "revive", "complete", "cancel"),
)


async def live(story: Story, seed: int) -> None:
    """Let random events happen, and compare after each."""
    await story.store.config_set(option="heartbeat", value="1000000")  # no lock is lost
    life = Life(story, seed)
    done: list[str] = []
    try:
        for _ in range(STEPS):
            life.now += life.rng.choice([0, 1, 1, 5, 50])
            done.append(f"{life.now:g} {(event := life.rng.choice(EVENTS))}")
            await getattr(life, event)()
            if life.rng.random() < 0.1:
                await story.tick(life.now)
            await life.compare()
        assert (await story.store.check(cursor="0", now=life.now))["found"] == []
    except AssertionError as error:
        error.add_note(f"seed {seed}: {', '.join(done[-20:])}")
        raise


@pytest.mark.parametrize("lives", [40, pytest.param(1000, marks=pytest.mark.long)])
async def test_random_runs_agree_with_the_model(redis_url: str, lives: int) -> None:
    redis, connection = Redis.from_url(redis_url), Connection(redis_url)
    try:
        for seed in range(lives):
            await live(Story(ScriptStore(connection, f"durable{seed}"), redis), seed)
            if keys := await redis.keys(f"durable{seed}:*"):
                await redis.delete(*keys)
    finally:
        await connection.aclose()
        await redis.aclose()
