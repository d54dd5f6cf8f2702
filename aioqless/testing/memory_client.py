"""A client without Redis, which keeps what is put."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from aioqless.client import Client
from aioqless.client.access import RedisAccess
from aioqless.client.codec import PlainCodec
from aioqless.errors import AioqlessError
from aioqless.redis.connection import CommandConnection
from aioqless.store import Call, ScriptStore
from aioqless.store.call import T, encode

_JOB = ("queue", "jid", "klass", "data", "request", "now", "worker")


@dataclass(frozen=True)
class PutJob:
    """A job that was put.

    Attributes:
        klass: Its klass; `handler.klass` of a handler's job.
        data: Its data.
        queue: Its queue.
        options: The options it was put with, as put calls them, times in seconds; its uniqueness
            and limits are `constraints`, as Redis has them.
        jid: Its jid.
    """

    klass: str
    data: Any
    queue: str
    options: dict[str, Any]
    jid: str


class MemoryClient(Client):
    """A client without Redis, for tests of code that puts jobs: `put_jobs` returns what was put.

    It checks jobs as any client does. Puts are all it can do: it knows no unique keys, jobs that
    exist, or full queues. Whatever else would need Redis raises AioqlessError.
    """

    def __init__(self) -> None:
        """Make a client; it may put when it is entered."""
        self.puts: list[PutJob] = []
        access = _MemoryAccess(self.puts.append)
        super().__init__(codec=PlainCodec(), access=access)


class _MemoryAccess(RedisAccess):
    """Reaches no Redis."""

    def __init__(self, keep: Callable[[PutJob], object]) -> None:
        super().__init__("redis://memory.invalid", "ql", "memory")
        self._keep = keep

    def make_store(self) -> ScriptStore:
        """Return a store of memory."""
        return _MemoryStore(self.connect(self.name, self.timeout), self.namespace, self._keep)


class _MemoryStore(ScriptStore):
    """Keeps the jobs that are put, and refuses every other command."""

    def __init__(
        self, connection: CommandConnection, namespace: str, keep: Callable[[PutJob], object]
    ) -> None:
        super().__init__(connection, namespace)
        self._keep = keep

    def put(self, *, queue: str, **row: Any) -> Call[str]:
        """Keep it."""
        return self._answer("put", [(queue, row)], row["jid"])

    def put_many(self, *, queue: str, batch: Sequence[Any], **_: Any) -> Call[Any]:
        """Keep them."""
        return self._answer("put_many", [(queue, row) for row in batch], _jids(batch))

    def put_flow(self, *, batch: Sequence[Any], **_: Any) -> Call[list[str]]:
        """Keep them."""
        return self._answer("put_flow", [(row["queue"], row) for row in batch], _jids(batch))

    async def send(self, call: Call[T]) -> T:
        """Refuse it."""
        raise AioqlessError(
            f"a MemoryClient can't run {call.command}, which needs Redis: use a client of the "
            "fixture aioqless_client"
        )

    def _answer(
        self, command: str, rows: Sequence[tuple[str, Mapping[str, Any]]], reply: T
    ) -> Call[T]:
        async def keep(_: Call[T]) -> T:
            for queue, row in rows:
                self._keep(_put_job(queue, row))
            return reply

        return Call(keep, command, lambda _: reply, [], [])


def _jids(batch: Sequence[Mapping[str, Any]]) -> list[str]:
    return [row["jid"] for row in batch]


def _put_job(queue: str, row: Mapping[str, Any]) -> PutJob:
    options = {name: value for name, value in row.items() if name not in _JOB and value is not None}
    if context := options.get("context"):
        options["context"] = msgspec.json.decode(context)
    if encoded := options.pop("constraints", None):
        options["constraints"] = msgspec.json.decode(encoded)
    data = msgspec.json.decode(encode(row["data"]))
    return PutJob(row["klass"], data, queue, options, row["jid"])
