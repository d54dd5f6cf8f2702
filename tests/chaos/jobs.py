"""The handlers of the workers.

They record when a run starts, when it ends, and when Redis has stored its outcome.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from redis.exceptions import NoPermissionError

import aioqless
from aioqless.errors import WrongState
from aioqless.handlers.middleware_stack import ENDS
from aioqless.handlers.retry_policy import fixed
from tests.chaos.ledger import Ledger
from tests.chaos.producer import API, PAUSE, VALUES

FIRST, SECOND, WANTED = "first", "second", "wanted"

# How a job runs; its name ends with this word.
# quick slow    on the event loop, for `seconds`
# thread        a plain function
# later after   put with a delay; depends on other jobs of its workflow
# next          continues in the second queue
# retry         runs again, unless it lost its lock before
# fail          fails in the group `wanted`
# undo          was put by the failure of another
# run           depends on a job that fails, and runs when it has
# steps         makes a step, emits output, calls another and waits for its signal
# called        is called by another, and sends it a signal
# dies          kills its worker between the effect of its step and storing it, once
# items         does each item of a list, with a cursor
# speak         emits values
# block         blocks its worker's event loop
# limited       at most five run at once, and 50 start in a second, in all workers
# throttled     pauses its limit in every second run, as after the answer 429
# bulk          runs together with others
# kill          kills its worker in the middle of a bulk, and not when it runs alone
# poison        kills its worker
# (None of them retries an outage of Redis: calls of a handler wait for it.)
# (They wait with Event.wait: time.sleep fails under libfaketime when a clock is set.)

ledger = Ledger(Path(os.environ["CHAOS_LEDGER"]), "worker")


class Run:
    """A run and how it will end."""

    def __init__(self) -> None:
        self.how = "done"


@contextmanager
def noted(job: aioqless.Job[Any]) -> Iterator[Run]:
    run = Run()
    ledger.note("start", job.jid, job.fence, job.worker, job.expires, time.time(), os.getpid())
    try:
        yield run
    except (aioqless.Retry, aioqless.Fail) as wanted:
        run.how = type(wanted).__name__.lower()
        raise
    except NoPermissionError:
        run.how = "retry"
        raise
    except aioqless.Throttled:
        run.how = "throttled"
        raise
    except aioqless.Parked:
        run.how = "parked"
        raise
    except asyncio.CancelledError:
        run.how = "parked" if job.parked is not None else f"stopped: {job.stopped}"
        raise
    finally:
        ledger.note("end", job.jid, job.fence, run.how, job.expires)


@aioqless.job(klass="chaos.act")
async def act(job: aioqless.Job[Any], how: str, seconds: float) -> aioqless.Next | None:
    with noted(job) as run:
        if how == "poison":
            os.kill(os.getpid(), signal.SIGKILL)
        if how == "block":
            threading.Event().wait(seconds)
        await asyncio.sleep(seconds)
        if how == "fail":
            raise aioqless.Fail("as it was put", group=WANTED)
        if how == "throttled" and secrets.randbelow(2):
            raise aioqless.Throttled(API, PAUSE)
        if how == "retry" and job.remaining == job.retries:
            raise aioqless.Retry(delay=0.2)
        if how == "next" and job.queue == FIRST:
            run.how = "next"
            return aioqless.Next(SECOND)
    return None


@aioqless.job(klass="chaos.thread")
def in_thread(job: aioqless.Job[Any], how: str, seconds: float) -> None:
    with noted(job):
        threading.Event().wait(seconds)


@aioqless.job(klass="chaos.steps", retry_on=NoPermissionError, backoff=fixed(0.2))
async def make_steps(job: aioqless.Job[Any], how: str, seconds: float) -> None:
    async def effect() -> str:
        token = secrets.token_hex(8)
        ledger.note("effect", job.jid, token)
        return token

    with noted(job):
        token = await job.step("effect", effect)
        ledger.note("stored", job.jid, "effect", token)
        job.emit(token)
        try:
            child = called.data(how="called", seconds=seconds)
            answer, _ = await asyncio.gather(job.wait_for("answer", str), job.call("child", child))
        except aioqless.JobFailed as failed:  # it was given up
            raise aioqless.Fail(failed.message, group=failed.group) from None
        ledger.note("stored", job.jid, "answer", answer)


@aioqless.job(klass="chaos.dies", retry_on=NoPermissionError, backoff=fixed(0.2))
async def die_in_step(job: aioqless.Job[Any], how: str, seconds: float) -> None:
    async def effect() -> str:
        token = secrets.token_hex(8)
        ledger.note("effect", job.jid, token)
        if ledger.is_first("death", job.jid):
            os.kill(os.getpid(), signal.SIGKILL)
        return token

    with noted(job):
        for name in ("effect", "other"):
            ledger.note("stored", job.jid, name, await job.step(name, effect))


@aioqless.job(klass="chaos.items", retry_on=NoPermissionError, backoff=fixed(0.2))
async def do_items(job: aioqless.Job[Any], how: str, seconds: float) -> None:
    with noted(job):
        async with job.cursor("items", int) as items:
            ledger.note("position", job.jid, items.value or 0)
            for number in range(items.value or 0, VALUES):
                await asyncio.sleep(seconds / VALUES)
                ledger.note("item", job.jid, number)
                items.advance(number + 1)


@aioqless.job(klass="chaos.speak", retry_on=NoPermissionError, backoff=fixed(0.2))
async def speak(job: aioqless.Job[Any], how: str, seconds: float) -> None:
    with noted(job):
        for number in range(VALUES):
            job.emit(number)
            await asyncio.sleep(seconds / VALUES)


@aioqless.job(klass="chaos.called", queue=SECOND, retry_on=NoPermissionError, backoff=fixed(0.2))
async def called(
    job: aioqless.Job[Any],
    how: str,
    seconds: float,
    client: aioqless.Client = aioqless.Inject,
) -> None:
    with noted(job):
        await asyncio.sleep(seconds)
        # A job that was given up receives none; one that misses it would wait for ever.
        with contextlib.suppress(aioqless.AlreadySignaled, WrongState):
            await client.jobs.signal(job.jid.rpartition("-")[0], "answer", secrets.token_hex(8))


@aioqless.bulk_job(klass="chaos.bulk", size=20, within=0.2)
async def take_many(jobs: list[aioqless.Job[Any]]) -> None:
    with contextlib.ExitStack() as stack:
        for job in jobs:
            stack.enter_context(noted(job))
        await asyncio.sleep(max(job.data["seconds"] for job in jobs))
        if len(jobs) > 1 and any(job.data["how"] == "kill" for job in jobs):
            os.kill(os.getpid(), signal.SIGKILL)


@aioqless.on_finish(*ENDS)
async def record_outcome(job: aioqless.Job[Any], end: str, **fields: Any) -> None:
    ledger.note("told", job.jid, job.fence, end)
