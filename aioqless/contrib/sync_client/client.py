"""A client for code without an event loop, such as a view of Django or Flask.

A thread runs the event loop of an async client.
"""

from __future__ import annotations

import asyncio
import os
import threading
import weakref
from collections.abc import Awaitable, Callable, Iterable
from concurrent.futures import Future
from typing import Any, Self

from anyio.from_thread import BlockingPortal
from typing_extensions import TypeVar, Unpack

from aioqless import client as async_
from aioqless.client.job import Job
from aioqless.client.put import Jid, Klass, NewJob
from aioqless.client.put_options import PutOptions
from aioqless.client.queue_clearing import QUEUED, ClearResult, ClearState
from aioqless.hints import suggest_put
from aioqless.validation import Seconds

Result = TypeVar("Result", default=Any)


@suggest_put("`client.put(handler.data(name=...), delay=60)`")
class Client:
    """A synchronous `aioqless.Client`; one serves all threads of a process.

    The first call connects. A client that was made before a fork connects again in each child. A
    process may end without closing it. Calls raise the errors of the async client.

    Args:
        url: Where Redis is, as in `aioqless.Client`.
        options: The other arguments of `aioqless.Client`.
    """

    def __init__(self, url: str | None = None, **options: Any) -> None:
        async_.Client(url, **options)  # raises for wrong arguments
        self._make: Callable[[], async_.Client] = lambda: async_.Client(url, **options)
        self._thread: _Thread | None = None
        self._starting = threading.Lock()
        _clients.add(self)

    def put(
        self,
        job: str | Klass[Result] | NewJob[Result],
        data: object = None,
        *,
        queue: str | None = None,
        wait: Seconds = 0,
        **options: Unpack[PutOptions],
    ) -> Jid[Result]:
        """Put a job, and return its jid when Redis has it: see `aioqless.Client.put`.

        Raises:
            RuntimeError: On a thread that runs an event loop; all methods do.
        """
        return self.call(lambda client: client.put(job, data, queue=queue, wait=wait, **options))

    def put_many(
        self, jobs: Iterable[NewJob[Result]], *, queue: str | None = None, wait: Seconds = 0
    ) -> list[Jid[Result]]:
        """Put many jobs: see `aioqless.Client.put_many`."""
        return self.call(lambda client: client.put_many(jobs, queue=queue, wait=wait))

    def result(self, jid: Jid[Result], timeout: Seconds | None = None) -> Result:
        """Wait for the end of a job, and return its result, as `Jid.result` does.

        Args:
            jid: What `put` returned.
            timeout: Time to wait at most.
        """
        return self.call(lambda _: jid.result(timeout))

    def get(self, jid: str) -> Job | None:
        """Return a job, or None if it doesn't exist; call its own methods within `call`.

        Args:
            jid: Jid of the job.
        """
        return self.call(lambda client: client.jobs.get(jid))

    def cancel(self, *jids: str) -> list[str]:
        """Delete jobs, as `Jobs.cancel` does.

        Args:
            jids: Jids of the jobs.

        Returns:
            The jids of the deleted jobs.
        """
        return self.call(lambda client: client.jobs.cancel(*jids))

    def clear(
        self, queue: str, states: Iterable[ClearState] = QUEUED, *, dry_run: bool = False
    ) -> ClearResult:
        """Delete the jobs of a queue except running ones, as `Queue.clear` does.

        Args:
            queue: Name of the queue.
            states: What to cancel: "waiting", "scheduled", "depends", and also "failed"; default:
                the first three.
            dry_run: Only count them.
        """
        return self.call(lambda client: client.queue(queue).clear(states, dry_run=dry_run))

    def call(self, act: Callable[[async_.Client], Awaitable[Result]]) -> Result:
        """Call the async client, and return its result.

        Example: `client.call(lambda client: client.queue("mail").counts())`.

        Args:
            act: Takes the async client, and returns an awaitable.
        """
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
        """Close the connection after the calls in progress; a later call connects again."""
        with self._starting:
            thread, self._thread = self._thread, None
        if thread is not None:
            thread.end()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def reset_after_fork(self) -> None:
        """Forget the thread, which stayed with the parent process."""
        self._thread = None
        self._starting = threading.Lock()


class _Thread(threading.Thread):
    """Runs an event loop with a connected client; as a daemon thread it keeps no process alive.

    `anyio.from_thread.start_blocking_portal` would run the thread, too, but has to be left before
    the process ends: it would wait forever in a forked child, or at an exit without `close`.
    """

    def __init__(self, client: async_.Client) -> None:
        super().__init__(name="aioqless", daemon=True)
        self._client = client
        self._portal: Future[BlockingPortal] = Future()
        self.start()

    def call(self, act: Callable[[async_.Client], Awaitable[Result]]) -> Result:
        """Await what `act` returns on the event loop; return its result."""
        future = self._portal.result().start_task_soon(act, self._client)
        try:
            return future.result()
        except BaseException:  # such as KeyboardInterrupt: the caller doesn't wait any more
            future.cancel()
            raise

    def end(self) -> None:
        """End the thread after the calls in progress."""
        if self._portal.exception() is None:
            portal = self._portal.result()
            portal.start_task_soon(portal.stop)
        self.join()

    def run(self) -> None:
        """Run the event loop."""
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        try:
            async with self._client, BlockingPortal() as portal:
                self._portal.set_result(portal)
                await portal.sleep_until_stopped()
        except Exception as error:
            if self._portal.done():
                raise
            self._portal.set_exception(error)


_clients: weakref.WeakSet[Client] = weakref.WeakSet()


def _after_fork() -> None:
    for client in _clients:
        client.reset_after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
