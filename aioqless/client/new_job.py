"""A job to be put: a NewJob, which `encode_job` checks and encodes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Generic, Protocol, TypeAlias, cast

import msgspec
from typing_extensions import TypeVar, Unpack

from aioqless import validation
from aioqless.client import job_data
from aioqless.client.codec import PLAIN, Codec
from aioqless.client.constraints import encode_constraints
from aioqless.client.generated_jid import generate_jid
from aioqless.client.put_options import PUT, CheckedOptions, PutOptions, TemplateOptions, Unique
from aioqless.errors import InvalidData
from aioqless.store import PutFlowRow, PutManyRow
from aioqless.store.call import encode as encode_argument

DEFAULT_QUEUE = "default"

Result_co = TypeVar("Result_co", covariant=True, default=Any)
R = TypeVar("R", default=Any)  # the result of a job that a method puts

Names: TypeAlias = frozenset[str]  # of parameters
NONE: Names = frozenset()
_MEMBERS = PutManyRow.__annotations__.keys()
_OF_BRANCHES = TemplateOptions.__annotations__.keys() | {"delay", "context"}


class Klass(Protocol[Result_co]):
    """What a handler declares about the jobs that are put for it.

    A protocol, since the client knows nothing of handlers; `Handler` has it.
    """

    @property
    def klass(self) -> str:
        """Name of its jobs in Redis."""

    @property
    def queue(self) -> str | None:
        """Queue of its jobs; None for the default."""

    @property
    def put_defaults(self) -> CheckedOptions:
        """Checked options that its jobs are put with, unless the caller says otherwise."""

    @property
    def output_ttl(self) -> float | None:
        """For how many seconds the output of its jobs is kept; None for the default."""

    @property
    def keep_output(self) -> bool:
        """Whether a later run continues the output."""

    @property
    def is_bulk(self) -> bool:
        """Whether it takes many jobs at once."""

    def check(self, text: bytes, taken: Names = NONE, *, may_fail: bool = False) -> None:
        """Check that it takes this data.

        Args:
            text: The data as JSON.
            taken: Parameters that results of other steps fill when it runs.
            may_fail: Those steps may fail, and it runs nevertheless.

        Raises:
            InvalidData: It doesn't.
        """

    def values(self, text: bytes, taken: Names = NONE) -> Mapping[str, object]:
        """Return the data by field name, with defaults.

        Raises:
            InvalidData: It doesn't take this data.
        """

    def read_result(self, value: object) -> Result_co:
        """Return the value that the handler returned, of its JSON.

        Raises:
            InvalidData: It isn't of the handler's type.
        """


@dataclass(frozen=True, eq=False)
class StepResult:
    """Stands for the result of a step, or for those of a group, in the data of a later step."""

    steps: tuple[NewJob, ...]
    is_list: bool = False


@dataclass(frozen=True, init=False)
class NewJob(Generic[Result_co]):
    """A job to be put.

    Attributes:
        klass: The handler, or the klass of one in another process or language.
        data: The job's data, any JSON value but `false`.
        options: Options of put.
        branch: The job that its failure puts.
        links: In a workflow that is put: which results it takes, as the scripts take them.
        taken: The parameters that these fill.
    """

    klass: str | Klass[Result_co]
    data: Any
    options: PutOptions
    branch: Branch | None
    links: Mapping[str, object] | None = None
    taken: Names = NONE
    _first: NewJob | None = field(default=None, compare=False)  # of which it is a copy

    def __init__(
        self, klass: str | Klass[Result_co], data: object = None, **options: Unpack[PutOptions]
    ) -> None:
        """Make a job.

        Args:
            klass: The handler, or the klass of one in another process or language.
            data: The job's data.
            options: See PutOptions.

        Raises:
            TypeError: Put has no such option.
        """
        if options:
            PUT.refuse_unknown(options, data=data is None and not isinstance(klass, str))
        object.__setattr__(self, "klass", klass)
        object.__setattr__(self, "data", data)
        object.__setattr__(self, "options", options)
        object.__setattr__(self, "branch", None)

    def __repr__(self) -> str:
        klass = self.klass if isinstance(self.klass, str) else getattr(self.klass, "klass", None)
        shown = [repr(klass or self.klass), job_data.shorten(self.data)]
        shown += [f"{name}={value!r}" for name, value in self.options.items()]
        return f"NewJob({', '.join(shown)})"

    @classmethod
    def of(
        cls,
        job: str | Klass[Result_co] | NewJob[Result_co],
        data: object,
        options: PutOptions,
    ) -> NewJob[Result_co]:
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
                f"the job has its data already, {job_data.shorten(job.data)}: "
                "pass options of put by name"
            )
        return job.with_options(**options) if options else job

    @property
    def result_type(self) -> Klass[Result_co] | None:
        """What its result is read by; None if the handler is not known here."""
        return None if isinstance(self.klass, str) else self.klass

    @property
    def result(self) -> Result_co:
        """Its result, as an argument of a later step: `resize.data(page=page.result)`."""
        return cast(Result_co, StepResult((self.first,)))

    @property
    def first(self) -> NewJob:
        """The job of which it is a copy with more options; itself if it is none."""
        return self._first or self

    def copy(self, **fields: object) -> NewJob[Result_co]:
        """Return a copy with other values of some attributes."""
        other = object.__new__(NewJob)
        for name, value in {**vars(self), "_first": self.first, **fields}.items():
            object.__setattr__(other, name, value)
        return other

    def choose_queue(self, queue: str | None) -> str:
        """Return the queue that the caller names; else the default of its handler."""
        if queue is None and not isinstance(self.klass, str):
            queue = self.klass.queue
        return DEFAULT_QUEUE if queue is None else queue

    def with_options(self, **options: Unpack[PutOptions]) -> NewJob[Result_co]:
        """Return the same job with more options, which override its own.

        Raises:
            TypeError: Put has no such option.
        """
        merged = self.options.copy()
        if "at" in options:
            merged.pop("delay", None)
        elif "delay" in options:
            merged.pop("at", None)
        PUT.refuse_unknown(options)
        merged.update(options)
        return self.copy(options=merged)

    def on_failure(self, branch: Branch) -> NewJob[Result_co]:
        """Return the same job with a branch: a job that is put when this one fails.

        It is put by the script that fails this job, once for each failure, and gets a `Failure`.

        Args:
            branch: A new job, a handler, or `in_queue("mail", job)`.

        Raises:
            ValueError: The branch has an option that no branch can have.
        """
        return self.copy(branch=check_branch("on_failure", branch))


@dataclass(frozen=True)
class Placed(Generic[Result_co]):
    """A new job and the queue that it is put into.

    Attributes:
        queue: Name of the queue.
        job: The job.
    """

    queue: str
    job: NewJob[Result_co]

    @property
    def result(self) -> Result_co:
        """The result of the job, as an argument of a later step."""
        return self.job.result


Branch: TypeAlias = NewJob | Placed | Klass


def check_branch(name: str, branch: Branch) -> Branch:
    """Return a branch if a failure can put it.

    Raises:
        TypeError: It isn't a job.
        ValueError: It has an option that no branch can have.
    """
    job = branch.job if isinstance(branch, Placed) else branch
    if not (isinstance(job, NewJob) or hasattr(job, "klass")):
        raise TypeError(f"{name} must be a job, such as handler.data(...), or a handler ({job!r})")
    if isinstance(job, NewJob) and (wrong := job.options.keys() - _OF_BRANCHES):
        raise ValueError(f"a job for {name} can't have the option {', '.join(sorted(wrong))}")
    unique = job.options.get("unique") if isinstance(job, NewJob) else None
    if isinstance(unique, Unique) and unique.debounce is not None:
        raise ValueError(f"a job for {name} can't have a unique key with a debounce")
    if isinstance(job, NewJob) and job.branch is not None:
        raise ValueError(f"a job for {name} can't have an on_failure of its own: let it retry")
    return branch


def encode_branch(branch: Branch, max_data: int, codec: Codec = PLAIN) -> bytes:
    """Check a branch, and encode it as the scripts take it; raises what `encode_job` raises."""
    queue, job = (branch.queue, branch.job) if isinstance(branch, Placed) else (None, branch)
    new = job if isinstance(job, NewJob) else NewJob(job)
    row = {"queue": new.choose_queue(queue), **encode_job(new, max_data, codec)}
    texts = {name: encode_argument(value).decode() for name, value in row.items() if name != "jid"}
    return msgspec.json.encode(texts)


def encode_job(new: NewJob, max_data: int, codec: Codec = PLAIN) -> PutManyRow:
    """Check a job, and encode it as the put commands take it.

    Args:
        new: The job.
        max_data: Maximum size of the data, in bytes.
        codec: Encodes the data.

    Raises:
        InvalidData: The data isn't JSON, is too large, or isn't what the handler takes.
        TypeError: An option has the wrong type.
        ValueError: An option is out of range.
    """
    text = job_data.encode(new.data, max_data)
    if isinstance(new.klass, str):
        klass, read_fields = validation.check_name("klass", new.klass), job_data.decode_fields
        options: CheckedOptions = {}
    else:
        klass, read_fields = _check_handler(new, text), new.klass.values
        options = new.klass.put_defaults
        read_fields = partial(new.klass.values, taken=new.taken) if new.taken else read_fields
    if new.options:
        own = PUT.check(new.options)
        options = {**options, **own}
    if new.links or not options.keys() <= _MEMBERS:  # all others are constraints
        constraints = encode_constraints(options, klass, partial(read_fields, text), new.links)
        members = {name: value for name, value in options.items() if name in _MEMBERS}
        options = {**members, "constraints": constraints}
    if "delay" in options and "at" in options:
        raise ValueError("delay and at are mutually exclusive")
    if new.branch is not None:
        options = {**options, "on_failure": encode_branch(new.branch, max_data, codec)}
    return {
        "jid": options.get("jid") or generate_jid(),
        "klass": klass,
        "data": codec.encode(text, klass),
        **options,  # type: ignore[typeddict-item]  # of the types that their checks return
    }


def _check_handler(new: NewJob, text: bytes) -> str:
    """Check that a handler takes the data of its job; return the klass."""
    handler = new.klass
    if isinstance(handler, str) or not hasattr(handler, "klass"):
        raise TypeError(
            "klass must be a handler, which @job makes of a function, or a string "
            f"(got {handler!r}): to put a job, write `handler.data(...)`"
        )
    try:
        may_fail = new.options.get("if_dependency_fails") == "run"
        handler.check(text, new.taken, may_fail=may_fail)
    except InvalidData as error:
        if new.data is not None or "missing required field" not in str(error):
            raise
        raise InvalidData(
            f"{error}: pass data with handler.data(...), options of put by name"
        ) from None
    if handler.klass.startswith("__main__."):
        raise TypeError(
            f"no worker knows klass {handler.klass!r}, a function of the main script: move it to a "
            "module, or write @job(klass=...)"
        )
    return handler.klass


def measure(job: PutManyRow | PutFlowRow) -> int:
    """Return the number of bytes of a job's data, that of its branch included."""
    return len(job["data"]) + len(job.get("on_failure") or "")
