"""Run a handler without Redis."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent import futures
from contextvars import copy_context
from dataclasses import asdict, dataclass, replace
from queue import SimpleQueue
from types import MappingProxyType
from typing import Any, TypeAlias, cast

from aioqless.client import job_data, json_types
from aioqless.client.codec import PlainCodec
from aioqless.client.job import Failure, Job, JobRun
from aioqless.client.job.backend import JobBackend, RunContext
from aioqless.client.job.decoding import JobFields, decode_record
from aioqless.client.new_job import NewJob, encode_job
from aioqless.errors import AioqlessError, JobFailed
from aioqless.handlers import Handler, Handlers, Middleware, MiddlewareStack, Resources
from aioqless.handlers.retry_policy import NEVER, RetryPolicy
from aioqless.lua import constant, exhausted_group
from aioqless.redis.encoding import decode_text
from aioqless.store import Call, OfflineStore
from aioqless.store.call import T, encode
from aioqless.testing.unawaited import refuse_unawaited
from aioqless.worker.failures import describe_exhausted
from aioqless.worker.outcome import (
    FAIL_UNKNOWN,
    Outcome,
    RunFailed,
    RunRetried,
    outcome_of,
    record_error,
    record_result,
)
from aioqless.worker.runner import perform as call_handler
from aioqless.worker.running_jobs import Bulk, Run
from aioqless.worker.thread_pool import Ended, ThreadPool, run_call

LOCK = 60.0
_Resources: TypeAlias = Mapping[Any, Any]  # by type
STORED = ("step", "received", "slept", "called")  # kinds of steps that may have a value


@dataclass(frozen=True)
class Performed:
    """How a run ended.

    Attributes:
        outcome: What a worker would have stored: RunCompleted, RunRetried, RunFailed (also for a
            retry when none remains) or RunReleased; None if the handler itself completed, failed,
            retried or released the job.
        result: What the handler returned.
        error: What it raised.
        job: The job, with the data as it left it.
        commands: The commands that it sent, with their arguments.
        output: What it emitted.
    """

    outcome: Outcome | None
    result: Any
    error: BaseException | None
    job: Job
    commands: list[tuple[str, dict[str, object]]]
    output: list[Any]


class _Output:
    """Keeps what a handler emits."""

    def __init__(self) -> None:
        self.values: list[object] = []

    def emit(self, value: object) -> None:
        """Keep a value, as JSON has it; raises InvalidData if JSON has no such value."""
        text = b"false" if value is False else job_data.encode(value)
        self.values.append(job_data.decode(text.decode()))

    async def flush(self) -> None:
        """Do nothing."""


class _LockOnlyStore(OfflineStore):
    """Answers what a handler's job may ask of its lock; refuses whatever else would need Redis."""

    def __init__(self, remaining: int, steps: Mapping[str, object]) -> None:
        self._remaining = remaining
        self._steps = [
            text
            for name, value in steps.items()
            for kind in (("called",) if isinstance(value, JobFailed) else STORED)
            for text in (f"{kind}:{name}", f"1 0 1 {_encode_step(kind, value)}")
        ]
        self.commands: list[tuple[str, dict[str, object]]] = []

    def heartbeat(self, **arguments: object) -> Call[float]:
        """Note it."""
        return self._note("heartbeat", arguments, time.time() + LOCK)

    def complete(self, **arguments: object) -> Call[str]:
        """Note it."""
        return self._note("complete", arguments, "complete")

    def fail(self, **arguments: object) -> Call[str]:
        """Note it."""
        return self._note("fail", arguments, "")

    def retry(self, **arguments: object) -> Call[int]:
        """Note it."""
        return self._note("retry", arguments, self._remaining - 1)

    def release(self, **arguments: object) -> Call[str]:
        """Note it."""
        return self._note("release", arguments, "waiting")

    def charge(self, **arguments: object) -> Call[int]:
        """Note it."""
        return self._note("charge", arguments, 1)

    def log(self, **arguments: object) -> Call[None]:
        """Note it."""
        return self._note("log", arguments, None)

    def _note(self, command: str, arguments: dict[str, object], reply: T) -> Call[T]:
        """Return a call that notes a command of the holder of a lock when it is sent."""
        given = {name: value for name, value in arguments.items() if value is not None}

        async def answer(_: Call[T]) -> T:
            self.commands.append((command, given))
            return reply

        return Call(answer, command, lambda _: reply, [], [])

    async def send(self, call: Call[T]) -> T:
        """Note a step, and refuse a command that asks for anything else."""
        if call.command == "steps":
            return cast(T, self._steps)
        if call.command == "call":
            name, child = (decode_text(each) for each in call.argv[3:5])
            self.commands.append(("call", {"name": name, "child": job_data.decode(child)}))
            return cast(T, ["call", "-"])
        if call.command == "wait":
            kind, name, timeout = (decode_text(each) for each in call.argv[3:6])
            self.commands.append(("wait", {"kind": kind, "name": name}))
            return cast(T, [kind, timeout])
        if call.command == "step":
            _, _, _, kind, name, result, *_ = (decode_text(each) for each in call.argv)
            self.commands.append(("step", {"kind": kind, "name": name, "result": result}))
            return call.read(b"")
        raise AioqlessError(
            f"perform() can't run {call.command}, which needs Redis: use a client of the fixture "
            "aioqless_client"
        )

    def report(self, job: JobFields, share: float, message: str) -> None:
        """Record progress."""
        del job  # there is one
        self.commands.append(("progress", {"share": share, "message": message}))


