"""PartitionedStore: sends each command to the partitions that it concerns."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NoReturn

from aioqless.contrib.partitions.merging import MERGES
from aioqless.contrib.partitions.routing import partition_of, recurring_jid
from aioqless.errors import AioqlessError
from aioqless.store import Call, ScriptStore
from aioqless.store.call import T, encode
from aioqless.store.command_header import read_command

# What a namespace has once is in the first partition.
_FIRST_ONLY = ("order", "answer", "trail", "session", "incarnation")


class PartitionedStore(ScriptStore):
    """The commands of a partitioned namespace.

    A command about one job goes to the job's partition, one about several jobs or about a whole
    queue to all partitions that have some. Replies are merged.

    Args:
        stores: The stores of the partitions.
        clock: Clock of the commands; default: that of Redis.
    """

    def __init__(
        self, stores: Sequence[ScriptStore], *, clock: Callable[[], float] | None = None
    ) -> None:
        super().__init__(stores[0].connection, stores[0].namespace, clock=clock)
        self.stores = tuple(stores)
        self.namespaces = tuple(store.namespace for store in stores)

    async def send(self, call: Call[T]) -> T:
        """Send a call to the partitions that it concerns, and return the merged reply."""
        layout = _layout_of(call.command, _word(call))
        if layout.jid is not None:
            return await self._send_to_job(call, layout.jid)
        if layout.jids is not None and call.command != "declare":
            return await self._send_to_jobs(call, layout.jids)
        if call.command in _FIRST_ONLY:
            return await self._send_to(0, call)
        if merge := MERGES.get(layout.name):
            replies = await asyncio.gather(
                *(self._send_to(number, call) for number in range(len(self.stores)))
            )
            merged: T = merge(replies)
            return merged
        raise _refusal(layout.name)

    async def pipeline(self, calls: Sequence[Call[T]]) -> list[T | Exception]:
        """Send independent calls, and return their replies; a refusal is returned in its place."""
        replies = await asyncio.gather(*map(self.send, calls), return_exceptions=True)
        return [_raise_unless(Exception, reply) for reply in replies]

    async def aclose(self) -> None:
        """Close the connections."""
        for store in self.stores:
            await store.aclose()

    async def _send_to(self, number: int, call: Call[T]) -> T:
        store = self.stores[number]
        ours, theirs = len(self.namespace.encode()), store.namespace.encode()
        keys = [theirs + key[ours:] for key in call.keys]
        return await store.send(dataclasses.replace(call, send=store.send, keys=keys))

    async def _send_to_job(self, call: Call[T], index: int) -> T:
        jid = call.argv[index].decode("utf-8", "surrogateescape")
        if call.command == "recur":
            jid = recurring_jid(jid, len(self.stores))
            argv = [*call.argv[:index], encode(jid), *call.argv[index + 1 :]]
            call = dataclasses.replace(call, argv=argv)
        return await self._send_to(partition_of(jid, len(self.stores)), call)

    async def _send_to_jobs(self, call: Call[T], start: int) -> T:
        """Send to each partition the jids that are its own; order the replies by the jids."""
        end = call.argv.index(b"", start)
        jids = call.argv[start:end]
        own: dict[int, list[bytes]] = {}
        for jid in jids:
            text = jid.decode("utf-8", "surrogateescape")
            own.setdefault(partition_of(text, len(self.stores)), []).append(jid)
        replies: list[Any] = await asyncio.gather(
            *(
                self._send_to(
                    number,
                    dataclasses.replace(call, argv=[*call.argv[:start], *part, *call.argv[end:]]),
                )
                for number, part in own.items()
            )
        )
        merged: T = _in_order(call.command, jids, list(own.values()), replies)
        return merged


@dataclasses.dataclass(frozen=True)
class _Layout:
    """Where a command has its jids.

    Attributes:
        name: Name of the command and its word.
        jid: Index of the argument that is the jid.
        jids: Index of the first of its jids.
    """

    name: str
    jid: int | None
    jids: int | None


def _word(call: Call[Any]) -> bytes:
    command = read_command(call.command)
    return call.argv[len(command.lead.args)] if command.forms else b""


@cache
def _layout_of(name: str, word: bytes) -> _Layout:
    command = read_command(name)
    form = command.forms[word.decode()] if word else None
    names: list[str] = [arg.name for arg in command.lead.args]
    rest = command.lead.rest
    if form is not None:
        names += ["", *(arg.name for arg in form.args)]
        rest = form.rest
    return _Layout(
        f"{name}_{word.decode()}" if word else name,
        names.index("jid") if "jid" in names else None,
        len(names) if rest is not None and rest.name == "jids" else None,
    )


def _in_order(command: str, jids: list[bytes], parts: list[list[bytes]], replies: list[Any]) -> Any:
    """Merge the replies about the jobs of several partitions, in the order of the jids."""
    if command == "timeout":
        return None
    place = {jid.decode("utf-8", "surrogateescape"): number for number, jid in enumerate(jids)}
    if command == "states":
        states = {
            jid: state
            for part, reply in zip(parts, replies, strict=True)
            for jid, state in zip(part, reply, strict=True)
        }
        return [states[jid] for jid in jids]
    merged = [item for reply in replies for item in reply]
    return sorted(merged, key=lambda item: place[item if isinstance(item, str) else item["jid"]])


def _raise_unless(kind: type[Exception], reply: T | BaseException) -> T | Exception:
    if isinstance(reply, BaseException) and not isinstance(reply, kind):
        raise reply
    return reply


def _refusal(name: str) -> NoReturn:
    raise AioqlessError(
        f"{name} works on one partition at a time: call it on each of client.partitions"
    )
