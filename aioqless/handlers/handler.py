"""Handler: a function that performs the jobs of a klass, and what is said about it."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Generic, Literal

from typing_extensions import ParamSpec

from aioqless.client.job import Job
from aioqless.client.put import NewJob
from aioqless.client.put.constraints import Terms
from aioqless.errors import UnknownKlass
from aioqless.handlers.retry_policy import RetryPolicy
from aioqless.handlers.schedule import Recurs
from aioqless.handlers.signature import Takes

METHODS = ("process", "perform")

P = ParamSpec("P", default=...)  # what the function takes behind the job


@dataclass(frozen=True)
class Handler(Generic[P]):
    """A function, or a class of the older qless libraries, that performs the jobs of a klass.
    Calling it calls the function."""

    fn: Callable[..., Any]
    klass: str
    aliases: tuple[str, ...] = ()
    retries: int | None = None
    retry: RetryPolicy | None = None  # None: the worker's
    timeout: float | None = None  # seconds that a run may take
    executor: Literal["process"] | None = None  # None: by its nature, the loop or a thread
    recurs: Recurs | None = None  # None: it comes only when it is put
    result_ttl: float | None = None  # seconds that what it returns is kept
    takes: Takes = field(default_factory=Takes)
    terms: Terms | None = None  # on which its jobs are put

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.fn(*args, **kwargs)

    def data(self, *args: P.args, **kwargs: P.kwargs) -> NewJob:
        """A new job for this handler, given what its function takes behind the job:
        `queue.put(resize.data(path="a.png"), delay=60)`.

        Type checkers know the parameters. A function that takes `Job[T]` alone is given a T.
        """
        return NewJob(self, self.takes.data(args, kwargs))

    def check(self, text: bytes) -> None:
        """Whether the function takes these data. Raises InvalidData."""
        self.takes.arguments(self.klass, text)

    def values(self, text: bytes) -> dict[str, Any]:
        """The data by the names of their fields, with the function's defaults for those that are
        missing. Raises InvalidData."""
        return self.takes.values(self.klass, text)

    def bound(self, job: Job) -> tuple[Callable[..., Any], dict[str, Any]]:
        """What to call with the job, and the arguments filled from its data. Raises InvalidData,
        UnknownKlass for a class without a method for the queue."""
        arguments = self.takes.arguments(
            self.klass, job.text.encode("utf-8", "surrogateescape"), job
        )
        if not inspect.isclass(self.fn):
            return self.fn, arguments
        for name in (job.queue, *METHODS):
            if (
                not name.startswith("_")
                and any(name in vars(each) for each in self.fn.__mro__[:-1])
                and callable(getattr(self.fn, name))
            ):
                return getattr(self.fn, name), arguments
        raise UnknownKlass(
            f"class {self.klass} has no method {job.queue!r}, nor {' or '.join(METHODS)}"
        )
