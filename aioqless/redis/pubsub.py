"""Subscriptions to channels, and the messages that Redis publishes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import NamedTuple

from redis import exceptions
from redis.asyncio import Redis
from redis.asyncio.connection import AbstractConnection

from aioqless.redis.cluster import uses_shard_channels
from aioqless.redis.encoding import Json, decode_json, decode_text
from aioqless.redis.resp_protocol import Reply

MAX_SILENCE = 10.0  # seconds without a message after which the server is pinged


class Gap(NamedTuple):
    """A period of which messages are missing, since a connection was broken.

    Attributes:
        since: When the connection was last known to be there, in seconds since 1970.
        why: Why it broke.
    """

    since: float
    why: str


class Subscriber:
    """Subscribes to the channels of a namespace.

    Args:
        redis: Client of redis-py.
        namespace: The namespace.
    """

    def __init__(self, redis: Redis, namespace: str) -> None:
        self._redis = redis
        self._namespace = namespace

    @asynccontextmanager
    async def listen(self, *names: str) -> AsyncIterator[AsyncIterator[tuple[str, bytes] | Gap]]:
        """Subscribe while the block is entered.

        Args:
            names: Names of channels, without the namespace.

        Yields:
            An iterator of (name of the channel, payload), both of them empty whenever the server
            is silent, but there.

        Raises:
            redis.exceptions.RedisError: As `subscribe`.
        """
        prefix = f"{self._namespace}:"
        channels = [prefix + name for name in names]
        async with subscribe(self._redis, *channels, report_silence=True) as messages:
            yield ((channel.removeprefix(prefix), payload) async for channel, payload in messages)


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
        report_silence: Yield an empty channel and payload whenever the server is silent, but there.

    Yields:
        An iterator of (channel, payload).

    Raises:
        redis.exceptions.ConnectionError: The connection broke, the server answers no PING, or the
            channels have moved to another node.
    """
    pool = redis.connection_pool
    connection = await pool.get_connection()  # type: ignore[no-untyped-call]  # redis-py
    try:
        messages = _Messages(connection)
        await messages.subscribe(channels)
        yield messages.read(report_silence)
    finally:
        await connection.disconnect(nowait=True)
        await pool.release(connection)


class _Messages:
    """The messages on a connection that is used for nothing else."""

    def __init__(self, connection: AbstractConnection) -> None:
        self._connection = connection
        self._early: list[tuple[str, bytes]] = []

    async def subscribe(self, channels: Sequence[str]) -> None:
        """Subscribe to channels, and wait until the server has confirmed all."""
        # One by one: in one command, shard channels would have to be in one slot.
        commands = [
            (f"{'S' if uses_shard_channels(each.partition(':')[0]) else ''}SUBSCRIBE", each)
            for each in channels
        ]
        await self._connection.send_packed_command(self._connection.pack_commands(commands))
        confirmed = 0
        while confirmed < len(channels):
            match await self._next():
                case [b"subscribe" | b"ssubscribe", *_]:
                    confirmed += 1
                case [b"message" | b"smessage", channel, payload]:
                    self._early.append((decode_text(channel), payload))

    async def read(self, report_silence: bool) -> AsyncIterator[tuple[str, bytes]]:
        """Yield messages as they arrive."""
        for message in self._early:
            yield message
        while True:
            match await self._next():
                case [b"message" | b"smessage", channel, payload]:
                    yield decode_text(channel), payload
                case [b"sunsubscribe", channel, _]:
                    raise exceptions.ConnectionError(
                        f"the channel {decode_text(channel)} has moved to another node"
                    )
                case _ if report_silence:
                    yield "", b""

    async def _next(self) -> list[Reply]:
        """Wait for the next reply; ping a silent server.

        The other end of a connection may have gone without closing it; then nothing would ever
        come.
        """
        for pinged in (False, True):
            reply = await self._connection.read_response(disable_decoding=True, timeout=MAX_SILENCE)
            if reply is not None:
                return list(reply)
            if not pinged:
                await self._connection.send_command("PING", check_health=False)
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
