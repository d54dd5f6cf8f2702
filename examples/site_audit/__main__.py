"""Run an audit, or go on with the one that was interrupted."""

from __future__ import annotations

import argparse
import asyncio
import sys
import time

from aioqless import Settings, Worker
from aioqless.runtime import log

from . import pages, report
from .pages import REPORT, Audit, Page, client, site


async def run(first: str, most: int) -> None:
    """Audit the site from its page `first` on, `most` pages of it; returns when the report was
    printed."""
    async with client, site:
        # So long after a run was killed its jobs can be had by others: by default a minute, and
        # then it still has 10 seconds to object.
        await client.config.set("heartbeat", 5)
        await client.config.set("grace-period", 0)
        audit = await begin(first, most)
        async with Worker(
            client, pages, report, settings=Settings(queues=("pages", "reports"), concurrency=8)
        ) as worker:
            await follow(worker, audit)
    say(
        f"All jobs are kept for a look at them, as with `python -m aioqless failed --namespace "
        f"{client.namespace}`."
    )


async def begin(first: str, most: int) -> Audit:
    """Go on with the last audit, or begin a new one if it came to its end."""
    last = await client.jobs.get(REPORT)
    if last and last.state not in ("complete", "failed"):
        say(f"Going on with audit {last.data['number']}.")
        return Audit(**last.data)
    audit = Audit(last.data["number"] + 1 if last else 1, most)
    say(f"Beginning audit {audit.number}{', since the last one is finished' if last else ''}.")
    for group in (
        await client.jobs.failed()
    ):  # the last one's failures; complete jobs go by themselves, after a week
        _, failed = await client.jobs.failed_in(group, limit=1000)
        await client.jobs.cancel(*[job.jid for job in failed])
    page = Page(audit.number, first, depth=0)
    await client.queue("pages").put_many(
        [pages.new_job(page, audit)]
    )  # first, or the report would have nothing to wait for
    await client.queue("reports").put(report.print_report, audit, jid=REPORT, depends=[page.jid])
    return audit


async def follow(worker: Worker, audit: Audit) -> None:
    """Say how far it is, until the report was printed."""
    terminal, told = sys.stderr.isatty(), 0.0
    while worker.healthy:
        unfinished = await client.queue("pages").length()
        [job] = await client.jobs.multiget(REPORT)
        if job.state == "failed":
            sys.exit(f"The report failed: {job.failure and job.failure.message}")
        if job.state == "complete":
            return
        if job.state == "depends" and (terminal or not unfinished or time.monotonic() > told + 2):
            told = time.monotonic()
            total, _ = await client.jobs.tagged(audit.tag, count=0)
            failed = sum((await client.jobs.failed()).values())
            # On a terminal it ends where the line begins, so that whatever is written next takes
            # its place.
            say(
                f"{total - unfinished} of {total} pages visited, {failed} failed",
                end="\x1b[K\r" if terminal else "\n",
            )
            if not unfinished:
                # only failed pages are left, which are waited for until somebody decides otherwise:
                # we do
                await job.undepend()
        await asyncio.sleep(0.2)


def say(text: str, end: str = "\n") -> None:
    """Tell whoever watches; the report alone goes to the standard output."""
    print(text, end=end, file=sys.stderr, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m examples.site_audit", description="Audit this Python's own documentation."
    )
    parser.add_argument(
        "first",
        nargs="?",
        default="index.html",
        help="the page to begin with, such as asyncio.html",
    )
    parser.add_argument(
        "--pages",
        type=int,
        default=600,
        metavar="N",
        help="visit so many at most (default: %(default)s)",
    )
    arguments = parser.parse_args()
    log.write_to(level="warning")
    try:
        asyncio.run(run(arguments.first, arguments.pages))
    except KeyboardInterrupt:  # what ran has ended by now, and what waited waits in Redis
        say("Interrupted. Run it again to go on.")
        sys.exit(130)


if __name__ == "__main__":
    main()
