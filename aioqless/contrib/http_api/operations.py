"""The operations of the API, one function each, and the table of them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import aclosing, suppress
from dataclasses import replace
from functools import partial
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

from aioqless.client import Client
from aioqless.client.job import JobRecord
from aioqless.client.job.state import ENDED, Emitted, Ended, JobSetStatus, JobState, Missed
from aioqless.client.job_set import JobSet
from aioqless.client.new_job import NewJob
from aioqless.client.put_options import PutOptions
from aioqless.client.workflows import group
from aioqless.contrib.http import openapi
from aioqless.contrib.http.json_api import JobStatus, RequestRefused
from aioqless.contrib.http.router import Operation
from aioqless.contrib.http_api.handler_types import data_type, name_handlers, result_type
from aioqless.contrib.http_api.job_request import BODY_DIGEST, JobRequest
from aioqless.contrib.http_api.schemas import (
    MAX_JOBS,
    FindQuery,
    IssuedToken,
    JobInfo,
    JobPage,
    NewToken,
    OutputItem,
    OutputPage,
    OutputQuery,
    Put,
    PutMany,
    PutQuery,
    SetName,
    Signal,
    WaitQuery,
    failure_of,
    info_of,
    progress_of,
)
from aioqless.contrib.job_filter import Condition, JobFilter, Text
from aioqless.errors import InvalidArgument, JobExists, NoResult
from aioqless.handlers import Handler

JOBS_PER_PAGE = 100
MAX_ITEMS = 1_000  # of an output


# Put


async def put(handler: Handler, request: JobRequest) -> Put:
    """Put a job."""
    jid = request.new_jid()
    new = _new_job(handler, request, request.body).with_options(jid=jid)
    if request.key is not None:
        new = new.with_options(if_exists="raise")
    try:
        found = str(await _target(request).put(new))
    except JobExists as error:
        if request.key is None:
            raise
        found = error.jid or ""
        if found == jid:
            await request.check_repeated(jid, handler.klass)
            return Put(jid, existing=True)
    return Put(found, existing=found != jid)


async def put_many(handler: Handler, request: JobRequest) -> PutMany:
    """Put jobs, all of them or none: a repeated request can't find a part of them."""
    jobs = [_new_job(handler, request, data) for data in request.body]
    name = request.new_jid()
    flow = await _target(request).put_flow(group(*jobs), once=name)
    if flow.existing is None:
        return PutMany(list(flow.jids), existing=False)
    if flow.existing.rpartition("-")[0] != name:
        why = f"Nothing was put: job {flow.existing} has the unique key of one of these."
        raise RequestRefused(409, "state", why)
    await request.check_repeated(flow.existing, handler.klass)
    return PutMany(list(flow.jids), existing=True)


def _new_job(handler: Handler, request: JobRequest, data: object) -> NewJob:
    if not request.grant.may_put(handler.klass):
        raise RequestRefused(403, "klass", f"This token may not put {handler.klass}.")
    takes = handler.takes
    if data is None and takes.named is not None:
        data = {}  # so that a refusal names the fields that are missing
    if takes.named is not None and isinstance(data, dict) and (more := data.keys() - takes.known):
        raise RequestRefused(
            422, "data", f"{handler.klass} takes no {', '.join(sorted(more)[:20])}."
        )
    query: PutQuery = request.query
    options: PutOptions = {"tags": query.tags} if query.tags else {}
    if not isinstance(query.delay, UnsetType):
        options["delay"] = query.delay
    if not isinstance(query.priority, UnsetType):
        options["priority"] = query.priority
    if not isinstance(query.expires_in, UnsetType):
        options["expires_in"] = query.expires_in
    if request.key is not None:
        options["context"] = {BODY_DIGEST: request.body_digest(handler.klass)}
    return NewJob(handler, data, **options)


def _target(request: JobRequest) -> Client | JobSet:
    return request.client if request.query.set is UNSET else request.job_set


# Read


async def get(request: JobRequest) -> JobInfo:
    """Return a job."""
    return info_of(await request.job())


