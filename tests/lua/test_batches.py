"""put_many, complete_many and heartbeat_many: one reply per item, also when one is refused."""

from typing import Any

from aioqless.errors import InvalidArgument, LockLost, NoSuchJob, WrongState
from aioqless.store import HeartbeatManyRow
from tests.lua.story import Story, score


async def _put(story: Story, at: float, *jobs: dict[str, Any], queue: str = "mail") -> Any:
    batch: list[Any] = [{"klass": "Greet", "data": "{}", **job} for job in jobs]
    return await story.store.put_many(queue=queue, now=at, batch=batch)


async def _complete(story: Story, at: float, *done: dict[str, Any], worker: str = "ann") -> Any:
    batch: list[Any] = [{"queue": "mail", **each} for each in done]
    return await story.store.complete_many(worker=worker, now=at, batch=batch)


# put_many


async def test_put_many_returns_the_jids(story: Story) -> None:
    assert await _put(story, 1, {"jid": "a"}, {"jid": "b"}) == ["a", "b"]
    assert await story.scores("q:mail-work") == {"a": score(0, 1), "b": score(0, 1.000001)}


async def test_jobs_of_a_batch_are_popped_in_its_order_whatever_their_jids(
    story: Story,
) -> None:
    jids = ["b", "a", "c", "zz", "m"]
    await _put(story, 1_750_000_000.25, *({"jid": jid} for jid in jids))
    assert await story.pop(1_750_000_001, count=5) == jids


async def test_each_job_of_a_batch_has_its_own_options(story: Story) -> None:
    options: dict[str, Any] = {
        "priority": -2,
        "tags": '["x"]',
        "retries": 3,
        "delay": 7,
        "data": "[ ]",
        "klass": "Send",
    }
    await story.put("alone", 1, **{**options, "tags": ["x"]})
    await _put(story, 1, {"jid": "many", **options}, {"jid": "a"})
    alone, many = await story.job("alone"), await story.job("many")
    assert many == {**alone, "jid": "many"}
    assert (await story.where("many"), await story.items("j:many-history")) == (
        {"scheduled": 8},
        await story.items("j:alone-history"),
    )


async def test_refused_job_does_not_affect_others_of_its_batch(story: Story) -> None:
    answers = await _put(
        story,
        1,
        {"jid": "a"},
        {"jid": "b", "data": "false"},
        {"jid": "c", "depends": '["c"]'},
        {"jid": "d"},
    )
    assert (answers[0], answers[3]) == ("a", "d")
    assert isinstance(answers[1], InvalidArgument)
    assert (answers[1].detail["argument"], answers[2].detail["argument"]) == ("data", "depends")
    assert set(await story.scores("q:mail-work")) == {"a", "d"}
    assert (await story.get("b"), await story.get("c")) == (None, None)


async def test_rows_may_leave_out_their_last_arguments(story: Story) -> None:
    done = ("a", "K", "{}", "b", "K", "[1]")
    assert await story.by_hand("put_many", ["mail"], 1, "2/3", *done) == [b"a", b"b"]
    assert (await story.job("b"))["data"] == "[1]"
    later = ("c", "K", "{}", 9, "d", "K", "{}", "")
    assert await story.by_hand("put_many", ["mail"], 1, "2/4", *later, "existing", "keep") == [
        b"c", b"d",
    ]  # fmt: skip
    assert [(await story.job(jid))["state"] for jid in "cd"] == ["scheduled", "waiting"]


# complete_many


async def test_many_jobs_are_completed_by_one_call(story: Story) -> None:
    await _put(story, 0, {"jid": "a"}, {"jid": "b"}, {"jid": "c"})
    await story.pop(1, count=3)
    answers = await _complete(
        story,
        3,
        {"jid": "a"},
        {"jid": "b", "next": "post", "delay": 5},
        {"jid": "c", "data": "[ 3 ]"},
    )
    assert answers == ["complete", "scheduled", "complete"]
    assert (await story.scores("completed"), await story.where("b", "post")) == (
        {"a": 3, "c": 3},
        {"scheduled": 8},
    )
    assert ((await story.get("a"))["data"], (await story.get("c"))["data"]) == ("{}", "[ 3 ]")
    assert await story.day("run") == {"total": "3", "mean": "2", "vk": "0", "s2": "3"}


async def test_refused_completion_does_not_affect_others_of_its_batch(story: Story) -> None:
    await story.running("a")
    await story.running("hers", worker="bob")
    await story.put("idle", 2)
    await story.running("b", queue="post")
    answers = await _complete(
        story, 3, {"jid": "ghost"}, {"jid": "hers"}, {"jid": "idle"}, {"jid": "a", "fence": "9"},
        {"jid": "a", "delay": 5}, {"jid": "a"},
        {"jid": "b"},
    )  # fmt: skip
    kinds = [NoSuchJob, LockLost, WrongState, LockLost, InvalidArgument, str, WrongState]
    assert [type(answer) for answer in answers] == kinds
    assert await story.scores("completed") == {"a": 3}


async def test_batch_of_completions_releases_dependents(story: Story) -> None:
    await _put(story, 0, {"jid": "a"}, {"jid": "b"})
    await story.put("c", 0, depends=["a", "b"])
    await story.pop(1, count=2)
    await _complete(story, 2, {"jid": "a"}, {"jid": "b"})
    assert await story.where("c") == {"work": score(0, 2)}


async def test_batch_prunes_twenty_jobs_and_two_for_each_completion(story: Story) -> None:
    for n in range(50):
        await story.completed(f"old{n}", n, n, n)
    await story.configure(jobs_history=10)
    for jid in "abc":
        await story.running(jid, 1000, 1000)
    await _complete(story, 1001, *({"jid": jid} for jid in "abc"))
    assert len(await story.scores("completed")) == 50 + 3 - 26


async def test_next_pop_releases_what_a_completion_has_left(story: Story) -> None:
    await story.running("a")
    await _put(
        story, 2, *({"jid": f"w{n:03}", "depends": '["a"]'} for n in range(250)), queue="post"
    )
    await story.complete("a", 3)
    assert (await story.counts(3, "post"))["depends"] == 50
    await story.pop(4, queue="elsewhere")
    assert await story.counts(4, "post") == {"waiting": 250}


# heartbeat_many


async def test_lost_lock_does_not_affect_others_of_its_batch(story: Story) -> None:
    await story.running("a")
    await story.running("b")
    await story.put("b", 2)
    await story.pop(3, worker="bob")
    batch: list[HeartbeatManyRow] = [
        {"jid": "ghost"},
        {"jid": "b"},
        {"jid": "a", "fence": "9"},
        {"jid": "a", "fence": "1"},
    ]
    answers = await story.store.heartbeat_many(worker="ann", now=5, batch=batch)
    assert [type(answer) for answer in answers] == [NoSuchJob, LockLost, LockLost, str]
    assert (await story.get("b"))["expires"] == 63
