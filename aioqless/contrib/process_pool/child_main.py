"""A process of the pool, from inside.

Its main thread performs jobs, one at a time; another listens to the worker. When the worker is
gone, the process exits at once, with all that its job has started: the job runs elsewhere when its
lock expires.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import functools
import inspect
import math
import os
import pickle
import queue
import signal
import socket
import sys
import threading
import traceback
from collections.abc import Callable, Coroutine, Iterator, Sequence
from typing import NoReturn

from aioqless.client import job_data
from aioqless.client.job import Job, JobRun
from aioqless.client.job.decoding import JobFields
from aioqless.contrib.process_pool.context_vars import unpack
from aioqless.contrib.process_pool.ipc import (
    LENGTH,
    Emission,
    FunctionRef,
    JobReply,
    JobRequest,
    LockRenewed,
    ProgressReport,
    StopRequest,
    frame,
    reply_with_error,
    reply_with_result,
)
from aioqless.errors import InvalidData
from aioqless.handlers import Handler
from aioqless.handlers import bulk_job as declare_bulk
from aioqless.handlers import job as declare
from aioqless.handlers.results import Next, Retry, Snooze, Throttled
from aioqless.runtime import log, os_signals
from aioqless.store import current_lock
from aioqless.worker.outcome import check_returned, encode_result

PR_SET_PDEATHSIG = 1


def main(descriptor: int, logging: log.LogOptions | None, functions: bytes) -> None:
    """Load functions, and perform the jobs that come through the socket until it is closed."""
    # A stop of the service may signal all of its processes: the worker decides what that means. Not
    # SIG_IGN, which programs that handlers start would inherit.
    for number in (signal.SIGINT, signal.SIGTERM):
        os_signals.handle(number, lambda *_: None)
    os.set_inheritable(descriptor, False)
    if sys.platform == "linux":
        _continue_when_worker_dies()
    if logging is not None:
        log.write_to(**logging)
    process = Process(socket.socket(fileno=descriptor))
    try:
        threading.Thread(target=process.listen, name="aioqless listener", daemon=True).start()
        for function in pickle.loads(functions):
            with contextlib.suppress(Exception):  # the job that needs it will fail
                function.load()
        process.send(reply_with_result(None, ()))  # ready
        process.work()
    except BaseException as error:
        _exit(error)


def _continue_when_worker_dies() -> None:
    """Have the kernel send SIGCONT then: a stopped process would not notice it, and stay for ever.

    Not SIGKILL, which would come before `listen` has killed what the job has started.
    """
    with contextlib.suppress(ImportError):
        import ctypes  # an interpreter may be built without it

        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, ctypes.c_ulong(signal.SIGCONT))


def _exit(error: BaseException) -> NoReturn:
    """Exit at once, so that the worker notices: the job's end can't be reported.

    A regular exit might wait for other threads.
    """
    try:
        if not isinstance(error, ConnectionError):  # else the worker has ended: nothing reads it
            traceback.print_exception(error)
    finally:
        os._exit(1)


class Output:
    """Sends what a job emits, and its progress, to the worker."""

    def __init__(self, run: JobRun, send: Callable[[bytes], object]) -> None:
        self._jid, self._max_data = run.fields.jid, run.max_data
        self._send = send

    def emit(self, value: object) -> None:
        """Send a value."""
        try:
            text = b"false" if value is False else job_data.encode(value, self._max_data)
        except InvalidData as wrong:
            log.log.warning("job.output_refused", jid=self._jid, error=str(wrong))
        else:
            self._send(frame(Emission(self._jid, text)))

    def report(self, job: JobFields, share: float, message: str) -> None:
        """Send how much of the job is done."""
        self._send(frame(ProgressReport(job.jid, share, message)))

    async def flush(self) -> None:
        """Do nothing: all is sent at once."""


class RunningLock:
    """The lock of the running job, for the calls that its handler makes."""

    def __init__(self, runs: Sequence[JobRun], deadline: float) -> None:
        self._runs = runs
        self.until = deadline  # by time.monotonic; the worker renews it
        self.lost = False

    def deadline(self) -> float:
        """Return until when it lasts at least; -inf if the run is to end."""
        return -math.inf if self._runs[0].stopped else self.until

    def lose(self) -> None:
        """Note that the run is to end."""
        self.lost = True


class Process:
    """Owns the socket and the running job."""

    def __init__(self, worker: socket.socket) -> None:
        self._pid = os.getpid()
        self._worker = worker
        self._socket = os.fstat(worker.fileno())
        self._requests: queue.SimpleQueue[JobRequest | None] = queue.SimpleQueue()
        self._runs: Sequence[JobRun] = ()
        self._lock = RunningLock((), 0.0)
        self._cancel: Callable[[], object] | None = None  # how to cancel a coroutine that runs
        self._runner = asyncio.Runner()
        self._sending = threading.Lock()  # threads of a job may emit, too

    def listen(self) -> None:
        """Read what the worker sends, until it is gone."""
        # Never closed by another thread, which would wait for this one to have read.
        messages = self._worker.makefile("rb")
        with self._until_gone():
            while length := messages.read(LENGTH.size):
                match pickle.loads(messages.read(LENGTH.unpack(length)[0])):
                    case JobRequest(runs=runs) as request:
                        self._runs = runs
                        self._lock = RunningLock(runs, request.deadline)
                        self._requests.put(request)
                    case LockRenewed(deadline):
                        self._lock.until = deadline
                    case StopRequest(reason) if self._runs:
                        for run in self._runs:
                            run.stop(reason)
                        if self._cancel:
                            self._cancel()

    @contextlib.contextmanager
    def _until_gone(self) -> Iterator[None]:
        try:
            with contextlib.suppress(OSError):
                yield
        finally:
            if self._runs:
                os.killpg(0, signal.SIGKILL)
            self._requests.put(None)

    def work(self) -> None:
        """Perform one job after another."""
        with self._runner:
            while request := self._requests.get():
                reply = contextvars.Context().run(self._perform, request)
                if self._lock.lost:
                    reply = frame(JobReply(lost=True))
                if os.getpid() != self._pid:  # a fork of the handler, which returned from it
                    os._exit(1)
                self._runs = ()
                self.send(reply)

    def send(self, reply: bytes) -> None:
        """Send a reply to the worker.

        Raises:
            OSError: The worker is gone, or the handler has closed the socket.
        """
        if not os.path.samestat(self._socket, os.fstat(self._worker.fileno())):
            raise OSError(
                "the handler closed the socket to the worker; its descriptor is another file now"
            )
        with self._sending:
            self._worker.sendall(reply)

    def _perform(self, request: JobRequest) -> bytes:
        runs, first = request.runs, request.runs[0]
        try:
            current_lock.set(self._lock)
            unpack(request.variables)
            handler = _handler(request.function, first.fields.klass, request.is_bulk)
            for each in runs:
                output = Output(each, self.send)
                each.attach(output, output)
                call, arguments = handler.bind(each)
            jobs = [Job(each) for each in runs]
            job = jobs[0]
            result = call(jobs) if request.is_bulk else call(job, **arguments)
            if inspect.iscoroutine(result):
                result = self._runner.run(
                    self._cancellable(first, result), context=contextvars.copy_context()
                )
            if not request.is_bulk:
                check_returned(job, result)
            reply = reply_with_result(result, [each.changed_data() for each in runs])
            # One that is too large to be sent can't be stored.
            is_stored = request.stores_result and not (request.is_bulk or isinstance(result, Next))
            if is_stored and len(reply) > first.max_data:
                encode_result(result, first.max_data)
            return reply
        except (Retry, Snooze, Throttled) as error:
            try:
                return reply_with_error(error, [each.changed_data() for each in runs])
            except BaseException as wrong:  # a value in the data may raise anything
                return reply_with_error(wrong)
        except BaseException as error:  # SystemExit too: it ends the job, not the process
            return reply_with_error(error)

    async def _cancellable(self, run: JobRun, call: Coroutine[object, None, object]) -> object:
        """Run a coroutine that the worker may stop, perhaps before there is a task to cancel."""
        task = asyncio.ensure_future(call)
        loop = asyncio.get_running_loop()
        self._cancel = lambda: loop.call_soon_threadsafe(task.cancel)
        if run.stopped:
            task.cancel()
        try:
            return await task
        finally:
            self._cancel = None


@functools.cache
def _handler(function: FunctionRef, klass: str, is_bulk: bool) -> Handler[...]:
    """Return the handler as its worker has it, of the same function."""
    if is_bulk:
        return declare_bulk(klass=klass)(function.load())  # type: ignore[arg-type]
    return declare(klass=klass)(function.load())
