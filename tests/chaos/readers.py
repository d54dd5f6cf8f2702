"""Readers of output that are cut off, and continue after the last value that they have."""

from __future__ import annotations

import asyncio
import random
from contextlib import aclosing

from redis.exceptions import RedisError

from aioqless import Client, NoSuchJob
from aioqless.contrib.output import Emitted, Ended, Missed, Restarted
from tests.chaos.ledger import Ledger

PER_JOB = 3
BREAK = 0.02  # the probability that a reader disconnects after a value
PAUSE = 0.05  # seconds until it is back


class Readers:
    """Reads the output of jobs to its end, and records what each reader has then.

    Args:
        client: Of the readers alone: its connections are cut.
    """

    def __init__(self, client: Client, ledger: Ledger, chance: random.Random) -> None:
        self._client = client
        self._ledger = ledger
        self._chance = chance
        self._reading: list[asyncio.Task[None]] = []

    def add(self, jid: str) -> None:
        self._reading += [asyncio.create_task(self._read(jid)) for _ in range(PER_JOB)]

    async def cut(self) -> None:
        """Cut all connections of the readers."""
        for connection in await self._client.redis.client_list():
            if connection["name"].startswith(self._client.name):
                await self._client.redis.client_kill_filter(_id=connection["id"])

    async def end(self, patience: float) -> int:
        """Wait until all have read to the end, at most so long; return how many have not."""
        if not self._reading:
            return 0
        done, left = await asyncio.wait(self._reading, timeout=patience)
        for task in left:
            task.cancel()
        for task in done:
            task.result()
        return len(left)

    async def _read(self, jid: str) -> None:
        values: list[object] = []
        after: str | None = None
        while True:
            try:
                async with aclosing(self._client.jobs.output(jid, after=after)) as output:
                    async for each in output:
                        after = each.id
                        match each:
                            case Emitted(value=value):
                                values.append(value)
                            case Missed(count=count):
                                values += [None] * count
                            case Restarted():
                                values.clear()
                            case Ended():
                                self._ledger.note("read", jid, values)
                                return
                        if self._chance.random() < BREAK:
                            break
            except NoSuchJob:  # it could not be put
                return
            except RedisError:
                pass
            await asyncio.sleep(PAUSE)
