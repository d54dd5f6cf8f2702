"""What can be done to a job."""

from __future__ import annotations

import msgspec

from aioqless import validation
from aioqless.client.job import Job
from aioqless.client.json_data import decoded
from aioqless.client.put import NewJob
from aioqless.contrib.dashboard.access import Role
from aioqless.contrib.dashboard.actions.act import Doing, Done, act
from aioqless.contrib.dashboard.page_request import address
from aioqless.contrib.dashboard.pages.jobs import mark, queue_of


@act("retry")
async def retry(doing: Doing) -> str:
    """Let it run again as it is: at once, in its queue."""
    job = await doing.job()
    if job.state == "failed":
        await doing.client.jobs.retry(job.jid)
        return f"Job {job.jid[:12]} was put into {job.queue} again."
    if job.state == "running":
        raise ValueError("the job is running: take it from its worker first")
    await job.move(queue := _queue_of(job))
    return f"Job {job.jid[:12]} was put into {queue} again."


@act("put-again")
async def put_again(doing: Doing) -> str | Done:
    """With other data: the same job where `how` is same, or a new one like it."""
    doing.may_see_data()
    job = await doing.job()
    data = _edited(doing, job.text)
    if doing.form.get("was", seen := mark(job.raw_data)) != seen:
        raise ValueError(
            "its data were changed meanwhile, by somebody else: load the page again to see them"
        )
    if doing.form.get("how") == "new":
        put = NewJob(
            job.klass, data, priority=job.priority, tags=list(job.tags), retries=job.retries
        )
        jid = await doing.client.queue(doing.form.get("queue") or _queue_of(job)).put(put)
        return Done(f"A new job like it was put: {jid[:12]}.", address("/job", jid=jid))
    if job.state == "running":
        raise ValueError(
            "the job is running, with the data it was given: take it from its worker first, or put a new one"
        )
    if job.state == "failed":
        await doing.client.jobs.retry(job.jid, data=data, was=job)
    else:
        await doing.client.queue(_queue_of(job)).requeue(NewJob(job.klass, data, jid=job.jid))
    return f"Job {job.jid[:12]} was put into {_queue_of(job)} again, with the data you gave it."


def _queue_of(job: Job) -> str:
    """The queue that it is in, or was in last. Raises ValueError when nobody knows."""
    if not (queue := queue_of(job)):
        raise ValueError("it isn't known which queue the job was in: move it to one")
    return queue


def _edited(doing: Doing, stored: str) -> msgspec.Raw:
    """The data of the form; those that are stored, byte for byte, where nothing was changed."""
    text = doing.text("data").replace("\r\n", "\n")
    if text.strip() == doing.board.redaction.shown(stored).strip():
        return msgspec.Raw(stored.encode("utf-8", "surrogateescape"))
    try:
        restored = doing.board.redaction.restored(text, stored)
        decoded(restored)
    except ValueError as wrong:
        raise ValueError(f"the data are not JSON, nothing was changed: {wrong}") from None
    return msgspec.Raw(restored.encode())


@act("cancel")
async def cancel(doing: Doing) -> Done:
    """Delete it."""
    jid = doing.text("jid")
    job = await doing.job()
    if job.state == "complete":
        raise ValueError(
            "the job is complete: it is deleted by itself, when it was kept for as long as the configuration says"
        )
    gone = await doing.client.jobs.cancel(jid)
    return Done(
        f"Job {jid[:12]} was cancelled." if gone else f"Job {jid[:12]} was gone already.",
        doing.form.get("then", ""),
    )


@act("move")
async def move(doing: Doing) -> str:
    """Put it into another queue, perhaps later."""
    job, queue = await doing.job(), validation.checked("queue", doing.text("queue").strip())
    await job.move(
        queue, delay=validation.checked_number("delay", doing.number("delay", 0), least=0)
    )
    return f"Job {job.jid[:12]} was moved to {queue}."


@act("priority")
async def priority(doing: Doing) -> str:
    """Let it run sooner or later than others."""
    job = await doing.job()
    await job.set_priority(doing.number("priority"))
    return f"Job {job.jid[:12]} has priority {job.priority:g}."


@act("tag")
async def tag(doing: Doing) -> str:
    """Put tags on it."""
    job, tags = (
        await doing.job(),
        [
            validation.checked("tag", each.strip())
            for each in doing.text("tags").split(",")
            if each.strip()
        ],
    )
    await job.tag(*tags)
    return f"Job {job.jid[:12]} is tagged {', '.join(tags)}."


@act("untag")
async def untag(doing: Doing) -> str:
    """Take a tag off it."""
    job = await doing.job()
    await job.untag(doing.text("tag"))
    return f"Job {job.jid[:12]} has no tag {doing.text('tag')} any more."


@act("track")
async def track(doing: Doing) -> str:
    """Keep an eye on it."""
    job = await doing.job()
    await doing.client.store.track_track(jid=job.jid, tags=[])
    return f"Job {job.jid[:12]} is tracked."


@act("untrack")
async def untrack(doing: Doing) -> str:
    """Keep an eye on it no longer; it may be gone."""
    await doing.client.store.track_untrack(jid=doing.text("jid"))
    return f"Job {doing.text('jid')[:12]} is tracked no longer."


@act("timeout")
async def timeout(doing: Doing) -> str:
    """Take it from its worker."""
    job = await doing.job()
    await job.timeout()
    return f"Job {job.jid[:12]} was taken from {job.worker}, and is next in line."


@act("undepend")
async def undepend(doing: Doing) -> str:
    """Let it wait for another job no longer; without one, for none at all."""
    job, other = await doing.job(), doing.form.get("other", "")
    await job.undepend(*([other] if other else []))
    return f"Job {job.jid[:12]} waits no longer for {other[:12] or 'any other'}."


@act("fail", Role.OPERATE)
async def fail(doing: Doing) -> str:
    """Set a job aside that nobody runs."""
    job = await doing.job()
    if job.state == "running":
        raise ValueError("the job is running: take it from its worker first")
    await job.fail(
        validation.checked("group", doing.form.get("group") or "set-aside"),
        f"Set aside by {doing.who.name}",
    )
    return f"Job {job.jid[:12]} was set aside."
