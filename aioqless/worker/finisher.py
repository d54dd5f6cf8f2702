"""Store the outcomes of runs.

`store` returns only when Redis has taken or refused the outcome, however long Redis is away: a lock
that expires meanwhile is nobody else's before Redis is back. Only a worker that is stopping waits
no longer than its locks last.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from aioqless.errors import ScriptError
from aioqless.runtime.log import log
from aioqless.store import Call, Store
from aioqless.store.script_store import RETRY_WINDOW
from aioqless.worker.lifecycle import Lifecycle
from aioqless.worker.outcome import Completed, Failed, Outcome, Released, Retried
from aioqless.worker.redis_checks import NOT_NOW, Outage
from aioqless.worker.run import Run

MOST_PER_CALL = 100
BATCHES_AT_ONCE = 2  # while Redis works on one, the next is filled
UNKNOWN_OUTCOME = (
    "outcome unknown after an outage: an earlier attempt may have succeeded, or another worker now "
    "owns the job"
)
WORKER_ENDED = "the worker has ended"
TOO_LATE = "Redis is away, its lock has expired, and the worker stops"


@dataclass(eq=False)
class _Pending:
    run: Run
    outcome: Outcome
    stored: asyncio.Future[Any]


class Finisher:
    """Owns the pending outcomes. A batch is what gathers while earlier ones are on their way."""

    def __init__(self, store: Store, worker: str, outage: Outage, lifecycle: Lifecycle) -> None:
        self._store = store
        self._worker = worker
        self._outage = outage
        self._lifecycle = lifecycle
        self._pending: list[_Pending] = []
        self._some = asyncio.Event()
        self._closed = False

    async def store(self, run: Run, outcome: Outcome) -> Any:
        """Store an outcome; return the script's reply or refusal, or None if it came too late."""
        pending = _Pending(run, outcome, asyncio.get_running_loop().create_future())
        if self._closed:
            _drop([pending], WORKER_ENDED)
        self._pending.append(pending)
        self._some.set()
        return await pending.stored

    async def run(self) -> None:
        """Store outcomes until canceled; then drop the rest, or their callers would hang."""
        try:
            async with asyncio.TaskGroup() as both:
                for _ in range(BATCHES_AT_ONCE):
                    both.create_task(self._store_batches())
        finally:
            self._closed = True
            _drop(self._pending, WORKER_ENDED)

    async def _store_batches(self) -> None:
        batch: list[_Pending] = []
        try:
            while True:
                while not self._pending:
                    self._some.clear()
                    await self._some.wait()
                batch, self._pending = self._pending[:MOST_PER_CALL], self._pending[MOST_PER_CALL:]
                await self._flush(batch)
        finally:
            _drop(batch, WORKER_ENDED)

    async def _flush(self, batch: list[_Pending]) -> None:
        """Store a batch, and try again while Redis is away.

        Each attempt sends the same calls with the same request ids, so that it is harmless if an
        earlier one got through. Redis forgets these after RETRY_WINDOW seconds: from then on the
        fence keeps it harmless, but Redis may refuse a repeated call.
        """
        began = time.monotonic()
        with contextlib.ExitStack() as requests:
            calls = self._calls(batch, lambda: requests.enter_context(self._store.request()))
            while (replies := await self._send([call for call, _ in calls])) is None:
                last_deadline = max(pending.run.deadline for pending in batch)
                if self._lifecycle.releasing and time.monotonic() > last_deadline:
                    _drop(batch, TOO_LATE)
                    return
        forgotten = time.monotonic() - began > RETRY_WINDOW
        for (_, concerned), reply in zip(calls, replies, strict=True):
            each = reply if isinstance(reply, list) else [reply] * len(concerned)
            for pending, answer in zip(concerned, each, strict=True):
                if forgotten and isinstance(answer, ScriptError):
                    _drop([pending], UNKNOWN_OUTCOME)
                else:
                    pending.stored.set_result(answer)
        log.debug("finisher.flushed", jobs=len(batch), calls=len(calls))

    async def _send(self, calls: list[Call]) -> list[Any] | None:
        """Send calls; return the replies, or None after a pause when Redis is away."""
        asked = time.monotonic()
        try:
            replies = await self._store.pipeline(calls)
            for reply in replies:
                if isinstance(reply, NOT_NOW):
                    raise reply
        except NOT_NOW as error:
            await self._outage.wait_after_failure(error, asked)
            return None
        self._outage.record_success()
        return replies

    def _calls(
        self, batch: list[_Pending], request: Callable[[], str]
    ) -> list[tuple[Call, list[_Pending]]]:
        """Return one call for all completions, and one for each other outcome.

        An outcome with invalid arguments gets the error as its reply and affects no other.
        """
        completed: list[_Pending] = []
        calls: list[tuple[Call, list[_Pending]]] = []
        for pending in batch:
            if isinstance(pending.outcome, Completed):
                completed.append(pending)
                continue
            try:
                calls.append((self._call(pending, pending.outcome, request()), [pending]))
            except (TypeError, ValueError) as wrong:
                pending.stored.set_result(wrong)
        if completed:
            rows = [_row(each.run, each.outcome) for each in completed]
            calls.append(
                (
                    self._store.complete_many(worker=self._worker, batch=rows, request=request()),
                    completed,
                )
            )
        return calls

    def _call(self, pending: _Pending, outcome: Failed | Retried | Released, request: str) -> Call:
        job = pending.run.job
        held: dict[str, Any] = {
            "jid": job.jid,
            "worker": self._worker,
            "fence": job.fence,
            "request": request,
        }
        match outcome:
            case Failed(group, message):
                return self._store.fail(**held, group=group, message=message)
            case Retried(delay, group, message):
                return self._store.retry(
                    **held, queue=job.queue, delay=delay, group=group, message=message
                )
            case Released(delay):
                return self._store.release(**held, delay=delay or None)


def _drop(batch: list[_Pending], why: str) -> None:
    for pending in batch:
        if not pending.stored.done():
            pending.stored.set_result(None)
            log.error(
                "job.outcome_dropped",
                **pending.run.log_fields,
                outcome=type(pending.outcome).__name__,
                why=why,
            )


def _row(run: Run, outcome: Outcome) -> dict[str, Any]:
    """Return a completed run as a row of `complete_many`."""
    assert isinstance(outcome, Completed)
    row: dict[str, Any] = {
        "jid": run.job.jid,
        "queue": run.job.queue,
        "fence": run.job.fence,
        "data": outcome.data,
    }
    if outcome.result is not None:
        row["result"] = outcome.result
    if outcome.next:
        row |= {
            "next": outcome.next.queue,
            "delay": outcome.next.delay,
            "depends": outcome.next.depends,
        }
    return row
