"""Outages of Redis: the worker continues afterwards, and nothing is lost."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from aioqless import AioqlessError, Client, Handler, Job, NewJob, Next, Worker, job
from aioqless.worker import outcome_writer, runner
from aioqless.worker.context import Outage
from tests.conftest import Until
from tests.server import OwnServer
from tests.worker.conftest import BUSY, Lines, Work
from tests.worker.states import state_of


async def restarted(server: OwnServer) -> None:
    await asyncio.to_thread(server.start)


def is_problem(line: dict[str, Any]) -> bool:
    """Return whether a line is a warning or error that a busy machine does not cause."""
    return line["level"] in ("error", "warning") and line["event"] not in BUSY


async def test_jobs_that_run_during_a_restart_of_redis_complete_once(
    killable_client: Client, own_server: OwnServer, work: Work, until: Until, lines: Lines
) -> None:
    began: list[str] = []
    ends = {jid: asyncio.Event() for jid in "abc"}

    @job(klass="Stay")
    async def stay(job: Job[Any]) -> Next | None:
        began.append(job.jid)
        await ends[job.jid].wait()
        return Next("billing") if job.jid == "b" else None

    await killable_client.queue("mail").put_many(NewJob(stay, jid=jid) for jid in "abc")
    async with work(stay, using=killable_client) as worker:
        await until(lambda: len(began) == 3)
        own_server.kill()
        ends["a"].set()
        ends["b"].set()
        await until(lambda: lines.of("worker.redis_lost"))
        await restarted(own_server)
        await until(lambda: lines.of("worker.redis_reconnected"))
        await until(lambda: worker.running == ["c"])
        assert (await state_of(killable_client, "a"), await state_of(killable_client, "b")) == (
            "complete",
            "waiting",
        )
        ends["c"].set()
        await until(lambda: not worker.running)
        await killable_client.queue("mail").put(stay, jid="a")
        await until(lambda: len(began) == 4)
        assert worker.healthy
    assert sorted(began) == ["a", "a", "b", "c"]
    told = [
        line
        for line in lines.all
        if is_problem(line) or line["event"] == "worker.redis_reconnected"
    ]
    assert [line["event"] for line in told] == ["worker.redis_lost", "worker.redis_reconnected"], (
        told
    )
    assert told[1]["seconds"] > 0


async def test_worker_that_starts_before_redis_waits_for_it(
    own_server: OwnServer, work: Work, until: Until, lines: Lines
) -> None:
    ran = []

    @job(klass="Note")
    async def note(job: Job[Any]) -> None:
        ran.append(job.jid)

    own_server.kill()
    async with Client(own_server.url) as client, work(note, using=client):
        await until(lambda: lines.of("worker.redis_lost"))
        await restarted(own_server)
        await until(lambda: lines.of("worker.redis_reconnected"))
        await client.queue("mail").put(note, jid="a")
        await until(lambda: ran == ["a"])


async def test_worker_can_be_stopped_during_an_outage(
    killable_client: Client, own_server: OwnServer, work: Work, until: Until, lines: Lines
) -> None:
    async with work(using=killable_client, poll=0.01):
        await until(lambda: lines.of("worker.started"))
        own_server.kill()
        await until(lambda: lines.of("worker.redis_lost"))
    assert lines.of("worker.stopped")


async def keep_outcome(
    killable_client: Client,
    server: OwnServer,
    worker: Worker,
    until: Until,
    lines: Lines,
    end: asyncio.Event,
) -> None:
    """End a job while Redis is unavailable, and let its lock expire."""
    await until(lambda: lines.of("job.started"))
    server.kill()
    killed = time.monotonic()
    end.set()
    lock = 1 + 0.2  # seconds: it may have been renewed until then
    await until(lambda: worker.waits_for_redis and time.monotonic() > killed + lock)
    assert worker.running == ["a"] and not lines.of("job.outcome_dropped")


@pytest.fixture
async def stay(killable_client: Client) -> tuple[Handler, asyncio.Event]:
    """Run a handler until the test ends it; locks last a second."""
    end = asyncio.Event()

    @job(klass="Stay")
    async def stay(job: Job[Any]) -> None:
        await end.wait()

    await killable_client.config.set("heartbeat", 1)
    await killable_client.queue("mail").put(stay, jid="a")
    return stay, end


async def test_outcome_is_kept_during_an_outage_although_its_lock_expires(
    killable_client: Client,
    own_server: OwnServer,
    work: Work,
    until: Until,
    lines: Lines,
    stay: tuple[Handler, asyncio.Event],
) -> None:
    async with work(stay[0], using=killable_client) as worker:
        await keep_outcome(killable_client, own_server, worker, until, lines, stay[1])
        await restarted(own_server)
        await until(lambda: lines.of("job.completed", jid="a"))
        await until(lambda: not worker.running)
        assert await state_of(killable_client, "a") == "complete"
    assert len(lines.of("job.started")) == 1


async def test_worker_stopped_in_an_outage_drops_outcomes_when_their_locks_expire(
    killable_client: Client,
    own_server: OwnServer,
    work: Work,
    until: Until,
    lines: Lines,
    stay: tuple[Handler, asyncio.Event],
) -> None:
    async with work(stay[0], using=killable_client, shutdown_timeout=0) as worker:
        await keep_outcome(killable_client, own_server, worker, until, lines, stay[1])
    (dropped,) = lines.of("job.outcome_dropped", jid="a", outcome="completed")
    assert "the worker stops" in dropped["why"]
    assert not lines.of("job.completed") and lines.of("worker.stopped")


async def test_worker_stopped_in_an_outage_drops_outcomes_although_their_locks_last(
    killable_client: Client,
    own_server: OwnServer,
    work: Work,
    until: Until,
    lines: Lines,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(runner, "OUTCOME_TIMEOUT", 0.1)
    end = asyncio.Event()
    began: list[Job[Any]] = []

    @job(klass="Stay")
    async def stay(job: Job[Any]) -> None:
        began.append(job)
        await end.wait()
        if job.jid == "b":
            raise LookupError

    for jid in "ab":
        await killable_client.queue("mail").put(stay, jid=jid)
    async with work(stay, using=killable_client, shutdown_timeout=0, kill_after=0) as worker:
        await until(lambda: len(lines.of("job.started")) == 2)
        own_server.kill()
        end.set()
        await until(lambda: worker.waits_for_redis and lines.of("worker.redis_lost"))
    assert all(time.time() < each.expires for each in began)
    dropped = {line["jid"]: line["outcome"] for line in lines.of("job.outcome_dropped")}
    assert dropped == {"a": "completed", "b": "failed"} and worker.dropped_outcomes
    assert lines.of("worker.stopped") and not lines.of("job.completed")


async def test_refusal_after_an_unanswered_attempt_is_not_reported_as_a_lost_lock(
    killable_client: Client,
    own_server: OwnServer,
    work: Work,
    until: Until,
    lines: Lines,
    stay: tuple[Handler, asyncio.Event],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(outcome_writer, "RETRY_WINDOW", 0.5)
    again = asyncio.Event()
    monkeypatch.setattr(Outage, "wait_after_failure", lambda *_: again.wait())
    async with work(stay[0], using=killable_client) as worker:
        await keep_outcome(killable_client, own_server, worker, until, lines, stay[1])
        await restarted(own_server)
        async with Client(own_server.url) as other:  # as the call that got through would have done
            await other.redis.hset("ql:j:a", "state", "complete")
        again.set()
        await until(lambda: lines.of("job.outcome_dropped", jid="a"))
        await until(lambda: not worker.running)
    assert "outcome unknown after an outage" in lines.of("job.outcome_dropped")[0][
        "why"
    ] and not lines.of("job.lock_lost")


@asynccontextmanager
async def read_only(client: Client) -> AsyncIterator[None]:
    """Turn the server into a replica, as a failover does."""
    await client.redis.replicaof("127.0.0.1", 1)
    yield
    await client.redis.replicaof("NO", "ONE")


async def test_worker_waits_for_a_read_only_redis(
    killable_client: Client, work: Work, until: Until, lines: Lines
) -> None:
    end = asyncio.Event()

    @job(klass="Stay")
    async def stay(job: Job[Any]) -> None:
        await end.wait()

    await killable_client.queue("mail").put(stay, jid="a")
    async with work(stay, using=killable_client, poll=0.05) as worker:
        await until(lambda: lines.of("job.started"))
        async with read_only(killable_client):
            end.set()
            await until(lambda: lines.of("worker.redis_lost"))
            assert worker.healthy and worker.running == ["a"]
        await until(lambda: lines.of("job.completed", jid="a"))
        assert len(lines.of("worker.redis_lost")) == len(lines.of("worker.redis_reconnected")) == 1
    assert await state_of(killable_client, "a") == "complete"


async def test_tick_missed_in_an_outage_is_made_up_after_it(
    own_server: OwnServer, work: Work, until: Until, lines: Lines
) -> None:
    @job(klass="Tick", cron="* * * * * *", queue="mail")
    async def tick(job: Job[Any]) -> None: ...

    own_server.kill()
    async with Client(own_server.url) as client, work(tick, using=client):
        await until(lambda: lines.of("worker.redis_lost"))
        assert not lines.of("recurring.declared")
        await restarted(own_server)
        await until(lambda: lines.of("recurring.declared"))
        await until(lambda: lines.of("job.completed", jid="Tick-1"))
        own_server.kill()
        await until(lambda: len(lines.of("worker.redis_lost")) == 2)
        made = len(lines.of("recurring.triggered"))
        await restarted(own_server)
        await until(lambda: len(lines.of("recurring.triggered")) > made)
        await until(
            lambda: lines.of("job.completed", jid=lines.of("recurring.triggered")[-1]["jid"])
        )
    jids = [line["jid"] for line in lines.of("recurring.triggered")]
    assert len(set(jids)) == len(jids)


@asynccontextmanager
async def user(server: OwnServer) -> AsyncIterator[tuple[Client, Client]]:
    """Return a client with revocable permissions, and one with all permissions."""
    async with Client(server.url) as root:
        await root.redis.execute_command(
            "ACL", "SETUSER", "ann", "on", ">secret", "~*", "&*", "+@all"
        )
        async with Client(server.url.replace("redis://", "redis://ann:secret@")) as client:
            yield client, root


@pytest.mark.parametrize("withdrawn", ["-@all", "-@scripting", "-@write", "resetkeys"])
async def test_worker_survives_revoked_permissions_and_stores_outcomes_afterwards(
    own_server: OwnServer, work: Work, until: Until, lines: Lines, withdrawn: str
) -> None:
    began: list[str] = []
    end = asyncio.Event()

    @job(klass="Stay")
    async def stay(job: Job[Any]) -> None:
        began.append(job.jid)
        await end.wait()
        if job.jid == "b":
            raise ValueError("wrong")

    async with user(own_server) as (client, root):
        await root.config.set("heartbeat", 1)  # locks are renewed meanwhile
        await root.config.set("grace-period", 60)
        await root.queue("mail").put_many(NewJob(stay, jid=jid) for jid in "ab")
        async with work(stay, using=client, poll=0.05) as worker:
            await until(lambda: len(began) == 2)
            await root.redis.execute_command("ACL", "SETUSER", "ann", withdrawn)
            end.set()
            await until(lambda: lines.of("worker.redis_lost"))
            await asyncio.sleep(1.5)  # in this time it keeps its outcomes and renews nothing
            assert worker.healthy and sorted(worker.running) == ["a", "b"]
            await root.redis.execute_command("ACL", "SETUSER", "ann", "~*", "&*", "+@all")
            await until(lambda: not worker.running)
            await root.queue("mail").put(stay, jid="c")
            await until(lambda: len(lines.of("job.completed")) == 2)
        assert [await state_of(root, jid) for jid in "abc"] == ["complete", "failed", "complete"]
    assert (
        began == ["a", "b", "c"] and not lines.of("job.refused") and not lines.of("worker.crashed")
    )


@pytest.mark.parametrize("missing", ["-evalsha", "-@write"])
async def test_worker_without_permissions_does_not_start(
    own_server: OwnServer, work: Work, until: Until, lines: Lines, missing: str
) -> None:
    @job(klass="Note")
    async def note(job: Job[Any]) -> None: ...

    async with user(own_server) as (client, root):
        await root.queue("mail").put(note)
        await root.redis.execute_command("ACL", "SETUSER", "ann", missing)
        with pytest.raises(AioqlessError, match="lacks permissions that a worker needs"):
            async with work(note, using=client) as worker:
                await until(lambda: not worker.healthy)
    assert lines.of("worker.crashed")
