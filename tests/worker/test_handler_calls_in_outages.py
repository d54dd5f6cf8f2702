"""What a handler awaits of aioqless waits for Redis while its run has its lock."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from aioqless import Client, Job, SyncClient, bulk_job, chain, job
from tests.conftest import Until
from tests.server import OwnServer
from tests.worker import in_processes
from tests.worker.conftest import Lines, Work
from tests.worker.states import after

AWAY = 0.5  # seconds; without the lock, a call would be given up after 0.15

Act = Callable[[Job[Any]], Awaitable[object]]


@job(klass="Child", queue="children", result_ttl=60)
async def child(job: Job[Any], name: str = "") -> str:
    return name


async def double(number: int) -> int:
    return 2 * number


def four() -> int:
    return 4


async def advance(job: Job[Any]) -> None:
    async with job.cursor("rows", int) as rows:
        for number in range(3):
            rows.advance(number)


async def put_together(job: Job[Any]) -> None:
    await asyncio.gather(*(child.put(name=f"{number}") for number in range(20)))


async def put_many(job: Job[Any]) -> None:
    await Client.current().put_many(child.data(name=f"{number}") for number in range(120))


async def put_flow(job: Job[Any]) -> None:
    await Client.current().put_flow(chain(child.data(), child.data()))


async def read(job: Job[Any]) -> None:
    client = Client.current()
    await asyncio.gather(
        client.jobs.get(job.jid),
        client.jobs.get("unknown"),
        client.queue("mail").length(),
        client.queues(),
        client.config.all(),
        client.server.info(),
        client.jobs.failed_counts(),
    )


async def emit(job: Job[Any]) -> None:
    job.emit("a")
    job.progress(0.5, "half")
    await job.flush_output()


# By name, and how many jobs each puts.
CALLS: dict[str, tuple[Act, int]] = {
    "step": (lambda job: job.step("double", double, 4), 0),
    "cursor": (advance, 0),
    "heartbeat": (lambda job: job.heartbeat(), 0),
    "log": (lambda job: job.log("away"), 0),
    "tag": (lambda job: job.tag("away"), 0),
    "complete": (lambda job: job.complete(), 0),
    "put": (lambda job: child.put(name="one"), 1),
    "put together": (put_together, 20),
    "put many": (put_many, 120),
    "put flow": (put_flow, 2),
    "call": (lambda job: job.call("child", child.data(name="called")), 1),
    "signal": (lambda job: Client.current().jobs.signal(job.jid, "go", 1), 0),
    "set": (lambda job: Client.current().job_set("of").put_many([child.data()]), 1),
    "read": (read, 0),
    "emit": (emit, 0),
}


class Gate:
    """Where handlers wait until Redis is unavailable."""

    def __init__(self) -> None:
        self.waiting: set[str] = set()
        self.runs: list[str] = []
        self._open = asyncio.Event()
        self._open_in_threads = threading.Event()

    async def enter(self, job: Job[Any]) -> None:
        self.runs.append(job.jid)
        self.waiting.add(job.jid)
        await self._open.wait()

    def enter_in_thread(self, job: Job[Any]) -> None:
        self.runs.append(job.jid)
        self.waiting.add(job.jid)
        self._open_in_threads.wait()

    def open(self) -> None:
        self._open.set()
        self._open_in_threads.set()


async def take_redis_away(server: OwnServer, gate: Gate, seconds: float = AWAY) -> None:
    """Kill Redis, let the handlers continue, and start it again."""
    server.kill()
    gate.open()
    await asyncio.sleep(seconds)
    await asyncio.to_thread(server.start)


async def test_calls_of_a_handler_wait_for_redis_and_are_carried_out_once(
    killable_client: Client, own_server: OwnServer, work: Work, until: Until
) -> None:
    gate = Gate()

    @job(klass="Calls", retries=2)
    async def calls(job: Job[Any], name: str) -> None:
        await gate.enter(job)
        await CALLS[name][0](job)

    mail = killable_client.queue("mail")
    jids = {name: await mail.put(calls.data(name=name)) for name in CALLS}
    settings: dict[str, Any] = {"queues": ("mail", "children"), "concurrency": 20}
    # a run that parks is run again
    async with work(calls, child, using=killable_client, park_after=90, **settings):
        await until(lambda: len(gate.waiting) == len(CALLS))
        await take_redis_away(own_server, gate)
        for name, jid in jids.items():
            ended = await killable_client.jobs.wait(jid, 60)
            assert (ended.state, ended.remaining) == ("complete", 2), (name, ended.failure)
        await until(lambda: _is_empty(killable_client, "children"))
    assert len(gate.runs) == len(CALLS)
    done = await killable_client.queue("children").days()
    assert sum(each.completed for each in done) == sum(count for _, count in CALLS.values())


async def _is_empty(client: Client, queue: str) -> bool:
    return not await client.queue(queue).length()


async def test_calls_of_handlers_in_threads_wait_for_redis(
    killable_client: Client, own_server: OwnServer, work: Work, until: Until
) -> None:
    gate, url = Gate(), own_server.url

    @job(klass="Thread", retries=2)
    def in_thread(job: Job[Any], how: str) -> None:
        with SyncClient(url) as queues:
            if how == "sync client":
                queues.call(lambda client: client.ping())  # connects
            gate.enter_in_thread(job)
            if how == "step":
                job.step("four", four)  # type: ignore[unused-coroutine]
            elif how == "cursor":
                with job.cursor("rows", int) as rows:
                    rows.advance(1)
            else:
                queues.put(child.data(name=how))

    mail, ways = killable_client.queue("mail"), ("step", "cursor", "sync client", "new client")
    jids = [await mail.put(in_thread.data(how=how)) for how in ways]
    async with work(in_thread, using=killable_client):
        await until(lambda: len(gate.waiting) == len(ways))
        await take_redis_away(own_server, gate)
        for jid in jids:
            ended = await killable_client.jobs.wait(jid, 60)
            assert (ended.state, ended.remaining) == ("complete", 2), ended.failure
    assert await killable_client.queue("children").length() == 2


async def test_calls_of_a_bulk_wait_for_redis(
    killable_client: Client, own_server: OwnServer, work: Work, until: Until
) -> None:
    gate = Gate()

    @bulk_job(klass="Rows", size=2, within=30)
    async def rows(jobs: list[Job[Any]]) -> None:
        for each in jobs:
            gate.waiting.add(each.jid)
        await gate.enter(jobs[0])
        await asyncio.gather(*(each.log("away") for each in jobs))

    jids = [await killable_client.queue("mail").put(rows, {"n": n}) for n in range(2)]
    async with work(rows, using=killable_client):
        await until(lambda: len(gate.waiting) == 2)
        await take_redis_away(own_server, gate)
        for jid in jids:
            assert (await killable_client.jobs.wait(jid, 60)).state == "complete"


async def test_calls_of_handlers_in_processes_wait_for_redis(
    killable_client: Client,
    own_server: OwnServer,
    work: Work,
    until: Until,
    tmp_path: Path,
) -> None:
    handler = in_processes.put_in_outage
    data = {"folder": str(tmp_path), "url": own_server.url}
    jid = await killable_client.queue("mail").put(handler, data, retries=2)
    async with work(handler, using=killable_client):
        await until(lambda: list(tmp_path.glob(f"{jid}-began-*")))
        own_server.kill()
        (tmp_path / "away").touch()
        await asyncio.sleep(AWAY)
        await asyncio.to_thread(own_server.start)
        ended = await killable_client.jobs.wait(jid, 60)
    assert (ended.state, ended.remaining) == ("complete", 2), ended.failure
    assert await killable_client.queue("children").length() == 1


async def test_run_whose_lock_ends_in_an_outage_is_run_again_and_does_not_fail(
    killable_client: Client,
    own_server: OwnServer,
    work: Work,
    until: Until,
    lines: Lines,
    tmp_path: Path,
) -> None:
    gate, caught, url = Gate(), list[str](), own_server.url
    await killable_client.config.set("heartbeat", 1)
    await killable_client.config.set("grace-period", 0)

    @job(klass="Coroutine")
    async def coroutine(job: Job[Any], how: str) -> None:
        await gate.enter(job)
        try:
            if how == "gather":
                await asyncio.gather(*(job.log(f"{n}") for n in range(3)), return_exceptions=True)
            else:
                await (child.put() if how == "put" else job.step("double", double, 4))
        except Exception as error:  # an application's own retry
            caught.append(repr(error))

    @job(klass="Thread")
    def thread(job: Job[Any], how: str) -> None:
        gate.enter_in_thread(job)
        with SyncClient(url) as queues:
            try:
                if how == "put":
                    queues.put(child.data())
                else:
                    job.step("four", four)  # type: ignore[unused-coroutine]
            except Exception as error:
                caught.append(repr(error))

    mail = killable_client.queue("mail")
    jids = [await mail.put(coroutine.data(how=how)) for how in ("step", "put", "gather")]
    jids += [await mail.put(thread.data(how=how)) for how in ("step", "put")]
    handler = in_processes.put_in_outage
    data = {"folder": str(tmp_path), "url": own_server.url}
    jids.append(await mail.put(handler, data))
    async with work(coroutine, thread, handler, using=killable_client, poll=1):
        await until(lambda: len(gate.waiting) == len(jids) - 1)
        await until(lambda: list(tmp_path.glob(f"{jids[-1]}-began-*")))
        own_server.kill()
        (tmp_path / "away").touch()
        gate.open()
        await until(
            lambda: {each["jid"] for each in lines.of("job.lock_lost")} == {*map(str, jids)}
        )
        await asyncio.to_thread(own_server.start)
        for jid in jids:
            ended = await killable_client.jobs.wait(jid, 60)
            assert ended.state == "complete", ended.failure
    assert not caught


async def test_call_to_another_redis_than_the_workers_fails_while_the_lock_is_renewed(
    client: Client,
    own_server: OwnServer,
    work: Work,
    until: Until,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("aioqless.store.run_lock.LONGEST_ELSEWHERE", 0.2)
    await client.config.set("heartbeat", 1)

    @job(klass="Elsewhere", retries=0)
    async def elsewhere(job: Job[Any]) -> None:
        async with Client(own_server.url) as other:
            await other.queue("mail").put("Greet")

    own_server.kill()
    jid = await client.queue("mail").put(elsewhere)
    async with work(elsewhere):
        failed = await after(client, until, jid, "failed")
    assert failed.failure and failed.failure.group == "mail-ConnectionError"


async def test_puts_that_can_be_repeated_no_longer_end_the_run_by_a_lost_lock(
    killable_client: Client,
    own_server: OwnServer,
    work: Work,
    until: Until,
    lines: Lines,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("aioqless.store.script_store.RETRY_WINDOW", 0.3)
    gate = Gate()

    @job(klass="Puts")
    async def puts(job: Job[Any]) -> None:
        await gate.enter(job)
        await child.put()

    mail = killable_client.queue("mail")
    jids = {str(await mail.put(puts)) for _ in range(3)}  # one put alone, two in a batch
    async with work(puts, using=killable_client, shutdown_timeout=0):
        await until(lambda: gate.waiting == jids)
        own_server.kill()
        gate.open()
        await until(lambda: {each["jid"] for each in lines.of("job.lock_lost")} == jids, 20)
        await asyncio.to_thread(own_server.start)
    assert not lines.of("job.failed")
