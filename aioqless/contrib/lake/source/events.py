"""The archive's stream, from one offset to another.

An offset has the id of an entry, which says where to continue, and its ordinal, which says whether
entries were deleted before they were read. Ordinal 1 is the first entry that was ever added.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, TypeAlias

from redis import exceptions

from aioqless.client import Client
from aioqless.contrib.lake.source.options import ClientSettings
from aioqless.errors import AioqlessError
from aioqless.runtime.log import log
from aioqless.store import Keys

PAGE = 1_000  # entries of a reply
Entry: TypeAlias = tuple[bytes, list[bytes]]


@dataclass(frozen=True)
class Offset:
    """The last entry that was read.

    Attributes:
        id: The id of the entry.
        ordinal: The number of the entry.
        lost: The number of entries before it that were deleted unread.
    """

    id: str = "0-0"
    ordinal: int = 0
    lost: int = 0

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Offset:
        """Return the offset that `to_dict` made into a dictionary."""
        return cls(fields["id"], fields["ordinal"], fields.get("lost", 0))

    def to_dict(self) -> dict[str, Any]:
        """Return the offset as Spark stores it: a dictionary that is valid JSON."""
        return asdict(self)

    @property
    def id_parts(self) -> tuple[int, int]:
        """The id as two integers, which compare as Redis orders entries."""
        return parse_id(self.id)


@dataclass(frozen=True)
class StreamRange:
    """The entries that one task reads: those after `after`, up to `until`."""

    settings: ClientSettings
    after: Offset
    until: Offset
    fail_on_loss: bool = False


@dataclass(frozen=True)
class StreamState:
    """The ordinal of the stream's first entry, and its last entry, which may be deleted."""

    first: int
    last: Offset


def parse_id(id: str | bytes) -> tuple[int, int]:
    """Return a stream id as two integers, which compare as Redis orders entries."""
    ms, _, seq = (id.decode() if isinstance(id, bytes) else id).partition("-")
    return int(ms), int(seq or 0)


class EventLog:
    """The archive's stream of a client's namespace."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._execute = client.internals.store.connection.execute
        self._key = Keys(client.internals.store.namespace)("archive")

    async def state(self) -> StreamState:
        """Return the first and the last entry of the stream."""
        try:
            flat = await self._execute("XINFO", "STREAM", self._key)
        except exceptions.ResponseError as error:
            if "no such key" in str(error):
                return StreamState(1, Offset())
            raise
        info = dict(zip(flat[::2], flat[1::2], strict=True))
        if b"entries-added" not in info:
            raise AioqlessError(
                "this server doesn't count the entries of a stream: Redis 7.0 or Valkey is needed"
            )
        added = info[b"entries-added"]
        return StreamState(
            added - info[b"length"] + 1, Offset(info[b"last-generated-id"].decode(), added)
        )

    async def find_end(
        self, start: Offset, most: int | None, target: Offset | None = None
    ) -> Offset:
        """Return how far to read now: at most `most` entries, and not beyond `target`.

        Entries after `start` that are deleted count as lost.
        """
        state = await self.state()
        is_reached = target is not None and target.id_parts <= state.last.id_parts
        end = target if target is not None and is_reached else state.last
        if end.id_parts <= start.id_parts:
            return start
        start = await self._adjust(start, state)
        if most is None or end.ordinal - start.ordinal <= most:
            return replace(end, lost=start.lost)
        *_, last = await self.divide(start, end, most, most)
        return last

    async def divide(
        self, start: Offset, end: Offset, step: int, most: int | None = None
    ) -> list[Offset]:
        """Return every `step`-th offset between two, and the last one.

        Args:
            start: The offset before the first entry.
            end: The last entry.
            step: The number of entries between two offsets.
            most: Maximum number of entries in all.
        """
        found: list[Offset] = []
        at, left = start, step
        while most is None or at.ordinal - start.ordinal < most:
            count = min(PAGE, left, PAGE if most is None else most - (at.ordinal - start.ordinal))
            entries = await self.read_page(at.id, end.id, count)
            if entries:
                ordinal = at.ordinal + len(entries)
                at = replace(at, id=entries[-1][0].decode(), ordinal=ordinal)
                left -= len(entries)
            if len(entries) < count:
                at = replace(end, lost=start.lost)
                break
            if not left:
                found.append(at)
                left = step
        return found if found and found[-1] == at else [*found, at]

    async def read_page(self, after: str, until: str, count: int = PAGE) -> list[Entry]:
        """Return the first entries after one id, up to another."""
        found: list[Entry] = await self._execute(
            "XRANGE", self._key, f"({after}", until, "COUNT", count
        )
        return found

    async def read_page_before(self, after: str, until: str, count: int) -> list[Entry]:
        """Return the last entries after one id, up to another, in their order."""
        found: list[Entry] = await self._execute(
            "XREVRANGE", self._key, until, f"({after}", "COUNT", count
        )
        return found[::-1]

    async def list_unmatched(self, last: str) -> list[str]:
        """List the entries up to an id, if there are some and the one of that id is missing.

        Since entries are cut at the start only, this is then not the stream that had it.
        """
        latest = await self._execute("XREVRANGE", self._key, last, "-", "COUNT", 1)
        at, found = "0-0", list[str]()
        if latest and latest[0][0].decode() != last:
            while page := await self.read_page(at, last):
                found += [id.decode() for id, _ in page]
                at = found[-1]
        return found

    async def read(self, part: StreamRange) -> AsyncIterator[tuple[int, list[Entry]]]:
        """Yield the entries of a range by the page, with the ordinal before its first entry."""
        at, ordinal = part.after.id, part.after.ordinal
        first = (await self.state()).first
        if first > ordinal + 1:
            _report_loss(part, min(first - 1, part.until.ordinal) - ordinal)
            ordinal = first - 1
        while entries := await self.read_page(at, part.until.id):
            yield ordinal, entries
            at, ordinal = entries[-1][0].decode(), ordinal + len(entries)

    async def trim(self, until: Offset, reader: str) -> None:
        """Delete entries that the reader has stored elsewhere.

        Raises:
            AioqlessError: Another reader trims this stream.
        """
        await self._client.archive.trim(until.id, reader)

    async def _adjust(self, offset: Offset, state: StreamState) -> Offset:
        """Return an offset with the ordinal that precedes the next entry of the stream as it is."""
        if offset.ordinal > state.last.ordinal:
            log.warning("archive.rewound", after=offset.id)
            behind = await self._count_after(offset, state.last)
            return replace(offset, ordinal=state.last.ordinal - behind)
        if state.first > offset.ordinal + 1:
            cut = state.first - 1 - offset.ordinal
            log.warning("archive.cut", after=offset.id, entries=cut)
            return replace(offset, ordinal=state.first - 1, lost=offset.lost + cut)
        return offset

    async def _count_after(self, offset: Offset, last: Offset) -> int:
        at, number = offset.id, 0
        while entries := await self.read_page(at, last.id):
            at, number = entries[-1][0].decode(), number + len(entries)
        return number


def _report_loss(part: StreamRange, cut: int) -> None:
    if part.fail_on_loss:
        raise AioqlessError(
            f"{cut} events after {part.after.id} were cut between planning and reading, and "
            "failOnLoss is true: read more often, raise archive-length, or set archive-when-full "
            "to hold"
        )
    log.warning("archive.cut", after=part.after.id, entries=cut)
