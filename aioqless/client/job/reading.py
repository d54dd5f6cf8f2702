"""Reads jobs, their results, and the failures among the jobs that they depend on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aioqless.client import job_data
from aioqless.client.job.backend import JobBackend
from aioqless.client.job.decoding import RecordFields, decode_failure, decode_record
from aioqless.client.job.state import Failure, JobState, Position
from aioqless.errors import JobFailed, NoResult, NoSuchJob
from aioqless.validation import Seconds

MAX_JIDS_PER_CALL = 1_000


async def read_job(backend: JobBackend, jid: str) -> RecordFields:
    """Read the record of a job.

    Raises:
        NoSuchJob: It was canceled, or has expired.
    """
    record = await backend.store.get(jid=jid)
    if record is None:
        raise NoSuchJob("get", "NOJOB", {"jid": jid, "why": "there is no such job"})
    return decode_record(record)


async def read_position(backend: JobBackend, jid: str) -> Position | None:
    """Return the place of a waiting job in its queue; None if it doesn't wait."""
    found = await backend.store.position(jid=jid)
    return None if found is None else Position(**found)


async def read_result(backend: JobBackend, jid: str) -> Any:
    """Return the stored result of a job.

    Raises:
        JobFailed: It failed.
        NoResult: It is not complete, or no result is kept.
        DecryptionError: The result can't be decrypted.
    """
    try:
        stored = await backend.store.result(jid=jid)
    except NoResult as error:
        if error.state == JobState.FAILED and (record := await backend.store.get(jid=jid)):
            failure = decode_record(record).failure
            if failure is not None:
                raise JobFailed(jid, failure.group, failure.traceback) from None
        raise
    return backend.codec.decode_result(stored, jid)


async def wait_for_result(backend: JobBackend, jid: str, timeout: Seconds | None) -> Any:
    """Wait for the end of a job, and return its stored result.

    Raises:
        JobFailed: It failed.
        NoResult: There is no such job, or no result is kept.
        TimeoutError: It has not ended in time.
        DecryptionError: The result can't be decrypted.
    """

    async def read() -> tuple[Any] | None:
        try:
            return (await read_result(backend, jid),)
        except NoResult as error:
            if error.state in (None, JobState.COMPLETE):
                raise
            return None

    (result,) = await backend.watcher.wait_for_end(jid, read, timeout)
    return result


async def wait_for_outcome(backend: JobBackend, jid: str, timeout: Seconds | None) -> Any:
    """Wait for the end of a job that was put, and return its stored result.

    Raises:
        NoSuchJob: It was canceled.
        JobFailed, NoResult, TimeoutError, DecryptionError: As `wait_for_result`.
    """
    try:
        return await wait_for_result(backend, jid, timeout)
    except NoResult as error:
        if error.state is None:
            detail = {"jid": jid, "why": "there is no such job"}
            raise NoSuchJob("result", "NOJOB", detail) from None
        raise


async def read_dependency_results(
    backend: JobBackend, jid: str
) -> tuple[dict[str, job_data.Json], Mapping[str, float]]:
    """Return the results of a job's dependencies by jid, and the jids of its arguments.

    Raises:
        DecryptionError: A result can't be decrypted.
    """
    results: dict[str, job_data.Json] = {}
    start: int | None = 0
    while start is not None:
        page = await backend.store.dependency_results(jid=jid, start=start)
        results |= {
            jid: backend.codec.decode_result(stored, jid) for jid, stored in page["results"].items()
        }
        start = page["next"]
    return results, page["takes"] or {}


async def read_dependency_failures(backend: JobBackend, jid: str) -> dict[str, Failure]:
    """Return the failures among the jobs that a job was last put to depend on, by jid.

    Raises:
        DecryptionError: The data of a failed job can't be decrypted.
    """
    page = await backend.store.dependency_failures(jids=[jid], after="yes")
    return await find_failures(backend, page["more"])


async def find_failures(backend: JobBackend, jids: list[str]) -> dict[str, Failure]:
    """Return the failures of jobs, and of the jobs that they wait for, by jid.

    Raises:
        DecryptionError: The data of a failed job can't be decrypted.
    """
    found: dict[str, Failure] = {}
    met = set(jids)
    while jids:
        page = await backend.store.dependency_failures(jids=jids[:MAX_JIDS_PER_CALL])
        for each in page["failures"]:
            found[each["jid"]] = decode_failure(backend.codec, each)
        more = [jid for jid in dict.fromkeys(page["more"]) if jid not in met]
        jids = jids[page["done"] :] + more
        met.update(more)
    return found
