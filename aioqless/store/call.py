"""One call of a Lua command: what is sent, and how the reply is read."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Coroutine, Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NoReturn

from typing_extensions import TypeVar

from aioqless.redis.connection import Reply
from aioqless.redis.encoding import Json, decode_json, decode_text

T = TypeVar("T", default=Any)
T_co = TypeVar("T_co", covariant=True, default=Any)


@dataclass(slots=True, eq=False, repr=False)
class Call(Awaitable[T_co], Generic[T_co]):
    """A command with its arguments. Awaiting it sends it and returns its reply.

    Attributes:
        send: Sends it.
        command: Name of the Lua command.
        read: Reads a reply that is not an error.
        keys: The KEYS.
        argv: The ARGV, without the request id.
        request: Request id, by which a script recognizes a call that is sent again; if a writing
            call has none, one is reserved when it is sent.
        writes: Whether the command may change something.
        durable: Whether callers rely on it: it is retried for as long as a fail-over may take, and
            sent durably.
        noted: When it was called, if its reply said that there is something to do for other jobs;
            empty if the script took its own clock.
    """

    send: Callable[[Call[T_co]], Coroutine[object, object, T_co]]
    command: str
    read: Callable[[Reply], T_co]
    keys: list[bytes]
    argv: list[bytes]
    request: str | None = None
    writes: bool = False
    durable: bool = False
    noted: str | None = None

    def __await__(self) -> Generator[Any, None, T_co]:
        return self.send(self).__await__()

    def __repr__(self) -> str:
        return f"<Call {self.command}>"

    def words(self, request: str | None) -> list[bytes | int]:
        """Return what follows the script in EVALSHA or EVAL, with the given request id."""
        words: list[bytes | int] = [len(self.keys), *self.keys, *self.argv]
        if request is not None:
            words += [b"request", encode(request)]
        return words


class Commands:
    """What the methods of commands share.

    Attributes:
        namespace: Prefix of all keys.
        clock: Clock of the commands; None: that of Redis.
    """

    namespace: str
    clock: Callable[[], float] | None = None

    def _encode_queue(self, queue: str) -> bytes:
        return encode(f"{self.namespace}:q:") + encode(queue)

    def _encode_time(self, time: float | None) -> bytes:
        return encode_optional(self.clock() if time is None and self.clock else time)


def encode(value: object) -> bytes:
    """Encode an argument; bytes of others that aren't UTF-8 go back as they came.

    Raises:
        TypeError: It has another type.
    """
    match value:
        case str():
            return value.encode("utf-8", "surrogateescape")
        case bytes():
            return value
        case int() | float() if not isinstance(value, bool):
            return repr(value).encode()
        case list() | tuple():
            return json.dumps(value).encode()
    raise TypeError(f"an argument must be a string, a number or a list of strings (got {value!r})")


def encode_optional(value: object) -> bytes:
    """Encode an argument that may be left out: empty."""
    return b"" if value is None else encode(value)


class BatchEncoder:
    """Encodes the batches of one command: the number of rows, then the members of each.

    The last members that all rows leave out are not sent: `rows/members` says how many are.

    Args:
        command: The command, for errors.
        required: Names of the first members, with spaces between them.
        optional: Names of the members that may be left out.
    """

    def __init__(self, command: str, *, required: str, optional: str = "") -> None:
        self._command = command
        self._required = tuple(required.split())
        self._optional = tuple(optional.split())
        self._must = frozenset(self._required)
        self._may = self._must.union(self._optional)

    def __call__(self, rows: Sequence[Mapping[str, object]]) -> list[bytes]:
        """Return the arguments.

        Raises:
            TypeError: A row lacks a required member, or has an unknown one.
        """
        given = set[str]().union(*rows)
        optional = self._optional
        while optional and not (
            optional[-1] in given and any(row.get(optional[-1]) is not None for row in rows)
        ):
            optional = optional[:-1]
        count = str(len(rows))
        if len(optional) < len(self._optional):
            count += f"/{len(self._required) + len(optional)}"
        argv = [encode(count)]
        for row in rows:
            if not self._must <= row.keys() <= self._may:
                self._refuse(row)
            argv += [encode(row[name]) for name in self._required]
            for name in optional:
                value = row.get(name)
                argv.append(b"" if value is None else encode(value))
        return argv

    def _refuse(self, row: Mapping[str, object]) -> NoReturn:
        if unknown := row.keys() - self._may:
            what = ", ".join(sorted(unknown))
            raise TypeError(f"{self._command}: unknown argument {what} in the batch")
        what = ", ".join(name for name in self._required if name not in row)
        raise TypeError(f"{self._command}: the argument {what} is missing in the batch")


def read_json(reply: bytes | None) -> Json:
    """Read JSON; nil is null."""
    return None if reply is None else decode_json(reply)


def read_number(reply: bytes | int) -> float:
    """Read a number."""
    return float(reply)


def read_count(reply: bytes | int) -> int:
    """Read an integer."""
    return int(reply)


read_text = decode_text


def read_texts(reply: list[bytes]) -> list[str]:
    """Read a list of texts."""
    return [decode_text(item) for item in reply]


def read_answers(reply: list[bytes | Exception]) -> list[str | Exception]:
    """Read a list of strings and errors."""
    return [item if isinstance(item, Exception) else decode_text(item) for item in reply]


def read_list(reply: list[Reply]) -> list[Reply]:
    """Read a list: decode its own strings, leave nested values as they are."""
    return [decode_text(item) if isinstance(item, bytes) else item for item in reply]


def read_nothing(reply: Reply) -> None:
    """Read a reply that says nothing."""
