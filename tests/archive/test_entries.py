"""Archive entries: one for each end of a stage."""

from __future__ import annotations

from typing import Any

from aioqless import Client, Fair, Inject, Job, Key, Settings, Worker, job
from aioqless.client import acting_as
from aioqless.contrib.archive import Event, Run, parse
from aioqless.contrib.human_tasks.generated_commands import HumanTasksCommands
from aioqless.store import PutFlowRow
from tests.archive.conftest import Archived

T = 1_763_722_222.123456
MICROS = 1_763_722_222_123_456


async def read_events(client: Client) -> list[Event]:
    entries: Any = await client.redis.xrange(f"{client.namespace}:x:archive")
    return [
        parse(id.decode(), {name.decode(): text.decode() for name, text in fields.items()})
        for id, fields in entries
    ]


async def test_nothing_is_archived_without_the_option(story: Archived) -> None:
    for off in ("off", None):
        await (story.configure(archive=off) if off else story.store.config_unset(option="archive"))
        await story.completed("a")
        await story.failed("b", 3, 4, 5)
        await story.cancel("b")
    assert not await story.exists("x:archive")


async def test_entry_of_a_completed_job_has_all_fields(story: Archived) -> None:
    await story.put("on", T - 1, queue="post")
    await story.put("a", T, tags=["x", "y"], priority=-3, retries=7, depends=["on"])
    await story.cancel("a", "on")
    await story.change("DEL", "x:archive")
    await story.running("a", T, T + 1.000001, tags=["x", "y"], priority=-3, retries=7)
    await story.complete("a", T + 2.5)
    event = await story.event()
    assert (event.what, event.jid, event.klass, event.queue, event.was, event.state) == (
        "complete",
        "a",
        "Greet",
        "mail",
        "running",
        "complete",
    )
    assert (event.priority, event.tags, event.worker, event.retries, event.remaining) == (
        -3,
        ("x", "y"),
        "ann",
        7,
        7,
    )
    assert (event.put, event.popped, event.ended) == (
        MICROS,
        MICROS + 1_000_001,
        MICROS + 2_500_000,
    )
    assert event.fence == int((await story.job("a"))["x-fence"])
    assert event.runs == (
        Run(MICROS, MICROS + 1_000_001, MICROS + 2_500_000, "complete", "ann", event.fence),
    )
    assert not event.swept and event.data is None


async def test_entry_has_the_set_the_tenant_and_the_deadline_of_a_job(client: Client) -> None:
    await client.config.set("archive", "on")
    imports = client.job_set("import-42")
    await imports.put("Load", jid="member", fair=Fair(Key("customer=7")), expires_in=60)
    member = await client.jobs.get("member")
    await client.jobs.cancel("member")
    (event,) = await read_events(client)
    assert member is not None and event.expires == round(member.expiry * 1e6)
    assert (event.job_set, event.tenant) == ("import-42", "customer=7")


async def test_entries_say_when_each_run_was_due(story: Archived) -> None:
    await story.put("a", T, delay=60)
    assert await story.pop(T + 61) == ["a"]
    await story.retry("a", T + 62, delay=30)
    assert await story.pop(T + 95) == ["a"]
    await story.release("a", T + 96)
    assert await story.pop(T + 97) == ["a"]
    await story.complete("a", T + 98)
    event = await story.event()
    due, again = MICROS + 60_000_000, MICROS + 92_000_000
    assert [run.due for run in event.runs] == [due, again, again] and event.due == again


async def test_due_time_of_a_job_that_is_put_again_is_forgotten(story: Archived) -> None:
    await story.put("a", 1, delay=600)
    await story.put("a", 2)
    assert await story.pop(3) == ["a"]
    await story.complete("a", 4, next="post")
    moved, advanced = await story.events()
    assert (moved.due, advanced.due) == (601_000_000, None)


async def test_due_time_of_a_job_that_waits_for_another_or_was_declined_is_kept(
    story: Archived,
) -> None:
    await story.put("a", 1)
    await story.put("b", 1, delay=60, depends=["a"])
    assert await story.pop(2) == ["a"]
    await story.complete("a", 3)
    assert await story.pop(62) == ["b"]
    await story.store.decline(
        jid="b", worker="ann", now=63, delay=5, timeout=600, group="g", message=""
    )
    assert await story.pop(70) == ["b"]
    await story.complete("b", 71)
    assert [event.due for event in await story.events()] == [None, 61_000_000]


async def test_entries_have_the_version_of_the_code_of_each_run(story: Archived) -> None:
    await story.put("a", 0)
    for at, version in ((1, "v1"), (3, None), (5, "v2 beta")):
        await story.store.pop_many(
            worker="ann", count=1, now=at, order="ordered", batch=[{"queue": "mail"}],
            version=version,
        )  # fmt: skip
        await (story.complete if at == 5 else story.retry)("a", at + 1)
    event = await story.event()
    assert [run.version for run in event.runs] == ["v1", None, "v2 beta"]
    assert event.version == "v2 beta"


