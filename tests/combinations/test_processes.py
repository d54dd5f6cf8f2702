"""Worker processes combined with stable names, signals and limits."""

from __future__ import annotations

import os
import signal

import pytest

from aioqless import Client, Limit, NewJob
from tests.cli.conftest import Running, Start
from tests.combinations.conftest import states
from tests.conftest import Until

pytestmark = pytest.mark.long

NAMED = ("--name", "mailer")


def processes(worker: Running) -> dict[int, int]:
    """Return the number of each process that was started, with its latest pid."""
    return {line["process"]: line["pid"] for line in worker.logged("process.started")}


async def test_named_process_killed_after_a_rolling_restart_gets_its_job_back(
    client: Client, start: Start, until: Until
) -> None:
    async with start(
        "-w", "2", "-c", "1", "--shutdown-timeout", "0", *NAMED, begun="process.became_ready"
    ) as worker:
        await until(lambda: len(worker.logged("process.became_ready")) == 2)
        worker.process.send_signal(signal.SIGHUP)
        await until(lambda: worker.logged("supervisor.restart_finished"))
        assert not worker.logged("process.died")
        for jid in "ab":
            await client.queue("mail").put("Stay", jid=jid, retries=1)
        await until(lambda: {line["process"] for line in worker.logged("job.started")} == {1, 3})
        held = next(line["jid"] for line in worker.logged("job.started") if line["process"] == 3)
        os.kill(processes(worker)[3], signal.SIGKILL)
        await until(lambda: [line["jid"] for line in worker.logged("job.started")].count(held) == 2)
        assert [line["jobs"] for line in worker.logged("worker.recovered")] == [1]
        worker.process.terminate()
        assert await worker.ended() == 0
    assert await states(client, "a", "b") == ["waiting", "waiting"]
    await client.jobs.cancel("a", "b")


async def test_concurrency_limit_holds_across_processes_although_one_is_killed(
    client: Client, start: Start, until: Until
) -> None:
    await client.config.set("heartbeat", 2.4)
    await client.config.set("grace-period", 0)
    await client.queue("mail").put_many(
        NewJob("Once", jid=jid, limits=[Limit("k", max_concurrency=1)]) for jid in "a"
    )
    async with start("-w", "2", "-c", "2", begun="process.became_ready") as worker:
        await until(lambda: worker.logged("job.started"))
        await client.queue("mail").put("Slow", jid="b", limits=[Limit("k", max_concurrency=1)])
        await client.queue("mail").put("Slow", jid="free")
        await until(lambda: any(line["jid"] == "free" for line in worker.logged("job.completed")))
        assert await states(client, "a", "b") == ["running", "scheduled"]
        os.kill(processes(worker)[worker.logged("job.started")[0]["process"]], signal.SIGKILL)
        await until(lambda: len(worker.logged("job.completed")) == 3)
        worker.process.terminate()
        await worker.ended()
    assert await states(client, "a", "b") == ["complete", "complete"]
