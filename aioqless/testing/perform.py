"""Perform a handler with no Redis."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, cast

from aioqless.client.codec import PlainCodec
from aioqless.client.job import Job
from aioqless.client.job.progress_reporter import ReportedJob
from aioqless.client.job.services import Services
from aioqless.client.json_data import LIMIT
from aioqless.client.put import NewJob
from aioqless.errors import AioqlessError
from aioqless.handlers import Handler, Handlers, Middleware, MiddlewareStack, Resources
from aioqless.handlers.retry_policy import NEVER, RetryPolicy
from aioqless.lua import constant
from aioqless.store import Call, OfflineStore
from aioqless.store.call import T
from aioqless.worker.outcome import Outcome, outcome_of, returned
from aioqless.worker.perform import perform as performed
from aioqless.worker.run import Run

LOCK = 60.0


@dataclass(frozen=True)
class Performed:
    """What came of a run. `outcome` is what a worker would have stored (Complete, Again, Failed: of
    aioqless.worker.outcome), None if the handler itself completed, failed, retried or released the
    job. `said` are the commands that it gave, with their arguments."""

    outcome: Outcome | None
    result: Any
    error: BaseException | None
    job: Job
    said: list[tuple[str, dict[str, Any]]]


class _LockOnlyStore(OfflineStore):
    """Answers what a handler's job may ask of its lock; refuses whatever else would need Redis."""

    def __init__(self) -> None:
        self.said: list[tuple[str, dict[str, Any]]] = []

    async def send(self, call: Call[T]) -> T:
        """Note a command of the holder of a lock."""
        answers = {
            "heartbeat": time.time() + LOCK,
            "complete": "complete",
            "fail": None,
            "retry": 0,
            "release": "waiting",
            "log": None,
        }
        if call.command not in answers:
            raise AioqlessError(
                f"perform() has no Redis to {call.command} on; "
                "test this with a client of aioqless_client"
            )
        given = {name: value for name, value in call.arguments.items() if value is not None}
        self.said.append((call.command, given))
        return cast(T, answers[call.command])

    def report(self, job: ReportedJob, share: float, message: str) -> None:
        """Note progress."""
        self.said.append(("progress", {"share": share, "message": message}))


async def perform(
    new: NewJob,
    *,
    resources: Mapping[Any, Any] = MappingProxyType({}),
    middleware: Sequence[Middleware] = (),
    retry: RetryPolicy = NEVER,
    **fields: Any,
) -> Performed:
    """Run a new job, `await perform(resize.data(path="a.png"), resources={Pool: fake})`, as a
    worker would that has these resources by type, this middleware, and this retry policy for
    handlers without one. `fields` are what the job has beside: queue, jid, remaining, tags, ...

    What the handler raises is not raised, but in `error` and decides the outcome. Raises
    InvalidData for data that it can't take."""
    if not isinstance(new.klass, Handler):
        raise TypeError(
            f"perform takes a job for a handler, which @job makes of a function, not for the klass {new.klass!r}"
        )
    arguments = new.arguments(LIMIT)
    retries = constant("DEFAULT_RETRIES") if arguments["retries"] is None else arguments["retries"]
    record: dict[str, Any] = {
        "jid": arguments["jid"], "klass": arguments["klass"], "queue": "default", "state": "running", "worker": "test",
        "priority": arguments["priority"] or 0, "tags": arguments["tags"] or [], "retries": retries, "remaining": retries,
        "expires": time.time() + LOCK, "tracked": False, "failure": {}, "spawned_from_jid": None, "fence": 1,
        "data": arguments["data"].decode(), "context": new.context, **fields,
    }  # fmt: skip
    store = _LockOnlyStore()
    now = time.monotonic()
    run = Run(
        Job(Services(store, PlainCodec(), progress_reporter=store), record),
        started=now,
        lock=LOCK,
        deadline=now + LOCK,
        handler=new.klass,
    )
    given = Resources(there=resources)
    given.check(new.klass.fn, new.klass.takes.given)
    try:
        returned(
            run, await performed(run, Handlers([new.klass]), MiddlewareStack(middleware, (), given))
        )
    except Exception as error:
        run.error = error
    return Performed(outcome_of(run, retry), run.result, run.error, run.job, store.said)
