"""JobSet: jobs that are followed, retried and canceled as one."""

from __future__ import annotations

import asyncio
import copy
import hashlib
from collections import deque
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    AsyncIterator,
    Callable,
    Iterable,
    Sequence,
)
from contextlib import suppress
from functools import partial
from typing import Self

import msgspec
from redis.exceptions import NoPermissionError
from typing_extensions import Unpack

from aioqless import validation
from aioqless.client import extensions
from aioqless.client.actor import actor
from aioqless.client.codec import PlainCodec
from aioqless.client.jid import Jid
from aioqless.client.job.backend import JobBackend
from aioqless.client.job.reading import read_result
from aioqless.client.job.state import JobSetStatus
from aioqless.client.new_job import Branch, Klass, NewJob, R, check_branch, encode_branch
from aioqless.client.put_options import FlowOptions, PutOptions
from aioqless.client.put_sender import (
    MAX_JOBS_PER_CALL,
    Backpressure,
    PutSender,
    check_job,
    is_ordered,
    no_jobs,
    put_batch,
    raise_failed,
    split,
)
from aioqless.client.workflows import Flow, Step, lay_out
from aioqless.errors import NoResult
from aioqless.runtime.tasks import cancel_and_wait
from aioqless.store import Call, PutFlowRow
from aioqless.validation import Seconds

PARALLEL_BATCHES = 2
READ_TOGETHER = 100


