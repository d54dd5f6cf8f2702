"""Actions on a job."""

from __future__ import annotations

import asyncio
import os

import msgspec

from aioqless import validation
from aioqless.client import job_data
from aioqless.client.job import JobRecord
from aioqless.client.job.record import encode_constraints_of_copy
from aioqless.client.new_job import NewJob
from aioqless.client.put_options import MAX_PRIORITY
from aioqless.contrib.dashboard.actions.action import ActionRequest, Redirect
from aioqless.contrib.dashboard.audit_log import ARGUMENT
from aioqless.contrib.dashboard.formatting import short_jid
from aioqless.contrib.dashboard.page_request import address
from aioqless.contrib.dashboard.pages.new_job import list_parameters


async def retry(request: ActionRequest) -> str:
    """Run a job again as it is, or from one of its steps: now, in its queue."""
    job = await request.job()
    if job.state == "failed":
        step = request.form.get("from_step") or None
        await request.client.jobs.retry(job.jid, from_step=step)
        return (
            f"Job {short_jid(job.jid)} re-queued in {job.queue}{f' from {step}' if step else ''}."
        )
    if job.state == "running":
        raise ValueError("the job is running: requeue it first")
    await job.move(queue := _known_queue(job))
    return f"Job {short_jid(job.jid)} re-queued in {queue}."


async def put_new(request: ActionRequest) -> Redirect:
    """Put a new job of a klass whose handler is known, with checked data."""
    klass = request.text("klass")
    if (handler := request.dashboard.handlers.get(klass)) is None:
        raise ValueError(f"there is no handler of {klass}")
    if parameters := list_parameters(handler):
        given = {each.name: request.form.get(ARGUMENT + each.name, "") for each in parameters}
        data: object = {
            each.name: each.read(given[each.name])
            for each in parameters
            if given[each.name] or each.required
        }
    else:
        data = job_data.decode(request.form.get("data") or "null")
    queue = request.form.get("queue", "").strip() or None
    new = NewJob(handler, data)
    jid = await request.client.put(new, queue=queue, delay=request.number("delay", 0))
    return Redirect(f"Job {short_jid(jid)} enqueued.", address("/job", jid=jid))


async def put_with_data(request: ActionRequest) -> str | Redirect:
    """Put a job with edited data: the same job where `how` is same, or a copy of it."""
    request.check_may_see_data()
    job = await request.job()
    data = await asyncio.to_thread(_edited_data, request, job.text)
    current = request.dashboard.identification.sessions.sign(job.raw_data)
    if request.form.get("was", current) != current:
        raise ValueError(
            "its data has changed since you opened the page. Reload the page to see it"
        )
    queue = _known_queue(job)
    if request.form.get("how") == "new":
        return await _put_copy(request, job, data, request.form.get("queue") or queue)
    if job.state == "running":
        raise ValueError(
            "the job is running, with the data it was given: take it from its worker first, or "
            "put a new one"
        )
    if job.state == "failed":
        await request.client.jobs.retry(job.jid, data=data, was=job)
    elif job.state == "complete":
        await job.move(queue, data=data)
    else:
        await job.edit(data)
        return f"The data of job {short_jid(job.jid)} is changed."
    return f"Job {short_jid(job.jid)} re-queued in {queue} with the edited data."


async def _put_copy(
    request: ActionRequest, job: JobRecord, data: msgspec.Raw, queue: str
) -> Redirect:
    """Put a job like another one, with the same constraints."""
    internals, new = request.client.internals, os.urandom(16).hex()
    text = job_data.encode(data, request.client.max_data)
    jid = await internals.store.put(
        queue=validation.check_name("queue", queue),
        jid=new,
        klass=job.klass,
        data=internals.backend.codec.encode(text, job.klass),
        priority=max(-MAX_PRIORITY, min(job.priority, MAX_PRIORITY)),
        tags=list(job.tags),
        retries=job.retries,
        constraints=encode_constraints_of_copy(job, text),
    )
    done = "enqueued" if jid == new else "has the unique key: no other one was enqueued"
    return Redirect(f"Job {short_jid(jid)} {done}.", address("/job", jid=jid))


