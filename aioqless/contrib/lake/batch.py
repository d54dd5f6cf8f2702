"""A batch of the archive: ranges of the stream, one for each task that reads it.

Entries are numbered without gaps. Redis doesn't know the number of an entry, so the driver walks
through the ids of a batch, and keeps none of the entries.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from aioqless.client.archive import ArchiveState
from aioqless.contrib.lake.event_log import EventLog, parse_id, size_of
from aioqless.contrib.lake.position import Position
from aioqless.errors import AioqlessError

CUT_TOO_FAST: Final = (
    "entries of the archive are cut faster than they can be read: raise archive-length, or set "
    "archive-when-full to hold"
)
_RANGE_ENTRIES: Final = 25_000
_RANGE_BYTES: Final = 32 * 2**20
_TRIMMED_AT_ONCE: Final = 100_000
_ATTEMPTS: Final = 10


@dataclass(frozen=True)
class Range:
    """Entries behind one id up to another, and the number of the entry before them."""

    after: str
    last: str
    ordinal: int
    count: int


@dataclass(frozen=True)
class Batch:
    """The ranges of a batch, and the position after it."""

    ranges: list[Range]
    end: Position

    @property
    def count(self) -> int:
        """The number of entries."""
        return sum(each.count for each in self.ranges)


async def plan_batch(
    log: EventLog, position: Position, reader: str, *, entries: int, size: int
) -> Batch | None:
    """Return the batch that follows a position, or None if there is nothing to archive.

    What the lake has is trimmed first, so that the counters of the stream say how many entries
    precede the batch.

    Args:
        log: The stream.
        position: The last archived entry.
        reader: The name of the lake for the archive.
        entries: Maximum number of entries.
        size: Size in bytes at which the batch ends.
    """
    for _ in range(_ATTEMPTS):
        while await log.archive.trim(position.id, reader) >= _TRIMMED_AT_ONCE:
            pass
        state = await log.archive.state()
        if state.last is None or not state.length:
            return None
        if parse_id(state.last) <= (position.ms, position.seq):
            return None
        start = _adjust(position, state)
        ranges = await plan_ranges(log, start.id, state.last, start.ordinal, entries, size)
        state = await log.archive.state()
        if ranges and state.added - state.length <= start.ordinal - start.forgotten:
            ms, seq = parse_id(ranges[-1].last)
            ordinal = ranges[-1].ordinal + ranges[-1].count
            return Batch(ranges, replace(start, ms=ms, seq=seq, ordinal=ordinal))
    raise AioqlessError(CUT_TOO_FAST)


async def plan_ranges(
    log: EventLog,
    after: str,
    last: str,
    ordinal: int,
    entries: int | None = None,
    size: int | None = None,
) -> list[Range]:
    """Divide the entries behind one id up to another into ranges.

    Args:
        log: The stream.
        after: The one id.
        last: The other id.
        ordinal: The number of the entry before them.
        entries: Maximum number of entries.
        size: Size in bytes at which the last range ends.
    """
    ranges = list[Range]()
    start, count, range_bytes, total = after, 0, 0, 0
    at = after
    async for page in log.read_pages(after, last, entries):
        at = page[-1][0].decode()
        count += len(page)
        page_bytes = size_of(page)
        range_bytes += page_bytes
        total += page_bytes
        is_over = size is not None and total >= size
        if is_over or count >= _RANGE_ENTRIES or range_bytes >= _RANGE_BYTES:
            ranges.append(Range(start, at, ordinal, count))
            start, ordinal, count, range_bytes = at, ordinal + count, 0, 0
        if is_over:
            return ranges
    if count:
        ranges.append(Range(start, at, ordinal, count))
    return ranges


def _adjust(position: Position, state: ArchiveState) -> Position:
    """Compare the number of entries that Redis has deleted with those that the lake has."""
    deleted, archived = state.added - state.length, position.ordinal - position.forgotten
    if deleted >= archived:
        lost = deleted - archived
        return replace(position, ordinal=position.ordinal + lost, lost=position.lost + lost)
    return replace(position, forgotten=position.ordinal - deleted)
