"""Cursor: a position in a list of items, from which the next run continues."""

from __future__ import annotations

import asyncio
import contextlib
from types import TracebackType
from typing import Generic, Self, TypeVar

from redis import exceptions

from aioqless.contrib.durable.run import DurableRun
from aioqless.contrib.durable.values import ValueType
from aioqless.errors import AioqlessError
from aioqless.runtime.log import log
from aioqless.runtime.tasks import cancel_and_wait

T = TypeVar("T")

PAUSE = 1.0  # seconds between two stores


class Cursor(Generic[T]):
    """A position in a list of items, which is stored once a second, and at the end of the block.

    Owns the task that stores it. `client.job.state.Cursor` says more.
    """

    def __init__(self, run: DurableRun, name: str, hint: object) -> None:
        run.claim(name)
        self.value: T | None = None
        self._run = run
        self._name = name
        self._values: ValueType[T] = ValueType(f"cursor {name!r}", hint, run.job_run.max_data)
        self._text = b""  # of the value
        self._stored = b""
        self._storing = asyncio.Lock()
        self._changed = asyncio.Event()
        self._saver: asyncio.Task[None] | None = None
        self._refusal: AioqlessError | None = None  # why it can't be stored any more

    def advance(self, value: T) -> None:
        """Note that an item is finished; `client.job.state.Cursor` says more."""
        self._text = self._values.encode(value)
        self.value = value
        if self._refusal is not None:
            raise self._refusal
        if not self._changed.is_set():
            if self._run.is_on_loop():
                self._changed.set()
            else:
                self._run.context.loop.call_soon_threadsafe(self._changed.set)
        if self._run.context.is_draining():
            raise self._run.park(f"the worker shuts down; cursor {self._name!r} keeps the position")

    async def __aenter__(self) -> Self:
        if (found := await self._run.find("cursor", self._name)) is not None:
            self.value, self._text = self._values.decode(found), found
            self._stored = found
        self._saver = asyncio.get_running_loop().create_task(
            self._save_each_second(), name=f"aioqless cursor {self._run.jid}"
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: object
    ) -> None:
        assert self._saver is not None
        async with self._storing:  # it is not canceled while it stores
            self._saver.cancel()
        await cancel_and_wait(self._saver)
        if self._run.job_run.stopped == "lost":
            return
        try:
            await self._save()
        except (AioqlessError, exceptions.RedisError) as refusal:
            if kind is None:
                raise
            log.warning("job.cursor_not_stored", cursor=self._name, error=str(refusal))

    def __enter__(self) -> Self:
        if self._run.is_on_loop():
            raise TypeError("a coroutine writes `async with job.cursor(...)`")
        return self._run.wait(self.__aenter__())

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._run.wait(self.__aexit__(kind, error, traceback))

    async def _save_each_second(self) -> None:
        while self._refusal is None:
            await self._changed.wait()
            self._changed.clear()
            with contextlib.suppress(AioqlessError, exceptions.RedisError):  # `advance` raises it
                await self._save()
            await asyncio.sleep(PAUSE)

    async def _save(self) -> None:
        async with self._storing:
            if (text := self._text) == self._stored:
                return
            try:
                await self._run.store("cursor", self._name, text)
            except AioqlessError as refusal:
                self._refusal = refusal
                raise
            self._stored = text
