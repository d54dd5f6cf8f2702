"""Lists the jids of a namespace, in parts of the keyspace that tasks read in parallel.

The cursor of SCAN counts the buckets of Redis' hash table with its bits reversed. So keys whose
hash ends in the same bits are adjacent, whatever the size of the table, and a range of cursors is a
part of the keyspace. A key that exists during the whole scan is found, wherever its job moves.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field

from aioqless.client import Client
from aioqless.errors import AioqlessError
from aioqless.store import Keys

PAGE = 2_000
KEYS_PER_PART = 50_000
MAX_PARTS = 256
MIN_KEYS_PER_PART = 1_024  # Redis' table must never have fewer buckets than there are parts


@dataclass(frozen=True)
class KeyspacePart:
    """Part `number`, from 0, of `of` equal parts of the keyspace."""

    number: int = 0
    of: int = 1


@dataclass
class JobScanner:
    """Lists the jids of a client's namespace."""

    client: Client
    keys: Keys = field(init=False)

    def __post_init__(self) -> None:
        self.keys = Keys(self.client.internals.store.namespace)
        self._execute = self.client.internals.store.connection.execute

    async def divide(self, most: int | None = None) -> list[KeyspacePart]:
        """Return parts of the keyspace, at most `most`."""
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

    async def jids(self, part: KeyspacePart) -> AsyncIterator[Sequence[bytes]]:
        """Yield the jids of a part by the page, each once."""
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


def reverse_bits(number: int) -> int:
    """Return a 64-bit number with its bits in reverse order."""
    return int(f"{number:064b}"[::-1], 2)
