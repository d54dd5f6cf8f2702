"""Call the state machine: compose a command's script, send it, read its reply.

Commands are called by the argument names of their headers. A wrong or missing name is a TypeError before anything is sent.
"""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import json
import re
import secrets
from collections.abc import Awaitable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias

import msgspec
from redis import exceptions
from redis.asyncio import Redis

from aioqless import errors
from aioqless.compose import Arg, Command, Form, Script, compose, read_command

Text: TypeAlias = str | bytes

_REFUSAL = re.compile(r"([A-Z]+) (\{.*\})", re.DOTALL)
_POSITION = re.compile(r"user_script:(\d+)")


@dataclass(frozen=True)
class Call:
    """One command with its arguments, ready to be sent."""

    script: Script
    sha: str
    keys: tuple[Text, ...]
    argv: tuple[Text, ...]
    returns: str

    @property
    def command(self) -> str:
        return self.script.command.name


class Scripts:
    """The commands of one namespace on one Redis.

    A call whose connection breaks, or that takes longer than `timeout` seconds, is sent again, `attempts` times in all: reads as
    they are, writes under a request identity, by which the script answers a repeated call with its first answer instead of doing
    it twice.
    """

    def __init__(self, redis: Redis, namespace: str = "ql", *, attempts: int = 3, timeout: float | None = None) -> None:
        if not namespace or ":" in namespace or not namespace.isprintable():
            raise ValueError(f"namespace {namespace!r} must be a printable name without ':', which separates the parts of a key")
        self.redis = redis
        self.namespace = namespace
        self.attempts = attempts
        self.timeout = timeout
        self._lines = _Lines()

    async def __call__(self, command: str, word: str | None = None, /, **arguments: Any) -> Any:
        """Run one command and return its reply, read as its header says.

        Raises ScriptError for a refusal, QueueFull when Redis has no memory for a new job, and redis-py's errors when
        Redis can't be reached.
        """
        if not read_command(command).writes or "request" in arguments:
            return await self._answer(self.prepare(command, word, **arguments))
        with self.request() as request:
            return await self._answer(self.prepare(command, word, request=request, **arguments))

    def request(self) -> AbstractContextManager[str]:
        """An identity for one call that may have to be sent several times; it is free for other calls when the block is left."""
        return self._lines.request()

    def prepare(self, command: str, word: str | None = None, /, **arguments: Any) -> Call:
        """Check a command's arguments and lay them out as its header says. Raises TypeError for a wrong or missing name."""
        header = read_command(command)
        form = _form_of(header, word)
        keys = self._keys(header, arguments)
        argv = _argv(header, form, word, arguments)
        script, sha = _composed(command, self.namespace)
        return Call(script, sha, keys, argv, form.returns or header.returns)

    async def pipeline(self, calls: Sequence[Call]) -> list[Any]:
        """Send independent calls in one write; a refusal is returned in its place, not raised.

        They may be carried out in another order than given when the server had to be told its scripts again.
        """
        pipe = self.redis.pipeline(transaction=False)
        for call in calls:
            pipe.execute_command("EVALSHA", call.sha, len(call.keys), *call.keys, *call.argv)
        replies = await self._within(pipe.execute(raise_on_error=False))
        for index, (call, reply) in enumerate(zip(calls, replies, strict=True)):
            if isinstance(reply, exceptions.NoScriptError):
                try:
                    replies[index] = await self._send(call)
                except (exceptions.ResponseError, errors.AioqlessError) as refused:
                    replies[index] = refused
        return [self._read_or_error(call, reply) for call, reply in zip(calls, replies, strict=True)]

    async def _answer(self, call: Call) -> Any:
        return self._read(call, await self._send(call))

    async def _send(self, call: Call) -> Any:
        for attempt in itertools.count(1):
            try:
                return await self._evaluate(call)
            except (exceptions.ConnectionError, exceptions.TimeoutError) as broken:
                if attempt >= self.attempts or isinstance(broken, exceptions.AuthenticationError):
                    raise
                await asyncio.sleep(0.05 * attempt)
        raise AssertionError

    async def _evaluate(self, call: Call) -> Any:
        evaluate = ("EVALSHA", call.sha, len(call.keys), *call.keys, *call.argv)
        try:
            try:
                return await self._execute(*evaluate)
            except exceptions.NoScriptError:
                await self._execute("SCRIPT LOAD", call.script.text)
                return await self._execute(*evaluate)
        except exceptions.ResponseError as refused:
            raise self._error(call, refused) from None

    async def _execute(self, *command: Any) -> Any:
        return await self._within(self.redis.execute_command(*command))  # type: ignore[no-untyped-call]

    async def _within(self, answer: Awaitable[Any]) -> Any:
        try:
            async with asyncio.timeout(self.timeout):
                return await answer
        except TimeoutError:
            raise exceptions.TimeoutError(f"Redis did not answer within {self.timeout} s") from None

    def _keys(self, header: Command, arguments: dict[str, Any]) -> tuple[Text, ...]:
        """One key of the namespace, by which a Cluster finds the node; it carries the queue where there is one."""
        if header.key:
            return (self._queue_key(header, arguments.pop(header.key, None)),)
        if header.keys:
            return tuple(self._queue_key(header, queue) for queue in arguments.pop(header.keys, ()))
        return (self.namespace,)

    def _queue_key(self, header: Command, queue: str | None) -> Text:
        if queue is None:
            raise TypeError(f"{header.name}: the argument {header.key} is missing")
        return f"{self.namespace}:q:{queue}".encode("utf-8", "surrogateescape")

    def _read(self, call: Call, reply: Any) -> Any:
        match call.returns:
            case "json":
                return None if reply is None else from_json(reply)
            case "number":
                number = float(reply)
                return int(number) if number.is_integer() else number
            case "list":
                return [self._read_item(call, item) for item in reply]
            case "text":
                return as_text(reply)
            case _:
                return None

    def _read_item(self, call: Call, item: Any) -> Any:
        if isinstance(item, exceptions.ResponseError):
            return self._error(call, item)
        return as_text(item) if isinstance(item, bytes) else item

    def _read_or_error(self, call: Call, reply: Any) -> Any:
        if isinstance(reply, exceptions.ResponseError):
            return self._error(call, reply)
        return reply if isinstance(reply, Exception) else self._read(call, reply)

    def _error(self, call: Call, error: exceptions.ResponseError) -> Exception:
        if isinstance(error, exceptions.OutOfMemoryError):
            return errors.QueueFull(f"{call.command}: Redis is at its maxmemory and takes nothing new; work jobs off or raise the limit")
        text = str(error)
        if refused := _REFUSAL.match(text):
            return errors.refusal(call.command, refused[1], json.loads(refused[2], strict=False))
        if position := _POSITION.search(text):
            return type(error)(f"{call.script.origin(int(position[1]))}: {text}")
        return error


