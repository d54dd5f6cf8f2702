"""Summaries for lists and dashboards, in calls of a bounded size."""

from __future__ import annotations

import pytest

from aioqless.client.job.summaries import FailureGroup
from aioqless.contrib.dashboard.generated_commands import DashboardCommands
from aioqless.errors import InvalidArgument, NoSuchJob, WrongState
from tests.lua.story import Story


async def test_glance_summarizes_existing_jobs(story: Story) -> None:
    await story.failed("bad", tags=["x"])
    await story.put("late", 3, delay=10, data='{"long":"' + "x" * 2000 + '"}', priority=-2)
    bad, late = await story.store.glances(jids=["bad", "ghost", "late"])
    assert (bad["state"], bad["group"], bad["message"], bad["failed"], bad["tags"]) == (
        "failed",
        "typo",
        "no such word",
        2,
        ["x"],
    )
    assert (bad["data"], bad["size"]) == ("{}", 2)
    assert (late["state"], late["due"], late["priority"], late["data"], late["size"]) == (
        "scheduled",
        13,
        -2,
        None,
        2011,
    )


async def test_long_message_is_cut_between_two_characters(story: Story) -> None:
    await story.running("a")
    await story.fail("a", 2, message="é" * 1000)
    (job,) = await story.store.glances(jids=["a"])
    assert job["message"] == "é" * 500


@pytest.mark.parametrize("cause", ["KeyError: 'invoice'", "ValueError: " + "é" * 2000])
async def test_long_traceback_keeps_its_beginning_last_frames_and_cause(
    story: Story, cause: str
) -> None:
    frames = "".join(
        f'  File "shop/part{number}.py", line {number}, in work\n    go_on({number})\n'
        for number in range(40)
    )
    await story.running("a")
    await story.fail("a", 2, message=f"Traceback (most recent call last):\n{frames}{cause}\n\n")
    ((job,), (group,)) = (
        await story.store.glances(jids=["a"]),
        await story.store.failures(names=["typo"]),
    )
    lines = job["message"].splitlines()
    assert (
        lines[0] == "Traceback (most recent call last):"
        and "…" in lines
        and len(job["message"].encode()) <= 1000
    )
    assert lines[-1][:200] == cause[:200] and (len(cause) > 600 or lines[-2] == "    go_on(39)")
    assert group["latest"]["message"] == job["message"]


async def test_group_estimates_how_many_jobs_failed_since_given_times(story: Story) -> None:
    for number in range(100):
        await story.failed(f"j{number}", number * 10, number * 10, number * 10)
    (record, none) = await story.store.failures(names=["typo", "none"])
    group = FailureGroup.from_record(record)
    assert (group.total, group.latest and group.latest.jid) == (100, "j99")
    assert len(group.marks) == 8 and group.marks[0] == (1, 990) and group.marks[-1] == (100, 0)
    assert (
        group.since(991) == 0 and group.since(990) == 1 and group.since(0) == group.since(-5) == 100
    )
    assert abs(group.since(500) - 50) <= 2
    assert none == {"group": "none", "total": 0, "latest": {}, "marks": []}


async def test_jids_of_a_group_are_paged_latest_first(story: Story) -> None:
    for jid in "abc":
        await story.failed(jid)
    assert await story.store.group(group="typo", offset=1, count=5) == ["b", "a"]
    assert await story.store.group(group="typo", count=0) == []


async def test_single_failed_job_is_retried_optionally_with_other_data(story: Story) -> None:
    await story.failed("a")
    assert await story.store.revive_job(jid="a", now=9, data="[7]") == 1
    job = await story.get("a")
    assert (job["state"], job["data"], job["remaining"], job["history"][-1]) == (
        "waiting",
        "[7]",
        5,
        {"when": 9, "what": "put", "q": "mail"},
    )
    async with story.refused(WrongState, state="waiting"):
        await story.store.revive_job(jid="a", now=10, data="[8]")
    await story.failed("b", 11, 12, 13, queue="post")
    async with story.refused(WrongState, state="failed"):
        await story.store.revive_job(jid="b", now=14, data="[9]", was="[others]")
    assert (
        await story.store.revive_job(
            jid="b", now=14, data="[9]", was=(await story.get("b"))["data"]
        )
        == 1
    )
    async with story.refused(NoSuchJob):
        await story.store.revive_job(jid="ghost", now=10)


