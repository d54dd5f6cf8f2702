"""Queues: put, pop, peek and counts."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import msgspec
import pytest

from aioqless import Client, InvalidData, Job, NewJob, chain, group, job
from aioqless.client import put_sender
from aioqless.client.client import QUEUES_PER_CALL
from aioqless.client.queue_clearing import ClearResult
from aioqless.errors import InvalidArgument, PutManyError
from tests.conftest import Until


@job(klass="Resize", retries=2)
async def resize(job: Job[Any], path: str, width: int = 100) -> None: ...


# Put


async def test_put_stores_all_options(client: Client) -> None:
    await client.queue("elsewhere").put("Other", jid="first")
    jid = await client.queue("mail").put(
        "Greet",
        {"name": "Ada"},
        jid="a",
        delay=600,
        priority=-3,
        tags=["x", "y"],
        retries=1,
        depends=["first"],
    )
    found = await client.jobs.get(jid)
    assert found and (found.jid, found.klass, found.queue, found.data) == (
        "a",
        "Greet",
        "mail",
        {"name": "Ada"},
    )
    assert (found.state, found.priority, found.tags, found.retries, found.remaining) == (
        "depends",
        -3,
        ["x", "y"],
        1,
        1,
    )
    assert (found.dependencies, found.worker, found.expires, found.failure, found.tracked) == (
        ["first"],
        "",
        0,
        None,
        False,
    )


async def test_job_with_a_time_is_scheduled_for_it_by_every_way_to_put(client: Client) -> None:
    queue, at = client.queue("mail"), datetime.now(UTC) + timedelta(hours=1)
    jids = [
        await queue.put("a", at=at),
        *await queue.put_many([NewJob("a", at=at), NewJob("a", delay=5).with_options(at=at)]),
        *(await queue.put_flow(group(NewJob("a", at=at)))).jids,
    ]
    for jid in jids:
        due = await client.redis.zscore(f"{client.namespace}:q:mail-scheduled", jid)
        assert due == pytest.approx(at.timestamp(), abs=1e-5)


async def test_options_of_put_override_those_of_a_new_job(client: Client) -> None:
    jid = await client.queue("mail").put(
        resize.data(path="a.png").with_options(delay=600, tags=["x"]), delay=0
    )
    found = await client.jobs.get(jid)
    assert found and (found.klass, found.data, found.state, found.tags) == (
        "Resize",
        {"path": "a.png"},
        "waiting",
        ["x"],
    )


async def test_context_is_stored_with_the_job(client: Client) -> None:
    mail = client.queue("mail")
    await mail.put("Greet", jid="a", context={"traceparent": "00-1-2-01"})
    await mail.put_many(
        [NewJob("Greet", jid="b", context={"traceparent": "00-3-4-01"}), NewJob("Greet", jid="c")]
    )
    read = {jid: job.context for jid in "abc" if (job := await client.jobs.get(jid))}
    assert read == {job.jid: job.context for job in await mail.pop(3)}
    assert read == {"a": {"traceparent": "00-1-2-01"}, "b": {"traceparent": "00-3-4-01"}, "c": {}}


async def test_hooks_change_jobs_before_each_kind_of_put(redis_url: str, namespace: str) -> None:
    def add_tag(new: NewJob) -> NewJob:
        return new.with_options(tags=[*(new.options.get("tags") or ()), "tenant-7"])

    def add_context(new: NewJob) -> NewJob:
        data = {**(new.data or {}), "seen": new.options["tags"]}
        return NewJob(new.klass, data, **new.options).with_options(context={"request": "r1"})

    async with Client(redis_url, namespace=namespace, on_put=[add_tag, add_context]) as client:
        mail = client.queue("mail")
        await mail.put("Greet", tags=["own"])
        await mail.put_many([NewJob("Greet")] * 2)
        await client.put_flow(chain(NewJob("Greet")), queue="mail")
        await client.job_set("all").put("Greet", queue="mail")
        jobs = await mail.pop(9)
    assert [job.tags for job in jobs] == [["own", "tenant-7"], *[["tenant-7"]] * 4]
    assert [job.data["seen"] for job in jobs] == [job.tags for job in jobs]
    assert {job.context["request"] for job in jobs} == {"r1"}


async def test_hook_that_returns_no_job_is_named(client: Client) -> None:
    client.on_put.append(cast(Any, print))
    with pytest.raises(TypeError, match=r"print> of on_put must return the job to put \(got None"):
        await client.put("Greet")


@pytest.mark.parametrize(
    ("context", "error"),
    [({"a": 1}, TypeError), ("a", TypeError), ({"a": "x" * 5_000}, InvalidData)],
)
async def test_context_must_be_a_small_mapping_of_texts(
    client: Client, context: Any, error: type[Exception]
) -> None:
    with pytest.raises(error):
        await client.queue("mail").put("Greet", context=context)


async def test_put_of_a_new_job_refuses_separate_data(client: Client) -> None:
    with pytest.raises(TypeError, match="has its data already"):
        await client.queue("mail").put(resize.data(path="a.png"), {"path": "b.png"})


async def test_put_without_a_jid_generates_one(client: Client) -> None:
    jids = {await client.queue("mail").put("Greet") for _ in range(20)}
    assert len(jids) == 20 and all(len(jid) == 24 for jid in jids)


async def test_put_with_an_option_named_as_a_parameter_says_how_data_is_passed(
    client: Client,
) -> None:
    @job
    async def look(job: Job, jid: str) -> None: ...

    with pytest.raises(InvalidData, match=r"pass data with handler\.data\(\.\.\.\)"):
        await client.put(look, jid="x")


async def test_put_refuses_data_above_the_clients_limit(redis_url: str, namespace: str) -> None:
    async with Client(redis_url, namespace=namespace, max_data=1000) as small:
        await small.queue("mail").put("Greet", "x" * 998)
        with pytest.raises(InvalidData, match="at most 1,000 bytes, the client's max_data"):
            await small.queue("mail").put("Greet", "x" * 999)
        (running,) = await small.queue("mail").pop()
        running.data = "x" * 999
        with pytest.raises(InvalidData, match="max_data"):
            await running.complete()


async def test_concurrent_puts_get_their_own_results(client: Client) -> None:
    """The puts are sent in one call."""
    mail, billing = client.queue("mail"), client.queue("billing")
    puts = [(mail if n % 3 else billing).put("Greet", n, jid=f"j{n}") for n in range(250)]
    assert await asyncio.gather(*puts) == [f"j{n}" for n in range(250)]
    assert await mail.length() + await billing.length() == 250


async def test_invalid_put_among_concurrent_puts_fails_alone(client: Client) -> None:
    mail = client.queue("mail")
    answers = await asyncio.gather(
        mail.put("Greet", jid="a"),
        mail.put("Greet", jid="b", retries=cast(int, 1.5)),
        mail.put("Greet", jid="c"),
        return_exceptions=True,
    )
    assert answers[0] == "a" and isinstance(answers[1], InvalidArgument) and answers[2] == "c"
    assert await mail.jids("waiting") == ["a", "c"]


async def test_puts_into_more_queues_than_are_remembered_all_arrive(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(put_sender, "MAX_IDLE_BATCHERS", 2)
    names = [f"mail-{number}" for number in range(6)] * 2
    await asyncio.gather(*(client.queue(name).put("Greet") for name in names))
    for name in names:
        await client.queue(name).put("Greet")
    assert [await client.queue(name).length() for name in names[:6]] == [4] * 6


async def test_put_is_executed_although_its_caller_was_canceled(
    client: Client, until: Until
) -> None:
    caller = asyncio.ensure_future(client.queue("mail").put("Greet", jid="a"))
    await asyncio.sleep(0)
    caller.cancel()
    await asyncio.wait([caller])
    await until(lambda: client.jobs.get("a"))


# Put many


async def test_put_many_keeps_the_order_and_individual_options(client: Client) -> None:
    jobs = [
        NewJob("Greet", {"n": n}, tags=["all", f"t{n % 2}"], delay=600 * (n == 3))
        for n in range(330)
    ]
    jids = await client.queue("mail").put_many(jobs)
    assert [found.data["n"] for found in await client.jobs.multiget(*jids)] == list(range(330))
    assert await client.queue("mail").jids("scheduled") == [jids[3]]
    assert (await client.jobs.tagged_jids("t1"))[0] == 165


async def test_put_many_spreads_jobs_without_a_time_of_their_own(
    redis_url: str, namespace: str
) -> None:
    async with Client(redis_url, namespace=namespace, clock=lambda: 1000.0) as client:
        jobs = [NewJob("Greet", delay=99 * (n == 2)) for n in range(4)]
        jids = await client.put_many(jobs, queue="mail", spread=timedelta(minutes=1))
        due = client.redis.zscore
        dues = [await due(f"{namespace}:q:mail-scheduled", jid) for jid in jids]
    assert [due and round(due) for due in dues] == [None, 1015, 1099, 1045]


async def test_put_many_splits_large_data_into_calls_of_limited_size(client: Client) -> None:
    jids = await client.queue("mail").put_many(
        NewJob("Greet", "x" * 200_000, jid=f"j{n}") for n in range(7)
    )
    assert jids == [f"j{n}" for n in range(7)]


async def test_put_many_with_a_malformed_job_sends_nothing(client: Client) -> None:
    with pytest.raises(ValueError, match="klass must not be empty"):
        await client.queue("mail").put_many([NewJob("Greet"), NewJob(""), NewJob("Greet")])
    assert await client.queue("mail").length() == 0


async def test_put_many_puts_the_other_jobs_when_one_is_refused(client: Client) -> None:
    with pytest.raises(
        PutManyError, match=r"of 4 jobs, 2 \(1: b, 3: d\) refused; the others were put"
    ) as refused:
        await client.queue("mail").put_many(
            [
                NewJob("K", jid="a"),
                NewJob("K", jid="b", retries=cast(int, 1.5)),
                NewJob("K", jid="c"),
                NewJob("K", jid="d", depends=["d"]),
            ]
        )
    assert [type(each) for each in refused.value.exceptions] == [InvalidArgument, InvalidArgument]
    assert [str(each) for each in refused.value.exceptions] == [
        "put_many: retries '1.5' is not an integer",
        "put_many: depends 'd' is the job itself, which could never run",
    ]
    assert await client.queue("mail").jids("waiting") == ["a", "c"]
    error = refused.value
    assert error.jids == ["a", "b", "c", "d"] and list(error.refused) == [1, 3]
    assert not error.unknown and not error.not_durable


# Refused before anything is sent


@pytest.mark.parametrize("name", ["", "a\nb", "x" * 600, "\ud800"])
async def test_invalid_queue_name_is_refused(client: Client, name: str) -> None:
    queue = client.queue(name)
    for call in (
        queue.put("Greet"), queue.put_many([NewJob("Greet")]),
        queue.recur("Greet", every=1, jid="r"),
        queue.unfail("g"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match="queue "):
            await call


@pytest.mark.parametrize(
    ("options", "kind", "why"),
    [
        ({"klass": ""}, ValueError, "klass must not be empty"),
        (
            {"klass": 7},
            TypeError,
            "klass must be a handler, which @job makes of a function, or a string \\(got 7\\)",
        ),
        ({"jid": "a-history"}, ValueError, "must not end in"),
        ({"delay": -1}, ValueError, "delay must be finite and >= 0"),
        ({"retries": -1}, ValueError, r"retries must be .* \(got -1\)"),
        ({"tags": "x"}, TypeError, r"tags must be a list of strings \(got the string 'x'\)"),
        ({"data": float("inf")}, InvalidData, "can't be written as JSON"),
        ({"colour": "red"}, TypeError, "colour"),
    ],
)
async def test_invalid_put_option_is_refused(
    client: Client, options: dict[str, Any], kind: type[Exception], why: str
) -> None:
    with pytest.raises(kind, match=why):
        await client.queue("mail").put(options.pop("klass", "Greet"), **options)
    assert await client.queues() == []


# Pop, peek


async def test_pop_returns_jobs_in_order_and_locks_them_for_this_client(client: Client) -> None:
    for jid in "abc":
        await client.queue("mail").put("Greet", {"jid": jid}, jid=jid)
    popped = await client.queue("mail").pop(2)
    assert [(each.jid, each.state, each.worker, each.data) for each in popped] == [
        ("a", "running", client.name, {"jid": "a"}), ("b", "running", client.name, {"jid": "b"}),
    ]  # fmt: skip
    assert popped[0].expires > time.time() + 50 and popped[0].fence < popped[1].fence
    assert [each.jid for each in await client.queue("mail").pop(5, worker="another")] == ["c"]
    assert await client.queue("mail").pop() == []


async def test_peek_returns_the_next_jobs_without_locking(client: Client) -> None:
    for jid in "abc":
        await client.queue("mail").put("Greet", jid=jid)
    assert [each.jid for each in await client.queue("mail").peek(count=2)] == ["a", "b"]
    assert [each.jid for each in await client.queue("mail").peek(offset=2)] == ["c"]
    assert (await client.queue("mail").counts()).running == 0


# Counting


async def test_counts_are_by_state(client: Client) -> None:
    queue = client.queue("mail")
    for number in range(5):
        await queue.put("Greet", jid=f"j{number}")
    await queue.put("Greet", jid="later", delay=600)
    await queue.put("Greet", jid="held", depends=["j4"])
    await queue.recur("Greet", every=600, offset=600, jid="often")
    await queue.pop(2)
    expected = {
        "waiting": 3,
        "running": 2,
        "stalled": 0,
        "scheduled": 1,
        "depends": 1,
        "recurring": 1,
        "paused": False,
        "name": "mail",
    }
    assert msgspec.structs.asdict(await queue.counts()) == expected
    today = {
        "popped": 2,
        "completed": 0,
        "failures": 0,
        "retries": 0,
        "lost_locks": 0,
        "explicit_retries": 0,
    }
    assert [msgspec.structs.asdict(each) for each in await client.queues()] == [
        {**expected, **today}
    ]
    assert await queue.length() == 6
    jids = {
        state: await queue.jids(state)
        for state in ("waiting", "running", "scheduled", "depends", "recurring", "stalled")
    }
    assert jids == {
        "waiting": ["j2", "j3", "j4"], "running": ["j0", "j1"], "stalled": [],
        "scheduled": ["later"], "depends": ["held"], "recurring": ["often"],
    }  # fmt: skip
    assert await queue.jids("waiting", offset=1, count=1) == ["j3"]
    with pytest.raises(InvalidArgument, match="must be one of waiting"):
        await queue.jids("asleep")


async def test_more_queues_than_one_call_counts_are_read_by_several(client: Client) -> None:
    names = [f"q{number}" for number in range(QUEUES_PER_CALL + 2)]
    await asyncio.gather(*(client.queue(name).put("Greet") for name in names))
    assert {each.name for each in await client.queues()} == set(names)
    assert len(await client.queues(offset=1, count=QUEUES_PER_CALL + 1)) == QUEUES_PER_CALL + 1
    assert len(await client.queues(offset=QUEUES_PER_CALL)) == 2
    assert await client.queues(count=0) == []


async def test_statistics_of_a_day_are_counted(client: Client) -> None:
    queue = client.queue("mail")
    for _ in range(2):
        await queue.put("Greet")
        (running,) = await queue.pop()
        await running.complete()
    await queue.put("Greet")
    (running,) = await queue.pop()
    await running.retry()
    (running,) = await queue.pop()
    await running.fail("x", group="typo")
    stats = await queue.stats()
    assert (stats.failed, stats.failures, stats.wait.count, stats.run.count) == (
        1,
        1,
        4,
        2,
    )
    assert (stats.retries, stats.lost_locks, stats.explicit_retries) == (1, 0, 1)
    assert len(stats.run.histogram) == 148
    assert (await queue.stats(time.time() - 86400)).run.count == 0


async def test_repr_of_a_queue_has_its_name(client: Client) -> None:
    assert repr(client.queue("mail")) == "<Queue 'mail'>" and client.queue("mail").name == "mail"


# Clear


async def test_clear_deletes_all_jobs_but_running_ones(client: Client) -> None:
    mail = client.queue("mail")
    await mail.put("Greet", jid="fails")
    (fails,) = await mail.pop()
    await fails.fail("no such word", group="typo")
    await mail.put("Greet", jid="running")
    await mail.pop()
    await mail.put_many(
        NewJob("Greet", jid=f"n{number}", delay=number % 2 * 60) for number in range(600)
    )
    await mail.put_flow(
        chain(
            NewJob("Greet", jid="first"), group(NewJob("Greet"), NewJob("Greet")), NewJob("Greet")
        )
    )
    await mail.put("Greet", jid="needed")
    await client.queue("post").put("Greet", jid="elsewhere", depends=["needed"])
    expected = ClearResult(canceled=604, kept=1, kept_for={"needed": "elsewhere"})
    seen: list[int] = []
    assert await mail.clear(dry_run=True) == expected
    assert await mail.clear(step=seen.append) == expected
    assert sum(seen) == 605 and len(seen) > 3
    counts = await mail.counts()
    assert {state: getattr(counts, state) for state in ("waiting", "running", "scheduled",
        "depends")} == {
        "waiting": 1, "running": 1, "scheduled": 0, "depends": 0,
    }  # fmt: skip
    assert (await mail.clear(["failed"])).canceled == 1 and await client.jobs.failed_counts() == {}
    assert await client.check() == []


async def test_clear_ends_although_jobs_are_put_meanwhile(client: Client) -> None:
    mail = client.queue("mail")
    await mail.put("Greet")

    async def put_more(step: int) -> None:
        await mail.put_many(NewJob("Greet", priority=-1) for _ in range(step))

    puts: list[asyncio.Task[None]] = []
    cleared = await mail.clear(step=lambda step: puts.append(asyncio.create_task(put_more(300))))
    await asyncio.gather(*puts)
    assert cleared.canceled >= 1


@pytest.mark.parametrize("states", ["waiting", ["running"], ["waiting", "Failed"]])
async def test_clear_refuses_an_invalid_state_before_anything_is_deleted(
    client: Client, states: Any
) -> None:
    await client.queue("mail").put("Greet", jid="a")
    with pytest.raises(ValueError, match="states must be"):
        await client.queue("mail").clear(states)
    assert await client.jobs.get("a")
