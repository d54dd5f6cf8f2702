"""Call the state machine: send a command's script, again where that is needed, and read its reply.

Commands are called by the argument names of their headers. A wrong or missing name is a TypeError
before anything is sent.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import math
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, cast

from redis import exceptions

from aioqless import errors
from aioqless.lua import constant
from aioqless.redis.connection import UNAVAILABLE, CommandConnection
from aioqless.redis.durability import DurableWrites
from aioqless.store.call import Arguments, Call, T
from aioqless.store.composer import compose
from aioqless.store.header import read_command
from aioqless.store.invocation import Invocation, lay_out, times
from aioqless.store.store import Store

ATTEMPTS = 3
LONGEST_PAUSE = 0.5  # seconds between two tries
# seconds after which a call isn't sent again, since its first answer may have expired
FORGOTTEN = constant("ANSWER_TTL") - 20.0


class ScriptStore(Store):
    """The commands of one namespace on one Redis.

    A call whose connection breaks, or that takes longer than the connection's `timeout`, is sent
    again, `attempts` times in all: reads as they are, writes under a request identity, by which the
    script answers a repeated call with its first answer instead of doing it twice; but not when
    that answer may be forgotten by then, nor for more than `limit` seconds. Durable commands are
    tried for at least `patience` seconds, as long as a fail-over may take. Scripts go
    by Redis' clock, or by `clock` where one is given.
    """

    def __init__(
        self,
        connection: CommandConnection,
        namespace: str = "ql",
        *,
        attempts: int = ATTEMPTS,
        limit: float = math.inf,
        patience: float = 0.0,
        durable: DurableWrites | None = None,
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
        self._durable = durable
        self._clock = clock
        self._lines = _Lines()

    async def send(self, call: Call[T]) -> T:
        """Send a call, again where that is needed, and return its reply as its header says.

        Raises:
            ScriptError: Redis refuses it; QueueFull among them.
            redis.exceptions.RedisError: Redis can't be reached.
        """
        if not read_command(call.command).writes or call.arguments.get("request") is not None:
            invocation = self._lay_out(call, call.arguments)
            return cast(T, invocation.read(await self._send(invocation)))
        with self.request() as request:
            invocation = self._lay_out(call, call.arguments | {"request": request})
            return cast(T, invocation.read(await self._send(invocation)))

    def request(self) -> AbstractContextManager[str]:
        """Reserve a request id for one call that may have to be sent several times.

        It is free for other calls when the block is left.
        """
        return self._lines.request()

    async def pipeline(self, calls: Sequence[Call]) -> list[Any]:
        """Send independent calls in one write, once; a refusal is returned in its place.

        So is the error for arguments that can't be sent. Calls may be carried out in another order
        than given if Redis has to be sent a script first.
        """
        answers: list[Any] = [None] * len(calls)
        sent: dict[int, Invocation] = {}
        for index, call in enumerate(calls):
            try:
                sent[index] = self._lay_out(call, call.arguments)
            except (TypeError, ValueError) as error:
                answers[index] = error
        replies = await self.connection.execute_many(
            [invocation.evalsha for invocation in sent.values()], raise_errors=False
        )
        for (index, invocation), reply in zip(sent.items(), replies, strict=True):
            if isinstance(reply, exceptions.NoScriptError):
                try:
                    reply = await self._send(invocation)
                except (exceptions.ResponseError, errors.AioqlessError) as refused:
                    reply = refused
            answers[index] = invocation.read_or_error(reply)
        return answers

    async def aclose(self) -> None:
        """Close the connections."""
        await self.connection.aclose()
        if self._durable is not None:
            await self._durable.aclose()

    async def now(self) -> float:
        """What time it is by the clock that scripts go by, in seconds since 1970."""
        if self._clock is not None:
            return self._clock()
        seconds, microseconds = await self.connection.execute("TIME")
        return int(seconds) + int(microseconds) / 1_000_000

    def _lay_out(self, call: Call, arguments: Arguments) -> Invocation:
        if self._clock is not None:
            for name in times(call.command, call.form):
                if arguments.get(name) is None:
                    arguments = arguments | {name: self._clock()}
        return lay_out(self.namespace, call.command, call.form, arguments)

    async def _send(self, call: Invocation) -> Any:
        began = time.monotonic()
        try:
            return await self._evaluate(call)
        except UNAVAILABLE as broken:
            if isinstance(broken, exceptions.AuthenticationError):
                raise
            why = broken
        return await self._send_again(call, began, why)

    async def _send_again(self, call: Invocation, began: float, why: Exception) -> Any:
        """Try on, until attempts and time are used up; then raise what the last attempt met."""
        patience = self.patience if call.is_durable else 0.0
        until = began + min(max(self.limit, patience), FORGOTTEN)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(until - time.monotonic()):
                for attempt in itertools.count(1):
                    if attempt >= self.attempts and time.monotonic() - began >= patience:
                        break
                    await asyncio.sleep(min(0.05 * attempt, LONGEST_PAUSE))
                    try:
                        return await self._evaluate(call)
                    except UNAVAILABLE as broken:
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

    async def _first_answer(self, call: Invocation) -> Any:
        """What came of a call that was refused for want of memory when it was sent again. Raises
        QueueFull if it was never carried out.
        """
        back = compose(call.command, self.namespace, looks_back=True)
        try:
            return await self.connection.execute("EVAL", back.text, *call.evalsha[2:])
        except exceptions.ResponseError as refused:
            raise call.error(refused) from None

    async def _evaluate(self, call: Invocation) -> Any:
        execute = (
            self._durable.execute if self._durable and call.is_durable else self.connection.execute
        )
        try:
            try:
                return await execute(*call.evalsha)
            except exceptions.NoScriptError:
                return await execute("EVAL", call.script.text, *call.evalsha[2:])
        except exceptions.ResponseError as refused:
            raise call.error(refused) from None


class _Lines:
    """Request identities: each names a line of requests, one at a time, and counts them.

    Owns the free lines. There are as many as calls were ever under way at once, so scripts have
    that many answers to keep.
    """

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
