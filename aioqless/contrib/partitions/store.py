"""PartitionedStore: routes each command to the partitions that it concerns, and merges replies."""

from __future__ import annotations

import asyncio
import inspect
import random
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import replace
from typing import Any, TypeAlias

from redis import exceptions

from aioqless.client import REDIS_UNAVAILABLE, CommandConnection
from aioqless.client.missing_nodes import MissingNode
from aioqless.contrib.partitions.merging import PAGES, SUMS, Merge
from aioqless.contrib.partitions.nodes import NamespaceConnection
from aioqless.contrib.partitions.routing import check_together, keys_of, partition_of, recurring_jid
from aioqless.contrib.partitions.shared_config import find_differences, share_of, total_of
from aioqless.errors import AioqlessError
from aioqless.redis import SlotMigrating, SlotMoved, name_node
from aioqless.store import Call, ScriptStore, Store
from aioqless.store.call import T, encode, read_nothing, read_text

Named: TypeAlias = dict[str, Any]  # the arguments of a command

MOST_PER_CALL = 1000  # items of a page

# What a namespace has once is in the first partition: remote commands to workers and their
# answers, leases of workers' names; of extensions the log of user actions and browser sessions.
_IN_FIRST = ("remote_", "name_lease_")
_EXTENSIONS_IN_FIRST = ("audit_log", "session")
_EXTENSIONS_OF_JOBS = ("output", "signal", "steps")  # whose first argument is a jid
_WALKS = ("check", "find", "clear")
_TAKES = ("pop", "unfail", "revive_group")
_DEFAULT_COUNT = {"queues": MOST_PER_CALL, "queue_names": MOST_PER_CALL}
_STEP = 1 << 32  # between the offsets of two partitions

_PARAMETERS = {
    name: inspect.signature(method).parameters.keys() - {"self"}
    for name, method in vars(Store).items()
    if inspect.isfunction(method) and not getattr(method, "__isabstractmethod__", False)
}


