"""beat: which workers live, who has a name, and what becomes of the jobs of one that is gone."""

import json
from typing import Any

import pytest

from aioqless.errors import InvalidArgument, NameTaken
from aioqless.store import PutManyRow
from tests.lua.story import Story

OWN = {"id": "1", "host": "h", "pid": 7}


async def beat(story: Story, at: float, worker: str = "ann", **more: Any) -> dict[str, Any]:
    given = {each: more.pop(each) for each in ("queues", "after") if each in more}
    process = json.dumps({**OWN, **more})
    reply: dict[str, Any] = await story.store.beat(worker=worker, now=at, process=process, **given)
    return reply


async def beats(story: Story, worker: str, first: float, last: float) -> list[dict[str, Any]]:
    """Send beats of a worker, one every five seconds; return the workers that it found gone."""
    found = []
    for at in range(int(first), int(last) + 1, 5):
        found += (await beat(story, at, worker, id=worker))["gone"]
    return found


async def alive(story: Story, at: float) -> dict[str, bool | None]:
    return {each["name"]: each["alive"] for each in await story.store.workers(now=at)}


async def test_worker_is_listed_with_its_queues_and_alive_until_its_beats_stop(
    story: Story,
) -> None:
    assert (await beat(story, 10, queues=["mail", "post-*"]))["waits"] is False
    for at, is_alive in ((10, True), (25, True), (26, False)):
        [worker] = await story.store.workers(now=at)
        assert (worker["alive"], worker["queues"]) == (is_alive, ["mail", "post-*"])
        [worker] = await story.store.working(workers=["ann"], most=1, now=at)
        assert (worker["alive"], worker["queues"]) == (is_alive, ["mail", "post-*"])


async def test_worker_without_beats_is_neither_alive_nor_gone(story: Story) -> None:
    await story.running("a", 0, 5)
    assert await beats(story, "bob", 0, 200) == []
    assert await alive(story, 200) == {"ann": None, "bob": True}
    assert await story.state("a") == "running"


async def test_jobs_of_a_worker_that_is_gone_wait_again_without_using_a_retry(
    story: Story,
) -> None:
    await story.running("a", 0, 3)
    await beat(story, 5)
    assert await beats(story, "bob", 5, 20) == []
    assert await beats(story, "bob", 25, 25) == [{"worker": "ann", "jobs": 1}]
    assert await beats(story, "bob", 30, 60) == []
    job = await story.get("a")
    assert (job["state"], job["remaining"], job["worker"]) == ("waiting", job["retries"], "")
    assert await story.noted() == []


@pytest.mark.parametrize("away", [range(6, 40), range(6, 16)])
async def test_stall_of_redis_makes_nobody_gone(story: Story, away: range) -> None:
    last = 0
    for at in range(0, 120):
        for worker, phase in (("ann", 0), ("bob", 2), ("eve", 4)):
            if at not in away and (at % 5 == phase or at == away.stop):
                assert (await beat(story, at, worker, id=worker))["gone"] == []
                last = at
    assert set((await alive(story, last)).values()) == {True}


async def test_worker_with_a_gap_in_its_own_beats_judges_anew(story: Story) -> None:
    await beat(story, 0)
    await beats(story, "bob", 0, 10)
    assert await beats(story, "bob", 20, 30) == []  # its own were late at 20
    assert await beats(story, "bob", 35, 35) == [{"worker": "ann", "jobs": 0}]


async def test_worker_that_returns_before_its_jobs_are_put_back_keeps_them(story: Story) -> None:
    await story.running("a", 0, 3)
    await beat(story, 5)
    await beats(story, "bob", 5, 20)
    late = story.store.beat(worker="bob", now=25, process=json.dumps({**OWN, "id": "bob"}))
    await story.send_and_be_killed(late)
    await beat(story, 26)
    await story.call("tick", now=27, batch=[])
    assert await story.state("a") == "running"
    assert (await alive(story, 27))["ann"] is True


async def test_jobs_are_put_back_in_portions(story: Story) -> None:
    rows: list[PutManyRow] = [{"jid": f"j{n}", "klass": "Greet", "data": "1"} for n in range(230)]
    await story.store.put_many(queue="mail", now=0, batch=rows)
    assert len(await story.pop(1, count=230)) == 230
    await beat(story, 5)
    await beats(story, "bob", 5, 25)
    for at in range(26, 30):
        await story.call("tick", now=at, batch=[])
    states = await story.store.states(jids=[row["jid"] for row in rows])
    assert set(states) == {"waiting"}


async def test_configured_timeout_is_waited_for(story: Story) -> None:
    await story.configure(worker_timeout=40)
    await beat(story, 0)
    assert (await beats(story, "bob", 0, 40), await alive(story, 40)) == (
        [],
        {"ann": True, "bob": True},
    )
    assert await beats(story, "bob", 45, 45) == [{"worker": "ann", "jobs": 0}]
    with pytest.raises(InvalidArgument, match="must be at least 15"):
        await story.configure(worker_timeout=14)


