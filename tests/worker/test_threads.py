"""Plain functions run in threads."""

from __future__ import annotations

import threading
from typing import Any

import anyio.from_thread

from aioqless import Client, Job, job
from tests.conftest import Until
from tests.worker.conftest import Lines, Work
from tests.worker.states import after


async def test_plain_functions_run_concurrently_in_threads(
    client: Client, work: Work, until: Until
) -> None:
    meeting = threading.Barrier(3, timeout=30)

    @job(klass="Meet")
    def meet(job: Job[Any]) -> None:
        meeting.wait()

    jids = [await client.queue("mail").put(meet) for _ in range(3)]
    async with work(meet):
        for jid in jids:
            await after(client, until, jid, "complete")


async def test_number_of_threads_is_limited(client: Client, work: Work, until: Until) -> None:
    inside, most, ran = 0, 0, 0
    lock = threading.Lock()

    @job(klass="Count")
    def count(job: Job[Any]) -> None:
        nonlocal inside, most, ran
        with lock:
            inside += 1
            most = max(most, inside)
        threading.Event().wait(0.01)
        with lock:
            inside -= 1
            ran += 1

    for _ in range(12):
        await client.queue("mail").put(count)
    async with work(count, threads=2, concurrency=8):
        await until(lambda: ran == 12)
    assert most == 2


async def test_thread_can_call_methods_of_its_job_through_the_loop(
    client: Client, work: Work, until: Until
) -> None:
    @job(klass="Page")
    def page(job: Job[Any]) -> None:
        job.data["page"] = 2
        anyio.from_thread.run(job.heartbeat)
        anyio.from_thread.run(job.log, "halfway")

    jid = await client.queue("mail").put(page, {"page": 1})
    async with work(page):
        done = await after(client, until, jid, "complete")
    assert done.data == {"page": 2} and "halfway" in [event["what"] for event in done.events]


async def test_log_lines_of_a_thread_name_the_job(
    client: Client, work: Work, until: Until, lines: Lines
) -> None:
    from aioqless.runtime.log import log

    @job(klass="Tell")
    def tell(job: Job[Any]) -> None:
        log.info("job.told")

    jid = await client.queue("mail").put(tell)
    async with work(tell):
        await until(lambda: lines.of("job.told", jid=jid, klass="Tell", queue="mail"))
