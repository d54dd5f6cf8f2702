"""Client for code without an event loop, such as a view of Django or Flask: a thread of its own
runs the loop."""

from __future__ import annotations

import asyncio
import os
import threading
import weakref
from collections.abc import Awaitable, Callable, Iterable
from concurrent.futures import Future
from typing import Any, Self, TypeVar

from typing_extensions import Unpack

from aioqless import client as async_
from aioqless.client.clearing import QUEUED, Cleared, ClearState
from aioqless.client.job import Job
from aioqless.client.put import Klass, NewJob, PutOptions

Answer = TypeVar("Answer")


class Client:
    """What `aioqless.Client` does, for callers that wait: `client = Client(url)`, once for a
    process; its arguments are that one's.

    Any thread may call it. It connects with its first call, in each process anew: one that was made
    before a fork works in the children. The process may end without closing it. Each call raises
    what the async one does, and RuntimeError on an event loop."""

    def __init__(self, url: str | None = None, **options: Any) -> None:
        async_.Client(url, **options)  # what is wrong with the arguments is said here
        self._make: Callable[[], async_.Client] = lambda: async_.Client(url, **options)
        self._thread: _Thread | None = None
        self._starting = threading.Lock()
        _clients.add(self)

    def put(
        self,
        queue: str,
        job: str | Klass | NewJob,
        data: Any = None,
        *,
        wait: float = 0,
        **options: Unpack[PutOptions],
    ) -> str:
        """Put a job; returns its jid when Redis has it. As `Queue.put`."""
        return self.call(lambda client: client.queue(queue).put(job, data, wait=wait, **options))

    def put_many(self, queue: str, jobs: Iterable[NewJob], *, wait: float = 0) -> list[str]:
        """Put many jobs; returns their jids in order. As `Queue.put_many`."""
        return self.call(lambda client: client.queue(queue).put_many(jobs, wait=wait))

    def get(self, jid: str) -> Job | None:
        """A job as it is now; its own methods are for `call`."""
        return self.call(lambda client: client.jobs.get(jid))

    def cancel(self, *jids: str) -> list[str]:
        """Delete jobs; returns the jids of those that were. As `Jobs.cancel`."""
        return self.call(lambda client: client.jobs.cancel(*jids))

    def clear(
        self, queue: str, states: Iterable[ClearState] = QUEUED, *, dry_run: bool = False
    ) -> Cleared:
        """Empty a queue; running jobs are not affected. As `Queue.clear`."""
        return self.call(lambda client: client.queue(queue).clear(states, dry_run=dry_run))

    def call(self, act: Callable[[async_.Client], Awaitable[Answer]]) -> Answer:
        """Anything that the async client can do: `client.call(lambda client:
        client.queue("mail").counts())`."""
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            pass
        else:
            raise RuntimeError(
                "this would block the event loop that it is called on: use aioqless.Client here"
            )
        with self._starting:
            if self._thread is None or not self._thread.is_alive():
                self._thread = _Thread(self._make())
            thread = self._thread
        return thread.call(act)

    def close(self) -> None:
        """End the connection, when calls under way have their answers; a later call connects
        again."""
        with self._starting:
            thread, self._thread = self._thread, None
        if thread is not None:
            thread.end()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _forget(self) -> None:
        """Its thread stayed with the parent process."""
        self._thread = None
        self._starting = threading.Lock()


class _Thread(threading.Thread):
    """Runs a loop with a connected client; a daemon, so as not to keep a process from ending."""

    def __init__(self, client: async_.Client) -> None:
        super().__init__(name="aioqless", daemon=True)
        self._client = client
        self._connected: Future[asyncio.AbstractEventLoop] = Future()
        self._calls: set[asyncio.Task[Any]] = set()
        self._ending = asyncio.Event()
        self.start()

    def call(self, act: Callable[[async_.Client], Awaitable[Answer]]) -> Answer:
        answer = asyncio.run_coroutine_threadsafe(self._call(act), self._connected.result())
        try:
            return answer.result()
        except BaseException:  # such as KeyboardInterrupt: nobody waits any more
            answer.cancel()
            raise

    def end(self) -> None:
        if self._connected.exception() is None:
            self._connected.result().call_soon_threadsafe(self._ending.set)
        self.join()

    def run(self) -> None:
        asyncio.run(self._live())

    async def _live(self) -> None:
        try:
            async with self._client:
                self._connected.set_result(asyncio.get_running_loop())
                await self._ending.wait()
                while self._calls:
                    await asyncio.wait(self._calls)
        except Exception as error:
            if self._connected.done():
                raise
            self._connected.set_exception(error)

    async def _call(self, act: Callable[[async_.Client], Awaitable[Answer]]) -> Answer:
        task = asyncio.current_task()
        assert task
        self._calls.add(task)
        try:
            return await act(self._client)
        finally:
            self._calls.discard(task)


_clients: weakref.WeakSet[Client] = weakref.WeakSet()


def _after_fork() -> None:
    for client in _clients:
        client._forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
