"""OutputSender: sends what the runs of a client's jobs emit, together, some 20 times a second."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from dataclasses import dataclass, field

from redis import exceptions

from aioqless.client import job_data
from aioqless.client.job import JobRun
from aioqless.client.job.backend import JobBackend
from aioqless.client.job.decoding import JobFields
from aioqless.contrib.output.generated_commands import EmitRow, OutputCommands
from aioqless.errors import AioqlessError, InvalidData
from aioqless.runtime.log import log
from aioqless.runtime.tasks import cancel_and_wait, is_on_loop
from aioqless.store import context_with

PAUSE = 0.05  # seconds between two calls
OUTAGE_PAUSE = 0.5  # seconds before Redis is tried again
MOST_KEPT = 1 << 20  # bytes of a run that aren't sent yet; what is emitted beyond is dropped
CHUNK = 1 << 16  # bytes of values that are stored as one entry
MOST_PER_CALL = 200  # chunks
DEFAULT_TTL = 3600

UNAVAILABLE = (exceptions.ConnectionError, exceptions.TimeoutError)


def open_output(run: JobRun) -> RunOutput:
    """Return the output of a run.

    Raises:
        AioqlessError: No worker runs the job.
    """
    backend, context, handler = run.backend, run.context, run.handler
    if context is None:
        raise AioqlessError(f"job {run.fields.jid} has no output here: no worker runs it")
    sender = backend.parts.get("output sender")
    if not isinstance(sender, OutputSender):
        sender = backend.parts["output sender"] = OutputSender(backend, context.loop)
    ttl = DEFAULT_TTL if handler is None or handler.output_ttl is None else handler.output_ttl
    keep = handler is not None and handler.keep_output
    return RunOutput(run.fields, sender, int(ttl), max_data=run.max_data, keep=keep)


@dataclass
class Chunk:
    """Values that follow each other, as JSON."""

    start: int
    values: list[bytes] = field(default_factory=list)
    size: int = 0


class RunOutput:
    """What one run emits, until it is sent. May be used in any thread.

    Owns the values that Redis has not taken, and their number.

    Attributes:
        job: The job that runs.
        ttl: Seconds that the output is kept.
        keep: Whether it continues that of an earlier run.
        dropped: How many values were not sent.
    """

    def __init__(
        self, job: JobFields, sender: OutputSender, ttl: int, *, max_data: int, keep: bool
    ) -> None:
        self.job = job
        self.ttl = ttl
        self.keep = keep
        self.dropped = 0
        self._sender = sender
        self._max_data = max_data
        self._lock = threading.Lock()
        self._chunks: deque[Chunk] = deque()
        self._emitted = 0
        self._size = 0  # of all that Redis has not taken
        self._refused = False  # the job is no longer this run's
        self._sent = asyncio.Event()

    def emit(self, value: object) -> None:
        """Send a value soon; never blocks or raises."""
        try:
            text = b"false" if value is False else job_data.encode(value, self._max_data)
        except InvalidData as wrong:
            log.warning("job.output_refused", jid=self.job.jid, error=str(wrong))
            text = None
        with self._lock:
            number, self._emitted = self._emitted, self._emitted + 1
            if text is None or self._refused or self._size + len(text) > MOST_KEPT + self._spare():
                self.dropped += 1
                return
            is_first = not self._chunks
            last = None if is_first else self._chunks[-1]
            if last is None or last.start + len(last.values) != number or last.size > CHUNK:
                last = Chunk(number)
                self._chunks.append(last)
            last.values.append(text)
            last.size += len(text)
            self._size += len(text)
        if is_first:
            self._sender.wake(self)

    def _spare(self) -> int:
        """Return how much more is kept if nothing is: one value of any size."""
        return 0 if self._size else self._max_data

    async def flush(self) -> None:
        """Wait until Redis has taken or refused all that was emitted.

        It has the number of values then, by which readers see how many of the last ones it lacks.
        """
        while self._size and not self._refused:
            self._sent.clear()
            await self._sent.wait()
        if self.dropped:
            log.warning("job.output_dropped", jid=self.job.jid, values=self.dropped)
            self.dropped = 0
            if not self._refused:
                await self._sender.send_end(self, self._emitted)

    def take(self) -> list[Chunk]:
        """Return what has to be sent, which `settle` then must be called for."""
        with self._lock:
            chunks = list(self._chunks)
            self._chunks.clear()
            return chunks

    def settle(self, chunk: Chunk, refusal: Exception | None) -> None:
        """Note that Redis has taken or refused a chunk."""
        with self._lock:
            self._size -= chunk.size
            if refusal is not None:
                self.dropped += len(chunk.values)
                self._refused = isinstance(refusal, AioqlessError)
        self._sent.set()


class OutputSender:
    """Sends what the runs of a client's jobs emit: at once, then after a pause.

    Calls are sent until Redis answers. A call that is sent again stores nothing twice.

    Owns the runs that have emitted something, and the task that sends it, which exists only then.
    """

    def __init__(self, backend: JobBackend, loop: asyncio.AbstractEventLoop) -> None:
        self._commands = OutputCommands(backend.store)
        self._codec = backend.codec
        self._loop = loop
        self._runs: dict[RunOutput, None] = {}
        self._task: asyncio.Task[None] | None = None

    def wake(self, run: RunOutput) -> None:
        """Send what a run has emitted. May be called in any thread."""
        if is_on_loop(self._loop):
            self._note(run)
        else:
            self._loop.call_soon_threadsafe(self._note, run)

    def _note(self, run: RunOutput) -> None:
        self._runs[run] = None
        if self._task is None:
            self._task = self._loop.create_task(
                self._send_all(), name="aioqless output", context=context_with(None)
            )

    async def aclose(self) -> None:
        """Send no more."""
        if self._task is not None:
            await cancel_and_wait(self._task)

    async def _send_all(self) -> None:
        try:
            while self._runs:
                chunks = [(run, chunk) for run in self._runs for chunk in run.take()]
                self._runs.clear()
                for start in range(0, len(chunks), MOST_PER_CALL):
                    await self._send(chunks[start : start + MOST_PER_CALL])
                await asyncio.sleep(PAUSE)
        finally:
            self._task = None

    async def send_end(self, run: RunOutput, emitted: int) -> None:
        """Store how many values a run has emitted, until Redis has answered."""
        job = run.job
        while True:
            try:
                await self._commands.emit_end(
                    jid=job.jid,
                    worker=job.worker,
                    fence=str(job.fence),
                    start=emitted,
                    values=self._codec.encode_result(b"[]", bound_to(job.jid)),
                    ttl=run.ttl,
                    keep="1" if run.keep else None,
                )
                return
            except AioqlessError:  # the job is no longer this run's
                return
            except (*UNAVAILABLE, exceptions.NoPermissionError) as error:
                log.debug("output.delayed", error=str(error))
                await asyncio.sleep(OUTAGE_PAUSE)

    async def _send(self, chunks: list[tuple[RunOutput, Chunk]]) -> None:
        by_worker: dict[str, list[tuple[RunOutput, Chunk]]] = {}
        for run, chunk in chunks:
            by_worker.setdefault(run.job.worker, []).append((run, chunk))
        for worker, own in by_worker.items():
            replies = await self._call(worker, [self._row(run, chunk) for run, chunk in own])
            for (run, chunk), reply in zip(own, replies, strict=True):
                run.settle(chunk, reply if isinstance(reply, Exception) else None)

    def _row(self, run: RunOutput, chunk: Chunk) -> EmitRow:
        text = b"[" + b",".join(chunk.values) + b"]"
        return {
            "jid": run.job.jid,
            "fence": str(run.job.fence),
            "start": chunk.start,
            "count": len(chunk.values),
            "values": self._codec.encode_result(text, bound_to(run.job.jid)),
            "ttl": run.ttl,
            "keep": "1" if run.keep else None,
        }

    async def _call(self, worker: str, rows: list[EmitRow]) -> list[str | Exception]:
        """Send rows until Redis answers; return an answer for each."""
        while True:
            try:
                return await self._commands.emit(worker=worker, batch=rows)
            except UNAVAILABLE as error:
                if isinstance(error, exceptions.AuthenticationError):
                    return [error] * len(rows)
                log.debug("output.delayed", error=str(error))
                await asyncio.sleep(OUTAGE_PAUSE)
            except (AioqlessError, exceptions.RedisError) as error:  # such as a full Redis
                return [exceptions.ResponseError(str(error))] * len(rows)


def bound_to(jid: str) -> str:
    """Return what output is encoded for: as no jid can be called."""
    return f"{jid}\0output"
