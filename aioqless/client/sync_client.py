"""SyncClient: the client of code without an event loop, such as a script or a view of Django.

A thread runs the event loop of an async client. Methods here put jobs and read results, as nearly
all such code does; `call` does everything else with the async client.
"""

from __future__ import annotations

import asyncio
import os
import threading
import weakref
from collections.abc import Awaitable, Callable, Iterable
from concurrent.futures import CancelledError, Future
from typing import TYPE_CHECKING, Any, Self, TypeVar

from anyio.from_thread import BlockingPortal
from typing_extensions import TypeVar as DefaultedTypeVar
from typing_extensions import Unpack

from aioqless.client.client import Client
from aioqless.client.jid import Jid
from aioqless.client.new_job import Klass, NewJob
from aioqless.client.put_options import FlowOptions, PutOptions, RecurOptions
from aioqless.client.recurring import RecurringJob
from aioqless.client.workflows import Flow, Step
from aioqless.validation import Seconds

T = TypeVar("T")
Result = DefaultedTypeVar("Result", default=Any)


class SyncClient:
    """A synchronous `aioqless.Client`; one serves all threads of a process.

    It puts jobs and waits for their results; `call` does everything else that a client can do.

    The first call connects. A client that was made before a fork connects again in each child. A
    process may end without closing it. Calls raise the errors of the async client, and RuntimeError
    on a thread that runs an event loop.

    Args:
        url: Where Redis is, as in `aioqless.Client`.
        options: The other arguments of `aioqless.Client`.
    """

    def __init__(self, url: str | None = None, **options: Any) -> None:
        Client(url, **options)  # raises for wrong arguments
        self._make: Callable[[], Client] = lambda: Client(url, **options)
        self._thread: _Thread | None = None
        self._starting = threading.Lock()
        _clients.add(self)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> object:
            """Raise AttributeError that says what to write."""
            way = "client.put(handler.data(name=...), delay=60)"
            if hasattr(Client, name):
                way = f"client.call(lambda client: client.{name}...)"
            raise AttributeError(
                f"'SyncClient' object has no attribute {name!r}: write `{way}`", name=name, obj=self
            )

    def put(
        self,
        job: str | Klass[Result] | NewJob[Result],
        data: object = None,
        *,
        queue: str | None = None,
        wait: Seconds = 0,
        **options: Unpack[PutOptions],
    ) -> Jid[Result]:
        """Put a job, and return its jid when Redis has it: see `aioqless.Client.put`."""
        return self.call(lambda client: client.put(job, data, queue=queue, wait=wait, **options))

    def put_many(
        self,
        jobs: Iterable[NewJob[Result]],
        *,
        queue: str | None = None,
        wait: Seconds = 0,
        spread: Seconds = 0,
    ) -> list[Jid[Result]]:
        """Put many jobs: see `aioqless.Client.put_many`."""
        return self.call(
            lambda client: client.put_many(jobs, queue=queue, wait=wait, spread=spread)
        )

    def put_flow(
        self,
        flow: Step,
        *,
        queue: str | None = None,
        wait: Seconds = 0,
        **options: Unpack[FlowOptions],
    ) -> Flow:
        """Put a workflow: see `aioqless.Client.put_flow`."""
        return self.call(lambda client: client.put_flow(flow, queue=queue, wait=wait, **options))

    def recur(
        self,
        job: str | Klass | NewJob,
        data: object = None,
        *,
        queue: str | None = None,
        **options: Unpack[RecurOptions],
    ) -> RecurringJob:
        """Make a recurring job, or change it: see `aioqless.Client.recur`."""
        return self.call(lambda client: client.recur(job, data, queue=queue, **options))

    def result(self, jid: Jid[Result], timeout: Seconds | None = None) -> Result:
        """Wait for the end of a job, and return its result, as `Jid.result` does.

        Args:
            jid: What `put` returned.
            timeout: Time to wait at most.
        """
        return self.call(lambda _: jid.result(timeout))

    def call(self, act: Callable[[Client], Awaitable[T]]) -> T:
        """Call the async client, and return its result.

        For example `sync.call(lambda client: client.queue("mail").counts())`, or, for a method of a
        record, `sync.call(lambda _: record.refresh())`.

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

    def __init__(self, client: Client) -> None:
        super().__init__(name="aioqless", daemon=True)
        self._client = client
        self._portal: Future[BlockingPortal] = Future()
        self.start()

    def call(self, act: Callable[[Client], Awaitable[T]]) -> T:
        """Await what `act` returns on the event loop; return its result."""
        future = self._portal.result().start_task_soon(act, self._client)
        try:
            return future.result()
        except CancelledError:  # an Exception, which handlers may catch
            raise asyncio.CancelledError from None
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


_clients: weakref.WeakSet[SyncClient] = weakref.WeakSet()


def close_all() -> None:
    """Close the clients of this process; each connects again when it is next used."""
    for client in list(_clients):
        client.close()


def _after_fork() -> None:
    for client in _clients:
        client.reset_after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
