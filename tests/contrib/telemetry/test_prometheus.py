"""Prometheus metrics: outcomes, durations, queue depths and delays."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NoReturn
from urllib.error import HTTPError
from urllib.request import ProxyHandler, build_opener

import pytest
from prometheus_client import REGISTRY, CollectorRegistry, generate_latest
from prometheus_client.mmap_dict import MmapedDict, mmap_key
from prometheus_client.registry import Collector

from aioqless import Client, Fail, Job, bulk_job, job
from aioqless.contrib.telemetry import metrics_server, prometheus, queue_readings
from aioqless.contrib.telemetry.queue_readings import read_queues
from tests.conftest import Until
from tests.programs import find
from tests.worker.conftest import Lines, Work


@job(klass="Measured")
async def measured(job: Job[Any], fail: bool = False) -> None:
    if fail:
        raise Fail("broken", group="broken")


def value(name: str, **labels: str) -> float:
    return REGISTRY.get_sample_value(name, labels) or 0


async def test_runs_are_counted_by_outcome_and_timed(
    client: Client, work: Work, until: Until, lines: Lines
) -> None:
    def counted(end: str) -> float:
        return value("aioqless_runs_total", queue="mail", klass="Measured", outcome=end)

    async with work(measured, prometheus.runs):
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


async def test_runs_without_a_handler_are_counted_as_others_here_and_in_redis(
    client: Client, work: Work, until: Until
) -> None:
    about = {"queue": "others", "klass": "others", "outcome": "failed"}
    before = value("aioqless_runs_total", **about)
    await client.queue("mail").put("Unknown")
    async with work(measured, prometheus.runs, unknown_klass_timeout=0):
        await until(lambda: value("aioqless_runs_total", **about) == before + 1)
    (found,) = await client.metrics.klasses()
    assert (found.klass, found.queue, found.total.failures) == ("others", "others", 1)


async def test_waits_of_jobs_are_measured_by_queue_and_klass(
    client: Client, work: Work, until: Until
) -> None:
    def bucket(bound: str) -> float:
        return value("aioqless_wait_seconds_bucket", queue="mail", klass="Measured", le=bound)

    before = bucket("10.0"), bucket("60.0"), bucket("+Inf")
    await client.queue("mail").put(measured)
    await client.internals.store.put(
        queue="mail", jid="late", klass="Measured", data="{}", now=time.time() - 3630, delay=3600
    )
    async with work(measured, prometheus.runs):
        await until(lambda: bucket("+Inf") == before[2] + 2)
    assert (bucket("10.0"), bucket("60.0")) == (before[0] + 1, before[1] + 2)


@bulk_job(klass="MeasuredMany", queue="mail", size=3, within=0.2)
async def measured_many(jobs: list[Job[Any]]) -> None: ...


async def test_sizes_of_bulks_are_measured_once_for_each_call(
    client: Client, work: Work, until: Until
) -> None:
    about = {"queue": "mail", "klass": "MeasuredMany"}
    for _ in range(4):
        await client.put(measured_many.data({}))
    async with work(measured_many, prometheus.runs):
        await until(lambda: value("aioqless_bulk_jobs_count", **about) == 2)
    assert value("aioqless_bulk_jobs_sum", **about) == 4
    assert value("aioqless_run_seconds_count", **about) == 4


async def test_metrics_of_queues_and_failure_groups_are_current(client: Client) -> None:
    mail = client.queue("mail")
    await mail.put(measured, delay=600)
    await mail.put(measured)
    await mail.put(measured)
    (popped,) = await mail.pop()
    await popped.fail("it broke", group="broken")
    prometheus.latest.save(await read_queues(client))
    assert value("aioqless_queue_jobs", queue="mail", state="waiting") == 1
    assert value("aioqless_queue_jobs", queue="mail", state="scheduled") == 1
    assert value("aioqless_queue_lag_seconds", queue="mail") > 0
    assert value("aioqless_failed_jobs", group="broken") == 1
    await client.jobs.cancel(*await mail.jids("waiting"), popped.jid)
    prometheus.latest.save(await read_queues(client))
    assert (
        value("aioqless_queue_lag_seconds", queue="mail")
        == value("aioqless_failed_jobs", group="broken")
        == 0
    )


async def test_slots_and_memory_of_workers_and_marks_are_read(
    client: Client, work: Work, until: Until
) -> None:
    async with work(measured, concurrency=7, version_label="v1") as worker:
        await until(lambda: client.metrics.workers(worker.name))
        prometheus.latest.save(await read_queues(client))
    assert value("aioqless_worker_slots", worker=worker.name) == 7
    assert value("aioqless_worker_busy_slots", worker=worker.name) == 0
    assert value("aioqless_worker_memory_bytes", worker=worker.name) > 1 << 20
    assert time.time() - value("aioqless_mark_timestamp_seconds", text="v1") < 60


def test_counters_of_a_program_with_an_endpoint_of_its_own_have_times_of_creation() -> None:
    program = """
