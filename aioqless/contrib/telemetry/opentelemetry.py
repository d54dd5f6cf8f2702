"""OpenTelemetry traces from put to finish, across processes. Needs `aioqless[opentelemetry]`.

A worker that loads this module traces its runs and the jobs that they put. Other clients call
`client.set_default_context(inject_context)`. Configure exporters as usual, by OpenTelemetry's SDK
or its environment variables.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from aioqless import Client, Inject, Job, NewJob, middleware, resource
from aioqless.errors import require_extra
from aioqless.handlers import Call

with require_extra("opentelemetry"):
    from opentelemetry import propagate, trace

_tracer = trace.get_tracer("aioqless")


class Tracing:
    """Marks that the jobs that the worker's client puts carry its trace."""


def inject_context(new: NewJob) -> dict[str, str]:
    """Return the context of a job that is put now: a span of its own, within the current one."""
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
        return context


@resource
async def tracing(client: Client = Inject) -> AsyncIterator[Tracing]:
    """Let the worker's client put jobs with the current trace."""
    if not client.has_default_context:
        client.set_default_context(inject_context)
    yield Tracing()


@middleware
async def trace_run(job: Job[Any], call: Call) -> Any:
    """Trace each run within the trace that the job was put in; record exceptions."""
    attributes: dict[str, str | int] = {
        "messaging.system": "aioqless",
        "messaging.operation.type": "process",
        "messaging.destination.name": job.queue,
        "messaging.message.id": job.jid,
        "aioqless.klass": job.klass,
        "aioqless.retries_used": job.retries - job.remaining,
    }
    context = propagate.extract(job.context)
    with _tracer.start_as_current_span(
        f"run {job.klass}", context=context, kind=trace.SpanKind.CONSUMER, attributes=attributes
    ):
        return await call()
