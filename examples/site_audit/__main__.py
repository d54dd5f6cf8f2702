"""Run an audit, or continue an interrupted one."""

from __future__ import annotations

import argparse
import asyncio
import sys
import time

from aioqless import Settings, Worker
from aioqless.runtime import log

from . import pages, report
from .pages import REPORT, Audit, Page, client, site


async def run(first: str, max_pages: int) -> None:
    """Audit at most `max_pages` pages, starting at `first`, until the report is printed."""
    async with client, site:
        # Jobs of a killed run are available again after this time. The defaults are a minute and
        # a grace period of 10 s.
        await client.config.set("heartbeat", 5)
        await client.config.set("grace-period", 0)
        audit = await begin(first, max_pages)
        async with Worker(
            client, pages, report, settings=Settings(queues=("pages", "reports"), concurrency=8)
        ) as worker:
            await follow(worker, audit)
    say(
        f"All jobs are kept; look at them with `python -m aioqless failed --namespace "
        f"{client.namespace}`."
    )


async def begin(first: str, max_pages: int) -> Audit:
    """Continue the last audit, or start a new one if it has ended."""
    last = await client.jobs.get(REPORT)
    if last and last.state not in ("complete", "failed"):
        say(f"Going on with audit {last.data['number']}.")
        return Audit(**last.data)
    audit = Audit(last.data["number"] + 1 if last else 1, max_pages)
    say(f"Beginning audit {audit.number}{', since the last one is finished' if last else ''}.")
    # Failures of the last audit are deleted here; completed jobs expire after a week.
    for group in await client.jobs.failed_counts():
        _, failed = await client.jobs.failed_in(group, count=1000)
        await client.jobs.cancel(*[job.jid for job in failed])
    page = Page(audit.number, first, depth=0)
    # The page comes first: a job can't depend on one that doesn't exist.
    await client.queue("pages").put_many([pages.new_job(page, audit)])
    await client.queue("reports").put(report.print_report, audit, jid=REPORT, depends=[page.jid])
    return audit


async def follow(worker: Worker, audit: Audit) -> None:
    """Print the progress until the report is printed."""
    terminal, printed = sys.stderr.isatty(), 0.0
    while worker.healthy:
        unfinished = await client.queue("pages").length()
        [job] = await client.jobs.multiget(REPORT)
        if job.state == "failed":
            sys.exit(f"The report failed: {job.failure and job.failure.message}")
        if job.state == "complete":
            return
        if job.state == "depends" and (
            terminal or not unfinished or time.monotonic() > printed + 2
        ):
            printed = time.monotonic()
            total, _ = await client.jobs.tagged_jids(audit.tag, count=0)
            failed = sum((await client.jobs.failed_counts()).values())
            # On a terminal the next line overwrites this one.
            say(
                f"{total - unfinished} of {total} pages visited, {failed} failed",
                end="\x1b[K\r" if terminal else "\n",
            )
            if not unfinished:
                # Only failed pages are left; the report would wait until they were retried.
                await job.undepend()
        await asyncio.sleep(0.2)


def say(text: str, end: str = "\n") -> None:
    """Print to standard error; only the report goes to standard output."""
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
        help="maximum number of pages (default: %(default)s)",
    )
    arguments = parser.parse_args()
    log.write_to(level="warning")
    try:
        asyncio.run(run(arguments.first, arguments.pages))
    except KeyboardInterrupt:  # running pages have been finished, the others are in Redis
        say("Interrupted. Run it again to continue.")
        sys.exit(130)


if __name__ == "__main__":
    main()
