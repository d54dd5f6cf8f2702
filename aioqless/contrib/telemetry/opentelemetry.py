"""OpenTelemetry traces and metrics. Needs `aioqless[opentelemetry]`.

A worker that loads this module traces its runs and the jobs that they put, exports the runs that it
counts, and reads the numbers of jobs and the lags of all queues every 15 seconds. A trace continues
from put to finish, across processes: other clients are made with `on_put=[inject_context]`.
Configure exporters as usual, by OpenTelemetry's SDK or its environment variables. Names of
OpenTelemetry's semantic conventions are used where they exist.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

from aioqless import (
    Client,
    Inject,
    Job,
    NewJob,
    Parked,
    Retry,
    Snooze,
    Throttled,
    middleware,
)
from aioqless.contrib.telemetry.queue_readings import (
    BULK_SIZES,
    DURATIONS,
    OTHERS,
    LatestReading,
    QueueReading,
    reading_queues,
)
from aioqless.errors import require_extra
from aioqless.handlers import CallNext, lifespan
from aioqless.validation import to_text
from aioqless.worker import EndedRun, RunCounts

with require_extra("opentelemetry"):
    from opentelemetry import propagate, trace
    from opentelemetry.metrics import CallbackOptions, Observation, get_meter

# By these a handler asks for another run: they are no errors, and `aioqless.outcome` counts them.
CONTROL_FLOW = (Retry, Snooze, Throttled, Parked)
_tracer = trace.get_tracer("aioqless")
_meter = get_meter("aioqless")
_ended = _meter.create_counter(
    "messaging.client.consumed.messages", unit="{message}", description="Runs by outcome"
)
_seconds = _meter.create_histogram(
    "messaging.process.duration",
    unit="s",
    description="How long runs took",
    explicit_bucket_boundaries_advisory=DURATIONS,
)
_waited = _meter.create_histogram(
    "aioqless.wait.duration",
    unit="s",
    description="For how long jobs could have been running before a worker popped them",
    explicit_bucket_boundaries_advisory=DURATIONS,
)
_bulk_jobs = _meter.create_histogram(
    "aioqless.bulk.jobs",
    unit="{job}",
    description="How many jobs bulk handlers were called with",
    explicit_bucket_boundaries_advisory=BULK_SIZES,
)
_latest = LatestReading()


def inject_context(new: NewJob) -> NewJob:
    """Return a job with the context of a span of its own, within the current one."""
    klass = new.klass if isinstance(new.klass, str) else new.klass.klass
    attributes = {
        "messaging.system": "aioqless",
        "messaging.operation.type": "send",
        "aioqless.klass": klass,
    }
    with _tracer.start_as_current_span(
        f"put {klass}", kind=trace.SpanKind.PRODUCER, attributes=attributes
    ):
        context: dict[str, str] = {}
        propagate.inject(context)
    return new.with_options(context={**context, **(new.options.get("context") or {})})


@lifespan
async def tracing(client: Client = Inject) -> AsyncIterator[None]:
    """Let the worker's client put jobs with the current trace."""
    if inject_context not in client.on_put:
        client.on_put.append(inject_context)
    yield


@middleware
async def trace_run(job: Job[Any], call: CallNext) -> Any:
    """Trace each run within the trace that the job was put in; record errors."""
    attributes: dict[str, str | int] = {
        **_attributes_of(job.queue, job.klass),
        "messaging.operation.type": "process",
        "messaging.message.id": to_text(job.jid),
        "aioqless.retries_used": job.retries - job.remaining,
    }
    context = propagate.extract(job.context)
    with _tracer.start_as_current_span(
        f"run {job.klass}",
        context=context,
        kind=trace.SpanKind.CONSUMER,
        attributes=attributes,
        record_exception=False,
        set_status_on_exception=False,
    ) as span:
        try:
            return await call()
        except CONTROL_FLOW:
            raise
        except Exception as error:
            span.record_exception(error)
            span.set_status(trace.StatusCode.ERROR, f"{type(error).__name__}: {error}")
            raise


@lifespan
async def runs(counts: RunCounts = Inject) -> AsyncIterator[None]:
    """Export the runs that the worker counts."""
    counts.exporters.append(export)
    yield
    counts.exporters.remove(export)


def export(run: EndedRun) -> None:
    """Add a run to the metrics."""
    attributes = _attributes_of(run.queue or OTHERS, run.klass or OTHERS)
    more = {"messaging.operation.name": "process"}
    _ended.add(1, {**attributes, **more, "aioqless.outcome": run.outcome})
    if run.error is not None and not isinstance(run.error, CONTROL_FLOW):
        more["error.type"] = type(run.error).__qualname__
    _seconds.record(run.seconds, {**attributes, **more})
    if run.waited is not None:
        names = ("messaging.destination.name", "aioqless.klass")
        _waited.record(run.waited, {name: attributes[name] for name in names})
    if run.bulk:
        _bulk_jobs.record(run.bulk, attributes)


@lifespan
async def metrics(client: Client = Inject) -> AsyncIterator[None]:
    """Read the queues while the worker runs."""
    async with reading_queues(client, _latest.save):
        yield


def _attributes_of(queue: str, klass: str) -> dict[str, str]:
    return {
        "messaging.system": "aioqless",
        "messaging.destination.name": to_text(queue),  # an exporter takes UTF-8 only
        "aioqless.klass": to_text(klass),
    }


def _observe_gauge(
    name: str, unit: str, description: str, values: Callable[[QueueReading], Iterator[Observation]]
) -> None:
    """Report a value of the latest reading whenever metrics are collected."""

    def observe(_options: CallbackOptions) -> Iterator[Observation]:
        if reading := _latest.find():
            yield from values(reading)

    _meter.create_observable_gauge(name, [observe], unit=unit, description=description)


def _jobs(reading: QueueReading) -> Iterator[Observation]:
    for queue, counts in reading.jobs.items():
        for state, count in counts.items():
            yield Observation(count, {"messaging.destination.name": queue, "aioqless.state": state})


def _lags(reading: QueueReading) -> Iterator[Observation]:
    for queue, lag in reading.lags.items():
        yield Observation(lag, {"messaging.destination.name": queue})


def _failed(reading: QueueReading) -> Iterator[Observation]:
    for group, count in reading.failed.items():
        yield Observation(count, {"aioqless.group": group})


_observe_gauge("aioqless.queue.jobs", "{job}", "Jobs of a queue by state", _jobs)
_observe_gauge(
    "aioqless.queue.lag", "s", "For how long the next job of a queue has been waiting", _lags
)
_observe_gauge("aioqless.failed.jobs", "{job}", "Failed jobs by group", _failed)
_observe_gauge(
    "aioqless.archive.entries",
    "{entry}",
    "Entries of the archive that are in Redis",
    lambda reading: iter([Observation(reading.archive_entries)]),
)
_observe_gauge(
    "aioqless.archive.lag",
    "s",
    "For how long the oldest entry of the archive has been unread",
    lambda reading: iter([Observation(reading.archive_lag)]),
)
