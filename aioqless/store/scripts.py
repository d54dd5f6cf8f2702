"""Call the state machine: send a command's script, again where that is needed, and read its reply.

Commands are called by the argument names of their headers. A wrong or missing name is a TypeError
before anything is sent."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import math
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any

from redis import exceptions

from aioqless import errors
from aioqless.redis.connection import AWAY, Sends
from aioqless.redis.durability import DurableWrites
from aioqless.store.composer import compose
from aioqless.store.header import read_command
from aioqless.store.invocation import Call, lay_out, times

if TYPE_CHECKING:
    from aioqless.client.job.progress_reporter import Reports
    from aioqless.client.job.watcher import Followers
    from aioqless.contrib.encryption import Seal


ATTEMPTS = 3
LONGEST_PAUSE = 0.5  # seconds between two tries
FORGOTTEN = 100.0  # seconds after which a call isn't sent again: a first answer is kept for 120

# What callers ask for and count on. The rest is what workers do by themselves: where that is lost,
# a job runs again.
ASKED_FOR = {
    *(
        "put",
        "put_many",
        "put_flow",
        "requeue",
        "recur",
        "cancel",
        "clear",
        "depends",
        "priority",
        "tag",
        "track",
        "unfail",
        "timeout",
    ),
    *("complete", "fail", "retry", "config", "pause", "unpause"),
}


class Scripts:
    """The commands of one namespace on one Redis.

    A call whose connection breaks, or that takes longer than the connection's `timeout`, is sent
    again, `attempts` times in all: reads as they are, writes under a request identity, by which the
    script answers a repeated call with its first answer instead of doing it twice; but not when
    that answer may be forgotten by then, nor for more than `limit` seconds. What callers ask for,
    ASKED_FOR, is tried for `patience` seconds at least, as long as a fail-over may take. Scripts go
    by Redis' clock, or by `clock` where one is given."""

    seal: Seal | None = None  # of the data that its client puts and reads
    followers: Followers  # these two are there when a client has made them
    reports: Reports

    def __init__(
        self,
        connection: Sends,
        namespace: str = "ql",
        *,
        attempts: int = ATTEMPTS,
        limit: float = math.inf,
        patience: float = 0.0,
        clock: Callable[[], float] | None = None,
    ) -> None:
        if not namespace or ":" in namespace or not namespace.isprintable():
            raise ValueError(
                f"namespace {namespace!r} must be a printable name without ':', which separates the parts of a key"
            )
        self.connection = connection
        self.namespace = namespace
        self.attempts = attempts
        self.limit = limit
        self.patience = patience
        self.durable: DurableWrites | None = (
            None  # what sends ASKED_FOR, where more is promised than the server's word
        )
        self._clock = clock
        self._lines = _Lines()

    async def __call__(self, command: str, word: str | None = None, /, **arguments: Any) -> Any:
        """Run one command and return its reply, read as its header says.

        Raises ScriptError for a refusal, QueueFull among them, and redis-py's errors when Redis
        can't be reached."""
        if not read_command(command).writes or "request" in arguments:
            return await self._answer(self.prepare(command, word, **arguments))
        with self.request() as request:
            return await self._answer(self.prepare(command, word, request=request, **arguments))

    def request(self) -> AbstractContextManager[str]:
        """An identity for one call that may have to be sent several times; it is free for other
        calls when the block is left."""
        return self._lines.request()

    def prepare(self, command: str, word: str | None = None, /, **arguments: Any) -> Call:
        """Lay out a command to be sent by `pipeline`. Raises TypeError for a wrong or missing name
        of an argument."""
        if self._clock is not None:
            arguments = dict.fromkeys(times(command, word), self._clock()) | arguments
        return lay_out(self.namespace, command, word, arguments)

    async def pipeline(self, calls: Sequence[Call]) -> list[Any]:
        """Send independent calls in one write; a refusal is returned in its place, not raised.

        They may be carried out in another order than given when the server had to be told its
        scripts again."""
        replies = await self.connection.execute_many(
            [call.evalsha for call in calls], raise_errors=False
        )
        for index, (call, reply) in enumerate(zip(calls, replies, strict=True)):
            if isinstance(reply, exceptions.NoScriptError):
                try:
                    replies[index] = await self._send(call)
                except (exceptions.ResponseError, errors.AioqlessError) as refused:
                    replies[index] = refused
        return [call.read_or_error(reply) for call, reply in zip(calls, replies, strict=True)]

    async def now(self) -> float:
        """What time it is by the clock that scripts go by, in seconds since 1970."""
        if self._clock is not None:
            return self._clock()
        seconds, microseconds = await self.connection.execute("TIME")
        return int(seconds) + int(microseconds) / 1_000_000

    async def _answer(self, call: Call) -> Any:
        return call.read(await self._send(call))

    async def _send(self, call: Call) -> Any:
        began = time.monotonic()
        try:
            return await self._evaluate(call)
        except AWAY as broken:
            if isinstance(broken, exceptions.AuthenticationError):
                raise
            why = broken
        return await self._send_again(call, began, why)

    async def _send_again(self, call: Call, began: float, why: Exception) -> Any:
        """Try on, until attempts and time are used up; then raise what the last attempt met."""
        patience = self.patience if call.command in ASKED_FOR else 0.0
        until = began + min(max(self.limit, patience), FORGOTTEN)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(until - time.monotonic()):
                for attempt in itertools.count(1):
                    if attempt >= self.attempts and time.monotonic() - began >= patience:
                        break
                    await asyncio.sleep(min(0.05 * attempt, LONGEST_PAUSE))
                    try:
                        return await self._evaluate(call)
                    except AWAY as broken:
                        why = broken
                        if isinstance(broken, exceptions.AuthenticationError):
                            break
                    except errors.QueueFull as full:
                        if (
                            full.code == "FULL"
                        ):  # what the script itself says holds for the first attempt, too
                            raise
                        return await self._first_answer(call)
        raise why

    async def _first_answer(self, call: Call) -> Any:
        """What came of a call that was refused for want of memory when it was sent again. Raises
        QueueFull if it was never carried out."""
        back = compose(call.command, self.namespace, looks_back=True)
        try:
            return await self.connection.execute("EVAL", back.text, *call.evalsha[2:])
        except exceptions.ResponseError as refused:
            raise call.error(refused) from None

    async def _evaluate(self, call: Call) -> Any:
        execute = (
            self.durable.execute
            if self.durable and call.command in ASKED_FOR
            else self.connection.execute
        )
        try:
            try:
                return await execute(*call.evalsha)
            except exceptions.NoScriptError:
                return await execute("EVAL", call.script.text, *call.evalsha[2:])
        except exceptions.ResponseError as refused:
            raise call.error(refused) from None


