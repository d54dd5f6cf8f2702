"""The archive's stream in Redis."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Final, TypeAlias

from aioqless.client import Client
from aioqless.store import Keys

PAGE = 1_000  # entries of a reply
Entry: TypeAlias = tuple[bytes, list[bytes]]
_FIRST_PAGE: Final = 100  # entries; further pages depend on the sizes of these
_PAGE_BYTES: Final = 4 * 2**20


def parse_id(id: str | bytes) -> tuple[int, int]:
    """Return a stream id as two integers, which compare as Redis orders entries."""
    ms, _, seq = (id.decode() if isinstance(id, bytes) else id).partition("-")
    return int(ms), int(seq or 0)


class EventLog:
    """The archive's stream of a client's namespace."""

    def __init__(self, client: Client) -> None:
        self.archive = client.archive
        self._execute = client.internals.store.connection.execute
        self._key = Keys(client.internals.store.namespace)("archive")

    async def read_page(self, after: str, until: str, count: int = PAGE) -> list[Entry]:
        """Return the first entries after one id, up to another."""
        found: list[Entry] = await self._execute(
            "XRANGE", self._key, f"({after}", until, "COUNT", count
        )
        return found

    async def read_pages(
        self, after: str, until: str, most: int | None = None
    ) -> AsyncIterator[list[Entry]]:
        """Yield the entries after one id, up to another, in pages of a few MB.

        Args:
            after: The one id.
            until: The other id.
            most: Maximum number of entries.
        """
        at, left, count = after, most, _FIRST_PAGE
        while left is None or left > 0:
            page = await self.read_page(at, until, count if left is None else min(count, left))
            if not page:
                return
            yield page
            at = page[-1][0].decode()
            left = None if left is None else left - len(page)
            count = max(1, min(PAGE, _PAGE_BYTES * len(page) // max(1, size_of(page))))

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


def size_of(page: Sequence[Entry]) -> int:
    """Return the number of bytes in the fields of entries."""
    return sum(sum(map(len, flat)) for _, flat in page)