async def perform(
    new: NewJob,
    *,
    resources: _Resources = MappingProxyType({}),
    middleware: Sequence[Middleware] = (),
    retry: RetryPolicy = NEVER,
    steps: Mapping[str, object] = MappingProxyType({}),
    **fields: object,
) -> Performed:
    """Run one job without Redis, given as `resize.data(path="a.png")`.

    What the handler raises is not raised, but is in `error` and decides the outcome. The job has
    the handler's queue, priority, tags and retries.

    Args:
        new: The job, for a handler.
        resources: Values by type, which are injected; a `Failure` is what the job was put for.
        middleware: Middleware around the handler, the outermost first.
        retry: Retry policy for handlers without one of their own.
        steps: What earlier runs have stored, by name of the step.
        **fields: Fields of the job, instead of the handler's: queue, retries, remaining, tags, ...

    Raises:
        TypeError: The job is not for a handler.
        InvalidData: The handler does not take the data.
        AioqlessError: A resource is missing, or the handler forgot an `await`.
    """
    threads = ThreadPool()
    started = _start(new, fields, steps, resources, threads)
    return (await _perform([started], resources, middleware, retry, threads))[0]


def perform_sync(
    new: NewJob,
    *,
    resources: _Resources = MappingProxyType({}),
    middleware: Sequence[Middleware] = (),
    retry: RetryPolicy = NEVER,
    steps: Mapping[str, object] = MappingProxyType({}),
    **fields: object,
) -> Performed:
    """Run one job as `perform` does, for tests that are no coroutines.

    A plain function runs on the calling thread, with its database connections and context
    variables; coroutines run on an event loop in another thread.

    Args:
        new: The job, for a handler.
        resources: As for `perform`.
        middleware: As for `perform`.
        retry: As for `perform`.
        steps: As for `perform`.
        **fields: As for `perform`.

    Raises:
        RuntimeError: The caller is on an event loop.
        TypeError, InvalidData, AioqlessError: As for `perform`.
    """
    if _is_on_loop():
        raise RuntimeError("perform_sync would block this event loop: write `await perform(...)`")
    calls: SimpleQueue[Callable[[], object] | None] = SimpleQueue()

    async def run_here(call: Callable[[], object]) -> Ended:
        ended: futures.Future[Ended] = futures.Future()
        context = copy_context()
        calls.put(lambda: ended.set_result(context.run(run_call, call)))
        return await asyncio.wrap_future(ended)

    async def run() -> Performed:
        threads = ThreadPool(run=run_here)
        started = _start(new, fields, steps, resources, threads)
        return (await _perform([started], resources, middleware, retry, threads))[0]

    with futures.ThreadPoolExecutor(1) as thread:
        performed = thread.submit(copy_context().run, asyncio.run, run())
        performed.add_done_callback(lambda _: calls.put(None))
        while (call := calls.get()) is not None:
            call()
    return performed.result()


