"""A command that is called often defines the functions of its usual call, and no others.

With RECORD_USUAL=1 in the environment, the functions that run are written to lua/usual.json.
"""

from __future__ import annotations

import json
import os
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, TypedDict

import pytest

from aioqless import lua
from aioqless.lua import usual_functions
from aioqless.store import Call, CompleteManyRow, HeartbeatManyRow, PutManyRow, ScriptStore
from aioqless.store.call import T
from aioqless.store.command_header import command_names, read_command
from aioqless.store.script_composer import _lines, compose
from tests.lua.job_rows import row_fields
from tests.lua.story import Story

TRACE = """\
local traced, define = {}, getmetatable(lib).__index
setmetatable(lib, {__index = function(_, name)
  define(lib, name)
  for each, f in pairs(lib) do
    if not traced[each] then
      traced[each] = true
      lib[each] = function(...) redis.call('SADD', 'trace:' .. ns, each) return f(...) end
    end
  end
  return rawget(lib, name)
end})"""
JOBS = 60  # statistics are pruned by each fiftieth completion

Scenario = Callable[[Story, "TracingStore"], Awaitable[Any]]


class TracingStore(ScriptStore):
    """Runs one command with a script that notes which functions it calls."""

    command = ""
    script = ""
    sent = 0

    async def send(self, call: Call[T]) -> T:
        if call.command != self.command:
            return await super().send(call)
        self.sent += 1
        words = call.words(f"trace.0:{self.sent}" if call.writes else None)
        return call.read(await self.connection.execute("EVAL", self.script, *words))


def compose_traced(name: str, namespace: str) -> str:
    """Compose a command's script so that each library function notes its calls."""
    before, on_demand, after = compose(name, namespace).text.partition(
        "\nreturn rawget(lib, name)\nend})\n"
    )
    return f"{before}{on_demand}{TRACE}\n{after}"


@pytest.fixture
def declared() -> Iterator[dict[str, list[str]]]:
    """What is recorded; until the end of the test, scripts are composed as if none did."""
    lists = {name: read_command(name).usual for name in command_names()}
    for name in lists:
        read_command(name).usual = []
    _lines.cache_clear()
    compose.cache_clear()
    yield lists
    for name, usual in lists.items():
        read_command(name).usual = usual
    _lines.cache_clear()
    compose.cache_clear()


async def put_all(story: Story) -> None:
    for number in range(JOBS):
        await story.store.put(queue="mail", jid=f"j{number}", klass="Greet", data="{}")


class Held(TypedDict):
    """A job that ann runs."""

    jid: str
    fence: str


async def pop_all(story: Story, count: int = 1) -> list[Held]:
    held: list[Held] = []
    while rows := (
        await story.store.pop_many(
            worker="ann", count=count, order="ordered", batch=[{"queue": "mail"}]
        )
    )[0]:
        held += [
            {"jid": row[0].decode(), "fence": row[row_fields().index("x-fence")].decode()}
            for row in rows
        ]
    return held


def in_mail(job: Held) -> CompleteManyRow:
    return {"jid": job["jid"], "queue": "mail", "fence": job["fence"]}


async def put(story: Story, store: TracingStore) -> None:
    await put_all(story)
    await store.put(queue="mail", jid="new", klass="Greet", data="{}")
    await pop_all(story)
    await store.put(queue="mail", jid="first", klass="Greet", data="{}")


async def put_many(story: Story, store: TracingStore) -> None:
    await put_all(story)
    batch: list[PutManyRow] = [{"jid": f"new{n}", "klass": "Greet", "data": "{}"} for n in range(2)]
    await store.put_many(queue="mail", batch=batch)
    await pop_all(story)
    batch = [{"jid": f"first{n}", "klass": "Greet", "data": "{}"} for n in range(2)]
    await store.put_many(queue="mail", batch=batch)


async def pop(story: Story, store: TracingStore) -> None:
    await put_all(story)
    await story.store.pop(queue="mail", worker="ann", count=1)
    await store.pop(queue="mail", worker="ann", count=1)


