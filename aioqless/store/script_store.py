"""A store that runs the scripts of commands in Redis, and retries calls that got no answer."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import math
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, cast

from redis import exceptions

from aioqless import errors
from aioqless.lua import constant
from aioqless.redis.connection import REDIS_UNAVAILABLE, CommandConnection
from aioqless.redis.durability import DurableWrites
from aioqless.store.call import Arguments, Call, T
from aioqless.store.composer import compose
from aioqless.store.header import read_command
from aioqless.store.invocation import Invocation, lay_out, time_arguments
from aioqless.store.request_ids import RequestIds
from aioqless.store.store import Store

ATTEMPTS = 3
MAX_PAUSE = 0.5  # seconds between two attempts
# Seconds after which a call isn't sent again, since its first answer may have expired.
RETRY_WINDOW = constant("ANSWER_TTL") - 20.0


class ScriptStore(Store):
    """The commands of one namespace on one Redis.

    A call whose connection breaks, or that takes longer than the timeout of the connection, is sent
    again. That is safe: a write has a request id, by which the script returns its first answer
    instead of doing it twice. No call is sent again when that answer may have expired.

    Args:
        connection: Sends the calls.
        namespace: Prefix of all keys.
        attempts: Number of attempts.
        limit: Seconds after which no further attempt is made.
        patience: Seconds for which durable commands are tried at least, as long as a fail-over
            may take.
        durable: Sends durable commands, if these have to wait for replicas or the disk.
        clock: Clock of the commands; default: that of Redis.
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
                f"namespace {namespace!r} must be a printable name without ':', "
                "which separates the parts of a key"
            )
        self.connection = connection
        self.namespace = namespace
        self.attempts = attempts
        self.limit = limit
        self.patience = patience
        self._durable = durable
        self._clock = clock
        self._request_ids = RequestIds()

    async def send(self, call: Call[T]) -> T:
        """Send a call, again if it gets no answer, and return its reply as its header says.

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
        """Reserve a request id for one call that may have to be sent several time_arguments.

        It is free for other calls when the block is left.
        """
        return self._request_ids.reserve()

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
                answers[index] = await self._send_or_error(invocation)
            else:
                answers[index] = invocation.read_or_error(reply)
        return answers

    async def aclose(self) -> None:
        """Close the connections."""
        await self.connection.aclose()
        if self._durable is not None:
            await self._durable.aclose()

    async def now(self) -> float:
        """Return the time of the clock that commands go by, in seconds since 1970."""
        if self._clock is not None:
            return self._clock()
        seconds, microseconds = await self.connection.execute("TIME")
        return int(seconds) + int(microseconds) / 1_000_000

    async def _send_or_error(self, call: Invocation) -> Any:
        try:
            return call.read(await self._send(call))
        except (exceptions.ResponseError, errors.AioqlessError) as error:
            return error

    def _lay_out(self, call: Call, arguments: Arguments) -> Invocation:
        if self._clock is not None:
            for name in time_arguments(call.command, call.form):
                if arguments.get(name) is None:
                    arguments = arguments | {name: self._clock()}
        return lay_out(self.namespace, call.command, call.form, arguments)

    async def _send(self, call: Invocation) -> Any:
        began = time.monotonic()
        try:
            return await self._evaluate(call)
        except REDIS_UNAVAILABLE as broken:
            if isinstance(broken, exceptions.AuthenticationError):
                raise
            why = broken
        return await self._send_again(call, began, why)

    async def _send_again(self, call: Invocation, began: float, why: Exception) -> Any:
        """Retry until attempts and time are used up; then raise the error of the last attempt."""
        patience = self.patience if call.is_durable else 0.0
        until = began + min(max(self.limit, patience), RETRY_WINDOW)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(until - time.monotonic()):
                for attempt in itertools.count(1):
                    if attempt >= self.attempts and time.monotonic() - began >= patience:
                        break
                    await asyncio.sleep(min(0.05 * attempt, MAX_PAUSE))
                    try:
                        return await self._evaluate(call)
                    except REDIS_UNAVAILABLE as broken:
                        why = broken
                        if isinstance(broken, exceptions.AuthenticationError):
                            break
                    except errors.QueueFull as full:
                        if full.code == "FULL":  # also true of the first attempt
                            raise
                        return await self._first_answer(call)
        raise why

    async def _first_answer(self, call: Invocation) -> Any:
        """Return the stored answer to a call that was refused for lack of memory when sent again.

        Raises:
            QueueFull: It was never carried out.
        """
        script = compose(call.command, self.namespace, answer_only=True)
        try:
            return await self.connection.execute("EVAL", script.text, *call.evalsha[2:])
        except exceptions.ResponseError as refused:
            raise call.make_error(refused) from None

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
            raise call.make_error(refused) from None
