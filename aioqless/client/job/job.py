"""Job: a record as it was read, and the verbs that change it in Redis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from aioqless import validation
from aioqless.client import json_data
from aioqless.client.job.following import Followed
from aioqless.client.job.reading import Data, Reason
from aioqless.client.job.temp_dir import Scratch

__all__ = ["Data", "Job", "Reason"]


class Job(Followed[Data]):
    """One job as it was when it was read; `await job.refresh()` reads it again.

    `priority` is lower for what runs sooner. `expires` is when the lock ends, in seconds since 1970
    by Redis' clock, 0 when nobody holds it. `fence` rises with each pop: hand it to what you write
    to, to keep out a run that lost its lock. `context` are texts that travel with it, such as those
    of a trace. It fails if a worker gets it later than `start_by`."""

    __slots__ = ()

    def scratch(self) -> Scratch:
        """A new directory: `with job.scratch() as path:` or `async with`. It is gone when the block
        is left, and so is what is in it."""
        return Scratch(self.jid)

    # The holder's verbs. Each raises LockLost when another run holds the job by now, WrongState
    # when it doesn't run at all.

    @property
    def _held(self) -> dict[str, Any]:
        return {"jid": self.jid, "worker": self.worker, "fence": self.fence or None}

    async def heartbeat(self) -> float:
        """Keep the lock, and store the data if they were changed; returns when it now expires."""
        text = self.changed_data()
        self.expires = await self._store.heartbeat(**self._held, data=text)
        if text is not None:
            self.raw_data, self._opened = text.decode(), None
            self._as_read = json_data.shape(self._data) if self._as_read is not None else None
        return self.expires

    async def complete(
        self,
        next: str | None = None,
        *,
        delay: float | None = None,
        depends: Sequence[str] | None = None,
    ) -> str:
        """End the job, or send it on to the queue `next`, after `delay` seconds or the jobs it
        `depends` on. Returns its state."""
        state: str = await self._store.complete(
            **self._held,
            queue=self.queue,
            data=self.changed_data(),
            next=next,
            delay=delay,
            depends=depends,
        )
        self.settled = True
        return state

    async def fail(self, group: str, message: str) -> None:
        """Set the job aside as failed, in the group of its kind of failure. A job that nobody runs
        may be failed by anybody."""
        await self._store.fail(**self._held, group=group, message=message, data=self.changed_data())
        self.settled = True

    async def retry(
        self, delay: float = 0, *, group: str | None = None, message: str | None = None
    ) -> int:
        """Run it again, at the cost of a retry. Returns how many remain; below zero: there was none
        left, and it failed."""
        remaining: int = await self._store.retry(
            **self._held, queue=self.queue, delay=delay, group=group, message=message
        )
        self.settled = True
        return remaining

    async def release(self, delay: float = 0) -> str:
        """Hand it back to its place in the queue, at no cost of a retry. Returns its state."""
        state: str = await self._store.release(**self._held, delay=delay)
        self.settled = True
        return state

    # Anybody's verbs.

    async def cancel(self) -> bool:
        """Delete the job; whether there was anything to delete. Raises HasDependents."""
        return bool(await self._store.cancel(jids=[self.jid]))

    async def move(
        self,
        queue: str,
        *,
        delay: float = 0,
        priority: float | None = None,
        depends: Sequence[str] | None = None,
    ) -> None:
        """Put it into another queue, wherever it is now; whoever runs it loses the lock."""
        text = self.changed_data() or self.raw_data
        await self._store.requeue(
            queue=validation.check_name("queue", queue),
            jid=self.jid,
            klass=self.klass,
            data=text,
            delay=delay,
            priority=priority,
            depends=depends,
        )

    async def timeout(self) -> None:
        """Take it from its worker; it is next in line before all others."""
        await self._store.timeout(jids=[self.jid])

    async def depend(self, *jids: str) -> None:
        """Let it wait for more jobs. Raises WrongState unless it waits for some already."""
        await self._store.depends_on(jid=self.jid, jids=jids)

    async def undepend(self, *jids: str) -> None:
        """Let it no longer wait for these jobs; without any, for none at all."""
        await self._store.depends_off(jid=self.jid, jids=jids or ["all"])

    async def set_priority(self, priority: float) -> None:
        """Run it sooner (lower) or later than others."""
        await self._store.priority(jid=self.jid, priority=priority)
        self.priority = priority

    async def tag(self, *tags: str) -> list[str]:
        """Put tags on it; returns all it has."""
        self.tags = await self._store.tag_add(jid=self.jid, tags=tags)
        return self.tags

    async def untag(self, *tags: str) -> list[str]:
        """Take tags off it; returns those it still has."""
        self.tags = await self._store.tag_remove(jid=self.jid, tags=tags)
        return self.tags

    async def log(self, message: str, **more: Any) -> None:
        """Add an event of your own to its history; `more` is stored with it."""
        await self._store.log(
            jid=self.jid, message=message, data=msgspec.json.encode(more) if more else None
        )

    def __repr__(self) -> str:
        return f"<Job {self.jid} {self.klass} {self.state} in {self.queue!r}>"