class JobSet:
    """A named set of jobs, its members; `client.job_set(name)` makes the handle.

    Attributes:
        name: Name of the set.
    """

    def __init__(
        self,
        backend: JobBackend,
        sender: PutSender,
        name: str,
        then: Branch | None = None,
        when_ended: Branch | None = None,
    ) -> None:
        """Make a handle; nothing is sent."""
        self.name = validation.check_name("name", name)
        self._backend = backend
        self._sender = sender
        self._commands = extensions.load("job_sets").JobSetsCommands(backend.store)
        self._on_end: dict[str, str] = {}
        for option, branch in (("then_put", then), ("when_ended", when_ended)):
            if branch is not None:
                check_branch(option.removesuffix("_put"), branch)
                text = encode_branch(branch, backend.max_data, backend.codec)
                self._on_end[option] = text.decode()
        if self._on_end:
            self._on_end["callbacks"] = self._fingerprint()
        self._member: dict[str, str | int] = {}

    def of_member(self, jid: str, fence: int) -> Self:
        """Return a handle that adds as a running member does, to a closed set as well."""
        other = copy.copy(self)
        other._member = {"member": jid, "fence": fence}  # noqa: SLF001  # of the same class
        return other

    async def put(
        self,
        job: str | Klass[R] | NewJob[R],
        data: object = None,
        *,
        queue: str | None = None,
        wait: Seconds = 0,
        **options: Unpack[PutOptions],
    ) -> Jid[R]:
        """Put a job as a member, as `Client.put` does.

        Raises:
            SetClosed: The set is closed, and this isn't one of its running members.
            JobExists: The jid is that of a member of another set; or as `Client.put`.
        """
        new = NewJob.of(job, data, options)
        rows = [self._encode(new, queue)]
        (answer,) = await put_batch(self._send, rows, Backpressure(wait))
        if isinstance(answer, Exception):
            raise answer
        return Jid(answer, self._backend, new.result_type)

    async def put_many(
        self,
        jobs: Iterable[NewJob] | AsyncIterable[NewJob],
        *,
        queue: str | None = None,
        wait: Seconds = 0,
    ) -> int:
        """Put jobs as members, as they come: a few batches are in memory at a time.

        Args:
            jobs: The jobs, which may be any number.
            queue: Name of the queue; default: that of each handler, else "default".
            wait: Time to wait while a queue, or Redis, is full.

        Returns:
            The number of jobs that were put: those whose unique key is taken are not.

        Raises:
            PutManyError: Some of a batch were refused, or it isn't known whether they were put.
                Earlier batches are put, later ones are not.
            SetClosed: The set is closed, and this isn't one of its running members.
        """
        count, sent = 0, deque[asyncio.Task[int]]()
        try:
            async for batch in self._batches(jobs, queue):
                while len(sent) >= (1 if is_ordered(batch) else PARALLEL_BATCHES):
                    count += await sent.popleft()
                sent.append(asyncio.create_task(self._put_batch(batch, wait)))
            while sent:
                count += await sent.popleft()
        finally:
            await cancel_and_wait(*sent)
        return count

    async def put_flow(
        self,
        flow: Step,
        *,
        queue: str | None = None,
        wait: Seconds = 0,
        **options: Unpack[FlowOptions],
    ) -> Flow:
        """Put the jobs of a workflow as members, in one step: see `Client.put_flow`.

        Raises:
            SetClosed: The set is closed, and this isn't one of its running members.
        """
        send = partial(
            self._commands.set_put_flow, set_name=self.name, **self._member, **self._on_end
        )
        return await self._sender.put_laid_out(*lay_out(flow, queue, options), wait, send)

    async def close(self) -> None:
        """Close the set: from now on only its running members add others."""
        await self._commands.set_close(set_name=self.name, **self._on_end)

    async def status(self) -> JobSetStatus:
        """Return the numbers of members.

        Raises:
            NoSuchSet: Nothing was put into it, or it is kept no longer.
        """
        status, groups = await self._commands.set_status_one(set_name=self.name)
        return decode_status(status, groups)

    async def follow(self, *, interval: Seconds = 1.0) -> AsyncGenerator[JobSetStatus, None]:
        """Yield the status now and whenever it has changed, until all members have ended.

        Args:
            interval: Time between two looks.

        Raises:
            NoSuchSet: Nothing was put into it, or it is kept no longer.
        """
        pause, shown = validation.check_seconds("interval", interval), None
        while True:
            status = await self.status()
            if status.has_ended:  # a client that was killed may not have put the callbacks
                with suppress(NoPermissionError):  # a reader leaves them to workers
                    await self._backend.store.agenda()
                status = await self.status()
            if status != shown:
                yield status
            if status.has_ended:
                return
            shown = status
            await asyncio.sleep(pause)

    async def retry_failed(self) -> int:
        """Retry the failed members, each in the queue that it failed in; return how many.

        Raises:
            NoSuchSet: Nothing was put into it, or it is kept no longer.
        """
        return await self._act(self._commands.set_act_retry)

    async def cancel(self) -> int:
        """Close the set, and cancel its members that have not ended, also running ones.

        Jobs that depend on a canceled member are canceled, too, except those with
        `if_dependency_fails="run"`.

        Returns:
            The number of members canceled.

        Raises:
            NoSuchSet: Nothing was put into it, or it is kept no longer.
        """
        total = 0
        while True:
            cancel = partial(self._commands.set_act_cancel, actor=actor.get())
            count = await self._act(cancel, place="open") + await self._act(cancel, place="held")
            total += count
            status = await self.status()
            if not count or not status.open + status.held:
                return total

    async def jids(self, place: str) -> AsyncGenerator[str, None]:
        """Iterate over the jids of members.

        Args:
            place: Which ones: "open", "held", "failed", "canceled", or "results": complete ones
                that keep their results.

        Raises:
            NoSuchSet: Nothing was put into it, or it is kept no longer.
        """
        cursor, seen = 0, set[str]()
        while True:
            found = await self._commands.set_status_members(
                set_name=self.name, place=place, cursor=cursor
            )
            for jid in found[1:]:  # a portion may repeat jids of the one before
                if jid not in seen:
                    yield jid
            cursor, seen = int(found[0]), set(found[1:])
            if not cursor:
                return

    async def results(self, handler: Klass[R]) -> AsyncGenerator[tuple[Jid[R], R], None]:
        """Iterate over the results of complete members whose handler has `result_ttl`.

        Args:
            handler: Their handler, by whose type results are read.

        Raises:
            InvalidData: A result isn't of the handler's type.
            NoSuchSet: Nothing was put into the set, or it is kept no longer.
        """
        jids: list[str] = []
        async for jid in self.jids("results"):
            jids.append(jid)
            if len(jids) == READ_TOGETHER:
                for each in await self._read_results(jids, handler):
                    yield each
                jids = []
        for each in await self._read_results(jids, handler):
            yield each

    async def _read_results(self, jids: Sequence[str], handler: Klass[R]) -> list[tuple[Jid[R], R]]:
        found = await asyncio.gather(
            *(read_result(self._backend, jid) for jid in jids), return_exceptions=True
        )
        results = []
        for jid, value in zip(jids, found, strict=True):
            if isinstance(value, NoResult):  # it has expired
                continue
            if isinstance(value, BaseException):
                raise value
            results.append((Jid(jid, self._backend, handler), handler.read_result(value)))
        return results

    async def _act(self, command: Callable[..., Call[list[str]]], **arguments: str) -> int:
        """Send a command until it has gone through all members; return how many it changed."""
        count, cursor = 0, 0
        while True:
            changed = await command(set_name=self.name, cursor=cursor, **arguments)
            cursor, count = int(changed[0]), count + int(changed[1])
            if not cursor:
                return count

    def _encode(self, new: NewJob, queue: str | None) -> PutFlowRow:
        name = validation.check_name("queue", new.choose_queue(queue))
        return {"queue": name, **self._sender.encode(new)}

    async def _batches(
        self, jobs: Iterable[NewJob] | AsyncIterable[NewJob], queue: str | None
    ) -> AsyncIterator[list[PutFlowRow]]:
        """Yield rows in batches that Redis handles quickly."""
        rows: list[PutFlowRow] = []
        async for job in _iterate(jobs):
            rows.append(self._encode(job, queue))
            if len(rows) == MAX_JOBS_PER_CALL:
                for batch in split(rows):
                    yield batch
                rows = []
        for batch in split(rows):
            yield batch

    async def _put_batch(self, rows: list[PutFlowRow], wait: Seconds) -> int:
        answers = await put_batch(self._send, rows, Backpressure(wait))
        raise_failed(rows, answers)
        return sum(row["jid"] == answer for row, answer in zip(rows, answers, strict=True))

    def _send(self, rows: list[PutFlowRow]) -> Call[list[str | Exception]]:
        call: Call[list[str | Exception]] = self._commands.set_put(
            set_name=self.name, batch=rows, **self._member, **self._on_end
        )
        return call

    def _fingerprint(self) -> str:
        """Return what tells the callbacks from others; encrypted data differs each time."""
        branches = [msgspec.json.decode(text) for text in self._on_end.values()]
        if not isinstance(self._backend.codec, PlainCodec):
            for branch in branches:
                del branch["data"]
        text = msgspec.json.encode([*self._on_end, *branches])
        return hashlib.sha256(text).hexdigest()[:32]


async def list_sets(backend: JobBackend, offset: int = 0, count: int = 25) -> list[JobSetStatus]:
    """Return job sets, the latest first, without their failure groups.

    Args:
        backend: What connects to Redis.
        offset: Number of sets to skip.
        count: Maximum number of sets, at most 100.
    """
    commands = extensions.load("job_sets").JobSetsCommands(backend.store)
    return [
        decode_status(each) for each in await commands.set_status_page(offset=offset, most=count)
    ]


def decode_status(text: str, groups: str = "[]") -> JobSetStatus:
    """Decode what the scripts say of a set."""
    status = msgspec.json.decode(text)
    found = {each["group"]: each["count"] for each in msgspec.json.decode(groups)}
    return JobSetStatus(**status, groups=found)


async def _iterate(jobs: Iterable[NewJob] | AsyncIterable[NewJob]) -> AsyncIterator[NewJob]:
    """Yield jobs of either kind of iterable.

    Raises:
        TypeError: They are something else.
    """
    if isinstance(jobs, AsyncIterable):
        async for job in jobs:
            yield check_job(job)
    elif isinstance(jobs, Iterable):
        for job in jobs:
            yield check_job(job)
    else:
        raise no_jobs(jobs)
