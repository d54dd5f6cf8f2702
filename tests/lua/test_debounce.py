"""debounce: the puts of a key are one job, or a follow-up of the one that has started."""

import json
from typing import Any

import pytest

from aioqless.errors import HasDependents, InvalidArgument, QueueFull
from tests.lua.story import Story


def debounced(**more: Any) -> dict[str, Any]:
    constraints = {"unique": "k", "until": "done", "debounce": 30, "debounce_max": 100, **more}
    return {"constraints": json.dumps(constraints)}


PUT = debounced()


async def started_with_a_follow_up(story: Story) -> None:
    """Put `a` and start it at 31; `b` is its follow-up since 40."""
    await story.put("a", 0, **PUT)
    assert await story.pop(31) == ["a"]
    assert await story.put("b", 40, **PUT) == "b"


async def test_puts_before_the_start_are_one_job_with_the_data_and_options_of_the_last(
    story: Story,
) -> None:
    await story.put("a", 0, tags=["x"], priority=-1, retries=1, context='{"t": "1"}', **PUT)
    again: Any = {"queue": "post", "data": '"new"', "klass": "Other", "expires_in": 99}
    assert await story.put("b", 10, **again, **PUT) == "a"
    job = await story.get("a")
    assert (job["data"], job["klass"], job["queue"], job["tags"]) == ('"new"', "Other", "post", [])
    assert (job["priority"], job["retries"]) == (0, 5)
    assert "x-context" not in await story.job("a")
    assert await story.get("b") is None
    assert (await story.pop(39, queue="post"), await story.pop(40, queue="post")) == ([], ["a"])


async def test_retry_with_a_follow_up_completes_the_job_as_superseded(story: Story) -> None:
    await started_with_a_follow_up(story)
    step = {"kind": "step", "name": "s", "result": "1"}
    await story.call("step", jid="a", worker="ann", now=41, **step)
    assert await story.retry("a", 42, delay=5) == 5
    job = await story.get("a")
    assert (job["state"], job["remaining"], job["failure"]) == ("complete", 5, {})
    assert [what for _, what in await story.event_times("a")][-2:] == ["superseded", "done"]
    assert not await story.exists("x:steps:a")
    assert not await story.exists("x:result:a")
    assert await story.pop(70) == ["b"]


async def test_failed_job_is_retried_beside_another_kind_of_job_with_its_key(
    story: Story,
) -> None:
    await story.put("a", 0, **PUT)
    await story.pop(31)
    await story.fail("a", 32)
    await story.put("p", 33, constraints=json.dumps({"unique": "k", "until": "done"}))
    await story.store.unfail(queue="mail", group="typo", now=34)
    assert await story.state("a") == "waiting"


async def test_job_that_is_out_of_retries_fails_although_it_has_a_follow_up(story: Story) -> None:
    await story.put("a", 0, retries=0, **PUT)
    await story.pop(31)
    await story.put("b", 40, **PUT)
    assert await story.retry("a", 41) < 0
    assert (await story.state("a"), await story.state("b")) == ("failed", "scheduled")


async def test_canceling_the_run_releases_its_follow_up(story: Story) -> None:
    await started_with_a_follow_up(story)
    await story.put("other", 41, depends=["a"])
    async with story.refused(HasDependents):
        await story.cancel("a")
    await story.cancel("a", "other")
    assert await story.state("b") == "waiting"
    assert await story.put("c", 50, **PUT) == "b"


async def test_follow_up_of_a_job_that_another_client_completed_is_the_last_one(
    story: Story,
) -> None:
    await started_with_a_follow_up(story)
    await story.change("HSET", "j:a", "state", "complete")
    assert await story.put("c", 42, **PUT) == "b"


async def test_job_after_a_follow_up_has_the_key_though_another_client_completed_the_first(
    story: Story,
) -> None:
    await started_with_a_follow_up(story)
    await story.change("HSET", "j:a", "state", "complete")
    await story.store.depends_off(jid="b", jids=["a"], now=41)
    assert await story.pop(80) == ["b"]
    assert await story.put("c", 81, **PUT) == "c"
    await story.complete("b", 82)
    assert await story.put("d", 83, **PUT) == "c"


async def test_run_of_another_client_has_a_follow_up(story: Story) -> None:
    await story.put("a", 0, **PUT)
    assert await story.pop(31) == ["a"]
    await story.change("HDEL", "j:a", "x-fence")  # as their pops leave it
    assert await story.put("b", 40, **PUT) == "b"
    assert (await story.state("a"), await story.state("b")) == ("running", "depends")


async def test_put_releases_the_follow_up_of_a_job_that_another_client_failed(
    story: Story,
) -> None:
    await started_with_a_follow_up(story)
    await story.change("HSET", "j:a", "state", "failed")
    assert await story.put("c", 81, **PUT) == "b"
    assert await story.state("b") == "scheduled"


async def test_put_that_is_not_debounced_is_left_out_while_a_job_has_the_key(story: Story) -> None:
    plain: Any = {"constraints": json.dumps({"unique": "k", "until": "done"})}
    await started_with_a_follow_up(story)
    assert await story.put("c", 41, **plain) == "a"
    await story.put("p", 41, constraints=plain["constraints"].replace('"k"', '"l"'))
    async with story.unchanged():
        assert await story.put("c", 42, **debounced(unique="l")) == "p"


async def test_put_into_a_full_queue_is_accepted_if_it_adds_no_job(story: Story) -> None:
    await story.configure(mail_max_length=1)
    await story.put("a", 0, **PUT)
    assert await story.put("b", 1, **PUT) == "a"
    await story.pop(40)
    async with story.refused(QueueFull):
        await story.put("b", 41, **PUT)


@pytest.mark.parametrize(
    "wrong",
    [
        debounced(debounce=0),
        debounced(debounce_max=29),
        debounced(until="started"),
        debounced(unique=None),
        debounced(if_exists="keep"),
        debounced(debounce=None),
        {**PUT, "delay": 5},
        {**PUT, "depends": ["x"]},
        {**PUT, "if_dependency_fails": "run"},
    ],
)
async def test_contradicting_options_are_refused(story: Story, wrong: dict[str, Any]) -> None:
    async with story.refused(InvalidArgument):
        await story.put("a", 0, **wrong)


async def test_workflows_branches_and_recurring_jobs_are_refused(story: Story) -> None:
    row: Any = {"queue": "mail", "jid": "a", "klass": "K", "data": "1", **PUT}
    async with story.refused(InvalidArgument):
        await story.store.put_flow(now=0, batch=[row])
    branch = {"queue": "mail", "klass": "K", "data": "1", **PUT}
    async with story.refused(InvalidArgument):
        await story.put("a", 0, on_failure=json.dumps(branch))
    async with story.refused(InvalidArgument):
        await story.recur("r", 0, **PUT)