class _Lines:
    """Request identities: each names a line of requests, one at a time, and counts them.

    Owns the free lines. There are as many as calls were ever under way at once, so scripts have that many answers to keep.
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


@cache
def _composed(command: str, namespace: str) -> tuple[Script, str]:
    script = compose(command, namespace)
    return script, hashlib.sha1(script.text.encode(), usedforsecurity=False).hexdigest()


def _form_of(header: Command, word: str | None) -> Form:
    if not header.forms:
        if word is not None:
            raise TypeError(f"{header.name}: takes no word such as {word!r}")
        return header.lead
    name = word or header.default
    if name not in header.forms:
        raise TypeError(f"{header.name}: the word must be one of {', '.join(header.forms)}, not {name!r}")
    return header.forms[name]


def _argv(header: Command, form: Form, word: str | None, arguments: dict[str, Any]) -> tuple[Text, ...]:
    """Lay out the arguments: what leads, the word, what it takes, a tail or batch, then the options by name."""
    given = dict(arguments)
    argv: list[Text] = []
    if header.forms:
        argv += [_positional(header, arg, given) for arg in header.lead.args]
        argv.append(word or header.default or "")
    argv += [_positional(header, arg, given) for arg in form.args]
    if form.rest:
        argv += [_encoded(value) for value in given.pop(form.rest.name, None) or ()]
    if form.batch:
        argv += _batch(form.batch, given.pop("batch"))
    options = [(option.name, given.pop(option.name, None)) for option in form.options]
    if given:
        raise TypeError(f"{header.name}: unknown argument {', '.join(given)}")
    if form.rest and any(value is not None for _, value in options):
        argv.append("")
    for name, value in options:
        if value is not None:
            argv += [name, _encoded(value)]
    return tuple(argv)


def _positional(header: Command, arg: Arg, given: dict[str, Any]) -> Text:
    if arg.type == "literal":
        return arg.name
    if arg.name not in given and not arg.optional and arg.type != "time":
        raise TypeError(f"{header.name}: the argument {arg.name} is missing")
    return _encoded(given.pop(arg.name, None))


def _batch(args: list[Arg], tuples: Sequence[Mapping[str, Any]]) -> Iterator[Text]:
    yield str(len(tuples))
    for each in tuples:
        for arg in args:
            yield _encoded(each.get(arg.name))


def _encoded(value: Any) -> Text:
    match value:
        case None:
            return ""
        case bytes():
            return value
        case str():
            return value.encode("utf-8", "surrogateescape")
        case bool():
            raise TypeError(f"{value} is neither a text nor a number")
        case int() | float():
            return repr(value)
        case list() | tuple():
            return json.dumps(value)
    raise TypeError(f"{value!r} is neither a text nor a number nor a list of texts")


def as_text(reply: bytes) -> str:
    """Text as it is in Redis; bytes that aren't UTF-8, which peers may have written, survive the way back."""
    return reply.decode("utf-8", "surrogateescape")


def from_json(reply: bytes) -> Any:
    """A JSON reply. What live data may contain and strict JSON may not (odd bytes, infinities) is read too."""
    try:
        return msgspec.json.decode(reply)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return json.loads(as_text(reply), strict=False)
