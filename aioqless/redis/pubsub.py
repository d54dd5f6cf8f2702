"""Events as Redis publishes them: what happened, to which job, as it happens."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from redis import exceptions
from redis.asyncio import Redis

from aioqless.store.invocation import as_text, from_json

SILENCE = 10.0  # seconds
TRACKED = (
    "put",
    "popped",
    "completed",
    "failed",
    "canceled",
    "stalled",
    "progress",
    "track",
    "untrack",
)


@dataclass(frozen=True)
class Event:
    """Something that happened. `name` is one of put, advanced, completed, failed, canceled,
    progress, lock_lost, config_set, config_unset, and for tracked jobs also popped, stalled, track,
    untrack; `more` is what else was told (queue, worker, group, ...)."""

    name: str
    jid: str | None = None
    more: dict[str, Any] = field(default_factory=dict)


@asynccontextmanager
async def subscribed(
    redis: Redis, *channels: str, quiet: bool = False
) -> AsyncIterator[AsyncIterator[tuple[str, bytes]]]:
    """Listen on channels: yields (channel, payload), from when the block is entered.

    Raises redis-py's ConnectionError when the connection breaks, or is silent in spite of being
    asked: what was published meanwhile is lost, so look before you listen again. With `quiet`, an
    empty payload says that the server is silent, and well."""
    async with redis.pubsub(ignore_subscribe_messages=False) as pubsub:
        await pubsub.subscribe(*channels)
        for _ in channels:  # the server's word that it has begun
            await _next(pubsub)
        yield _messages(pubsub, quiet)


async def _messages(pubsub: Any, quiet: bool) -> AsyncIterator[tuple[str, bytes]]:
    while True:
        message = await _next(pubsub)
        if message["type"] == "message":
            yield as_text(message["channel"]), message["data"]
        elif quiet:
            yield "", b""


async def _next(pubsub: Any) -> dict[str, Any]:
    """What the server says next. When it is silent it is asked whether it is there at all: the
    other end of a connection may have gone without a word, and nothing would ever come."""
    for asked in (False, True):
        if message := await pubsub.get_message(timeout=SILENCE):
            return dict(message)
        if not asked:
            await pubsub.ping()
    raise exceptions.ConnectionError(
        f"the subscription has been silent for {SILENCE} s in spite of a PING"
    )


def told_by(payload: bytes) -> dict[str, Any]:
    """The event in a message; nothing for a message that says none, for anybody may publish
    anything."""
    try:
        told = from_json(payload)
    except (ValueError, RecursionError):
        return {}
    return told if isinstance(told, dict) and "event" in told else {}
