"""The order in which a worker runs jobs, and how many at once."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from aioqless import Client, Job, NewJob, job
from aioqless.worker.subscriptions import ORDERS
from tests.conftest import Until
from tests.worker.conftest import Work


async def put_the_example(client: Client) -> None:
    """Put the specification's example: 5 jobs in A, 2 in B, 3 in C."""
    for queue, count in (("A", 5), ("B", 2), ("C", 3)):
        await client.queue(queue).put_many(
            NewJob("Note", jid=f"{queue}{n}") for n in range(1, count + 1)
        )


@pytest.mark.parametrize("concurrency", [1, 2, 3, 4, 20])
@pytest.mark.parametrize(
    ("order", "sequence"),
    [
        ("ordered", "C1 C2 C3 B1 B2 A1 A2 A3 A4 A5"),
        ("round-robin", "C1 B1 A1 C2 B2 A2 C3 A3 A4 A5"),
    ],
)
async def test_weighted_example_runs_in_the_specified_order_at_any_concurrency(
    client: Client, work: Work, until: Until, concurrency: int, order: str, sequence: str
) -> None:
    ran: list[str] = []

    @job(klass="Note")
    async def note(job: Job[Any]) -> None:
        ran.append(job.jid)
        await asyncio.sleep(0)

    await put_the_example(client)
    async with work(note, queues=("C", "B", "A"), concurrency=concurrency, order=order):
        await until(lambda: len(ran) == 10)
    assert " ".join(ran) == sequence


async def test_rotation_continues_while_slots_become_free_one_by_one(
    client: Client, work: Work, until: Until
) -> None:
    ran: list[str] = []
    ends: dict[str, asyncio.Event] = {}

    @job(klass="Note")
    async def note(job: Job[Any]) -> None:
        ran.append(job.jid)
        await ends.setdefault(job.jid, asyncio.Event()).wait()

    await put_the_example(client)
    async with work(note, queues=("C", "B", "A"), concurrency=3, order="round-robin"):
        await until(lambda: len(ran) == 3)
        for count in range(4, 11):  # the oldest running job ends
            ends[ran[count - 4]].set()
            await until(lambda: len(ran) == count)  # noqa: B023
        for end in ends.values():
            end.set()
    assert " ".join(ran) == "C1 B1 A1 C2 B2 A2 C3 A3 A4 A5"


@pytest.mark.parametrize("order", ORDERS)
async def test_job_with_the_wrong_queue_field_does_not_stop_the_worker(
    client: Client, work: Work, until: Until, order: str
) -> None:
    ran: list[str] = []

    @job(klass="Note")
    async def note(job: Job[Any]) -> None:
        ran.append(job.jid)

    await client.queue("mail").put(note, jid="astray")
    await client.redis.hset(f"{client.namespace}:j:astray", "queue", "billing")
    await client.queue("mail").put(note, jid="fine")
    async with work(note, order=order) as worker:
        await until(lambda: "fine" in ran)
        assert worker.healthy
