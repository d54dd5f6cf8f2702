"""Puts on their way to Redis: those that come together travel together."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from aioqless.client.put.new_job import NewJob
from aioqless.store import Store

MOST_PER_CALL = 50  # keeps Redis for about a millisecond
UNDER_WAY = 2  # batches of one caller's
MOST_BYTES_PER_CALL = 1 << 18
MOST_LISTED_PER_CALL = 5_000  # tags and dependencies of all its jobs


class Puts:
    """Sends puts. Those that gather for a queue in one turn of the loop go in one call, and each
    caller gets its own answer.

    Owns what has gathered, and the tasks that send it.
    """

    def __init__(
        self,
        store: Store,
        context: Callable[[NewJob], Mapping[str, str] | None] = lambda job: None,
    ) -> None:
        self.context = context  # of jobs that are put without one
        self._store = store
        self._gathered: dict[str, list[_Put]] = {}
        self._sending: set[asyncio.Task[None]] = set()

    async def put(self, queue: str, arguments: dict[str, Any]) -> str:
        """Put one job; returns its jid. Raises what the script refuses it with. If the caller is
        cancelled, it is put nevertheless."""
        loop = asyncio.get_running_loop()
        put = _Put(arguments, loop.create_future())
        if queue in self._gathered:
            self._gathered[queue].append(put)
        else:
            self._gathered[queue] = [put]
            loop.call_soon(self._send, queue)
        return await put.answer

    def _send(self, queue: str) -> None:
        gathered = self._gathered.pop(queue)
        start = 0
        for batch in batches([put.arguments for put in gathered]):
            task = asyncio.create_task(
                self._send_batch(queue, batch, gathered[start : start + len(batch)])
            )
            self._sending.add(task)
            task.add_done_callback(self._sending.discard)
            start += len(batch)

    async def _send_batch(self, queue: str, batch: list[dict[str, Any]], puts: list[_Put]) -> None:
        answers: list[Any]
        try:
            if len(batch) == 1 and "on_failed" not in batch[0]:
                answers = [await self._store.put(queue=queue, **batch[0])]
            else:
                answers = await put_batch(self._store, queue, batch)
        except Exception as error:  # whatever it is, it is the callers' to deal with
            answers = [error] * len(puts)
        for put, answer in zip(puts, answers, strict=True):
            if put.answer.done():
                continue
            if isinstance(answer, Exception):
                put.answer.set_exception(answer)
            else:
                put.answer.set_result(answer)


@dataclass(frozen=True, eq=False)
class _Put:
    arguments: dict[str, Any]
    answer: asyncio.Future[str]


async def in_batches(
    arguments: list[dict[str, Any]],
    send: Callable[[list[dict[str, Any]]], Coroutine[Any, Any, list[Any]]],
) -> list[Any]:
    """Send puts in calls of a bounded size; returns what each came to.

    While Redis works on a batch the next is sent, unless some depend on others: those have to be
    there before."""
    answers: list[Any] = []
    ordered = any(each["depends"] for each in arguments)
    under_way: deque[asyncio.Task[list[Any]]] = deque()
    try:
        for batch in batches(arguments):
            under_way.append(asyncio.create_task(send(batch)))
            if ordered or len(under_way) == UNDER_WAY:
                answers += await under_way.popleft()
        while under_way:
            answers += await under_way.popleft()
    finally:
        for left in under_way:
            left.cancel()
        await asyncio.gather(*under_way, return_exceptions=True)
    return answers


async def put_batch(
    store: Store,
    queue: str,
    batch: list[dict[str, Any]],
    *,
    existing: Literal["keep"] | None = None,
) -> list[Any]:
    """Put jobs in one call; returns the jid or the refusal of each. `keep`: one that exists stays
    as it is, and its answer is empty."""
    answers: list[Any]
    if any("on_failed" in each for each in batch):
        answers = await store.put_flow(
            batch=[{"queue": queue, **each} for each in batch],
            apart="yes",
            existing=existing,
        )
    else:
        answers = await store.put_many(queue=queue, batch=batch, existing=existing)
    return answers


def batches(arguments: list[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """Portions that Redis works off quickly, by number, by bytes, and by what their lists name."""
    batch: list[dict[str, Any]] = []
    size = listed = 0
    for each in arguments:
        weight, named = len(each["data"]), len(each["tags"] or ()) + len(each["depends"] or ())
        full = (
            len(batch) == MOST_PER_CALL
            or size + weight > MOST_BYTES_PER_CALL
            or listed + named > MOST_LISTED_PER_CALL
        )
        if batch and full:
            yield batch
            batch, size, listed = [], 0, 0
        batch.append(each)
        size += weight
        listed += named
    if batch:
        yield batch
