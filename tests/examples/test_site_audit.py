"""The site audit example as its own process: interrupted, killed, and run again."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from aioqless import Client, JobRecord
from aioqless.client.events import Completed, Stream
from aioqless.contrib import private_redis
from tests.conftest import existing_job
from tests.examples.conftest import environment_of
from tests.programs import needs

ROOT = Path(__file__).parents[2]
PAGES = 40
# Fetches some pages; the others wait until a file exists.
HOLDING = """
import asyncio, itertools, pathlib
from examples.site_audit.website import Website
fetch, numbers = Website.fetch, itertools.count(1)
async def hold(self, address):
    number = next(numbers)
    while number > {fetched} and not pathlib.Path({released!r}).exists():
        await asyncio.sleep(0.01)
    return await fetch(self, address)
Website.fetch = hold
from examples.site_audit.__main__ import main
main()
"""
# its module cannot be imported where the private server runs
FAILING = "multiprocessing.popen_spawn_win32.html"


@pytest.fixture
async def client(data: Path) -> AsyncIterator[Client]:
    server = await asyncio.to_thread(private_redis.ensure, data)
    async with Client(server.url, namespace="audit") as client:
        yield client


class Audit:
    """A run of the example."""

    def __init__(
        self,
        data: Path,
        pages: int = PAGES,
        *,
        start: Sequence[str] = ("-m", "examples.site_audit"),
    ) -> None:
        self.process = subprocess.Popen(
            [sys.executable, *start, "multiprocessing.html", "--pages", str(pages)],
            cwd=ROOT,
            env=environment_of(data),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            # Ctrl-C is ignored in what a script starts in the background, these tests included.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509  # takes no lock
        )

    async def end(self) -> tuple[int, str, str]:
        """Wait for its end; returns its exit code, standard output and standard error."""
        report, told = await asyncio.to_thread(self.process.communicate, timeout=60)
        return self.process.returncode, report, told


@asynccontextmanager
async def running_audit(client: Client, data: Path) -> AsyncIterator[Audit]:
    """Start an audit and wait until it has visited some pages.

    It visits the others when `release` is called.
    """
    holding = HOLDING.format(fetched=PAGES // 2, released=str(data / "released"))
    async with client.events() as events:
        audit = Audit(data, start=("-c", holding))
        try:
            await asyncio.wait_for(_visits(events, 10), 60)
            yield audit
        finally:
            audit.process.kill()
            await audit.end()


def release(data: Path) -> None:
    (data / "released").touch()


async def _visits(events: Stream, count: int) -> None:
    async for event in events:
        if isinstance(event, Completed) and event.queue == "pages":
            count -= 1
            if not count:
                return


async def jobs_of(client: Client, audit: int) -> list[JobRecord]:
    """Return the jobs of its pages, with their histories."""
    _, jids = await client.jobs.tagged_jids(f"audit {audit}", count=1000)
    return [job for jid in jids if (job := await client.jobs.get(jid))]


def times(job: JobRecord, *what: str) -> list[float]:
    return [event["when"] for event in job.events if event["what"] in what]


async def assert_audited(client: Client, report: str) -> list[JobRecord]:
    """Check that the audit visited each page once and reported at the end; returns their jobs."""
    assert f"Audit 1: {PAGES} pages" in report
    jobs = await jobs_of(client, 1)
    assert len({job.data["address"] for job in jobs}) == len(jobs) == PAGES
    assert all(len(times(job, "put")) == 1 for job in jobs)
    told = await existing_job(client, "report")
    [popped] = times(told, "popped")
    assert all(max(times(job, "done", "failed")) <= popped for job in jobs)
    return jobs


def child_of(process: int) -> int:
    return int(
        subprocess.run(["pgrep", "-P", str(process)], capture_output=True, check=True).stdout
    )


def wait_for_end(process: int, patience: float = 60.0) -> None:
    """Wait for a process that is not a child of this one; it may become a zombie."""
    deadline = time.monotonic() + patience
    while (
        subprocess.run(
            ["ps", "-o", "stat=", "-p", str(process)], capture_output=True, text=True, check=False
        ).stdout[:1]
        not in "Z"
    ):
        assert time.monotonic() < deadline, f"process {process} still runs"
        time.sleep(0.05)


async def test_audit_visits_each_page_once_and_reports_its_findings(
    client: Client, data: Path
) -> None:
    code, report, told = await Audit(data).end()
    assert code == 0, told
    assert f"{PAGES} of {PAGES} pages visited, 1 failed" in told
    for section in (
        "Broken links to pages that failed: 1",
        "Slow pages",
        "Largest pages",
        "Failed pages: 1",
    ):
        assert f"\n\n{section}\n  " in report
    assert f"\n  {FAILING}  on multiprocessing.html" in report

    assert await client.jobs.failed_counts() == {"pages-not-shown": 1}
    _, [failed] = await client.jobs.failed_in("pages-not-shown")
    assert failed.data["address"] == FAILING
    assert failed.failure is not None
    assert "msvcrt" in failed.failure.message

    assert all(len(times(job, "popped")) == 1 for job in await assert_audited(client, report))

    code, report, told = await Audit(data, pages=3).end()
    assert code == 0, told
    assert told.startswith("Beginning audit 2, since the last one is finished.")
    assert "Audit 2: 3 pages" in report
    assert await client.jobs.failed_counts() == {}


@pytest.mark.long
async def test_interrupted_audit_finishes_running_jobs_and_continues_when_run_again(
    client: Client, data: Path
) -> None:
    async with running_audit(client, data) as audit:
        audit.process.send_signal(signal.SIGINT)
        release(data)
        code, report, told = await audit.end()
    assert (code, report) == (130, "")
    assert told.endswith("Interrupted. Run it again to continue.\n")
    counts = await client.queue("pages").counts()
    assert counts.running == 0
    assert counts.waiting > 0

    code, report, told = await Audit(data).end()
    assert code == 0, told
    assert told.startswith("Going on with audit 1.")
    assert all(len(times(job, "popped")) == 1 for job in await assert_audited(client, report))


@needs("pgrep")
async def test_killed_audit_leaves_no_process_and_continues_when_run_again(
    client: Client, data: Path
) -> None:
    async with running_audit(client, data) as audit:
        website = await asyncio.to_thread(child_of, audit.process.pid)
        audit.process.kill()
        await audit.end()
    await asyncio.to_thread(wait_for_end, website)
    assert (await client.queue("pages").counts()).running > 0

    code, report, told = await Audit(data).end()
    assert code == 0, told
    assert told.startswith("Going on with audit 1.")
    await assert_audited(client, report)