import aioqless.contrib.telemetry.prometheus
from prometheus_client import Counter, generate_latest
Counter("orders", "Orders")
print(generate_latest().decode())
"""
    found = subprocess.run(
        [sys.executable, "-c", program], check=False, capture_output=True, text=True
    )
    assert "orders_created" in found.stdout, found.stderr


async def test_queues_are_read_while_a_worker_runs_and_not_reported_when_that_was_long_ago(
    client: Client, work: Work, until: Until, monkeypatch: pytest.MonkeyPatch
) -> None:
    def waiting() -> float:
        return value("aioqless_queue_jobs", queue="elsewhere", state="waiting")

    monkeypatch.setattr(queue_readings, "INTERVAL", 0.1)
    monkeypatch.setattr(prometheus, "INTERVAL", 0)  # a test before may have read them
    await client.queue("elsewhere").put(measured)
    async with work(measured, prometheus.metrics):
        await until(lambda: waiting() == 1)
    monkeypatch.setattr(queue_readings, "MAX_AGE", 0)
    assert waiting() == 0


def test_file_that_a_process_is_just_creating_is_left_out(tmp_path: Path) -> None:
    counted = MmapedDict(str(tmp_path / "counter_worker-1.db"))
    counted.write_value(mmap_key("runs_total", "runs_total", [], [], "Runs"), 3.0, 0.0)
    counted.close()
    (tmp_path / "gauge_livesum_worker-1.db").touch()  # it gets its size in a second step
    shared = metrics_server.SharedMetrics(tmp_path, lambda: [1])
    assert [sample.value for metric in shared.collect() for sample in metric.samples] == [3.0]


async def test_metrics_are_served_over_http(lines: Lines) -> None:
    prometheus.ended.labels("mail", "Measured", "completed")
    async with metrics_server.serve_metrics("127.0.0.1:0"):
        (listening,) = lines.of("metrics.listening")
        url = f"http://127.0.0.1:{listening['port']}/metrics"
        with await asyncio.to_thread(build_opener(ProxyHandler({})).open, url) as answer:
            served = answer.read()
    assert b"aioqless_runs_total" in served and b"_created" not in served
    with pytest.raises(OSError):
        await asyncio.to_thread(build_opener(ProxyHandler({})).open, url)


async def test_delayed_queue_is_reported_with_the_reason(client: Client) -> None:
    await client.queue("held").put(measured)
    await client.queue("held").pause()
    await client.queue("mail").put(measured)
    reading = await read_queues(client)
    assert reading.delays == {"held": ("paused", 0)}
    (sample,) = (
        sample
        for metric in metrics_server.QueueCollector(lambda: reading).collect()
        for sample in metric.samples
        if sample.name == "aioqless_queue_delay_seconds"
    )
    assert sample.labels == {"queue": "held", "reason": "paused"}


HOSTILE = ("\udcff", "\x9b31m", "\u202e", 'le="1"} 1\\', "<b>", "x" * 500)


async def test_names_that_are_not_utf8_or_hostile_are_metrics_that_can_be_read(
    client: Client, work: Work, until: Until, tmp_path: Path
) -> None:
    workers = f"{client.namespace}:workers"
    for name in HOSTILE:
        await client.queue(name).put(measured.data(fail=True))
        await client.queue(f"waits-{name}").put("Greet")
        await client.redis.zadd(workers, {name.encode(errors="surrogateescape"): time.time()})
    async with work(measured, prometheus.runs, queues=HOSTILE):
        reading = await until(lambda: _read_with_failures(client))
    prometheus.latest.save(reading)
    metrics_server.SharedReading(tmp_path).save(reading)
    text = generate_latest().decode()
    assert "waits-\\\\udcff" in text and 'queue="le=\\"1\\"} 1\\\\"' in text
    if promtool := find("promtool"):
        checked = await asyncio.to_thread(
            subprocess.run, [promtool, "check", "metrics"], input=text.encode(), check=False
        )
        assert checked.returncode == 0


async def _read_with_failures(client: Client) -> Any:
    reading = await read_queues(client)
    return reading if sum(reading.failed.values()) == len(HOSTILE) else None


async def test_damaged_marks_and_facts_are_left_out(client: Client) -> None:
    await client.metrics.mark("v1")
    marks, facts = f"{client.namespace}:x:marks", f"{client.namespace}:x:beat:ann"
    await client.redis.zadd(marks, dict.fromkeys((b"{", b"7", b'{"at": "x"}', b"\xff"), 1))
    await client.internals.store.beat(worker="ann", process='{"pid": [], "version": "v1"}')
    await client.redis.hset(facts, "process", "{")
    reading = await read_queues(client)
    assert list(reading.marks) == ["v1"] and reading.workers == {}


async def test_readings_go_on_after_one_that_fails(
    client: Client, until: Until, lines: Lines, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue_readings, "INTERVAL", 0.01)
    readings: list[Any] = []
    archive = f"{client.namespace}:x:archive"
    await client.redis.set(archive, "no stream")
    async with queue_readings.reading_queues(client, readings.append):
        await until(lambda: asyncio.sleep(0, lines.of("metrics.failed")))
        await client.redis.delete(archive)
        await until(lambda: asyncio.sleep(0, readings))


async def test_the_lag_of_the_archive_is_read(client: Client) -> None:
    await client.config.set("archive", "on")
    jid = await client.queue("mail").put("Send", {})
    await client.jobs.cancel(jid)
    prometheus.latest.save(await read_queues(client))
    assert value("aioqless_archive_entries") == 1
    assert 0 <= value("aioqless_archive_lag_seconds") < 60


class Broken(Collector):
    """A collector of an application."""

    def collect(self) -> NoReturn:
        raise ValueError("no such table")


async def test_collector_that_raises_is_logged_and_answered_with_status_500(lines: Lines) -> None:
    registry = CollectorRegistry()
    registry.register(Broken())
    async with metrics_server.serve_metrics("127.0.0.1:0", registry):
        port = lines.of("metrics.listening")[0]["port"]
        url = f"http://127.0.0.1:{port}/metrics"
        with pytest.raises(HTTPError, match="500"):
            await asyncio.to_thread(build_opener(ProxyHandler({})).open, url)
    assert "no such table" in lines.of("metrics.failed")[0]["error"]
