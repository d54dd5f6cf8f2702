"""Task queues and people in Python."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import aioqless
from aioqless import Client, InvalidData, LockLost, WrongState
from aioqless.contrib.human_tasks import (
    Person,
    Reservation,
    ReservationPolicy,
    TaskQueue,
    TaskStatus,
)
from aioqless.testing import Clock
from tests.conftest import Until, existing_job


async def put(client: Client, *jids: str, **data: Any) -> None:
    for jid in jids:
        await client.queue("review").put("Review", {"text": jid, **data}, jid=jid)


async def have(tasks: TaskQueue, person: Person | str, **more: Any) -> Reservation:
    reservation = await tasks.reserve(person, **more)
    assert reservation is not None
    return reservation


async def test_finished_job_has_the_answer_and_the_person(client: Client, tasks: TaskQueue) -> None:
    await put(client, "a")
    ada = Person("ada", "tab-1")
    reservation = await have(tasks, ada, limit=120)
    assert (reservation.job.data, reservation.person) == ({"text": "a"}, ada)
    assert 90 < reservation.left <= 120
    assert await reservation.finish({"label": "cat"}) == "complete"
    assert await client.jobs.result("a") == {"label": "cat"}
    assert (await existing_job(client, "a")).history[0]["worker"] == "ada@tab-1"
    assert await tasks.status(ada, "a") == TaskStatus("finished", "ada")


async def test_answer_may_be_any_json(client: Client, tasks: TaskQueue) -> None:
    for jid, answer in (("a", False), ("b", None), ("c", [1, "é"])):
        await put(client, jid)
        await (await have(tasks, "ada")).finish(answer)
        assert await client.jobs.result(jid) == answer


async def test_invalid_answer_is_refused_and_the_job_stays_reserved(
    client: Client, tasks: TaskQueue
) -> None:
    await put(client, "a")
    reservation = await have(tasks, "ada")
    for answer in (float("nan"), object(), "x" * 2_000_000):
        with pytest.raises(InvalidData):
            await reservation.finish(answer)
    assert await tasks.current("ada") is not None


async def test_job_passes_from_machine_to_person_to_machine(client: Client, until: Until) -> None:
    seen: list[Any] = []

    @aioqless.job(klass="Review")
    async def review(job: aioqless.Job) -> aioqless.Next | None:
        if job.queue == "fetch":
            job.data["text"] = "fetched"
            return aioqless.Next("review")
        seen.append(dict(job.data))
        return None

    await client.queue("fetch").put("Review", {"n": 1}, jid="a")
    tasks = TaskQueue(client, "review", ReservationPolicy(next="publish", answer="label"))
    settings = aioqless.Settings(queues=("fetch", "publish"), poll=0.1)
    async with aioqless.Worker(client, review, settings=settings):
        reservation: Reservation = await until(lambda: tasks.reserve("ada"))
        assert reservation.job.data == {"n": 1, "text": "fetched"}
        assert await reservation.finish("cat") == "waiting"
        await client.jobs.wait("a", 60)
    assert seen == [{"n": 1, "text": "fetched", "label": "cat"}]
    assert await tasks.status("ada", "a") == TaskStatus("finished", "ada")


async def test_data_that_cannot_hold_an_answer_is_unchanged(client: Client) -> None:
    tasks = TaskQueue(client, "review", ReservationPolicy(next="publish"))
    await client.queue("review").put("Review", [1, 2], jid="a")
    reservation = await have(tasks, "ada")
    with pytest.raises(InvalidData, match="no place for an answer"):
        await reservation.finish("cat")
    await reservation.give_back()
    job = await client.jobs.get("a")
    assert job and (job.data, job.state) == ([1, 2], "waiting")


async def test_operations_are_idempotent_by_request_id(client: Client, tasks: TaskQueue) -> None:
    await put(client, "a", "b")
    first = await have(tasks, "ada", request="click-1")
    assert await first.finish("cat", request="click-2") == "complete"
    claimed = await tasks.claim("ada", "a", first.fence)
    assert claimed and await claimed.finish("dog", request="click-2") == "complete"
    assert await client.jobs.result("a") == "cat"
    with pytest.raises(WrongState):
        await claimed.finish("dog", request="click-3")
    assert (
        await tasks.reserve("ada", request="click-1") is None
    )  # the reply of the first call, whose job is over
    assert (await have(tasks, "ada", request="click-4")).job.jid == "b"


async def test_expired_reservation_is_taken_by_the_next_person_and_the_first_is_told(
    client: Client, tasks: TaskQueue, until: Until
) -> None:
    await put(client, "a")
    ada, bob = Person("ada", "1"), Person("bob", "1")
    first = await have(tasks, ada, limit=0.05)
    assert await tasks.status(ada, "a") in (TaskStatus("yours"), TaskStatus("over"))

    async def over() -> bool:
        return await tasks.current(ada) is None

    await until(over)
    assert await tasks.status(ada, "a") == TaskStatus("over")
    second = await have(tasks, bob)
    assert await tasks.status(ada, "a") == TaskStatus("taken", "bob")
    with pytest.raises(LockLost):
        await first.finish("late")
    await second.finish("cat")
    assert await tasks.status(ada, "a") == TaskStatus("finished", "bob")


async def test_worker_takes_an_abandoned_reservation(
    client: Client, tasks: TaskQueue, until: Until
) -> None:
    await put(client, "a")
    await have(tasks, "ada", limit=0.3)
    done = asyncio.Event()

    @aioqless.job(klass="Review")
    async def review(job: aioqless.Job) -> None:
        assert job.remaining == job.retries
        done.set()

    async with aioqless.Worker(
        client, review, settings=aioqless.Settings(queues=("review",))
    ):  # notified when it is due, without polling
        async with asyncio.timeout(30):
            await done.wait()


async def test_extension_is_limited_by_the_policy(redis_url: str, namespace: str) -> None:
    async with Client(redis_url, namespace=namespace, clock=Clock(1000)) as client:
        tasks = TaskQueue(client, "review", ReservationPolicy(limit=10, max_limit=60))
        await put(client, "a")
        reservation = await have(tasks, "ada", limit=1e6)
        assert reservation.left == 60
        assert await reservation.extend() == 1010
        assert await reservation.extend(1e6) == 1060
        assert (await have(tasks, "ada")).left == 60


async def test_repeated_extension_returns_the_remaining_time(
    redis_url: str, namespace: str
) -> None:
    now = 1000.0
    async with Client(redis_url, namespace=namespace, clock=lambda: now) as client:
        tasks = TaskQueue(client, "review")
        await put(client, "a")
        reservation = await have(tasks, "ada")
        await reservation.extend(100, request="click-1")
        assert reservation.left == 100
        now += 30
        assert await reservation.extend(100, request="click-1") == 1100
        assert reservation.left == 70
        now += 80
        await reservation.extend(100, request="click-1")
        assert reservation.left == 0


async def test_handed_over_job_waits_for_that_person(client: Client, tasks: TaskQueue) -> None:
    await put(client, "a")
    reservation = await have(tasks, Person("ada", "1"))
    with pytest.raises(ValueError, match="to the same person"):
        await reservation.hand_over("ada")
    await reservation.hand_over("bob")
    assert await tasks.reserve("eve") is None
    assert await tasks.status(Person("ada", "1"), "a") == TaskStatus("taken", "bob")
    assert (await have(tasks, Person("bob", "9"))).job.jid == "a"


async def test_person_without_a_session_is_told_what_happened_to_a_handed_over_job(
    client: Client, tasks: TaskQueue
) -> None:
    await put(client, "a")
    await (await have(tasks, "ada")).hand_over("bob")
    assert await tasks.status("bob", "a") == TaskStatus("yours")
    await (await have(tasks, "bob")).finish("cat")
    assert await tasks.status("bob", "a") == TaskStatus("finished", "bob")
    assert await tasks.status("eve", "a") is None


async def test_rejected_job_fails_with_the_reason(client: Client, tasks: TaskQueue) -> None:
    await put(client, "a", "b")
    await (await have(tasks, Person("ada", "1"))).fail("the picture is black")
    await (await have(tasks, "ada")).fail("no", "duplicates")
    assert await client.jobs.failed_counts() == {"review-rejected": 1, "duplicates": 1}
    job = await client.jobs.get("a")
    assert (
        job
        and job.failure
        and (job.failure.message, job.failure.worker) == ("the picture is black", "ada@1")
    )
    assert await tasks.status(Person("ada", "1"), "a") == TaskStatus("failed", "ada")


async def test_deleted_job_raises(client: Client, tasks: TaskQueue) -> None:
    await put(client, "a")
    reservation = await have(tasks, "ada")
    await client.jobs.cancel("a")
    assert await tasks.status("ada", "a") == TaskStatus("gone")
    assert await tasks.claim("ada", "a", reservation.fence) is None
    with pytest.raises(aioqless.NoSuchJob):
        await reservation.finish("cat")


async def test_job_taken_away_by_an_operator_raises(client: Client, tasks: TaskQueue) -> None:
    await put(client, "a")
    reservation = await have(tasks, "ada")
    await client.jobs.unlock("a")
    assert await tasks.status("ada", "a") == TaskStatus("waiting")
    with pytest.raises(WrongState):
        await reservation.finish("cat")
    again = await have(tasks, "ada")
    (record,) = await client.jobs.multiget(again.job.jid)
    await record.move("elsewhere")
    assert await tasks.status("ada", "a") == TaskStatus("gone")


@pytest.mark.parametrize("name", ["", "a@b", " ada", "a\nb", "x" * 65])
def test_ambiguous_name_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="name"):
        Person(name)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"limit": 0}, "limit"), ({"limit": 10, "max_limit": 5}, "max_limit"),
        ({"max_limit": 86_401}, "max_limit"), ({"next": ""}, "next"),
        ({"answer": ""}, "answer"), ({"result_ttl": 0}, "result_ttl"),
        ({"result_ttl": 1.5}, "result_ttl"),
    ],
)  # fmt: skip
def test_invalid_policy_is_refused_by_the_name_of_the_option(
    options: dict[str, Any], named: str
) -> None:
    with pytest.raises(ValueError, match=named):
        ReservationPolicy(**options)
