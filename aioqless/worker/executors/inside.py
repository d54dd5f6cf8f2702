"""A process of the pool, from inside. Its main thread performs jobs, one at a time; another listens to the worker.

When the worker is gone, so is the process at once, with all that its job has started: the job runs elsewhere when its lock expires.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import functools
import importlib
import inspect
import os
import pickle
import queue
import signal
import socket
import threading
from collections.abc import Callable, Coroutine, Iterator, Sequence
from typing import Any, BinaryIO

from aioqless import log
from aioqless.handlers import Handler
from aioqless.handlers import job as declare
from aioqless.jobs import Job
from aioqless.worker.executors.parcels import LENGTH, Order, Place, Stop, failure_of, result_of
from aioqless.worker.executors.variables import unpack


def main(descriptor: int, logging: dict[str, Any] | None, modules: Sequence[str]) -> None:
    """Perform what comes through the socket until it is closed."""
    # A service's stop may reach all of its processes: the worker decides what that means. Not SIG_IGN, which programs that handlers start
    # would inherit.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: None)
    os.set_inheritable(descriptor, False)
    if logging is not None:
        log.write_to(**logging)
    with socket.socket(fileno=descriptor) as worker, worker.makefile("rb") as parcels:
        process = Process(worker)
        threading.Thread(target=process.listen, args=(parcels,), name="aioqless listener", daemon=True).start()
        for module in modules:
            with contextlib.suppress(Exception):  # the job that needs it fails by it
                importlib.import_module(module)
        worker.sendall(result_of(None, None))  # ready
        process.work()


class Process:
    """Owns the socket and the job that runs."""

    def __init__(self, worker: socket.socket) -> None:
        self._worker = worker
        self._orders: queue.SimpleQueue[Order | None] = queue.SimpleQueue()
        self._job: Job | None = None
        self._cancel: Callable[[], object] | None = None  # how to cancel a coroutine that runs
        self._runner = asyncio.Runner()

    def listen(self, parcels: BinaryIO) -> None:
        """Take what the worker sends, until it is gone."""
        with self._until_gone():
            while length := parcels.read(LENGTH.size):
                match pickle.loads(parcels.read(LENGTH.unpack(length)[0])):
                    case Order(job=job) as order:
                        self._job = job
                        self._orders.put(order)
                    case Stop(reason) if self._job:
                        self._job.stopped = reason
                        if self._cancel:
                            self._cancel()

    @contextlib.contextmanager
    def _until_gone(self) -> Iterator[None]:
        try:
            with contextlib.suppress(OSError):
                yield
        finally:
            if self._job:
                os.killpg(0, signal.SIGKILL)
            self._orders.put(None)

    def work(self) -> None:
        """Perform one job after another."""
        with self._runner:
            while order := self._orders.get():
                answer = contextvars.Context().run(self._answer, order)
                self._job = None
                with contextlib.suppress(OSError):  # the worker is gone
                    self._worker.sendall(answer)

    def _answer(self, order: Order) -> bytes:
        job = order.job
        try:
            unpack(order.variables)
            call, arguments = _handler(order.place, job.klass).bound(job)
            result = call(job, **arguments)
            if inspect.iscoroutine(result):
                result = self._runner.run(self._cancellable(job, result), context=contextvars.copy_context())
            return result_of(result, job.changed_data())
        except BaseException as error:  # SystemExit too: it is the job's end, not the process'
            return failure_of(error)

    async def _cancellable(self, job: Job, call: Coroutine[Any, Any, Any]) -> Any:
        """On a loop of the process' own. The worker's word may come before there is anything to cancel."""
        task = asyncio.ensure_future(call)
        loop = asyncio.get_running_loop()
        self._cancel = lambda: loop.call_soon_threadsafe(task.cancel)
        if job.stopped:
            task.cancel()
        try:
            return await task
        finally:
            self._cancel = None


@functools.cache
def _handler(place: Place, klass: str) -> Handler[...]:
    """The handler as its worker has it, of the same function."""
    return declare(klass=klass)(place.function)
