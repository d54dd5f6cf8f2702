"""Import jobs that clients of other systems push."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from aioqless.client import Client
from aioqless.errors import QueueFull
from aioqless.runtime.log import log
from aioqless.runtime.tasks import wait_for_event
from aioqless.worker.outage import NOT_NOW, Outage

PAUSE_WHEN_FULL = 5.0


@dataclass(frozen=True)
class Imported:
    """What one batch brought.

    Args:
        jobs: How many entries became jobs.
        refused: The entries that were set aside, each with `source`, `jid` and `why`.
    """

    jobs: int = 0
    refused: list[dict[str, Any]] = field(default_factory=list)


class Importer(Protocol):
    """Takes the entries of one source. Each entry leaves it in one step with becoming a job."""

    async def check(self) -> None:
        """Check that this Redis allows it.

        Raises:
            AioqlessError: It does not.
        """

    async def import_batch(self) -> list[Imported]:
        """Import a batch of what is there; return an empty list when there is nothing for now.

        Raises:
            QueueFull: A queue here takes no more jobs.
        """


@runtime_checkable
class ImportSource(Protocol):
    """Another system's queues, as `Settings.importers` takes them."""

    def importer(self, client: Client) -> Importer:
        """Return an importer that uses this client."""


class ImportLoop:
    """Polls one source. Any number may poll the same one."""

    def __init__(
        self, client: Client, source: ImportSource, outage: Outage, poll: float = 1.0
    ) -> None:
        self.caught_up = False  # what was there at the start is imported, or can't be now
        self._importer = source.importer(client)
        self._source = source
        self._outage = outage
        self._poll = poll
        self._checked = False
        self._stopping = asyncio.Event()

    def stop(self) -> None:
        """Let `run` return after the call under way."""
        self._stopping.set()

    async def run(self) -> None:
        """Import until stopped.

        Raises:
            AioqlessError: This Redis does not allow it, as a Cluster does not.
        """
        while not self._stopping.is_set():
            pause = await self._import_batch()
            await wait_for_event(self._stopping, pause)

    async def run_once(self) -> int:
        """Import all that is there; return how many jobs there are of it.

        Raises:
            QueueFull: A queue here takes no more jobs.
            redis.exceptions.RedisError: Redis can't be reached.
        """
        await self._importer.check()
        jobs = 0
        while batch := await self._importer.import_batch():
            self._log(batch)
            jobs += sum(each.jobs for each in batch)
        return jobs

    async def _import_batch(self) -> float:
        """Import one batch; return the seconds until the next."""
        asked = time.monotonic()
        try:
            if not self._checked:
                await self._importer.check()
                self._checked = True
            batch = await self._importer.import_batch()
        except NOT_NOW as error:
            return self._outage.record_failure(error, asked)
        except QueueFull as full:
            log.warning("import.blocked", source=str(self._source), error=str(full))
            self.caught_up = True
            return PAUSE_WHEN_FULL
        self._outage.record_success(permitted=True)
        self._log(batch)
        self.caught_up = self.caught_up or not batch
        return 0 if batch else self._poll

    def _log(self, batch: list[Imported]) -> None:
        if jobs := sum(each.jobs for each in batch):
            log.info("import.completed", source=str(self._source), jobs=jobs)
        for each in batch:
            for refused in each.refused:
                log.error(
                    "import.rejected", key=refused["source"], jid=refused["jid"], why=refused["why"]
                )
