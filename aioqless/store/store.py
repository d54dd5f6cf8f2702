"""What the layers above need of a store, and one that stands in where there is no connection."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import NoReturn

from aioqless.errors import AioqlessError
from aioqless.store.call import Call, T
from aioqless.store.commands import Commands


class Store(Commands):
    """The state machine of one namespace: a method for each command, each to be awaited."""

    @abstractmethod
    async def send(self, call: Call[T]) -> T:
        """Send a call and return its reply.

        Raises:
            ScriptError: Redis refuses it.
            redis.exceptions.RedisError: Redis can't be reached.
        """

    @abstractmethod
    async def pipeline(self, calls: Sequence[Call[T]]) -> list[T | Exception]:
        """Send independent calls in one write, once; a refusal is returned in its place."""

    @abstractmethod
    def request(self) -> AbstractContextManager[str]:
        """Reserve a request id for one call that may have to be sent several times."""

    @abstractmethod
    async def now(self) -> float:
        """Return the time of the clock that commands go by, in seconds since 1970."""


class OfflineStore(Store):
    """Refuses every command: for a job in a process that has no connection to Redis."""

    namespace = ""

    async def send(self, call: Call[T]) -> T:
        """Refuse it."""
        raise refusal(call.command)

    async def pipeline(self, calls: Sequence[Call[T]]) -> NoReturn:
        """Refuse them."""
        raise refusal(calls[0].command)

    def request(self) -> NoReturn:
        """Refuse it."""
        raise refusal("request")

    async def now(self) -> NoReturn:
        """Refuse it."""
        raise refusal("now")


def refusal(what: str) -> AioqlessError:
    """Return the error for something that needs a connection."""
    return AioqlessError(
        f"{what}: a job in a process of its own has no connection to Redis. Change job.data, "
        "return Next, raise Retry or Fail; for anything else use a Client of that process"
    )
