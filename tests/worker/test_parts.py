"""Parts that run beside the jobs of a worker."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from aioqless import Client, Job, Settings, Worker, job
from aioqless.worker import WorkerContext
from tests.conftest import Until
from tests.worker.states import state_of


class Broken:
    """Fails when `failing` is set."""

    def __init__(self) -> None:
        self.failing = asyncio.Event()

    async def run(self, context: WorkerContext) -> None:
        await self.failing.wait()
        raise OSError("disk full")


async def test_part_runs_from_before_the_first_job_to_after_the_last(client: Client) -> None:
    steps: list[str] = []

    class Noting:
        async def run(self, context: WorkerContext) -> None:
            steps.append(f"part of {context.name} began")
            try:
                await asyncio.Event().wait()
            finally:
                steps.append("part ended")

    @job(klass="Greet")
    async def greet(job: Job[Any]) -> None:
        steps.append("job ran")

    await client.queue("mail").put(greet)
    settings = Settings(queues=("mail",), burst=True)
    await Worker(client, greet, name="ann", settings=settings, parts=[Noting()]).run()
    assert steps == ["part of ann began", "job ran", "part ended"]


async def test_part_that_fails_ends_the_worker_and_releases_its_jobs(
    client: Client, until: Until
) -> None:
    began: list[str] = []

    @job(klass="Stay")
    async def stay(job: Job[Any]) -> None:
        began.append(job.jid)
        await asyncio.Event().wait()

    await client.queue("mail").put(stay, jid="a")
    part = Broken()
    worker = Worker(client, stay, settings=Settings(queues=("mail",)), parts=[part])
    running = asyncio.create_task(worker.run())
    await until(lambda: began)
    part.failing.set()
    with pytest.raises(ExceptionGroup) as raised:
        await running
    assert raised.group_contains(OSError, match="disk full")
    assert await state_of(client, "a") == "waiting"


async def test_burst_waits_for_a_part_that_puts_jobs(client: Client) -> None:
    ran: list[str] = []

    @job(klass="Greet")
    async def greet(job: Job[Any]) -> None:
        ran.append(job.jid)

    class Putting:
        """Puts a job only when the worker has polled for a while."""

        caught_up = False

        async def run(self, context: WorkerContext) -> None:
            await asyncio.sleep(0.1)
            await context.client.queue("mail").put(greet, jid="a")
            self.caught_up = True

    settings = Settings(queues=("mail",), burst=True)
    await asyncio.wait_for(Worker(client, greet, settings=settings, parts=[Putting()]).run(), 30)
    assert ran == ["a"]


@pytest.mark.parametrize("parts", [Broken, [Broken], ["a"], "a"], ids=str)
async def test_parts_without_a_method_run_are_refused(client: Client, parts: Any) -> None:
    @job(klass="Greet")
    async def greet(job: Job[Any]) -> None: ...

    with pytest.raises(TypeError, match="parts must be a list of objects with a method run"):
        Worker(client, greet, parts=parts)
