"""Subscriptions of a worker: queues, limits and changes while it runs."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from aioqless import Client, Handler, Job, NewJob, Subscription, job
from aioqless.worker.poller import Poller
from tests.conftest import Until
from tests.worker.conftest import Idle, Lines, Work
from tests.worker.test_notifications import no_calls


class RunningJobs:
    """Jobs that run until the test ends them."""

    def __init__(self) -> None:
        self.ran: list[str] = []
        self.running: dict[str, asyncio.Event] = {}
        self.most: Counter[str] = Counter()

    def end(self, *jids: str) -> None:
        for jid in jids or list(self.running):
            self.running[jid].set()

    @property
    def handler(self) -> Handler:
        @job(klass="Stay")
        async def stay(job: Job[Any]) -> None:
            self.ran.append(job.jid)
            ended = self.running[job.jid] = asyncio.Event()
            self.most[job.queue] = max(
                self.most[job.queue], sum(jid.startswith(job.queue) for jid in self.running)
            )
            try:
                await ended.wait()
            finally:
                del self.running[job.jid]

        return stay


@pytest.fixture
def stage() -> Iterator[RunningJobs]:
    yield RunningJobs()


async def fill(client: Client, queue: str, count: int, first: int = 0) -> None:
    await client.queue(queue).put_many(
        NewJob("Stay", jid=f"{queue}{n}") for n in range(first, first + count)
    )


# Limits


async def test_queue_limit_leaves_the_other_slots_to_other_queues(
    client: Client, work: Work, until: Until, stage: RunningJobs
) -> None:
    await fill(client, "reports", 5)
    await fill(client, "mail", 5)
    async with work(stage.handler, queues={"reports": 2, "mail": None}, concurrency=6) as worker:
        await until(
            lambda: (
                set(stage.running) == {"reports0", "reports1", "mail0", "mail1", "mail2", "mail3"}
            )
        )
        assert len(worker.running) == 6
        await until(lambda: stage.end() or (len(stage.ran) == 10 and not stage.running))  # type: ignore[func-returns-value]
    assert stage.most["reports"] == 2


async def test_ended_run_starts_the_next_job_of_a_queue_at_its_limit(
    client: Client, work: Work, until: Until, stage: RunningJobs
) -> None:
    await fill(client, "mail", 3)
    async with work(stage.handler, queues={"mail": 1}):  # it polls every 90 seconds
        for n in range(3):
            await until(lambda: list(stage.running) == [f"mail{n}"])  # noqa: B023
            stage.end()


# Changes at runtime


async def test_newly_subscribed_queue_is_served_immediately(
    client: Client, work: Work, until: Until, idle: Idle, stage: RunningJobs, lines: Lines
) -> None:
    await fill(client, "reports", 2)
    async with work(stage.handler, shutdown_timeout=0) as worker:
        await idle(worker)
        worker.subscribe("reports", limit=1)
        await until(lambda: list(stage.running) == ["reports0"])
        assert worker.subscriptions == (Subscription("mail"), Subscription("reports", limit=1))
        assert lines.of("worker.subscribed", queue="reports=1")
        worker.subscribe("reports", limit=2)
        await until(lambda: list(stage.running) == ["reports0", "reports1"])


async def test_worker_without_queues_waits_for_a_subscription(
    client: Client, work: Work, until: Until, idle: Idle, stage: RunningJobs
) -> None:
    async with work(stage.handler, poll=0.01, shutdown_timeout=0) as worker:
        await idle(worker)
        worker.unsubscribe("mail")
        await until(lambda: worker.idle)
        await fill(client, "mail", 1)
        await until(lambda: no_calls(client))
        worker.subscribe("mail")
        await until(lambda: list(stage.running) == ["mail0"])


# Pausing


async def test_paused_worker_pops_nothing_and_finishes_running_jobs(
    client: Client, work: Work, until: Until, stage: RunningJobs, lines: Lines
) -> None:
    await fill(client, "mail", 1)
    async with work(stage.handler, poll=0.01, shutdown_timeout=0) as worker:
        await until(lambda: list(stage.running) == ["mail0"])
        worker.pause()
        assert worker.paused
        await until(lambda: lines.of("worker.paused"))
        await fill(client, "mail", 1, first=1)
        stage.end()
        await until(lambda: lines.of("job.completed"))
        await until(lambda: no_calls(client))  # unpaused, it pops thirty times
        assert not worker.running
        worker.resume()
        await until(lambda: list(stage.running) == ["mail1"])
    assert len(lines.of("worker.paused")) == len(lines.of("worker.resumed")) == 1


# Patterns


async def test_new_queue_that_matches_a_pattern_is_served_immediately(
    client: Client, work: Work, until: Until, idle: Idle, stage: RunningJobs
) -> None:
    async with work(stage.handler, queues=("mail-*",), shutdown_timeout=0) as worker:
        await idle(worker)
        await fill(client, "mail-new", 1)
        await until(lambda: list(stage.running) == ["mail-new0"])


async def test_missed_notification_is_made_up_by_a_poll(
    client: Client, work: Work, until: Until, stage: RunningJobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("aioqless.worker.poller.PATTERN_INTERVAL", 0.01)
    monkeypatch.setattr(Poller, "wake", lambda *_: None)
    async with work(stage.handler, queues=("mail-*",), shutdown_timeout=0, poll=0.01) as worker:
        await until(lambda: worker.idle)
        await fill(client, "mail-new", 1)
        await until(lambda: list(stage.running) == ["mail-new0"])
