"""A job in every state, and the problems that a check finds."""

import json
from typing import Any, TypeAlias

from tests.lua.story import Story

Commands: TypeAlias = list[tuple[Any, ...]]
FAILURE = json.dumps({"group": "typo", "message": "no", "when": 3, "worker": "ann"})
TERMS = json.dumps({"unique": "k", "until": "done", "limits": [{"key": "k", "limit": 1}]})
FREE_FIELDS = ["jid", "state", "priority", "retries", "remaining", "time"]


def note(kind: str, about: str) -> str:
    """Return a note as it is stored."""
    return f'{{"kind":"{kind}","about":"{about}"}}'


async def put_all_states(story: Story) -> None:
    """Put a job into every state, and a template."""
    await story.completed("done", tags=["x"])
    await story.failed("failed", tags=["x"])
    await story.failed("typo")
    await story.failed("rare", group="rare")
    await story.running("stalled")
    await story.timeout("stalled", at=2)
    await story.pop(2, worker="bob")
    await story.store.release(jid="stalled", worker="bob", now=3, delay=500)
    await story.running("running", 3, 4)
    await story.put("stalled", 4)
    await story.pop(4, worker="bob")
    await story.timeout("stalled", at=5)
    await story.put("scheduled", 5, delay=100)
    await story.put("waiting", 5, tags=["x", "y"])
    await story.put("post", 5, queue="post", retries=2)
    await story.put("held", 6, depends=["waiting", "post"])
    await story.put("slow", 6, delay=50)
    await story.put("late", 6, delay=70, depends=["slow"])
    await story.recur("hourly", 6, interval=3600, offset=3600)
    await story.cron("nightly", 6, next=90_000)
    await story.recur("paused", 6)
    await story.cron("quiet", 6, next=90_000)
    for jid in ("paused", "quiet"):
        await story.store.recur_pause(jid=jid, now=7)


async def findings(
    story: Story, *, resolve: str = "", at: float = 10, budget: int = 500
) -> list[dict[str, Any]]:
    """Return all problems that a full check finds."""
    found, cursor = [], ""
    while cursor != "0":
        reply = await story.store.check(now=at, resolve=resolve, cursor=cursor, budget=budget)
        assert reply["fixed"] == sum(finding["fixed"] for finding in reply["found"])
        found += reply["found"]
        cursor = reply["cursor"]
    return found


def problems(found: list[dict[str, Any]]) -> set[str]:
    return {finding["problem"] for finding in found}


async def data_of_jobs(story: Story) -> dict[str, str]:
    all_keys = await story.all_keys()
    jobs = {
        key[2:]: job
        for key, job in all_keys.items()
        if key.startswith("j:") and isinstance(job, dict) and "data" in job
    }
    return {jid: job["data"] for jid, job in jobs.items()}


async def drain(story: Story) -> set[str]:
    """Run all jobs; returns those that are complete at the end."""
    at = 20_000.0
    for _ in range(4):
        for group in await story.store.failed():
            await story.store.unfail(queue="mail", group=group, now=at)
        for queue in ("mail", "post"):
            for job in await story.store.pop(queue=queue, worker="zoe", count=100, now=at):
                await story.complete(job["jid"], at, worker="zoe", queue=queue)
        at += 100
    return set(await story.scores("completed"))
