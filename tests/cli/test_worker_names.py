"""Restarting a worker under a stable name, with real processes."""

from __future__ import annotations

from aioqless import Client
from tests.cli.conftest import Aioqless, Start
from tests.conftest import Until
from tests.worker.states import state_of

NAMED = ("--name", "ann")


async def test_jobs_of_a_killed_worker_run_again_within_20_seconds_under_the_same_name(
    client: Client, start: Start, until: Until
) -> None:
    for jid in "ab":
        await client.queue("mail").put("Stay", jid=jid, retries=1)
    async with start(*NAMED, "-c", "2") as first:
        await until(lambda: len(first.logged("job.started")) == 2)
        first.process.kill()  # it stays a zombie until its exit code is read
        async with start(*NAMED, begun="worker.waits_for_name") as second:
            await until(lambda: len(second.logged("job.started")) == 2, 40)
            again = await client.jobs.get("a")
            assert again and (again.worker, again.remaining) == ("ann", 1)
            assert [event["what"] for event in again.events] == [
                "put",
                "popped",
                "released",
                "popped",
            ]


async def test_second_worker_of_a_name_is_refused(
    client: Client, start: Start, until: Until, aioqless: Aioqless
) -> None:
    await client.queue("mail").put("Stay", jid="a")
    async with start(*NAMED) as first:
        await until(lambda: first.logged("job.started"))
        ended = await aioqless("worker", "jobs", "-q", "mail", *NAMED)
        assert ended.code == 1
        assert (
            f"the name 'ann' belongs to process {first.process.pid} on " in ended.err
            and "stop that worker, or give this one another" in ended.err
        )
        assert await state_of(client, "a") == "running"
