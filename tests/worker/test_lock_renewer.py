"""The lock renewer beside handlers that block the event loop, and the blocked-loop watchdog."""

from __future__ import annotations

import asyncio
import json
import re
import sys
import threading
import time
from typing import Any

import pytest

from aioqless import Client, Job, job
from aioqless.redis import Connection
from aioqless.worker import watchdog
from aioqless.worker.parts.presence import Presence
from tests.client.conftest import proxied_client, proxy
from tests.client.proxy import Proxy
from tests.conftest import Until
from tests.worker.conftest import Idle, Lines, Stay, Work

__all__ = ["proxied_client", "proxy"]  # fixtures


@pytest.fixture
async def short(client: Client) -> None:
    """Configure short locks, without a grace period; a busy machine may stall for 1.6 seconds."""
    await client.config.set("heartbeat", 2.4)
    await client.config.set("grace-period", 0)


class Rival:
    """Another worker, in a thread, that pops from the queue `mail` as soon as it is started."""

    def __init__(self, client: Client) -> None:
        self.got: list[str] = []
        self.go = threading.Event()
        self._client = client
        self._done = False
        self._thread = threading.Thread(target=lambda: asyncio.run(self._work()))

    async def _work(self) -> None:
        self.go.wait()
        async with Client(self._client.url, namespace=self._client.namespace) as client:
            while not self._done:
                self.got += [job.jid for job in await client.queue("mail").pop(worker="rival")]
                await asyncio.sleep(0.02)

    def __enter__(self) -> Rival:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done = True
        self.go.set()
        self._thread.join()


# Blocked loops


async def test_handler_that_blocks_the_loop_for_longer_than_its_lock_keeps_it(
    client: Client, short: None, work: Work, until: Until, lines: Lines
) -> None:
    told: list[list[dict[str, Any]]] = []

    @job(klass="Hog")
    async def hog(job: Job[Any]) -> None:
        rival.go.set()
        time.sleep(3.2)  # noqa: ASYNC251
        told.append(lines.of("worker.loop_blocked", jid=job.jid))

    with Rival(client) as rival:
        async with work(hog):
            jid = await client.queue("mail").put(hog)
            await until(lambda: lines.of("job.completed", jid=jid))
            await until(lambda: lines.of("worker.loop_resumed"))
        assert rival.got == []
    assert len(lines.of("job.started")) == 1 and not lines.of("job.lock_lost")
    (first, *_), *_ = told  # it was logged while the loop was blocked
    assert (first["jid"], first["klass"], first["queue"]) == (jid, "Hog", "mail")
    assert 0.5 <= first["seconds"] < 3.2
    assert re.search(r"test_lock_renewer\.py:\d+ .*hog", first["where"]) and "worker" in first


async def test_blocking_task_of_a_handler_is_reported_with_the_handler(
    client: Client, work: Work, until: Until, lines: Lines
) -> None:
    @job(klass="Hog")
    async def hog(job: Job[Any]) -> None:
        async def part() -> None:
            time.sleep(1.5)  # noqa: ASYNC251

        await asyncio.gather(part(), asyncio.sleep(0))

    jid = ""

    async def is_reported() -> dict[str, Any] | None:
        nonlocal jid
        lines.all.clear()
        jid = await client.queue("mail").put(hog)
        await until(lambda: lines.of("job.completed", jid=jid))
        return next(iter(lines.of("worker.loop_blocked")), None)

    async with work(hog):
        told = await until(is_reported)  # a machine that stalls hides how long the loop did
    if sys.version_info >= (3, 12):  # the context of a task can only be read from Python 3.12 on
        assert (told["jid"], told["klass"]) == (jid, "Hog")
    else:
        assert told["running"] == ["Hog"]


async def test_job_of_a_stuck_worker_runs_elsewhere_and_the_late_result_is_refused(
    client: Client, short: None, work: Work, until: Until, lines: Lines
) -> None:
    @job(klass="Hog")
    async def hog(job: Job[Any]) -> None:
        rival.go.set()
        end = time.monotonic() + 30
        while not rival.got and time.monotonic() < end:
            time.sleep(0.01)  # noqa: ASYNC251  # as above

    with Rival(client) as rival:
        async with work(hog, stuck_after=1):
            jid = await client.queue("mail").put(hog)
            await until(lambda: lines.of("job.lock_lost", jid=jid))
        assert set(rival.got) == {jid}
    (stuck,) = lines.of("worker.stuck")
    assert stuck["jids"] == [jid] and stuck["klass"] == "Hog" and not lines.of("job.completed")


