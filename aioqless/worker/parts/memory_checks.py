"""Checks that Redis' memory is safe: nothing is evicted, and the archive does not fill it."""

from __future__ import annotations

import asyncio
import time

from redis import exceptions

from aioqless.client.redis_server import parse_info
from aioqless.errors import AioqlessError
from aioqless.redis.connection import REDIS_UNAVAILABLE
from aioqless.runtime.log import log
from aioqless.store import Store
from aioqless.worker.context import NOT_NOW, WorkerContext

SAFE_POLICY = "noeviction"
LONGEST_STARTUP_PAUSE = 0.5  # no stop is noticed during it
FIRST_ARCHIVE_CHECK = 60.0
ARCHIVE_CHECK_INTERVAL = 1800.0


async def check_eviction(context: WorkerContext) -> None:
    """Refuse a Redis whose `maxmemory-policy` evicts keys; wait while Redis is unavailable.

    Raises:
        AioqlessError: It evicts keys, and that is not allowed.
    """
    outage = context.outage
    while not context.lifecycle.stopping:
        asked = time.monotonic()
        try:
            info: bytes = await context.store.connection.execute("INFO", "memory")
        except REDIS_UNAVAILABLE as error:
            await asyncio.sleep(min(outage.record_failure(error, asked), LONGEST_STARTUP_PAUSE))
            continue
        except exceptions.ResponseError as error:  # a user without INFO
            log.warning("worker.eviction_unknown", error=str(error))
            return
        outage.record_success()
        policy = parse_info(info.decode()).get("maxmemory_policy", SAFE_POLICY)
        if policy == SAFE_POLICY:
            return
        if not context.settings.allow_eviction:
            raise AioqlessError(
                f"Redis has maxmemory-policy {policy}: when its memory is full it deletes keys, "
                f"and with them jobs. Set it to {SAFE_POLICY} (CONFIG SET maxmemory-policy "
                f"{SAFE_POLICY}, and in redis.conf), use a Redis that has no other users, or "
                "accept the loss: --allow-eviction, Settings(allow_eviction=True)"
            )
        log.warning("worker.eviction_allowed", policy=policy)
        return


class ArchiveMonitor:
    """Warns when nothing consumes the archive stream, before it fills Redis or is cut."""

    async def run(self, context: WorkerContext) -> None:
        """Check until canceled. Without permission nothing is found."""
        pause = FIRST_ARCHIVE_CHECK
        while True:
            await asyncio.sleep(pause)
            pause = ARCHIVE_CHECK_INTERVAL
            try:
                await self.check(context.store)
            except NOT_NOW:
                continue  # other parts log it

    async def check(self, store: Store) -> None:
        """Warn if something is wrong."""
        from aioqless.client.archive import Archive  # workers start without it

        if trouble := (await Archive(store).state()).describe_problem(time.time()):
            log.warning("archive.unread", why=trouble)
