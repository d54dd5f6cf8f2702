"""Messages to idle workers: a queue has work again, or another worker has taken it."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from aioqless.store import PopManyRow, PutManyRow
from tests.lua.story import Story


async def _ready(story: Story, *steps: Any) -> list[list[str]]:
    """Return the queues that became ready in each step."""
    told = []
    for step in steps:
        async with story.published() as messages:
            await step
        texts = [text for channel, text in messages if channel == "x:ready"]
        told.append([text.removeprefix("+") for text in texts])
    return told


async def test_first_job_of_a_queue_makes_it_ready_and_others_do_not(story: Story) -> None:
    told = await _ready(
        story, story.put("a", 0), story.put("b", 1), story.put("c", 2, queue="post")
    )
    assert told == [["mail"], [], ["post"]]


async def test_queue_that_was_emptied_can_become_ready_again(story: Story) -> None:
    await story.put("a", 0)
    assert await _ready(story, story.pop(1), story.put("b", 2)) == [[], ["mail"]]


async def test_earliest_delayed_job_makes_its_queue_ready_and_later_ones_do_not(
    story: Story,
) -> None:
    told = await _ready(
        story, story.put("a", 0, delay=10), story.put("b", 0, delay=20), story.put("c", 0, delay=5)
    )
    assert told == [["mail"], [], ["mail"]]


async def test_earliest_template_makes_its_queue_ready_and_later_ones_do_not(
    story: Story,
) -> None:
    told = await _ready(
        story,
        story.recur("r", 0, offset=10),
        story.recur("s", 0, offset=20),
        story.recur("t", 0, offset=5),
    )
    assert told == [["mail"], [], ["mail"]]


async def test_batch_makes_its_queue_ready_once(story: Story) -> None:
    batch: list[PutManyRow] = [{"jid": jid, "klass": "K", "data": "1"} for jid in "abc"]
    assert await _ready(story, story.store.put_many(queue="mail", now=0, batch=batch)) == [["mail"]]


@pytest.mark.parametrize(
    "step", ["retry", "release", "timeout", "unfail", "next", "depends off", "peek"]
)
async def test_every_way_into_an_empty_queue_makes_it_ready(story: Story, step: str) -> None:
    steps: dict[str, Callable[[], Awaitable[Any]]] = {
        "retry": lambda: story.retry("a", 5),
        "release": lambda: story.release("a", 5),
        "timeout": lambda: story.timeout("a", at=5),
        "next": lambda: story.complete("a", 5, next="mail"),
        "unfail": lambda: story.store.unfail(queue="mail", group="typo", now=5),
        "depends off": lambda: story.store.depends_off(jid="b", jids=["a"], now=5),
        "peek": lambda: story.peek(5),
    }
    await story.running("a")
    if step == "unfail":
        await story.fail("a", 2)
    if step == "depends off":
        await story.put("b", 2, depends=["a"])
    if step == "peek":
        await story.put("b", 2, delay=1)
    assert await _ready(story, steps[step]()) == [["mail"]]


async def test_completion_makes_the_queues_of_dependents_ready(story: Story) -> None:
    await story.running("a")
    await story.put("b", 2, queue="post", depends=["a"])
    assert await _ready(story, story.complete("a", 3)) == [["post"]]


async def test_unpaused_queue_is_ready(story: Story) -> None:
    await story.put("a", 0)
    await story.store.pause(queues=["mail"])
    assert await _ready(story, story.store.unpause(queues=["mail"])) == [["mail"]]


# Queues at their limit


STEPS: dict[str, Callable[[Story], Awaitable[Any]]] = {
    "complete": lambda story: story.complete("a", 5),
    "complete_many": lambda story: story.store.complete_many(
        worker="ann", now=5, batch=[{"jid": "a", "queue": "mail"}]
    ),
    "next": lambda story: story.complete("a", 5, next="post"),
    "fail": lambda story: story.fail("a", 5),
    "retry": lambda story: story.retry("a", 5),
    "release": lambda story: story.release("a", 5),
    "timeout": lambda story: story.timeout("a", at=5),
    "cancel": lambda story: story.cancel("a"),
    "put elsewhere": lambda story: story.put("a", 5, queue="post"),
}


@pytest.mark.parametrize("step", STEPS)
async def test_end_of_a_run_makes_a_queue_at_its_limit_ready(story: Story, step: str) -> None:
    await story.configure(mail_max_concurrency=1)
    await story.running("a")
    await story.put("b", 2)
    assert await _ready(story, STEPS[step](story)) in (
        [["mail"]],
        [["mail", "post"]],
        [["post", "mail"]],
    )


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("limit", [None, 0, "none"])
async def test_end_of_a_run_publishes_nothing_for_a_queue_without_limit(
    story: Story, step: str, limit: int | str | None
) -> None:
    if limit is not None:
        await story.change("HSET", "config", "mail-max-concurrency", limit)
    await story.running("a")
    await story.put("b", 2)
    assert await _ready(story, STEPS[step](story)) in ([[]], [["post"]])


async def test_end_of_a_run_publishes_nothing_without_waiting_jobs(
    story: Story,
) -> None:
    await story.configure(mail_max_concurrency=2)
    await story.running("a")
    assert await _ready(story, story.complete("a", 2)) == [[]]
    await story.put("b", 3)
    await story.put("c", 3)
    assert await _ready(story, story.cancel("b")) == [[]]


async def test_due_job_that_a_limit_kept_from_being_popped_counts_as_waiting(
    story: Story,
) -> None:
    await story.configure(mail_max_concurrency=1)
    await story.running("a")
    await story.put("b", 2, delay=1)
    assert await _ready(story, story.complete("a", 5)) == [["mail"]]


@pytest.mark.parametrize(
    ("count", "told"), [(1, []), (2, ["-mail"]), (3, ["-mail", "-post"]), (9, ["-mail", "-post"])]
)
async def test_worker_that_takes_the_last_waiting_jobs_of_a_queue_tells_the_others(
    story: Story, count: int, told: list[str]
) -> None:
    await put_jobs(story)
    assert await announced(story, count) == told
    assert await announced(story, 0) == []


async def test_worker_that_was_idle_wakes_others_if_it_leaves_jobs(story: Story) -> None:
    await put_jobs(story)
    assert await announced(story, 1, idle="1") == ["+mail"]
    assert await announced(story, 9, idle="1") == ["-mail", "-post"]
    assert await announced(story, 9, idle="1") == []


async def test_jobs_that_may_not_start_are_left_without_waking_others(story: Story) -> None:
    await story.configure(mail_max_concurrency=1)
    await put_jobs(story)
    assert await announced(story, 2, idle="1") == ["-mail", "-post"]


async def put_jobs(story: Story) -> None:
    for jid, queue in (("a", "mail"), ("b", "mail"), ("c", "post")):
        await story.put(jid, 0, queue=queue)


async def announced(story: Story, count: int, idle: str | None = None) -> list[str]:
    """Pop, and return the messages to idle workers."""
    batch: list[PopManyRow] = [{"queue": "mail"}, {"queue": "post"}]
    async with story.published() as messages:
        await story.store.pop_many(
            worker="ann", count=count, now=1, order="ordered", batch=batch, idle=idle
        )
    return [text for channel, text in messages if channel == "x:ready"]
