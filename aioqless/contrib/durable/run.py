"""DurableRun: what one run of a job stores, and what the runs before it have stored."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import math
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

import msgspec

from aioqless import validation
from aioqless.client import job_data, json_types
from aioqless.client.codec import Codec
from aioqless.client.job import JobRun
from aioqless.client.job.backend import JobBackend
from aioqless.client.job.state import StoredStep
from aioqless.client.new_job import NewJob, check_branch, encode_branch
from aioqless.contrib.durable.generated_commands import DurableCommands
from aioqless.contrib.durable.values import ValueType, type_returned_by
from aioqless.contrib.durable.waits import Waits
from aioqless.errors import (
    AioqlessError,
    DecryptionError,
    JobFailed,
    LockLost,
    NoSuchJob,
    WrongState,
)
from aioqless.handlers.results import Parked
from aioqless.validation import Seconds

T = TypeVar("T")

ENCODED = ("step", "cursor", "signal", "received")  # kinds whose values aren't ours


class DurableRun:
    """The steps, cursors, waits and calls of one run.

    Owns the entries that earlier runs have stored, and the names that this run has used.

    Raises:
        AioqlessError: It runs in a process or in a bulk, or no worker runs it.
    """

    def __init__(self, run: JobRun) -> None:
        if run.context is None:
            raise AioqlessError(
                "steps, cursors, waits and calls are for handlers that a worker runs on its event "
                "loop or in a thread: a process has no connection to Redis"
            )
        if run.handler is not None and run.handler.is_bulk:
            klass = run.fields.klass
            raise AioqlessError(
                f"{klass} takes many jobs at once, and can't use steps, cursors, waits and "
                "calls: one that waits would keep the others waiting. Let it put a job that does"
            )
        self.context = run.context
        self.jid = run.fields.jid
        self.job_run = run
        self._codec = run.backend.codec
        self._commands = DurableCommands(run.backend.store)
        self._entries: dict[str, str] | None = None
        self._loading = asyncio.Lock()
        self._names: set[str] = set()
        self._waits = Waits(run.context, run)

    # What handlers call

    def step(
        self,
        name: str,
        function: Callable[..., Any],
        args: Sequence[object],
        kwargs: Mapping[str, object],
    ) -> Any:
        """Return what a function returned in this or an earlier run; `Job.step` says more."""
        call = partial(function, *args, **kwargs)
        if self.is_on_loop():
            return self._step(name, function, call)
        values = self._begin_step(name, function)
        with self._waits.delayed():
            if (found := self.wait(self.find("step", name))) is None:
                result = call()
                if inspect.isawaitable(result):
                    result = self.wait(_await(result))
                found = self.wait(self.store("step", name, values.encode(result)))
        return values.decode(found)

    async def _step(
        self, name: str, function: Callable[..., Any], call: Callable[[], Any]
    ) -> object:
        values = self._begin_step(name, function)
        with self._waits.delayed():
            if (found := await self.find("step", name)) is None:
                if inspect.iscoroutinefunction(inspect.unwrap(function)):
                    result = values.encode(await call())
                    found = await _finish(self.store("step", name, result))
                else:
                    found = await _finish(self._call_in_thread(name, call, values))
        return values.decode(found)

    async def _call_in_thread(
        self, name: str, call: Callable[[], Any], values: ValueType[Any]
    ) -> bytes:
        result = await self.context.call_in_thread(call)
        if inspect.isawaitable(result):
            result = await result
        return await self.store("step", name, values.encode(result))

    def _begin_step(self, name: str, function: Callable[..., Any]) -> ValueType[Any]:
        self.claim(name)
        return ValueType(f"step {name!r}", type_returned_by(function), self.job_run.max_data)

    def wait_for(self, name: str, hint: object, timeout: Seconds | None) -> Any:
        """Return the value of a signal; `Job.wait_for` says more."""
        seconds = None if timeout is None else validation.check_seconds("timeout", timeout)
        work = self._wait_for(name, hint, seconds)
        return work if self.is_on_loop() else self.wait(work)

    async def _wait_for(self, name: str, hint: object, timeout: float | None) -> object:
        self.claim(name)
        values: ValueType[object] = ValueType(f"signal {name!r}", hint, self.job_run.max_data)
        if (found := await self.find("received", name)) is not None:
            return values.decode(found)
        if await self.find("timeout", name) is None:
            look = partial(self._send_wait, "wait", name, timeout)
            ending, entry = await self._wait("wait", name, look)
            while ending == "signal":
                value = values.decode(self._decode("signal", name, entry))
                number = int(entry.partition(" ")[0])
                ending, entry = await self._send_wait("wait", name, accept=number)
                if ending == "received":
                    return value
            if ending == "received":
                return values.decode(self._decode(ending, name, entry))
        raise TimeoutError(f"signal {name!r} did not come in time")

    def sleep(self, name: str, delay: Seconds) -> Any:
        """Wait for a time; `Job.sleep` says more."""
        work = self._sleep(name, validation.check_seconds("delay", delay))
        return work if self.is_on_loop() else self.wait(work)

    async def _sleep(self, name: str, delay: float) -> None:
        self.claim(name)
        if await self.find("slept", name) is None:
            await self._wait("sleep", name, partial(self._send_wait, "sleep", name, delay))

    def call(self, name: str, job: NewJob[Any], *, detach: bool) -> Any:
        """Return the result of another job; `Job.call` says more."""
        if not isinstance(job, NewJob):
            raise TypeError(f"call takes a new job, such as `handler.data(...)` (got {job!r})")
        check_branch("call", job)
        work = self._call(name, job, detach)
        return work if self.is_on_loop() else self.wait(work)

    async def _call(self, name: str, job: NewJob[Any], detach: bool) -> object:
        self.claim(name)
        with self._waits.delayed():  # other calls may begin as well
            found, put = await self.find("called", name), await self.find("call", name)
        if found is None:
            child = encode_branch(job, self.job_run.max_data, self._codec)

            async def look() -> tuple[str, str]:
                with self._lock_lost_if_gone():
                    ending, entry = await self._commands.call(
                        **self.job_run.held,
                        name=name,
                        child=child,
                        detach="yes" if detach else None,
                    )
                return ending, entry if ending == "called" else ""

            _, entry = await self._wait("call", name, look, is_known=put is not None)
            found = self._decode("called", name, entry)
        ended = msgspec.json.decode(found)
        if "group" in ended:
            raise JobFailed(ended["jid"], ended["group"], ended["message"])
        value = self._codec.decode_result(ended["result"], ended["jid"])
        return value if job.result_type is None else job.result_type.read_result(value)

    @property
    def parked(self) -> Parked | None:
        """What has ended the run for a wait, or for a shutdown."""
        return self._waits.parked

    def park(self, why: str) -> Parked:
        """End the run, which is to continue in another one at once; return what to raise."""
        self._waits.park(why)
        return Parked(why)

    def wake(self, name: str) -> None:
        """Let a wait look again; called on the worker's loop."""
        self._waits.wake(name)

    def wake_all(self) -> None:
        """Let each wait look again; called on the worker's loop."""
        self._waits.wake_all()

    async def _wait(
        self,
        kind: str,
        name: str,
        look: Callable[[], Awaitable[tuple[str, str]]],
        *,
        is_known: bool = False,
    ) -> tuple[str, str]:
        """Look until a wait is over; return how it has ended, and the entry of that.

        With `is_known`, what was read says that it isn't over: it looks again when woken. A job
        that waits for a thousand others is woken by each.

        Raises:
            Parked: It takes too long.
        """
        with self._waits.wait(kind, name) as wait:
            if is_known:
                await wait.look_later(math.inf)
            while True:
                wait.woken.clear()
                with self._waits.delayed():
                    ending, text = await look()
                if ending != kind:
                    return ending, text
                await wait.look_later(float(text) if text else math.inf)

    async def _send_wait(
        self, kind: str, name: str, timeout: float | None = None, *, accept: int | None = None
    ) -> tuple[str, str]:
        with self._lock_lost_if_gone():
            ending, entry = await self._commands.wait(
                **self.job_run.held, wait_kind=kind, name=name, timeout=timeout, accept=accept
            )
        return ending, entry

    # What is stored

    def claim(self, name: str) -> None:
        """Note that this run uses a name.

        Raises:
            ValueError: It has been used, or can't be a name.
            Parked: The run ends.
        """
        self._waits.raise_if_parked()
        if validation.check_name("name", name) in self._names:
            raise ValueError(
                f"the name {name!r} is used twice in one run: what is stored is found by its name"
            )
        self._names.add(name)

    async def find(self, kind: str, name: str) -> bytes | None:
        """Return what is stored, as JSON; None if nothing is.

        Raises:
            DecryptionError: It can't be decrypted.
        """
        async with self._loading:
            if self._entries is None:
                found = await self._commands.steps(jid=self.jid)
                self._entries = dict(zip(found[::2], found[1::2], strict=True))
        if (entry := self._entries.get(f"{kind}:{name}")) is None:
            return None
        return self._decode(kind, name, entry)

    def _decode(self, kind: str, name: str, entry: str) -> bytes:
        return json_types.encode(_decode(self._codec, self.jid, kind, name, entry).value)

    async def store(self, kind: str, name: str, text: bytes) -> bytes:
        """Store JSON, and return it.

        Raises:
            LockLost: Another run holds the job. Nothing is stored.
        """
        bound = _bound(self.jid, kind, name)
        result = self._codec.encode_result(text, bound)
        with self._lock_lost_if_gone():
            await self._commands.step(**self.job_run.held, kind=kind, name=name, result=result)
        return text

    @contextlib.contextmanager
    def _lock_lost_if_gone(self) -> Iterator[None]:
        try:
            yield
        except (NoSuchJob, WrongState) as gone:  # canceled, moved, ...
            raise LockLost(gone.command, "LOCKLOST", gone.detail) from None

    # Threads

    def is_on_loop(self) -> bool:
        """Return whether the caller is a coroutine on the worker's loop; else it is a thread."""
        return self.context.is_on_loop()

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the worker's loop, and wait for it in this thread."""
        return self.context.wait(work)


