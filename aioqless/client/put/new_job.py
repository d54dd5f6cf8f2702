"""NewJob: what is put, and with which options."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, Protocol, TypeAlias, get_args

import msgspec

from aioqless import validation
from aioqless.client import json_data
from aioqless.client.codec import PLAIN, Codec
from aioqless.client.put.constraints import NOTHING, Key, TermOptions, Terms
from aioqless.errors import InvalidData

LONGEST_CONTEXT = 4_096  # bytes

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
    expires_in: float | None
    on_failed: OnFailed | None
    if_exists: Literal["keep", "raise"] | None


class Klass(Protocol):
    """What a handler says of the jobs that are put for it."""

    @property
    def klass(self) -> str: ...
    @property
    def retries(self) -> int | None: ...
    @property
    def terms(self) -> Terms | None: ...
    def check(self, text: bytes) -> None:
        """Whether it takes these data. Raises InvalidData."""

    def values(self, text: bytes) -> dict[str, Any]:
        """The data by the names of their fields. Raises InvalidData."""


@dataclass(frozen=True)
class NewJob:
    """A job to be put. `klass` is a handler, or the name of one that another process or language
    has.

    `priority` is lower for what runs sooner; `delay` is in seconds; `context` are texts that travel
    with it, such as those of a trace. It fails in `<queue>-too-late` unless it begins
    `expires_in` seconds from now. `on_failed` is what becomes of it when one that it depends on
    fails. The other options are those of `docs/jobs.md`, "Options of put"."""

    klass: str | Klass
    data: Any = None
    jid: str | None = None
    delay: float = 0
    priority: float | None = None
    tags: Sequence[str] | None = None
    retries: int | None = None
    depends: Sequence[str] | None = None
    context: Mapping[str, str] | None = None
    expires_in: float | None = None
    on_failed: OnFailed | None = None
    if_exists: Literal["keep", "raise"] | None = None
    unique: Key | None = None
    unique_until: Literal["started", "done"] | None = None
    unique_for: float | None = None
    concurrency_key: Key | None = None
    max_concurrent: int | None = None
    rate_limit: tuple[int, float] | None = None

    @classmethod
    def of(cls, job: str | Klass | NewJob, data: Any, options: PutOptions) -> NewJob:
        """What a caller put: a klass or handler with its data, or a new job already, with options
        on top. Raises TypeError."""
        if isinstance(job, NewJob) and data is not None:
            raise TypeError(
                f"the job has its data already, {json_data.shown(job.data)}; what is given beside it are options by name"
            )
        try:
            return replace(job, **options) if isinstance(job, NewJob) else cls(job, data, **options)
        except TypeError:
            if unknown := options.keys() - PutOptions.__annotations__.keys():
                raise TypeError(
                    f"put has no option {', '.join(sorted(unknown))}; it has {', '.join(PutOptions.__annotations__)}"
                ) from None
            raise

    def arguments(self, max_data: int, codec: Codec = PLAIN) -> dict[str, Any]:
        """What the put scripts take, the data sealed. Raises InvalidData and ValueError, naming
        what is wrong, before anything is sent."""
        text = json_data.encoded(self.data, max_data)
        if not isinstance(self.klass, str) and not hasattr(self.klass, "klass"):
            raise TypeError(
                f"klass must be a handler, which @job makes of a function, or a text, not {self.klass!r}"
            )
        if isinstance(self.klass, str):
            klass, retries = validation.check_name("klass", self.klass), self.retries
        else:
            klass, retries = (
                self.klass.klass,
                self.klass.retries if self.retries is None else self.retries,
            )
            self.klass.check(text)
        if self.on_failed not in (None, *get_args(OnFailed)):
            raise ValueError(
                f"on_failed must be one of {', '.join(get_args(OnFailed))}, not {self.on_failed!r}"
            )
        return {
            "jid": secrets.token_hex(16) if self.jid is None else validation.check_jid(self.jid),
            "klass": klass,
            "data": codec.encode(text, klass),
            "delay": validation.check_number("delay", self.delay, least=0),
            "priority": None
            if self.priority is None
            else validation.check_number("priority", self.priority),
            "tags": None if self.tags is None else validation.check_names("tags", self.tags),
            "retries": None
            if retries is None
            else validation.check_number("retries", retries, least=0),
            "depends": None
            if self.depends is None
            else validation.check_names("depends", self.depends),
            "context": None if self.context is None else _context(self.context),
            "within": None
            if self.expires_in is None
            else validation.check_number("expires_in", self.expires_in, least=0),
            **({"on_failed": self.on_failed} if self.on_failed else {}),
            "terms": self._terms(klass, text),
        }

    def _terms(self, klass: str, text: bytes) -> bytes | None:
        handler = None if isinstance(self.klass, str) else self.klass
        declared = handler.terms if handler else None
        own = (
            self.unique,
            self.unique_until,
            self.unique_for,
            self.concurrency_key,
            self.max_concurrent,
            self.rate_limit,
        )
        if declared is None and self.if_exists is None and own == NOTHING:
            return None
        if self.if_exists not in (None, "keep", "raise"):
            raise ValueError(f"if_exists must be 'keep' or 'raise', not {self.if_exists!r}")
        values = partial(handler.values, text) if handler else partial(_values, text)
        return Terms(*own).checked().over(declared).drawn(klass, values, self.if_exists)


def _context(texts: Mapping[str, str]) -> bytes:
    """Encode the texts that travel with a job. Raises InvalidData and TypeError."""
    text = json_data.encoded(validation.check_texts("context", texts))
    if len(text) > LONGEST_CONTEXT:
        raise InvalidData(
            f"context is {len(text):,} bytes, more than the {LONGEST_CONTEXT:,} that it may have; put it into the data"
        )
    return text


def _values(text: bytes) -> dict[str, Any]:
    data = msgspec.json.decode(text)
    return data if isinstance(data, dict) else {}
