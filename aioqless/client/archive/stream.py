"""The archive's stream as it is, what goes from it, and the sweep for what others ended."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from aioqless.store import Call, Store

LATE: Final = 3600.0  # seconds that what ended waits, when an archiver is at work
NEARLY: Final = 0.9


@dataclass(frozen=True)
class ArchiveState:
    """How the stream is, and who keeps it elsewhere.

    `first` and `last` are ids of entries, `read` that of the last one that `reader` has safely
    elsewhere, told at `at` (seconds since the epoch). `added` counts all entries there ever were,
    so the first that is left is number `added - length + 1`."""

    on: bool
    when_full: str
    bound: int
    length: int
    added: int
    first: str | None = None
    last: str | None = None
    reader: str | None = None
    read: str | None = None
    at: float | None = None

    def unread_since(self, now: float) -> float:
        """For how many seconds the oldest entry waits that isn't elsewhere yet; 0 if there is
        none."""
        if not self.length or not self.first:
            return 0.0
        since = int(self.first.partition("-")[0]) / 1000
        if self.read and _place(self.read) >= _place(
            self.first
        ):  # it is kept, and about to go: what follows came later than this
            since = self.at or since
        return 0.0 if self.read == self.last else max(0.0, now - since)

    def trouble(self, now: float) -> str | None:
        """What is wrong when nobody takes away what ended, and what to do: something has waited for
        an hour, or is about to be cut."""
        late, is_cut = self.unread_since(now), self.when_full == "count"
        if late <= LATE and not (late and is_cut and self.length >= NEARLY * self.bound):
            return None
        then = (
            f"what is beyond {self.bound:,} goes unread"
            if is_cut
            else "the stream grows until Redis is full"
        )
        waits = f"what ended waits to be archived, for {late / 3600:,.1f} h by now ({self.length:,} in Redis)"
        return f"{waits}: without `aioqless pipeline archive`, {then}"


@dataclass
class Swept:
    """What a sweep came to: how many ends of jobs it told, and the jids that are listed as ended
    but have no job any more."""

    found: int = 0
    missing: list[str] = field(default_factory=list)


class Archive:
    """The archive of a namespace. `await archive.sweep()` tells of what other clients of qless
    ended."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def state(self) -> ArchiveState:
        """How it is now."""
        return ArchiveState(**await self._store.archive_state())

    async def trim(self, id: str, reader: str, *, takeover: bool = False) -> int:
        """Entries up to that of `id` are safely elsewhere, and go. Returns how many went.

        `reader` names who has them. Raises InvalidArgument if another has trimmed before, unless
        this one takes over."""
        return await self._store.archive_trim(
            id=id, reader=reader, takeover="yes" if takeover else None
        )

    async def sweep(self) -> Swept:
        """Tell of all jobs that are complete or failed and not told of yet. Nothing happens where
        the archive is off."""
        swept = Swept()
        await self._walk(swept, self._store.sweep_completed)
        for group in await self._store.failed():
            await self._walk(swept, partial(self._store.sweep_failed, group=group))
        return swept

    async def _walk(self, swept: Swept, sweep: Callable[..., Call[Any]]) -> None:
        start: str | None = None
        while True:
            portion = await sweep(from_=start)
            swept.found += portion["found"]
            swept.missing += portion["missing"]
            if not portion["next"]:
                return
            start = portion["next"]


def _place(id: str) -> tuple[int, int]:
    ms, _, sequence = id.partition("-")
    return int(ms), int(sequence)
