"""Deletes from and checks a lake: pipeline prune, erase, check."""

from __future__ import annotations

import asyncio
from datetime import UTC, date, datetime, timedelta
from typing import Annotated

import typer

from aioqless.cli.exit_codes import REFUSED
from aioqless.cli.options import Namespace, Url
from aioqless.client import Client
from aioqless.contrib.commands.pipeline.shared import (
    LAKE,
    Conf,
    LakeUrl,
    Master,
    OneNamespace,
    Sessions,
    Trace,
    open_lake,
    pipeline,
    print_progress,
)
from aioqless.errors import AioqlessError


@pipeline.command()
def prune(
    older_than: Annotated[
        str | None,
        typer.Option("--older-than", help="Delete days before 2026-11-21, or 90d: 90 days ago."),
    ] = None,
    payloads_older_than: Annotated[
        str | None,
        typer.Option("--payloads-older-than", help="Delete only the data of jobs, before a day."),
    ] = None,
    layer: Annotated[
        list[str] | None,
        typer.Option(help="bronze, quarantine, silver or gold; default: all. Repeatable."),
    ] = None,
    vacuum_hours: Annotated[
        int, typer.Option(help="Age in hours of the oldest readable version.", min=0)
    ] = 168,
    of: OneNamespace = None,
    lake: LakeUrl = LAKE,
    master: Master = None,
    conf: Conf = None,
    trace: Trace = False,
) -> None:
    """Delete old days of the lake, or only the payloads of their jobs."""
    if older_than is None and payloads_older_than is None:
        raise AioqlessError("give --older-than, --payloads-older-than, or both")
    with open_lake(lake, trace, Sessions("prune", master, conf), fresh=True) as (opened, _):
        from aioqless.contrib.lake.retention import LAYERS, drop_payloads
        from aioqless.contrib.lake.retention import prune as delete_days
        from aioqless.contrib.lake.schema import TABLES

        if strange := set(layer or ()) - set(LAYERS):
            raise AioqlessError(
                f"there is no layer {min(strange)!r}; there are {', '.join(LAYERS)}"
            )
        if older_than is not None:
            first = _parse_day("--older-than", older_than)
            rows = delete_days(opened, first, of, layer or LAYERS, print_progress)
            print(f"{rows:,} rows of days before {first} deleted")
        if payloads_older_than is not None:
            first = _parse_day("--payloads-older-than", payloads_older_than)
            files = drop_payloads(opened, first, of, print_progress)
            print(f"{files:,} files written again without the payloads of days before {first}")
        for name in TABLES:
            opened.snapshot(name).vacuum(vacuum_hours, orphans=False)


@pipeline.command()
def erase(
    jid: Annotated[list[str], typer.Option(help="The id of a job. Repeatable.")],
    url: Url = None,
    namespace: Namespace = "ql",
    lake: LakeUrl = LAKE,
    master: Master = None,
    conf: Conf = None,
    trace: Trace = False,
) -> None:
    """Erase jobs from all tables and their old versions, and from the archive's stream.

    What Redis has of a job that still exists is not touched: delete the job first.
    """
    with open_lake(lake, trace, Sessions("erase", master, conf)) as (opened, sessions):
        from aioqless.contrib.lake.archiver import Archiver
        from aioqless.contrib.lake.erasure import erase as erase_jobs
        from aioqless.contrib.lake.refresh import refresh

        if asyncio.run(_has_entries(url, namespace)):
            print_progress("archiving what is in the stream")
            Archiver(sessions.open, opened, url, namespace, report=print_progress).once()
        refresh(opened, sessions.open, print_progress)
        files = erase_jobs(opened, jid, sessions.open, namespace, print_progress)
        print(f"{files:,} files written again without {len(set(jid)):,} jobs")


@pipeline.command()
def check(
    redis: Annotated[
        bool, typer.Option("--redis", help="Compare with the statistics of Redis as well.")
    ] = False,
    of: OneNamespace = None,
    url: Url = None,
    namespace: Namespace = "ql",
    lake: LakeUrl = LAKE,
    trace: Trace = False,
) -> None:
    """Compare the tables with the events, and with Redis; exit code 1 if they differ."""
    with open_lake(lake, trace, Sessions("check", None, None)) as (opened, _):
        from aioqless.contrib.lake.reconciliation import Difference, check_redis
        from aioqless.contrib.lake.reconciliation import check as compare

        found = compare(opened, of, print_progress)
        if redis:
            today = datetime.now(UTC).date()

            async def compare_with_redis() -> list[Difference]:
                async with Client(url, namespace=namespace) as client:
                    return await check_redis(opened, client, [today - timedelta(days=1), today])

            found += asyncio.run(compare_with_redis())
        for each in found:
            print(each)
        if found:
            raise typer.Exit(REFUSED)
        print("the tables agree")


async def _has_entries(url: str | None, namespace: str) -> bool:
    """Return whether the archive's stream has entries."""
    async with Client(url, namespace=namespace) as client:
        return (await client.archive.state()).length > 0


def _parse_day(option: str, text: str) -> date:
    """Return a day: 2026-11-21, or 90d for 90 days ago."""
    if text.endswith("d") and text[:-1].isdecimal() and 0 < int(text[:-1]) < 36_500:
        return datetime.now(UTC).date() - timedelta(days=int(text[:-1]))
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise AioqlessError(f"{option} {text!r} is no day: give 2026-11-21, or 90d") from None