async def pop_many(story: Story, store: TracingStore) -> None:
    await put_all(story)
    for _ in range(JOBS - 5):
        await story.store.pop_many(
            worker="ann", count=1, order="ordered", batch=[{"queue": "mail"}]
        )
    await store.pop_many(worker="ann", count=2, order="waiting", batch=[{"queue": "mail"}])
    await store.pop_many(worker="ann", count=9, order="waiting", batch=[{"queue": "mail"}])


async def complete_many(story: Story, store: TracingStore) -> None:
    await put_all(story)
    held = await pop_all(story)
    for job in held[:52]:
        await story.store.complete_many(worker="ann", batch=[in_mail(job)])
    await store.complete_many(worker="ann", batch=[in_mail(held[52])])


async def complete(story: Story, store: TracingStore) -> None:
    await put_all(story)
    held = await pop_all(story)
    for job in held[:52]:
        await story.store.complete_many(worker="ann", batch=[in_mail(job)])
    await store.complete(worker="ann", **in_mail(held[52]))


async def requeue(story: Story, store: TracingStore) -> None:
    await put_all(story)
    for jid in ("j0", "j1"):
        which = story.store if jid == "j0" else store
        await which.requeue(queue="other", jid=jid, klass="Greet", data="{}")


async def heartbeat(story: Story, store: TracingStore) -> None:
    await put_all(story)
    held = await pop_all(story)
    await store.heartbeat(worker="ann", **held[0])


async def heartbeat_many(story: Story, store: TracingStore) -> None:
    await put_all(story)
    held = await pop_all(story)
    batch: list[HeartbeatManyRow] = [{**job} for job in held[:3]]
    await store.heartbeat_many(worker="ann", batch=batch)


async def retry(story: Story, store: TracingStore) -> None:
    await put_all(story)
    held = await pop_all(story)
    await story.store.retry(worker="ann", queue="mail", delay=0, **held[0])
    await store.retry(worker="ann", queue="mail", delay=0, **held[1])


async def fail(story: Story, store: TracingStore) -> None:
    await put_all(story)
    held = await pop_all(story)
    for which, job in ((story.store, held[0]), (store, held[1])):
        await which.fail(worker="ann", group="mail-ValueError", message="no", **job)


async def cancel(story: Story, store: TracingStore) -> None:
    await put_all(story)
    await store.cancel(jids=["j0"])


async def beat(story: Story, store: TracingStore) -> None:
    for which, now in ((story.store, 60), (store, 65)):
        await which.beat(worker="ann", now=now, process='{"id":"1"}', queues=["mail"])


def record_usual(name: str, ran: list[str]) -> None:
    usual_functions()[name] = ran
    file = Path(str(lua.LUA / "usual.json"))
    file.write_text(json.dumps(dict(sorted(usual_functions().items())), indent=1) + "\n")


@pytest.mark.parametrize(
    "scenario",
    [
        put,
        put_many,
        requeue,
        pop,
        pop_many,
        complete,
        complete_many,
        heartbeat,
        heartbeat_many,
        retry,
        fail,
        cancel,
        beat,
    ],
)
async def test_usual_call_runs_the_recorded_functions(
    scenario: Scenario, story: Story, declared: dict[str, list[str]]
) -> None:
    name = scenario.__name__
    store = TracingStore(story.store.connection, story.namespace)
    store.command, store.script = name, compose_traced(name, story.namespace)
    await scenario(story, store)
    seen = await story.redis.smembers(f"trace:{story.namespace}")
    ran = sorted(member.decode().replace("__", ".") for member in seen)
    if os.environ.get("RECORD_USUAL"):
        declared[name] = ran
        record_usual(name, ran)
    assert declared[name] == ran, "record them anew: see docs/CONTRIBUTING.md"


def test_usual_calls_define_no_function_of_steps_waits_calls_and_output() -> None:
    libraries = ("steps.", "step_entries.", "waits.", "calls.", "output_entries.")
    ran = {name for names in usual_functions().values() for name in names}
    assert not [name for name in ran if name.startswith(libraries)]
