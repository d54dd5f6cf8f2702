"""Job: a job as it was read, and the methods that change it in Redis."""

from __future__ import annotations

import asyncio
import copy
import dataclasses
import json
import time
from collections.abc import (
    AsyncGenerator,
    Awaitable,
    Callable,
    Coroutine,
    Mapping,
    Sequence,
)
from contextlib import aclosing
from functools import partial
from operator import attrgetter
from typing import (
    Any,
    Generic,
    Literal,
    ParamSpec,
    Self,
    TypeAlias,
    TypedDict,
    cast,
    overload,
)

from typing_extensions import TypeVar

from aioqless import validation
from aioqless.client import extensions, job_data
from aioqless.client.actor import actor
from aioqless.client.codec import Codec
from aioqless.client.constraints import encode_data_keys, name_limit, with_data_keys
from aioqless.client.job.backend import JobBackend, OutputWriter, RunContext
from aioqless.client.job.decoding import JobFields, decode_record
from aioqless.client.job.progress_reporter import Reporter
from aioqless.client.job.state import (
    ENDED,
    Cursor,
    Failure,
    FailureReason,
    HistoryEvent,
    JobDetails,
    JobState,
    Position,
    is_stalled,
    list_stages,
)
from aioqless.client.job.temp_dir import TempDir
from aioqless.client.new_job import Klass, NewJob
from aioqless.client.put_options import Limit, Missing
from aioqless.errors import AioqlessError, InvalidData, JobFailed, NoResult, NoSuchJob
from aioqless.store import Store
from aioqless.validation import Seconds

Data = TypeVar("Data", default=Any)
V = TypeVar("V")
P = ParamSpec("P")
StopReason: TypeAlias = Literal["lost", "shutdown", "timeout", "too late"]

MAX_PROGRESS_MESSAGE = 1_000  # characters
MAX_JIDS_PER_CALL = 1_000
_ANY_SIZE = 1 << 40
EMPTY = b"{}"  # the shape of an empty object
_values = attrgetter(*(field.name for field in dataclasses.fields(JobFields)))


class HeldLock(TypedDict):
    """The arguments by which the holder of a job proves its lock."""

    jid: str
    worker: str
    fence: int | None


class DataChanges(TypedDict):
    """The arguments by which a command stores what a run has made of the data."""

    data: bytes | None
    data_keys: bytes | None


