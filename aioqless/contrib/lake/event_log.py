"""The archive's stream in Redis."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from redis import exceptions

from aioqless.client import Client
from aioqless.errors import AioqlessError
from aioqless.store import Keys

PAGE = 1_000  # entries of a reply
Entry: TypeAlias = tuple[bytes, list[bytes]]


@dataclass(frozen=True)
class StreamState:
    """The number of the stream's first entry, 1 for the first ever, and the id of its last one.

    The last entry may be deleted.
    """

    first: int = 1
    last: str = "0-0"


def parse_id(id: str | bytes) -> tuple[int, int]:
    """Return a stream id as two integers, which compare as Redis orders entries."""
    ms, _, seq = (id.decode() if isinstance(id, bytes) else id).partition("-")
    return int(ms), int(seq or 0)


class EventLog:
    """The archive's stream of a client's namespace."""

    def __init__(self, client: Client) -> None:
        self._execute = client.internals.store.connection.execute
        self._key = Keys(client.internals.store.namespace)("archive")

    async def state(self) -> StreamState:
        """Return where the stream begins and ends."""
        try:
            flat = await self._execute("XINFO", "STREAM", self._key)
        except exceptions.ResponseError as error:
            if "no such key" in str(error):
                return StreamState()
            raise
        info = dict(zip(flat[::2], flat[1::2], strict=True))
        if b"entries-added" not in info:
            raise AioqlessError(
                "this server doesn't count the entries of a stream: Redis 7.0 or Valkey is needed"
            )
        first = info[b"entries-added"] - info[b"length"] + 1
        return StreamState(first, info[b"last-generated-id"].decode())

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
