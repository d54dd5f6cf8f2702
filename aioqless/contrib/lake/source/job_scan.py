"""Which jobs there are: every key of the namespace, walked in parts at once, or an index where a
filter allows for it.

SCAN's cursor counts through the buckets of Redis' table with its bits reversed, so the keys whose
hash ends in the same bits lie side by side, whatever the table's size: that is what divides the
keyspace. A key that is there all the time is found, whatever becomes of its job. An index is read
by score and not by rank, so what others put or take meanwhile hides nothing that stays."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TypeAlias

from aioqless.client import Client
from aioqless.client.keyspace import Keys
from aioqless.errors import AioqlessError

PAGE = 2_000
KEYS_PER_PART = 50_000
MOST_PARTS = 256
FEWEST_KEYS_PER_PART = 1_024  # or Redis' table might become smaller than the parts are many
IN_QUEUE = {
    "waiting": ("waiting", "scheduled"),
    "stalled": ("waiting",),
    "scheduled": ("scheduled",),
    "running": ("locks",),
    "depends": ("depends",),
}


@dataclass(frozen=True)
class Wanted:
    """What filters leave of the jobs; None is no filter."""

    jids: frozenset[str] | None = None
    queues: frozenset[str] | None = None
    states: frozenset[str] | None = None
    tag: str | None = None
    since: float | None = None  # seconds since 1970: put, popped or completed no earlier


@dataclass(frozen=True)
class Named:
    """Jobs by their jids."""

    jids: tuple[bytes, ...]


@dataclass(frozen=True)
class Part:
    """The `number`-th of `of` parts of the keyspace."""

    number: int = 0
    of: int = 1


@dataclass(frozen=True)
class Span:
    """The members of a sorted set with scores from `low`, up to but not including `high`; as Redis
    writes scores."""

    key: bytes
    low: bytes = b"-inf"
    high: bytes = b"+inf"

    @property
    def bounds(self) -> tuple[bytes, bytes]:
        return self.low, self.high if self.high == b"+inf" else b"(" + self.high


@dataclass(frozen=True)
class Heap:
    """The members of a list, newest first: those failed in a group."""

    key: bytes


Piece: TypeAlias = Named | Part | Span | Heap


@dataclass
class Finder:
    """Finds the jids of a client's namespace, in pieces that several tasks look for at once."""

    client: Client
    keys: Keys = field(init=False)

    def __post_init__(self) -> None:
        self.keys = self.client.keyspace.key
        self._execute = self.client.keyspace.execute

    async def pieces(self, wanted: Wanted, most: int | None = None) -> list[Piece]:
        """What to look through: an index that has all that is wanted, the narrowest first, else the
        whole keyspace."""
        if wanted.jids is not None:
            return [
                Named(tuple(jid.encode("utf-8", "surrogateescape") for jid in sorted(wanted.jids)))
            ]
        if wanted.tag is not None:
            return await self._spans(self.keys("tag", wanted.tag))
        if wanted.states is not None and wanted.states <= {"complete", "failed"}:
            return [
                *(await self._completed(wanted)),
                *(await self._failed() if "failed" in wanted.states else []),
            ]
        if wanted.queues is not None:
            return await self._in_queues(wanted.queues, wanted.states)
        return await self._parts(most)

    async def _in_queues(
        self, queues: frozenset[str], states: frozenset[str] | None
    ) -> list[Piece]:
        sets = dict.fromkeys(
            place
            for state, places in IN_QUEUE.items()
            if states is None or state in states
            for place in places
        )
        pieces = [
            piece
            for queue in sorted(queues)
            if queue
            for place in sets
            for piece in await self._spans(self.keys(place, queue))
        ]
        if states is None or "failed" in states:
            pieces += await self._failed()
        if "" in queues or (states is not None and "complete" in states):
            pieces += await self._spans(self.keys("completed"))
        return pieces

    async def _completed(self, wanted: Wanted) -> list[Piece]:
        if wanted.states is None or "complete" not in wanted.states:
            return []
        return await self._spans(self.keys("completed"), wanted.since)

    async def _failed(self) -> list[Piece]:
        return [
            Heap(self.keys("group", group))
            for group in sorted(await self._execute("SMEMBERS", self.keys("failures")))
        ]

    async def _spans(self, key: bytes, low: float | None = None) -> list[Piece]:
        """A sorted set in stretches of about as many members."""
        first = b"-inf" if low is None else repr(low).encode()
        number = await self._execute("ZCOUNT", key, first, "+inf")
        before = await self._execute("ZCARD", key) - number
        bounds = [first]
        for rank in range(KEYS_PER_PART, number, KEYS_PER_PART):
            found = await self._execute("ZRANGE", key, before + rank, before + rank, "WITHSCORES")
            if found and found[1] != bounds[-1]:
                bounds.append(found[1])
        bounds.append(b"+inf")
        return [Span(key, *pair) for pair in pairwise(bounds)] if number else []

    async def _parts(self, most: int | None) -> list[Piece]:
        info = (await self._execute("INFO", "CLUSTER")).decode() + (
            await self._execute("INFO", "SERVER")
        ).decode()
        size = await self._execute("DBSIZE")
        if "cluster_enabled:1" in info or "dragonfly_version" in info:
            return [Part()]  # whose cursors have something else in these bits
        parts = min(
            most or MOST_PARTS,
            -(-size // (KEYS_PER_PART if most is None else 1)),
            size // FEWEST_KEYS_PER_PART,
        )
        of = 1 << max(0, parts.bit_length() - 1)
        return [Part(number, of) for number in range(of)]

    async def jids(self, piece: Piece) -> AsyncIterator[Sequence[bytes]]:
        """The jids of a piece, page by page, each once."""
        match piece:
            case Named(jids):
                yield list(jids)
            case Part():
                async for page in self._scanned(piece):
                    yield page
            case Span():
                async for page in self._ranged(piece):
                    yield page
            case Heap(key):
                async for page in self._listed(key):
                    yield page

    async def _scanned(self, part: Part) -> AsyncIterator[Sequence[bytes]]:
        first, end = part.number * (2**64 // part.of), (part.number + 1) * (2**64 // part.of)
        cursor, seen, skip = reversed_bits(first), set[bytes](), len(self.keys("job", b""))
        while True:
            at = cursor
            cursor, found = await self._scan(at)
            if cursor and reversed_bits(cursor) <= reversed_bits(at):
                raise AioqlessError(
                    "this server's SCAN goes another way than Redis' does: read with the option partitions = 1"
                )
            reached = reversed_bits(cursor) if cursor else 2**64
            fresh = set(found) - seen
            if reached > end:
                fresh -= await self._between(end, reached)
            seen |= fresh
            yield [key[skip:] for key in fresh]
            if reached >= end:
                return

    async def _between(self, first: int, end: int) -> set[bytes]:
        """A page ends where it likes: what of it is the next part's."""
        keys: set[bytes] = set()
        while first < end:
            cursor, found = await self._scan(reversed_bits(first))
            keys.update(found)
            first = reversed_bits(cursor) if cursor else 2**64
        return keys

    async def _scan(self, cursor: int) -> tuple[int, list[bytes]]:
        pattern = re.sub(rb"([*?\[\]\\^])", rb"\\\1", self.keys("job", b"")) + b"*"
        after, found = await self._execute(
            "SCAN", cursor, "MATCH", pattern, "COUNT", PAGE, "TYPE", "hash"
        )
        return int(after), found

    async def _ranged(self, span: Span) -> AsyncIterator[Sequence[bytes]]:
        """By score: each page begins with the score that the last one ended with, whose members may
        be many."""
        low, high = span.bounds
        at_low: set[bytes] = set()
        count = PAGE
        while True:
            flat = await self._execute(
                "ZRANGE", span.key, low, high, "BYSCORE", "LIMIT", 0, count, "WITHSCORES"
            )
            members, scores = flat[::2], flat[1::2]
            yield [member for member in members if member not in at_low]
            if len(members) < count:
                return
            if scores[-1] == scores[0]:
                count *= 2
            at_low = {
                member for member, score in zip(members, scores, strict=True) if score == scores[-1]
            }
            low = scores[-1]

    async def _listed(self, key: bytes) -> AsyncIterator[Sequence[bytes]]:
        """From the newest on. A page begins with one that was seen, or others went meanwhile and
        the list is read from further up."""
        seen: set[bytes] = set()
        index = 0
        while members := await self._execute("LRANGE", key, max(0, index - 1), index + PAGE - 1):
            if index and members[0] not in seen:
                index = max(0, index - PAGE)
                continue
            fresh = [member for member in dict.fromkeys(members) if member not in seen]
            seen.update(fresh)
            yield fresh
            if len(members) < PAGE:
                return
            index += PAGE


def reversed_bits(number: int) -> int:
    return int(f"{number:064b}"[::-1], 2)
