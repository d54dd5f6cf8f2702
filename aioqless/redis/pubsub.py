"""Subscriptions to channels, and the events that Redis publishes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from redis import exceptions
from redis.asyncio import Redis
from redis.asyncio.client import PubSub

from aioqless.redis.encoding import Json, decode_json, decode_text

MAX_SILENCE = 10.0  # seconds without a message after which the server is pinged
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
    """Something that happened in a namespace.

    Attributes:
        name: One of put, advanced, completed, failed, canceled, progress, lock_lost, config_set,
            config_unset, and for tracked jobs also popped, stalled, track, untrack.
        jid: The job that it happened to.
        more: The other fields of the message: queue, worker, group, ...
    """

    name: str
    jid: str | None = None
    more: dict[str, Json] = field(default_factory=dict)


@asynccontextmanager
async def subscribe(
    redis: Redis, *channels: str, report_silence: bool = False
) -> AsyncIterator[AsyncIterator[tuple[str, bytes]]]:
    """Subscribe to channels while the block is entered.

    What is published while the connection is broken is lost, so read the state again before
    subscribing again.

    Args:
        redis: Client of redis-py.
        channels: Names of the channels.
        report_silence: Yield an empty payload whenever the server is silent, but there.

    Yields:
        An iterator of (channel, payload).

    Raises:
        redis.exceptions.ConnectionError: The connection broke, or the server answers no PING.
    """
    async with redis.pubsub(ignore_subscribe_messages=False) as pubsub:
        await pubsub.subscribe(*channels)
        for _ in channels:  # the confirmations
            await _next_message(pubsub)
        yield _read_messages(pubsub, report_silence)


async def _read_messages(pubsub: PubSub, report_silence: bool) -> AsyncIterator[tuple[str, bytes]]:
    while True:
        message = await _next_message(pubsub)
        if message["type"] == "message":
            yield decode_text(message["channel"]), message["data"]
        elif report_silence:
            yield "", b""


async def _next_message(pubsub: PubSub) -> dict[str, Json]:
    """Wait for the next message; ping a silent server.

    The other end of a connection may have gone without closing it; then nothing would ever come.
    """
    for pinged in (False, True):
        if message := await pubsub.get_message(timeout=MAX_SILENCE):
            return dict(message)
        if not pinged:
            await pubsub.ping()
    raise exceptions.ConnectionError(
        f"the subscription has been silent for {MAX_SILENCE} s despite a PING"
    )


def read_event(payload: bytes) -> dict[str, Json]:
    """Return the fields of an event; none for a message of another application."""
    try:
        event = decode_json(payload)
    except (ValueError, RecursionError):
        return {}
    return event if isinstance(event, dict) and "event" in event else {}