class Job(JobFields, Generic[Data]):
    """A job as it was when it was read; `await job.refresh()` reads it again.

    A handler gets the job that it runs. Its data is stored when the job ends, or by `heartbeat`, if
    the handler changed it.

    Attributes:
        jid: Id of the job.
        klass: Name that selects its handler.
        queue: Name of its queue; empty for a complete job.
        state: Where it is in its lifecycle.
        worker: Name of the worker that holds it; empty if none does.
        priority: Lower runs sooner.
        tags: Tags to find it by.
        retries: Maximum number of retries.
        remaining: Number of retries that are left.
        expires: When the lock expires, in seconds since 1970 by Redis' clock; 0 without one.
        fence: Fencing token, a number that rises with each pop. Pass it to storage of your own to
            reject writes of a run that lost its lock.
        failure: Why it failed last; None if it never did.
        spawned_from: Jid of the recurring job that it is an instance of, if it is one.
        context: Strings by name that travel with it, such as those of a trace.
        expiry: When it must have started, in seconds since 1970; later it fails.
        tracked: Whether its events are published one by one.
        held_back: The limit that keeps it from starting, if one does.
        last_progress: The latest progress that its run reported, if any.
        waited: For how many seconds it could have been running before the worker popped it; None
            if that isn't known: after an expired lock, after a pop that was sent again since its
            reply was lost, and for jobs that weren't popped.
        branch: The queue and klass of the job that its failure puts, if it has one of its own.
        raw_data: The data as Redis has it, byte for byte, perhaps encrypted.
        settled: Whether its run was completed, failed, retried or released.
        stopped: Why the worker wants this run to end: the lock is "lost", "timeout", "shutdown", or
            it is "too late" to start. None while it may continue.
        together: The jobs that its bulk handler was called with, this one among them; empty before
            the call, and for other handlers.
    """

    __slots__ = (
        *("_backend", "_cause", "_context", "_data", "_durable", "_handler"),
        *("_output", "_shape", "_text"),
        *("settled", "stopped", "task", "together"),
    )

    settled: bool
    stopped: StopReason | None
    task: asyncio.Task[Any] | None  # of the handler's coroutine while a worker runs it
    together: Sequence[Job]

    def __init__(self, backend: JobBackend, fields: JobFields) -> None:
        """Make a job of what Redis returned; `client.jobs.get` and `queue.pop` do."""
        self._backend = backend
        self._context: RunContext | None = None
        self._handler: Klass | None = None
        self._durable: Any = None  # the steps and cursors of this run, if it uses any
        self._output: OutputWriter | None = None  # of this run, if it emits anything
        self.settled = False
        self.stopped = None
        self.task = None
        self.together = ()
        self._load(fields)

    def _load(self, fields: JobFields) -> None:
        super().__init__(*_values(fields))
        self._cause: Failure | None = None
        self._text: str | None = None  # the decrypted JSON text of the data
        self._data: Any = job_data.Unread
        self._shape: bytes | None = None  # of the value that a handler's type made of the text

    # Data

    @property
    def data(self) -> Data:
        """The job's data.

        Raises:
            InvalidData: It is not JSON.
        """
        if self._data is job_data.Unread:
            self._data = {} if self._shape == EMPTY else job_data.decode(self.text)
        return cast(Data, self._data)

    @data.setter
    def data(self, value: Data) -> None:
        self._data = value
        self._shape = None

    def read_as(self, value: Data) -> None:
        """Set the value that a handler's type made of the stored data; it counts as unchanged."""
        self._data = value
        self._shape = job_data.shape(value)

    def read_as_empty(self) -> None:
        """Let data that was put as none be an empty object, in which a handler can set keys."""
        self._shape = EMPTY

    @property
    def text(self) -> str:
        """The data as JSON, decrypted if it is encrypted.

        Raises:
            DecryptionError: It can't be decrypted.
        """
        if self._text is None:
            self._text = self._backend.codec.decode(self.raw_data, self.klass)
        return self._text

    @property
    def cause(self) -> Failure | None:
        """The failure that it was put for, by `on_failure`; None for other jobs.

        Raises:
            DecryptionError: The failed job's data can't be decrypted.
        """
        if self._cause is None and self.raw_cause:
            self._cause = read_failure(self._backend.codec, self.raw_cause)
        return self._cause

    @property
    def max_data(self) -> int:
        """Maximum size of the data, in bytes."""
        return self._backend.max_data

    def changed_data(self) -> bytes | None:
        """Return the data in the form that is stored, or None if it has not changed.

        Keys that the handler's type does not know are kept.

        Raises:
            InvalidData: It can't be encoded.
        """
        text = self._changed_text()
        return None if text is None else self._backend.codec.encode(text, self.klass)

    def changed_keys(self) -> bytes | None:
        """Return what its keys and costs are made of the changed data, as the scripts take it.

        Returns:
            None if the data has not changed, or no key is made of it.

        Raises:
            InvalidData: The data can't be encoded, or lacks a field that a key is made of.
        """
        if self.constraints is None or (text := self._changed_text()) is None:
            return None
        return self.keys_with(text)

    def keys_with(self, text: bytes) -> bytes | None:
        """Return what its keys and costs are made of data, as the scripts take it.

        Args:
            text: The data as JSON.

        Returns:
            None if none is made of data.

        Raises:
            InvalidData: The data lacks a field that a key is made of.
        """
        if self.constraints is None:
            return None
        after = partial(self._read_fields, text)
        return encode_data_keys(self.constraints, self.klass, self._read_own_fields, after)

    def constraints_of_copy(self, text: bytes) -> bytes | None:
        """Return the constraints that a copy of the job has with other data, as put takes them.

        It is a member of no set or workflow, and no put of a debounced job.

        Args:
            text: The data as JSON.

        Raises:
            InvalidData: The data lacks a field that a key is made of.
        """
        if self.constraints is None:
            return None
        own = with_data_keys(self.constraints, self.keys_with(text))
        for name in ("set", "takes", "taken", "debounce", "debounce_max"):
            own.pop(name, None)
        return json.dumps(own).encode() if own else None

    def _changed_text(self) -> bytes | None:
        if self._data is job_data.Unread:
            return None
        shape = job_data.shape(self._data)
        if shape is not None and shape == (self._shape or job_data.shape_of(self.text)):
            return None
        text = job_data.encode(self._data, self.max_data)
        if self._shape is not None:
            text = job_data.encode(job_data.merge(self.text, self._shape, text), self.max_data)
        return text

    def _read_fields(self, text: bytes) -> Mapping[str, object]:
        read = self._handler.values if self._handler else job_data.decode_fields
        return read(text)

    def _read_own_fields(self) -> Mapping[str, object]:
        return self._read_fields(self.text.encode("utf-8", "surrogateescape"))

    def encode_result(self, text: bytes) -> bytes:
        """Return the JSON of a handler's result in the form in which it is stored."""
        return self._backend.codec.encode_result(text, self.jid)

    # Details

    @property
    def details(self) -> JobDetails:
        """Events, dependencies and dependents with their totals.

        Raises:
            AioqlessError: The job was popped by a worker, which reads no details.
        """
        if self._details is None:
            raise AioqlessError(
                f"job {self.jid} came without its details, to save time: "
                "`await job.refresh()` reads them"
            )
        return self._details

    @property
    def events(self) -> list[HistoryEvent]:
        """What happened to the job, oldest first: dicts with `when`, `what` and more.

        A handler's job has them after `refresh`.
        """
        return self.details.events

    @property
    def history(self) -> list[HistoryEvent]:
        """The stages that the job went through, as other qless clients have them.

        Each is a dict of `q`, `put`, `popped`, `worker`, `failed` and `done`.
        """
        return list_stages(self.details.events)

    @property
    def dependencies(self) -> list[str]:
        """The jids of jobs that it waits for, in no particular order."""
        return self.details.dependencies

    @property
    def dependents(self) -> list[str]:
        """The jids of jobs that wait for it, in no particular order."""
        return self.details.dependents

    @property
    def last_queue(self) -> str:
        """The queue that it is in; for a complete job, the last that it was in."""
        stages = reversed(self.history) if not self.queue else ()
        return self.queue or next((str(stage["q"]) for stage in stages if stage.get("q")), "")

    @property
    def is_stalled(self) -> bool:
        """Whether it runs and its lock has expired."""
        return is_stalled(self.state, self.expires)

    async def refresh(self) -> Self:
        """Read the job again, with its details, and return it.

        Raises:
            NoSuchJob: It was canceled, or has expired.
        """
        was_empty = self._shape == EMPTY
        self._load(await read_job(self._backend, self.jid))
        if was_empty and self.text == "null":
            self.read_as_empty()
        return self

    # Waiting

    async def wait(self, timeout: Seconds | None = None) -> Self:
        """Wait until the job is complete or failed, and read it again.

        It is notified by events, without polling. A job that moves on to another queue, runs again
        or waits for its retry has not ended yet. In a handler this keeps a slot busy: let jobs
        depend on each other instead.

        Args:
            timeout: Seconds to wait at most.

        Raises:
            TimeoutError: It has not ended in time.
            NoSuchJob: It was canceled.
        """
        return await self._backend.watcher.wait_for_end(self.jid, self._read_end, timeout)

    async def follow(self) -> AsyncGenerator[Self, None]:
        """Yield the job now and whenever it has changed, until it is complete or failed.

        Example:
            async for job in job.follow():
                print(job.state, job.last_progress)

        It is notified by events. Changes that come faster than they are read are seen together. The
        start of a run is seen with its first progress.

        Raises:
            NoSuchJob: It was canceled.
        """
        watcher = self._backend.watcher
        async with aclosing(watcher.watch(self.jid, self.refresh, every_event=True)) as readings:
            async for job in readings:
                yield job
                if job.state in ENDED:
                    return

    async def outcome(self, timeout: Seconds | None = None) -> Any:
        """Wait for the end of the job, and return its handler's result.

        Args:
            timeout: Seconds to wait at most.

        Raises:
            JobFailed: It failed.
            NoResult: Its handler keeps no results.
            TimeoutError: It has not ended in time.
            NoSuchJob: It was canceled.
        """
        return await wait_for_outcome(self._backend, self.jid, timeout)

    async def _read_end(self) -> Self | None:
        """Read the job again if it has ended; else return None, and leave it as it is."""
        found = await read_job(self._backend, self.jid)
        if found.state not in ENDED:
            return None
        self._load(found)
        return self

    async def result(self) -> Any:
        """Return the result of a complete job whose handler has `@job(result_ttl=seconds)`.

        Raises:
            JobFailed: It failed.
            NoResult: It is not complete, or no result is kept; `state` tells which.
            DecryptionError: The result can't be decrypted.
        """
        return await read_result(self._backend, self.jid)

    async def results(self) -> dict[str, Any]:
        """Return the results of the jobs that it was last put to depend on, by jid.

        Jobs whose handlers keep no results are left out.

        Raises:
            DecryptionError: A result can't be decrypted.
        """
        return (await self._read_results())[0]

    async def _read_results(self) -> tuple[dict[str, job_data.Json], Mapping[str, float]]:
        """Return the results of its dependencies by jid, and the jids of its arguments."""
        results: dict[str, job_data.Json] = {}
        start: int | None = 0
        while start is not None:
            page = await self._store.dependency_results(jid=self.jid, start=start)
            results |= {
                jid: self._backend.codec.decode_result(stored, jid)
                for jid, stored in page["results"].items()
            }
            start = page["next"]
        return results, page["takes"] or {}

    async def fill_results(self) -> None:
        """Put the results that it takes into the data that its handler gets; workers call it.

        Raises:
            DecryptionError: A result can't be decrypted.
            InvalidData: A result is not there.
        """
        results, takes = await self._read_results()
        filling = {jid: results[jid] for jid in takes if jid in results}
        for jid in takes.keys() - filling.keys():
            failure = next(iter((await self._find_failures([jid])).values()), None)
            if failure is None and (await self._store.states(jids=[jid]))[0]:
                raise InvalidData(f"the result of job {jid}, which it takes, is not there")
            failure = failure or Failure(jid, "", "canceled", "the job was canceled", None)
            filling[jid] = {job_data.FAILURE: dataclasses.asdict(failure)}
        if takes:
            filled = job_data.fill(job_data.decode(self.text), filling)
            self._text = job_data.encode(filled, _ANY_SIZE).decode()

    async def failures(self) -> dict[str, Failure]:
        """Return the failures among the jobs that it was last put to depend on, by jid.

        If one of them is held by a failed job, directly or through others, that one is included.

        Raises:
            DecryptionError: The data of a failed job can't be decrypted.
        """
        page = await self._store.dependency_failures(jids=[self.jid], after="yes")
        return await self._find_failures(page["more"])

    async def _find_failures(self, jids: list[str]) -> dict[str, Failure]:
        found: dict[str, Failure] = {}
        met = set(jids)
        while jids:
            page = await self._store.dependency_failures(jids=jids[:MAX_JIDS_PER_CALL])
            for each in page["failures"]:
                found[each["jid"]] = read_failure(self._backend.codec, each)
            more = [jid for jid in dict.fromkeys(page["more"]) if jid not in met]
            jids = jids[page["done"] :] + more
            met.update(more)
        return found

    # Methods for the run that holds the job

    @property
    def _held(self) -> HeldLock:
        return {"jid": self.jid, "worker": self.worker, "fence": self.fence or None}

    @property
    def _changes(self) -> DataChanges:
        return {"data": self.changed_data(), "data_keys": self.changed_keys()}

    def progress(self, share: float, message: str = "") -> None:
        """Report progress. It is stored with the job, published as an event, and renews the lock.

        Returns at once, in coroutines, threads and processes. Of reports that come faster than ten
        per second, the latest is sent.

        Args:
            share: How much is done, from 0 to 1.
            message: What is being done; cut after 1,000 characters.

        Raises:
            ValueError: `share` is not from 0 to 1.
        """
        if validation.check_number("share", share, least=0) > 1:
            raise ValueError(f"share must be from 0 to 1 (got {share!r})")
        text = validation.to_text(message)[:MAX_PROGRESS_MESSAGE]
        self._backend.reporter.report(self, share, text)

    def emit(self, value: object) -> None:
        """Append a value to the job's output, which `client.jobs.output(jid)` reads.

        Returns at once, in coroutines, threads and processes, and never fails: values are sent
        together, some 20 times a second. While Redis is unavailable, 1 MiB of a run is kept. What
        is dropped beyond, and what isn't JSON, is counted and logged.

        Args:
            value: Any value that JSON has.

        Raises:
            AioqlessError: No worker runs the job.
        """
        if self._output is None:
            self._output = extensions.load("output").open_output(
                self, self._backend, self._context, self._handler
            )
        assert self._output is not None
        self._output.emit(value)

    async def flush_output(self) -> None:
        """Wait until what this run has emitted is sent; `complete`, `fail`, ... do that first."""
        if self._output is not None:
            await self._output.flush()

    @property
    def has_output(self) -> bool:
        """Whether this run has emitted anything."""
        return self._output is not None

    def emit_to(self, writer: OutputWriter) -> None:
        """Set what takes the output of this run; default: Redis."""
        self._output = writer

    def report_to(self, reporter: Reporter) -> None:
        """Set what takes the progress of this run; default: Redis."""
        self._backend = dataclasses.replace(self._backend, progress_reporter=reporter)

    def charge(self, limit: Limit, used: float) -> Coroutine[object, object, bool]:
        """Correct what the start of this run costs of a limit, such as to the tokens it has used.

        May be called again; the last amount counts. It may be more than the limit, which then
        admits less until it is over. In a handler that is a plain function, the value itself is
        returned.

        Args:
            limit: A limit of the job that has a `cost`.
            used: What the run has used, from 0.

        Returns:
            Whether the start still counts; False if the period is over.

        Raises:
            LockLost: Another run holds the job.
            ValueError: `used` is less than 0.
            WrongState: It does not run, or has no such limit with a cost.
        """
        validation.check_number("used", used, least=0)
        charge = self._charge(self.key_of(limit), used)
        if self._context is None or self._context.is_on_loop():
            return charge
        return cast(Coroutine[object, object, bool], self._context.wait(charge))

    async def _charge(self, key: str, used: float) -> bool:
        return bool(await self._store.charge(**self._held, key=key, used=used))

    def key_of(self, limit: Limit) -> str:
        """Return the key that a limit has for this job, as Redis has it.

        Raises:
            InvalidData: The data lacks a field of the key.
        """
        return name_limit(limit, self.klass, self._read_own_fields)

    async def heartbeat(self) -> float:
        """Renew the lock, and store the data if it has changed.

        Returns:
            When the lock expires, in seconds since 1970.

        Raises:
            LockLost: Another run holds the job.
            WrongState: It does not run.
        """
        text, keys = self.changed_data(), self.changed_keys()
        self.expires = await self._store.heartbeat(**self._held, data=text, data_keys=keys)
        if text is not None:
            if self.constraints is not None and keys is not None:
                self.constraints = json.dumps(with_data_keys(self.constraints, keys))
            self.raw_data, self._text = text.decode(), None
            self._shape = job_data.shape(self._data) if self._shape is not None else None
        return self.expires

    async def complete(
        self,
        next: str | None = None,
        *,
        delay: Seconds | None = None,
        depends: Sequence[str] | None = None,
    ) -> str:
        """Complete the job, or move it on to another queue.

        Args:
            next: Queue to move it to.
            delay: With `next`: seconds until it may run there.
            depends: With `next`: jids of jobs to wait for there.

        Returns:
            The state of the job.

        Raises:
            LockLost: Another run holds the job.
            WrongState: It does not run.
        """
        await self.flush_output()
        state = await self._store.complete(
            **self._held,
            queue=self.queue,
            **self._changes,
            next=next,
            delay=None if delay is None else validation.check_seconds("delay", delay),
            depends=depends,
            durable="1" if self.is_durable else None,
        )
        self.settled = True
        return state

    async def fail(self, message: str, *, group: str | None = None) -> None:
        """Fail the job. A job that does not run may be failed by any client.

        Args:
            message: What went wrong; cut after 16 KiB.
            group: Failure group, such as "mail-SMTPError"; default: `<queue>-Fail`.

        Raises:
            LockLost: Another run holds the job.
            WrongState: It is complete or failed.
        """
        await self.flush_output()
        group = group or validation.fit_name(f"{self.queue}-Fail")
        text = validation.limit_message(message)
        await self._store.fail(**self._held, group=group, message=text, **self._changes)
        self.settled = True

    async def retry(
        self, message: str | None = None, *, delay: Seconds = 0, group: str | None = None
    ) -> int:
        """End the run, and run the job again; without any retry left it fails.

        Data that the run changed is stored. A failed job is put back by `client.jobs.retry(jid)`.

        Args:
            message: Why, kept with the job if there is a group.
            delay: Seconds until it may run.
            group: Failure group, kept with the job.

        Returns:
            How many retries are left; negative if none was and the job has failed. As many as there
            were if it is complete instead, since another job runs with a later put (`debounce`).

        Raises:
            LockLost: Another run holds the job.
            WrongState: It does not run.
        """
        seconds = validation.check_seconds("delay", delay)
        await self.flush_output()
        remaining = await self._store.retry(
            **self._held,
            queue=self.queue,
            delay=seconds,
            group=group,
            message=None if message is None else validation.limit_message(message),
            **self._changes,
        )
        self.settled = True
        return int(remaining)

    async def release(self, delay: Seconds = 0) -> str:
        """Give the job back to its place in the queue, unfinished. This uses no retry.

        Data that the run changed is stored.

        Args:
            delay: Seconds until it may run.

        Returns:
            The state of the job.

        Raises:
            LockLost: Another run holds the job.
            WrongState: It does not run.
        """
        seconds = validation.check_seconds("delay", delay)
        await self.flush_output()
        state = await self._store.release(**self._held, delay=seconds, **self._changes)
        self.settled = True
        return state

    # Steps, cursors and waits of this run: aioqless.contrib.durable

    @overload
    def step(
        self, name: str, function: Callable[P, Awaitable[V]], /, *args: P.args, **kwargs: P.kwargs
    ) -> Coroutine[object, object, V]: ...
    @overload
    def step(
        self, name: str, function: Callable[P, V], /, *args: P.args, **kwargs: P.kwargs
    ) -> Coroutine[object, object, V]: ...
    def step(
        self, name: str, function: Callable[..., object], /, *args: object, **kwargs: object
    ) -> object:
        """Call a function and store what it returns; in a later run, return what was stored.

        The effect of the function happens at least once. Nothing is stored of what it raises, and
        after the lock was lost. In a handler that is a plain function, the value itself is
        returned.

        Args:
            name: The name by which later runs find the result; unique in a run.
            function: A coroutine or a plain function, which is called in a thread.
            *args: Its arguments.
            **kwargs: Its arguments by name.

        Returns:
            What the function returned, decoded from JSON in the type that it says it returns.

        Raises:
            ValueError: The name was used before in this run.
            InvalidData: The value can't be stored, or is not of that type.
            LockLost: Another run holds the job.
            AioqlessError: The handler runs in a process.
        """
        step: object = self._run.step(name, function, args, kwargs)
        return step

    def cursor(self, name: str, kind: type[V]) -> Cursor[V]:
        """Return a cursor: `async with job.cursor("rows", int) as rows:`; in a thread `with`.

        `rows.value` is the position that an earlier run has stored, or None; call `rows.advance`
        after each item.

        Args:
            name: The name by which later runs find it; unique in a run.
            kind: The type of the position.

        Raises:
            ValueError: The name was used before in this run.
            AioqlessError: The handler runs in a process.
        """
        cursor: Cursor[V] = extensions.load("durable").Cursor(self._run, self, name, kind)
        return cursor

    @overload
    def wait_for(
        self, name: str, kind: type[V], *, timeout: Seconds | None = None
    ) -> Coroutine[object, object, V]: ...
    @overload
    def wait_for(
        self, name: str, kind: None = None, *, timeout: Seconds | None = None
    ) -> Coroutine[object, object, Any]: ...
    def wait_for(self, name: str, kind: object = None, *, timeout: Seconds | None = None) -> object:
        """Wait for a signal, `client.jobs.signal(jid, name, value)`, and return its value.

        If it takes longer than a moment, the run ends, and another one begins when the signal is
        there: what the handler did before the wait is done again, unless it was a step. In a
        handler that is a plain function, the value itself is returned.

        Args:
            name: Name of the signal; unique in a run.
            kind: The type of its value; default: any JSON.
            timeout: How long to wait at most, in seconds or as a timedelta, from the first time on;
                default: for ever.

        Raises:
            Parked: The run ends; don't catch this.
            TimeoutError: The signal did not come in time.
            InvalidData: Its value is not of the type.
            ValueError: The name was used before in this run.
            LockLost: Another run holds the job.
            AioqlessError: The handler runs in a process.
        """
        wait: object = self._run.wait_for(name, kind, timeout)
        return wait

    def sleep(self, name: str, delay: Seconds) -> Coroutine[object, object, None]:
        """Wait until a time after the first run that gets here, also if the worker is restarted.

        A long sleep ends the run, as `wait_for` does.

        Args:
            name: The name by which later runs find when it ends; unique in a run.
            delay: Seconds, or a timedelta.

        Raises:
            Parked: The run ends; don't catch this.
            ValueError: The name was used before in this run.
            LockLost: Another run holds the job.
            AioqlessError: The handler runs in a process.
        """
        sleep: Coroutine[object, object, None] = self._run.sleep(name, delay)
        return sleep

    def call(
        self, name: str, job: NewJob[V], *, detach: bool = False
    ) -> Coroutine[object, object, V]:
        """Put another job, once, wait for its end as `wait_for` does, and return its result.

        The other job gets the jid of this one and a number. Its result is kept for this job, also
        without `result_ttl`. Several calls in `asyncio.gather` or a task group run at once. In a
        handler that is a plain function, the result itself is returned.

        Args:
            name: The name by which later runs find the other job; unique in a run.
            job: A new job, `handler.data(...)`.
            detach: Don't cancel it when this job is canceled.

        Returns:
            What its handler returned, in the type that it says it returns.

        Raises:
            Parked: The run ends; don't catch this.
            JobFailed: The other job failed, or was canceled (the group is "canceled").
            JobExists: Its unique key is taken.
            ValueError: The name was used before in this run, or the job has an option that a
                called job can't have.
            LockLost: Another run holds the job.
            AioqlessError: The handler runs in a process.
        """
        result: Coroutine[object, object, V] = self._run.call(name, job, detach=detach)
        return result

    def wake(self, name: str) -> None:
        """Note that something has come for which this run may wait; called by its worker."""
        if self._durable is not None:
            self._durable.wake(name)

    def wake_all(self) -> None:
        """Note that messages to the worker of this run may be lost; called by its worker."""
        if self._durable is not None:
            self._durable.wake_all()

    @property
    def _run(self) -> Any:
        if self._durable is None:
            self._durable = extensions.load("durable").DurableRun(
                self, self._backend, self._context, self._handler
            )
        return self._durable

    @property
    def parked(self) -> BaseException | None:
        """The `Parked` that ended this run for a wait, also if the handler has caught it."""
        parked: BaseException | None = None if self._durable is None else self._durable.parked
        return parked

    @property
    def is_durable(self) -> bool:
        """Whether this run has used steps, cursors or waits, or another job has called it."""
        return self._durable is not None or self.is_called

    def join(self, context: RunContext, handler: Klass | None) -> None:
        """Note what the worker gives to this run, and what handles it; called by its worker."""
        self._context, self._handler = context, handler

    def stop(self, reason: StopReason) -> None:
        """Note why this run is to end; called by its worker."""
        self.stopped = reason

    def join_bulk(self, jobs: Sequence[Job]) -> None:
        """Note the jobs of the call that takes it; called by its worker."""
        self.together = jobs

    def settle(self) -> None:
        """Note that the outcome of this run is stored; called by its worker."""
        self.settled = True

    def show_end(
        self,
        state: JobState,
        failure: tuple[str, str] | None = None,
        remaining: int | None = None,
    ) -> None:
        """Note how this run has ended; called by its worker.

        Args:
            state: The state of the job now.
            failure: The group and the message of what failed, if something did.
            remaining: The retries that are left, if that has changed.
        """
        self.state = state
        if failure is not None:
            self.failure = FailureReason(*failure, time.time(), self.worker)
        if remaining is not None:
            self.remaining = remaining

    def renew_lock(self, expires: float) -> None:
        """Note when the lock expires after it was renewed; called by its worker."""
        self.expires = expires

    def raise_if_stopped(self) -> None:
        """Raise if the worker wants this run to end.

        For code in threads and processes, which can't be interrupted; a coroutine is canceled
        without asking. The job is released, unless it is no longer this run's.

        Raises:
            asyncio.CancelledError: The run is to end.
        """
        if self.stopped:
            raise asyncio.CancelledError(self.stopped)

    def scratch(self) -> TempDir:
        """Return a temporary directory: `with job.scratch() as path:` or `async with`.

        It is deleted with its content when the block is left.
        """
        return TempDir(self.jid)

    def detach(self) -> Self:
        """Return a copy without connection and keys, which can be sent to another process.

        Raises:
            DecryptionError: The data can't be decrypted.
        """
        other = copy.copy(self)
        other._text = self.text  # noqa: SLF001  # of the same class
        other._cause = self.cause  # noqa: SLF001  # of the same class
        other._backend = JobBackend.offline(self.max_data)  # noqa: SLF001  # of the same class
        other._context = other._handler = None  # noqa: SLF001  # of the same class
        other._output = None  # noqa: SLF001  # of the same class
        other.task = None
        other.together = ()
        return other

    # Methods for any client

    async def cancel(self) -> bool:
        """Delete the job.

        Returns:
            Whether it existed.

        Raises:
            HasDependents: A job that depends on it is not canceled.
        """
        return bool(await self._store.cancel(jids=[self.jid], actor=actor.get()))

    async def move(
        self,
        queue: str,
        *,
        delay: Seconds = 0,
        priority: float | None = None,
        depends: Sequence[str] | None = None,
    ) -> None:
        """Put the job into another queue, whatever its state. A worker that runs it loses the lock.

        Args:
            queue: Name of the queue.
            delay: Seconds until it may run.
            priority: New priority; default: the one that it has.
            depends: Jids of jobs to wait for.
        """
        await self._store.requeue(
            queue=validation.check_name("queue", queue),
            jid=self.jid,
            klass=self.klass,
            data=self.changed_data() or self.raw_data,
            data_keys=self._keys_to_move(),
            delay=validation.check_seconds("delay", delay),
            priority=priority,
            depends=depends,
        )

    def _keys_to_move(self) -> bytes | None:
        """Return the keys for the data as it is here, which may be older than that in Redis."""
        if self.constraints is None or '"fields":' not in self.constraints:
            return None
        return self.keys_with(self._changed_text() or self.text.encode("utf-8", "surrogateescape"))

    async def unlock(self) -> None:
        """Take the job from its worker. It is next in its queue, before all others."""
        await self._store.timeout(jids=[self.jid])

    async def depend(self, *jids: str, missing: Missing = "refuse") -> None:
        """Make the job wait for more jobs.

        Args:
            jids: Jids of the jobs.
            missing: What a job is that doesn't exist: "refuse", or "done".

        Raises:
            NoSuchJob: One doesn't exist; it may have been deleted after it had completed.
            WrongState: It does not wait for any job now.
        """
        await self._store.depends_on(jid=self.jid, jids=jids, missing=missing)

    async def undepend(self, *jids: str) -> None:
        """Make the job no longer wait for some jobs.

        Args:
            jids: Jids of the jobs; none for all that it waits for.
        """
        await self._store.depends_off(jid=self.jid, jids=jids or ["all"])

    async def set_priority(self, priority: float) -> None:
        """Set the priority.

        Args:
            priority: Lower runs sooner.
        """
        await self._store.priority(jid=self.jid, priority=priority)
        self.priority = priority

    async def tag(self, *tags: str) -> list[str]:
        """Add tags, and return all that the job has.

        Args:
            tags: Tags to find the job by.
        """
        self.tags = await self._store.tag_add(jid=self.jid, tags=tags)
        return self.tags

    async def untag(self, *tags: str) -> list[str]:
        """Remove tags, and return those that the job still has.

        Args:
            tags: Tags; the job need not have them.
        """
        self.tags = await self._store.tag_remove(jid=self.jid, tags=tags)
        return self.tags

    async def track(self, *tags: str) -> None:
        """Track the job: its events are published one by one.

        Args:
            tags: Tags to add to the job.
        """
        await self._store.track_track(jid=self.jid, tags=tags)

    async def untrack(self) -> None:
        """Stop tracking the job."""
        await self._store.track_untrack(jid=self.jid)

    async def log(self, message: str, **fields: object) -> None:
        """Add an event of your own to the job's history.

        Args:
            message: What happened; cut after 16 KiB.
            fields: Any JSON values, which are stored with it.

        Raises:
            InvalidData: JSON has no such value.
        """
        data = job_data.encode(fields, self.max_data) if fields else None
        text = validation.limit_message(message)
        await self._store.log(jid=self.jid, message=text, data=data)

    @property
    def _store(self) -> Store:
        return self._backend.store

    def __repr__(self) -> str:
        return f"<Job {self.jid} {self.klass} {self.state} in {self.queue!r}>"