async def test_code_that_held_the_gil_is_reported_when_it_returns(
    client: Client, work: Work, until: Until, lines: Lines, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The limit of renewing locks in a thread: a regular expression blocks it, too."""

    @job(klass="Catastrophe")
    async def catastrophe(job: Job[Any]) -> None:
        size, took = 18, 0.0
        while took < 1.5:  # each additional letter doubles the time
            size, began = size + (1 if took > 0.5 else 2), time.monotonic()
            re.match(r"(a+)+$", "a" * size + "b")
            took = time.monotonic() - began
        # The thread wakes up when the GIL is free; meanwhile the event loop stays in this code.
        while not lines.of("worker.heartbeat_delayed") and time.monotonic() < began + 30:
            time.sleep(0.001)  # noqa: ASYNC251  # as above

    jid = await client.queue("mail").put(catastrophe)
    monkeypatch.setattr(Presence, "beat", lambda *_, **__: asyncio.sleep(60, False))
    async with work(catastrophe, name="ann"):
        await until(lambda: lines.of("job.completed", jid=jid), 30)
        told = await until(lambda: lines.of("worker.heartbeat_delayed", jid=jid))
    assert "catastrophe" in told[0]["where"] and told[0]["seconds"] > watchdog.LATE


async def test_busy_loop_is_not_reported_as_blocked(
    client: Client, work: Work, until: Until, lines: Lines
) -> None:
    @job(klass="Busy")
    async def busy(job: Job[Any]) -> None:
        end = time.monotonic() + 1.2
        while time.monotonic() < end:
            time.sleep(0.05)  # noqa: ASYNC251
            await asyncio.sleep(0)

    async def runs_unreported() -> bool:
        lines.all.clear()
        jid = await client.queue("mail").put(busy)
        await until(lambda: lines.of("job.completed", jid=jid))
        return not lines.of("worker.loop_blocked") and not lines.of("worker.heartbeat_delayed")

    async with work(busy):
        await until(runs_unreported)  # a machine that stalls blocks the loop, too


# Its connection


async def test_locks_are_renewed_while_the_shared_connection_is_blocked(
    client: Client,
    short: None,
    proxied_client: Client,
    proxy: Proxy,
    work: Work,
    until: Until,
    stay: Stay,
    lines: Lines,
) -> None:
    jid = await client.queue("mail").put(stay.handler)
    async with work(stay.handler, using=proxied_client) as worker:
        await until(lambda: worker.running)
        proxy.silence(proxied_client.name.encode() + b"\r\n")  # the renewer's name is longer
        with Rival(client) as rival:
            rival.go.set()
            first = await client.jobs.get(jid)
            await until(lambda: _renewed(client, jid, first.expires + 1.5 if first else 0))
            assert rival.got == []
        await proxy.close()
        await proxy.open()
        stay.end.set()
        await until(lambda: lines.of("job.completed", jid=jid))


async def test_renewer_reconnects_when_its_connection_breaks_or_falls_silent(
    client: Client,
    short: None,
    proxied_client: Client,
    proxy: Proxy,
    work: Work,
    until: Until,
    stay: Stay,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("aioqless.worker.worker.LOCKS_TIMEOUT", 0.2)
    jid = await client.queue("mail").put(stay.handler)
    async with work(stay.handler, using=proxied_client) as worker:
        await until(lambda: worker.running)
        with Rival(client) as rival:
            rival.go.set()
            for spoil in (proxy.silence, proxy.cut_off):
                held = await client.jobs.get(jid)
                assert held
                await until(lambda: _renewed(client, jid, held.expires))  # noqa: B023
                spoil(b".locks")
                await until(lambda: _renewed(client, jid, held.expires + 1.5))  # noqa: B023
            assert rival.got == []
        stay.end.set()


async def _renewed(client: Client, jid: str, until: float) -> bool:
    held = await client.jobs.get(jid)
    return bool(held and held.expires > until)


async def test_stopped_worker_leaves_no_renewer_thread_or_connection(
    client: Client, short: None, work: Work, until: Until
) -> None:
    end = asyncio.Event()

    @job(klass="Stay")
    async def stay(job: Job[Any]) -> None:
        began = job.expires
        await until(lambda: job.expires > began)
        end.set()

    def renewer_connections() -> list[str]:
        return [
            thread.name
            for thread in threading.enumerate()
            if thread.name == "aioqless lock renewer"
        ]

    await client.queue("mail").put(stay)
    async with work(stay):
        await end.wait()
        assert len(renewer_connections()) == 1 and len(await _connections(client)) == 2
    assert renewer_connections() == []
    await until(lambda: _is_alone(client))


async def _connections(client: Client) -> list[dict[str, str]]:
    return [
        each
        for each in await client.redis.client_list()
        if each["name"] in (client.name, f"{client.name}.locks")
    ]


async def _is_alone(client: Client) -> bool:
    return len(await _connections(client)) == 1


# Lost locks


async def test_completed_run_is_not_reported_as_lost_if_the_renewal_is_refused_first(
    client: Client, proxied_client: Client, proxy: Proxy, work: Work, until: Until, lines: Lines
) -> None:
    @job(klass="Ends")
    async def ends(job: Job[Any]) -> None:
        proxy.about, proxy.delay, proxy.seconds = job.jid.encode(), 1, 0.3
        completing = asyncio.ensure_future(job.complete())
        await until(lambda: not proxy.delay)
        message = json.dumps({"event": "lock_lost", "jid": job.jid})
        await client.redis.publish(f"{client.namespace}:w:{worker.name}", message)
        await completing

    jid = await client.queue("mail").put(ends)
    async with work(ends, using=proxied_client) as worker:
        await until(lambda: lines.of("job.settled", jid=jid))
    assert not lines.of("job.lock_lost")


@pytest.mark.parametrize(
    "how", ["cancelled", "taken by an operator", "moved", "put anew", "lapsed and taken over"]
)
async def test_handler_is_notified_of_a_lost_job_before_the_next_heartbeat(
    client: Client, work: Work, until: Until, idle: Idle, lines: Lines, how: str
) -> None:
    stopped = asyncio.Event()
    blocked = asyncio.Event()

    @job(klass="Stay")
    async def stay(job: Job[Any]) -> None:
        if job.fence > 1:
            return
        blocked.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            stopped.set()
            raise

    queue = client.queue("mail")
    await client.config.set("grace-period", 0)
    jid = await queue.put(stay)
    async with work(stay) as worker:
        await idle(worker)
        await blocked.wait()
        match how:
            case "cancelled":
                await client.jobs.cancel(jid)
            case "taken by an operator":
                await client.jobs.unlock(jid)
            case "moved":
                found = await client.jobs.get(jid)
                assert found
                await found.move("billing")
            case "put anew":
                await queue.put(stay, jid=jid, delay=60)
            case _:
                await client.redis.zadd(f"{client.namespace}:q:mail-locks", {jid: 1})
                assert await queue.pop(worker="rival")
        async with asyncio.timeout(15):  # the next heartbeat is 20 seconds away
            await stopped.wait()


async def test_lost_job_is_noticed_at_the_next_heartbeat_without_notifications(
    client: Client,
    proxied_client: Client,
    proxy: Proxy,
    work: Work,
    until: Until,
    idle: Idle,
    stay: Stay,
    lines: Lines,
) -> None:
    await client.config.set("heartbeat", 3)
    jid = await client.queue("mail").put(stay.handler)
    async with work(stay.handler, using=proxied_client) as worker:
        await idle(worker)
        proxy.silence(b"SUBSCRIBE")
        await client.jobs.cancel(jid)
        await until(lambda: stay.stopped == [jid])


async def test_silent_subscription_is_renewed(
    client: Client,
    proxied_client: Client,
    proxy: Proxy,
    work: Work,
    until: Until,
    idle: Idle,
    lines: Lines,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("aioqless.redis.pubsub.MAX_SILENCE", 0.2)
    monkeypatch.setattr("aioqless.worker.parts.listener.PAUSE", 0.05)

    @job(klass="Greet")
    async def greet(job: Job[Any]) -> None:
        pass

    async def listens_quietly() -> bool:
        failed = len(lines.of("listener.failed"))
        await asyncio.sleep(0.6)  # nothing may happen in this time
        return len(lines.of("listener.failed")) == failed

    async with work(greet, using=proxied_client) as worker:
        await idle(worker)
        # a server that answers when asked isn't silent, unless the machine stalls
        await until(listens_quietly)
        lines.all.clear()
        proxy.silence(b"SUBSCRIBE")
        await until(lambda: lines.of("listener.failed"))
        await idle(worker)
        jid = await client.queue("mail").put(greet)
        await until(lambda: lines.of("job.completed", jid=jid))


async def test_worker_stops_although_the_renewer_is_canceled_as_it_ends(
    work: Work, until: Until, monkeypatch: pytest.MonkeyPatch
) -> None:
    close, own = Connection.aclose, threading.current_thread()
    canceled: list[object] = []

    async def cancelled_meanwhile(connection: Connection) -> None:
        await close(connection)
        task = asyncio.current_task()
        if task is not None and threading.current_thread() is not own:
            canceled.append(task)
            task.cancel()
            await asyncio.sleep(0)

    monkeypatch.setattr(Connection, "aclose", cancelled_meanwhile)
    async with work() as worker:
        await until(lambda: worker.idle)
    assert canceled and not worker.healthy
