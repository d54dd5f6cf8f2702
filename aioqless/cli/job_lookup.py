"""Finds jobs by jid, by the beginning of the jid of a recently failed job, and by a filter."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from aioqless.cli.presentation.printing import print_text
from aioqless.cli.presentation.prompts import show_progress
from aioqless.cli.presentation.suggestions import describe_unknown_queue, suggest
from aioqless.client import Client, extensions
from aioqless.client.job import JobRecord
from aioqless.errors import AioqlessError
from aioqless.validation import plain

MIN_PREFIX = 4  # characters
MAX_GROUPS, MAX_PER_GROUP = 50, 1000  # of recently failed jobs
PAGE = 1000  # jobs
MAX_BEFORE = 500  # jobs that another one waits for


async def find_job(client: Client, jid: str) -> JobRecord:
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


def quote(name: str) -> str:
    """Return a name as a value of a filter."""
    return '"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'


async def explain_unknown_name(client: Client, words: str) -> str:
    """Return why a queue or failure group of a filter may be misspelled; empty if none is."""
    wanted = extensions.load("job_filter").JobFilter.parse(words)
    for queue in wanted.values("queue"):
        if problem := await describe_unknown_queue(client, queue):
            return problem
    known = await client.jobs.failed_counts() if (groups := wanted.values("group")) else {}
    unknown = [each for each in groups if each not in known]
    if not unknown:
        return ""
    return f"there are no failed jobs in {plain(unknown[0])}{suggest(unknown[0], known)}"


async def select_jids(client: Client, words: str) -> list[str]:
    """Return all jobs that match a filter, after a search of which the progress is shown."""
    pages = client.jobs.filter(words, count=PAGE)
    page = await anext(pages)
    found, searched = dict.fromkeys(page.jids), page.searched
    with show_progress(f"searching {page.total:,} jobs", page.total) as advance:
        advance(searched)
        async for page in pages:
            advance(page.searched - searched)
            searched = page.searched
            found |= dict.fromkeys(page.jids)
    if page.unsearched:
        print_text(explain_unsearched(page.unsearched))
    return list(found)


def explain_unsearched(count: int) -> str:
    """Say how many jobs a search left out."""
    jobs = "1 job was" if count == 1 else f"{count:,} jobs were"
    return f"{jobs} left out: encrypted or large data isn't searched"


async def find_root_causes(client: Client, job: JobRecord) -> list[JobRecord]:
    """Return the jobs that keep a job waiting, however many jobs are between, failed ones first.

    These have not ended and wait for no job themselves. At most MAX_BEFORE jobs are read.
    """
    seen, level, found = {job.jid}, list(job.dependencies), list[JobRecord]()
    while level and len(seen) <= MAX_BEFORE:
        portion = level[: MAX_BEFORE + 1 - len(seen)]
        seen.update(portion)
        read = await client.jobs.multiget(*portion)
        found += [each for each in read if each.state not in ("depends", "complete")]
        level = [*dict.fromkeys(jid for each in read for jid in each.dependencies)]
        level = [jid for jid in level if jid not in seen]
    return sorted(found, key=lambda each: each.state != "failed")


async def read_job_states(client: Client, jids: Sequence[str]) -> dict[str, str]:
    """Return the state of each of these jobs that exists."""
    return {job.jid: job.state for job in await client.jobs.multiget(*jids)} if jids else {}