async def cancel(request: ActionRequest) -> Redirect:
    """Delete a job."""
    jid = request.text("jid")
    job = await request.job()
    if job.state == "complete":
        raise ValueError(
            "the job is complete: it is deleted by itself, when it was kept for as long as the "
            "configuration says"
        )
    canceled = await request.client.jobs.cancel(jid)
    return Redirect(
        f"Job {short_jid(jid)} deleted." if canceled else f"Job {short_jid(jid)} no longer exists.",
        request.form.get("then", ""),
    )


async def move(request: ActionRequest) -> str:
    """Move a job to another queue, perhaps with a delay."""
    job, queue = await request.job(), validation.check_name("queue", request.text("queue").strip())
    delay = validation.check_number("delay", request.number("delay", 0), least=0)
    await job.move(queue, delay=delay)
    return f"Job {short_jid(job.jid)} moved to {queue}."


async def set_priority(request: ActionRequest) -> str:
    """Set a job's priority."""
    job = await request.job()
    await job.set_priority(request.number("priority"))
    return f"Job {short_jid(job.jid)} has priority {job.priority:g}."


async def tag(request: ActionRequest) -> str:
    """Add tags to a job."""
    job = await request.job()
    names = [each.strip() for each in request.text("tags").split(",")]
    tags = [validation.check_name("tag", name) for name in names if name]
    await job.tag(*tags)
    return f"Tags added to job {short_jid(job.jid)}: {', '.join(tags)}."


async def untag(request: ActionRequest) -> str:
    """Remove a tag from a job."""
    job = await request.job()
    await job.untag(request.text("tag"))
    return f"Tag {request.text('tag')} removed from job {short_jid(job.jid)}."


async def track(request: ActionRequest) -> str:
    """Track a job."""
    job = await request.job()
    await request.client.jobs.track(job.jid)
    return f"Job {short_jid(job.jid)} is tracked."


async def untrack(request: ActionRequest) -> str:
    """Stop tracking a job, which may be deleted by now."""
    await request.client.jobs.untrack(request.text("jid"))
    return f"Job {request.text('jid')[:12]} is no longer tracked."


async def signal(request: ActionRequest) -> str:
    """Send a signal to a job, with any JSON value."""
    job, name = await request.job(), request.text("name")
    try:
        value = msgspec.json.decode(request.text("data").encode())
    except ValueError as error:
        raise ValueError(f"the value is not JSON, nothing was sent: {error}") from None
    await request.client.jobs.signal(job.jid, name, value)
    return f"Signal {name} sent to job {short_jid(job.jid)}."


async def unlock(request: ActionRequest) -> str:
    """Take a running job from its worker."""
    job = await request.job()
    await job.unlock()
    return f"Job {short_jid(job.jid)} taken from {job.worker}. It is at the head of its queue."


async def remove_dependencies(request: ActionRequest) -> str:
    """Remove a dependency of a job; without one in the form, all of them."""
    job, other = await request.job(), request.form.get("other", "")
    await job.undepend(*([other] if other else []))
    return f"Job {short_jid(job.jid)} no longer depends on {short_jid(other) or 'other jobs'}."


async def fail(request: ActionRequest) -> str:
    """Mark a job that is not running as failed."""
    job = await request.job()
    if job.state == "running":
        raise ValueError("the job is running: requeue it first")
    group = validation.check_name("group", request.form.get("group") or "set-aside")
    await job.fail(f"Marked as failed by {request.user.name}", group=group)
    return f"Job {short_jid(job.jid)} marked as failed."


def _known_queue(job: JobRecord) -> str:
    """Return the queue that a job is in or was in last; raise ValueError."""
    if not (queue := job.last_queue):
        raise ValueError("the last queue of this job is unknown: move it to a queue")
    return queue


def _edited_data(request: ActionRequest, stored: str) -> msgspec.Raw:
    """Return the data of the form; the stored bytes where nothing was changed."""
    redaction = request.dashboard.redaction
    text = request.text("data").replace("\r\n", "\n")
    if text.strip() == redaction.format(stored).strip():
        return msgspec.Raw(stored.encode("utf-8", "surrogateescape"))
    try:
        restored = redaction.restore(text, stored)
        job_data.decode(restored)
    except ValueError as error:
        raise ValueError(f"the data is not JSON, nothing was changed: {error}") from None
    return msgspec.Raw(restored.encode())
