"""NewJob: a job to be put, with its options; PreparedJob: the same as the scripts take it."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, TypeAlias, cast, get_args

import msgspec
from typing_extensions import Unpack

from aioqless import validation
from aioqless.client import json_data
from aioqless.client.codec import PLAIN, Codec
from aioqless.client.put.constraints import (
    check_constraints,
    encode_constraints,
    merge_constraints,
    select_constraints,
)
from aioqless.client.put.options import ConstraintOptions, OnFailed, PutOptions
from aioqless.errors import InvalidData
from aioqless.store import PutManyRow

MAX_CONTEXT = 4_096  # bytes


class Klass(Protocol):
    """What a handler declares about the jobs that are put for it."""

    @property
    def klass(self) -> str:
        """Name of its jobs in Redis."""

    @property
    def retries(self) -> int | None:
        """Maximum number of retries; None for the default."""

    @property
    def constraints(self) -> ConstraintOptions:
        """Constraints of its jobs."""

    def check(self, text: bytes) -> None:
        """Check that it takes this data.

        Raises:
            InvalidData: It doesn't.
        """

    def values(self, text: bytes) -> dict[str, Any]:
        """Return the data by field name, with defaults.

        Raises:
            InvalidData: It doesn't take this data.
        """


# A job as the put commands take it: checked, encoded and encrypted.
PreparedJob: TypeAlias = PutManyRow


@dataclass(frozen=True, init=False)
class NewJob:
    """A job to be put.

    Attributes:
        klass: The handler, or the klass of one in another process or language.
        data: The job's data, any JSON value but `false`.
        options: Options of put.
    """

    klass: str | Klass
    data: Any
    options: PutOptions

    def __init__(self, klass: str | Klass, data: Any = None, **options: Unpack[PutOptions]) -> None:
        """Make a job.

        Args:
            klass: The handler, or the klass of one in another process or language.
            data: The job's data.
            options: See PutOptions.

        Raises:
            TypeError: Put has no such option.
        """
        if unknown := options.keys() - PutOptions.__annotations__.keys():
            raise TypeError(
                f"put has no option {', '.join(sorted(unknown))}; "
                f"it has {', '.join(PutOptions.__annotations__)}"
            )
        object.__setattr__(self, "klass", klass)
        object.__setattr__(self, "data", data)
        object.__setattr__(self, "options", options)

    @classmethod
    def of(cls, job: str | Klass | NewJob, data: Any, options: PutOptions) -> NewJob:
        """Return what a caller of put gave as one job.

        Args:
            job: A klass, a handler, or a new job.
            data: The data, unless `job` is a new job.
            options: Options of put; they override those of a new job.

        Raises:
            TypeError: A new job was given data, or put has no such option.
        """
        if not isinstance(job, NewJob):
            return cls(job, data, **options)
        if data is not None:
            raise TypeError(
                f"the job has its data already, {json_data.shown(job.data)}: "
                "pass options of put by name"
            )
        return job.with_options(**options) if options else job

    def with_options(self, **options: Unpack[PutOptions]) -> NewJob:
        """Return the same job with more options, which override its own.

        Raises:
            TypeError: Put has no such option.
        """
        merged = self.options.copy()
        merged.update(options)
        return NewJob(self.klass, self.data, **merged)

    def prepare(self, max_data: int, codec: Codec = PLAIN) -> PreparedJob:
        """Check and encode the job as the put commands take it.

        Args:
            max_data: Maximum size of the data, in bytes.
            codec: Encodes the data.

        Raises:
            InvalidData: The data isn't JSON, is too large, or isn't what the handler takes.
            TypeError: An option has the wrong type.
            ValueError: An option is out of range.
        """
        text = json_data.encoded(self.data, max_data)
        klass, retries = self._klass_and_retries(text)
        options = self.options
        on_failed, context = options.get("on_failed"), options.get("context")
        if on_failed not in (None, *get_args(OnFailed)):
            raise ValueError(
                f"on_failed must be one of {', '.join(get_args(OnFailed))} (got {on_failed!r})"
            )
        jid, tags, depends = options.get("jid"), options.get("tags"), options.get("depends")
        return {
            "jid": secrets.token_hex(16) if jid is None else validation.check_jid(jid),
            "klass": klass,
            "data": codec.encode(text, klass),
            "delay": validation.check_number("delay", options.get("delay", 0), least=0),
            "priority": _number("priority", options.get("priority")),
            "tags": None if tags is None else validation.check_names("tags", tags),
            "retries": cast("int | None", _number("retries", retries, least=0)),
            "depends": None if depends is None else validation.check_names("depends", depends),
            "context": None if context is None else _encode_context(context),
            "within": _number("expires_in", options.get("expires_in"), least=0),
            "on_failed": on_failed,
            "terms": self._encode_constraints(klass, text),
        }

    def _klass_and_retries(self, text: bytes) -> tuple[str, int | None]:
        own = self.options.get("retries")
        if isinstance(self.klass, str):
            return validation.check_name("klass", self.klass), own
        if not hasattr(self.klass, "klass"):
            raise TypeError(
                "klass must be a handler, which @job makes of a function, or a text "
                f"(got {self.klass!r})"
            )
        self.klass.check(text)
        return self.klass.klass, self.klass.retries if own is None else own

    def _encode_constraints(self, klass: str, text: bytes) -> bytes | None:
        handler = None if isinstance(self.klass, str) else self.klass
        own = select_constraints(self.options)
        if_exists = self.options.get("if_exists")
        if if_exists not in (None, "keep", "raise"):
            raise ValueError(f"if_exists must be 'keep' or 'raise' (got {if_exists!r})")
        constraints = merge_constraints(own, handler.constraints) if handler else own
        if not constraints and if_exists is None:
            return None
        check_constraints(own)
        values = partial(handler.values if handler else _decode_fields, text)
        return encode_constraints(constraints, klass, values, if_exists)


def _number(what: str, number: float | None, least: float | None = None) -> float | None:
    if number is None:
        return None
    if least is None:
        return validation.check_number(what, number)
    return validation.check_number(what, number, least=least)


def _encode_context(texts: Mapping[str, str]) -> bytes:
    text = json_data.encoded(validation.check_texts("context", texts))
    if len(text) > MAX_CONTEXT:
        raise InvalidData(
            f"context must be at most {MAX_CONTEXT:,} bytes (got {len(text):,}): "
            "put it into the data"
        )
    return text


def _decode_fields(text: bytes) -> dict[str, Any]:
    data = msgspec.json.decode(text)
    return data if isinstance(data, dict) else {}
