"""RecurringJob: a template as it was read, and the verbs that change it in Redis."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from aioqless import data as data_
from aioqless.errors import NoSuchJob
from aioqless.scripts import Scripts


class RecurringJob:
    """A template that puts a job whenever an interval has passed, as it was when it was read.

    `next` is when the next instance is due (seconds since 1970). `backlog` is how many missed instances are made up for; with
    `coalesce`, all that were missed give one.
    """

    __slots__ = (
        "_scripts", "backlog", "coalesce", "count", "interval", "jid", "klass", "next", "priority", "queue", "raw_data", "retries", "tags",
    )  # fmt: skip

    def __init__(self, scripts: Scripts, record: Mapping[str, Any]) -> None:
        self._scripts = scripts
        self._read(record)

    def _read(self, record: Mapping[str, Any]) -> None:
        self.jid: str = record["jid"]
        self.klass: str = record["klass"]
        self.queue: str = record["queue"]
        self.priority: float = record["priority"]
        self.interval: float = record["interval"]
        self.retries: int = record["retries"]
        self.count: int = record["count"]
        self.raw_data: str = record["data"]
        self.tags: list[str] = list(record["tags"])
        self.backlog: int = record["backlog"]
        self.coalesce: bool = record["coalesce"]
        self.next: float | None = record["next"]

    @property
    def data(self) -> Any:
        """The data of its instances. Raises InvalidData."""
        return data_.decoded(self.raw_data)

    async def refresh(self) -> Self:
        """Read it again. Raises NoSuchJob."""
        record = await self._scripts("recur", "get", jid=self.jid)
        if record is None:
            raise NoSuchJob("recur", "NOJOB", {"jid": self.jid, "why": "there is no such recurring job"})
        self._read(record)
        return self

    async def update(self, **changes: Any) -> None:
        """Change any of priority, retries, interval (seconds), data, klass, queue, backlog: all of them or, if one is refused, none."""
        if "data" in changes:
            changes["data"] = data_.encoded(changes["data"])
        await self._scripts("recur", "update", jid=self.jid, pairs=[part for change in changes.items() for part in change])
        await self.refresh()

    async def tag(self, *tags: str) -> list[str]:
        """Put tags on it and so on its coming instances; returns all it has."""
        self.tags = await self._scripts("recur", "tag", jid=self.jid, tags=tags)
        return self.tags

    async def untag(self, *tags: str) -> list[str]:
        """Take tags off it; returns those it still has."""
        self.tags = await self._scripts("recur", "untag", jid=self.jid, tags=tags)
        return self.tags

    async def cancel(self) -> None:
        """No more instances; those that were made stay."""
        await self._scripts("recur", "off", jid=self.jid)

    def __repr__(self) -> str:
        return f"<RecurringJob {self.jid} {self.klass} every {self.interval} s into {self.queue!r}>"
