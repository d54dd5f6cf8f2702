"""A store that runs the scripts of commands in Redis, and retries calls that got no answer."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import math
import re
import secrets
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import partial
from typing import TypeAlias

from redis import exceptions

from aioqless import errors
from aioqless.lua import constant
from aioqless.redis.connection import REDIS_UNAVAILABLE, CommandConnection, RedisCommand, Reply
from aioqless.redis.durability import DurableWrites
from aioqless.redis.encoding import decode_text
from aioqless.store.call import Call, T
from aioqless.store.generated_commands import Store
from aioqless.store.run_lock import MAX_PAUSE, current_lock, repeat_while_locked
from aioqless.store.script_composer import NOTED, Script, compose

ATTEMPTS = 3
# Seconds after which a call isn't sent again, since its first answer may have expired.
RETRY_WINDOW = constant("ANSWER_TTL") - 20.0

Words: TypeAlias = list[bytes | int]  # of a command, after the script

_NOTED = NOTED.encode()
_REFUSAL = re.compile(r"([A-Z]+) (\{.*\})", re.DOTALL)
_NOT_PERMITTED = re.compile(
    r"The user executing the script can't|ACL failure in script"
)  # up to Redis 7.0, and later ones
_POSITION = re.compile(r"user_script:(\d+)")
_NO_SHEBANG = "unexpected symbol near '#'"  # which Redis says of a script's first line before 7.0


class RequestLine:
    """A line of request ids, `line:number`: one request at a time, and Redis keeps its last answer.

    There are as many lines as calls were ever under way at once. A line is free for other calls
    when its block is left, unless its call was canceled: that may be sent again, or still be on its
    way.
    """

    __slots__ = ("_free", "_name", "_number")

    def __init__(self, name: str, free: list[RequestLine]) -> None:
        self._name = name
        self._number = 0
        self._free = free

    def __enter__(self) -> str:
        self._number += 1
        return f"{self._name}:{self._number}"

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not asyncio.CancelledError:
            self._free.append(self)


class ScriptStore(Store):
    """The commands of one namespace on one Redis.

    A call whose connection breaks, or that takes longer than the timeout of the connection, is sent
    again. That is safe: a write has a request id, by which the script returns its first answer
    instead of doing it twice. No call is sent again when that answer may have expired. The calls of
    a handler are sent again for as long as the lock of its run lasts.

    Owns the lines of request ids that are free.

    Args:
        connection: Sends the calls.
        namespace: Prefix of all keys.
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
        self.limit = limit
        self.patience = patience
        self._durable = durable
        self.clock = clock
        self._name = secrets.token_hex(6)  # of its request lines; no other process has it
        self._line_numbers = itertools.count()
        self._free_lines: list[RequestLine] = []
        self._sent: set[str] = set()  # digests of the scripts whose text was sent

    async def send(self, call: Call[T]) -> T:
        """Send a call, again if it gets no answer, and return its reply as its header says.

        What follows from it for other jobs is done then.

        Raises:
            ScriptError: Redis refuses it; QueueFull among them.
            redis.exceptions.RedisError: Redis can't be reached.
        """
        try:
            return await self._send(call)
        finally:
            if call.noted is not None:
                await self._run_agenda(call.noted)

    async def _run_agenda(self, noted: str) -> None:
        """Do what calls have noted for other jobs; ticks do it if Redis can't be reached."""
        with contextlib.suppress(exceptions.RedisError, errors.AioqlessError):
            await self._send(self.agenda(now=float(noted) if noted else None))

    async def _send(self, call: Call[T]) -> T:
        """Send a call, again if it gets no answer."""
        needs_request = call.writes and call.request is None
        with self.request() if needs_request else nullcontext(call.request) as request:
            words = call.words(request)
            began = time.monotonic()
            try:
                return await self._evaluate(call, words)
            except REDIS_UNAVAILABLE as broken:
                if isinstance(broken, exceptions.AuthenticationError):
                    raise
                why = broken
            if (lock := current_lock.get()) is None:
                return await self._send_again(call, words, began, why)
            until = began + RETRY_WINDOW if call.writes else math.inf
            again = partial(self._attempt_again, call, words)
            return await repeat_while_locked(again, lock, why, until=until)

    def request(self) -> RequestLine:
        """Reserve a request id for one call that may have to be sent several times."""
        if self._free_lines:
            return self._free_lines.pop()
        return RequestLine(f"{self._name}.{next(self._line_numbers)}", self._free_lines)

    async def pipeline(self, calls: Sequence[Call[T]]) -> list[T | Exception]:
        """Send independent calls in one write, once; a refusal is returned in its place.

        Calls may be carried out in another order than given if Redis has to be sent a script first.
        """
        commands: list[RedisCommand] = [
            ("EVALSHA", compose(call.command, self.namespace).sha, *call.words(call.request))
            for call in calls
        ]
        replies = await self.connection.execute_many(commands, raise_errors=False)
        answers = [
            await self._read_in_pipeline(call, reply)
            for call, reply in zip(calls, replies, strict=True)
        ]
        if noted := [call.noted for call in calls if call.noted is not None]:
            await self._run_agenda(noted[-1])
        return answers

    async def aclose(self) -> None:
        """Close the connections."""
        await self.connection.aclose()
        if self._durable is not None:
            await self._durable.aclose()

    async def now(self) -> float:
        """Return the time of the clock that commands go by, in seconds since 1970."""
        if self.clock is not None:
            return self.clock()
        seconds, microseconds = await self.read_server("TIME")
        return int(seconds) + int(microseconds) / 1_000_000

    async def read_server(self, *command: str | int) -> Reply:
        """Send a command of Redis that only reads; that of a handler again while it has its lock.

        Raises:
            redis.exceptions.RedisError: Redis can't be reached, or refuses it.
        """
        try:
            return await self.connection.execute(*command)
        except REDIS_UNAVAILABLE as why:
            if (lock := current_lock.get()) is None:
                raise
            again = partial(self.connection.execute, *command)
            return await repeat_while_locked(again, lock, why)

    async def _send_again(self, call: Call[T], words: Words, began: float, why: Exception) -> T:
        """Retry until attempts and time are used up; then raise the error of the last attempt."""
        patience = self.patience if call.durable else 0.0
        until = began + min(max(self.limit, patience), RETRY_WINDOW)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(until - time.monotonic()):
                for attempt in itertools.count(1):
                    if attempt >= ATTEMPTS and time.monotonic() - began >= patience:
                        break
                    await asyncio.sleep(min(0.05 * attempt, MAX_PAUSE))
                    try:
                        return await self._attempt_again(call, words)
                    except REDIS_UNAVAILABLE as broken:
                        why = broken
                        if isinstance(broken, exceptions.AuthenticationError):
                            break
        raise why

    async def _attempt_again(self, call: Call[T], words: Words) -> T:
        """Send a call that was sent before, once."""
        try:
            return await self._evaluate(call, words)
        except errors.QueueFull as full:
            if full.code == "FULL":  # also true of the first attempt
                raise
            return await self._read_first_answer(call, words)

    async def _read_first_answer(self, call: Call[T], words: Words) -> T:
        """Return the stored answer to a call that was refused for lack of memory when sent again.

        Raises:
            QueueFull: It was never carried out.
        """
        script = compose(call.command, self.namespace, answer_only=True)
        try:
            return self._read(call, await self.connection.execute("EVAL", script.text, *words))
        except exceptions.ResponseError as refused:
            raise self._make_error(call, refused) from None

    async def _evaluate(self, call: Call[T], words: Words) -> T:
        script = compose(call.command, self.namespace)
        sender = self._durable if self._durable and call.durable else self.connection
        try:
            try:
                reply = await sender.execute("EVALSHA", script.sha, *words)
            except exceptions.NoScriptError:
                reply = await self._load(sender, script, words)
        except exceptions.ResponseError as error:
            raise self._make_error(call, error) from None
        except errors.NotDurable as late:
            late.result = self._read(call, late.result)
            raise
        return self._read(call, reply)

    async def _load(
        self, sender: CommandConnection | DurableWrites, script: Script, words: Words
    ) -> Reply:
        """Call a script by its text, after which the server knows it.

        Servers keep only 500 of the scripts that they know from EVAL alone. One that was forgotten
        is loaded for good. Others aren't: namespaces that are used once would fill the memory.
        """
        calls = [sender.execute("EVAL", script.text, *words)]
        if script.sha in self._sent:
            calls.append(self.connection.execute("SCRIPT", "LOAD", script.text))
        self._sent.add(script.sha)
        reply, *_ = await asyncio.gather(*calls, return_exceptions=True)
        if isinstance(reply, BaseException):
            raise reply from None
        return reply

    async def _read_in_pipeline(self, call: Call[T], reply: Reply) -> T | Exception:
        """Return the answer to one of several calls; send it alone if Redis lacks its script."""
        try:
            if isinstance(reply, exceptions.NoScriptError):
                return await self._send(call)
        except (exceptions.ResponseError, errors.AioqlessError) as error:
            return error
        if isinstance(reply, exceptions.ResponseError):
            return self._make_error(call, reply)
        return reply if isinstance(reply, Exception) else self._read(call, reply)

    def _read(self, call: Call[T], reply: Reply) -> T:
        if isinstance(reply, list) and reply and reply[0] == _NOTED:
            call.noted = decode_text(reply[1])
            reply = reply[2] if len(reply) > 2 else None
        if isinstance(reply, list):
            reply = [
                self._make_error(call, item) if isinstance(item, exceptions.ResponseError) else item
                for item in reply
            ]
        return call.read(reply)

    def _make_error(self, call: Call[T], error: exceptions.ResponseError) -> Exception:
        """Return the exception for an error reply: a refusal, or an error of the script."""
        if isinstance(error, exceptions.OutOfMemoryError):
            why = (
                "Redis is at its maxmemory and takes nothing new; work jobs off or raise the limit"
            )
            return errors.script_error(call.command, "OOM", {"why": why})
        text = str(error)
        if refused := _REFUSAL.match(text):
            return errors.script_error(
                call.command, refused[1], json.loads(refused[2], strict=False)
            )
        if _NO_SHEBANG in text:
            return errors.AioqlessError(
                "this Redis is older than 7.0, the oldest that aioqless can use: update the server"
            )
        kind = exceptions.NoPermissionError if _NOT_PERMITTED.search(text) else type(error)
        if position := _POSITION.search(text):
            origin = compose(call.command, self.namespace).origin(int(position[1]))
            return kind(f"{origin}: {text}")
        return error if kind is type(error) else kind(text)
