"""Batcher: sends items together that are submitted while others are on their way."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextvars import Context
from typing import Generic, TypeVar

from aioqless.errors import AioqlessError
from aioqless.runtime.tasks import cancel_and_wait

Item = TypeVar("Item")
Answer = TypeVar("Answer")


class BatcherClosed(AioqlessError):
    """The batcher was closed before the item was sent, or before its reply arrived."""


class Batcher(Generic[Item, Answer]):
    """Sends items in batches, and gives each item its own reply.

    Items that are submitted while `parallel` batches are on their way gather for the next one: no
    timer, no threshold. The first batch holds all that is submitted in one event-loop iteration.

    Owns the items that are not sent yet, and the tasks that send them.

    Args:
        send: Sends a batch and returns one reply for each item, in order. An exception among the
            replies is raised to the caller of its item, one that `send` raises to all of them.
        max_items: Maximum number of items in a batch.
        fitting: Returns how many of the leading items fit into one batch; by default `max_items`.
        parallel: Maximum number of batches on their way at once.
        pause: Seconds between a reply and the next batch of the same task.
        name: Name of the tasks.
        context: Context variables of the tasks; default: those of the first submitter.
    """

    def __init__(
        self,
        send: Callable[[list[Item]], Awaitable[Sequence[Answer | Exception]]],
        *,
        name: str,
        max_items: int = 100,
        fitting: Callable[[Sequence[Item]], int] | None = None,
        parallel: int = 1,
        pause: float = 0.0,
        context: Context | None = None,
    ) -> None:
        self._send = send
        self._name = name
        self._fitting = fitting or (lambda items: min(len(items), max_items))
        self._parallel = parallel
        self._pause = pause
        self._context = context
        self._items: list[Item] = []
        self._futures: list[asyncio.Future[Answer]] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._sending = 0  # batches on their way, or about to be
        self._scheduled = False  # one of them is not taken from the items yet
        self._closed = False

    async def send(self, item: Item) -> Answer:
        """Send an item at once if nothing is on its way, else by `submit`; return its reply."""
        if self._sending or self._closed:
            return await self.submit(item)
        self._sending += 1
        try:
            (reply,) = await self._send([item])
        finally:
            self._sending -= 1
            self._schedule()
        if isinstance(reply, Exception):
            raise reply
        return reply

    def submit(self, item: Item) -> asyncio.Future[Answer]:
        """Send an item with the next batch, and return the future of its reply.

        If the future is canceled, the item is sent nevertheless.
        """
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        if self._closed:
            future.set_exception(BatcherClosed(f"{self._name}: closed"))
            return future
        self._items.append(item)
        self._futures.append(future)
        self._schedule()
        return future

    @property
    def is_idle(self) -> bool:
        """Whether nothing is submitted or on its way."""
        return not self._sending

    async def finish(self) -> None:
        """Wait until nothing is on its way."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def aclose(self) -> None:
        """Cancel what is on its way; callers that still wait get BatcherClosed."""
        self._closed = True
        await cancel_and_wait(*self._tasks)
        self._items, futures, self._futures = [], self._futures, []
        self._fail(futures)

    def _schedule(self) -> None:
        if not self._items or self._scheduled or self._closed or self._sending >= self._parallel:
            return
        self._scheduled = True
        self._sending += 1
        task = asyncio.get_running_loop().create_task(
            self._send_batch(), name=f"aioqless {self._name}", context=self._context
        )
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _send_batch(self) -> None:
        count = self._fitting(self._items)
        batch, self._items = self._items[:count], self._items[count:]
        futures, self._futures = self._futures[:count], self._futures[count:]
        self._scheduled = False
        self._schedule()
        try:
            self._reply(futures, await self._send(batch))
            if self._pause:
                await asyncio.sleep(self._pause)
        except Exception as error:  # whatever it is, the callers handle it
            self._reply(futures, [error] * count)
        finally:
            self._fail(futures)  # those without a reply, when this task is canceled
            self._sending -= 1
            self._schedule()

    def _reply(
        self, futures: list[asyncio.Future[Answer]], replies: Sequence[Answer | Exception]
    ) -> None:
        for future, reply in zip(futures, replies, strict=True):
            if future.done():  # its caller was canceled
                continue
            if isinstance(reply, Exception):
                future.set_exception(reply)
            else:
                future.set_result(reply)

    def _fail(self, futures: list[asyncio.Future[Answer]]) -> None:
        for future in futures:
            if not future.done():
                future.set_exception(BatcherClosed(f"{self._name}: closed"))
