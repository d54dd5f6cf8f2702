"""Suggestions for misspelled names."""

from __future__ import annotations

from collections.abc import Awaitable, Iterable
from difflib import get_close_matches

from aioqless.client import Client
from aioqless.client.workers import WorkerState
from aioqless.errors import AioqlessError, NoSuchWorker
from aioqless.validation import plain

MAX_QUEUES = 1000
CLOSE = 0.75  # of 1, as difflib measures it: one letter of four differs


def suggest(name: str, known: Iterable[str]) -> str:
    """Return the most similar known name as the end of an error message; empty if none is."""
    similar = get_close_matches(name, list(known), 1, CLOSE)
    return f"; did you mean {plain(similar[0])}?" if similar else ""


async def describe_unknown_queue(client: Client, queue: str) -> str:
    """Return why a queue may be misspelled; empty if it is known.

    With more queues than are listed, any may be known.
    """
    known = {counts.name for counts in await client.queues(count=MAX_QUEUES)}
    if queue in known or len(known) == MAX_QUEUES:
        return ""
    return f"no job was ever put into {plain(queue)}{suggest(queue, known)}"


async def await_command(
    client: Client, worker: str, command: Awaitable[WorkerState]
) -> WorkerState:
    """Return the new state of a worker that is sent a command."""
    try:
        return await command
    except NoSuchWorker:
        known = [each.name for each in await client.workers.counts()]
        raise AioqlessError(
            f"no running worker is named {plain(worker)}{suggest(worker, known)}"
        ) from None
