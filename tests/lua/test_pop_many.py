"""pop_many: the next jobs of several queues, in order or in rotation."""

from typing import Any

import pytest

from aioqless.store import PopManyRow
from tests.lua.job_rows import row_fields
from tests.lua.story import Story

IN_TURN = ["C", "B", "A", "C", "B", "A", "C", "A", "A", "A"]


async def _ask(
    story: Story, at: float, order: str, queues: list[Any], count: int, **more: Any
) -> list[Any]:
    batch: list[Any] = [queue if isinstance(queue, dict) else {"queue": queue} for queue in queues]
    given = {"worker": "ann", **more}
    reply: list[Any] = await story.store.pop_many(
        now=at, order=order, count=count, batch=batch, **given
    )
    return reply


async def _pop(story: Story, at: float, order: str, queues: list[Any], count: int) -> list[str]:
    """Return the jids that are popped."""
    return [row[0].decode() for row in (await _ask(story, at, order, queues, count))[0]]


@pytest.fixture
async def example(story: Story) -> Story:
    """Put the specification's example: A has 5 jobs, B 2 and C 3; a jid is its queue's name."""
    for queue, number in (("A", 5), ("B", 2), ("C", 3)):
        for n in range(number):
            await story.put(f"{queue}{n}", n, queue=queue)
    return story


async def test_rotation_takes_one_job_of_each_queue_in_turn(example: Story) -> None:
    jids = await _pop(example, 10, "rotation", ["C", "B", "A"], 10)
    assert [jid[0] for jid in jids] == IN_TURN
    assert jids == ["C0", "B0", "A0", "C1", "B1", "A1", "C2", "A2", "A3", "A4"]


@pytest.mark.parametrize("count", [1, 2, 3, 4, 7])
async def test_rotation_continued_behind_the_last_queue_gives_the_same_order(
    example: Story, count: int
) -> None:
    queues, served = ["C", "B", "A"], ""
    while len(served) < 10:
        jids = await _pop(example, 10, "rotation", queues, count)
        served += "".join(jid[0] for jid in jids)
        at = queues.index(served[-1]) + 1
        queues = queues[at:] + queues[:at]
    assert list(served) == IN_TURN


@pytest.mark.parametrize(("order", "served"), [("ordered", "CBBAA"), ("rotation", "CBABA")])
async def test_limit_of_a_queue_is_kept(example: Story, order: str, served: str) -> None:
    queues = [{"queue": "C", "limit": 1}, {"queue": "B"}, {"queue": "A", "limit": 2}]
    assert "".join(jid[0] for jid in await _pop(example, 10, order, queues, 10)) == served


async def test_paused_queue_is_skipped(example: Story) -> None:
    await example.store.pause(queues=["C"])
    assert await _pop(example, 10, "rotation", ["C", "B", "A"], 3) == ["B0", "A0", "B1"]
    assert await _pop(example, 10, "ordered", ["C", "A"], 1) == ["A1"]


async def test_row_is_the_stored_hash_in_the_order_of_its_fields(story: Story) -> None:
    await story.put("a", 0, data="[ 1 ]", priority=-2, retries=3, tags=["x"])
    (row,), _, now = await _ask(story, 5, "ordered", ["mail"], 1)
    stored = await story.job("a")
    *fields, _waited = [each.decode() for each in row]
    usual = row_fields()[: len(fields)]
    assert usual[-1] == "x-fence"
    assert fields == [stored[name] for name in usual]
    assert (stored["state"], stored["worker"], stored["expires"]) == ("running", "ann", "65")
    assert now == "5"


async def test_row_has_the_rare_fields_of_a_job_and_those_of_a_repeated_call(story: Story) -> None:
    await story.put("a", 0, context='{"trace":"1"}', expires_in=99, retries=1)
    await story.pop(1)
    await story.retry("a", 2, group="net", message="down")
    first, again = [
        (await _ask(story, 3, "ordered", ["mail"], 1, request="line:1"))[0] for _ in range(2)
    ]
    stored = await story.job("a")
    for (row,) in (first, again):
        *fields, set_name, waited = [each and each.decode() for each in row]
        assert (set_name, waited) == (None, "1.000")
        assert fields == [stored.get(name) for name in row_fields()]


async def test_row_of_a_retried_job_with_constraints_is_whole(story: Story) -> None:
    await story.put("a", 0, constraints='{"unique":"k","until":"done"}', retries=1)
    await story.pop(1)
    await story.retry("a", 2, group="net", message="down")
    for request in ("line:1", "line:1"):
        (row,), *_ = await _ask(story, 3, "ordered", ["mail"], 1, request=request)
        assert len(row) == len(row_fields()) + 2
        assert row[-2] is None, "it is in no set"