class PartitionedStore(Store):
    """The commands of a partitioned namespace, each routed by the names of its arguments.

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
        self.stores = tuple(stores)
        self.namespace = stores[0].namespace
        self.connection: CommandConnection = stores[0].connection
        self.clock = clock
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
        """Send a command of an extension, to the partition of its job or to the first one.

        Raises:
            AioqlessError: The command works on one partition at a time.
        """
        if call.command in _EXTENSIONS_OF_JOBS:
            own = self.stores[partition_of(read_text(call.argv[0]), len(self.stores))]
            return await own.send(replace(call, keys=[encode(own.namespace)]))
        if call.command not in _EXTENSIONS_IN_FIRST:
            raise _works_on_one(call.command)
        return await self.stores[0].send(call)

    async def route(self, name: str, given: Named) -> Any:
        """Send a command to the partitions that it concerns, and return the merged reply.

        Args:
            name: Name of the command's method.
            given: Its arguments.

        Raises:
            AioqlessError: The command works on one partition at a time.
        """
        reply: Any
        if "jid" in given:
            reply = await self._send_to_job(name, given)
        elif name.startswith(_IN_FIRST):
            reply = await self._send_to(0, name, given)
        elif "jids" in _PARAMETERS[name] and name != "declare_off":
            reply = await self._send_to_jobs(name, given)
        elif name.startswith("config_"):
            reply = await self._send_config(name, given)
        elif name in PAGES and _is_page(name, given):
            reply = await self._read_page(name, given, PAGES[name])
        elif name in SUMS:
            reply = await self._send_to_all(name, given, SUMS[name])
        elif name in _WALKS:
            reply = await self._walk(name, given)
        elif name in _TAKES:
            reply = await self._take(name, given)
        else:
            raise _works_on_one(name)
        return reply

    async def pipeline(self, calls: Sequence[Call[T]]) -> list[T | Exception]:
        """Send independent calls, and return their replies; a refusal is returned in its place."""
        replies: list[T | Exception] = []
        for reply in await asyncio.gather(*calls, return_exceptions=True):
            if isinstance(reply, BaseException) and not isinstance(reply, Exception):
                raise reply
            replies.append(reply)
        return replies

    def request(self) -> AbstractContextManager[str]:
        """Reserve a request id for one call that may have to be sent several times."""
        return self.stores[0].request()

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

    async def _send_to(self, number: int, name: str, given: Named) -> Any:
        return await getattr(self.stores[number], name)(**given)

    async def _send_to_job(self, name: str, given: Named) -> Any:
        if name.startswith("recur_"):
            given = given | {"jid": recurring_jid(given["jid"], len(self.stores))}
        # The keys, and the jids to depend on, must share the partition of the job.
        together = [*keys_of(given.get("constraints")), *(given.get("depends") or ())]
        if name == "depends_on":
            together += given.get("jids", ())
        check_together(given["jid"], together, len(self.stores))
        return await self._send_to(partition_of(given["jid"], len(self.stores)), name, given)

    async def _send_to_jobs(self, name: str, given: Named) -> Any:
        """Send to each partition the jids that are its own; order the replies by the jids."""
        jids: Sequence[str] = given.get("jids", ())
        own: dict[int, list[str]] = {}
        for jid in jids:
            own.setdefault(partition_of(jid, len(self.stores)), []).append(jid)
        replies: list[Any] = await _gather(
            self._send_to(number, name, given | {"jids": part}) for number, part in own.items()
        )
        if name == "timeout":
            return None
        if name == "states":
            states = dict(zip(_flatten(own.values()), _flatten(replies), strict=True))
            return [states[jid] for jid in jids]
        rank = {jid: number for number, jid in enumerate(jids)}
        return sorted(
            _flatten(replies),
            key=lambda item: rank[item if isinstance(item, str) else item["jid"]],
        )

    async def _send_to_all(self, name: str, given: Named, merge: Merge) -> Any:
        if name == "workers" and given.get("worker"):
            merge = SUMS["track_list"]
        replies = await self._ask_all(
            lambda number: self._send_to(number, name, given), writes=self._writes(name, given)
        )
        merged = merge(replies)
        if name == "working":
            for worker in merged:
                del worker["doing"][given["most"] :]
        return merged

    async def _read_page(self, name: str, given: Named, merge: Merge) -> Any:
        """Return a page of what all partitions have, in the merged order."""
        offset = given.get("offset") or 0
        count = given.get("count")
        end = offset + (_DEFAULT_COUNT.get(name, 25) if count is None else count)
        most = None if name == "queues" else end  # the counts of one queue are in many places
        replies = await self._ask_all(
            lambda number: self._read_first(number, name, given, most),
            writes=self._writes(name, given),
        )
        merged = merge([items for items, _ in replies])[offset:end]
        if all(total is None for _, total in replies):
            return merged
        return {"total": sum(total for _, total in replies), "jobs": merged}

    async def _read_first(
        self, number: int, name: str, given: Named, count: int | None
    ) -> tuple[list[Any], Any]:
        """Read the first items of a partition, or all; return them, and their total if it says."""
        items: list[Any] = []
        while True:
            wanted = MOST_PER_CALL if count is None else min(MOST_PER_CALL, count - len(items))
            asked = {"offset": len(items), "count": max(0, wanted)}
            page = await self._send_to(number, name, given | asked)
            total = page["total"] if isinstance(page, Mapping) else None
            page = page["jobs"] if isinstance(page, Mapping) else page
            items += page
            if len(page) < MOST_PER_CALL:
                return items, total

    async def _walk(self, name: str, given: Named) -> Any:
        """Send to one partition after the other; the cursor says how far the caller is."""
        where = "offset" if name == "clear" else "cursor"
        if where == "cursor":
            number, _, cursor = str(given.get(where) or "0").partition(":")
            at, given = int(number), given | {where: cursor or "0"}
        else:
            at, offset = divmod(given[where], _STEP)
            given = given | {where: offset}
        is_last = at + 1 == len(self.stores)
        if name == "check":
            reply = await self._check(at, given)
            if is_last and reply[where] == "0" and 0 not in (away := self._away()):
                present = {n: each for n, each in enumerate(self.stores) if n not in away}
                resolve = given.get("resolve") == "resolve"
                reply["found"] += await find_differences(present, resolve=resolve)
        else:
            reply = await self._send_to(at, name, given)
        if where == "cursor":
            if reply[where] != "0":
                reply[where] = f"{at}:{reply[where]}"
            elif not is_last:
                reply[where] = f"{at + 1}:0"
        elif reply[where] is not None:
            reply[where] += at * _STEP
        elif not is_last:
            reply[where] = (at + 1) * _STEP
        return reply

    async def _check(self, at: int, given: Named) -> Any:
        """Check a part of one partition; nothing of one that is missing."""
        away, node = self._away(), self._node_of(at)
        if at not in away and node and (known := self._missing.get()):
            for each in known:
                if each.node == node:  # asking it for each of its partitions would take long
                    self._add_missing(at, exceptions.ConnectionError(each.error))
                    away = self._away()
        try:
            if at not in away:
                reply = await self._send_to(at, "check", given)
                return reply | {"found": [each | {"partition": at} for each in reply["found"]]}
        except REDIS_UNAVAILABLE as error:
            self._add_missing(at, error)
        return {"found": [], "examined": 0, "cursor": "0"}

    async def _take(self, name: str, given: Named) -> Any:
        """Ask one partition after the other, from any of them on, until there are enough."""
        wanted: int = 25 if given.get("count") is None else given["count"]
        replies: list[Any] = []
        for number in random.sample(range(len(self.stores)), len(self.stores)):
            if wanted <= 0:
                break
            reply = await self._send_to(number, name, given | {"count": wanted})
            replies.append(reply)
            wanted -= len(reply) if isinstance(reply, list) else reply
        return _flatten(replies) if name == "pop" else sum(replies)

    async def _send_config(self, name: str, given: Named) -> Any:
        """Read options of the first partition; change them there first, then in all others."""
        option, count = given.get("option"), len(self.stores)
        if name == "config_get":
            value = await self._read_any(lambda number: self._send_to(number, name, given))
            if option:
                return total_of(option, value, count)
            return {each: total_of(each, share, count) for each, share in value.items()}
        if name == "config_set":
            given = given | {"value": share_of(given["option"], str(given["value"]), count)}
        await self._send_to(0, name, given)
        await _gather(self._send_to(number, name, given) for number in range(1, count))
        return None

    def _writes(self, name: str, given: Named) -> bool:
        call: Call = getattr(self.stores[0], name)(**given)
        return call.writes

    async def _ask_all(self, ask: Callable[[int], Awaitable[T]], *, writes: bool) -> list[T]:
        """Ask all partitions; partial reads skip the missing ones.

        Raises:
            redis.exceptions.RedisError: A partition can't be reached; none, of partial reads.
        """
        away = set[int]() if writes else self._away()
        asked = [number for number in range(len(self.stores)) if number not in away]
        replies = await asyncio.gather(*map(ask, asked), return_exceptions=True)
        found: list[T] = []
        for number, reply in zip(asked, replies, strict=True):
            if not isinstance(reply, BaseException):
                found.append(reply)
            elif writes or not isinstance(reply, REDIS_UNAVAILABLE):
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


def _routed(name: str) -> Callable[..., Call]:
    """Return the method of a command that a partitioned store routes."""

    def method(self: PartitionedStore, **given: Any) -> Call:
        return Call(lambda _: self.route(name, given), name, read_nothing, [], [])

    return method


for _name in _PARAMETERS:
    setattr(PartitionedStore, _name, _routed(_name))


def _works_on_one(name: str) -> AioqlessError:
    return AioqlessError(f"{name} works on one partition at a time: use one of client.partitions")


def _is_page(name: str, given: Named) -> bool:
    """Return whether a call wants a page; without a group, `failed` counts all groups."""
    match name:
        case "failed":
            return bool(given.get("group"))
        case "queues":
            return not given.get("queue")
    return True


async def _gather(calls: Any) -> list[Any]:
    """Await all calls, and return their replies; raise the first error after all have ended."""
    replies = await asyncio.gather(*calls, return_exceptions=True)
    for reply in replies:
        if isinstance(reply, BaseException):
            raise reply
    return replies


def _flatten(lists: Any) -> list[Any]:
    return [item for each in lists for item in each]
