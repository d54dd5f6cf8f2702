"""Queues and what failed in them: queues, failed, unfail."""

from __future__ import annotations

from typing import Annotated

import typer

from aioqless.cli.app import Namespace, Url, app, run
from aioqless.client import Client


@app.command()
def queues(url: Url = None, namespace: Namespace = "ql") -> None:
    """Show how many jobs each queue has in each state."""

    async def act(client: Client) -> None:
        columns = ("name", "waiting", "running", "stalled", "scheduled", "depends", "recurring", "paused")
        print("".join(f"{column:>11}" if index else f"{column:<24}" for index, column in enumerate(columns)))
        for counts in await client.queues():
            print("".join(f"{counts[column]!s:>11}" if index else f"{counts[column]:<24}" for index, column in enumerate(columns)))

    run(url, namespace, act)


@app.command()
def failed(
    group: Annotated[str | None, typer.Argument(help="Show the jobs of this group.")] = None, url: Url = None, namespace: Namespace = "ql"
) -> None:
    """Show how many jobs failed in each group, or what went wrong in one."""

    async def act(client: Client) -> None:
        if group is None:
            for name, count in sorted((await client.jobs.failed()).items()):
                print(f"{count:>8}  {name}")
            return
        total, jobs = await client.jobs.failed_in(group)
        for job in jobs:
            print(f"{job.jid}  {job.klass}  {job.raw_data[:120]}\n{job.failure.message if job.failure else ''}\n")
        print(f"{len(jobs)} of {total}")

    run(url, namespace, act)


@app.command()
def unfail(
    queue: str,
    group: str,
    count: Annotated[int, typer.Option(help="How many at most.")] = 1000,
    url: Url = None,
    namespace: Namespace = "ql",
) -> None:
    """Let failed jobs of a group run again, in a queue."""

    async def act(client: Client) -> None:
        print(await client.queue(queue).unfail(group, count))

    run(url, namespace, act)
