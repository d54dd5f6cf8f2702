"""The archive's stream, from one offset to another.

An offset is the id of an entry with its ordinal, 1 being the first entry ever added: ids say where
to go on, ordinals whether something between was cut before it was read."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import asdict, dataclass, replace
from typing import Any, TypeAlias

from redis import exceptions

from aioqless.client import Client
from aioqless.contrib.lake.source.options import Where
from aioqless.errors import AioqlessError
from aioqless.runtime.log import log

PAGE = 1_000  # entries of a reply
Entry: TypeAlias = tuple[bytes, list[bytes]]


@dataclass(frozen=True)
class Offset:
    """Behind the entry `sid`, the `n`-th; on the way there `lost` were cut unread."""

    sid: str = "0-0"
    n: int = 0
    lost: int = 0

    @classmethod
    def of(cls, told: dict[str, Any]) -> Offset:
        return cls(told["sid"], told["n"], told.get("lost", 0))

    def told(self) -> dict[str, Any]:
        return asdict(self)

    @property
    def place(self) -> tuple[int, int]:
        return place(self.sid)


@dataclass(frozen=True)
class Stretch:
    """What one task reads: the entries behind `after`, up to `upto`."""

    where: Where
    after: Offset
    upto: Offset
    fail_on_loss: bool = False


@dataclass(frozen=True)
class State:
    """The stream as it is: the ordinal of its first entry, and the id and the ordinal of its last,
    which may be gone."""

    first: int
    last: Offset


def place(sid: str | bytes) -> tuple[int, int]:
    """A stream id as Redis orders it."""
    ms, _, seq = (sid.decode() if isinstance(sid, bytes) else sid).partition("-")
    return int(ms), int(seq or 0)


class EventLog:
    """The archive's stream of a client's namespace."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._execute = client.keyspace.execute
        self._key = client.keyspace.key("archive")

    async def state(self) -> State:
        try:
            flat = await self._execute("XINFO", "STREAM", self._key)
        except exceptions.ResponseError as error:
            if "no such key" in str(error):
                return State(1, Offset())
            raise
        about = dict(zip(flat[::2], flat[1::2], strict=True))
        if b"entries-added" not in about:
            raise AioqlessError(
                "this server doesn't count the entries of a stream: Redis 7.0 or Valkey is needed"
            )
        added = about[b"entries-added"]
        return State(
            added - about[b"length"] + 1, Offset(about[b"last-generated-id"].decode(), added)
        )

    async def latest(self, start: Offset, most: int | None, target: Offset | None = None) -> Offset:
        """How far to read now: at most so many entries, and not beyond `target`. What was cut
        behind `start` counts as lost."""
        now = await self.state()
        end = now.last if target is None or target.place > now.last.place else target
        if end.place <= start.place:
            return start
        start = await self.found_again(start, now)
        if most is None or end.n - start.n <= most:
            return replace(end, lost=start.lost)
        *_, last = await self.walked(start, end, most, most)
        return last

    async def found_again(self, offset: Offset, now: State) -> Offset:
        """An offset as the stream is now: the next entry to read follows its ordinal."""
        if offset.n > now.last.n:
            log.warning("archive.rewound", after=offset.sid)
            return replace(offset, n=now.last.n - await self._behind(offset, now.last))
        if now.first > offset.n + 1:
            cut = now.first - 1 - offset.n
            log.warning("archive.cut", after=offset.sid, entries=cut)
            return replace(offset, n=now.first - 1, lost=offset.lost + cut)
        return offset

    async def walked(
        self, start: Offset, end: Offset, every: int, most: int | None = None
    ) -> list[Offset]:
        """Offsets `every` so many entries between two, the last one included; no further than
        `most` entries."""
        found: list[Offset] = []
        at, left = start, every
        while most is None or at.n - start.n < most:
            count = min(PAGE, left, PAGE if most is None else most - (at.n - start.n))
            entries = await self.page(at.sid, end.sid, count)
            if entries:
                at, left = (
                    replace(at, sid=entries[-1][0].decode(), n=at.n + len(entries)),
                    left - len(entries),
                )
            if len(entries) < count:
                at = replace(end, lost=start.lost)
                break
            if not left:
                found.append(at)
                left = every
        return found if found and found[-1] == at else [*found, at]

    async def _behind(self, offset: Offset, last: Offset) -> int:
        at, number = offset.sid, 0
        while entries := await self.page(at, last.sid):
            at, number = entries[-1][0].decode(), number + len(entries)
        return number

    async def page(self, after: str, upto: str, count: int = PAGE) -> list[Entry]:
        found: list[Entry] = await self._execute(
            "XRANGE", self._key, f"({after}", upto, "COUNT", count
        )
        return found

    async def page_before(self, after: str, upto: str, count: int) -> list[Entry]:
        """Return the last entries behind one id up to another, in their order."""
        found: list[Entry] = await self._execute(
            "XREVRANGE", self._key, upto, f"({after}", "COUNT", count
        )
        return found[::-1]

    async def read(self, stretch: Stretch) -> AsyncIterator[tuple[int, list[Entry]]]:
        """Pages of a stretch, each behind the ordinal before its first entry."""
        at, n = stretch.after.sid, stretch.after.n
        first = (await self.state()).first
        if first > n + 1:
            self._tell_loss(stretch, min(first - 1, stretch.upto.n) - n)
            n = first - 1
        while entries := await self.page(at, stretch.upto.sid):
            yield n, entries
            at, n = entries[-1][0].decode(), n + len(entries)

    def _tell_loss(self, stretch: Stretch, cut: int) -> None:
        if stretch.fail_on_loss:
            raise AioqlessError(
                f"{cut} events behind {stretch.after.sid} were cut between planning and reading, and failOnLoss says to stop then. "
                "Read more often, raise archive-length, or set archive-when-full to hold"
            )
        log.warning("archive.cut", after=stretch.after.sid, entries=cut)

    async def trim(self, upto: Offset, reader: str) -> None:
        """What is safely kept elsewhere goes; who else trims this stream is refused."""
        await self._client.archive.trim(upto.sid, reader)
