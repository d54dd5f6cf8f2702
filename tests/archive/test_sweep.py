"""The sweep: ends by other qless clients, and earlier ones, are archived, once."""

from __future__ import annotations

import pytest

from tests.archive.conftest import Archived


async def test_job_completed_by_another_client_is_archived_from_its_history(
    story: Archived,
) -> None:
    await story.put("a", 1.5, tags=["x"], priority=-2)
    await story.pop_as_qless("a", 2.25)
    await story.write_as_qless("a", 3.75)
    assert await story.sweep() == 1
    event = await story.event()
    assert (event.what, event.queue, event.state, event.swept, event.tags, event.priority) == (
        "complete",
        "mail",
        "complete",
        True,
        ("x",),
        -2,
    )
    assert (event.worker, event.put, event.popped, event.ended) == (
        "ruby",
        1_000_000,
        2_000_000,
        3_750_000,
    )
    assert event.history == '[[1,"put",{"q":"mail"}],[2,"popped",{"worker":"ruby"}],[3,"done"]]'


async def test_job_that_ended_before_the_archive_was_on_has_exact_times(story: Archived) -> None:
    await story.store.config_set(option="archive", value="off")
    await story.put("a", 1.5)
    await story.pop(2.25)
    await story.complete("a", 2.5)
    await story.store.config_set(option="archive", value="on")
    assert await story.sweep() == 1
    event = await story.event()
    assert (event.put, event.popped, event.ended) == (1_500_000, 2_250_000, 2_500_000)


async def test_times_that_are_no_numbers_are_left_out(story: Archived) -> None:
    await story.put("a", 1)
    await story.pop_as_qless("a", 2)
    await story.write_as_qless("a", 3)
    for place, item in enumerate(('["x","put",{"q":"mail"}]', '["x","popped",{}]')):
        await story.change("LSET", "j:a-history", place, item)
    assert await story.sweep() == 1
    event = await story.event()
    assert (event.put, event.popped, event.ended) == (None, None, 3_000_000)


async def test_job_failed_by_another_client_is_archived_with_its_group(story: Archived) -> None:
    await story.put("a", 1)
    await story.pop_as_qless("a", 2.25)
    await story.write_as_qless("a", 3, fails=True)
    assert await story.sweep() == 1
    event = await story.event()
    assert (event.what, event.group, event.message, event.ended) == (
        "fail",
        "theirs",
        "no",
        3_000_000,
    )
    assert event.popped == 2_250_000, "its `time` is still that of the pop"


async def test_run_of_another_client_has_no_version(story: Archived) -> None:
    await story.put("a", 0)
    await story.store.pop_many(
        worker="ann", count=1, now=1, order="ordered", batch=[{"queue": "mail"}], version="v1"
    )
    await story.complete("a", 2)
    await story.put("a", 3)
    await story.pop_as_qless("a", 4)
    await story.write_as_qless("a", 5)
    assert await story.sweep() == 1
    assert [event.version for event in await story.events()] == ["v1", None]


async def test_archived_end_is_not_archived_again(story: Archived) -> None:
    await story.completed("ours")
    await story.failed("ours too", 3, 4, 5)
    await story.put("theirs", 6)
    await story.pop_as_qless("theirs", 7)
    await story.write_as_qless("theirs", 8)
    assert [await story.sweep(), await story.sweep()] == [1, 0]
    assert len(await story.events()) == 3


async def test_failure_here_and_completion_by_another_client_are_both_archived(
    story: Archived,
) -> None:
    await story.failed("a")
    await story.store.unfail(queue="mail", group="typo", now=3)
    await story.pop_as_qless("a", 4)
    await story.write_as_qless("a", 5)
    assert await story.sweep() == 1
    assert [(event.what, event.swept) for event in await story.events()] == [
        ("fail", False),
        ("complete", True),
    ]


async def test_lost_run_of_another_client_has_no_times_of_other_runs(
    story: Archived,
) -> None:
    await story.configure(grace_period=0)
    await story.running("a")
    await story.retry("a", 2)
    await story.pop_as_qless("a", 3)
    await story.pop(100)
    await story.complete("a", 101)
    first, second, third = (await story.event()).runs
    assert (first.how, first.put, second.how, second.put, second.popped, second.worker) == (
        "retried",
        0,
        "lost",
        None,
        3_000_000,
        "ruby",
    )
    assert (second.fence, third.popped) == (None, 100_000_000)


@pytest.mark.parametrize(
    "by", ["a put", "an unfail", "a cancel", "its age", "the number of others"]
)
async def test_end_by_another_client_is_archived_before_a_command_changes_the_job(
    story: Archived, by: str
) -> None:
    await story.put("a", 1)
    await story.pop_as_qless("a", 2)
    await story.write_as_qless("a", 3, fails=by in ("an unfail", "a cancel"))
    match by:
        case "a put":
            await story.put("a", 10)
        case "an unfail":
            await story.store.unfail(queue="mail", group="theirs", now=10)
        case "a cancel":
            await story.cancel("a")
        case "its age":
            await story.completed("b", 604900, 604901, 604902)
        case _:
            await story.configure(jobs_history_count=1)
            await story.completed("b", 10, 11, 12)
    first = next(event for event in await story.events() if event.jid == "a")
    assert first.swept and first.worker == "ruby"
    assert await story.sweep() == 0


async def test_pruned_failed_job_is_not_archived_as_canceled(story: Archived) -> None:
    await story.configure(failed_history=10)
    await story.failed("a")
    await story.failed("b", 20, 21, 22)
    assert await story.get("a") is None
    assert [(event.jid, event.what) for event in await story.events()] == [
        ("a", "fail"),
        ("b", "fail"),
    ]


async def test_jid_without_a_job_is_reported_and_others_are_archived(story: Archived) -> None:
    await story.completed("a")
    await story.change("DEL", "j:a")
    await story.put("b", 5)
    await story.pop_as_qless("b", 6)
    await story.write_as_qless("b", 7)
    assert await story.store.sweep_completed() == {"found": 1, "missing": ["a"], "next": None}


async def test_malformed_job_of_another_client_is_archived_as_far_as_readable(
    story: Archived,
) -> None:
    await story.put("a", 1)
    await story.write_as_qless("a", 3, fails=True)
    await story.change("HSET", "j:a", "failure", '{"group":["no"],"message":null}')
    await story.change("LPUSH", "j:a-history", "not json")
    assert await story.sweep() == 1
    (entry,) = await story.entries()
    assert entry["jid"] == "a" and "group" not in entry


async def test_many_jobs_are_found_in_several_calls(story: Archived) -> None:
    await story.configure(archive="off")
    for n in range(450):
        await story.put(f"j{n}", n)
    await story.pop(500, count=450)
    await story.store.complete_many(
        worker="ann",
        now=501,
        batch=[{"jid": f"j{n}", "queue": "mail"} for n in range(220)],
    )
    for n in range(220, 450):
        await story.fail(f"j{n}", 502)
    await story.configure(archive="on")
    assert await story.sweep() == 450
    assert {event.jid for event in await story.events()} == {f"j{n}" for n in range(450)}


async def test_nothing_is_swept_with_the_archive_off(story: Archived) -> None:
    await story.configure(archive="off")
    await story.completed("a")
    assert await story.sweep() == 0
    assert not await story.exists("x:archive")
