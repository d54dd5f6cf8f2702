"""Jobs of unknown klasses: rolling deploys, and projects that share a queue."""

from __future__ import annotations

from typing import Any

import pytest

import aioqless
from aioqless import Client, Job, Settings, job
from tests.conftest import Until
from tests.worker.conftest import Lines, Work
from tests.worker.states import after, state_of

ran: list[str] = []


@pytest.fixture(autouse=True)
def fresh() -> None:
    ran.clear()


@job(klass="shop.Order")
async def order(job: Job[Any]) -> None:
    ran.append(f"shop {job.jid}")


@job(klass="blog.Post")
async def post(job: Job[Any]) -> None:
    ran.append(f"blog {job.jid}")


async def test_job_of_a_new_klass_waits_for_the_new_worker_of_a_rolling_deploy(
    client: Client, work: Work, until: Until, lines: Lines
) -> None:
    mail = client.queue("mail")
    async with work(order, unknown_klass_delay=0.1):
        await mail.put(post, jid="new", retries=0)
        await mail.put(post, jid="newer", retries=0)
        await until(lambda: lines.of("job.declined", klass="blog.Post"))
        declined = await after(client, until, "new", "scheduled")
        await mail.put(order, jid="old")
        await until(lambda: ran == ["shop old"])  # it delays no other job
        async with work(order, post):
            await until(lambda: len(ran) == 3)
    done = await after(client, until, "new", "complete")
    assert (declined.remaining, done.remaining) == (0, 0)
    assert [event["what"] for event in done.events].count("declined") == 1
    (logged,) = lines.of("job.declined")  # once for the klass
    assert "there is no handler for klass 'blog.Post'" in logged["why"]
    assert not lines.of("job.released") and not lines.of("job.failed")


async def test_job_that_no_worker_knows_fails_after_the_timeout(
    client: Client, work: Work, until: Until, lines: Lines
) -> None:
    await client.queue("mail").put("shop.Ordr", jid="typo")
    async with work(order, unknown_klass_delay=0.1, unknown_klass_timeout=0.3):
        failed = await after(client, until, "typo", "failed")
    assert failed.failure and failed.failure.group == "mail-UnknownKlass"
    assert "did you mean 'shop.Order'?" in failed.failure.message
    assert len(lines.of("job.failed", group="mail-UnknownKlass")) == 1


async def test_middleware_and_hooks_hear_nothing_of_declined_jobs(
    client: Client, work: Work, until: Until, lines: Lines
) -> None:
    @aioqless.middleware
    async def seen(job: Job[Any], call: Any) -> Any:
        ran.append(job.jid)
        return await call()

    @aioqless.on_finish("job.released", "job.failed")
    def ended(job: Job[Any], end: str, **fields: Any) -> None:
        ran.append(end)

    async with work(order, seen, ended):
        await client.queue("mail").put(post, jid="new")
        await until(lambda: lines.of("job.declined"))
        await after(client, until, "new", "scheduled")
    assert ran == []


async def test_declined_jobs_do_not_recycle_a_worker(
    client: Client, work: Work, until: Until, lines: Lines
) -> None:
    async with work(order, max_jobs=1) as worker:
        await client.queue("mail").put(post, jid="new")
        await until(lambda: lines.of("job.declined"))
        assert not worker.recycling
        await client.queue("mail").put(order, jid="o")
        await until(lambda: ran == ["shop o"])
    assert await state_of(client, "new") == "scheduled"


@pytest.mark.parametrize("wrong", [{"unknown_klass_delay": 0}, {"unknown_klass_timeout": -1}])
def test_settings_refuse_times_out_of_range(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="unknown_klass"):
        Settings(**wrong)  # type: ignore[arg-type]  # mypy can't tell which names a dict has
