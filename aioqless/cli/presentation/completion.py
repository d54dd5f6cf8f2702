"""What the shell offers for the word under the cursor: names that are in Redis, if it answers at
once."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from aioqless.client import Client

PATIENCE = 1.0  # seconds
MOST = 100
GROUPS, LATEST = 50, 1000


def queue_names(context: typer.Context, incomplete: str) -> list[str]:
    """Queues that are known."""
    return _names(context, incomplete, _queues)


def group_names(context: typer.Context, incomplete: str) -> list[str]:
    """Groups of failures."""
    return _names(context, incomplete, lambda client: client.jobs.failed())


def failed_jids(context: typer.Context, incomplete: str) -> list[str]:
    """Jobs that failed lately: of all jobs, those whose jids are wanted most."""
    return _names(context, incomplete, failed_lately)


def worker_names(context: typer.Context, incomplete: str) -> list[str]:
    """Workers that are known."""
    return _names(context, incomplete, _workers)


def tag_names(context: typer.Context, incomplete: str) -> list[str]:
    """Tags of two jobs or more."""
    return _names(context, incomplete, lambda client: client.jobs.tags())


def option_names(context: typer.Context, incomplete: str) -> list[str]:
    """Options of the configuration."""
    return _names(context, incomplete, lambda client: client.config.all())


def _names(
    context: typer.Context, incomplete: str, read: Callable[[Client], Awaitable[Iterable[str]]]
) -> list[str]:
    try:
        names = asyncio.run(_read(context, read))
    except Exception:  # a shell that waits for a word is not the place for a message
        return []
    return sorted(name for name in names if name.startswith(incomplete) and name.isprintable())[
        :MOST
    ]


async def _read(
    context: typer.Context, read: Callable[[Client], Awaitable[Iterable[str]]]
) -> Iterable[str]:
    from aioqless.client import Client
    from aioqless.contrib import private_redis

    client = Client(
        context.params.get("url"),
        namespace=context.params.get("namespace") or os.environ.get("AIOQLESS_NAMESPACE") or "ql",
        timeout=PATIENCE,
    )
    if client.url is None and private_redis.running() is None:
        return []  # completing a word starts no server
    async with asyncio.timeout(PATIENCE), client:
        return await read(client)


async def _queues(client: Client) -> Iterable[str]:
    return [counts.name for counts in await client.queues()]


async def _workers(client: Client) -> Iterable[str]:
    return [counts.name for counts in await client.workers.counts()]


async def failed_lately(client: Client) -> list[str]:
    """The jids of the latest failures of each of the largest groups: of all jobs, those that are
    wanted most."""
    counts = await client.jobs.failed()
    groups = sorted(counts, key=lambda each: (-counts[each], each))[:GROUPS]
    return [
        jid
        for page in await asyncio.gather(
            *(client.jobs.failed_jids(group, count=LATEST) for group in groups)
        )
        for jid in page
    ]
