"""Failed runs and their failure groups."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from aioqless import Client, Fail, Job, Retry, job
from tests.conftest import Until
from tests.worker.conftest import Work
from tests.worker.states import after

# Failing


async def test_exception_fails_in_its_own_group_with_a_traceback_that_begins_at_the_handler(
    client: Client, work: Work, until: Until
) -> None:
    @job(klass="Greet")
    async def greet(job: Job[Any]) -> None:
        raise LookupError("no such word")

    jid = await client.queue("mail").put(greet)
    async with work(greet):
        failed = await after(client, until, jid, "failed")
    assert failed.failure and failed.failure.group == "mail-LookupError"
    assert failed.failure.message == "LookupError: no such word"
    told = failed.failure.traceback
    assert 'raise LookupError("no such word")' in told and told.endswith(
        "LookupError: no such word\n"
    )
    assert "perform.py" not in told and "runner.py" not in told
    assert await client.jobs.failed_counts() == {"mail-LookupError": 1}


async def test_sys_exit_in_a_handler_fails_the_job_and_not_the_worker(
    client: Client, work: Work, until: Until
) -> None:
    @job(klass="Quit")
    async def leave(job: Job[Any]) -> None:
        sys.exit("that's all")

    @job(klass="QuitInAThread")
    def leave_thread(job: Job[Any]) -> None:
        sys.exit("that's all")

    @job(klass="Greet")
    async def greet(job: Job[Any]) -> None: ...

    jids = [await client.queue("mail").put(leave), await client.queue("mail").put(leave_thread)]
    async with work(leave, leave_thread, greet) as worker:
        for jid in jids:
            failed = await after(client, until, jid, "failed")
            assert failed.failure and failed.failure.group == "mail-SystemExit"
        await after(client, until, await client.queue("mail").put(greet), "complete")
        assert worker.healthy


@pytest.mark.parametrize(
    "error",
    [ValueError("\ud800 \x00"), Fail("\udfff", group="typo"), Retry("\ud800", group="typo")],
)
async def test_message_with_surrogates_is_escaped(
    client: Client, work: Work, until: Until, error: Exception
) -> None:
    @job(klass="Greet")
    async def greet(job: Job[Any]) -> None:
        raise error

    jid = await client.queue("mail").put(greet, retries=0)
    async with work(greet):
        failed = await after(client, until, jid, "failed")
    assert failed.failure and "\\ud" in failed.failure.message


async def test_outcome_refused_by_redis_fails_the_job(
    client: Client, work: Work, until: Until
) -> None:
    @job(klass="Greet")
    async def greet(job: Job[Any]) -> None:
        raise Retry(delay=1e300)

    jid = await client.queue("mail").put(greet)
    async with work(greet):
        failed = await after(client, until, jid, "failed")
    assert (
        failed.failure
        and failed.failure.group == "mail-InvalidArgument"
        and "delay" in failed.failure.message
    )
