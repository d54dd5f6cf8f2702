"""PutCall: the put of a handler, `greet.put(...)`, which must be awaited."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Coroutine, Generator
from types import TracebackType
from typing import Any, TypeVar

from aioqless.runtime.log import log

R = TypeVar("R")

# Messages about the latest puts that were never awaited; the pytest plugin fails their tests.
unawaited_puts: deque[str] = deque(maxlen=100)


class PutCall(Coroutine[Any, Any, R]):
    """A put that begins when it is awaited, or run by `asyncio.run` or a task, as any coroutine.

    One that is dropped is an error in the log, with the line that made it: its job is lost.

    Args:
        klass: The klass of the job.
        begin: Makes the coroutine that puts it.
    """

    __slots__ = ("_begin", "_klass", "_where", "_work")

    def __init__(self, klass: str, begin: Callable[[], Coroutine[Any, Any, R]]) -> None:
        self._klass = klass
        self._begin = begin
        self._work: Coroutine[Any, Any, R] | None = None
        frame = sys._getframe(2)  # noqa: SLF001  # of the caller of `put`
        self._where = frame.f_code.co_filename, frame.f_lineno

    def __await__(self) -> Generator[Any, Any, R]:
        return self._start().__await__()

    def send(self, value: Any) -> Any:
        """Continue it; the event loop does."""
        return self._start().send(value)

    def throw(
        self,
        kind: Any,
        value: BaseException | object = None,
        traceback: TracebackType | None = None,
    ) -> Any:
        """Continue it with an exception; the event loop does."""
        if value is None and traceback is None:
            return self._start().throw(kind)
        return self._start().throw(kind, value, traceback)

    def close(self) -> None:
        """End it; the job isn't put if that has not begun."""
        self._start().close()

    def _start(self) -> Coroutine[Any, Any, R]:
        if self._work is None:
            self._work = self._begin()
        return self._work

    def __repr__(self) -> str:
        return f"<put of {self._klass}>"

    def __del__(self) -> None:
        if getattr(self, "_work", self) is not None or sys.is_finalizing():
            return
        where = "{}:{}".format(*self._where)
        why = (
            "the job was not put: write `await` before the call, or use SyncClient in code without "
            "an event loop"
        )
        unawaited_puts.append(f"{where}: the put of {self._klass} was never awaited")
        log.error("put.not_awaited", klass=self._klass, where=where, why=why)
