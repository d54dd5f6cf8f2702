"""Results of handlers, kept for callers and dependents."""

from __future__ import annotations

import math
import os
import pickle
import traceback
from dataclasses import dataclass
from typing import Any

import pytest

from aioqless import Client, Fail, Handler, Job, JobFailed, JobRecord, job
from aioqless.errors import NoResult
from tests.worker import in_processes
from tests.worker.conftest import Work


async def run(client: Client, work: Work, handler: Handler[...]) -> JobRecord:
    """Put a job, and run it to its end."""
    jid = await client.queue("mail").put(handler)
    async with work(handler):
        return await client.jobs.wait(jid, timeout=60)


@job(klass="Count", result_ttl=60)
async def count(job: Job[Any], text: str) -> dict[str, int]:
    return {"letters": len(text)}


@pytest.mark.parametrize("value", [None, False, 0, [], {}, "ü\ud7ff", {"pages": [1, 2.5]}])
async def test_result_is_what_the_handler_returned(client: Client, work: Work, value: Any) -> None:
    @job(klass="Give", result_ttl=60)
    async def give(job: Job[Any]) -> Any:
        return value

    done = await run(client, work, give)
    assert await done.result() == value
    assert await client.jobs.result(done.jid) == value


async def test_result_expires_after_its_ttl(client: Client, work: Work) -> None:
    jid = await client.queue("mail").put(count.data(text="abc"))
    async with work(count):
        await client.jobs.wait(jid, timeout=60)
    assert 50 < await client.redis.ttl(f"{client.namespace}:x:result:{jid}") <= 60


async def test_incomplete_job_has_no_result_even_from_a_former_run(
    client: Client, work: Work
) -> None:
    jid = await client.queue("mail").put(count.data(text="abc"))
    async with work(count):
        done = await client.jobs.wait(jid, timeout=60)
    await done.move("mail")
    with pytest.raises(NoResult, match="not complete"):
        await done.result()
    async with work(job(klass="Count")(lambda job: None)):
        await done.wait(timeout=60)
    with pytest.raises(NoResult, match="latest run"):
        await done.result()


@pytest.mark.parametrize("value", [math.nan, object(), "x" * 200])
async def test_unserializable_result_fails_the_job(
    redis_url: str, namespace: str, work: Work, value: Any
) -> None:
    @job(klass="Give", result_ttl=60)
    async def give(job: Job[Any]) -> Any:
        return value

    async with Client(redis_url, namespace=namespace, max_data=100) as client:
        jid = await client.queue("mail").put(give)
        async with work(give, using=client):
            failed = await client.jobs.wait(jid, timeout=60)
    assert failed.failure and failed.failure.group == "mail-InvalidData"
    assert failed.failure.message.startswith("the result can't be stored: ")


async def test_result_of_a_process_handler_is_kept(client: Client, work: Work) -> None:
    done = await run(client, work, in_processes.measure)
    assert (await done.result())["pid"] != os.getpid()


async def test_job_reads_the_results_of_its_dependencies(client: Client, work: Work) -> None:
    seen = {}

    @job(klass="Sum")
    async def total(job: Job[Any]) -> None:
        seen.update(await job.results())

    @job(klass="Silent")
    async def silent(job: Job[Any]) -> int:
        return 1

    queue = client.queue("mail")
    texts = ["a", "bc"]
    jids = [await queue.put(count.data(text=text)) for text in texts]
    last = await queue.put(
        total, depends=[*jids, await queue.put(silent), "unknown"], missing="done"
    )
    async with work(count, total, silent):
        await client.jobs.wait(last, timeout=60)
    assert seen == dict(zip(jids, [{"letters": 1}, {"letters": 2}], strict=True))


