"""Actions on all jobs with a tag, or of a klass."""

from __future__ import annotations

import httpx

from aioqless import Client, NewJob, Queue
from aioqless.contrib.dashboard.bulk_actions import STEP
from tests.conftest import Until
from tests.contrib.dashboard.steps import do


async def has(queue: Queue, count: int) -> bool:
    return await queue.length() == count


async def test_jobs_of_a_tag_or_klass_are_counted_moved_retried_and_deleted(
    http: httpx.AsyncClient, client: Client, until: Until
) -> None:
    mail, slow = client.queue("mail"), client.queue("slow")
    await mail.put_many(NewJob("Greet", tags=["news"]) for _ in range(3))
    await mail.put("Greeting", jid="other")
    (job,) = await mail.pop()
    await job.fail("no such word", group="typo")
    assert "Only count" in (await http.get("/tag?name=news")).text
    assert "Only count" in (await http.get("/search?q=Greet")).text
    assert "Only count" not in (await http.get("/search?q=Gree")).text
    move = {"tag": "news", "queue": "slow"}
    assert "2 jobs of news would be moved" in await do(http, "select-move", **move, dry_run="1")
    assert await slow.length() == 0
    assert "2 jobs of news are being moved" in await do(http, "select-move", **move)
    assert await until(lambda: has(slow, 2))
    await do(http, "select-retry", klass="Greet")
    assert await until(lambda: has(mail, 2))
    await do(http, "select-cancel", klass="Greet")
    assert await until(lambda: has(slow, 0)) and await until(lambda: has(mail, 1))
    assert "no job of Greet can be deleted" in await do(http, "select-cancel", klass="Greet")
    assert "klass is missing" in await do(http, "select-cancel")


async def test_job_on_which_one_of_a_later_step_depends_is_deleted_with_it(
    http: httpx.AsyncClient, client: Client, until: Until
) -> None:
    mail = client.queue("mail")
    jids = [f"job-{n}" for n in range(STEP + 50)]
    await mail.put_many(NewJob("Greet", jid=jid, tags=["news"]) for jid in jids)
    listed = await client.jobs.select(tag="news", states=("waiting",))
    await mail.put("Greeting", jid="last", tags=["news"], depends=listed[:1])
    await do(http, "select-cancel", tag="news")

    async def are_deleted() -> bool:
        return (await client.jobs.tagged_jids("news"))[0] == 0

    assert await until(are_deleted)
