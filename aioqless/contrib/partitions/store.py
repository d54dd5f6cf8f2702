"""PartitionedStore: routes each command to the partitions that it concerns, and adds replies."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any, TypeAlias, cast

from aioqless.client import CommandConnection
from aioqless.contrib.partitions.routing import (
    common_partition,
    keys_of,
    keys_of_data,
    partition_of,
    recurring_jid,
)
from aioqless.contrib.partitions.shares import share_of, total_of
from aioqless.contrib.partitions.sums import METRICS, SUMS, Merge, add
from aioqless.errors import AioqlessError
from aioqless.store import Call, ScriptStore, Store
from aioqless.store.call import T, encode, read_nothing, read_text

Named: TypeAlias = dict[str, Any]  # the arguments of a command

# What a namespace has once is in the first partition: remote commands to workers and their
# answers; of extensions the log of user actions, deploy marks.
_IN_FIRST = "remote_"
_EXTENSIONS_IN_FIRST = ("audit_log", "mark")
_EXTENSIONS_OF_JOBS = ("emit_end", "output", "signal", "steps")  # whose first argument is a jid

_PARAMETERS = {
    name: inspect.signature(method).parameters.keys() - {"self"}
    for name, method in vars(Store).items()
    if inspect.isfunction(method) and not getattr(method, "__isabstractmethod__", False)
}
_OF_JOBS = {name for name, given in _PARAMETERS.items() if "jids" in given} - {"declare_off"}


class PartitionedStore(Store):
    """The commands of a partitioned namespace, each routed by the names of its arguments.

    A command about one job goes to the partition of its jid, one about several jobs to theirs, and
    one that counts, or changes a queue, to all. Where a partition can't be reached the call fails,
    after the others have carried it out. What lists, finds or clears works on one partition.
    """

    def __init__(
        self, stores: Sequence[ScriptStore], *, clock: Callable[[], float] | None = None
    ) -> None:
        self.stores = tuple(stores)
        self.namespace = stores[0].namespace
        self.connection: CommandConnection = stores[0].connection
        self.clock = clock

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
            return cast(T, merge(await self._ask_all(partial(self._send_own, call))))
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
        elif name in SUMS and not (name == "failed" and given.get("group")):
            send = self._send_to_all
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
        """Send a command of Redis that only reads to the node of the first partition."""
        return await self.stores[0].read_server(*command)

    async def now(self) -> float:
        """Return the time of the clock that commands go by, in seconds since 1970."""
        return await self.stores[0].now()

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
        replies = await self._ask(
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
        merged = merge(await self._ask_all(lambda number: self._send_to(number, name, given)))
        if name == "working":
            for worker in merged:
                del worker["doing"][given["most"] :]
        return merged

    async def _send_config(self, name: str, given: Named) -> Any:
        """Read options of the first partition; change them there first, then in all others."""
        option, count = given.get("option"), len(self.stores)
        if name == "config_get":
            value = await self._send_to(0, name, given)
            if option:
                return total_of(option, value, count)
            return {each: total_of(each, share, count) for each, share in value.items()}
        if name == "config_set":
            given = given | {"value": share_of(given["option"], str(given["value"]), count)}
        await self._send_to(0, name, given)
        await self._ask(lambda number: self._send_to(number, name, given), range(1, count))
        return None

    async def _ask_all(self, ask: Callable[[int], Awaitable[T]]) -> list[T]:
        return await self._ask(ask, range(len(self.stores)))

    async def _ask(self, ask: Callable[[int], Awaitable[T]], numbers: Iterable[int]) -> list[T]:
        """Ask partitions; raise the first error after all have answered."""
        replies = await asyncio.gather(*map(ask, numbers), return_exceptions=True)
        for reply in replies:
            if isinstance(reply, BaseException):
                raise reply
        return cast("list[T]", replies)


def _routed(name: str) -> Callable[..., Call]:
    """Return the method of a command that a partitioned store routes."""

    def method(self: PartitionedStore, **given: Any) -> Call:
        return Call(lambda _: self.route(name, given), name, read_nothing, [], [])

    return method


for _name in _PARAMETERS:
    setattr(PartitionedStore, _name, _routed(_name))


def _works_on_one(name: str) -> AioqlessError:
    return AioqlessError(
        f"{name} works on one partition at a time: call it on client.partitions[n], or name one by "
        "--namespace, as `aioqless partitions --each` lists them"
    )
