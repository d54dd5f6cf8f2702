"""One call of a command: awaited by itself, or sent together with others."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Generator
from typing import Any, Generic, TypeAlias

from typing_extensions import TypeVar

T = TypeVar("T", default=Any)
T_co = TypeVar("T_co", covariant=True, default=Any)

Arguments: TypeAlias = dict[str, Any]  # by the names in the command's header; None: left out
Send: TypeAlias = Callable[["Call[T]"], Coroutine[Any, Any, T]]


class Call(Awaitable[T_co], Generic[T_co]):
    """A command with its arguments. Awaiting it sends it and returns its reply.

    Attributes:
        command: Name of the Lua command.
        form: Which form of the command it is; None for a command without forms.
        arguments: Arguments by name.
    """

    __slots__ = ("_send", "arguments", "command", "form")

    def __init__(
        self, send: Send[T_co], command: str, form: str | None, arguments: Arguments
    ) -> None:
        self._send = send
        self.command = command
        self.form = form
        self.arguments = arguments

    def __await__(self) -> Generator[Any, None, T_co]:
        return self._send(self).__await__()

    def __repr__(self) -> str:
        return f"<Call {' '.join(filter(None, (self.command, self.form)))}>"
