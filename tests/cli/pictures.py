"""Make the screenshots of the terminal in the docs: `python -m tests.cli.pictures`."""

from __future__ import annotations

import asyncio
import io
import json
import random
import time
from pathlib import Path

import pyte
from rich.color import Color
from rich.console import Console
from rich.style import Style
from rich.text import Text

from aioqless import Client, Job
from aioqless.client.new_job import NewJob
from aioqless.testing import server
from aioqless.worker import EndedRun, RunCounts
from tests.cli.terminal import Terminal, terminal
from tests.reported_runs import report_runs

DOCS = Path(__file__).parents[2] / "docs"
SIZE = (124, 26)
A_WHILE = 22  # seconds of work before the screenshot is taken


async def main() -> None:
    with server() as url:
        async with Client(url) as client:
            business = asyncio.create_task(_fill_shop(client))
            async with terminal(
                "top", "--url", url, "--namespace", client.namespace, size=SIZE
            ) as screen:
                await screen.shows("mail-SMTPError", "worker")
                for _ in range(A_WHILE * 10):
                    screen.read_output()
                    await asyncio.sleep(0.1)
                screen.press("jj")
                await asyncio.sleep(0.5)
                screen.read_output()
                _save(screen, "top", "aioqless top")
                screen.press("q")
                await screen.ended()
            business.cancel()
        await _fill_day(url)
        async with terminal(
            "stats", "mail", "--url", url, "--namespace", "day", size=SIZE
        ) as screen:
            await screen.ended()
            _save(screen, "stats", "aioqless stats mail")


async def _fill_day(url: str) -> None:
    """Fill a queue with a day's work, using a simulated clock."""
    dice, now = random.Random(7), time.time() // 86400 * 86400
    async with Client(url, namespace="day", clock=lambda: now) as client:
        mail, runs = client.queue("mail"), RunCounts()
        reporter = runs.make_reporter()
        reporter.active = True
        for n in range(600):
            began = now
            wait, run = dice.lognormvariate(1.2, 1.6), dice.lognormvariate(0.3, 0.9)
            await mail.put("app.jobs.greet")
            now += wait
            (job,) = await mail.pop(worker="web-1-4711")
            now += run
            await (
                job.complete()
                if n % 40
                else job.fail("450 no such mailbox", group="mail-SMTPError")
            )
            runs.count(EndedRun("mail", job.klass, "completed" if n % 40 else "failed", run, wait))
            now = began
        report = reporter.next()
        await report_runs(client, now, json.loads(report.counts if report else "[]"))


async def _fill_shop(client: Client) -> None:
    """Fill the queues of a small shop, with two workers."""
    dice = random.Random(5)
    queues = {"billing": 3, "mail": 14, "pictures": 22, "reports": 1}
    held: list[Job] = []
    while True:
        for job in held:
            if dice.random() < 0.03:
                await job.fail(
                    "SMTPError: 450 no such mailbox",
                    group=f"{job.queue}-{dice.choice(('SMTPError', 'TimeoutError'))}",
                )
            else:
                await job.complete()
        held.clear()
        for name, most in queues.items():
            queue = client.queue(name)
            await queue.put_many(
                NewJob("app.jobs.work", {"n": n}) for n in range(dice.randint(0, most))
            )
            held += await queue.pop(max(1, most // 2), worker=f"web-{dice.randint(1, 2)}-4711")
            if dice.random() < 0.1:
                await queue.put("app.jobs.work", delay=600)
        await asyncio.sleep(0.3)


def _save(screen: Terminal, name: str, title: str) -> None:
    """Save the terminal's screen as a picture."""
    lines = screen.lines
    while lines and not "".join(cell.data for cell in lines[-1]).strip():
        lines.pop()
    recording = Console(
        record=True, width=SIZE[0], file=io.StringIO(), force_terminal=True, legacy_windows=False
    )
    for line in lines:
        recording.print(
            Text.assemble(*((cell.data, _style(cell)) for cell in line)), no_wrap=True, crop=True
        )
    recording.save_svg(str(DOCS / f"{name}.svg"), title=title)


def _style(cell: pyte.screens.Char) -> Style:
    def colour(name: str) -> Color | None:
        if name == "default":
            return None
        named = {"brown": "yellow"}.get(name, name)
        return Color.parse(
            f"#{name}"
            if len(name) == 6 and all(each in "0123456789abcdef" for each in name)
            else named
        )

    return Style(
        color=colour(cell.fg),
        bgcolor=colour(cell.bg),
        bold=cell.bold,
        underline=cell.underscore,
        reverse=cell.reverse,
    )


if __name__ == "__main__":
    asyncio.run(main())
