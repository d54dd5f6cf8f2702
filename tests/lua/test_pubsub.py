"""Published messages: their channels, contents and order."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from aioqless.errors import ScriptError
from aioqless.store import PutManyRow
from tests.lua.story import Message, Story

READY: Message = ("x:ready", "mail")


def _log(event: str, jid: str = "a", **more: Any) -> Message:
    return "log", {"event": event, "jid": jid, **more}


def _lost(jid: str = "a", worker: str = "ann") -> list[Message]:
    """Let a worker lose a lock: it is notified first, then the event is logged."""
    told = {"event": "lock_lost", "jid": jid, "worker": worker}
    return [(f"w:{worker}", told), ("log", told)]


async def _tracked(story: Story) -> None:
    await story.track("a")


# put, advanced, completed


async def test_put_of_a_tracked_job_is_published_after_the_log(story: Story) -> None:
    await story.put("a", 0)
    await _tracked(story)
    async with story.published("x:ready") as messages:
        await story.put("a", 1, queue="post")
    assert messages == [_log("put", queue="post"), ("put", "a")]


async def test_worker_whose_job_is_put_elsewhere_gets_lock_lost(
    story: Story,
) -> None:
    await story.running("a")
    async with story.published("x:ready") as messages:
        await story.put("a", 2, queue="post", worker="bob")
    assert messages == [_log("put", queue="post"), *_lost()]


async def test_completion_of_a_tracked_job_is_published_before_the_log(story: Story) -> None:
    await story.running("a")
    await _tracked(story)
    async with story.published() as messages:
        await story.complete("a", 2)
    assert messages == [("completed", "a"), _log("completed", queue="mail")]


async def test_advance_is_logged_as_advanced_and_published_as_completed(story: Story) -> None:
    await story.running("a")
    await _tracked(story)
    async with story.published("x:ready") as messages:
        await story.complete("a", 2, next="post")
    assert messages == [("completed", "a"), _log("advanced", queue="mail", to="post")]


# failed


async def test_failure_by_exhausted_retries_is_published_before_the_log(story: Story) -> None:
    await story.configure(grace_period=0)
    await story.running("a", retries=0)
    await _tracked(story)
    async with story.published() as messages:
        await story.pop(61, worker="bob")
    why = {"group": "failed-retries-mail", "message": 'Job exhausted retries in queue "mail"'}
    assert messages == [
        ("stalled", "a"),
        *_lost(),
        ("failed", "a"),
        _log("failed", worker="ann", **why),
    ]


# popped, stalled, lock_lost


async def test_holder_is_notified_once_when_the_grace_period_starts(
    story: Story,
) -> None:
    await story.running("a")
    await _tracked(story)
    async with story.published() as messages:
        await story.pop(61, worker="bob")
    assert messages == [("stalled", "a"), *_lost()]
    async with story.published() as messages:
        await story.pop(71, worker="bob")
    assert messages == [("popped", "a")]


# canceled


async def test_cancellation_is_logged_then_published_to_worker_and_tracked_channel(
    story: Story,
) -> None:
    await story.running("a")
    await _tracked(story)
    async with story.published() as messages:
        await story.cancel("a")
    told = {"event": "canceled", "jid": "a", "worker": "ann", "queue": "mail"}
    assert messages == [("log", told), ("w:ann", told), ("canceled", "a")]


# Calls that publish nothing


async def test_reads_and_heartbeats_are_not_published(story: Story) -> None:
    await story.running("a", tags=["x"])
    await _tracked(story)
    await story.put("b", 2, depends=["a"])
    async with story.published("x:ready") as messages:
        await story.heartbeat("a", 3)
        await story.store.log(jid="a", message="note", now=3)
        await story.store.priority(jid="a", priority=3)
        await story.store.tag_add(jid="a", now=3, tags=["y"])
        await story.store.depends_off(jid="b", now=3, jids=["a"])
        await story.store.pause(queues=["mail"])
        await story.store.unpause(queues=["mail"])
        await story.store.forget(queues=["mail"])
        await story.retry("a", 4)
        await story.recur("r", 4)
        await story.peek(5)
    assert messages == []


async def test_refused_call_publishes_nothing(story: Story) -> None:
    await story.running("a")
    await _tracked(story)
    async with story.published() as messages:
        for refused in (
            story.put("a", 2, data="false"),
            story.complete("a", 2, worker="bob"),
            story.fail("a", 2, worker="bob"),
            story.timeout("a", "unknown", at=2),
        ):
            with pytest.raises(ScriptError):
                await refused
    assert messages == []


# ready: a queue has work again


async def _ready(story: Story, *steps: Any) -> list[list[str]]:
    """Return the queues that became ready in each step."""
    told = []
    for step in steps:
        async with story.published() as messages:
            await step
        told.append([queue for channel, queue in messages if channel == "x:ready"])
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
