"""Traces through OpenTelemetry, from put to finish, across processes. Needs
`aioqless[opentelemetry]`.

A worker that is given this module traces its runs and what they put. Whoever puts jobs elsewhere
says `client.context = carried`. Where spans go is set up as ever: by OpenTelemetry's SDK or its
environment variables."""

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
    """Whatever the worker's client puts carries its trace."""


def carried(new: NewJob) -> dict[str, str]:
    """The context of a job that is put now: a span of its own, within the current one."""
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
    client.context = client.context or carried
    yield Tracing()


@middleware
async def span(job: Job[Any], call: Call) -> Any:
    """A span of each run, within the trace that the job was put in. What the handler raises is
    recorded with it."""
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
