"""The jobs that visit pages."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from http.client import HTTPException
from urllib.parse import urldefrag

import aioqless

from .website import Contents, Website

# Shared by all handlers; the program that runs the worker opens them.
client = aioqless.Client(namespace="audit")
site = Website()
finding = asyncio.Lock()

REPORT = "report"  # the jid of the report; there is one at a time


@dataclass
class Audit:
    """The data of the report."""

    number: int
    most: int  # maximum number of pages

    @property
    def tag(self) -> str:
        """The tag of its pages."""
        return f"audit {self.number}"


@dataclass
class Page:
    """The data of a page's job: its address and, after the visit, its contents."""

    audit: int
    address: str
    depth: int  # links between the first page and this one
    size: int = 0  # characters
    seconds: float = 0.0
    links: list[str] = field(default_factory=list)
    anchors: list[str] = field(default_factory=list)

    @property
    def jid(self) -> str:
        """The jid, the same for every link to the page."""
        return f"{self.audit}/{self.address}"


@aioqless.job
async def visit(job: aioqless.Job[Page]) -> None:
    """Visit a page and put the pages that it links to."""
    page = job.data
    try:
        html, page.seconds = await site.fetch(page.address)
    except (OSError, HTTPException) as error:
        # without remaining retries the job fails in this group
        raise aioqless.Retry(repr(error), delay=1, group="pages-unanswered") from error
    # Parsing would block the event loop.
    contents = await asyncio.to_thread(Contents, page.address, html)
    if contents.error and "could not find" in contents.error:
        await job.tag("missing")  # a result of the audit, not a failure of the job
    elif contents.error:
        raise aioqless.Fail(contents.error, group="pages-not-shown")
    page.size, page.links, page.anchors = len(html), list(contents.links), list(contents.anchors)
    await put_linked(page)
    # Returning completes the job, and stores its changed data.


async def put_linked(page: Page) -> None:
    """Put the new pages that a page links to, and make the report depend on all of them.

    The page's own job is not complete yet, so the report can't run early, and after a crash the job
    runs again. Therefore the report must depend on all links and not only on new ones: the crashed
    run may have put them without adding the dependency.
    """
    addresses = dict.fromkeys(urldefrag(link).url for link in page.links)
    linked = [Page(page.audit, address, page.depth + 1) for address in addresses][:1000]
    jids = [each.jid for each in linked]
    # Otherwise two jobs would find the same new page; putting an existing job runs it again.
    async with finding:
        [report] = await client.jobs.multiget(REPORT)
        audit = Audit(**report.data)
        put = {job.jid for job in await client.jobs.multiget(*jids)}
        total, _ = await client.jobs.tagged_jids(audit.tag, count=0)
        new = [new_job(each, audit) for each in linked if each.jid not in put]
        await client.queue("pages").put_many(new[: max(audit.most - total, 0)])
        # Above the limit, links are no jobs.
        await report.depend(*jids, missing="done")


def new_job(page: Page, audit: Audit) -> aioqless.NewJob:
    """Return the job of a page; pages near the first one run first."""
    return aioqless.NewJob(visit, page, jid=page.jid, priority=page.depth, tags=[audit.tag])