@pytest.fixture
async def varied(story: Story) -> Story:
    """Put two waiting jobs beside one with an expired lock and one that is due."""
    await story.running("lost", worker="bob")
    await story.put("due", 1, delay=99)
    await story.put("first", 2)
    await story.put("second", 3)
    return story


async def test_pop_that_prefers_waiting_jobs_is_repeated_soon_if_it_had_room(
    varied: Story,
) -> None:
    rows, due, _ = await _ask(varied, 200, "waiting", ["mail"], 3)
    assert len(rows) == 2 and float(due) == pytest.approx(0.1)
    rows, due, _ = await _ask(varied, 200, "waiting", ["mail"], 1)
    assert [row[0] for row in rows] == [b"due"] and due == ""


# The time of the next pop


async def test_next_poll_time_is_unknown_when_the_count_was_reached(example: Story) -> None:
    _, due, _ = await _ask(example, 10, "ordered", ["C"], 3)
    assert due == ""


@pytest.mark.parametrize("order", ["ordered", "rotation"])
async def test_next_poll_time_is_the_earliest_delay_interval_or_lock_expiry(
    story: Story, order: str
) -> None:
    await story.running("a", queue="A")
    assert (await _ask(story, 20, order, ["A", "B", "C"], 1))[1] == "41"
    await story.recur("r", 20, queue="B", offset=30)
    assert (await _ask(story, 20, order, ["A", "B", "C"], 1))[1] == "30"
    await story.put("c", 20, queue="C", delay=2.5)
    assert (await _ask(story, 20, order, ["A", "B", "C"], 1))[1] == "2.5"


# Entries without a job that can run


@pytest.mark.parametrize("order", ["ordered", "rotation"])
async def test_grace_period_does_not_reduce_the_count_of_other_queues(
    story: Story, order: str
) -> None:
    await story.running("lapsed", queue="A", worker="bob")
    await story.put("b", 2, queue="B")
    assert await _pop(story, 61, order, ["A", "B"], 1) == ["b"]


@pytest.mark.parametrize("order", ["ordered", "rotation"])
async def test_queue_at_its_limit_does_not_reduce_the_count_of_others(
    story: Story, order: str
) -> None:
    await story.configure(A_max_concurrency=1)
    for n in range(3):
        await story.put(f"a{n}", n, queue="A")
        await story.put(f"b{n}", n, queue="B")
    assert await _pop(story, 10, order, ["A", "B"], 3) == ["a0", "b0", "b1"]
    assert await _pop(story, 10, order, ["A", "B"], 3) == ["b2"]


async def test_missed_intervals_request_an_immediate_pop(
    story: Story,
) -> None:
    await story.recur("r", 0, queue="A", interval=10, backlog=0)
    await story.put("b", 2, queue="B")
    rows, due, _ = await _ask(story, 25, "rotation", ["A", "B"], 9)
    assert ([row[0] for row in rows], due) == ([b"r-1", b"b"], "0.001")
    assert await _pop(story, 25, "ordered", ["A", "B"], 9) == ["r-2", "r-3"]


async def test_pop_that_only_started_grace_periods_requests_an_immediate_pop(
    story: Story,
) -> None:
    """Other locks have expired behind them."""
    for jid in "abc":
        await story.running(jid)
    batch: list[PopManyRow] = [{"queue": "mail"}]
    rows, due, _ = await story.store.pop_many(
        worker="bob", count=2, now=500, order="ordered", batch=batch
    )
    assert (rows, due) == ([], "0.001")
    rows, due, _ = await story.store.pop_many(
        worker="bob", count=2, now=500, order="ordered", batch=batch
    )
    assert (rows, due) == ([], "10")


async def test_row_tells_how_long_the_job_could_have_been_running(story: Story) -> None:
    await story.put("due", 0, delay=60)
    await story.put("new", 100)
    await story.put("urgent", 95, priority=-7)
    await story.peek(110)  # which moves the due job; another call can't know since when it was due
    await story.put("after", 112, delay=5)
    rows = (await _ask(story, 130, "ordered", ["mail"], 10))[0]
    assert {row[0]: float(row[-1]) for row in rows} == {
        b"due": 20, b"new": 30, b"urgent": 35, b"after": 13,
    }  # fmt: skip


async def test_row_tells_the_wait_in_a_repeated_reply_but_not_after_an_expired_lock(
    story: Story,
) -> None:
    await story.put("a", 0)
    given: dict[str, Any] = {"request": "c1:7"}
    (first,) = (await _ask(story, 10, "ordered", ["mail"], 1, **given))[0]
    (repeated,) = (await _ask(story, 10, "ordered", ["mail"], 1, **given))[0]
    assert (await _ask(story, 1_000, "ordered", ["mail"], 1, worker="bob"))[0] == []
    (other,) = (await _ask(story, 2_000, "ordered", ["mail"], 1, worker="bob"))[0]
    assert (first[-1], repeated[-1], other[-1]) == (b"10.000", b"10.000", None)
