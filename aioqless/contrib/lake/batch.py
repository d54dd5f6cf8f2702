"""A batch of the archive: a range of the stream, divided into shares that tasks write as files."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import pyarrow.compute as pc

from aioqless.client.archive import Archive
from aioqless.contrib.lake.event_columns import batch_of
from aioqless.contrib.lake.event_log import Entry, EventLog, StreamState, parse_id
from aioqless.contrib.lake.position import Position
from aioqless.contrib.lake.schema import EVENTS, QUARANTINE, TABLES
from aioqless.contrib.lake.source.async_bridge import iterate
from aioqless.contrib.lake.source.options import ClientSettings
from aioqless.contrib.lake.storage import Storage
from aioqless.contrib.lake.table_files import File, FileWriter
from aioqless.errors import AioqlessError

_SHARE_ENTRIES: Final = 25_000
_SHARE_BYTES: Final = 64 * 2**20
_FIRST_PAGE: Final = 100  # entries; further pages depend on the sizes of these
_PAGE_ENTRIES: Final = 1_000
_PAGE_BYTES: Final = 4 * 2**20
_TRIMMED_AT_ONCE: Final = 100_000
_PLANS: Final = 10


@dataclass(frozen=True)
class Share:
    """The entries after one id, up to another; `last` is the number in the lake of the latter."""

    after: str
    until: str
    last: int


@dataclass(frozen=True)
class Batch:
    """The shares of a batch, and the positions before and after it.

    `start` is the position in the lake as Redis is now: with what was lost since.
    """

    start: Position
    end: Position
    shares: tuple[Share, ...]

    @property
    def entries(self) -> int:
        """The number of entries."""
        return self.end.ordinal - self.start.ordinal


async def plan_batch(
    log: EventLog, archive: Archive, position: Position, reader: str, *, entries: int, size: int
) -> Batch | None:
    """Return the batch that follows a position, or None if there is nothing to archive.

    What the lake has is trimmed first, so that the counters of the stream say how many entries
    precede the batch.

    Args:
        log: The stream.
        archive: The archive of the namespace.
        position: The last archived entry.
        reader: The name of the lake for the archive.
        entries: Maximum number of entries.
        size: Size in bytes at which the batch ends.
    """
    for _ in range(_PLANS):
        while await archive.trim(position.id, reader) >= _TRIMMED_AT_ONCE:
            pass
        state = await log.state()
        start = _adjust(position, state)
        if parse_id(state.last) <= (position.ms, position.seq):
            return None
        batch = await _divide(log, start, state, entries, size)
        if (await log.state()).first == state.first:  # nothing was cut meanwhile
            return batch
    raise AioqlessError(
        "entries of the archive are cut faster than they can be counted: raise archive-length, or "
        "set archive-when-full to hold"
    )


def _adjust(position: Position, state: StreamState) -> Position:
    """Compare the number of entries that Redis has deleted with those that the lake has."""
    deleted, archived = state.first - 1, position.ordinal - position.forgotten
    if deleted >= archived:
        lost = deleted - archived
        return replace(position, ordinal=position.ordinal + lost, lost=position.lost + lost)
    return replace(position, forgotten=position.ordinal - deleted)


async def _divide(
    log: EventLog, start: Position, state: StreamState, entries: int, size: int
) -> Batch | None:
    shares: list[Share] = []
    at = share_start = start.id
    ordinal = share_first = start.ordinal
    share_bytes = total = 0
    count = _FIRST_PAGE
    while page := await log.read_page(at, state.last, min(count, entries)):
        at = page[-1][0].decode()
        ordinal, entries = ordinal + len(page), entries - len(page)
        page_bytes = _size_of(page)
        share_bytes, total = share_bytes + page_bytes, total + page_bytes
        count = _next_count(len(page), page_bytes)
        is_last = entries <= 0 or total >= size
        if is_last or ordinal - share_first >= _SHARE_ENTRIES or share_bytes >= _SHARE_BYTES:
            shares.append(Share(share_start, at, ordinal))
            share_start, share_first, share_bytes = at, ordinal, 0
        if is_last:
            break
    if share_start != at:
        shares.append(Share(share_start, at, ordinal))
    if not shares:
        return None
    ms, seq = parse_id(at)
    return Batch(start, replace(start, ms=ms, seq=seq, ordinal=ordinal), tuple(shares))


def _size_of(page: Sequence[Entry]) -> int:
    return sum(sum(map(len, flat)) for _, flat in page)


def _next_count(entries: int, size: int) -> int:
    """Return how many entries the next reply may have, by the size of the latest ones."""
    return max(1, min(_PAGE_ENTRIES, _PAGE_BYTES * entries // max(1, size)))


async def read_share(log: EventLog, share: Share) -> AsyncIterator[tuple[int, list[Entry]]]:
    """Yield pages, the last one first, each with the number before its first entry.

    Entries are only ever cut at the start of the stream, so counting from the end keeps the numbers
    right even if that happens meanwhile.
    """
    last, until, count = share.last, share.until, _FIRST_PAGE
    while page := await log.read_page_before(share.after, until, count):
        count = _next_count(len(page), _size_of(page))
        yield last - len(page), page
        last, until = last - len(page), f"({page[0][0].decode()}"


def write_share(
    settings: ClientSettings,
    storages: dict[str, Storage],
    shares: Sequence[Share],
    quarantined: int,
    number: int,
) -> list[File]:
    """Write the entries of a share, and return the files and `{"entries": how many were read}`.

    Args:
        settings: How to connect to the namespace.
        storages: The places of the tables of events and of rejected entries.
        shares: The shares of the batch.
        quarantined: The last entry of which the quarantine may know already.
        number: Which share.
    """
    events, quarantine = (FileWriter(storages[name], TABLES[name]) for name in (EVENTS, QUARANTINE))
    share, read = shares[number], 0
    pages = iterate(settings, lambda client: read_share(EventLog(client), share))
    for ordinal, entries in pages:
        rows = batch_of(ordinal, entries, settings.namespace)
        read += len(entries)
        is_event = pc.is_null(rows["problem"])
        is_new = pc.greater(rows["ordinal"], quarantined)
        events.add(rows.filter(is_event))
        quarantine.add(rows.filter(pc.and_(pc.invert(is_event), is_new)))
    return [{"entries": read}, *events.finish(), *quarantine.finish()]
