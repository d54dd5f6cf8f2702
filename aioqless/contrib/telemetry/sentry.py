"""Reports exceptions that handlers raise to Sentry.

Needs `aioqless[sentry]` and a call of `sentry_sdk.init(...)` in a module of yours. `Retry` and
`Fail` are decisions of a handler and are not reported. Events are sent without the job's data:
without local variables of any frame, and with `[Filtered]` for each value of the data that has four
characters or more where it occurs in messages, breadcrumbs, contexts, tags, users, extra data or
spans, in keys too.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec

from aioqless import Fail, Job, Parked, Retry, Snooze, Throttled, middleware
from aioqless.errors import AioqlessError, require_extra
from aioqless.handlers import CallNext

with require_extra("sentry"):
    import sentry_sdk
    from sentry_sdk.integrations.logging import ignore_logger
    from sentry_sdk.utils import current_stacktrace

# Their records have messages of exceptions, with data that only an event of the same run is
# filtered for; Sentry would keep them as breadcrumbs for events of other jobs.
for _name in ("aioqless.job", "aioqless.hook"):
    ignore_logger(_name)

FILTERED = "[Filtered]"
MIN_LENGTH = 4  # characters: shorter values would be found everywhere
MAX_DEPTH = 20
MAX_VALUES = 1_000  # of data; a search for more in each string would block the event loop
# parts of an event that may hold any value
TEXTS = (
    "message", "logentry", "breadcrumbs", "contexts", "extra", "fingerprint", "request", "spans",
    "tags", "user",
)  # fmt: skip
STRUCTURED = ("breadcrumbs", "spans")
# what the SDK itself sets in breadcrumbs, spans and the trace
STRUCTURE = ("timestamp", "start_timestamp", "span_id", "trace_id", "parent_span_id")
# their members that hold what the handler gave
GIVEN = ("data", "tags")


@middleware
async def report(job: Job[Any], call: CallNext) -> Any:
    """Run the handler in an isolation scope named after the klass; capture its exceptions."""
    with sentry_sdk.isolation_scope() as scope:
        scope.set_transaction_name(job.klass)
        scope.set_tags(_tags_of(job))
        scope.set_context("job", _context_of(job))
        scope.add_event_processor(_DataFilter(job))
        try:
            return await call()
        except (Retry, Snooze, Throttled, Parked, Fail, asyncio.CancelledError):
            raise
        except BaseException as error:
            sentry_sdk.capture_exception(error)
            raise


def _tags_of(job: Job[Any]) -> dict[str, str]:
    return {"aioqless.klass": job.klass, "aioqless.queue": job.queue}


def _context_of(job: Job[Any]) -> dict[str, Any]:
    return {
        "jid": job.jid,
        "queue": job.queue,
        "worker": job.worker,
        "remaining": job.remaining,
        "tags": job.tags,
    }


class _DataFilter:
    """Removes a job's data from the events of its run; drops events that can't be filtered."""

    def __init__(self, job: Job[Any]) -> None:
        self._job = job

    def __call__(self, event: Any, hint: Any) -> Any:
        job = self._job
        try:
            hint["attachments"] = []  # files of any content
            values = _data_values(job)
            trace = event.get("contexts", {}).get("trace")
            for part in TEXTS:
                if part in event:
                    event[part] = _filter(event[part], values, structure=part in STRUCTURED)
            if trace is not None:
                event["contexts"]["trace"] = _filter(trace, values, structure=True)
            # what names the job stays, though its data may have the same values
            event.setdefault("contexts", {})["job"] = _context_of(job)
            event["tags"] = {**event.get("tags", {}), **_tags_of(job)}
            if (name := event.get("transaction")) != job.klass:
                event["transaction"] = _filter(name, values)
            if "exception" not in event and sentry_sdk.get_client().options.get(
                "attach_stacktrace"
            ):
                # the SDK adds a stack with local variables after this, unless there is one
                stack = current_stacktrace(include_local_variables=False)
                event.setdefault(
                    "threads",
                    {"values": [{"stacktrace": stack, "crashed": False, "current": True}]},
                )
            for part in ("exception", "threads"):
                for each in event.get(part, {}).get("values", ()):
                    _filter_stack(each, values)
        except Exception:  # the SDK would send an event whose filter failed
            return None
        return event


def _filter_stack(each: dict[str, Any], values: list[str]) -> None:
    if "value" in each:
        each["value"] = _filter(each["value"], values)
    for stack in (each.get("stacktrace"), each.get("raw_stacktrace")):
        for frame in (stack or {}).get("frames", ()):
            frame.pop("vars", None)


def _filter(value: Any, values: list[str], depth: int = 0, *, structure: bool = False) -> Any:
    if depth > MAX_DEPTH:
        return FILTERED
    if value is None or isinstance(value, (bool, datetime)):
        return value
    if isinstance(value, (int, float)):
        return FILTERED if str(value) in values else value
    if isinstance(value, Mapping):
        return {
            _filter(key if isinstance(key, str) else repr(key), values): each
            if structure and key in STRUCTURE
            else _filter(each, values, depth + 1, structure=structure and key not in GIVEN)
            for key, each in value.items()
        }
    if isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
        return [_filter(each, values, depth + 1, structure=structure) for each in value]
    text = value if isinstance(value, str) else repr(value)
    if len(values) > MAX_VALUES:
        text = FILTERED
    else:
        for each in values:
            text = text.replace(each, FILTERED)
    return text


def _data_values(job: Job[Any]) -> list[str]:
    """Return the values of a job's data as text, JSON and `repr`, the longest first."""
    try:
        left = [msgspec.json.decode(job.text)]
    except (AioqlessError, msgspec.MsgspecError):
        left = [job.raw_data]
    found: set[str] = set()
    while left:
        value = left.pop()
        if isinstance(value, (dict, list)):
            left += value.values() if isinstance(value, dict) else value
        elif (
            value is not None
            and not isinstance(value, bool)
            and len(text := str(value)) >= MIN_LENGTH
        ):
            found |= {text, repr(text)[1:-1], msgspec.json.encode(text).decode()[1:-1]}
    return sorted(found, key=len, reverse=True)
