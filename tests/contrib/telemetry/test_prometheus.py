"""Prometheus metrics: outcomes, durations, queue depths and delays."""

from __future__ import annotations

import asyncio
import socket
from typing import Any
from urllib.request import ProxyHandler, build_opener

import pytest
from prometheus_client import REGISTRY

from aioqless import Client, Fail, Job, job
from aioqless.contrib.telemetry import prometheus
from tests.conftest import Until
from tests.worker.conftest import Lines, Work


@job(klass="Measured")
async def measured(job: Job[Any], fail: bool = False) -> None:
    if fail:
        raise Fail("broken")


def value(name: str, **labels: str) -> float:
    return REGISTRY.get_sample_value(name, labels) or 0


async def test_runs_are_counted_by_outcome_and_timed(
    client: Client, work: Work, until: Until, lines: Lines
) -> None:
    def counted(end: str) -> float:
        return value("aioqless_runs_total", queue="mail", klass="Measured", end=end)

    async with work(measured, prometheus.measure, prometheus.count):
        before = (
            counted("completed"),
            counted("failed"),
            value("aioqless_run_seconds_count", queue="mail", klass="Measured"),
        )
        for fail in (False, False, True):
            await client.queue("mail").put(measured.data(fail=fail))
        await until(
            lambda: counted("completed") == before[0] + 2 and counted("failed") == before[1] + 1
        )
    assert value("aioqless_run_seconds_count", queue="mail", klass="Measured") == before[2] + 3
    assert value("aioqless_running", queue="mail", klass="Measured") == 0


async def test_metrics_of_queues_and_failure_groups_are_current(client: Client) -> None:
    mail = client.queue("mail")
    await mail.put(measured, delay=600)
    await mail.put(measured)
    await mail.put(measured)
    (popped,) = await mail.pop()
    await popped.fail("broken", "it broke")
    await prometheus.read_gauges(client)
    assert value("aioqless_queue_jobs", queue="mail", state="waiting") == 1
    assert value("aioqless_queue_jobs", queue="mail", state="scheduled") == 1
    assert value("aioqless_queue_lag_seconds", queue="mail") > 0
    assert value("aioqless_failed_jobs", group="broken") == 1
    await client.jobs.cancel(*await mail.jobs("waiting"), popped.jid)
    await prometheus.read_gauges(client)
    assert (
        value("aioqless_queue_lag_seconds", queue="mail")
        == value("aioqless_failed_jobs", group="broken")
        == 0
    )


async def test_worker_serves_its_metrics(
    client: Client, work: Work, until: Until, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    monkeypatch.setenv("AIOQLESS_METRICS_PORT", str(port))
    await client.queue("elsewhere").put(measured)
    opened = build_opener(ProxyHandler({})).open

    def page() -> str:
        with opened(f"http://127.0.0.1:{port}/metrics") as answer:
            return str(answer.read().decode())

    async def told() -> bool:
        return (
            'aioqless_queue_jobs{queue="elsewhere",state="waiting"} 1.0'
            in await asyncio.to_thread(page)
        )

    async with work(measured, prometheus.metrics):
        await until(lambda: value("aioqless_queue_jobs", queue="elsewhere", state="waiting") == 1)
        assert await told()
    with pytest.raises(OSError):
        await asyncio.to_thread(page)


async def test_the_lag_of_the_archive_is_read(client: Client) -> None:
    await client.config.set("archive", "on")
    jid = await client.queue("mail").put("Send", {})
    await client.jobs.cancel(jid)
    await prometheus.read_gauges(client)
    assert value("aioqless_archive_entries") == 1
    assert 0 <= value("aioqless_archive_lag_seconds") < 60
