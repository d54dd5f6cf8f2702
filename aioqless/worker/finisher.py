"""Store the outcomes of runs.

`store` returns only when Redis has taken or refused the outcome, however long Redis is away: a lock
that expires meanwhile is nobody else's before Redis is back. Only a worker that is stopping waits
no longer than its locks last."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from aioqless.errors import ScriptError
from aioqless.log import log
from aioqless.store import Call, Store
from aioqless.store.script_store import FORGOTTEN
from aioqless.worker.outage import NOT_NOW, Outage
from aioqless.worker.outcome import Again, Complete, Failed, Outcome, Release
from aioqless.worker.run import Run

MOST_PER_CALL = 100
UNSURE = "refused after an outage in which Redis forgot earlier tries: one of them got through, or the job is another worker's"
AT_ONCE = 2  # batches on their way: while Redis works on one, the next is made


@dataclass(eq=False)
class _Pending:
    run: Run
    outcome: Outcome
    stored: asyncio.Future[Any]


class Finisher:
    """Owns the pending outcomes. Whatever gathers while two batches are on their way is the next:
    no timer, no threshold."""

    def __init__(self, store: Store, worker: str, outage: Outage) -> None:
        self._store = store
        self._worker = worker
        self._outage = outage
        self._pending: list[_Pending] = []
        self._some = asyncio.Event()
        self._closed = False
        self.stopping = False  # the worker won't wait for Redis for longer than its locks last

    async def store(self, run: Run, outcome: Outcome) -> Any:
        """Hand over an outcome and wait until it is stored: the script's reply, its refusal, or
        None when it came too late."""
        pending = _Pending(run, outcome, asyncio.get_running_loop().create_future())
        if self._closed:
            _drop(pending, "the worker has ended")
        self._pending.append(pending)
        self._some.set()
        return await pending.stored

    async def run(self) -> None:
        """Store outcomes until cancelled; what isn't stored then is dropped, or he who waits for it
        would wait for ever."""
        try:
            async with asyncio.TaskGroup() as both:
                for _ in range(AT_ONCE):
                    both.create_task(self._store_always())
        finally:
            self._closed = True
            for pending in self._pending:
                _drop(pending, "the worker has ended")

    async def _store_always(self) -> None:
        batch: list[_Pending] = []
        try:
            while True:
                while not self._pending:
                    self._some.clear()
                    await self._some.wait()
                batch, self._pending = self._pending[:MOST_PER_CALL], self._pending[MOST_PER_CALL:]
                await self._flush(batch)
        finally:
            for pending in batch:
                _drop(pending, "the worker has ended")

    async def _flush(self, batch: list[_Pending]) -> None:
        """Store a batch, and try again while Redis is away.

        Each try sends the same calls under the same identities, so it is harmless if an earlier one
        got through. After FORGOTTEN seconds it still is, by the fence, but a refusal may come of
        that."""
        began = time.monotonic()
        with contextlib.ExitStack() as identities:
            calls = self._calls(batch, lambda: identities.enter_context(self._store.request()))
            while (answers := await self._sent([call for call, _ in calls])) is None:
                if self.stopping and time.monotonic() > max(
                    pending.run.deadline for pending in batch
                ):
                    for pending in batch:
                        _drop(pending, "Redis is away, its lock has expired, and the worker stops")
                    return
        unsure = time.monotonic() - began > FORGOTTEN
        for (_, answered), answer in zip(calls, answers, strict=True):
            each = answer if isinstance(answer, list) else [answer] * len(answered)
            for pending, reply in zip(answered, each, strict=True):
                if unsure and isinstance(reply, ScriptError):
                    _drop(pending, UNSURE)
                else:
                    pending.stored.set_result(reply)
        log.debug("finisher.flushed", jobs=len(batch), calls=len(calls))

    async def _sent(self, calls: list[Call]) -> list[Any] | None:
        """The answers; None, after a pause, when Redis is away."""
        asked = time.monotonic()
        try:
            answers = await self._store.pipeline(calls)
            for answer in answers:
                if isinstance(answer, NOT_NOW):
                    raise answer
        except NOT_NOW as away:
            await self._outage.pause(away, asked)
            return None
        self._outage.found()
        return answers

    def _calls(
        self, batch: list[_Pending], identity: Callable[[], str]
    ) -> list[tuple[Call, list[_Pending]]]:
        """Completions travel in one call, the others each in their own. One that can't be said
        spoils no others."""
        completed = [pending for pending in batch if isinstance(pending.outcome, Complete)]
        calls = []
        for pending in batch:
            if not isinstance(pending.outcome, Complete):
                try:
                    calls.append((self._call(pending, identity()), [pending]))
                except (TypeError, ValueError) as wrong:
                    pending.stored.set_result(wrong)
        if completed:
            rows = [_completion(pending) for pending in completed]
            calls.append(
                (
                    self._store.complete_many(worker=self._worker, batch=rows, request=identity()),
                    completed,
                )
            )
        return calls

    def _call(self, pending: _Pending, request: str) -> Call:
        job = pending.run.job
        held: dict[str, Any] = {
            "jid": job.jid,
            "worker": self._worker,
            "fence": job.fence,
            "request": request,
        }
        match pending.outcome:
            case Failed(group, message):
                return self._store.fail(**held, group=group, message=message)
            case Again(delay, group, message):
                return self._store.retry(
                    **held, queue=job.queue, delay=delay, group=group, message=message
                )
            case Release(delay):
                return self._store.release(**held, delay=delay or None)
        raise AssertionError(pending.outcome)


def _drop(pending: _Pending, why: str) -> None:
    if not pending.stored.done():
        pending.stored.set_result(None)
        log.error(
            "job.outcome_dropped",
            **pending.run.who,
            outcome=type(pending.outcome).__name__,
            why=why,
        )


def _completion(pending: _Pending) -> dict[str, Any]:
    job, outcome = pending.run.job, pending.outcome
    assert isinstance(outcome, Complete)
    row: dict[str, Any] = {
        "jid": job.jid,
        "queue": job.queue,
        "fence": job.fence,
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
