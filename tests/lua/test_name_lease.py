"""name_lease: leases of stable worker names, and takeover of the former owner's jobs."""

import json
from typing import Any

import pytest

from aioqless.errors import InvalidArgument, NameTaken
from aioqless.store import PutManyRow
from tests.lua.story import Story

ANN = {"id": "1", "host": "h", "pid": 7}


async def _claim(story: Story, at: float, **more: Any) -> str:
    process = json.dumps({**ANN, **more})
    answer: str = await story.store.name_lease_claim(worker="ann", now=at, process=process)
    return answer


async def _recover(story: Story, at: float, who: str) -> int:
    count: int = await story.store.name_lease_recover(worker="ann", now=at, id=who)
    return count


async def test_free_name_is_claimed_and_renewed(story: Story) -> None:
    assert [await _claim(story, at) for at in (0, 20, 500)] == ["new", "new", "new"]
    assert 0 < await story.ask("TTL", story.key("x:name-lease:ann")) <= 3600


async def test_name_in_use_is_refused_with_its_owner(story: Story) -> None:
    await _claim(story, 0)
    async with story.refused(NameTaken, worker="ann", id="1", host="h", pid=7, silent=60):
        await _claim(story, 60, id="2")


async def test_expired_lease_frees_the_name(story: Story) -> None:
    await _claim(story, 0)
    assert await _claim(story, 61, id="2") == "taken over"


async def test_jobs_and_name_of_an_ended_process_are_released_by_another(story: Story) -> None:
    await story.running("a")
    await _claim(story, 6)
    assert (await _recover(story, 7, "1"), await _recover(story, 7, "1")) == (1, 0)
    await story.store.name_lease_leave(worker="ann", now=7, id="1")
    assert await _claim(story, 8, id="2") == "new"
    async with story.refused(NameTaken, id="2"):
        await _recover(story, 9, "1")


async def test_jobs_of_a_worker_without_a_stable_name_are_released(story: Story) -> None:
    await story.running("a", 0, 5)
    assert (await _recover(story, 7, "1"), await _recover(story, 7, "1")) == (1, 0)
    assert await story.state("a") == "waiting"


async def test_replaced_owner_is_refused(story: Story) -> None:
    await _claim(story, 0)
    await _claim(story, 61, id="2")
    async with story.refused(NameTaken, id="2"):
        await _claim(story, 62)
    async with story.refused(NameTaken, id="2"):
        await _recover(story, 62, "1")


async def test_only_the_owner_can_release_the_name(story: Story) -> None:
    await _claim(story, 0)
    await story.store.name_lease_leave(worker="ann", now=1, id="2")
    assert await story.exists("x:name-lease:ann")
    await story.store.name_lease_leave(worker="ann", now=1, id="1")
    assert not await story.exists("x:name-lease:ann")


async def test_jobs_of_the_former_owner_return_to_their_place_without_using_a_retry(
    story: Story,
) -> None:
    await story.running("a", 0, 5)
    await story.put("b", 1)
    await story.running("other", 2, 3, worker="bob", queue="post")
    await _claim(story, 6)
    assert (await _recover(story, 7, "1"), await _recover(story, 7, "1")) == (1, 0)
    job = await story.get("a")
    assert (job["state"], job["worker"], job["remaining"]) == ("waiting", "", 5)
    assert await story.event_times("a") == [(0, "put"), (5, "popped"), (7, "released")]
    assert await story.pop(8, count=2) == ["a", "b"], "it is first again"
    assert await story.state("other") == "running"


async def test_job_that_ended_its_worker_too_often_fails(
    story: Story,
) -> None:
    await story.configure(max_lost=1)
    await story.running("a")
    await _claim(story, 6)
    assert await _recover(story, 7, "1") == 1
    assert await story.pop(8) == ["a"]
    assert (await _recover(story, 9, "1"), await _recover(story, 9, "1")) == (1, 0)
    job = await story.get("a")
    assert (job["state"], job["remaining"], job["failure"]["group"]) == (
        "failed",
        5,
        "mail-lost-locks",
    )
    assert job["failure"]["message"] == 'Lost its lock 2 times in queue "mail", lately by ann'
    assert await story.where("a") == {} and await story.scores("w:ann:jobs") == {}


async def test_job_fails_when_its_named_worker_died_more_often_than_the_job_has_retries(
    story: Story,
) -> None:
    await story.put("a", 0, retries=2)
    for start in (1, 11, 21):
        assert await story.pop(start) == ["a"]
        await _claim(story, start)
        assert await _recover(story, start + 5, "1") == 1
    job = await story.get("a")
    assert (job["state"], job["remaining"], job["failure"]["group"]) == (
        "failed",
        2,
        "failed-retries-mail",
    )
    assert await story.where("a") == {} and await story.scores("w:ann:jobs") == {}


async def test_unnoticed_expired_lock_is_taken_back(story: Story) -> None:
    await story.running("a", 0, 1)
    await _claim(story, 500)
    assert await _recover(story, 500, "1") == 1
    assert (await story.get("a"))["remaining"] == 5


async def test_jobs_that_the_former_owner_no_longer_holds_are_unchanged(story: Story) -> None:
    await story.running("a")
    await story.change("HSET", "j:a", "worker", "bob")
    await _claim(story, 5)
    assert (await _recover(story, 5, "1"), await _recover(story, 5, "1")) == (1, 0)
    assert await story.state("a") == "running"


async def test_very_many_jobs_are_taken_back_a_hundred_per_call(story: Story) -> None:
    batch: list[PutManyRow] = [{"jid": f"j{n}", "klass": "K", "data": "1"} for n in range(250)]
    await story.store.put_many(queue="mail", now=0, batch=batch)
    await story.pop(1, count=250)
    await _claim(story, 2)
    assert [await _recover(story, 2, "1") for _ in range(4)] == [100, 100, 50, 0]
    assert await story.counts(2) == {"waiting": 250}


async def test_malformed_lease_counts_as_free(story: Story) -> None:
    await story.change("HSET", "x:name-lease:ann", "process", "nonsense")
    assert await _claim(story, 0) == "new"


@pytest.mark.parametrize("process", ["1", "[]", "{"])
async def test_claimant_must_be_a_json_object(story: Story, process: str) -> None:
    async with story.refused(InvalidArgument, argument="process"):
        await story.store.name_lease_claim(worker="ann", process=process)