async def read_steps(backend: JobBackend, jid: str) -> list[StoredStep]:
    """Return what the runs of a job have stored, in this order.

    Raises:
        DecryptionError: A value can't be decrypted.
    """
    found = await DurableCommands(backend.store).steps(jid=jid)
    entries = [
        _decode(backend.codec, jid, kind, name, entry)
        for field, entry in zip(found[::2], found[1::2], strict=True)
        for kind, separator, name in [field.partition(":")]
        if separator
    ]
    return sorted(entries, key=lambda entry: entry.number)


async def send_signal(
    backend: JobBackend, jid: str, name: str, value: object, *, replace: bool
) -> None:
    """Send a signal to a job; `Jobs.signal` says more."""
    validation.check_name("name", name)
    text = ValueType(f"signal {name!r}", max_bytes=backend.max_data).encode(value)
    stored = backend.codec.encode_result(text, _bound(jid, "signal", name))
    await DurableCommands(backend.store).signal(
        jid=jid, name=name, result=stored, replace="yes" if replace else None
    )


def _decode(codec: Codec, jid: str, kind: str, name: str, entry: str) -> StoredStep:
    """Decode an entry: `number time attempt value`."""
    number, when, attempt, text = entry.split(" ", 3)
    value = job_data.decode(text)
    try:
        if kind in ENCODED:
            value = codec.decode_result(value, _bound(jid, kind, name))
    except DecryptionError as error:
        raise DecryptionError(f"{kind} {name!r} of job {jid}: {error}") from None
    return StoredStep(kind, name, int(number), float(when), int(attempt), value)


def _bound(jid: str, kind: str, name: str) -> str:
    """Return what a value is encoded for: as no jid can be called."""
    return f"{jid}\0{'signal' if kind == 'received' else kind}\0{name}"


async def _await(work: Awaitable[T]) -> T:
    return await work


async def _finish(work: Coroutine[Any, Any, T]) -> T:
    """Let work end before a cancellation is passed on; a second cancellation doesn't wait."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        if not task.done():
            await asyncio.wait([task])
        if not task.cancelled():
            task.exception()  # otherwise it would be logged as never retrieved
        raise
