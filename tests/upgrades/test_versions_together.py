"""Workers and clients of an earlier and of this version on one Redis: a rolling upgrade."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tarfile
from collections.abc import AsyncIterator, Awaitable, Callable
from io import BytesIO
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from aioqless import Client, Job, Key, LockLost, NewJob, Settings, Worker, chain, job
from tests.command_calls import make_call
from tests.conftest import Until

ROOT = Path(__file__).parents[2]
GIT = ("git", "-C", str(ROOT))
CAPTURED: dict[str, Any] = {"capture_output": True}
PROGRAM = Path(__file__).with_name("earlier_version.py")
# The tag of the last release; before the first, a commit with the API of 0.1.0.
EARLIER = "741cd61faa8e9e01028add98e067686a0fbc182d"
NEEDED = ("aioqless", "tests/__init__.py", "tests/command_calls.py")
PATIENCE = 60.0  # seconds

Command: TypeAlias = Callable[..., Awaitable[Any]]


class Earlier:
    """A client of the earlier version, in its own process."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def run(self, expression: str) -> Any:
        """Evaluate an expression there. Raises AssertionError with the error that it raised."""
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write(f"{expression}\n".encode())
        async with asyncio.timeout(PATIENCE):
            answer = json.loads(await self._process.stdout.readline())
        assert "error" not in answer, answer["error"]
        return answer["value"]

    async def command(self, command: str, word: str | None = None, /, **arguments: Any) -> Any:
        """Call a command of the state machine there."""
        return await self.run(f"call({command!r}, {word!r}, **{arguments!r})")

    async def end(self) -> None:
        """Stop its workers and end the process."""
        assert self._process.stdin
        self._process.stdin.close()
        async with asyncio.timeout(PATIENCE):
            assert await self._process.wait() == 0


@pytest.fixture(scope="session")
def earlier_source(tmp_path_factory: pytest.TempPathFactory, git_program: str) -> Path:
    """Check out the earlier version's package; returns the folder."""
    folder = tmp_path_factory.mktemp("earlier")
    assert git_program
    archived = subprocess.run([*GIT, "archive", EARLIER, *NEEDED], check=False, **CAPTURED)
    if archived.returncode:
        why = f"{EARLIER} is not there: {archived.stderr.decode(errors='replace')}"
        shallow = subprocess.run(
            [*GIT, "rev-parse", "--is-shallow-repository"], check=False, **CAPTURED
        )
        if shallow.stdout.strip() == b"true":  # a clone without history has no earlier version
            pytest.xfail(why)
        (pytest.fail if os.environ.get("AIOQLESS_NO_SKIPS") else pytest.skip)(why)
    with tarfile.open(fileobj=BytesIO(archived.stdout)) as tar:
        tar.extractall(folder, filter="data")
    return folder


@pytest.fixture
async def earlier(earlier_source: Path, client: Client) -> AsyncIterator[Earlier]:
    """Start a client of the earlier version in the same namespace.

    At the end, `check` of both versions must find no problem in Redis.
    """
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, str(PROGRAM), str(client.url), client.namespace),
        cwd=earlier_source,
        env={**os.environ, "PYTHONPATH": str(earlier_source)},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        earlier = Earlier(process)
        assert await earlier.run("aioqless.__file__") == str(
            earlier_source / "aioqless" / "__init__.py"
        )
        yield earlier
        assert await client.check() == []
        assert await earlier.run("client.check()") == []
        await earlier.end()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


@pytest.fixture(params=["earlier first", "this one first"])
def versions(
    request: pytest.FixtureRequest, earlier: Earlier, client: Client
) -> tuple[Command, Command]:
    """Return the commands of both versions, in either order."""

    async def current(command: str, word: str | None = None, /, **arguments: Any) -> Any:
        return await make_call(client.internals.store, command, word, **arguments)

    if request.param == "earlier first":
        return earlier.command, current
    return current, earlier.command


@job(klass="Greet", result_ttl=60)
async def greet(job: Job[Any]) -> str:
    return "this one"


def working(client: Client, *handlers: Any) -> Worker:
    """Run a worker of this version."""
    settings = Settings(queues=("mail",), concurrency=5, poll=0.05, shutdown_timeout=0)
    return Worker(client, *handlers, settings=settings)


async def result_of(client: Client, jid: str) -> Any:
    found = await client.jobs.get(jid)
    return found and await found.result()


