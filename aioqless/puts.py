"""Jobs on their way in: what is put, and how puts that come together travel together."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import msgspec

from aioqless import data as data_
from aioqless import names
from aioqless.scripts import Scripts
from aioqless.terms import NOTHING, Key, TermOptions, Terms

if TYPE_CHECKING:
    from aioqless.handlers import Handler

MOST_PER_CALL = 100
MOST_BYTES_PER_CALL = 1 << 18
LONGEST_CONTEXT = 4_096  # bytes
MOST_LISTED_PER_CALL = 5_000  # tags and dependencies of all its jobs


OnFailed: TypeAlias = Literal["hold", "fail", "cancel"]


class PutOptions(TermOptions, total=False):
    """The options of put, which are the fields of NewJob behind klass and data."""

    jid: str | None
    delay: float
    priority: float | None
    tags: Sequence[str] | None
    retries: int | None
    depends: Sequence[str] | None
    context: Mapping[str, str] | None
    start_within: float | None
    on_failed: OnFailed | None
    if_exists: Literal["keep", "raise"] | None


@dataclass(frozen=True)
class NewJob:
    """A job to be put. `klass` is a handler, or the name of one that another process or language has.

    `priority` is lower for what runs sooner; `delay` is in seconds; `context` are texts that travel with it, such as those of a trace. It
    fails in `<queue>-too-late` unless it begins `start_within` seconds from now. `on_failed` is what becomes of it when one that it
    depends on fails. What is None is the job's own when it exists, else the default.
    `if_exists` says what to do if its jid or its unique key is taken: `keep` that job, or `raise` AlreadyThere. The other options are
    those of TermOptions.
    """

    klass: str | Handler[...]
    data: Any = None
    jid: str | None = None
    delay: float = 0
    priority: float | None = None
    tags: Sequence[str] | None = None
    retries: int | None = None
    depends: Sequence[str] | None = None
    context: Mapping[str, str] | None = None
    start_within: float | None = None
    on_failed: OnFailed | None = None
    if_exists: Literal["keep", "raise"] | None = None
    unique: Key | None = None
    unique_until: Literal["started", "done"] | None = None
    unique_for: float | None = None
    limit_key: Key | None = None
    limit: int | None = None
    rate: tuple[int, float] | None = None

    @classmethod
    def of(cls, job: str | Handler[...] | NewJob, data: Any, options: PutOptions) -> NewJob:
        """What a caller put: a klass or handler with its data, or a new job already, with options on top. Raises TypeError."""
        if not isinstance(job, NewJob):
            return cls(job, data, **options)
        if data is not None:
            raise TypeError(f"the job has its data already, {data_.shown(job.data)}; what is given beside it are options by name")
        return replace(job, **options)

    def arguments(self, max_data: int) -> dict[str, Any]:
        """What the put scripts take. Raises InvalidData and ValueError, naming what is wrong, before anything is sent."""
        text = data_.encoded(self.data, max_data)
        if not isinstance(self.klass, str) and not hasattr(self.klass, "klass"):
            raise TypeError(f"klass must be a handler, which @job makes of a function, or a text, not {self.klass!r}")
        if isinstance(self.klass, str):
            klass, retries = names.checked("klass", self.klass), self.retries
        else:
            klass, retries = self.klass.klass, self.klass.retries if self.retries is None else self.retries
            self.klass.check(text)
        if self.on_failed not in (None, *get_args(OnFailed)):
            raise ValueError(f"on_failed must be one of {', '.join(get_args(OnFailed))}, not {self.on_failed!r}")
        return {
            "jid": secrets.token_hex(16) if self.jid is None else names.checked_jid(self.jid),
            "klass": klass,
            "data": text,
            "delay": names.checked_number("delay", self.delay, least=0),
            "priority": None if self.priority is None else names.checked_number("priority", self.priority),
            "tags": None if self.tags is None else names.checked_list("tags", self.tags),
            "retries": None if retries is None else names.checked_number("retries", retries, least=0),
            "depends": None if self.depends is None else names.checked_list("depends", self.depends),
            "context": None if self.context is None else data_.encoded(names.checked_texts("context", self.context), LONGEST_CONTEXT),
            "within": None if self.start_within is None else names.checked_number("start_within", self.start_within, least=0),
            **({"on_failed": self.on_failed} if self.on_failed else {}),
            "terms": self._terms(klass, text),
        }

    def _terms(self, klass: str, text: bytes) -> bytes | None:
        handler = None if isinstance(self.klass, str) else self.klass
        declared = handler.terms if handler else None
        own = (self.unique, self.unique_until, self.unique_for, self.limit_key, self.limit, self.rate)
        if declared is None and self.if_exists is None and own == NOTHING:
            return None
        if self.if_exists not in (None, "keep", "raise"):
            raise ValueError(f"if_exists must be 'keep' or 'raise', not {self.if_exists!r}")
        values = partial(handler.values, text) if handler else partial(_values, text)
        return Terms(*own).checked().over(declared).drawn(klass, values, self.if_exists)


def _values(text: bytes) -> dict[str, Any]:
    data = msgspec.json.decode(text)
    return data if isinstance(data, dict) else {}


class Puts:
    """Sends puts. Those that gather for a queue in one turn of the loop go in one call, and each caller gets its own answer.

    Owns what has gathered, and the tasks that send it.
    """

    def __init__(self, scripts: Scripts, context: Callable[[NewJob], Mapping[str, str] | None] = lambda job: None) -> None:
        self.context = context  # of jobs that are put without one
        self._scripts = scripts
        self._gathered: dict[str, list[_Put]] = {}
        self._sending: set[asyncio.Task[None]] = set()

    async def put(self, queue: str, arguments: dict[str, Any]) -> str:
        """Put one job; returns its jid. Raises what the script refuses it with. If the caller is cancelled, it is put nevertheless."""
        if "on_failed" in arguments:
            (jid,) = await self._scripts("put_flow", batch=[{"queue": queue, **arguments}], apart="yes")
            if isinstance(jid, Exception):
                raise jid
            return str(jid)
        loop = asyncio.get_running_loop()
        put = _Put(arguments, loop.create_future())
        if queue in self._gathered:
            self._gathered[queue].append(put)
        else:
            self._gathered[queue] = [put]
            loop.call_soon(self._send, queue)
        return await put.answer

    def _send(self, queue: str) -> None:
        gathered = self._gathered.pop(queue)
        start = 0
        for batch in batches([put.arguments for put in gathered]):
            task = asyncio.create_task(self._send_batch(queue, batch, gathered[start : start + len(batch)]))
            self._sending.add(task)
            task.add_done_callback(self._sending.discard)
            start += len(batch)

    async def _send_batch(self, queue: str, batch: list[dict[str, Any]], puts: list[_Put]) -> None:
        answers: list[Any]
        try:
            if len(batch) == 1:
                answers = [await self._scripts("put", queue=queue, **batch[0])]
            else:
                answers = await self._scripts("put_many", queue=queue, batch=batch)
        except Exception as error:  # whatever it is, it is the callers' to deal with
            answers = [error] * len(puts)
        for put, answer in zip(puts, answers, strict=True):
            if put.answer.done():
                continue
            if isinstance(answer, Exception):
                put.answer.set_exception(answer)
            else:
                put.answer.set_result(answer)


@dataclass(frozen=True, eq=False)
class _Put:
    arguments: dict[str, Any]
    answer: asyncio.Future[str]


def batches(arguments: list[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """Portions that Redis works off quickly, by number, by bytes, and by what their lists name."""
    batch: list[dict[str, Any]] = []
    size = listed = 0
    for each in arguments:
        weight, named = len(each["data"]), len(each["tags"] or ()) + len(each["depends"] or ())
        full = len(batch) == MOST_PER_CALL or size + weight > MOST_BYTES_PER_CALL or listed + named > MOST_LISTED_PER_CALL
        if batch and full:
            yield batch
            batch, size, listed = [], 0, 0
        batch.append(each)
        size += weight
        listed += named
    if batch:
        yield batch