async def die(story: Story, at: float, worker: str = "ann") -> None:
    """Let a process of a worker die, and its successor begin and stop."""
    await beat(story, at, worker, id=f"{at}")
    while (await beat(story, at, worker, id=f"{at} next", after=f"{at}"))["waits"]:
        pass
    await story.store.deregister(workers=[worker])


async def test_jobs_that_are_put_back_return_to_their_place(story: Story) -> None:
    await story.running("a", 0, 5)
    await story.put("b", 1)
    await story.running("other", 2, 3, worker="bob", queue="post")
    await die(story, 7)
    assert await story.event_times("a") == [(0, "put"), (5, "popped"), (7, "released")]
    assert await story.pop(8, count=2) == ["a", "b"], "it is first again"
    assert await story.state("other") == "running"


async def test_job_that_ended_its_worker_too_often_fails(story: Story) -> None:
    await story.configure(max_lost=1)
    await story.running("a")
    await die(story, 7)
    assert await story.pop(8) == ["a"]
    await die(story, 9)
    job = await story.get("a")
    assert (job["state"], job["remaining"], job["failure"]["group"]) == (
        "failed",
        5,
        "mail-lost-locks",
    )
    assert job["failure"]["message"] == 'Lost its lock 2 times in queue "mail", lately by ann'
    assert await story.where("a") == {} and await story.scores("w:ann:jobs") == {}


async def test_job_fails_whose_worker_died_more_often_than_it_has_retries(story: Story) -> None:
    await story.put("a", 0, retries=2)
    for start in (1, 11, 21):
        assert await story.pop(start) == ["a"]
        await die(story, start + 5)
    job = await story.get("a")
    assert (job["state"], job["remaining"], job["failure"]["group"]) == (
        "failed",
        2,
        "failed-retries-mail",
    )


async def test_job_with_an_expired_lock_is_put_back(story: Story) -> None:
    await story.running("a", 0, 1)
    await die(story, 500)
    job = await story.get("a")
    assert (job["state"], job["remaining"]) == ("waiting", 5)


async def test_jobs_that_a_worker_no_longer_holds_are_unchanged(story: Story) -> None:
    await story.running("a")
    await story.change("HSET", "j:a", "worker", "bob")
    await die(story, 5)
    assert await story.state("a") == "running"


# Names


async def test_name_in_use_is_refused_with_its_holder(story: Story) -> None:
    await beat(story, 0)
    async with story.refused(NameTaken, worker="ann", id="1", host="h", pid=7, silent=15):
        await beat(story, 15, id="2")


async def test_name_is_free_when_the_jobs_of_its_former_process_are_put_back(
    story: Story,
) -> None:
    await story.running("a", 0, 3)
    await beat(story, 5)
    assert (await beat(story, 21, id="2"))["waits"] is True
    assert await story.state("a") == "waiting"
    assert (await beat(story, 22, id="2"))["waits"] is False
    async with story.refused(NameTaken, id="2"):
        await beat(story, 23)


async def test_name_of_a_process_that_is_known_to_have_ended_is_free_at_once(
    story: Story,
) -> None:
    await story.running("a", 0, 3)
    await beat(story, 5)
    reply = await beat(story, 6, id="2", after="0 1")
    assert (reply["waits"], reply["gone"]) == (True, [{"worker": "ann", "jobs": 1}])
    reply = await beat(story, 6, id="2", after="0 1")
    assert (reply["waits"], reply["gone"]) == (False, [])
    assert await story.state("a") == "waiting"


async def test_new_process_waits_for_a_note_that_a_killed_client_has_left(story: Story) -> None:
    await story.running("a", 0, 3)
    await beat(story, 5)
    process = json.dumps({**OWN, "id": "2"})
    await story.send_and_be_killed(story.store.beat(worker="ann", now=21, process=process))
    assert await story.state("a") == "running"
    assert (await beat(story, 22, id="2"))["waits"] is True
    assert (await beat(story, 23, id="2"))["waits"] is False
    assert await story.state("a") == "waiting"


async def test_worker_that_leaves_is_forgotten_unless_another_has_its_name(story: Story) -> None:
    await beat(story, 0)
    await story.store.deregister(workers=["ann"], id="2")
    assert await alive(story, 1) == {"ann": True}
    await story.store.deregister(workers=["ann"], id="1")
    assert await alive(story, 1) == {}
    assert not await story.exists("x:beats") and not await story.exists("x:beat:ann")
    assert (await beat(story, 2, id="2"))["waits"] is False


@pytest.mark.parametrize("process", ["", "[]", "7", "{"])
async def test_process_that_is_no_object_is_refused(story: Story, process: str) -> None:
    with pytest.raises(InvalidArgument, match="process"):
        await story.store.beat(worker="ann", now=0, process=process)