async def test_entry_of_a_canceled_job_has_the_actor(client: Client) -> None:
    @job(queue="work")
    async def cancel_another(_: Job, client: Client = Inject) -> None:
        await client.jobs.cancel("by-worker")

    await client.config.set("archive", "on")
    await client.job_set("import").put("Load", jid="of-set", queue="mail")
    for jid in ("unknown", "alone", "cleared", "by-worker"):
        await client.queue("mail").put("Load", jid=jid)
    await client.jobs.cancel("unknown")
    with acting_as("eve"):
        await client.jobs.cancel("alone")
        await client.job_set("import").cancel()
    await client.put(cancel_another.data())
    await Worker(
        client, [cancel_another], settings=Settings(queues=["work"], burst=True), name="ann"
    ).run()
    with acting_as("bob"):
        await client.queue("mail").clear()
    found = await read_events(client)
    actors = {event.jid: event.actor for event in found if event.what == "cancel"}
    assert actors == {
        "unknown": None, "alone": "eve", "of-set": "eve", "by-worker": "ann", "cleared": "bob",
    }  # fmt: skip


async def test_entry_of_an_advanced_stage_has_the_next_queue(story: Archived) -> None:
    await story.put("other", 0, queue="post")
    await story.running("a")
    await story.complete("a", 2, next="post", depends=["other"])
    event = await story.event()
    assert (event.what, event.queue, event.to, event.state, event.depends) == (
        "advance",
        "mail",
        "post",
        "depends",
        (),
    )


async def test_entry_of_a_failed_job_has_group_and_message(story: Archived) -> None:
    await story.failed("a", group="typo")
    event = await story.event()
    assert (event.what, event.state, event.group, event.message, event.worker) == (
        "fail",
        "failed",
        "typo",
        "no such word",
        "ann",
    )
    assert event.runs[0].how == "fail" and event.runs[0].group == "typo"


async def test_job_failed_by_an_operator_has_no_run(story: Archived) -> None:
    await story.put("a", 3)
    await story.store.fail(jid="a", worker="", group="odd", message="", now=5)
    event = await story.event()
    assert (event.what, event.was, event.put, event.popped, event.worker, event.runs) == (
        "fail",
        "waiting",
        3_000_000,
        None,
        None,
        (),
    )


async def test_entry_of_exhausted_retries_lists_the_runs(
    story: Archived,
) -> None:
    await story.running("a", retries=1)
    await story.retry("a", 2.5, group="flaky", message="try again")
    await story.pop(3.25, worker="bob")
    await story.retry("a", 4, worker="bob", group="flaky", message="no more")
    event = await story.event()
    assert (event.what, event.group, event.message, event.remaining) == (
        "fail",
        "flaky",
        "no more",
        -1,
    )
    first, second = event.runs
    assert (first.put, first.popped, first.ended, first.how, first.worker) == (
        0,
        1_000_000,
        2_500_000,
        "retried",
        "ann",
    )
    assert (first.group, first.message) == ("flaky", "try again")
    assert (second.put, second.popped, second.ended, second.how, second.worker) == (
        2_500_000,
        3_250_000,
        4_000_000,
        "fail",
        "bob",
    )
    assert first.fence and second.fence and first.fence < second.fence
    assert event.put == 0
    assert "x-runs" not in await story.job("a")


async def test_lost_lock_is_one_of_the_runs(story: Archived) -> None:
    await story.configure(grace_period=0)
    await story.running("a")
    assert await story.pop(100, worker="bob") == ["a"]
    await story.complete("a", 101, worker="bob")
    first, second = (await story.event()).runs
    assert (first.how, first.worker, first.popped, first.ended) == (
        "lost",
        "ann",
        1_000_000,
        100_000_000,
    )
    assert (second.how, second.worker, second.put, second.popped) == (
        "complete",
        "bob",
        1_000_000,
        100_000_000,
    )


async def test_retries_exhausted_by_lost_locks_are_archived_as_failed(story: Archived) -> None:
    await story.configure(grace_period=0)
    await story.running("a", retries=0)
    assert await story.pop(100, worker="bob") == []
    event = await story.event()
    assert (event.what, event.group, event.remaining) == ("fail", "failed-retries-mail", -1)


async def test_released_and_timed_out_jobs_keep_their_runs(
    story: Archived,
) -> None:
    await story.running("a")
    await story.release("a", 2)
    await story.pop(3)
    await story.timeout("a", at=4)
    await story.pop(5)
    await story.complete("a", 6)
    event = await story.event()
    assert [(run.how, run.put, run.popped, run.ended) for run in event.runs] == [
        ("released", 0, 1_000_000, 2_000_000), ("timed-out", 0, 3_000_000, 4_000_000),
        ("complete", 3_000_000, 5_000_000, 6_000_000),
    ]  # fmt: skip


