"""The jobs that visit pages."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from http.client import HTTPException
from urllib.parse import urldefrag

import aioqless

from .website import Contents, Website

# A handler is given its job alone. What it needs besides is made here, and opened by whoever runs
# the worker.
client = aioqless.Client(namespace="audit")
site = Website()
finding = asyncio.Lock()

REPORT = "report"  # the jid of the report: there is one at a time


@dataclass
class Audit:
    """The data of the report."""

    number: int
    most: int  # pages

    @property
    def tag(self) -> str:
        """All its pages have it."""
        return f"audit {self.number}"


@dataclass
class Page:
    """The data of a page's job: where it is and, once it was visited, what was seen there."""

    audit: int
    address: str
    depth: int  # links between the first page and this one
    size: int = 0  # characters
    seconds: float = 0.0
    links: list[str] = field(default_factory=list)
    anchors: list[str] = field(default_factory=list)

    @property
    def jid(self) -> str:
        """The same page is the same job, whoever finds it."""
        return f"{self.audit}/{self.address}"


@aioqless.job
async def visit(job: aioqless.Job[Page]) -> None:
    """Look at a page, and see to it that those it links to are visited as well."""
    page = job.data
    try:
        html, page.seconds = await site.fetch(page.address)
    except (OSError, HTTPException) as error:
        raise aioqless.Retry(
            1, "pages-unanswered", repr(error)
        ) from error  # with no retries left, it fails in that group
    contents = await asyncio.to_thread(
        Contents, page.address, html
    )  # in a thread: the loop has others to serve
    if contents.error and "could not find" in contents.error:
        await job.tag("missing")  # what an audit is to find out, and no failure of its own
    elif contents.error:
        raise aioqless.Fail("pages-not-shown", contents.error)
    page.size, page.links, page.anchors = len(html), list(contents.links), list(contents.anchors)
    await put_linked(page)
    # To return is to complete the job, and what was changed in its data is stored.


async def put_linked(page: Page) -> None:
    """Put the pages that a page links to, but for those that have been put, and let the report wait
    for them.

    This comes before the page is complete: the report waits for the page, so it can't run early,
    and if we crash in the middle the page's job runs again. That is why the report is to wait for
    all the links and not for new ones only: the run that crashed may have put them and come no
    further. And why they are put first: a jid that doesn't exist counts as done. (So does a
    complete one, rightly.)"""
    addresses = dict.fromkeys(urldefrag(link).url for link in page.links)
    linked = [Page(page.audit, address, page.depth + 1) for address in addresses][:1000]
    jids = [each.jid for each in linked]
    async with (
        finding
    ):  # or two would find the same new page; and putting a job that exists makes it run again
        [report] = await client.jobs.multiget(REPORT)
        audit = Audit(**report.data)
        put = {job.jid for job in await client.jobs.multiget(*jids)}
        total, _ = await client.jobs.tagged(audit.tag, count=0)
        new = [new_job(each, audit) for each in linked if each.jid not in put]
        await client.queue("pages").put_many(new[: max(audit.most - total, 0)])
        await report.depend(*jids)


def new_job(page: Page, audit: Audit) -> aioqless.NewJob:
    """The job of a page; those near the first one run first."""
    return aioqless.NewJob(visit, page, jid=page.jid, priority=page.depth, tags=[audit.tag])
