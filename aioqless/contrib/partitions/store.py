"""PartitionedStore: routes each command to the partitions that it concerns, and merges replies."""

from __future__ import annotations

import asyncio
import inspect
import math
import random
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any, TypeAlias, cast

from redis import exceptions

from aioqless.client import REDIS_UNAVAILABLE, CommandConnection
from aioqless.client.missing_nodes import MissingNode
from aioqless.contrib.partitions.merging import METRICS, PAGES, SUMS, Merge, add
from aioqless.contrib.partitions.nodes import node_of
from aioqless.contrib.partitions.routing import (
    common_partition,
    keys_of,
    keys_of_data,
    partition_of,
    recurring_jid,
)
from aioqless.contrib.partitions.shared_config import share_of, total_of
from aioqless.errors import AioqlessError
from aioqless.redis import SlotMigrating, SlotMoved
from aioqless.store import Call, ScriptStore, Store
from aioqless.store.call import T, encode, read_nothing, read_text

Named: TypeAlias = dict[str, Any]  # the arguments of a command

MOST_PER_CALL = 1000  # items of a page

# What a namespace has once is in the first partition: remote commands to workers and their
# answers; of extensions the log of user actions, deploy marks.
_IN_FIRST = "remote_"
_EXTENSIONS_IN_FIRST = ("audit_log", "mark")
_EXTENSIONS_OF_JOBS = ("emit_end", "output", "signal", "steps")  # whose first argument is a jid
_DEFAULT_COUNT = {"queues": MOST_PER_CALL, "queue_names": MOST_PER_CALL}
_STEP = 1 << 32  # between the offsets of two partitions

_PARAMETERS = {
    name: inspect.signature(method).parameters.keys() - {"self"}
    for name, method in vars(Store).items()
    if inspect.isfunction(method) and not getattr(method, "__isabstractmethod__", False)
}
_OF_JOBS = {name for name, given in _PARAMETERS.items() if "jids" in given} - {"declare_off"}


