"""A process of the pool, from inside. Its main thread performs jobs, one at a time; another listens
to the worker.

When the worker is gone, so is the process at once, with all that its job has started: the job runs
elsewhere when its lock expires."""

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
import traceback
from collections.abc import Callable, Coroutine, Iterator, Sequence
from typing import Any, NoReturn

from aioqless import log, signals
from aioqless.client.job import Job
from aioqless.handlers import Handler
from aioqless.handlers import job as declare
from aioqless.worker.executors.context_vars import unpack
from aioqless.worker.executors.ipc import LENGTH, Order, Place, Stop, failure_of, result_of


def main(descriptor: int, logging: dict[str, Any] | None, modules: Sequence[str]) -> None:
    """Perform what comes through the socket until it is closed."""
    # A service's stop may reach all of its processes: the worker decides what that means. Not
    # SIG_IGN, which programs that handlers start would inherit.
    for number in (signal.SIGINT, signal.SIGTERM):
        signals.handle(number, lambda *_: None)
    os.set_inheritable(descriptor, False)
    if logging is not None:
        log.write_to(**logging)
    process = Process(socket.socket(fileno=descriptor))
    try:
        threading.Thread(target=process.listen, name="aioqless listener", daemon=True).start()
        for module in modules:
            with contextlib.suppress(Exception):  # the job that needs it fails by it
                importlib.import_module(module)
        process.send(result_of(None, None))  # ready
        process.work()
    except BaseException as error:
        _exit(error)


def _exit(error: BaseException) -> NoReturn:
    """End the process at once, so that the worker notices: its job can't be reported. An orderly
    exit might wait for other threads."""
    try:
        if not isinstance(
            error, ConnectionError
        ):  # else the worker has ended, and nothing reads it
            traceback.print_exception(error)
    finally:
        os._exit(1)


class Process:
    """Owns the socket and the job that runs."""

    def __init__(self, worker: socket.socket) -> None:
        self._pid = os.getpid()
        self._worker = worker
        self._socket = os.fstat(worker.fileno())
        self._orders: queue.SimpleQueue[Order | None] = queue.SimpleQueue()
        self._job: Job | None = None
        self._cancel: Callable[[], object] | None = None  # how to cancel a coroutine that runs
        self._runner = asyncio.Runner()

    def listen(self) -> None:
        """Take what the worker sends, until it is gone."""
        parcels = self._worker.makefile(
            "rb"
        )  # never closed by another thread, which would wait for this one to have read
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
                if (
                    os.getpid() != self._pid
                    # a copy that the handler forked and that came back from it: the job isn't its
                    # own
                ):
                    os._exit(1)
                self._job = None
                self.send(answer)

    def send(self, answer: bytes) -> None:
        """Send an answer to the worker. Raises OSError when the worker is gone or the handler has
        closed the socket."""
        if not os.path.samestat(self._socket, os.fstat(self._worker.fileno())):
            raise OSError(
                "the handler closed the socket to the worker, whose number is another file's by now"
            )
        self._worker.sendall(answer)

    def _answer(self, order: Order) -> bytes:
        job = order.job
        try:
            unpack(order.variables)
            call, arguments = _handler(order.place, job.klass).bound(job)
            result = call(job, **arguments)
            if inspect.iscoroutine(result):
                result = self._runner.run(
                    self._cancellable(job, result), context=contextvars.copy_context()
                )
            return result_of(result, job.changed_data())
        except BaseException as error:  # SystemExit too: it is the job's end, not the process'
            return failure_of(error)

    async def _cancellable(self, job: Job, call: Coroutine[Any, Any, Any]) -> Any:
        """On a loop of the process' own. The worker's word may come before there is anything to
        cancel."""
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