async def test_failed_job_without_a_queue_stays_in_its_group(story: Story) -> None:
    await story.failed("a")
    await story.failed("b", 3, 4, 5)
    await story.ask("HSET", story.key("j:a"), "queue", "")
    assert await story.store.revive_group(group="typo", now=9) == 1
    assert await story.store.group(group="typo") == ["a"]
    async with story.refused(WrongState):
        await story.store.revive_job(jid="a", now=9)


async def test_totals_count_starts_ends_and_failures_by_day(story: Story) -> None:
    await story.completed("a")
    await story.failed("b", 3, 4, 5)
    await story.completed("c", 86400, 86401, 86402)
    counts = await story.store.queues(queue="mail", now=10)
    today = {
        "popped": 2,
        "completed": 1,
        "failures": 1,
        "retries": 0,
        "lost_locks": 0,
        "explicit_retries": 0,
    }
    assert await story.store.queues(now=10, totals="today") == [{**counts, **today}]
    async with story.refused(InvalidArgument, argument="totals", value="yesterday"):
        await story.store.queues(now=10, totals="yesterday")
    assert [
        (day["day"], day["completed"])
        for day in await story.store.days(queue="mail", date=90000, count=3)
    ] == [
        (0, 1),
        (86400, 1),
    ]


async def test_jobs_of_a_worker_are_listed_by_soonest_expiry(story: Story) -> None:
    await story.running("a", 0, 1)
    await story.running("b", 2, 3)
    ann, nobody = await story.store.working(workers=["ann", "nobody"], most=1, now=5)
    assert (ann["name"], ann["jobs"], ann["stalled"], [job["jid"] for job in ann["doing"]]) == (
        "ann",
        2,
        0,
        ["a"],
    )
    assert (nobody["seen"], nobody["doing"]) == (0, [])
    (ann,) = await story.store.working(workers=["ann"], most=5, now=62)
    assert (ann["jobs"], ann["stalled"]) == (1, 1)


async def test_audit_log_keeps_the_latest_actions_newest_first(story: Story) -> None:
    for number in range(3):
        await DashboardCommands(story.store).audit_log_add(
            who="ada", act="retry", about=f'{{"n":{number}}}', outcome="done"
        )
    acts = await DashboardCommands(story.store).audit_log_list(count=2)
    assert [act["about"]["n"] for act in acts] == [2, 1]
    (oldest,) = await DashboardCommands(story.store).audit_log_list(before=acts[-1]["place"])
    assert (oldest["about"], oldest["who"], oldest["act"], oldest["outcome"]) == (
        {"n": 0},
        "ada",
        "retry",
        "done",
    )


async def test_logins_are_listed_separately_from_actions(story: Story) -> None:
    await DashboardCommands(story.store).audit_log_add(
        who="ada", act="retry", about="{}", outcome="done"
    )
    await DashboardCommands(story.store).audit_log_login(
        who="ada", act="log-in", about='{"address":"::1"}', outcome="refused"
    )
    assert [each["act"] for each in await DashboardCommands(story.store).audit_log_list()] == [
        "retry"
    ]
    (login,) = await DashboardCommands(story.store).audit_log_logins(count=5)
    assert (login["who"], login["act"], login["about"], login["outcome"]) == (
        "ada",
        "log-in",
        {"address": "::1"},
        "refused",
    )
    assert await DashboardCommands(story.store).audit_log_logins(before=login["place"]) == []


async def test_glance_of_a_complete_job_has_its_last_run(story: Story) -> None:
    await story.completed("a", 1, 2, 7.5)
    (job,) = await story.store.glances(jids=["a"])
    assert (job["queue"], job["last_queue"], job["last_worker"], job["ran"]) == (
        "",
        "mail",
        "ann",
        5.5,
    )