async def result(handler: Handler, answer: type, request: JobRequest) -> Any:
    """Return the result of a job, perhaps after a wait."""
    job = await request.job()
    if job.klass != handler.klass:
        raise RequestRefused(404, "gone", f"The job is one of {job.klass}.")
    if request.query.wait and job.state not in ENDED:
        try:
            job = await job.wait(request.query.wait)
        except TimeoutError:
            job = await job.refresh()
    found = await _read_result(job) if job.state == JobState.COMPLETE else UNSET
    return answer(str(job.state), progress_of(job), found, failure_of(job))


async def _read_result(job: JobRecord) -> Any:
    with suppress(NoResult):
        return await job.result()
    return UNSET


async def find(request: JobRequest) -> JobPage:
    """Find jobs that the token sees, a portion per request."""
    query: FindQuery = request.query
    jobs, grant = request.client.jobs, request.grant
    if grant.is_browser:  # a search costs, and its cursor may name jobs of others
        raise RequestRefused(403, "klass", "A browser's token lists no jobs.")
    given = ((name, getattr(query, name)) for name in ("klass", "tag", "state"))
    words = tuple(Condition(name, (Text(text),)) for name, text in given if text is not UNSET)
    if not words or words[0].key == "state":
        raise RequestRefused(400, "request", "Say which jobs: ?klass=... or ?tag=...")
    try:
        page = await jobs.search(str(JobFilter(words)), cursor=query.cursor, count=JOBS_PER_PAGE)
    except (ValueError, InvalidArgument) as error:
        raise RequestRefused(400, "request", f"The cursor is wrong: {error}") from None
    jids = [jid for jid in page.jids if grant.may_find(jid)]
    found = [
        info_of(each)
        for each in (await jobs.summaries(*jids) if jids else ())
        if grant.may_see(each.jid, each.klass)
    ]
    return JobPage(found, page.cursor or UNSET)


async def output(request: JobRequest) -> OutputPage:
    """Return the output of a job after a position, perhaps after a wait."""
    query: OutputQuery = request.query
    jid = (await request.job()).jid
    after = None if isinstance(query.after, UnsetType) else query.after
    page = await _read_output(request.client, jid, after)
    if query.wait and not page.items and not page.ended:
        with suppress(TimeoutError):
            async with (
                asyncio.timeout(query.wait),
                aclosing(request.client.jobs.output(jid, after=after)) as following,
            ):
                await anext(following, None)
        page = await _read_output(request.client, jid, after)
    return page


async def _read_output(client: Client, jid: str, after: str | None) -> OutputPage:
    page = OutputPage([], ended=False, after=UNSET if after is None else after)
    async with aclosing(client.jobs.output(jid, after=after, follow=False)) as outputs:
        async for each in outputs:
            page.after = each.id
            match each:
                case Emitted(value):
                    page.items.append(OutputItem("value", value))
                case Missed(count):
                    page.items.append(OutputItem("missed", count=count))
                case Ended():
                    page.ended = True
                case _:
                    page.items.append(OutputItem("restarted"))
            if len(page.items) == MAX_ITEMS:
                break
    return page


# Change


async def retry(request: JobRequest) -> JobStatus:
    """Retry a failed job."""
    await request.client.jobs.retry((await request.job(change=True)).jid)
    return JobStatus("waiting")


async def cancel(request: JobRequest) -> JobStatus:
    """Delete a job."""
    if not await request.client.jobs.cancel((await request.job(change=True)).jid):
        raise RequestRefused(409, "state", "The job is complete: it expires by itself.")
    return JobStatus("canceled")


async def signal(request: JobRequest) -> JobStatus:
    """Send a signal to a job."""
    job = await request.job(change=True)
    sent: Signal = request.body
    await request.client.jobs.signal(
        job.jid, request.path["signal"], sent.value, replace=sent.replace
    )
    return JobStatus(job.state)


async def set_status(request: JobRequest) -> JobSetStatus:
    """Return the numbers of a job set."""
    return replace(await request.job_set.status(), name=request.path["name"])


async def set_close(request: JobRequest) -> JobSetStatus:
    """Close a job set."""
    await request.job_set.close()
    return await set_status(request)


async def set_retry(request: JobRequest) -> JobSetStatus:
    """Retry the failed members of a job set."""
    await request.job_set.retry_failed()
    return await set_status(request)


async def set_cancel(request: JobRequest) -> JobSetStatus:
    """Cancel the members of a job set."""
    await request.job_set.cancel()
    return await set_status(request)


