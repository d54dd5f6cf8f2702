"""Remote control of a running worker."""

from __future__ import annotations

import asyncio
import json

import pytest

from aioqless import Client
from aioqless.client.workers import Workers, WorkerState
from aioqless.errors import CommandRefused, InvalidArgument, NoSuchWorker
from tests.conftest import Until
from tests.worker.conftest import Idle, Lines, Work
from tests.worker.test_notifications import note
from tests.worker.test_subscriptions import RunningJobs, fill, stage

__all__ = ["stage"]


async def test_subscribe_and_unsubscribe_return_the_new_subscriptions(
    client: Client, work: Work, until: Until, idle: Idle, stage: RunningJobs
) -> None:
    await fill(client, "reports", 2)
    async with work(stage.handler, name="ann", shutdown_timeout=0) as worker:
        await idle(worker)
        assert await client.workers.subscribe("ann", "reports", limit=1) == WorkerState(
            queues=["mail", "reports=1"], paused=False
        )
        await until(lambda: list(stage.running) == ["reports0"])
        assert await client.workers.unsubscribe("ann", "reports") == WorkerState(
            queues=["mail"], paused=False
        )
        assert list(stage.running) == ["reports0"], "what runs is left alone"
        stage.end()
        await until(lambda: not worker.running)
    assert stage.ran == ["reports0"]


async def test_quiet_worker_resumes(
    client: Client, work: Work, until: Until, idle: Idle, stage: RunningJobs, lines: Lines
) -> None:
    async with work(stage.handler, name="ann", shutdown_timeout=0) as worker:
        await idle(worker)
        assert await client.workers.pause("ann") == WorkerState(queues=["mail"], paused=True)
        await fill(client, "mail", 1)
        assert await client.workers.show("ann") == WorkerState(queues=["mail"], paused=True)
        await until(lambda: lines.of("worker.paused"))
        assert not stage.ran
        assert await client.workers.resume("ann") == WorkerState(queues=["mail"], paused=False)
        await until(lambda: list(stage.running) == ["mail0"])


async def test_stack_of_a_running_job_ends_where_it_waits(
    client: Client, work: Work, until: Until, stage: RunningJobs
) -> None:
    async with work(stage.handler, name="ann", shutdown_timeout=0):
        await fill(client, "mail", 1)
        await until(lambda: list(stage.running) == ["mail0"])
        assert "asyncio" in (await client.workers.stack("ann", "mail0"))
        with pytest.raises(CommandRefused, match="it doesn't run job mail7"):
            await client.workers.stack("ann", "mail7")


async def test_only_the_named_worker_obeys(client: Client, work: Work, until: Until) -> None:
    async with work(note, name="ann") as ann, work(note, name="bob") as bob:

        async def both() -> bool:
            channels = [f"{client.namespace}:w:{name}" for name in ("ann", "bob")]
            return all(count == 1 for _, count in await client.redis.pubsub_numsub(*channels))

        await until(both)
        await client.workers.pause("bob")
        assert (ann.paused, bob.paused) == (False, True)


async def test_command_to_an_unknown_worker_is_refused(client: Client) -> None:
    with pytest.raises(NoSuchWorker, match=r"no worker of this name is listening \(worker 'ann'\)"):
        await client.workers.pause("ann")


async def test_invalid_command_is_refused_with_the_reason(
    client: Client, work: Work, idle: Idle
) -> None:
    async with work(note, name="ann") as worker:
        await idle(worker)
        with pytest.raises(
            CommandRefused,
            match="worker 'ann' refused to unsubscribe: queue 'post' is not subscribed",
        ):
            await client.workers.unsubscribe("ann", "post")
        with pytest.raises(
            CommandRefused,
            match=r"the limit of queue 'post' must be an integer >= 1 \(got 0\)",
        ):
            await client.workers.subscribe("ann", "post", limit=0)
        with pytest.raises(
            CommandRefused, match="has a weight, which counts only where the order is weighted"
        ):
            await client.workers.subscribe("ann", "post", weight=3)
        with pytest.raises(InvalidArgument, match="limit '-1' is not between"):
            await client.workers.subscribe("ann", "post", limit=-1)
        with pytest.raises(ValueError, match="queue must not be empty"):
            await client.workers.subscribe("ann", "")
        assert (await client.workers.show("ann")).queues == ["mail"]


async def test_worker_that_does_not_reply_is_reported(client: Client) -> None:
    async with client.redis.pubsub() as another_clients_worker:
        await another_clients_worker.subscribe(f"{client.namespace}:w:ruby")
        await another_clients_worker.get_message(timeout=60)
        with pytest.raises(
            CommandRefused, match=r"worker 'ruby' received pause and did not answer within 0\.05 s"
        ):
            await Workers(client.redis, client.internals.store, timeout=0.05).pause("ruby")


@pytest.mark.parametrize(
    "order",
    [
        {},
        {"command": "dance", "answer": "x"},
        {"command": ["pause"], "answer": "x"},
        {"command": "subscribe", "answer": "x"},
        {"command": "subscribe", "queue": 7, "answer": "x"},
        {"command": "subscribe", "queue": "a", "limit": "4", "answer": "x"},
        {"command": "show"},
        {"command": "show", "answer": 7.5},
        {"command": "show", "answer": {}},
        {"command": "show", "answer": "\x00"},
    ],
)
async def test_malformed_commands_are_ignored(
    client: Client, work: Work, idle: Idle, order: dict[str, object]
) -> None:
    async with work(note, name="ann") as worker:
        await idle(worker)
        await client.redis.publish(
            f"{client.namespace}:w:ann", json.dumps({"event": "order", **order})
        )
        assert await client.workers.show("ann") == WorkerState(queues=["mail"], paused=False)
        assert worker.healthy


async def test_concurrent_commands_are_all_executed_and_answered(
    client: Client, work: Work, idle: Idle
) -> None:
    async with work(note, name="ann") as worker:
        await idle(worker)
        await asyncio.gather(
            *(client.workers.subscribe("ann", f"q{n}", limit=n + 1) for n in range(20))
        )
        assert sorted((await client.workers.show("ann")).queues) == sorted(
            ["mail", *(f"q{n}={n + 1}" for n in range(20))]
        )
