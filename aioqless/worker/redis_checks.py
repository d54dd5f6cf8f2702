"""Whether Redis may delete jobs to make room for others."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from redis import exceptions

from aioqless.errors import AioqlessError
from aioqless.log import log
from aioqless.redis.connection import UNAVAILABLE
from aioqless.store import ScriptStore
from aioqless.worker.outage import Outage

SAFE = "noeviction"
LONGEST_PAUSE = 0.5  # in which nobody can be told to stop


async def check_eviction(
    store: ScriptStore, outage: Outage, stopping: Callable[[], bool], *, allowed: bool
) -> None:
    """Raises AioqlessError for a Redis whose `maxmemory-policy` evicts keys, unless that is
    allowed. While Redis is away it waits, until told to stop."""
    while not stopping():
        asked = time.monotonic()
        try:
            policy = await _policy(store)
        except UNAVAILABLE as away:
            await asyncio.sleep(min(outage.lost(away, asked), LONGEST_PAUSE))
            continue
        except exceptions.ResponseError as refused:  # a user without INFO
            log.warning("worker.eviction_unknown", error=str(refused))
            return
        outage.found()
        if policy == SAFE:
            return
        if not allowed:
            raise AioqlessError(
                f"Redis has maxmemory-policy {policy}: when its memory is full it deletes keys, and with them jobs. Set it to {SAFE} "
                "(CONFIG SET maxmemory-policy noeviction, and in redis.conf), use a Redis that has no other users, or accept the loss: "
                "--allow-eviction, Settings(allow_eviction=True)"
            )
        log.warning("worker.eviction_allowed", policy=policy)
        return


async def _policy(store: ScriptStore) -> str:
    told: bytes = await store.connection.execute("INFO", "memory")
    lines = dict(line.split(":", 1) for line in told.decode().splitlines() if ":" in line)
    return lines.get("maxmemory_policy", SAFE)
