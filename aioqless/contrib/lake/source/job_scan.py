"""Lists the jids of a namespace, in pieces that tasks read in parallel.

A piece is a part of an index where a filter allows for one, otherwise of the keyspace. The cursor
of SCAN counts the buckets of Redis' hash table with its bits reversed. So keys whose hash ends in
the same bits are adjacent, whatever the size of the table, and a range of cursors is a part of the
keyspace. A key that exists during the whole scan is found, wherever its job moves. An index is read
by score, not by rank, so that changes meanwhile don't hide the members that stay.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TypeAlias

from aioqless.client import Client
from aioqless.errors import AioqlessError
from aioqless.store import Keys

PAGE = 2_000
KEYS_PER_PART = 50_000
MAX_PARTS = 256
MIN_KEYS_PER_PART = 1_024  # Redis' table must never have fewer buckets than there are parts
INDEXES_OF_STATE = {
    "waiting": ("waiting", "scheduled"),
    "stalled": ("waiting",),
    "scheduled": ("scheduled",),
    "running": ("locks",),
    "depends": ("depends",),
}


@dataclass(frozen=True)
class JobFilter:
    """Which jobs to read; None is no restriction.

    `since` is in seconds since the epoch: put, popped or completed no earlier.
    """

    jids: frozenset[str] | None = None
    queues: frozenset[str] | None = None
    states: frozenset[str] | None = None
    tag: str | None = None
    since: float | None = None


@dataclass(frozen=True)
class JidList:
    """Certain jobs."""

    jids: tuple[bytes, ...]


@dataclass(frozen=True)
class KeyspacePart:
    """Part `number`, from 0, of `of` equal parts of the keyspace."""

    number: int = 0
    of: int = 1


@dataclass(frozen=True)
class ScoreRange:
    """The members of a sorted set with scores from `low` to below `high`, as Redis writes them."""

    key: bytes
    low: bytes = b"-inf"
    high: bytes = b"+inf"

    @property
    def bounds(self) -> tuple[bytes, bytes]:
        """The arguments of ZRANGE BYSCORE."""
        return self.low, self.high if self.high == b"+inf" else b"(" + self.high


@dataclass(frozen=True)
class FailureGroup:
    """The members of a list: the failed jobs of a group, the newest first."""

    key: bytes


Piece: TypeAlias = JidList | KeyspacePart | ScoreRange | FailureGroup


@dataclass
class JobScanner:
    """Lists the jids of a client's namespace."""

    client: Client
    keys: Keys = field(init=False)

    def __post_init__(self) -> None:
        self.keys = Keys(self.client.internals.store.namespace)
        self._execute = self.client.internals.store.connection.execute

    async def divide(self, wanted: JobFilter, most: int | None = None) -> list[Piece]:
        """Return the pieces of the smallest index that has all jobs of a filter.

        If no index has them, the pieces are parts of the keyspace, at most `most`.
        """
        if wanted.jids is not None:
            return [
                JidList(
                    tuple(jid.encode("utf-8", "surrogateescape") for jid in sorted(wanted.jids))
                )
            ]
        if wanted.tag is not None:
            return await self._score_ranges(self.keys("tag", wanted.tag))
        if wanted.states is not None and wanted.states <= {"complete", "failed"}:
            return [
                *(await self._find_completed(wanted)),
                *(await self._find_failed() if "failed" in wanted.states else []),
            ]
        if wanted.queues is not None:
            return await self._find_in_queues(wanted.queues, wanted.states)
        return await self._divide_keyspace(most)

    async def _find_in_queues(
        self, queues: frozenset[str], states: frozenset[str] | None
    ) -> list[Piece]:
        sets = dict.fromkeys(
            index
            for state, indexes in INDEXES_OF_STATE.items()
            if states is None or state in states
            for index in indexes
        )
        pieces = [
            piece
            for queue in sorted(queues)
            if queue
            for index in sets
            for piece in await self._score_ranges(self.keys(index, queue))
        ]
        if states is None or "failed" in states:
            pieces += await self._find_failed()
        if "" in queues or (states is not None and "complete" in states):
            pieces += await self._score_ranges(self.keys("completed"))
        return pieces

    async def _find_completed(self, wanted: JobFilter) -> list[Piece]:
        if wanted.states is None or "complete" not in wanted.states:
            return []
        return await self._score_ranges(self.keys("completed"), wanted.since)

    async def _find_failed(self) -> list[Piece]:
        return [
            FailureGroup(self.keys("group", group))
            for group in sorted(await self._execute("SMEMBERS", self.keys("failures")))
        ]

    async def _score_ranges(self, key: bytes, low: float | None = None) -> list[Piece]:
        """Divide a sorted set into ranges of about the same number of members."""
        first = b"-inf" if low is None else repr(low).encode()
        number = await self._execute("ZCOUNT", key, first, "+inf")
        before = await self._execute("ZCARD", key) - number
        bounds = [first]
        for rank in range(KEYS_PER_PART, number, KEYS_PER_PART):
            found = await self._execute("ZRANGE", key, before + rank, before + rank, "WITHSCORES")
            if found and found[1] != bounds[-1]:
                bounds.append(found[1])
        bounds.append(b"+inf")
        return [ScoreRange(key, *pair) for pair in pairwise(bounds)] if number else []

    async def _divide_keyspace(self, most: int | None) -> list[Piece]:
        info = (await self._execute("INFO", "CLUSTER")).decode() + (
            await self._execute("INFO", "SERVER")
        ).decode()
        size = await self._execute("DBSIZE")
        if "cluster_enabled:1" in info or "dragonfly_version" in info:
            return [KeyspacePart()]  # their cursors have another meaning in these bits
        parts = min(
            most or MAX_PARTS,
            -(-size // (KEYS_PER_PART if most is None else 1)),
            size // MIN_KEYS_PER_PART,
        )
        of = 1 << max(0, parts.bit_length() - 1)
        return [KeyspacePart(number, of) for number in range(of)]

    async def jids(self, piece: Piece) -> AsyncIterator[Sequence[bytes]]:
        """Yield the jids of a piece by the page, each once."""
        match piece:
            case JidList(jids):
                yield list(jids)
            case KeyspacePart():
                async for page in self._scan_part(piece):
                    yield page
            case ScoreRange():
                async for page in self._read_range(piece):
                    yield page
            case FailureGroup(key):
                async for page in self._read_list(key):
                    yield page

    async def _scan_part(self, part: KeyspacePart) -> AsyncIterator[Sequence[bytes]]:
        first, end = part.number * (2**64 // part.of), (part.number + 1) * (2**64 // part.of)
        cursor, seen, skip = reverse_bits(first), set[bytes](), len(self.keys("job", b""))
        while True:
            at = cursor
            cursor, found = await self._scan(at)
            if cursor and reverse_bits(cursor) <= reverse_bits(at):
                raise AioqlessError(
                    "the cursors of this server's SCAN differ from those of Redis: give the option "
                    "partitions = 1"
                )
            reached = reverse_bits(cursor) if cursor else 2**64
            fresh = set(found) - seen
            if reached > end:
                fresh -= await self._scan_between(end, reached)
            seen |= fresh
            yield [key[skip:] for key in fresh]
            if reached >= end:
                return

    async def _scan_between(self, first: int, end: int) -> set[bytes]:
        """Return the keys of a page that belong to the next part: pages end anywhere."""
        keys: set[bytes] = set()
        while first < end:
            cursor, found = await self._scan(reverse_bits(first))
            keys.update(found)
            first = reverse_bits(cursor) if cursor else 2**64
        return keys

    async def _scan(self, cursor: int) -> tuple[int, list[bytes]]:
        pattern = re.sub(rb"([*?\[\]\\^])", rb"\\\1", self.keys("job", b"")) + b"*"
        after, found = await self._execute(
            "SCAN", cursor, "MATCH", pattern, "COUNT", PAGE, "TYPE", "hash"
        )
        return int(after), found

    async def _read_range(self, part: ScoreRange) -> AsyncIterator[Sequence[bytes]]:
        """Yield the members of a range by score.

        A page begins with the last score of the page before, which any number of members may have.
        """
        low, high = part.bounds
        at_low: set[bytes] = set()
        count = PAGE
        while True:
            flat = await self._execute(
                "ZRANGE", part.key, low, high, "BYSCORE", "LIMIT", 0, count, "WITHSCORES"
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

    async def _read_list(self, key: bytes) -> AsyncIterator[Sequence[bytes]]:
        """Yield the members of a list, the newest first.

        A page begins with the last member of the page before. If it doesn't, members were removed
        meanwhile, and reading continues one page earlier.
        """
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


def reverse_bits(number: int) -> int:
    """Return a 64-bit number with its bits in reverse order."""
    return int(f"{number:064b}"[::-1], 2)