def _is_on_loop() -> bool:
    """Return whether an event loop runs in this thread."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


async def perform_bulk(
    new: Sequence[NewJob],
    *,
    resources: _Resources = MappingProxyType({}),
    middleware: Sequence[Middleware] = (),
    retry: RetryPolicy = NEVER,
    **fields: object,
) -> list[Performed]:
    """Run the jobs of a bulk handler together without Redis, as `perform` runs one.

    Args:
        new: The jobs, for one handler.
        resources: Values by type, which are injected.
        middleware: Middleware around each job, the outermost first.
        retry: Retry policy for handlers without one of their own.
        **fields: Fields of all jobs, instead of the handler's.

    Returns:
        How each run ended.

    Raises:
        TypeError, InvalidData, AioqlessError: As for `perform`; or there are several handlers, or
            none for bulks.
    """
    if len({each.klass for each in new if isinstance(each, NewJob)}) != 1:
        raise TypeError(
            "perform_bulk takes a list of jobs of one handler: [handler.data(...), ...]"
        )
    threads = ThreadPool()
    started = [_start(each, fields, {}, {}, threads) for each in new]
    return await _perform(started, resources, middleware, retry, threads)


@dataclass(frozen=True)
class _Started:
    """A run, and what takes its commands and its output."""

    run: Run
    handler: Handler
    store: _LockOnlyStore
    output: _Output


def _start(
    new: NewJob,
    fields: Mapping[str, Any],
    steps: Mapping[str, object],
    resources: _Resources,
    threads: ThreadPool,
) -> _Started:
    """Return the run of a job."""
    if not isinstance(new, NewJob) or not isinstance(new.klass, Handler):
        raise TypeError(f"perform takes a job: `perform(handler.data(...))` (got {new!r})")
    handler = new.klass
    prepared = encode_job(new, job_data.MAX_BYTES)
    retries = fields.get("retries", prepared.get("retries"))
    if retries is None:
        retries = constant("DEFAULT_RETRIES")
    record = {
        "jid": prepared["jid"],
        "klass": prepared["klass"],
        "queue": new.choose_queue(None),
        "state": "running",
        "worker": "test",
        "priority": prepared.get("priority") or 0,
        "tags": prepared.get("tags") or [],
        "remaining": retries,
        "expires": time.time() + LOCK,
        "tracked": False,
        "failure": {},
        "spawned_from_jid": None,
        "fence": 1,
        "data": encode(prepared["data"]).decode(),
        "context": new.options.get("context"),
        "cause": _encode_cause(cast(Failure | None, resources.get(Failure))),
        **fields,
        "retries": retries,
    }
    store = _LockOnlyStore(fields.get("remaining", retries), steps)
    now, output = time.monotonic(), _Output()
    backend = JobBackend(store, PlainCodec(), progress_reporter=store)
    context = RunContext(asyncio.get_running_loop(), lambda: False, threads.call, park_after=0)
    job_run = JobRun(backend, decode_record(record), context, handler, output)
    run = Run(
        job_run,
        started=now,
        lock=LOCK,
        deadline=now + LOCK,
        handler=handler,
        timeout=handler.timeout,
    )
    return _Started(run, handler, store, output)


async def _perform(
    started: Sequence[_Started],
    resources: _Resources,
    middleware: Sequence[Middleware],
    retry: RetryPolicy,
    threads: ThreadPool,
) -> list[Performed]:
    """Let a handler perform runs."""
    handler, bulk = started[0].handler, Bulk()
    handlers = Handlers([handler])
    for each in started:
        if handler.is_bulk:
            bulk.add(each.run)
        elif len(started) > 1:
            raise TypeError(f"{handler.klass} takes one job at a time: use perform")
    available = Resources(available=resources)
    needs = handler.takes.injected
    example = ", ".join(f"{getattr(each, '__name__', each)}: ..." for each in needs.values())
    available.check(
        handler.fn, needs, f"this call has none: pass perform(..., resources={{{example}}})"
    )
    stack = MiddlewareStack(middleware, (), available)

    async def run_one(run: Run) -> None:
        try:
            record_result(run, await call_handler(run, handlers, stack, threads))
        except BaseException as error:
            if issubclass(type(error), KeyboardInterrupt) or _is_canceled(error):  # of the test
                raise
            record_error(run, error)
        finally:
            if handler.is_bulk:
                bulk.leave(run)

    with refuse_unawaited():
        if handler.is_bulk:
            await asyncio.gather(*(run_one(each.run) for each in started))
        else:
            await run_one(started[0].run)
    settings = replace(FAIL_UNKNOWN, retry=retry)
    return [
        Performed(
            _stored(outcome_of(each.run, settings), each.run.job),
            each.run.result,
            each.run.error,
            each.run.job,
            each.store.commands,
            each.output.values,
        )
        for each in started
    ]


def _is_canceled(error: BaseException) -> bool:
    """Return whether an error is the cancellation of the task that performs a job."""
    task = asyncio.current_task()
    return issubclass(type(error), asyncio.CancelledError) and bool(task and task.cancelling())


def _encode_step(kind: str, value: object) -> str:
    if kind != "called":
        ended = value
    elif isinstance(value, JobFailed):
        ended = {"jid": value.jid, "group": value.group, "message": value.traceback}
    else:
        ended = {"jid": "called", "result": value}
    return json_types.encode(ended).decode()


def _encode_cause(failure: Failure | None) -> dict[str, str] | None:
    if failure is None:
        return None
    stored = asdict(replace(failure, data=job_data.encode(failure.data).decode()))
    return {**stored, "message": failure.traceback}


def _stored(outcome: Outcome | None, job: Job) -> Outcome | None:
    """Return what Redis makes of an outcome: a retry when none remains fails the job."""
    if not isinstance(outcome, RunRetried) or job.remaining > 0:
        return outcome
    message = outcome.message if outcome.group else None
    return RunFailed(
        outcome.group or exhausted_group(job.queue),
        message or describe_exhausted(job.queue),
    )