class NoScripts(Scripts):
    """Where there is no connection: every command is refused."""

    def __init__(self) -> None:
        pass

    async def __call__(self, command: str, word: str | None = None, /, **arguments: Any) -> Any:
        raise self._refusal(command)

    def __getattr__(self, name: str) -> Any:
        raise (
            self._refusal("progress" if name == "reports" else "wait")
            if name in Scripts.__annotations__
            else AttributeError(name)
        )

    def _refusal(self, what: str) -> errors.AioqlessError:
        return errors.AioqlessError(
            f"{what}: a job in a process of its own has no connection to Redis. Change job.data, return Next, raise Retry or Fail; "
            "for anything else use a Client of that process"
        )


class _Lines:
    """Request identities: each names a line of requests, one at a time, and counts them.

    Owns the free lines. There are as many as calls were ever under way at once, so scripts have
    that many answers to keep."""

    def __init__(self) -> None:
        self._name = secrets.token_hex(6)
        self._numbers: dict[int, int] = {}
        self._free: list[int] = []

    @contextmanager
    def request(self) -> Iterator[str]:
        line = self._free.pop() if self._free else len(self._numbers)
        self._numbers[line] = self._numbers.get(line, 0) + 1
        try:
            yield f"{self._name}.{line}:{self._numbers[line]}"
        finally:
            self._free.append(line)
