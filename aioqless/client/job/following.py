"""Follow a job: wait for its end, read what came of it, say and see how far it is."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Generator
from contextlib import aclosing
from typing import Any, Self

from aioqless import validation
from aioqless.client.job.reading import Data, ReadJob
from aioqless.client.job.watcher import THROUGH
from aioqless.errors import JobFailed

LONGEST_MESSAGE = 1_000  # characters


class Followed(ReadJob[Data]):
    """What can be asked about a job by who waits for it, and told by who runs it."""

    __slots__ = ()

    async def wait(self, timeout: float | None = None) -> Self:
        """Wait until it is complete or failed, and read it again. It is told by events, without
        polling.

        Raises TimeoutError after `timeout` seconds, NoSuchJob when it is cancelled. A job that goes
        on in another queue, runs again or waits for its retry is not through yet. In a handler this
        keeps a slot: let jobs depend on each other instead."""
        await self._services.watcher.wait_for_end(self.jid, timeout)
        return await self.refresh()

    async def follow(self) -> AsyncGenerator[Self, None]:
        """Itself as it is now, and whenever it has changed, read again; ends when it is complete or
        failed.

            async for job in job.follow():
                print(job.state, job.progressed)

        It is told by events, as `wait` is, and changes that come faster than they are taken are
        seen together. That a job has begun is seen with its first progress. Raises NoSuchJob when
        it is cancelled."""
        async with aclosing(
            self._services.watcher.watch(self.jid, self.refresh, closely=True)
        ) as looks:
            async for job in looks:
                yield job
                if job.state in THROUGH:
                    return

    async def outcome(self, timeout: float | None = None) -> Any:
        """Wait for its end; returns its handler's result. Raises JobFailed, NoResult, and what
        `wait` raises."""
        await self.wait(timeout)
        if self.state == "failed" and self.failure is not None:
            raise JobFailed(self.jid, self.failure.group, self.failure.message)
        return await self.result()

    async def result(self) -> Any:
        """What the handler returned, if the job is complete and its handler keeps results:
        `@job(result_ttl=seconds)`.

        Raises NoResult, and DecryptionError for one that can't be trusted or read."""
        return self._services.codec.decode_result(await self._store.result(jid=self.jid), self.jid)

    async def results(self) -> dict[str, Any]:
        """The results of the jobs it was last put to wait for, by jid, of those that keep theirs.
        Raises DecryptionError."""
        found: dict[str, Any] = {}
        start: int | None = 0
        while start is not None:
            page = await self._store.dependency_results(jid=self.jid, start=start)
            found |= {
                jid: self._services.codec.decode_result(kept, jid)
                for jid, kept in page["results"].items()
            }
            start = page["next"]
        return found

    def progress(self, share: float, message: str = "") -> Told:
        """Tell how much is done, from 0 to 1, and what is being done: who looks at the job sees it,
        and an event tells it.

        Returns at once, on the loop and in threads; it may be awaited. What is told more often than
        ten times a second is told with the latest alone. It renews the lock, too. Raises ValueError
        for a share that is none."""
        if validation.check_number("share", share, least=0) > 1:
            raise ValueError(f"share {share!r} must be between 0 and 1")
        self._services.reporter.report(self, share, validation.to_text(message)[:LONGEST_MESSAGE])
        return Told()

    async def track(self, *tags: str) -> None:
        """Keep an eye on it: its events are published one by one. The tags are put on it as
        well."""
        await self._store.track_track(jid=self.jid, tags=tags)

    async def untrack(self) -> None:
        """Publish its events no longer."""
        await self._store.track_untrack(jid=self.jid)


class Told:
    """Awaiting it gives the loop a turn."""

    def __await__(self) -> Generator[None, None, None]:
        yield from asyncio.sleep(0).__await__()