async def test_results_beyond_one_reply_are_all_read(client: Client, work: Work) -> None:
    seen = {}

    @job(klass="Big", result_ttl=60)
    async def big(job: Job[Any]) -> str:
        return "x" * 1_000_000

    @job(klass="Sum")
    async def total(job: Job[Any]) -> None:
        seen.update(await job.results())

    queue = client.queue("mail")
    jids = [await queue.put(big) for _ in range(6)]
    last = await queue.put(total, depends=jids)
    async with work(big, total):
        await client.jobs.wait(last, timeout=60)
    assert {jid: len(text) for jid, text in seen.items()} == dict.fromkeys(jids, 1_000_000)


@dataclass
class Thumb:
    width: int


@job(klass="Shrink", result_ttl=60)
async def shrink(job: Job[Any], width: int) -> Thumb:
    return Thumb(width)


async def test_result_is_typed_where_only_the_text_of_the_jid_is_known(
    client: Client, work: Work
) -> None:
    jid = str(await client.queue("mail").put(shrink.data(width=7)))
    with pytest.raises(NoResult, match="is not complete") as early:
        await client.jobs.result(jid, shrink)
    assert "result_ttl" not in str(early.value)
    async with work(shrink):
        await client.jobs.wait(jid, timeout=60)
    assert await client.jobs.result(jid, shrink) == Thumb(7)
    assert await client.jobs.result(jid) == {"width": 7}


async def test_result_of_a_failed_job_raises_its_failure_without_the_traceback(
    client: Client, work: Work
) -> None:
    @job(klass="Broken", result_ttl=60, retries=0)
    async def broken(job: Job[Any]) -> int:
        raise ValueError("first line\nsecond line")

    failed = await run(client, work, broken)
    jid = failed.jid
    for reading in (client.jobs.result(jid, broken), client.jobs.result(jid), failed.result()):
        with pytest.raises(JobFailed) as caught:
            await reading
        assert caught.value.message == "ValueError: first line"
        assert str(caught.value).endswith(": ValueError: first line")
        assert __file__ in caught.value.traceback
        assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


async def test_message_of_a_failure_without_a_traceback_is_whole_in_one_line(
    client: Client, work: Work
) -> None:
    @job(klass="Refused")
    async def refused(job: Job[Any]) -> None:
        raise Fail("there is none\nin the order", group="no-postcode")

    failed = await run(client, work, refused)
    with pytest.raises(JobFailed) as caught:
        await client.jobs.result(failed.jid)
    assert caught.value.message == "there is none in the order"
    assert caught.value.traceback == "there is none\nin the order"


@pytest.mark.parametrize("errors", [1, 2])
def test_message_of_an_exception_group_is_its_own(errors: int) -> None:
    try:
        raise ExceptionGroup("several", [ValueError(each) for each in range(errors)])
    except ExceptionGroup as error:
        text = "".join(traceback.format_exception(error))
    assert JobFailed("j", "g", text).message.startswith("ExceptionGroup: several (")


async def test_missing_result_tells_the_state_of_the_job(client: Client, work: Work) -> None:
    @job(klass="Give")
    async def give(job: Job[Any]) -> int:
        return 1

    with pytest.raises(NoResult) as unknown:
        await client.jobs.result("unknown", timeout=5)
    assert unknown.value.state is None
    jid = await client.queue("mail").put(give)
    with pytest.raises(NoResult) as pending:
        await client.jobs.result(jid)
    assert pending.value.state == "waiting"
    async with work(give):
        await client.jobs.wait(jid, timeout=60)
    with pytest.raises(NoResult, match=r"keeps no result.*@job\(result_ttl=seconds\)") as dropped:
        await client.jobs.result(jid)
    assert dropped.value.state == "complete"


async def test_result_waits_for_the_end_of_the_job_up_to_its_timeout(
    client: Client, work: Work
) -> None:
    jid = str(await client.queue("mail").put(shrink.data(width=7)))
    with pytest.raises(TimeoutError, match=r"neither complete nor failed after 0\.05 s"):
        await client.jobs.result(jid, shrink, timeout=0.05)
    async with work(shrink):
        assert await client.jobs.result(jid, shrink, timeout=60) == Thumb(7)
