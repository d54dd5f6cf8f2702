"""Who acts: the archive records who canceled a job."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from aioqless import validation

actor: ContextVar[str | None] = ContextVar("aioqless_actor", default=None)


@contextmanager
def acting_as(name: str) -> Iterator[None]:
    """Archive jobs that are canceled within the block as canceled by this person or program."""
    token = actor.set(validation.fit_name(name) or None)
    try:
        yield
    finally:
        actor.reset(token)
