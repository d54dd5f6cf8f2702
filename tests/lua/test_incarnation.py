"""incarnation: whose a stable name is, and what a former one left."""

import json
from typing import Any

import pytest

from aioqless.errors import InvalidArgument, NameTaken
from aioqless.store import PutManyRow
from tests.lua.story import Story

ANN = {"id": "1", "host": "h", "place": "p", "pid": 7, "started": "100"}


async def _claim(story: Story, at: float, gone: str | None = None, **more: Any) -> str:
    told = json.dumps({**ANN, **more})
    answer: str = await story.store.incarnation_claim(worker="ann", now=at, told=told, gone=gone)
    return answer


async def _recover(story: Story, at: float, who: str) -> int:
    count: int = await story.store.incarnation_recover(worker="ann", now=at, id=who)
    return count


async def test_a_name_that_nobody_has_is_claimed_and_renewed(story: Story) -> None:
    assert [await _claim(story, at) for at in (0, 20, 500)] == ["new", "new", "new"]
    assert 0 < await story.ask("TTL", story.key("x:incarnation:ann")) <= 3600


async def test_a_name_that_another_has_is_refused_with_who_that_is(story: Story) -> None:
    await _claim(story, 0)
    async with story.refused(
        NameTaken, worker="ann", id="1", host="h", place="p", pid=7, started="100", silent=60
    ):
        await _claim(story, 60, id="2", place="q")


async def test_elsewhere_a_silence_longer_than_the_promise_frees_it(story: Story) -> None:
    await _claim(story, 0)
    assert await _claim(story, 61, id="2", place="q") == "taken over"


async def test_in_sight_of_it_no_silence_frees_it(story: Story) -> None:
    await _claim(story, 0)
    async with story.refused(NameTaken, id="1", silent=3000):
        await _claim(story, 3000, id="2")


async def test_where_nobody_can_see_processes_silence_tells(story: Story) -> None:
    await _claim(story, 0, place="")
    async with story.refused(NameTaken, id="1"):
        await _claim(story, 59, id="2", place="")
    assert await _claim(story, 61, id="2", place="") == "taken over"


async def test_one_that_is_known_to_be_gone_is_replaced_at_once_but_nobody_else(
    story: Story,
) -> None:
    await _claim(story, 0)
    async with story.refused(NameTaken, id="1"):
        await _claim(story, 1, gone="0", id="2")
    assert await _claim(story, 1, gone="1", id="2") == "taken over"
    async with story.refused(NameTaken, id="2"):
        await _claim(story, 2, gone="1", id="3")


async def test_one_that_was_replaced_is_refused_from_then_on(story: Story) -> None:
    await _claim(story, 0)
    await _claim(story, 61, id="2", place="q")
    async with story.refused(NameTaken, id="2"):
        await _claim(story, 62)
    async with story.refused(NameTaken, id="2"):
        await _recover(story, 62, "1")


async def test_only_its_owner_leaves_it(story: Story) -> None:
    await _claim(story, 0)
    await story.store.incarnation_leave(worker="ann", now=1, id="2")
    assert await story.exists("x:incarnation:ann")
    await story.store.incarnation_leave(worker="ann", now=1, id="1")
    assert not await story.exists("x:incarnation:ann")


async def test_what_the_former_one_held_goes_back_to_its_place_at_no_cost_of_a_retry(
    story: Story,
) -> None:
    await story.running("a", 0, 5)
    await story.put("b", 1)
    await story.running("other", 2, 3, worker="bob", queue="post")
    await _claim(story, 6)
    assert (await _recover(story, 7, "1"), await _recover(story, 7, "1")) == (1, 0)
    job = await story.get("a")
    assert (job["state"], job["worker"], job["remaining"]) == ("waiting", "", 5)
    assert await story.happened("a") == [(0, "put"), (5, "popped"), (7, "released")]
    assert await story.pop(8, count=2) == ["a", "b"], "it is first again"
    assert await story.state("other") == "running"


async def test_a_job_that_ended_its_worker_too_often_fails_instead_of_ending_it_again(
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


async def test_a_lock_that_ran_out_unnoticed_is_taken_back_too(story: Story) -> None:
    await story.running("a", 0, 1)
    await _claim(story, 500)
    assert await _recover(story, 500, "1") == 1
    assert (await story.get("a"))["remaining"] == 5


async def test_what_it_holds_no_more_is_left_alone(story: Story) -> None:
    await story.running("a")
    await story.change("HSET", "j:a", "worker", "bob")
    await _claim(story, 5)
    assert (await _recover(story, 5, "1"), await _recover(story, 5, "1")) == (1, 0)
    assert await story.state("a") == "running"


async def test_very_many_are_taken_back_a_hundred_at_a_time(story: Story) -> None:
    batch: list[PutManyRow] = [{"jid": f"j{n}", "klass": "K", "data": "1"} for n in range(250)]
    await story.store.put_many(queue="mail", now=0, batch=batch)
    await story.pop(1, count=250)
    await _claim(story, 2)
    assert [await _recover(story, 2, "1") for _ in range(4)] == [100, 100, 50, 0]
    assert await story.counts(2) == {"waiting": 250}


async def test_odd_content_counts_as_nobody(story: Story) -> None:
    await story.change("HSET", "x:incarnation:ann", "told", "nonsense")
    assert await _claim(story, 0) == "new"


@pytest.mark.parametrize("told", ["1", "[]", "{"])
async def test_who_claims_it_is_told_as_an_object(story: Story, told: str) -> None:
    async with story.refused(InvalidArgument, argument="told"):
        await story.store.incarnation_claim(worker="ann", told=told)
