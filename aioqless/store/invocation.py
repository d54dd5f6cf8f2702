"""A call laid out to be sent as the header says, and how its reply is read."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias

from redis import exceptions

from aioqless import errors
from aioqless.redis.connection import Command as Sent
from aioqless.redis.encoding import decode_json, decode_text
from aioqless.store.composer import Script, compose
from aioqless.store.header import Arg, Command, Form, read_command

Text: TypeAlias = str | bytes

_REFUSAL = re.compile(r"([A-Z]+) (\{.*\})", re.DOTALL)
_NOT_PERMITTED = re.compile(
    r"The user executing the script can't|ACL failure in script"
)  # up to Redis 7.0, and later ones
_POSITION = re.compile(r"user_script:(\d+)")


@dataclass(frozen=True)
class Invocation:
    """One command with its arguments, ready to be sent.

    Attributes:
        script: Its script.
        sha: SHA-1 of the script.
        keys: The KEYS.
        argv: The ARGV.
        returns: How the reply is read.
    """

    script: Script
    sha: str
    keys: tuple[Text, ...]
    argv: tuple[Text, ...]
    returns: str

    @property
    def command(self) -> str:
        """Name of the command."""
        return self.script.command.name

    @property
    def is_durable(self) -> bool:
        """Whether its caller relies on it, as its header says."""
        return self.script.command.durable

    @property
    def evalsha(self) -> Sent:
        """The EVALSHA command."""
        return ("EVALSHA", self.sha, len(self.keys), *self.keys, *self.argv)

    def read(self, reply: Any) -> Any:
        """Read a reply as the header says."""
        match self.returns:
            case "json":
                return None if reply is None else decode_json(reply)
            case "number":
                number = float(reply)
                return int(number) if number.is_integer() else number
            case "list":
                return [self._item(item) for item in reply]
            case "text":
                return decode_text(reply)
            case _:
                return None

    def _item(self, item: Any) -> Any:
        if isinstance(item, exceptions.ResponseError):
            return self.make_error(item)
        return decode_text(item) if isinstance(item, bytes) else item

    def read_or_error(self, reply: Any) -> Any:
        """Read a reply that may be an error, which is returned."""
        if isinstance(reply, exceptions.ResponseError):
            return self.make_error(reply)
        return reply if isinstance(reply, Exception) else self.read(reply)

    def make_error(self, error: exceptions.ResponseError) -> Exception:
        """Return the exception for an error reply: a refusal, or an error of the script."""
        if isinstance(error, exceptions.OutOfMemoryError):
            why = (
                "Redis is at its maxmemory and takes nothing new; work jobs off or raise the limit"
            )
            return errors.script_error(self.command, "OOM", {"why": why})
        text = str(error)
        if refused := _REFUSAL.match(text):
            return errors.script_error(
                self.command, refused[1], json.loads(refused[2], strict=False)
            )
        kind = exceptions.NoPermissionError if _NOT_PERMITTED.search(text) else type(error)
        if position := _POSITION.search(text):
            return kind(f"{self.script.origin(int(position[1]))}: {text}")
        return error if kind is type(error) else kind(text)


def lay_out(
    namespace: str, command: str, word: str | None, arguments: Mapping[str, Any]
) -> Invocation:
    """Check the arguments of a command and put them in the order of its header.

    Raises:
        TypeError: An argument is missing, unknown or of a wrong type.
    """
    header, arguments = read_command(command), dict(arguments)
    form = _form_of(header, word)
    keys = _keys(namespace, header, arguments)
    argv = _argv(header, form, word, arguments)
    script, sha = _script_and_sha(command, namespace)
    return Invocation(script, sha, keys, argv, form.returns or header.returns)


@cache
def time_arguments(command: str, word: str | None) -> tuple[str, ...]:
    """Return the arguments that are points in time, which default to the clock of Redis."""
    header = read_command(command)
    return tuple(
        arg.name for arg in (*header.lead.args, *_form_of(header, word).args) if arg.type == "time"
    )


@cache
def _script_and_sha(command: str, namespace: str) -> tuple[Script, str]:
    script = compose(command, namespace)
    return script, hashlib.sha1(script.text.encode(), usedforsecurity=False).hexdigest()


def _keys(namespace: str, header: Command, arguments: dict[str, Any]) -> tuple[Text, ...]:
    """Return the KEYS: one of the namespace, by which a Cluster finds the node, or the queues."""
    if header.key:
        if (queue := arguments.pop(header.key, None)) is None:
            raise TypeError(f"{header.name}: the argument {header.key} is missing")
        return (_queue_key(namespace, queue),)
    if header.keys:
        return tuple(_queue_key(namespace, queue) for queue in arguments.pop(header.keys, ()))
    return (namespace,)


def _queue_key(namespace: str, queue: str) -> Text:
    return f"{namespace}:q:{queue}".encode("utf-8", "surrogateescape")


def _form_of(header: Command, word: str | None) -> Form:
    if not header.forms:
        if word is not None:
            raise TypeError(f"{header.name}: takes no word such as {word!r}")
        return header.lead
    name = word or header.default
    if name not in header.forms:
        raise TypeError(
            f"{header.name}: the word must be one of {', '.join(header.forms)}, not {name!r}"
        )
    return header.forms[name]


def _argv(header: Command, form: Form, word: str | None, given: dict[str, Any]) -> tuple[Text, ...]:
    """Return the ARGV: lead, word, arguments of the word, tail or batch, options by name."""
    argv: list[Text] = []
    if header.forms:
        argv += [_positional(header, arg, given) for arg in header.lead.args]
        argv.append(word or header.default or "")
    argv += [_positional(header, arg, given) for arg in form.args]
    if form.rest:
        argv += [_encoded(value) for value in given.pop(form.rest.name, None) or ()]
    if form.batch:
        argv += _batch(header, form.batch, given.pop("batch", None))
    options = [(option.name, given.pop(option.name, None)) for option in form.options]
    if given:
        raise TypeError(f"{header.name}: unknown argument {', '.join(given)}")
    if form.rest and (any(value is not None for _, value in options) or argv[-1:] in ([""], [b""])):
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


def _batch(
    header: Command, args: list[Arg], tuples: Sequence[Mapping[str, Any]] | None
) -> Iterator[Text]:
    if tuples is None:
        raise TypeError(f"{header.name}: the argument batch is missing")
    names = [arg.name for arg in args]
    known, needed = set(names), {arg.name for arg in args if not arg.optional}
    yield str(len(tuples))
    for each in tuples:
        if not needed <= each.keys() <= known:
            missing, unknown = ", ".join(needed - each.keys()), ", ".join(each.keys() - known)
            raise TypeError(
                f"{header.name}: "
                + (
                    f"unknown argument {unknown}"
                    if unknown
                    else f"the argument {missing} is missing"
                )
                + " in the batch"
            )
        yield from [b"" if value is None else _encoded(value) for value in map(each.get, names)]


def _encoded(value: Any) -> Text:
    if type(value) is str:  # by far the most
        return value.encode("utf-8", "surrogateescape")
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