async def read_job(backend: JobBackend, jid: str) -> JobFields:
    """Read a job with its details.

    Raises:
        NoSuchJob: It was canceled, or has expired.
    """
    record = await backend.store.get(jid=jid)
    if record is None:
        raise NoSuchJob("get", "NOJOB", {"jid": jid, "why": "there is no such job"})
    return decode_record(record)


def read_failure(codec: Codec, stored: Mapping[str, str]) -> Failure:
    """Return a failure as Redis keeps it, with the failed job's data decrypted and decoded.

    Raises:
        DecryptionError: The data can't be decrypted.
    """
    data = job_data.decode(codec.decode(stored["data"], stored["klass"]))
    return Failure(stored["jid"], stored["klass"], stored["group"], stored["message"], data)


async def wait_for_outcome(backend: JobBackend, jid: str, timeout: Seconds | None) -> Any:
    """Wait for the end of a job that was put, and return its stored result.

    Raises:
        NoSuchJob: It was canceled.
        JobFailed, NoResult, TimeoutError, DecryptionError: As `wait_for_result`.
    """
    try:
        return await wait_for_result(backend, jid, timeout)
    except NoResult as error:
        if error.state is None:
            detail = {"jid": jid, "why": "there is no such job"}
            raise NoSuchJob("result", "NOJOB", detail) from None
        raise


