"""Jobs that get other data: their unique key, limits, tenant and bulk are those of the new data."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from aioqless import (
    Client,
    Fair,
    InvalidData,
    Job,
    JobRecord,
    Key,
    Limit,
    Next,
    Retry,
    Settings,
    Snooze,
    Unique,
    Worker,
    WrongState,
    bulk_job,
    chain,
    job,
)
from aioqless.contrib.human_tasks import Person, ReservationPolicy, TaskQueue
from tests.conftest import Until


@job(
    klass="Sync", queue="mail", unique=("customer",), fair=Fair(("customer",)),
    limits=[Limit(("customer",), max_concurrency=1)],
)  # fmt: skip
async def sync(job: Job[Any], customer: int, full: bool = False) -> None: ...


@bulk_job(klass="Rows", queue="mail", size=2, within=600, together_by=("customer",))
async def rows(jobs: list[Job[Any]]) -> None: ...


EIGHT = {"customer": 8}


async def put(client: Client, **options: Any) -> JobRecord:
    return await (await client.put(sync.data(7), jid="a", **options)).job()


async def run(client: Client) -> Job[Any]:
    await put(client)
    (found,) = await client.queue("mail").pop(1)
    found.data["customer"] = 8
    return found


async def fail_and_retry(client: Client) -> None:
    await put(client)
    await (await client.queue("mail").pop(1))[0].fail("wrong customer")
    await client.jobs.retry("a", data=EIGHT)


async def fail_with_changed_data_and_retry(client: Client) -> None:
    await (await run(client)).fail("wrong customer")
    await client.jobs.retry("a")


async def retry_run(client: Client) -> None:
    await (await run(client)).retry()


async def retry_run_after_heartbeat(client: Client) -> None:
    found = await run(client)
    await found.heartbeat()
    await found.retry()


async def release_run(client: Client) -> None:
    await (await run(client)).release()


async def advance(client: Client) -> None:
    await (await run(client)).complete("mail")


async def move(client: Client) -> None:
    found = await put(client)
    await found.move("mail", data={**found.data, "customer": 8})


async def edit_waiting(client: Client) -> None:
    await put(client)
    await client.jobs.edit("a", EIGHT)


async def edit_failed(client: Client) -> None:
    await put(client)
    await (await client.queue("mail").pop(1))[0].fail("wrong customer")
    await client.jobs.edit("a", EIGHT)
    await client.jobs.retry("a")


async def edit_held_back(client: Client) -> None:
    limit = Limit(Key("Sync:[7]"), max_concurrency=1)
    holder = await client.queue("holder").put("Holder", limits=[limit])
    await client.queue("holder").pop(1)
    await put(client)
    assert await client.queue("mail").pop(1) == []
    assert (await client.jobs.multiget("a"))[0].held_back
    await client.jobs.edit("a", EIGHT)
    await client.jobs.cancel(holder)


async def finish_by_a_person(client: Client) -> None:
    await put(client)
    tasks = TaskQueue(client, "mail", ReservationPolicy(next="mail", answer="customer"))
    reservation = await tasks.reserve(Person("ada"))
    assert reservation
    await reservation.finish(8)


async def _work(client: Client, until: Callable[[], Awaitable[bool]], end: object) -> None:
    @job(klass="Sync", queue="mail")
    async def once(job: Job[Any], customer: int, full: bool = False) -> object:
        job.data["customer"] = 8
        await client.queue("mail").pause()
        if isinstance(end, Exception):
            raise end
        return end

    await put(client)
    async with Worker(client, once, settings=Settings(queues=("mail",))):
        await until()
    await client.queue("mail").resume()


@pytest.mark.parametrize(
    "change",
    [
        fail_and_retry, fail_with_changed_data_and_retry, retry_run, retry_run_after_heartbeat,
        release_run, advance, move, edit_waiting, edit_failed, edit_held_back, finish_by_a_person,
        Retry(delay=0), Snooze(0.001), Next("mail"),
    ],
    ids=lambda change: getattr(change, "__name__", type(change).__name__),
)  # fmt: skip
async def test_job_with_other_data_has_its_keys(client: Client, change: Any, until: Until) -> None:
    async def is_changed() -> bool:
        (found,) = await client.jobs.multiget("a")
        return bool(found.data["customer"] == 8 and found.state != "running")

    if callable(change):
        await change(client)
    else:
        await _work(client, lambda: until(is_changed), change)
    assert await is_changed()
    assert await client.put(sync.data(8), jid="x") == "a"
    assert await client.put(sync.data(7), jid="b") == "b"
    mail = client.queue("mail")
    assert len(await mail.peek()) == 2
    assert {each.key for each in await mail.tenants()} == {"customer=7", "customer=8"}
    assert {each.jid for each in await mail.pop(5)} == {"a", "b"}
    await mail.put("Other", limits=[Limit(Key("Sync:[8]"), max_concurrency=1)])
    assert await mail.pop(1) == [], "the limit counts the job"
    assert await client.check() == []


async def test_bulk_of_an_edited_job_is_that_of_its_data(client: Client) -> None:
    mail = client.queue("mail")
    first, second = [await client.put(rows, {"customer": number}) for number in (7, 8)]
    assert await mail.pop(5) == []
    await client.jobs.edit(first, EIGHT)
    assert {each.state for each in await client.jobs.multiget(first, second)} == {
        "scheduled",
        "waiting",
    }
    assert await client.check() == []


@pytest.mark.parametrize("options", [{"delay": 600}, {"depends": ["other"]}])
async def test_edit_keeps_all_but_the_data(client: Client, options: dict[str, Any]) -> None:
    await client.queue("mail").put("Other", jid="other", delay=900)
    before = await put(client, **options, expires_in=7200, priority=3, tags=["x"], retries=2)
    await client.jobs.edit("a", {"customer": 8, "full": True})
    (after,) = await client.jobs.multiget("a")
    assert after.data == {"customer": 8, "full": True}
    for name in ("state", "queue", "expiry", "priority", "tags", "retries", "remaining"):
        assert getattr(after, name) == getattr(before, name), name
    due = await client.redis.zscore(f"{client.namespace}:q:mail-scheduled", "a")
    assert (due is None) == ("depends" in options)
    assert await client.put(sync.data(8), jid="x") == "a"


async def test_edited_job_keeps_its_place(client: Client) -> None:
    mail = client.queue("mail")
    jids = [await mail.put("Sync", {"n": n}, unique=("n",)) for n in range(3)]
    await client.jobs.edit(jids[0], {"n": 7})
    assert [each.jid for each in await mail.pop(3)] == jids


async def test_edited_job_stays_in_its_set(client: Client) -> None:
    imports = client.job_set("import")
    await imports.put_many([sync.data(7)])
    (jid,) = [each async for each in imports.jids("open")]
    await client.jobs.edit(jid, EIGHT)
    assert [each async for each in imports.jids("open")] == [jid]
    assert await client.put(sync.data(8)) == jid


async def test_costs_and_limits_follow_the_data_each_by_its_own_fields(client: Client) -> None:
    limits = [
        Limit(("tenant",), max_concurrency=9),
        Limit(Key("tokens"), rate=(100, 60), cost="tokens"),
        Limit(("model",), max_concurrency=9),
    ]
    data = {"tenant": "t", "tokens": 40, "model": "m"}
    jid = await client.queue("mail").put("Ask", data, limits=limits)
    await client.jobs.edit(jid, {**data, "tokens": 70, "model": "n"})
    (found,) = await client.jobs.multiget(jid)
    assert found.constraints
    assert '"cost":70' in found.constraints
    assert 'Ask:[\\"t\\"]' in found.constraints and 'Ask:[\\"n\\"]' in found.constraints
    with pytest.raises(InvalidData, match="cost must be at most 100"):
        await client.jobs.edit(jid, {**data, "tokens": 101})
    with pytest.raises(InvalidData, match="the same key"):
        await client.jobs.edit(jid, {**data, "model": "t"})
    with pytest.raises(InvalidData, match="is made of the field 'tenant'"):
        await client.jobs.edit(jid, {"tokens": 1, "model": "m"})
    assert (await client.jobs.multiget(jid))[0].data["tokens"] == 70


async def test_key_that_another_job_has_stays_that_ones(client: Client) -> None:
    await put(client)
    other = await client.put(sync.data(8))
    await client.jobs.edit("a", EIGHT)
    assert await client.put(sync.data(8)) == other
    assert await client.put(sync.data(7), jid="b") == "b"


@pytest.mark.parametrize("number", [7, 7.0])
async def test_numbers_that_are_equal_make_one_key(client: Client, number: float) -> None:
    @job(klass="Measure", unique=("value",))
    async def measure(job: Job[Any], value: float) -> None: ...

    jid = await client.put(measure.data(value=3))
    await client.jobs.edit(jid, {"value": number})
    assert await client.put(measure.data(value=7)) == jid


async def test_follow_up_of_a_debounced_job_gets_the_key_that_an_edit_frees(
    client: Client, until: Until
) -> None:
    async def page(number: int) -> str:
        return await client.queue("mail").put(
            "Page", {"page": number}, unique=Unique(("page",), debounce=0.001)
        )

    first = await page(1)
    (running,) = await until(lambda: client.queue("mail").pop(1))
    follow_up = await page(1)
    assert follow_up != first
    running.data["page"] = 2
    await running.release(60)
    (found,) = await client.jobs.multiget(follow_up)
    assert found.state in ("waiting", "scheduled")
    assert await page(1) == follow_up


async def test_instances_have_the_keys_of_the_data_that_their_recurring_job_has_now(
    client: Client,
) -> None:
    mail = client.queue("mail")
    recurring = await mail.recur(sync.data(7), every=600, jid="r")
    await recurring.update(data=EIGHT)
    instance = await recurring.run_now()
    assert await client.put(sync.data(8)) == instance
    assert await client.put(sync.data(7)) != instance


async def test_running_and_complete_jobs_are_not_edited(client: Client) -> None:
    found = await run(client)
    with pytest.raises(WrongState, match="the job is running"):
        await client.jobs.edit("a", EIGHT)
    await found.complete()
    with pytest.raises(WrongState, match="the job is complete"):
        await client.jobs.edit("a", EIGHT)


async def test_edit_of_data_that_has_changed_since_it_was_read_is_refused(client: Client) -> None:
    first, second = await put(client), (await client.jobs.multiget("a"))[0]
    await first.edit(EIGHT)
    with pytest.raises(WrongState, match="its data has changed meanwhile"):
        await second.edit({"customer": 9})
    assert first.data == EIGHT
    await first.edit({"customer": 10})
    assert (await second.refresh()).data == {"customer": 10}


async def test_job_that_a_put_replaces_has_the_constraints_of_that_put(client: Client) -> None:
    await put(client)
    await client.queue("mail").put("Other", jid="a", delay=60)
    assert await client.put(sync.data(7), jid="b") == "b"
    assert {each.key for each in await client.queue("mail").tenants()} == {"customer=7"}
    assert await client.check() == []


async def page(client: Client, number: int, **data: object) -> str:
    return await client.queue("mail").put(
        "Page",
        {"page": number, **data},
        unique=Unique(("page",), debounce=0.001),
        fair=Fair(("tenant",)),
    )


async def test_follow_up_whose_key_stays_is_still_held(client: Client, until: Until) -> None:
    await page(client, 1, tenant="a")
    assert await until(lambda: client.queue("mail").pop(1))
    follow_up = await page(client, 1, tenant="a")
    await client.jobs.edit(follow_up, {"page": 1, "tenant": "b"})
    assert (await client.jobs.multiget(follow_up))[0].state == "depends"
    await client.jobs.edit(follow_up, {"page": 2, "tenant": "b"})
    assert (await client.jobs.multiget(follow_up))[0].state != "depends"
    assert await client.check() == []


async def test_running_job_has_the_keys_of_the_data_that_its_heartbeat_stored(
    client: Client,
) -> None:
    found = await run(client)
    await found.heartbeat()
    assert await client.put(sync.data(8)) == "a"
    mail = client.queue("mail")
    limited = [
        await mail.put("Other", limits=[Limit(Key(f"Sync:[{n}]"), max_concurrency=1)])
        for n in (7, 8)
    ]
    assert [each.jid for each in await mail.pop(5)] == limited[:1]
    await found.complete()
    assert [each.jid for each in await mail.pop(5)] == limited[1:]
    assert await client.check() == []


async def test_last_of_two_edits_decides_about_the_keys(client: Client) -> None:
    first = await put(client)
    await client.jobs.edit("a", {"customer": 9})
    await first.move("mail", data={**first.data, "full": True})
    assert await client.put(sync.data(7)) == "a"
    assert await client.put(sync.data(9), jid="b") == "b"


async def test_place_among_the_jobs_of_a_tenant_is_kept(client: Client) -> None:
    mail = client.queue("mail")
    tenant: dict[str, Any] = {"fair": Fair(("tenant",)), "unique": ("n",)}
    jids = [await mail.put("Sync", {"n": n, "tenant": "a"}, **tenant) for n in range(3)]
    await client.jobs.edit(jids[0], {"n": 7, "tenant": "a"})
    assert [each.jid for each in await mail.pop(3)] == jids
    assert await client.check() == []


async def test_job_that_was_taken_from_its_worker_is_still_the_next(client: Client) -> None:
    mail = client.queue("mail")
    await run(client)
    await client.jobs.unlock("a")
    await mail.put("Other", priority=-5)
    await client.jobs.edit("a", EIGHT)
    assert [each.jid for each in await mail.pop(1)] == ["a"]


async def test_released_job_takes_the_turn_of_its_new_tenant(client: Client) -> None:
    mail = client.queue("mail")
    found = await run(client)
    others = [await mail.put("Other", {"customer": 8}, fair=Fair(("customer",))) for _ in range(2)]
    await found.release()
    assert [each.jid for each in await mail.pop(5)] == [*others, "a"]


async def test_job_that_replaces_a_step_still_gives_its_result_and_takes_no_others(
    client: Client,
) -> None:
    @job(klass="Make", result_ttl=60)
    async def make(job: Job[Any]) -> int:
        return 1

    @job(klass="Use", result_ttl=60)
    async def use(job: Job[Any], number: int) -> int:
        return number

    made = make.data()
    flow = await client.queue("mail").put_flow(chain(made, use.data(number=made.result)))
    async with Worker(client, make, use, settings=Settings(queues=("mail",))):
        await client.queue("mail").put(make, jid=flow.jids[0])
        assert await client.jobs.result(flow.jids[1], timeout=60) == 1
    key = f"{client.namespace}:x:result:{flow.jids[0]}"
    assert 0 < await client.redis.ttl(key) <= 60