async def test_unfinished_reservations_are_listed_as_runs(
    story: Archived,
) -> None:
    async def reserve(who: str, at: float) -> None:
        await HumanTasksCommands(story.store).reserve(
            queue="mail", person=who, worker=f"{who}@1", limit=10, now=at
        )

    await story.put("a", 0)
    await reserve("ann", 1)
    await reserve("bob", 20)  # ann's reservation has expired
    await HumanTasksCommands(story.store).skip(jid="a", person="bob", worker="bob@1", now=21)
    await reserve("cid", 22)
    await HumanTasksCommands(story.store).hand_over(
        jid="a", worker="cid@1", to="eve", limit=10, now=23
    )
    await reserve("eve", 24)
    await story.complete("a", 25, worker="eve@1")
    event = await story.event()
    assert [(run.how, run.worker, run.popped, run.ended) for run in event.runs] == [
        ("abandoned", "ann@1", 1_000_000, 20_000_000), ("skipped", "bob@1", 20_000_000, 21_000_000),
        ("handed-over", "cid@1", 22_000_000, 23_000_000),
        ("complete", "eve@1", 24_000_000, 25_000_000),
    ]  # fmt: skip


async def test_only_first_and_latest_runs_of_a_stage_are_kept(story: Archived) -> None:
    await story.running("a", retries=1000)
    for at in range(2, 320, 2):
        await story.retry("a", at)
        await story.pop(at + 1)
    await story.complete("a", 1000)
    runs = (await story.event()).runs
    assert len(runs) == 101 and runs[0].popped == 1_000_000 and runs[-2].ended == 318_000_000
    assert runs[1].ended == 122_000_000


async def test_canceled_jobs_are_archived_in_any_state(story: Archived) -> None:
    await story.put("waits", 1)
    await story.put("later", 1, delay=60)
    await story.put("held", 1, depends=["waits"])
    await story.running("runs", 1, 2, queue="post")
    await story.cancel("waits", "later", "held", "runs")
    told = {event.jid: event for event in await story.events()}
    assert {jid: event.was for jid, event in told.items()} == {
        "waits": "waiting", "later": "scheduled", "held": "depends", "runs": "running",
    }  # fmt: skip
    assert {event.what for event in told.values()} == {"cancel"} and {
        event.state for event in told.values()
    } == {"cancelled"}
    assert [len(told[jid].runs) for jid in ("waits", "later", "held", "runs")] == [0, 0, 0, 1]
    assert told["held"].depends == ("waits",) and told["runs"].worker == "ann"


async def test_failed_job_that_is_canceled_has_two_entries(
    story: Archived,
) -> None:
    await story.failed("a")
    await story.cancel("a")
    first, second = await story.events()
    assert (first.what, second.what, second.was, second.put, second.runs) == (
        "fail",
        "cancel",
        "failed",
        None,
        (),
    )


async def test_dependents_of_a_failed_job_are_archived_by_their_policy(story: Archived) -> None:
    await story.running("a")
    flow: list[PutFlowRow] = [
        {
            "queue": "mail",
            "jid": jid,
            "klass": "K",
            "data": "1",
            "depends": ["a"],
            "if_dependency_fails": jid,
        }
        for jid in ("fail", "cancel")
    ]
    await story.store.put_flow(now=2, batch=flow)
    await story.fail("a", 3)
    assert {event.jid: event.what for event in await story.events()} == {
        "a": "fail",
        "fail": "fail",
        "cancel": "cancel",
    }


async def test_moving_a_job_ends_its_stage(story: Archived) -> None:
    await story.running("a")
    await story.put("a", 2, queue="post", worker="ann")
    event = await story.event()
    assert (event.what, event.queue, event.to, event.was, event.worker) == (
        "move",
        "mail",
        "post",
        "running",
        "ann",
    )
    assert [run.how for run in event.runs] == ["move"]


async def test_putting_an_ended_job_again_adds_no_entry(story: Archived) -> None:
    await story.completed("a")
    await story.put("a", 3)
    await story.failed("b", 3, 4, 5, queue="post")
    await story.store.unfail(queue="post", group="typo", now=6)
    assert [event.what for event in await story.events()] == ["complete", "fail"]


async def test_data_is_archived_if_configured_and_within_its_limit(story: Archived) -> None:
    await story.configure(archive_data=20)
    await story.running("a", data="[1.0, []]")
    await story.complete("a", 2)
    await story.running("b", data="[]")
    await story.complete("b", 2, data='{"receipt": 12345678901234567}')
    first, second = await story.events()
    assert (first.data, first.data_size, second.data, second.data_size) == (
        "[1.0, []]",
        None,
        None,
        30,
    )


async def test_job_failed_by_check_is_archived(story: Archived) -> None:
    await story.put("a", 1)
    await story.change("HDEL", "j:a", "klass")
    await story.store.check(now=2, resolve="resolve", budget=10_000)
    (entry,) = await story.entries()
    assert (entry["what"], entry["jid"], entry["group"]) == ("fail", "a", "found-by-check")