async def wait_for_result(backend: JobBackend, jid: str, timeout: Seconds | None) -> Any:
    """Wait for the end of a job, and return its stored result.

    Raises:
        JobFailed: It failed.
        NoResult: There is no such job, or no result is kept.
        TimeoutError: It has not ended in time.
        DecryptionError: The result can't be decrypted.
    """

    async def read() -> tuple[Any] | None:
        try:
            return (await read_result(backend, jid),)
        except NoResult as error:
            if error.state in (None, JobState.COMPLETE):
                raise
            return None

    (result,) = await backend.watcher.wait_for_end(jid, read, timeout)
    return result


async def read_position(backend: JobBackend, jid: str) -> Position | None:
    """Return the place of a waiting job in its queue; None if it doesn't wait."""
    found = await backend.store.position(jid=jid)
    return None if found is None else Position(**found)


async def read_result(backend: JobBackend, jid: str) -> Any:
    """Return the stored result of a job.

    Raises:
        JobFailed: It failed.
        NoResult: It is not complete, or no result is kept.
        DecryptionError: The result can't be decrypted.
    """
    try:
        stored = await backend.store.result(jid=jid)
    except NoResult as error:
        if error.state == JobState.FAILED and (record := await backend.store.get(jid=jid)):
            failure = decode_record(record).failure
            if failure is not None:
                raise JobFailed(jid, failure.group, failure.message) from None
        raise
    return backend.codec.decode_result(stored, jid)
