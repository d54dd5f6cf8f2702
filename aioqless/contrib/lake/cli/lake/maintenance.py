"""Deletes from and checks a lake: lake prune, erase, check."""

from __future__ import annotations

import asyncio
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from aioqless import validation
from aioqless.cli.exit_codes import REFUSED
from aioqless.cli.options import Namespace, Partitions, Url
from aioqless.errors import AioqlessError

from .options import LakePlace, OfNamespace
from .shared import (
    LAKE,
    command,
    namespaces_of,
    open_lake,
    print_progress,
    refresh_tables,
    spark_opener,
)

if TYPE_CHECKING:
    from aioqless.contrib.lake.lake import Lake

LEAST_HOURS = 24  # for which files stay that running commands may read


@command
def prune(
    older_than: Annotated[
        str | None,
        typer.Option(
            "--older-than", help="Delete days before this one, or 90d: all but the last 90."
        ),
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
        int, typer.Option(help="Age in hours of the oldest readable version.", min=0, max=168)
    ] = 168,
    of: OfNamespace = None,
    lake: LakePlace = LAKE,
) -> None:
    """Merge small files and delete those of old versions; also old days, or their payloads."""
    deletes = older_than is not None or payloads_older_than is not None
    if not deletes and (of or layer):
        raise AioqlessError("--of and --layer are for --older-than and --payloads-older-than")
    if not deletes and vacuum_hours < LEAST_HOURS:
        raise ValueError(
            f"--vacuum-hours must be >= {LEAST_HOURS} (got {vacuum_hours}) unless days or payloads "
            "are deleted, since commands read the versions"
        )
    from aioqless.contrib.lake.maintenance import LAYERS, compact, drop_payloads
    from aioqless.contrib.lake.maintenance import prune as delete_days

    first = _parse_first("older-than", older_than)
    first_payload = _parse_first("payloads-older-than", payloads_older_than)
    opened = open_lake(lake)
    if strange := set(layer or ()) - set(LAYERS):
        raise AioqlessError(f"there is no layer {min(strange)!r}; there are {', '.join(LAYERS)}")
    _check_namespace(opened, of)
    if deletes:
        refresh_tables(opened)
    if first is not None:
        rows = delete_days(opened, first, of, layer or LAYERS, print_progress)
        print(f"{rows:,} rows of days before {first} deleted")
    if first_payload is not None:
        files = drop_payloads(opened, first_payload, of, print_progress)
        print(f"{files:,} files written again without the payloads of days before {first_payload}")
    print(f"{compact(opened, print_progress, vacuum_hours=vacuum_hours)} files less")


@command
def erase(
    jid: Annotated[list[str] | None, typer.Option(help="The id of a job. Repeatable.")] = None,
    tag: Annotated[list[str] | None, typer.Option(help="A tag of jobs. Repeatable.")] = None,
    url: Url = None,
    namespace: Namespace = "ql",
    partitions: Partitions = None,
    lake: LakePlace = LAKE,
) -> None:
    """Erase jobs or tags from all tables and their old versions, and from the archive's stream.

    What Redis has of a job that still exists is not touched: delete the job first.
    """
    jids, tags = jid or [], tag or []
    if not jids and not tags:
        raise AioqlessError("give --jid, --tag, or both")
    for each in jids:
        validation.check_name("jid", each)  # other clients may give any
    from aioqless.contrib.lake.archiver import Archiver
    from aioqless.contrib.lake.maintenance import erase as erase_jobs

    opened, open_session = open_lake(lake), spark_opener("erase", None, None)
    for each in namespaces_of(namespace, partitions):
        if asyncio.run(_has_entries(url, each)):
            print_progress(f"archiving what is in the stream of {each}")
            Archiver(opened, open_session, url, each, report=print_progress).once()
    refresh_tables(opened, open_session)
    days = erase_jobs(opened, open_session, jids, namespace, print_progress, tags=tags)
    what = [f"{len({*each}):,} {kind}" for each, kind in ((jids, "jobs"), (tags, "tags"))]
    print(
        f"{days:,} days of tables written again without "
        f"{' and '.join(each for each in what if not each.startswith('0'))}"
        if days
        else f"no table has these {'jobs' if jids else 'tags'}"
    )


@command
def check(
    redis: Annotated[
        bool, typer.Option("--redis", help="Compare with the statistics of Redis as well.")
    ] = False,
    checks: Annotated[
        Path | None, typer.Option(help="A folder of more checks: queries that find differences.")
    ] = None,
    of: OfNamespace = None,
    url: Url = None,
    namespace: Namespace = "ql",
    partitions: Partitions = None,
    lake: LakePlace = LAKE,
) -> None:
    """Compare the tables with the events, and with Redis; exit code 1 if they differ."""
    from aioqless.contrib.lake.read.reconciliation import Difference, check_redis
    from aioqless.contrib.lake.read.reconciliation import check as compare

    opened = open_lake(lake)
    _check_namespace(opened, of)
    found = compare(opened, of, print_progress, checks)
    if redis:
        from aioqless.cli.connect import make_client

        today = datetime.now(UTC).date()

        async def compare_with_redis() -> list[Difference]:
            async with make_client(url, namespace, partitions) as client:
                return await check_redis(opened, client, [today - timedelta(days=1), today])

        found += asyncio.run(compare_with_redis())
    for each in found:
        print(each)
    if found:
        raise typer.Exit(REFUSED)
    print("the tables agree")


async def _has_entries(url: str | None, namespace: str) -> bool:
    """Return whether the archive's stream has entries."""
    from aioqless.client import Client

    async with Client(url, namespace=namespace) as client:
        return (await client.archive.state()).length > 0


def _check_namespace(lake: Lake, name: str | None) -> None:
    """Refuse a namespace that no table of the lake has."""
    from aioqless.contrib.lake.open_table import whole_of
    from aioqless.contrib.lake.schema import TABLES

    if name is None:
        return
    files = [each for table in TABLES for each in lake.table(table).all_files]
    known = {each.namespace for each in files} | {whole_of(each.namespace) for each in files}
    if name not in known:
        raise AioqlessError(
            f"the lake has no namespace {name!r}; it has {', '.join(sorted(known)) or 'none yet'}"
        )


def _parse_first(option: str, text: str | None) -> date | None:
    """Return the first day to keep, which isn't in the future."""
    from aioqless.contrib.lake.period import parse_day

    day = None if text is None else parse_day(option, text)
    if day and day > (today := datetime.now(UTC).date()):
        raise ValueError(f"--{option} {day} is in the future: give at most {today}, which is today")
    return day
