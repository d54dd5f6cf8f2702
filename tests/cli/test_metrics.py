"""Metrics of worker processes over HTTP: `--metrics`."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path
from urllib.request import ProxyHandler, build_opener

import pytest
from prometheus_client.parser import text_string_to_metric_families

from aioqless import Client
from tests.cli.conftest import Aioqless, Running, Start
from tests.cli.test_supervisor import pid_of
from tests.conftest import Until

GAUGE = """
import prometheus_client

staying = prometheus_client.Gauge("staying", "Jobs that stay", multiprocess_mode="livesum")

@aioqless.middleware
async def count_staying(job, call):
    if job.klass == "Stay":
        staying.inc()
    return await call()
"""


async def scrape(worker: Running) -> list[tuple[str, dict[str, str], float]]:
    """Name, labels and value of each sample that Prometheus would get."""
    port = worker.logged("metrics.listening")[0]["port"]

    def read() -> str:
        with build_opener(ProxyHandler({})).open(f"http://127.0.0.1:{port}/metrics") as answer:
            return str(answer.read().decode())

    return [
        (sample.name, sample.labels, sample.value)
        for family in text_string_to_metric_families(await asyncio.to_thread(read))
        for sample in family.samples
    ]


async def total(worker: Running, name: str, **labels: str) -> float:
    """The sum of the samples that have these labels."""
    return sum(
        value
        for found, has, value in await scrape(worker)
        if found == name and labels.items() <= has.items()
    )


@pytest.mark.long
async def test_one_endpoint_counts_each_run_of_all_processes_once_also_after_one_is_killed(
    client: Client, folder: Path, start: Start, until: Until
) -> None:
    mail = client.queue("mail")

    async def completed(runs: int) -> bool:
        return await total(worker, "aioqless_runs_total", outcome="completed") == runs

    await client.queue("elsewhere").put("Slow")
    with (folder / "jobs.py").open("a") as jobs:
        jobs.write(GAUGE)
    async with start("-w", "2", "-c", "1", "--metrics", "127.0.0.1:0") as worker:
        await until(lambda: len(worker.logged("process.became_ready")) == 2)
        for klass in ("Wait", "Wait", *["Slow"] * 6):
            await mail.put(klass)
        await until(lambda: len(worker.logged("job.started")) == 2)  # one in each process
        (folder / "go").touch()
        await until(lambda: completed(8))
        assert {line["process"] for line in worker.logged("job.completed")} == {1, 2}
        assert await total(worker, "aioqless_run_seconds_count", klass="Slow") == 6
        samples = await scrape(worker)
        assert (
            samples.count(("aioqless_queue_jobs", {"queue": "elsewhere", "state": "waiting"}, 1.0))
            == 1
        )

        await mail.put("Stay", jid="stay")
        (running,) = await until(lambda: worker.logged("job.started")[8:] or None)
        assert await total(worker, "staying") == 1
        os.kill(pid_of(worker, running["process"]), signal.SIGKILL)
        await until(lambda: worker.logged("process.died"))
        await client.jobs.cancel("stay")
        assert await completed(8)
        await until(lambda: len(worker.logged("process.became_ready")) == 3)
        assert await total(worker, "staying") == 0
        for _ in range(6):
            await mail.put("Slow", 0.05)
        await until(lambda: completed(14))
        worker.process.terminate()
        assert await worker.ended() == 0


async def test_worker_without_a_supervisor_serves_its_metrics(
    client: Client, start: Start, until: Until
) -> None:
    async with start("--metrics", "127.0.0.1:0") as worker:
        await client.queue("mail").put("Slow")

        async def completed() -> bool:
            return await total(worker, "aioqless_runs_total", outcome="completed") == 1

        await until(completed)
        assert await total(worker, "process_open_fds") > 0


async def test_port_in_use_is_refused(aioqless: Aioqless) -> None:
    async with await asyncio.start_server(lambda *_: None, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        ended = await aioqless("worker", "jobs", "--metrics", f"127.0.0.1:{port}", "-w", "1")
    assert ended.code == 1 and f"metrics can't be served at 127.0.0.1:{port}" in ended.err
