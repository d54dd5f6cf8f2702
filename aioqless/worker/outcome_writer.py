"""Store the outcomes of runs.

`store` returns only when Redis has taken or refused the outcome, however long Redis is unavailable:
a lock that expires meanwhile is not taken over before Redis is back. Only a worker that is stopping
waits no longer than its locks last, and cancels the call when its shutdown has taken too long.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeAlias

from redis import exceptions

from aioqless.client.job.reading import MAX_JIDS_PER_CALL
from aioqless.client.job.run import DataChanges, HeldLock
from aioqless.errors import ScriptError
from aioqless.redis.batcher import Batcher, BatcherClosed
from aioqless.runtime.log import log
from aioqless.store import Call, CompleteManyRow
from aioqless.store.script_store import RETRY_WINDOW
from aioqless.worker.context import NOT_NOW, WorkerContext
from aioqless.worker.outcome import (
    Outcome,
    RunCompleted,
    RunDeclined,
    RunFailed,
    RunReleased,
    RunRetried,
    StoreReply,
)
from aioqless.worker.running_jobs import Run

MOST_PER_CALL = 100
CALLS_AT_ONCE = 2  # while Redis works on one, the next batch gathers
REFUSALS = (ScriptError, exceptions.ResponseError, TypeError, ValueError)
UNKNOWN_OUTCOME = (
    "outcome unknown after an outage: an earlier attempt may have succeeded, or another worker now "
    "owns the job"
)
WORKER_ENDED = "the worker has ended"
TOO_LATE = "Redis is unavailable, and the worker stops"


MakeCall: TypeAlias = Callable[..., Call]  # it only lacks its request id


class Dropped(Exception):
    """An outcome is not stored, and says why."""


class OutcomeWriter:
    """Sends outcomes to Redis: completions in batches, others one by one.

    Owns the completions that are not stored yet.
    """

    def __init__(self, context: WorkerContext) -> None:
        self._store = context.store
        self._worker = context.name
        self._outage = context.outage
        self._lifecycle = context.lifecycle
        self._completions: Batcher[tuple[Run, RunCompleted], StoreReply] = Batcher(
            self._complete, name="completions", max_items=MOST_PER_CALL, parallel=CALLS_AT_ONCE
        )
        self._broken = asyncio.Event()
        self._defect: Exception | None = None

    async def run(self) -> None:
        """Wait until canceled, then drop what is not stored, or its callers would hang.

        Raises:
            Exception: A defect broke storing.
        """
        try:
            await self._broken.wait()
            if self._defect is not None:
                raise self._defect
        finally:
            await self._completions.aclose()

    async def store(self, run: Run, outcome: Outcome) -> StoreReply:
        """Store an outcome; return what Redis says of it, or None if it is dropped."""
        try:
            if isinstance(outcome, RunCompleted):
                return await self._completions.submit((run, outcome))
            (reply,) = await self._send([run], self._command(run, outcome))
            if isinstance(reply, Exception):
                raise reply
        except REFUSALS as refusal:
            return refusal
        except Exception as error:
            if not isinstance(error, Dropped | BatcherClosed):
                self._defect = error
                self._broken.set()
            self._drop(run, outcome, str(error) if isinstance(error, Dropped) else WORKER_ENDED)
            return None
        except asyncio.CancelledError:
            self._drop(run, outcome, TOO_LATE)
            raise
        return reply

    async def free_limits(self, run: Run) -> None:
        """Let the limits of a job that was lost admit the next one, if Redis can be asked now.

        Another client that took it away knows no limits; they would count the job until its lock
        had ended.
        """
        constraints = run.job_run.fields.constraints
        if constraints is None or '"limits":' not in constraints:
            return
        call = self._store.free_limits(jid=run.job.jid, constraints=constraints)
        with contextlib.suppress(*NOT_NOW):
            await self._store.pipeline([call])  # which tries once

    def _drop(self, run: Run, outcome: Outcome, why: str) -> None:
        self._lifecycle.note_dropped()
        kind = type(outcome).__name__.removeprefix("Run").lower()
        log.error("job.outcome_dropped", **run.log_fields, outcome=kind, why=why)

    async def _complete(self, batch: list[tuple[Run, RunCompleted]]) -> list[StoreReply]:
        """Store completions. Refusals are returned in their places."""
        rows = [_row(run, completed) for run, completed in batch]
        command = partial(self._store.complete_many, worker=self._worker, batch=rows)
        return await self._send([run for run, _ in batch], command)

    async def _send(self, runs: Sequence[Run], command: MakeCall) -> list[StoreReply]:
        """Send a command until Redis answers; return the reply for each run.

        Each attempt has the same request id, so that it is harmless if an earlier one got through.
        Redis forgets it after RETRY_WINDOW seconds: from then on the fence keeps it harmless, but
        Redis may refuse a repeated call.
        """
        began = time.monotonic()
        with self._store.request() as request:
            call = command(request=request)
            while True:
                asked = time.monotonic()
                try:
                    (reply,) = await self._store.pipeline([call])  # which tries once
                    if isinstance(reply, NOT_NOW):
                        raise reply
                    break
                except NOT_NOW as error:
                    await self._outage.wait_after_failure(error, asked)
                last_deadline = max(run.deadline for run in runs)
                if self._lifecycle.releasing and time.monotonic() > last_deadline:
                    raise Dropped(TOO_LATE)
        self._outage.record_success()
        log.debug("outcomes.stored", jobs=len(runs))
        replies: list[StoreReply] = reply if isinstance(reply, list) else [reply] * len(runs)
        if time.monotonic() - began > RETRY_WINDOW:
            unknown = Dropped(UNKNOWN_OUTCOME)
            return [unknown if isinstance(each, ScriptError) else each for each in replies]
        return replies

    def _command(
        self, run: Run, outcome: RunFailed | RunRetried | RunReleased | RunDeclined
    ) -> MakeCall:
        job, store = run.job, self._store
        held: HeldLock = {"jid": job.jid, "worker": self._worker, "fence": job.fence}
        match outcome:
            case RunFailed(group, message):
                return partial(store.fail, **held, group=group, message=message)
            case RunRetried(delay, group, message, data, keys):
                changes: DataChanges = {"data": data, "data_keys": keys}
                retry = partial(store.retry, **held, queue=job.queue, delay=delay, **changes)
                return partial(retry, group=group, message=message)
            case RunDeclined(delay, timeout, group, message):
                decline = partial(store.decline, **held, delay=delay, timeout=timeout)
                return partial(decline, group=group, message=message)
            case RunReleased(delay, _, data, waits, paused_key, keys):
                changes = {"data": data, "data_keys": keys}
                release = partial(store.release, **held, delay=delay or None, **changes)
                return partial(
                    release, waiting=waits[:MAX_JIDS_PER_CALL] or None, paused_key=paused_key
                )


def _row(run: Run, completed: RunCompleted) -> CompleteManyRow:
    """Return a completed run as a row of `complete_many`."""
    fields = run.job_run.fields
    row: CompleteManyRow = {"jid": fields.jid, "queue": fields.queue, "fence": fields.fence}
    if completed.data is not None:
        row["data"] = completed.data
    if completed.result is not None:
        row["result"] = completed.result
    if completed.answer is not None:
        row["durable"] = "1 " + completed.answer.decode("utf-8", "surrogateescape")
    elif run.job_run.is_durable:
        row["durable"] = "1"
    if completed.data_keys is not None:
        row["data_keys"] = completed.data_keys
    if following := completed.next:
        row["next"] = following.queue
        row["delay"] = following.delay
        row["depends"] = following.depends
    return row
