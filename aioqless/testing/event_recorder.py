"""Record events, and wait for them instead of sleeping."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

from aioqless.client import Client
from aioqless.client.events import AnyEvent, Stream
from aioqless.runtime.tasks import cancel_and_wait


class EventRecorder:
    """The events since the block of `record_events` was entered."""

    def __init__(self) -> None:
        self.events: list[AnyEvent] = []
        self._more = asyncio.Condition()

    async def wait_for(
        self, kind: str, jid: str | None = None, *, timeout: float = 5.0
    ) -> AnyEvent:
        """Return the first event of a kind; wait for it if there is none yet.

        Args:
            kind: The kind, such as "completed".
            jid: The job; default: any.
            timeout: Maximum number of seconds to wait.

        Raises:
            AssertionError: There was none in that time; the message lists those that there were.
        """
        try:
            async with asyncio.timeout(timeout), self._more:
                while True:
                    for event in self.events:
                        if event.kind == kind and jid in (None, _jid_of(event)):
                            return event
                    await self._more.wait()
        except TimeoutError:
            happened = (
                ", ".join(f"{event.kind} {_jid_of(event)}" for event in self.events) or "none"
            )
            raise AssertionError(
                f"no {kind} {jid or ''} within {timeout} s; the events were: {happened}"
            ) from None

    async def record(self, events: Stream) -> None:
        """Record events until canceled."""
        async for event in events:
            async with self._more:
                self.events.append(event)
                self._more.notify_all()


@contextlib.asynccontextmanager
async def record_events(client: Client) -> AsyncIterator[EventRecorder]:
    """Record the events of a namespace while the block lasts.

    Put within the block, so that none is missed: `async with record_events(client) as events: ...;
    await events.wait_for("completed", jid)`.

    Args:
        client: A client of the namespace.
    """
    recorder = EventRecorder()
    async with client.events() as events:
        recording = asyncio.create_task(recorder.record(events))
        try:
            yield recorder
        finally:
            await cancel_and_wait(recording)


def _jid_of(event: AnyEvent) -> str | None:
    return getattr(event, "jid", None)
