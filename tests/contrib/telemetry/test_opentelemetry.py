"""OpenTelemetry traces from put to completion, across jobs, and metrics."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import (
    DataPointT,
    HistogramDataPoint,
    InMemoryMetricReader,
    NumberDataPoint,
)
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from aioqless import Client, Fail, Inject, Job, Limit, Parked, Retry, Snooze, Throttled, job
from aioqless.contrib.telemetry import opentelemetry
from tests.conftest import Until
from tests.worker.conftest import Work

EXPORTER = InMemorySpanExporter()
READER = InMemoryMetricReader()


@pytest.fixture(scope="module", autouse=True)
def provider() -> None:
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(EXPORTER))
    trace.set_tracer_provider(provider)
    metrics.set_meter_provider(MeterProvider([READER]))


@pytest.fixture(autouse=True)
def spans() -> Iterator[InMemorySpanExporter]:
    EXPORTER.clear()
    yield EXPORTER


@job(klass="Second")
async def second(job: Job[Any]) -> None:
    raise ValueError("it broke")


@job(klass="First")
async def first(job: Job[Any], client: Client = Inject) -> None:
    await client.queue("mail").put(second)


async def test_trace_covers_the_request_its_job_and_jobs_put_by_it(
    client: Client, work: Work, until: Until
) -> None:
    client.on_put.append(opentelemetry.inject_context)
    async with work(first, second, opentelemetry.tracing, opentelemetry.trace_run):
        with trace.get_tracer("web").start_as_current_span("request"):
            await client.queue("mail").put(first)
        by_name: dict[str, ReadableSpan] = await until(
            lambda: named() if len(named()) == 5 else None
        )
    assert set(by_name) == {"request", "put First", "run First", "put Second", "run Second"}
    assert len({span.context.trace_id for span in by_name.values() if span.context}) == 1
    for name, above in (
        ("put First", "request"),
        ("run First", "put First"),
        ("put Second", "run First"),
        ("run Second", "put Second"),
    ):
        parent, span = by_name[name].parent, by_name[above].context
        assert parent and span and parent.span_id == span.span_id
    run = by_name["run Second"]
    assert run.attributes and run.attributes["messaging.destination.name"] == "mail"
    assert not run.status.is_ok and [event.name for event in run.events] == ["exception"]


async def test_job_without_a_trace_starts_one(client: Client, work: Work, until: Until) -> None:
    await client.queue("mail").put(second)
    async with work(second, opentelemetry.tracing, opentelemetry.trace_run):
        spans = await until(lambda: named() or None)
    assert set(spans) == {"run Second"} and spans["run Second"].parent is None


def named() -> dict[str, ReadableSpan]:
    return {span.name: span for span in EXPORTER.get_finished_spans()}


def points(name: str, **attributes: str) -> list[DataPointT]:
    """The data points of a metric that have these attributes, with `_` for each dot."""
    collected = READER.get_metrics_data()
    if collected is None:
        return []
    return [
        point
        for resource in collected.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
        if metric.name == name
        for point in metric.data.data_points
        if attributes.items()
        <= {key.replace(".", "_"): value for key, value in (point.attributes or {}).items()}.items()
    ]


async def test_runs_are_counted_by_outcome_and_measured(
    client: Client, work: Work, until: Until
) -> None:
    @job(klass="Counted")
    async def counted(job: Job[Any], error: bool = False) -> None:
        if error:
            raise KeyError("it broke")

    ran = {"messaging_destination_name": "mail", "aioqless_klass": "Counted"}
    for error in (False, False, True):
        await client.queue("mail").put(counted.data(error=error))
    async with work(counted, opentelemetry.runs):
        await until(
            lambda: points("messaging.client.consumed.messages", aioqless_outcome="failed", **ran)
        )
    (completed,) = points("messaging.client.consumed.messages", aioqless_outcome="completed", **ran)
    durations = points("messaging.process.duration", **ran)
    (wait,) = points("aioqless.wait.duration", messaging_destination_name="mail")
    assert isinstance(wait, HistogramDataPoint) and wait.count >= 3
    assert isinstance(completed, NumberDataPoint) and completed.value == 2
    assert {
        ((point.attributes or {}).get("error.type"), point.count)
        for point in durations
        if isinstance(point, HistogramDataPoint) and point.explicit_bounds[-1] == 1800
    } == {(None, 2), ("KeyError", 1)}


@pytest.mark.parametrize(
    ("decision", "error"),
    [
        (Snooze(3600), None),
        (Throttled(Limit("vendor", rate=(9, 60)), 3600), None),
        (Retry("later", delay=3600), None),
        (Parked(waits=("never",)), None),
        (Fail("no such customer"), "Fail"),
    ],
    ids=lambda each: type(each).__name__,
)
async def test_only_failures_are_errors_of_a_span_and_of_the_duration(
    decision: BaseException, error: str | None, client: Client, work: Work, until: Until
) -> None:
    klass = f"Decides{type(decision).__name__}"

    @job(klass=klass)
    async def decides(job: Job[Any]) -> None:
        raise decision

    await client.queue("mail").put(decides)
    async with work(decides, opentelemetry.trace_run, opentelemetry.runs):
        span = (await until(lambda: named() or None))[f"run {klass}"]
    (duration, *_) = points("messaging.process.duration", aioqless_klass=klass)
    assert (duration.attributes or {}).get("error.type") == error
    assert [event.name for event in span.events] == (["exception"] if error else [])
    assert (span.status.status_code is trace.StatusCode.ERROR) == bool(error)


async def test_queues_are_observed_while_a_worker_runs(
    client: Client, work: Work, until: Until
) -> None:
    await client.queue("elsewhere").put(second)
    async with work(second, opentelemetry.metrics):
        (jobs,) = await until(
            lambda: points(
                "aioqless.queue.jobs",
                messaging_destination_name="elsewhere",
                aioqless_state="waiting",
            )
        )
        (lag,) = points("aioqless.queue.lag", messaging_destination_name="elsewhere")
    assert isinstance(jobs, NumberDataPoint) and jobs.value == 1
    assert isinstance(lag, NumberDataPoint) and lag.value > 0
