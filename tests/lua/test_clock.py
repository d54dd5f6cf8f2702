"""Calls without a time use the clock of the server."""

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from tests.lua.story import Story

Clock = Callable[[float], bool]


@pytest.fixture
async def recent(story: Story) -> AsyncIterator[Clock]:
    """Return whether a time is between the start of the test and now, by the server's clock."""
    seconds, _ = await story.ask("TIME")
    start = int(seconds)
    yield lambda at: start <= at <= start + 30


async def test_job_runs_by_the_clock_of_the_server(story: Story, recent: Clock) -> None:
    store = story.store
    job: dict[str, Any] = {"jid": "a", "worker": "ann"}
    await store.put(queue="mail", jid="a", klass="Greet", data="{}", delay=0)
    (popped,) = await store.pop(queue="mail", worker="ann", count=1)
    assert recent(popped["expires"] - 60)
    assert recent(await store.heartbeat(**job) - 60)
    assert await store.retry(**job, queue="mail") == 4
    assert (
        len(await store.pop_many(worker="ann", count=1, order="ordered", batch=[{"queue": "mail"}]))
        == 3
    )
    assert await store.release(**job, delay=0.000001) == "scheduled"
    (popped,) = await store.pop(queue="mail", worker="ann", count=1)
    await store.timeout(jids=["a"])
    (popped,) = await store.pop(queue="mail", worker="ann", count=1)
    assert await store.fail(**job, group="typo", message="no") == "a"
    assert await store.unfail(queue="mail", group="typo") == 1
    await store.log(jid="a", message="note")
    assert await store.tag_add(jid="a", tags=["x"]) == ["x"]
    assert await store.track_track(jid="a") == 1
    (popped,) = await store.pop(queue="mail", worker="ann", count=1)
    assert await store.complete(**job, queue="mail") == "complete"
    times = [when for when, _ in await story.event_times("a")]
    times += [
        *(await story.scores("t:x")).values(),
        *(await story.scores("tracked")).values(),
        *(await story.scores("completed")).values(),
    ]
    assert len(times) == 16
    assert [at for at in times if not recent(at)] == []


async def test_dependency_is_removed_at_the_current_time(story: Story, recent: Clock) -> None:
    await story.put("a", 0)
    await story.put("b", 0, depends=["a"])
    await story.store.depends_off(jid="b", jids=["all"])
    assert recent(-1e10 * (await story.where("b"))["work"])


async def test_template_starts_at_the_current_time(story: Story, recent: Clock) -> None:
    await story.store.recur_on(queue="mail", jid="r", klass="K", data="1", interval=60, offset=0)
    assert recent((await story.scores("q:mail-recur"))["r"])
    assert [job["jid"] for job in await story.store.peek(queue="mail", count=1)] == ["r-1"]


async def test_reads_use_the_current_time(story: Story) -> None:
    await story.running("a", 0, 1)
    assert (await story.store.queues(queue="mail"))["stalled"] == 1
    assert await story.store.jobs(state="stalled", queue="mail") == ["a"]
    assert await story.store.workers() == []
    assert (await story.store.stats(queue="mail"))["wait"]["count"] == 0
