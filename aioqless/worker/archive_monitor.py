"""Whether anybody takes away what the archive keeps: said in the log before the stream has filled
Redis, or is cut."""

from __future__ import annotations

import asyncio
import time

from aioqless.log import log
from aioqless.store import Store
from aioqless.worker.outage import NOT_NOW

FIRST_LOOK = 60.0
EVERY = 1800.0


class Unread:
    """Looks at the archive's stream now and then. Owns its timer."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def run(self) -> None:
        """Look until cancelled. Without permission nothing is found."""
        pause = FIRST_LOOK
        while True:
            await asyncio.sleep(pause)
            pause = EVERY
            try:
                await self.look()
            except NOT_NOW:
                continue  # other parts log it

    async def look(self) -> None:
        """Warn, if something is wrong."""
        from aioqless.client.archive import Archive  # workers start without it

        if trouble := (await Archive(self._store).state()).trouble(time.time()):
            log.warning("archive.unread", why=trouble)
