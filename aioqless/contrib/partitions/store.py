"""PartitionedStore: sends each command to the partitions that it concerns, and merges replies."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import msgspec
from redis import exceptions

from aioqless.client import REDIS_UNAVAILABLE
from aioqless.client.missing_nodes import MissingNode
from aioqless.contrib.partitions.merging import PAGES, SUMS, Merge
from aioqless.contrib.partitions.routing import check_together, keys_of, partition_of, recurring_jid
from aioqless.contrib.partitions.shared_config import find_differences, share_of, total_of
from aioqless.errors import AioqlessError
from aioqless.redis.address import name_node
from aioqless.redis.error_replies import SlotMigrating, SlotMoved
from aioqless.redis.nodes import NamespaceConnection
from aioqless.store import Call, ScriptStore
from aioqless.store.call import T, encode
from aioqless.store.command_header import read_command

MOST_PER_CALL = 1000  # items of a page

# What a namespace has once is in the first partition: orders to workers, the log of user actions,
# browser sessions, leases of workers' names.
_IN_FIRST = ("remote_control", "remote_reply", "audit_log", "session", "name_lease")
_WALKS = ("check", "find", "clear")
_TAKES = ("pop", "unfail", "revive_group")
_DEFAULT_COUNT = {"queues": MOST_PER_CALL, "queue_names": MOST_PER_CALL}
_STEP = 1 << 32  # between the offsets of two partitions


class PartitionedStore(ScriptStore):
    """The commands of a partitioned namespace.

    A command about one job goes to the partition of its jid, one about several jobs to theirs, and
    one about a queue or the namespace to all. Where a partition can't be reached the call fails,
    after the others have carried it out; within `partial_reads`, reads return what the others have.

    Owns the lists of missing nodes, one for each block of partial reads.

    Attributes:
        stores: The stores of the partitions.
    """

    def __init__(
        self, stores: Sequence[ScriptStore], *, clock: Callable[[], float] | None = None
    ) -> None:
        super().__init__(stores[0].connection, stores[0].namespace, clock=clock)
        self.stores = tuple(stores)
        self._missing: ContextVar[list[MissingNode] | None] = ContextVar("missing", default=None)

    @contextmanager
    def partial_reads(self) -> Iterator[list[MissingNode]]:
        """Let reads of several partitions return what can be reached; yield what is missing.

        A node that is missing once isn't asked again within the block, nor in one within it.
        """
        if (missing := self._missing.get()) is None:
            missing = []
        token = self._missing.set(missing)
        try:
            yield missing
        finally:
            self._missing.reset(token)

    async def send(self, call: Call[T]) -> T:
        """Send a call to the partitions that it concerns, and return the merged reply.

        Raises:
            AioqlessError: The command works on one partition at a time.
        """
        layout = _layout_of(call.command, _word(call))
        name = layout.name
        reply: Any
        if "jid" in layout.index:
            return await self._send_to_job(call, layout)
        if call.command in _IN_FIRST:
            return await self._send_to(0, call)
        if "jids" in layout.index and name != "declare_off":
            reply = await self._send_to_jobs(call, layout)
        elif call.command == "config":
            reply = await self._send_config(call, layout)
        elif name in PAGES and layout.is_page(call):
            reply = await self._read_page(call, layout, PAGES[name])
        elif name in SUMS:
            reply = await self._send_to_all(call, layout, SUMS[name])
        elif name in _WALKS:
            reply = await self._walk(call, layout)
        elif name in _TAKES:
            reply = await self._take(call, layout)
        else:
            raise AioqlessError(
                f"{name} works on one partition at a time: use one of client.partitions"
            )
        merged: T = reply
        return merged

    async def pipeline(self, calls: Sequence[Call[T]]) -> list[T | Exception]:
        """Send independent calls, and return their replies; a refusal is returned in its place."""
        replies: list[T | Exception] = []
        for reply in await asyncio.gather(*map(self.send, calls), return_exceptions=True):
            if isinstance(reply, BaseException) and not isinstance(reply, Exception):
                raise reply
            replies.append(reply)
        return replies

    async def now(self) -> float:
        """Return the time of the clock that commands go by, in seconds since 1970."""
        return await self._read_any(lambda number: self.stores[number].now())

    def first_reachable(self) -> ScriptStore:
        """Return the store of the first partition that isn't known to be missing."""
        away = self._away()
        return next(each for number, each in enumerate(self.stores) if number not in away)

    async def aclose(self) -> None:
        """Close the connections."""
        for store in self.stores:
            await store.aclose()

    async def _send_to(self, number: int, call: Call[T], argv: list[bytes] | None = None) -> T:
        store = self.stores[number]
        ours, theirs = len(self.namespace.encode()), store.namespace.encode()
        keys = [theirs + key[ours:] for key in call.keys]
        argv = call.argv if argv is None else argv
        return await store.send(replace(call, send=store.send, keys=keys, argv=argv))

    async def _send_to_job(self, call: Call[T], layout: _Layout) -> T:
        jid, argv = layout.text(call, "jid"), None
        if call.command == "recur":
            jid = recurring_jid(jid, len(self.stores))
            argv = layout.with_values(call, jid=jid)
        check_together(jid, layout.names_together(call), len(self.stores))
        return await self._send_to(partition_of(jid, len(self.stores)), call, argv)

    async def _send_to_jobs(self, call: Call[T], layout: _Layout) -> Any:
        """Send to each partition the jids that are its own; order the replies by the jids."""
        jids = layout.texts(call, "jids")
        start = layout.index["jids"]
        end = start + len(jids)
        own: dict[int, list[str]] = {}
        for jid in jids:
            own.setdefault(partition_of(jid, len(self.stores)), []).append(jid)
        replies: list[Any] = await _gather(
            self._send_to(number, call, [*call.argv[:start], *map(encode, part), *call.argv[end:]])
            for number, part in own.items()
        )
        if call.command == "timeout":
            return None
        if call.command == "states":
            states = dict(zip(_flatten(own.values()), _flatten(replies), strict=True))
            return [states[jid] for jid in jids]
        rank = {jid: number for number, jid in enumerate(jids)}
        return sorted(
            _flatten(replies),
            key=lambda item: rank[item if isinstance(item, str) else item["jid"]],
        )

    async def _send_to_all(self, call: Call[Any], layout: _Layout, merge: Merge) -> Any:
        if layout.name == "workers" and layout.text(call, "worker"):
            merge = SUMS["track_list"]
        merged = merge(await self._ask_all(call, lambda number: self._send_to(number, call)))
        if layout.name == "working":
            for worker in merged:
                del worker["doing"][layout.number(call, "most") :]
        return merged

    async def _read_page(self, call: Call[Any], layout: _Layout, merge: Merge) -> Any:
        """Return a page of what all partitions have, in the merged order."""
        offset = layout.number(call, layout.offset)
        end = offset + layout.number(call, layout.count, _DEFAULT_COUNT.get(call.command, 25))
        everything = call.command == "queues"  # the counts of one are in many places
        replies = await self._ask_all(
            call, lambda number: self._read_first(number, call, layout, None if everything else end)
        )
        merged = merge([items for items, _ in replies])[offset:end]
        if all(total is None for _, total in replies):
            return merged
        return {"total": sum(total for _, total in replies), "jobs": merged}

    async def _read_first(
        self, number: int, call: Call[Any], layout: _Layout, count: int | None
    ) -> tuple[list[Any], int | None]:
        """Read the first items of a partition, or all; return them, and their total if it says."""
        items: list[Any] = []
        while True:
            wanted = MOST_PER_CALL if count is None else min(MOST_PER_CALL, count - len(items))
            argv = layout.with_values(
                call, **{layout.offset: len(items), layout.count: max(0, wanted)}
            )
            page = await self._send_to(number, call, argv)
            total = page["total"] if isinstance(page, Mapping) else None
            page = page["jobs"] if isinstance(page, Mapping) else page
            items += page
            if len(page) < MOST_PER_CALL:
                return items, total

    async def _walk(self, call: Call[Any], layout: _Layout) -> Any:
        """Send to one partition after the other; the cursor says how far the caller is."""
        name = layout.offset
        if name == "cursor":
            number, _, cursor = (layout.text(call, name) or "0").partition(":")
            at, cursor = int(number), cursor or "0"
        else:
            at, place = divmod(layout.number(call, name), _STEP)
            cursor = str(place)
        is_last = at + 1 == len(self.stores)
        argv = layout.with_values(call, **{name: cursor})
        if call.command == "check":
            reply = await self._check(at, call, argv)
            if is_last and reply[name] == "0" and 0 not in (away := self._away()):
                present = {n: each for n, each in enumerate(self.stores) if n not in away}
                resolve = layout.text(call, "resolve") == "resolve"
                reply["found"] += await find_differences(present, resolve=resolve)
        else:
            reply = await self._send_to(at, call, argv)
        if name == "cursor":
            if reply[name] != "0":
                reply[name] = f"{at}:{reply[name]}"
            elif not is_last:
                reply[name] = f"{at + 1}:0"
        elif reply[name] is not None:
            reply[name] += at * _STEP
        elif not is_last:
            reply[name] = (at + 1) * _STEP
        return reply

    async def _check(self, at: int, call: Call[Any], argv: list[bytes]) -> Any:
        """Check a part of one partition; nothing of one that is missing."""
        away, node = self._away(), self._node_of(at)
        if at not in away and node and (known := self._missing.get()):
            for each in known:
                if each.node == node:  # asking it for each of its partitions would take long
                    self._add_missing(at, exceptions.ConnectionError(each.error))
                    away = self._away()
        try:
            if at not in away:
                reply = await self._send_to(at, call, argv)
                return reply | {"found": [each | {"partition": at} for each in reply["found"]]}
        except REDIS_UNAVAILABLE as error:
            self._add_missing(at, error)
        return {"found": [], "examined": 0, "cursor": "0"}

    async def _take(self, call: Call[Any], layout: _Layout) -> Any:
        """Ask one partition after the other, from any of them on, until there are enough."""
        wanted = layout.number(call, "count", 25)
        replies: list[Any] = []
        order = list(range(len(self.stores)))
        random.shuffle(order)
        for number in order:
            if wanted <= 0:
                break
            reply = await self._send_to(number, call, layout.with_values(call, count=wanted))
            replies.append(reply)
            wanted -= len(reply) if isinstance(reply, list) else reply
        return _flatten(replies) if call.command == "pop" else sum(replies)

    async def _send_config(self, call: Call[Any], layout: _Layout) -> Any:
        """Read options of the first partition; change them there first, then in all others."""
        option, count = layout.text(call, "option"), len(self.stores)
        if layout.name == "config_get":
            value = await self._read_any(lambda number: self._send_to(number, call))
            if option:
                return total_of(option, value, count)
            return {name: total_of(name, each, count) for name, each in value.items()}
        argv = call.argv
        if layout.name == "config_set":
            share = share_of(option, layout.text(call, "value"), count)
            argv = layout.with_values(call, value=share)
        await self._send_to(0, call, argv)
        await _gather(self._send_to(number, call, argv) for number in range(1, count))
        return None

    async def _ask_all(self, call: Call[Any], ask: Callable[[int], Awaitable[T]]) -> list[T]:
        """Ask all partitions; partial reads skip the missing ones.

        Raises:
            redis.exceptions.RedisError: A partition can't be reached; none, of partial reads.
        """
        away = set() if call.writes else self._away()
        asked = [number for number in range(len(self.stores)) if number not in away]
        replies = await asyncio.gather(*map(ask, asked), return_exceptions=True)
        found: list[T] = []
        for number, reply in zip(asked, replies, strict=True):
            if not isinstance(reply, BaseException):
                found.append(reply)
            elif call.writes or not isinstance(reply, REDIS_UNAVAILABLE):
                raise reply
            else:
                self._add_missing(number, reply)
        return found

    async def _read_any(self, read: Callable[[int], Awaitable[T]]) -> T:
        """Read what all partitions have alike from the first one that isn't missing."""
        while True:
            number = self.stores.index(self.first_reachable())
            try:
                return await read(number)
            except REDIS_UNAVAILABLE as error:
                self._add_missing(number, error)

    def _away(self) -> set[int]:
        """Return the partitions that partial reads do without."""
        return {number for each in self._missing.get() or () for number in each.partitions}

    def _add_missing(self, number: int, error: Exception) -> None:
        """Note that a partition is missing.

        Raises:
            redis.exceptions.RedisError: The error, unless it is one of a partial read for which
                other partitions are left.
        """
        missing = self._missing.get()
        others_left = len(self._away() | {number}) < len(self.stores)
        if missing is None or not others_left or isinstance(error, exceptions.AuthenticationError):
            raise error
        is_slot = isinstance(error, SlotMoved | SlotMigrating)
        node = None if is_slot else self._node_of(number)
        for index, each in enumerate(missing):
            if each.node == node and (node or each.error == str(error)):
                missing[index] = replace(each, partitions=(*each.partitions, number))
                return
        missing.append(MissingNode(node, (number,), str(error)))

    def _node_of(self, number: int) -> str | None:
        connection = self.stores[number].connection
        if isinstance(connection, NamespaceConnection) and connection.endpoint:
            return name_node(connection.endpoint)
        return None


