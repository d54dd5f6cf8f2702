"""Finds jobs by jid, by the beginning of the jid of a recently failed job, and by state."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from aioqless.cli.presentation.prompts import show_progress
from aioqless.client import Client
from aioqless.client.job import Job
from aioqless.errors import AioqlessError

IN_QUEUES = ("running", "stalled", "waiting", "scheduled", "depends")
STATES = (*IN_QUEUES, "complete", "failed")
MIN_PREFIX = 4  # characters
MAX_GROUPS, MAX_PER_GROUP = 50, 1000  # of recently failed jobs


async def find_job(client: Client, jid: str) -> Job:
    """Return the job of a jid, or of the beginning of the jid of a recently failed job.

    Raises:
        AioqlessError: if there is none, or several.
    """
    if job := await client.jobs.get(jid):
        return job
    if len(jid) < MIN_PREFIX:
        raise AioqlessError(f"there is no job {jid!r}")
    jids = [each for each in await read_recently_failed_jids(client) if each.startswith(jid)]
    if len(jids) > 1:
        shown = f"{', '.join(jids[:5])}{', …' if len(jids) > 5 else ''}"
        raise AioqlessError(f"several jobs begin with {jid!r}: {shown}")
    job = await client.jobs.get(jids[0]) if jids else None
    if job is None:
        raise AioqlessError(
            f"there is no job {jid!r}, and no jid of a recently failed job begins with it"
        )
    return job


async def read_recently_failed_jids(client: Client) -> list[str]:
    """Return the jids of the latest failures of each of the largest groups."""
    counts = await client.jobs.failed_counts()
    groups = sorted(counts, key=lambda each: (-counts[each], each))[:MAX_GROUPS]
    pages = await asyncio.gather(
        *(client.jobs.failed_jids(group, count=MAX_PER_GROUP) for group in groups)
    )
    return [jid for page in pages for jid in page]


async def select_jids(
    client: Client,
    *states: str,
    group: str | None = None,
    tag: str | None = None,
    klass: str | None = None,
) -> list[str]:
    """Return all jobs of a group, tag or klass, in some states or in any."""
    with show_progress("looking", None) as advance:
        return await client.jobs.select(
            group=group, tag=tag, klass=klass, states=states or None, step=advance
        )


async def read_job_states(client: Client, jids: Sequence[str]) -> dict[str, str]:
    """Return the state of each of these jobs that exists."""
    return {job.jid: job.state for job in await client.jobs.multiget(*jids)} if jids else {}


async def read_jids(
    client: Client, queue: str | None, state: str | None, offset: int, count: int
) -> list[str]:
    """Return a page of jids: queue by queue, in each in the order of the states."""
    if state == "complete":
        if queue is not None:
            raise AioqlessError("a complete job is in no queue: leave it out")
        return await client.jobs.complete_jids(offset=offset, count=count)
    if state == "failed":
        return await _read_failed_jids(client, queue, offset, count)
    names = [queue] if queue is not None else [counts.name for counts in await client.queues()]
    found: list[str] = []
    for name in names:
        counts = await client.queue(name).counts()
        for each in [state] if state else IN_QUEUES:
            if getattr(counts, each) > offset:
                found += await client.queue(name).jids(
                    each, offset=offset, count=count - len(found)
                )
            offset = max(0, offset - getattr(counts, each))
            if len(found) >= count:
                return found
    return found


async def _read_failed_jids(
    client: Client, queue: str | None, offset: int, count: int
) -> list[str]:
    found: list[str] = []
    for group, jobs in sorted((await client.jobs.failed_counts()).items()):
        for first in range(0, jobs, MAX_PER_GROUP):
            jids = await client.jobs.failed_jids(group, offset=first, count=MAX_PER_GROUP)
            if queue is not None:
                summaries = await client.jobs.summaries(*jids)
                jids = [each.jid for each in summaries if each.queue == queue]
            found += jids
            if len(found) >= offset + count:
                return found[offset : offset + count]
    return found[offset:]
