"""The report: a job that runs when all pages were visited, and reads their data."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from urllib.parse import urldefrag

import aioqless

from .pages import Audit, Page, client

SHOWN = 6  # lines of a section


@aioqless.job
async def print_report(job: aioqless.Job[Audit]) -> None:
    """Print what the audit found."""
    records: list[aioqless.JobRecord] = []
    total, _ = await client.jobs.tagged_jids(job.data.tag, count=0)
    for offset in range(0, total, 100):
        _, jids = await client.jobs.tagged_jids(job.data.tag, offset=offset, count=100)
        records += await client.jobs.multiget(*jids)
    visited = [Page(**each.data) for each in records if each.state == "complete"]
    trouble = {each.data["address"]: "are missing" for each in records if "missing" in each.tags}
    failed = {
        each.data["address"]: each.failure
        for each in records
        if each.state == "failed" and each.failure
    }
    print(
        f"\nAudit {job.data.number}: {total} pages, {sum(len(page.links) for page in visited):,} "
        f"links"
    )
    for why, links in sorted(
        broken_links(visited, trouble | dict.fromkeys(failed, "failed")).items()
    ):
        section(
            f"Broken links to pages that {why}: {len(links)}",
            (f"{link}  on {', '.join(by[:3])}" for link, by in links.items()),
        )
    slowest = sorted(visited, key=lambda page: page.seconds, reverse=True)
    section("Slow pages", (f"{page.seconds:7.2f} s   {page.address}" for page in slowest[:SHOWN]))
    largest = sorted(visited, key=lambda page: page.size, reverse=True)
    section(
        "Largest pages", (f"{page.size / 1000:7.0f} kB  {page.address}" for page in largest[:SHOWN])
    )
    section(
        f"Failed pages: {len(failed)}",
        (f"{address}  {why.group}: {why.message}" for address, why in failed.items()),
    )


def broken_links(visited: list[Page], trouble: dict[str, str]) -> dict[str, dict[str, list[str]]]:
    """Return the broken links of each problem, with the pages they are on.

    Args:
        visited: All pages.
        trouble: The problems of whole pages.
    """
    anchors = {page.address: set(page.anchors) for page in visited}
    broken: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for page in visited:
        for link in page.links:
            target, anchor = urldefrag(link)
            wrong = trouble.get(target) or (
                anchor and anchor not in anchors.get(target, {anchor}) and "lack the anchor"
            )
            if wrong:
                broken[wrong][link].append(page.address)
    return broken


def section(title: str, lines: Iterable[str]) -> None:
    """Print a title and the first lines."""
    lines = list(lines)
    print("", title, *(f"  {line}" for line in lines[:SHOWN]), sep="\n")
    if len(lines) > SHOWN:
        print(f"  and {len(lines) - SHOWN} more")
