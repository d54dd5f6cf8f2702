"""The maximum length of a queue."""

import pytest

from aioqless.errors import NoSuchJob, QueueFull
from aioqless.store import PutFlowRow, PutManyRow
from tests.lua.story import Story


async def test_full_queue_refuses_a_job_with_its_length_and_nothing_changes(
    story: Story,
) -> None:
    await story.configure(mail_max_length=2)
    await story.put("a", 0)
    await story.put("b", 1)
    async with story.refused(QueueFull, queue="mail", length=2, limit=2):
        await story.put("c", 2, tags=["x"], depends=["a"])
    await story.put("c", 3, queue="post")


async def test_waiting_running_scheduled_and_dependent_jobs_count(story: Story) -> None:
    await story.configure(mail_max_length=4)
    await story.running("a", 0, 1)
    await story.put("b", 2)
    await story.put("c", 3, delay=100)
    await story.put("d", 4, depends=["b"])
    async with story.refused(QueueFull, length=4):
        await story.put("e", 5)
    await story.complete("a", 6)
    await story.put("e", 7)


async def test_full_queue_accepts_a_job_it_holds_and_refuses_one_that_moves_in(
    story: Story,
) -> None:
    await story.configure(mail_max_length=1)
    await story.put("a", 0)
    assert await story.put("a", 1, priority=-3) == "a"
    await story.put("b", 2, queue="post")
    async with story.refused(QueueFull):
        await story.put("b", 3)
    async with story.refused(QueueFull):
        await story.store.requeue(queue="mail", jid="b", klass="K", data="1", now=4, delay=0)
    async with story.refused(NoSuchJob):
        await story.store.requeue(queue="mail", jid="c", klass="K", data="1", now=4, delay=0)


async def test_put_many_puts_jobs_until_the_queue_is_full(story: Story) -> None:
    await story.configure(mail_max_length=3)
    await story.put("a", 0)
    batch: list[PutManyRow] = [{"jid": jid, "klass": "K", "data": "1"} for jid in "bacde"]
    answers = await story.store.put_many(queue="mail", now=1, batch=batch)
    assert answers[:3] == ["b", "a", "c"] and [type(each) for each in answers[3:]] == [
        QueueFull,
        QueueFull,
    ]
    assert await story.counts(2) == {"waiting": 3}


async def test_workflow_beyond_the_max_length_is_refused_as_a_whole(story: Story) -> None:
    await story.configure(mail_max_length=2)
    flow: list[PutFlowRow] = [
        {"queue": queue, "jid": jid, "klass": "K", "data": "1"}
        for queue, jid in (("mail", "a"), ("post", "b"), ("mail", "c"))
    ]
    more: PutFlowRow = {"queue": "mail", "jid": "d", "klass": "K", "data": "1", "depends": ["a"]}
    async with story.refused(QueueFull, queue="mail"):
        await story.store.put_flow(now=0, batch=[*flow, more])
    assert await story.store.put_flow(now=1, batch=flow) == ["a", "b", "c"]


async def test_retries_next_stages_unfailed_and_recurring_jobs_ignore_the_max_length(
    story: Story,
) -> None:
    await story.configure(mail_max_length=1)
    await story.recur("r", 0)
    assert await story.pop(1) == ["r-1"]
    await story.put("x", 2, queue="post")
    assert await story.pop(3, queue="post") == ["x"]
    assert await story.complete("x", 4, queue="post", next="mail") == "waiting"
    assert await story.retry("r-1", 5) == 4
    assert await story.pop(6, count=2) == ["x", "r-1"]
    await story.fail("r-1", 7)
    assert await story.store.unfail(queue="mail", group="typo", now=8) == 1
    assert await story.counts(9) == {"waiting": 1, "running": 1, "recurring": 1}


@pytest.mark.parametrize("limit", [0, -1])
async def test_zero_means_no_limit(story: Story, limit: int) -> None:
    await story.configure(mail_max_length=limit)
    await story.put("a", 0)
    await story.put("b", 1)
