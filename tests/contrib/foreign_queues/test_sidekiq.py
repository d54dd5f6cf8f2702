"""Import of jobs that Sidekiq's own client pushed."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path

from aioqless import Client, Job, Settings, Worker, job
from aioqless.contrib.foreign_queues import ForeignQueues, ImportLoop
from aioqless.worker.context import Outage
from tests.conftest import Until, existing_job
from tests.contrib.foreign_queues.conftest import Push
from tests.server import OwnServer

ROOT = Path(__file__).parents[3]


async def test_jobs_of_sidekiq_keep_their_arguments(here: Client, push: Push) -> None:
    now, later, post, *plain = await push("some")
    sent = [json.loads(entry) for entry in await here.redis.lrange("queue:mail", 0, -1)]
    assert await ImportLoop(here, ForeignQueues(format="sidekiq"), Outage()).run_once() == 6

    hard = await existing_job(here, now)
    assert (hard.klass, hard.queue, hard.state, hard.retries, hard.tags) == (
        "HardWorker",
        "mail",
        "waiting",
        7,
        ["ruby", "hard"],
    )
    assert hard.raw_data == '[1,2.0,"é \\" \\\\ ]}",null,[],{},{"args":[3]},12345678901234567890]'
    assert (await existing_job(here, later)).state == "scheduled"
    assert (
        3500
        < await here.redis.zscore("ql:q:mail-scheduled", later) - await here.internals.store.now()
        <= 3600
    )
    assert ((await existing_job(here, post)).queue, (await existing_job(here, post)).retries) == (
        "post",
        0,
    )
    bulk = [await existing_job(here, jid) for jid in plain]
    assert [(each.klass, each.raw_data, each.retries) for each in bulk] == [
        ("Plain", f'["{x}"]', 25) for x in "abc"
    ]
    assert {entry["jid"] for entry in sent} == {now, *plain}
    assert [
        await here.redis.exists(key)
        for key in ("queue:mail", "queue:post", "schedule", "ql:x:rejected-imports")
    ] == [0, 0, 0, 0]


async def test_worker_runs_jobs_of_sidekiq_in_order(here: Client, push: Push, until: Until) -> None:
    done: list[tuple[str, int]] = []

    @job(klass="HardWorker")
    async def hard(job: Job, number: int) -> None:
        done.append((job.jid, number))

    settings = Settings(queues=("mail",), concurrency=1, poll=0.05)
    async with Worker(here, hard, settings=settings, parts=[ForeignQueues(format="sidekiq")]):
        jids = await push("many")
        await until(lambda: len(done) == 1000, 30)
    assert done == [(jid, number) for number, jid in enumerate(jids, 1)]


async def test_killed_import_loses_and_doubles_nothing(
    here: Client, push: Push, until: Until, own_server: OwnServer
) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "AIOQLESS_URL": own_server.url}

    async def start(log_level: str = "error") -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "aioqless",
            "import",
            "--format",
            "sidekiq",
            "--poll",
            "0.01",
            "--log-level",
            log_level,
            env=environment,
            stderr=None if log_level == "error" else asyncio.subprocess.PIPE,
        )

    async def there(count: int) -> bool:
        return (await here.queue("mail").counts()).waiting >= count

    pushing = asyncio.create_task(push("many"))  # type: ignore[arg-type, var-annotated]
    for reached in (1, 300, 600):
        process = await start()
        await until(lambda reached=reached: there(reached), 30)
        process.kill()
        await process.wait()
    jids = await pushing
    process = await start("info")
    assert process.stderr
    while b"import.started" not in await process.stderr.readline():
        assert not process.stderr.at_eof()
    await until(lambda: there(1000), 30)
    process.terminate()
    await process.communicate()
    assert process.returncode == 0
    assert [each.jid for each in await here.queue("mail").peek(count=1001)] == jids
    assert await here.redis.exists("queue:mail", "ql:x:rejected-imports") == 0
