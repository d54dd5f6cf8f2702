"""The store of code that runs without a connection."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from aioqless.errors import AioqlessError
from aioqless.store.call import Call, T
from aioqless.store.generated_commands import Store


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
        "return Next, raise Retry, Snooze or Fail; for anything else use a Client of that process"
    )