@dataclass(frozen=True)
class _Layout:
    """Where a command has its arguments.

    Attributes:
        name: Name of the command and its word.
        index: Index of each argument; of several jids, that of the first.
        options: Index of the first option, where no list comes before.
    """

    name: str
    index: Mapping[str, int]
    options: int

    @property
    def offset(self) -> str:
        """Name of the argument that says where a page begins."""
        return next(name for name in ("offset", "start", "cursor") if name in self.index)

    @property
    def count(self) -> str:
        """Name of the argument that says how long a page is."""
        return next(name for name in ("count", "limit") if name in self.index)

    def is_page(self, call: Call[Any]) -> bool:
        """Return whether a call wants a page; without a group, `failed` counts all groups."""
        match self.name:
            case "failed":
                return bool(self.text(call, "group"))
            case "queues":
                return not self.text(call, "queue")
        return True

    def text(self, call: Call[Any], name: str) -> str:
        """Return an argument, empty if it is left out."""
        return call.argv[self.index[name]].decode("utf-8", "surrogateescape")

    def number(self, call: Call[Any], name: str, default: int = 0) -> int:
        """Return an argument that is an integer."""
        text = self.text(call, name)
        return int(text) if text else default

    def names_together(self, call: Call[Any]) -> list[str]:
        """Return the keys, and the jids to depend on, that must share the partition of a job."""
        names: list[str] = []
        if self.name == "depends_on":
            names += self.texts(call, "jids")
        elif self.name in ("complete", "recur_on", "recur_cron"):
            given = call.argv[self.options :]
            options = dict(zip(given[::2], given[1::2], strict=True))
            names += msgspec.json.decode(options.get(b"depends", b"[]"))
            names += keys_of(options.get(b"constraints"))
        return names

    def texts(self, call: Call[Any], name: str) -> list[str]:
        """Return a list of arguments."""
        start = self.index[name]
        end = call.argv.index(b"", start)
        return [each.decode("utf-8", "surrogateescape") for each in call.argv[start:end]]

    def with_values(self, call: Call[Any], **values: str | int) -> list[bytes]:
        """Return the arguments of a call with some replaced."""
        argv = list(call.argv)
        for name, value in values.items():
            argv[self.index[name]] = encode(value)
        return argv


def _word(call: Call[Any]) -> bytes:
    command = read_command(call.command)
    return call.argv[len(command.lead.args)] if command.forms else b""


@cache
def _layout_of(name: str, word: bytes) -> _Layout:
    command = read_command(name)
    names = [arg.name for arg in command.lead.args]
    rest = command.lead.rest
    if word:
        form = command.forms[word.decode()]
        names += ["", *(arg.name for arg in form.args)]
        rest = form.rest
    options = len(names)
    if rest is not None:
        names.append(rest.name)
    index = {each: number for number, each in enumerate(names) if each}
    return _Layout(f"{name}_{word.decode()}" if word else name, index, options)


async def _gather(calls: Any) -> list[Any]:
    """Await all calls, and return their replies; raise the first error after all have ended."""
    replies = await asyncio.gather(*calls, return_exceptions=True)
    for reply in replies:
        if isinstance(reply, BaseException):
            raise reply
    return replies


def _flatten(lists: Any) -> list[Any]:
    return [item for each in lists for item in each]
