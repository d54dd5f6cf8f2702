"""A batch of the archive: a range of the stream, read once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Generic, TypeVar

from aioqless.client.archive import ArchiveState
from aioqless.contrib.lake.event_log import Entry, EventLog, parse_id
from aioqless.contrib.lake.position import Position
from aioqless.errors import AioqlessError

_FIRST_PAGE: Final = 100  # entries; further pages depend on the sizes of these
_PAGE_ENTRIES: Final = 1_000
_PAGE_BYTES: Final = 4 * 2**20
_TRIMMED_AT_ONCE: Final = 100_000
_ATTEMPTS: Final = 10

Page = TypeVar("Page")


@dataclass(frozen=True)
class Batch(Generic[Page]):
    """The pages of a batch, and the position after it."""

    pages: list[Page]
    end: Position


async def read_batch(
    log: EventLog,
    position: Position,
    reader: str,
    convert: Callable[[int, list[Entry]], Page],
    *,
    entries: int,
    size: int,
) -> Batch[Page] | None:
    """Return the batch that follows a position, or None if there is nothing to archive.

    What the lake has is trimmed first, so that the counters of the stream say how many entries
    precede the batch.

    Args:
        log: The stream.
        position: The last archived entry.
        reader: The name of the lake for the archive.
        convert: Called with the number before a page's first entry, and its entries.
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
        batch = await _read(log, start, state.last, convert, entries, size)
        if batch.pages:
            return batch
    raise AioqlessError(
        "entries of the archive are cut faster than they can be read: raise archive-length, or "
        "set archive-when-full to hold"
    )


def _adjust(position: Position, state: ArchiveState) -> Position:
    """Compare the number of entries that Redis has deleted with those that the lake has."""
    deleted, archived = state.added - state.length, position.ordinal - position.forgotten
    if deleted >= archived:
        lost = deleted - archived
        return replace(position, ordinal=position.ordinal + lost, lost=position.lost + lost)
    return replace(position, forgotten=position.ordinal - deleted)


async def _read(
    log: EventLog,
    start: Position,
    last: str,
    convert: Callable[[int, list[Entry]], Page],
    entries: int,
    size: int,
) -> Batch[Page]:
    """Read pages, up to one of which entries are cut before they can be read."""
    pages: list[Page] = []
    end, count, total = start, min(_FIRST_PAGE, entries), 0
    while count and total < size and (page := await log.read_page(end.id, last, count)):
        state = await log.archive.state()
        if state.added - state.length > end.ordinal - end.forgotten:
            break
        pages.append(convert(end.ordinal, page))
        ms, seq = parse_id(page[-1][0])
        end = replace(end, ms=ms, seq=seq, ordinal=end.ordinal + len(page))
        page_bytes = _size_of(page)
        total += page_bytes
        count = max(1, min(_PAGE_ENTRIES, _PAGE_BYTES * len(page) // max(1, page_bytes)))
        count = min(count, entries - (end.ordinal - start.ordinal))
    return Batch(pages, end)


def _size_of(page: Sequence[Entry]) -> int:
    return sum(sum(map(len, flat)) for _, flat in page)