async def issue_token(request: JobRequest) -> IssuedToken:
    """Issue a token for a browser, which may do no more than this one."""
    grant, wanted = request.grant, request.body
    if grant.is_browser:
        raise RequestRefused(403, "klass", "A browser's token issues no others.")
    for jid in wanted.jids:
        await replace(request, path={"jid": jid}).job()
    token = request.identification.issue(
        grant.identity, wanted.may_put, wanted.jids, wanted.seconds
    )
    return IssuedToken(token, wanted.seconds)


JOB, SET = "/jobs/{jid}", "/sets/{name}"
OPERATIONS: tuple[Operation[JobRequest], ...] = (
    Operation(
        method="GET", path="/jobs", name="find_jobs", summary="Find jobs by klass or tag",
        answer=JobPage, perform=find, query=FindQuery,
    ),
    Operation(
        method="GET", path=JOB, name="get_job", summary="A job", answer=JobInfo, perform=get,
    ),
    Operation(
        method="DELETE", path=JOB, name="cancel_job", summary="Delete a job", answer=JobStatus,
        perform=cancel,
    ),
    Operation(
        method="POST", path=f"{JOB}/retry", name="retry_job", summary="Retry a failed job",
        answer=JobStatus, perform=retry,
    ),
    Operation(
        method="POST", path=f"{JOB}/signals/{{signal}}", name="signal_job",
        summary="Send a signal to a job", answer=JobStatus, perform=signal, body=Signal,
    ),
    Operation(
        method="GET", path=f"{JOB}/output", name="read_output",
        summary="The output of a job after a position", answer=OutputPage, perform=output,
        query=OutputQuery,
    ),
    Operation(
        method="GET", path=SET, name="get_set", summary="The numbers of a job set",
        answer=JobSetStatus, perform=set_status,
    ),
    Operation(
        method="POST", path=f"{SET}/close", name="close_set", summary="Close a job set",
        answer=JobSetStatus, perform=set_close,
    ),
    Operation(
        method="POST", path=f"{SET}/retry", name="retry_set",
        summary="Retry the failed members of a job set", answer=JobSetStatus, perform=set_retry,
    ),
    Operation(
        method="POST", path=f"{SET}/cancel", name="cancel_set",
        summary="Close a job set and cancel its members", answer=JobSetStatus, perform=set_cancel,
    ),
    Operation(
        method="POST", path="/tokens", name="issue_token", summary="A token for a browser",
        answer=IssuedToken, perform=issue_token, body=NewToken,
    ),
)  # fmt: skip


def operations_of(handlers: Iterable[Handler]) -> list[Operation[JobRequest]]:
    """Return all operations: those of each handler, and the ones for all jobs."""
    found: list[Operation[JobRequest]] = []
    for name, handler in name_handlers(handlers).items():
        data, answer = data_type(name, handler), result_type(name, handler)
        path, title = f"/klasses/{handler.klass}", handler.klass
        many = Annotated[list[data], Meta(min_length=1, max_length=MAX_JOBS)]  # type: ignore[valid-type]
        any_many = Annotated[list[Any], Meta(min_length=1, max_length=MAX_JOBS)]
        found += [
            Operation(
                method="POST", path=path, name=f"put_{name}", summary=f"Put a job: {title}",
                answer=Put, perform=partial(put, handler), body=data, accepts=Any,
                query=PutQuery, takes_key=True,
            ),
            Operation(
                method="POST", path=f"{path}/many", name=f"put_many_{name}",
                summary=f"Put many jobs, or none: {title}", answer=PutMany,
                perform=partial(put_many, handler), body=many, accepts=any_many,
                query=PutQuery, takes_key=True,
            ),
            Operation(
                method="GET", path=f"{path}/results/{{jid}}", name=f"result_{name}",
                summary=f"The result of a job, or its state: {title}", answer=answer,
                perform=partial(result, handler, answer), query=WaitQuery,
            ),
        ]  # fmt: skip
    return [replace(each, parameter=_parameter) for each in (*found, *OPERATIONS)]


def _parameter(name: str) -> openapi.Schema:
    """Return the schema of a parameter of a path."""
    if name == "name":
        return msgspec.json.schema(SetName)
    return {"type": "string", "minLength": 1, "maxLength": 512}
