"""Shell completion: names in Redis, if it answers at once."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, TypeAlias

import typer

if TYPE_CHECKING:
    from aioqless.client import Client

ReadNames: TypeAlias = "Callable[[Client], Awaitable[Iterable[str]]]"
TIMEOUT = 1.0  # seconds
MAX_NAMES = 100


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


def _completer(read: ReadNames) -> Callable[[typer.Context, str], list[str]]:
    """Return what completes one of these names, as Typer calls it."""

    def complete(context: typer.Context, incomplete: str) -> list[str]:
        return _complete(context, incomplete, read)

    return complete


def _complete(context: typer.Context, incomplete: str, read: ReadNames) -> list[str]:
    try:
        names = asyncio.run(_read(context, read))
    except Exception:  # a shell that completes a word can't show a message
        return []
    matching = (name for name in names if name.startswith(incomplete) and name.isprintable())
    return sorted(matching)[:MAX_NAMES]


async def _read(context: typer.Context, read: ReadNames) -> Iterable[str]:
    from aioqless.cli.connect import make_client
    from aioqless.cli.partitions import PARTITIONS_VARIABLE
    from aioqless.client import extensions

    partitions = context.params.get("partitions") or os.environ.get(PARTITIONS_VARIABLE)
    namespace = context.params.get("namespace") or os.environ.get("AIOQLESS_NAMESPACE") or "ql"
    client = make_client(
        context.params.get("url"), namespace, int(partitions) if partitions else None
    )
    if client.url is None and extensions.load("private_redis").running() is None:
        return []  # completing a word starts no server
    async with asyncio.timeout(TIMEOUT), client:
        return await read(client)


async def _read_queues(client: Client) -> Iterable[str]:
    return [counts.name for counts in await client.queues()]


async def _read_workers(client: Client) -> Iterable[str]:
    return [counts.name for counts in await client.workers.counts()]


async def _read_failed_jids(client: Client) -> Iterable[str]:
    """Return the jids of recently failed jobs: users look for these most."""
    from aioqless.cli import job_lookup  # its imports delay no other command

    return await job_lookup.read_recently_failed_jids(client)


_READ_NAMES: dict[str, ReadNames] = {
    "queue": _read_queues,
    "worker": _read_workers,
    "group": lambda client: client.jobs.failed_counts(),
    "tag": lambda client: client.jobs.tags(),  # that two jobs or more have
}
complete_queue, complete_worker, complete_group, complete_tag = map(
    _completer, _READ_NAMES.values()
)
complete_failed_jid = _completer(_read_failed_jids)
complete_option = _completer(lambda client: client.config.all())