class PartitionedStore(Store):
    """The commands of a partitioned namespace, each routed by the names of its arguments.

    A command about one job goes to the partition of its jid, one about several jobs to theirs, and
    one about a queue or the namespace to all. Where a partition can't be reached the call fails,
    after the others have carried it out; within `partial_reads`, reads return what the others have.

    Owns the lists of missing nodes, one for each block of partial reads.
    """

    def __init__(
        self, stores: Sequence[ScriptStore], *, clock: Callable[[], float] | None = None
    ) -> None:
        self.stores = tuple(stores)
        self.namespace = stores[0].namespace
        self.clock = clock
        self._missing: ContextVar[list[MissingNode] | None] = ContextVar("missing", default=None)

    @property
    def connection(self) -> CommandConnection:
        """The connection to the first partition that isn't known to be missing."""
        return next(iter(self.present().values())).connection

    @contextmanager
    def partial_reads(self) -> Iterator[list[MissingNode]]:
        """Let reads of several partitions return what can be reached; yield what is missing."""
        if (missing := self._missing.get()) is None:
            missing = []
        token = self._missing.set(missing)
        try:
            yield missing
        finally:
            self._missing.reset(token)

    async def send(self, call: Call[T]) -> T:
        """Send a command of an extension, to the partition of its job or to the first one.

        What workers have counted is in any of them: one of a worker's beats carries it.

        Raises:
            AioqlessError: The command works on one partition at a time.
        """
        if call.command in _EXTENSIONS_OF_JOBS:
            return await self._send_own(
                call, partition_of(read_text(call.argv[0]), len(self.stores))
            )
        if call.command == "metrics":
            merge = METRICS[read_text(call.argv[0])]
            ask = partial(self._send_own, call)
            return cast(T, merge(await self.ask(ask, range(len(self.stores)), partly=True)))
        if call.command not in _EXTENSIONS_IN_FIRST:
            raise _works_on_one(call.command)
        return await self.stores[0].send(call)

    async def _send_own(self, call: Call[T], number: int) -> T:
        own = self.stores[number]
        return await own.send(replace(call, keys=[encode(own.namespace)]))

    async def route(self, name: str, given: Named) -> Any:
        """Send a command to the partitions that it concerns, and return the merged reply.

        Raises:
            AioqlessError: The command works on one partition at a time.
        """
        if "jid" in given:
            send = self._send_to_job
        elif name.startswith(_IN_FIRST):
            send = partial(self._send_to, 0)
        elif name in _OF_JOBS:
            send = self._send_to_jobs
        elif name.startswith("config_"):
            send = self._send_config
        elif name in PAGES and (
            (name != "failed" or given.get("group"))
            and (name != "queues" or not given.get("queue"))
        ):  # without a group, `failed` counts all groups
            send = self._read_page
        elif name in SUMS:
            send = self._send_to_all
        elif name in ("find", "clear"):
            send = self._find if name == "find" else self._clear
        elif name in ("pop", "unfail", "revive_group"):
            send = self._take
        else:
            raise _works_on_one(name)
        return await send(name, given)

    async def pipeline(self, calls: Sequence[Call[T]]) -> list[T | Exception]:
        """Send independent calls, and return their replies; a refusal is returned in its place."""
        return cast("list[T | Exception]", await asyncio.gather(*calls, return_exceptions=True))

    def request(self) -> AbstractContextManager[str]:
        """Reserve a request id for one call that may have to be sent several times."""
        return self.stores[0].request()

    async def read_server(self, *command: str | int) -> Any:
        """Send a command of Redis that only reads to a partition that isn't known to be missing."""
        return await next(iter(self.present().values())).read_server(*command)

    async def now(self) -> float:
        """Return the time of the clock that commands go by, in seconds since 1970."""
        return await self._read_any(lambda number: self.stores[number].now())

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
        names = [given["jid"], *keys_of(given.get("constraints")), *(given.get("depends") or ())]
        names += keys_of_data(given.get("data_keys"))
        if name == "depends_on":
            names += given.get("jids", ())
        return await self._send_to(common_partition(names, len(self.stores)), name, given)

    async def _send_to_jobs(self, name: str, given: Named) -> Any:
        """Send the jids to their partitions; order replies by them."""
        own: dict[int, list[str]] = {}
        for jid in given["jids"]:
            own.setdefault(partition_of(jid, len(self.stores)), []).append(jid)
        replies = await self.ask(
            lambda number: self._send_to(number, name, given | {"jids": own[number]}), own
        )
        if name in ("timeout", "dependency_failures"):  # the latter's are in one partition
            return next(iter(replies), None)
        items = list(chain(*replies))
        if name == "states":
            states = dict(zip(chain(*own.values()), items, strict=True))
            return [states[jid] for jid in given["jids"]]
        rank = {jid: number for number, jid in enumerate(given["jids"])}
        return sorted(items, key=lambda item: rank[item if isinstance(item, str) else item["jid"]])

    async def _send_to_all(self, name: str, given: Named) -> Any:
        merge: Merge = add if name == "workers" and given.get("worker") else SUMS[name]
        merged = merge(await self._ask_all(name, lambda number: self._send_to(number, name, given)))
        if name == "working":
            for worker in merged:
                del worker["doing"][given["most"] :]
        return merged

    async def _read_page(self, name: str, given: Named) -> Any:
        """Return a page of what all partitions have, in the merged order."""
        offset, count = given.get("offset") or 0, given.get("count")
        end = offset + (_DEFAULT_COUNT.get(name, 25) if count is None else count)
        most = math.inf if name == "queues" else end  # the counts of one queue are in many places
        replies = await self._ask_all(
            name, lambda number: self._read_first(number, name, given, most)
        )
        merged = PAGES[name]([items for items, _ in replies])[offset:end]
        if all(total is None for _, total in replies):
            return merged
        return {"total": sum(total for _, total in replies), "jobs": merged}

    async def _read_first(
        self, number: int, name: str, given: Named, most: float
    ) -> tuple[list[Any], Any]:
        """Read the first items of a partition; return them, and their total if it says."""
        items: list[Any] = []
        while True:
            wanted = max(0, int(min(MOST_PER_CALL, most - len(items))))
            asked = {"offset": len(items), "count": wanted}
            page = await self._send_to(number, name, given | asked)
            total = page["total"] if isinstance(page, Mapping) else None
            page = page["jobs"] if isinstance(page, Mapping) else page
            items += page
            if len(page) < MOST_PER_CALL:
                return items, total

    async def _clear(self, name: str, given: Named) -> Any:
        """Send to one partition after the other; the offset says how far the caller is."""
        at, offset = divmod(given["offset"], _STEP)
        reply = await self._send_to(at, name, given | {"offset": offset})
        if reply["offset"] is not None:
            reply["offset"] += at * _STEP
        elif at + 1 < len(self.stores):
            reply["offset"] = (at + 1) * _STEP
        return reply

    async def _find(self, name: str, given: Named) -> Any:
        """Send to one partition after the other; the cursor says how far the caller is."""
        number, _, cursor = str(given.get("cursor") or "0").partition(":")
        until, _, stop = str(given.get("stop") or f"{len(self.stores)}:0").partition(":")
        at, last = int(number), int(until) - (stop == "0")
        own = {"cursor": cursor or "0", "stop": stop if at == last else ""}
        reply = await self._send_to(at, name, given | own)
        if reply["cursor"] != "0":
            reply["cursor"] = f"{at}:{reply['cursor']}"
        elif at < last:
            reply["cursor"] = f"{at + 1}:0"
        return reply

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
        return list(chain(*replies)) if name == "pop" else sum(replies)

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
        await self.ask(lambda number: self._send_to(number, name, given), range(1, count))
        return None

    async def _ask_all(self, name: str, ask: Callable[[int], Awaitable[T]]) -> list[T]:
        """Ask all partitions; partial reads skip the missing ones."""
        reads = "request" not in _PARAMETERS[name]  # without an id that a write has
        return await self.ask(ask, range(len(self.stores)), partly=reads)

    async def ask(
        self, ask: Callable[[int], Awaitable[T]], numbers: Iterable[int], *, partly: bool = False
    ) -> list[T]:
        """Ask partitions; raise the first error after all have answered, unless `partly` may."""
        away = self._away() if partly else ()
        asked = [number for number in numbers if number not in away]
        replies = await asyncio.gather(*map(ask, asked), return_exceptions=True)
        found: list[T] = []
        for number, reply in zip(asked, replies, strict=True):
            if not isinstance(reply, BaseException):
                found.append(reply)
            elif partly:
                self._add_missing(number, reply)
            else:
                raise reply
        return found

    async def _read_any(self, read: Callable[[int], Awaitable[T]]) -> T:
        """Read what all partitions have alike from the first one that isn't missing."""
        while True:
            number = next(iter(self.present()))
            try:
                return await read(number)
            except REDIS_UNAVAILABLE as error:
                self._add_missing(number, error)

    def present(self) -> dict[int, ScriptStore]:
        """Return the partitions that aren't known to be missing, by number."""
        away = self._away()
        return {number: each for number, each in enumerate(self.stores) if number not in away}

    def _away(self) -> set[int]:
        """Return the partitions that partial reads do without."""
        return {number for each in self._missing.get() or () for number in each.partitions}

    def _add_missing(self, number: int, error: BaseException) -> None:
        """Note that a partition is missing, with the others on its node, which aren't asked again.

        The error is raised unless it is one of a partial read for which partitions are left.
        """
        missing, away = self._missing.get(), self._away()
        nodes = {n: node_of(store.connection) for n, store in enumerate(self.stores)}
        node = None if isinstance(error, SlotMoved | SlotMigrating) else nodes[number]
        gone = (number,) if node is None else tuple(n for n in nodes if nodes[n] == node)
        is_outage = isinstance(error, REDIS_UNAVAILABLE) and not isinstance(
            error, exceptions.AuthenticationError
        )
        if missing is None or not is_outage or away.issuperset(nodes.keys() - {*gone}):
            raise error
        if number not in away:
            missing.append(MissingNode(node, gone, str(error)))


def _routed(name: str) -> Callable[..., Call]:
    """Return the method of a command that a partitioned store routes."""

    def method(self: PartitionedStore, **given: Any) -> Call:
        return Call(lambda _: self.route(name, given), name, read_nothing, [], [])

    return method


for _name in _PARAMETERS:
    setattr(PartitionedStore, _name, _routed(_name))


def _works_on_one(name: str) -> AioqlessError:
    return AioqlessError(f"{name} works on one partition at a time: use one of client.partitions")