async def test_workers_of_both_versions_run_jobs_of_clients_of_both(
    earlier: Earlier, client: Client, until: Until
) -> None:
    released = f"{client.namespace}-released"

    @job(klass="Hold", result_ttl=60)
    async def hold(job: Job[Any]) -> str:
        await client.redis.blpop([released])
        return "this one"

    mail = client.queue("mail")
    await mail.put_many(NewJob("Hold", jid=f"a{number}") for number in range(5))
    await earlier.run(
        "client.queue('mail').put_many([NewJob('Hold', jid=f'b{n}') for n in range(5)])"
    )
    await earlier.run("work('mail')")
    async with working(client, hold):

        async def all_run() -> bool:
            return (await mail.counts()).running == 10

        await until(all_run, PATIENCE)  # each worker runs at most five jobs
        await client.redis.rpush(released, *range(10))
        jids = [f"{letter}{number}" for letter in "ab" for number in range(5)]
        states = [(await client.jobs.wait(jid, PATIENCE)).state for jid in jids]
    assert states == ["complete"] * 10
    results = [await result_of(client, jid) for jid in jids]
    assert sorted(results) == ["earlier"] * 5 + ["this one"] * 5
    assert [await earlier.run(f"result({jid!r})") for jid in jids] == results


async def test_each_version_waits_for_completions_by_the_other(
    earlier: Earlier, client: Client
) -> None:
    await client.queue("mail").put("Greet", jid="a")
    waiting = asyncio.create_task(client.jobs.wait("a", PATIENCE))
    await earlier.run("work('mail')")
    assert (await waiting).state == "complete"
    assert await result_of(client, "a") == "earlier"
    async with Worker(client, greet, settings=Settings(queues=("other",), shutdown_timeout=0)):
        await earlier.run("client.queue('other').put('Greet', jid='b')")
        assert "complete" in await earlier.run("client.jobs.wait('b')")
    assert await earlier.run("result('b')") == "this one"


async def test_data_tags_and_context_of_the_other_version_are_read(
    earlier: Earlier, client: Client
) -> None:
    data, tags, context = (
        {"n": [], "big": 12345678901234567, "é": "\u2028"},
        ["red"],
        {"trace": "a"},
    )
    given = f"{data!r}, jid='a', tags={tags!r}, context={context!r}, priority=-3, retries=2"
    await earlier.run(f"client.queue('mail').put('Greet', {given})")
    found = await client.jobs.get("a")
    assert found is not None and (found.data, found.tags, found.context) == (data, tags, context)
    assert (found.priority, found.retries) == (-3, 2)
    await client.queue("mail").put(
        "Greet", data, jid="b", tags=tags, context=context, priority=-3, retries=2
    )
    names = ("data", "tags", "context", "priority", "retries")
    assert await earlier.run(f"read('b', *{names!r})") == {
        name: getattr(found, name) for name in names
    }


async def test_repeated_request_gets_the_reply_of_the_other_version(
    versions: tuple[Command, Command], client: Client
) -> None:
    put: dict[str, Any] = {"queue": "mail", "jid": "a", "klass": "Greet", "data": "{}", "delay": 0}
    for version in versions:
        assert await version("put", **put, request="line:1") == "a"
    popped = [
        await version("pop", queue="mail", worker="w", count=1, request="line:2")
        for version in versions
    ]
    assert [job["jid"] for job in popped[0]] == ["a"] and popped[1] == popped[0]
    fence = popped[0][0]["fence"]
    complete = {"jid": "a", "worker": "w", "queue": "mail", "data": "", "fence": fence}
    for version in versions:
        assert await version("complete", **complete, request="line:3") == "complete"
    assert await client.queue("mail").length() == 0


async def test_scripts_of_one_version_do_not_displace_those_of_the_other(
    versions: tuple[Command, Command], client: Client
) -> None:
    first, second = versions
    for number in range(4):
        if number == 2:
            await client.redis.script_flush()
        put = first if number % 2 else second
        await put("put", queue="mail", jid=f"{number}", klass="Greet", data="{}", delay=0)
    assert await client.queue("mail").length() == 4


@pytest.mark.parametrize("version", ["earlier", "this one"])
async def test_unique_key_of_one_version_holds_for_the_other(
    version: str, earlier: Earlier, client: Client
) -> None:
    mail, given = (
        client.queue("mail"),
        "client.queue('mail').put('Greet', {'user': 7}, unique=aioqless.Key('user')",
    )
    if version == "earlier":
        assert await earlier.run(f"{given}, jid='a')") == "a"
        assert await mail.put("Greet", {"user": 7}, jid="b", unique=Key("user")) == "a"
    else:
        assert await mail.put("Greet", {"user": 7}, jid="a", unique=Key("user")) == "a"
        assert await earlier.run(f"{given}, jid='b')") == "a"


