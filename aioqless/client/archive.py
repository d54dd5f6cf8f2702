"""Archive: the state of the archive stream, trimming, and jobs that other clients ended."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from aioqless.store import Call, Store

MAX_UNREAD: Final = 3600.0  # seconds that an entry waits if a reader is at work
NEARLY_FULL: Final = 0.9


@dataclass(frozen=True)
class ArchiveState:
    """The state of the archive stream, and how far a reader has stored it elsewhere.

    Attributes:
        on: Whether jobs that end are appended.
        when_full: What happens at the bound: "hold" keeps unread entries, "count" deletes them.
        bound: Maximum number of entries with "count".
        length: Number of entries.
        added: Number of entries that were ever added; the first that is left is number
            `added - length + 1`.
        first: Id of the first entry.
        last: Id of the last entry.
        reader: Name of the reader.
        read: Id of the last entry that the reader has stored elsewhere.
        at: When it said so, in seconds since 1970.
    """

    on: bool = False
    when_full: str = "hold"
    bound: int = 0
    length: int = 0
    added: int = 0
    first: str | None = None
    last: str | None = None
    reader: str | None = None
    read: str | None = None
    at: float | None = None

    def unread_since(self, now: float) -> float:
        """Return for how many seconds the oldest unread entry has waited; 0 for none."""
        if not self.length or not self.first:
            return 0.0
        since = int(self.first.partition("-")[0]) / 1000
        # A first entry that is stored elsewhere is about to be trimmed. The next one is later.
        if self.read and _position(self.read) >= _position(self.first):
            since = self.at or since
        return 0.0 if self.read == self.last else max(0.0, now - since)

    def describe_problem(self, now: float) -> str | None:
        """Describe what is wrong if no reader stores the entries elsewhere, and what to do.

        Args:
            now: The time, in seconds since 1970.

        Returns:
            None unless an entry has waited for an hour, or is about to be deleted unread.
        """
        unread, is_cut = self.unread_since(now), self.when_full == "count"
        if unread <= MAX_UNREAD and not (
            unread and is_cut and self.length >= NEARLY_FULL * self.bound
        ):
            return None
        consequence = (
            f"entries beyond {self.bound:,} are deleted unread"
            if is_cut
            else "the stream grows until Redis is full"
        )
        return (
            f"ended jobs have waited for {unread / 3600:,.1f} h to be archived "
            f"({self.length:,} in Redis): without `aioqless lake archive`, {consequence}"
        )


@dataclass
class SweepResult:
    """The result of a sweep.

    Attributes:
        found: Number of ended jobs that were added to the stream.
        missing: Jids that are listed as ended, but have no job any more.
    """

    found: int = 0
    missing: list[str] = field(default_factory=list)


class Archive:
    """The archive stream of a namespace."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def state(self) -> ArchiveState:
        """Return the state of the stream."""
        return ArchiveState(**await self._store.archive_state())

    async def trim(self, id: str, reader: str, *, takeover: bool = False) -> int:
        """Delete entries that are stored elsewhere.

        Args:
            id: Id of the last of them.
            reader: Name of the reader that stored them.
            takeover: Accept that another reader has trimmed before.

        Returns:
            How many were deleted.

        Raises:
            InvalidArgument: Another reader has trimmed before.
        """
        return await self._store.archive_trim(
            id=id, reader=reader, takeover="yes" if takeover else None
        )

    async def sweep(self) -> SweepResult:
        """Add ended jobs that the stream lacks: of other qless clients, or from before it was on.

        Nothing is added while the archive is off.
        """
        result = SweepResult()
        await self._sweep(result, self._store.sweep_completed)
        for group in await self._store.failed():
            await self._sweep(result, partial(self._store.sweep_failed, group=group))
        return result

    async def _sweep(self, result: SweepResult, sweep: Callable[..., Call]) -> None:
        start: str | None = None
        while True:
            page = await sweep(from_=start)
            result.found += page["found"]
            result.missing += page["missing"]
            if not page["next"]:
                return
            start = page["next"]


def _position(id: str) -> tuple[int, int]:
    ms, _, sequence = id.partition("-")
    return int(ms), int(sequence)
