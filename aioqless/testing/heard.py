"""Wait for events."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

from aioqless.client import Client
from aioqless.redis.pubsub import Event
from aioqless.waiting import cancel_and_wait


class Heard:
    """What has happened since the block was entered. Owns the list, and wakes who waits for
    more."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self._more = asyncio.Condition()

    async def of(self, name: str, jid: str | None = None, *, patience: float = 5.0) -> Event:
        """The first event of this name, of a job if one is given; waits for it. Raises
        AssertionError after `patience` seconds, telling what happened instead."""
        try:
            async with asyncio.timeout(patience), self._more:
                while not (
                    found := [
                        event
                        for event in self.events
                        if event.name == name and jid in (None, event.jid)
                    ]
                ):
                    await self._more.wait()
                return found[0]
        except TimeoutError:
            happened = ", ".join(f"{event.name} {event.jid}" for event in self.events) or "nothing"
            raise AssertionError(
                f"no {name} {jid or ''} within {patience} s; what happened was {happened}"
            ) from None

    async def listen(self, events: AsyncIterator[Event]) -> None:
        """Add what comes until cancelled."""
        async for event in events:
            async with self._more:
                self.events.append(event)
                self._more.notify_all()


@contextlib.asynccontextmanager
async def heard(client: Client) -> AsyncIterator[Heard]:
    """`async with heard(client) as events: ...; await events.of("completed", jid)`: put within the
    block, and nothing is missed."""
    heard = Heard()
    async with client.events.all() as events:
        listening = asyncio.create_task(heard.listen(events))
        try:
            yield heard
        finally:
            await cancel_and_wait(listening)