async def test_limits_of_one_version_hold_for_the_other(
    versions: tuple[Command, Command], earlier: Earlier, client: Client
) -> None:
    first, second = versions
    limited = "limit_key=aioqless.Key('user'), max_concurrency=1, rate_limit=(3, 3600))"
    await earlier.run(f"client.queue('mail').put('Greet', {{'user': 7}}, jid='a', {limited}")
    for jid in "bcd":
        await client.queue("mail").put(
            *("Greet", {"user": 7}),
            jid=jid, limit_key=Key("user"), max_concurrency=1, rate_limit=(3, 3600),
        )  # fmt: skip

    async def pop_and_complete(one: Command, other: Command) -> list[str]:
        popped = await one("pop", queue="mail", worker="w", count=5)
        assert await other("pop", queue="mail", worker="x", count=5) == []
        for each in popped:
            run = {"worker": "w", "queue": "mail", "data": "", "fence": each["fence"]}
            await one("complete", jid=each["jid"], **run)
        return [each["jid"] for each in popped]

    assert await pop_and_complete(first, second) == ["a"]
    assert await pop_and_complete(second, first) == ["b"]
    assert await pop_and_complete(first, second) == ["c"]
    assert await second("pop", queue="mail", worker="w", count=5) == []  # three per hour


async def test_dependents_of_one_version_are_freed_by_the_other(
    earlier: Earlier, client: Client
) -> None:
    steps = "NewJob('Greet', jid='a1'), NewJob('Greet', jid='a2')"
    await earlier.run(f"client.queue('mail').put_flow(chain({steps}))")
    await earlier.run("client.queue('other').put('Greet', jid='a3', depends=['a2'])")
    async with working(client, greet):
        await client.jobs.wait("a2", PATIENCE)
    assert await client.queue("other").length() == 1
    mail = client.queue("mail")
    await mail.put_flow(chain(NewJob("Greet", jid="b1"), NewJob("Greet", jid="b2")))
    await earlier.run("work('mail')")
    await client.jobs.wait("b2", PATIENCE)
    assert await result_of(client, "a2") == "this one"
    assert await result_of(client, "b2") == "earlier"


@pytest.mark.parametrize("schedule", [{"every": 0.1}, {"cron": "* * * * * *"}], ids=str)
async def test_recurring_jobs_of_one_version_are_put_by_the_other(
    schedule: dict[str, Any], earlier: Earlier, client: Client, until: Until
) -> None:
    made: list[str] = []

    @job(klass="Recur")
    async def recur(job: Job[Any]) -> None:
        made.append(job.jid)

    async def recurred_twice() -> bool:
        return len(made) >= 2

    await earlier.run(f"client.queue('mail').recur('Recur', jid='a', **{schedule!r})")
    async with working(client, recur):
        await until(recurred_twice, PATIENCE)
    assert len(set(made)) == len(made) and all(jid.startswith("a-") for jid in made)
    await client.queue("other").recur("Greet", jid="b", **schedule)
    await earlier.run("work('other')")

    async def complete_twice() -> bool:
        jobs = await client.jobs.multiget("b-1", "b-2")
        return [job.state for job in jobs] == ["complete"] * 2

    await until(complete_twice, PATIENCE)


async def test_lock_that_was_taken_over_by_the_other_version_refuses_the_former_holder(
    versions: tuple[Command, Command], client: Client
) -> None:
    first, second = versions
    await client.queue("mail").put("Greet", jid="a")
    (lost,) = await first("pop", queue="mail", worker="w", count=1)
    await second("timeout", jids=["a"])
    (held,) = await second("pop", queue="mail", worker="x", count=1)
    assert held["fence"] > lost["fence"]
    run = {"jid": "a", "queue": "mail", "data": ""}
    with pytest.raises((LockLost, AssertionError), match="held by another run"):
        await first("complete", worker="w", fence=lost["fence"], **run)
    assert await second("complete", worker="x", fence=held["fence"], **run) == "complete"


async def test_job_canceled_by_the_other_version_is_stopped(
    earlier: Earlier, client: Client, until: Until
) -> None:
    stopped = asyncio.Event()

    @job(klass="Hold")
    async def hold(job: Job[Any]) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    await client.queue("mail").put("Hold", jid="a")
    async with working(client, hold):
        await until(lambda: _runs(client, "a"), PATIENCE)
        await earlier.run("client.jobs.cancel('a')")
        await asyncio.wait_for(stopped.wait(), PATIENCE)
    await client.queue("other").put("Hold", jid="b")
    await earlier.run("work('other')")
    await until(lambda: _runs(client, "b"), PATIENCE)
    await client.jobs.cancel("b")

    async def nothing_runs() -> bool:
        return await earlier.run("worker.running") == []

    await until(nothing_runs, PATIENCE)


async def _runs(client: Client, jid: str) -> bool:
    found = await client.jobs.get(jid)
    return found is not None and found.state == "running"
