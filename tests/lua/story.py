"""Steps of scenarios: commands with defaults for the arguments, and reads of Redis."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, TypeAlias

import pytest
from redis.asyncio import Redis

from aioqless.errors import ScriptError
from aioqless.store import Call, ScriptStore, TickRow
from aioqless.store.script_composer import compose
from tests.command_calls import make_call

Message: TypeAlias = tuple[str, Any]

_READ = """
local read = {
  hash = function(key) return redis.call('HGETALL', key) end,
  zset = function(key) return redis.call('ZRANGE', key, 0, -1, 'WITHSCORES') end,
  set = function(key) return redis.call('SMEMBERS', key) end,
  list = function(key) return redis.call('LRANGE', key, 0, -1) end,
  stream = function(key) return redis.call('XRANGE', key, '-', '+') end,
  string = function(key) return redis.call('GET', key) end,
}
local found = {}
for i, key in ipairs(ARGV[1] == 'all' and redis.call('KEYS', ARGV[2]) or {ARGV[2]}) do
  local kind = redis.call('TYPE', key).ok
  if read[kind] then found[#found + 1] = {key, kind, read[kind](key)} end
end
return found
"""


class Story:
    """One namespace and the steps of a test.

    Every step has its time in seconds; keys are named without the namespace.
    """

    def __init__(self, store: ScriptStore, redis: Redis) -> None:
        self.store = store
        self.redis = redis
        self.namespace = store.namespace

    async def call(self, command: str, form: str | None = None, /, **arguments: Any) -> Any:
        """Run a command by its name."""
        return await make_call(self.store, command, form, **arguments)

    async def send_and_be_killed(self, call: Call[Any], request: str | None = None) -> None:
        """Carry out a call as a client that is killed before it has read the reply."""
        script = compose(call.command, self.namespace)
        await self.ask("EVAL", script.text, *call.words(request))

    # Steps. The defaults are the queue `mail` and the worker `ann`.

    async def put(
        self, jid: str, now: float, /, *, queue: str = "mail", delay: float = 0, **more: Any
    ) -> Any:
        given = {"klass": "Greet", "data": "{}", **more}
        return await self.store.put(queue=queue, jid=jid, now=now, delay=delay, **given)

    async def pop(
        self, at: float, *, queue: str = "mail", worker: str = "ann", count: int = 1, **more: Any
    ) -> list[str]:
        jobs = await self.store.pop(queue=queue, worker=worker, count=count, now=at, **more)
        return [job["jid"] for job in jobs]

    async def running(
        self, jid: str, put: float = 0, popped: float = 1, *, worker: str = "ann", **more: Any
    ) -> None:
        """Put and pop a job."""
        await self.put(jid, put, **more)
        assert await self.pop(popped, queue=more.get("queue", "mail"), worker=worker) == [jid]

    async def completed(
        self, jid: str, put: float = 0, popped: float = 1, done: float = 2, **more: Any
    ) -> None:
        """Put a job; ann pops and completes it."""
        await self.running(jid, put, popped, **more)
        assert await self.complete(jid, done, queue=more.get("queue", "mail")) == "complete"

    async def failed(
        self,
        jid: str,
        put: float = 0,
        popped: float = 1,
        failed: float = 2,
        *,
        group: str = "typo",
        **more: Any,
    ) -> None:
        """Put a job; ann pops and fails it."""
        await self.running(jid, put, popped, **more)
        await self.fail(jid, failed, group=group)

    async def complete(
        self, jid: str, at: float, *, worker: str = "ann", queue: str = "mail", **more: Any
    ) -> Any:
        return await self.store.complete(jid=jid, worker=worker, queue=queue, now=at, **more)

    async def fail(
        self, jid: str, at: float, *, worker: str = "ann", group: str = "typo", **more: Any
    ) -> Any:
        given = {"message": "no such word", **more}
        return await self.store.fail(jid=jid, worker=worker, group=group, now=at, **given)

    async def retry(
        self, jid: str, at: float, *, worker: str = "ann", queue: str = "mail", **more: Any
    ) -> Any:
        return await self.store.retry(jid=jid, worker=worker, queue=queue, now=at, **more)

    async def release(self, jid: str, at: float, *, worker: str = "ann", **more: Any) -> Any:
        return await self.store.release(jid=jid, worker=worker, now=at, **more)

    async def heartbeat(self, jid: str, at: float, *, worker: str = "ann", **more: Any) -> Any:
        return await self.store.heartbeat(jid=jid, worker=worker, now=at, **more)

    async def timeout(self, *jids: str, at: float) -> None:
        await self.store.timeout(now=at, jids=jids)

    async def cancel(self, *jids: str) -> Any:
        return await self.store.cancel(jids=jids)

    async def peek(
        self, at: float, *, queue: str = "mail", count: int = 10, **more: Any
    ) -> list[str]:
        return [
            job["jid"] for job in await self.store.peek(queue=queue, count=count, now=at, **more)
        ]

    async def track(self, jid: str, at: float = 0, *tags: str) -> Any:
        return await self.store.track_track(jid=jid, now=at, tags=tags)

    async def recur(
        self,
        jid: str,
        at: float,
        *,
        queue: str = "mail",
        interval: float = 60,
        offset: float = 0,
        **more: Any,
    ) -> Any:
        given = {"klass": "Greet", "data": "{}", **more}
        return await self.store.recur_on(
            queue=queue, jid=jid, now=at, interval=interval, offset=offset, **given
        )

    async def cron(
        self, jid: str, at: float, *, next: float, expression: str = "0 2 * * *", **more: Any
    ) -> Any:
        given = {"queue": "mail", "klass": "Greet", "data": "{}", "timezone": "UTC", **more}
        return await self.store.recur_cron(
            jid=jid, now=at, expression=expression, next=next, **given
        )

    async def tick(
        self, now: float, *rows: tuple[str, float, float, float], offset: int = 0
    ) -> Any:
        """Call tick with rows of (jid, tick, the instance's time, next tick).

        Returns {now, made, due, next}.
        """
        batch: list[TickRow] = [
            {"jid": jid, "tick": tick, "at": at, "next": next_} for jid, tick, at, next_ in rows
        ]
        return await self.store.tick(now=now, offset=offset, batch=batch)

    async def configure(self, **options: float | str) -> None:
        """Set options; underscores stand for hyphens."""
        for name, value in options.items():
            await self.store.config_set(option=name.replace("_", "-"), value=value)

    async def by_hand(self, command: str, keys: list[str], *argv: Any) -> Any:
        """Return the raw reply of Redis to a call in the specification's form."""
        return await self.ask(
            "EVAL", compose(command, self.namespace).text, len(keys), *keys, *argv
        )

    # Reads of callers

    async def get(self, jid: str) -> Any:
        return await self.store.get(jid=jid)

    async def state(self, jid: str) -> Any:
        job = await self.get(jid)
        return job and job["state"]

    async def event_times(self, jid: str) -> list[tuple[float, str]]:
        """Return the times of an event in a job's history."""
        return [(event["when"], event["what"]) for event in (await self.get(jid))["history"]]

    async def counts(self, at: float, queue: str = "mail") -> dict[str, Any]:
        """Return how many jobs of a queue are in each state, without zeros."""
        counts = await self.store.queues(now=at, queue=queue)
        return {name: count for name, count in counts.items() if count and name != "name"}

    async def day(
        self, kind: str = "stats", *, day: int = 0, queue: str = "mail"
    ) -> dict[str, str]:
        """Return the stored statistics of a day."""
        return await self.fields(f"s:{kind}:{day}:{queue}")

    # Contents of Redis

    def key(self, name: str) -> str:
        return f"{self.namespace}:{name}"

    async def ask(self, *command: Any) -> Any:
        return await self.redis.execute_command(*command)

    @asynccontextmanager
    async def commands_of_scripts(self) -> AsyncIterator[list[str]]:
        """Record the commands that scripts send for this namespace; the list is full afterwards."""
        commands: list[str] = []
        async with self.redis.monitor() as monitor:
            yield commands
            await self.ask("ECHO", "end")
            while (found := await monitor.next_command())["command"] != "ECHO end":
                if found["client_type"] == "lua" and f"{self.namespace}:" in found["command"]:
                    commands.append(found["command"])

    async def change(self, command: str, name: str, *more: Any) -> Any:
        """Change a key manually, as qless or a former version would."""
        return await self.ask(command, self.key(name), *more)

    async def fields(self, name: str) -> dict[str, str]:
        found: dict[str, str] = await self._read(name, {})
        return found

    async def job(self, jid: str) -> dict[str, str]:
        return await self.fields(f"j:{jid}")

    async def scores(self, name: str) -> dict[str, float]:
        found: dict[str, float] = await self._read(name, {})
        return found

    async def members(self, name: str) -> set[str]:
        found: set[str] = await self._read(name, set())
        return found

    async def items(self, name: str) -> list[str]:
        found: list[str] = await self._read(name, [])
        return found

    async def noted(self) -> list[dict[str, Any]]:
        """Return the notes on the agenda, those due first, except those of reviews."""
        found = [json.loads(text) for text in await self.scores("x:agenda")]
        return [note for note in found if not note["kind"].startswith("review ")]

    async def reviewed(self, kind: str, about: str = "") -> float | None:
        """Return when a subject is next reviewed, None if never."""
        note = f'{{"kind":"review {kind}","about":"{about}"}}'
        return (await self.scores("x:agenda")).get(note)

    async def exists(self, name: str) -> bool:
        return bool(await self.ask("EXISTS", self.key(name)))

    async def where(self, jid: str, queue: str = "mail") -> dict[str, float]:
        """Return the sets of a queue that contain a job, with its score."""
        places = ("work", "scheduled", "locks", "depends")
        sets = {place: await self.scores(f"q:{queue}-{place}") for place in places}
        return {place: members[jid] for place, members in sets.items() if jid in members}

    async def all_keys(self) -> dict[str, Any]:
        """Return every key of the namespace with its contents, except stored replies."""
        rows = await self.ask("EVAL", _READ, 0, "all", self.key("*"))
        found = {
            key.decode().removeprefix(f"{self.namespace}:"): _contents(kind, row)
            for key, kind, row in rows
        }
        return {
            key: contents for key, contents in found.items() if not key.startswith("x:request:")
        }

    async def _read(self, name: str, missing: Any) -> Any:
        rows = await self.ask("EVAL", _READ, 0, "one", self.key(name))
        return _contents(rows[0][1], rows[0][2]) if rows else missing

    # Assertions around a step

    @asynccontextmanager
    async def refused(self, kind: type[ScriptError], **detail: Any) -> AsyncIterator[None]:
        """Assert that the step is refused for this reason and changes nothing."""
        before = await self.all_keys()
        with pytest.raises(kind) as caught:
            yield
        assert detail.items() <= caught.value.detail.items()
        assert await self.all_keys() == before

    @asynccontextmanager
    async def unchanged(self) -> AsyncIterator[None]:
        """Assert that the steps leave all keys unchanged."""
        before = await self.all_keys()
        yield
        assert await self.all_keys() == before

    @asynccontextmanager
    async def published(self, *but: str) -> AsyncIterator[list[Message]]:
        """Collect the messages published within the block: (channel, string or object) in order.

        The list is filled when the block ends. Channels in `but` are left out.
        """
        messages: list[Message] = []
        async with self.redis.pubsub() as listener:
            await listener.psubscribe(self.key("*"))
            told = listener.listen()
            await anext(told)
            yield messages
            await self.ask("PUBLISH", self.key("the end"), "")
            async for message in told:
                channel = message["channel"].decode().removeprefix(f"{self.namespace}:")
                if channel == "the end":
                    break
                text = message["data"].decode()
                if channel not in but:
                    messages.append((channel, json.loads(text) if text.startswith("{") else text))


def score(priority: float, at: float) -> float:
    """Return the score in `-work` of a job with this stored priority and time."""
    return priority - at / 10_000_000_000


def _contents(kind: bytes, row: Any) -> Any:
    match kind:
        case b"hash":
            return {_text(field): _text(value) for field, value in _pairs(row)}
        case b"zset":
            return {_text(member): float(points) for member, points in _pairs(row)}
        case b"set":
            return {_text(member) for member in row}
        case b"stream":
            return [
                (_text(id), {_text(name): _text(value) for name, value in _pairs(fields)})
                for id, fields in row
            ]
        case b"list":
            return [_text(item) for item in row]
        case _:
            return _text(row)


def _pairs(row: list[bytes]) -> list[tuple[bytes, bytes]]:
    return list(zip(row[::2], row[1::2], strict=True))


def _text(value: bytes) -> str:
    return value.decode("utf-8", "surrogateescape")
