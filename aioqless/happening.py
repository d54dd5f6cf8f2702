"""Waiting for an event, but only so long."""

from __future__ import annotations

import asyncio


async def happens(event: asyncio.Event, within: float | None) -> bool:
    """Wait for an event; whether it is set within so many seconds. None: however long it takes."""
    try:
        async with asyncio.timeout(within):  # asyncio.wait_for would lose a cancellation that comes just when it is set
            return await event.wait()
    except TimeoutError:
        return False
