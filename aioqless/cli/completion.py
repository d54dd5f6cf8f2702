"""Shell completion: names in Redis, if it answers at once."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING

import typer

from aioqless.cli.extension_loader import is_private_redis_running

if TYPE_CHECKING:
    from aioqless.client import Client

TIMEOUT = 1.0  # seconds
MAX_NAMES = 100


def complete_queue(context: typer.Context, incomplete: str) -> list[str]:
    """Complete the name of a queue."""
    return _complete(context, incomplete, _read_queues)


def complete_group(context: typer.Context, incomplete: str) -> list[str]:
    """Complete a failure group."""
    return _complete(context, incomplete, lambda client: client.jobs.failed_counts())


def complete_failed_jid(context: typer.Context, incomplete: str) -> list[str]:
    """Complete the jid of a recently failed job: users look for these most."""
    from aioqless.cli.job_lookup import (
        read_recently_failed_jids,  # its imports delay no other command
    )

    return _complete(context, incomplete, read_recently_failed_jids)


def complete_worker(context: typer.Context, incomplete: str) -> list[str]:
    """Complete the name of a worker."""
    return _complete(context, incomplete, _read_workers)


def complete_tag(context: typer.Context, incomplete: str) -> list[str]:
    """Complete a tag that two jobs or more have."""
    return _complete(context, incomplete, lambda client: client.jobs.tags())


def complete_filter(context: typer.Context, incomplete: str) -> list[str]:
    """Complete a word of a filter: its key, or the name behind it."""
    from aioqless.client import extensions  # its imports delay no other command

    language = extensions.load("job_filter")
    key, colon, _ = incomplete.partition(":")
    words = [f"{each}:" for each in language.KEYS if each != "text"]
    words += [f"state:{each}" for each in language.STATES] if colon else []
    if not colon or key == "state":
        return [word for word in words if word.startswith(incomplete)]
    if (read := _READ_NAMES.get(key)) is None:
        return []

    async def read_words(client: Client) -> list[str]:
        return [f"{key}:{name}" for name in await read(client)]

    return _complete(context, incomplete, read_words)


def complete_option(context: typer.Context, incomplete: str) -> list[str]:
    """Complete the name of a configuration option."""
    return _complete(context, incomplete, lambda client: client.config.all())


def _complete(
    context: typer.Context, incomplete: str, read: Callable[[Client], Awaitable[Iterable[str]]]
) -> list[str]:
    try:
        names = asyncio.run(_read(context, read))
    except Exception:  # a shell that completes a word can't show a message
        return []
    matching = (name for name in names if name.startswith(incomplete) and name.isprintable())
    return sorted(matching)[:MAX_NAMES]


async def _read(
    context: typer.Context, read: Callable[[Client], Awaitable[Iterable[str]]]
) -> Iterable[str]:
    from aioqless.cli.connect import PARTITIONS_VARIABLE, make_client

    partitions = context.params.get("partitions") or os.environ.get(PARTITIONS_VARIABLE)
    namespace = context.params.get("namespace") or os.environ.get("AIOQLESS_NAMESPACE") or "ql"
    client = make_client(
        context.params.get("url"), namespace, int(partitions) if partitions else None
    )
    if client.url is None and not is_private_redis_running():
        return []  # completing a word starts no server
    async with asyncio.timeout(TIMEOUT), client:
        return await read(client)


async def _read_queues(client: Client) -> Iterable[str]:
    return [counts.name for counts in await client.queues()]


async def _read_workers(client: Client) -> Iterable[str]:
    return [counts.name for counts in await client.workers.counts()]


_READ_NAMES: dict[str, Callable[[Client], Awaitable[Iterable[str]]]] = {
    "queue": _read_queues,
    "worker": _read_workers,
    "group": lambda client: client.jobs.failed_counts(),
    "tag": lambda client: client.jobs.tags(),
}
