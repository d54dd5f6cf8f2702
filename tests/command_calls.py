"""Calls of Lua commands by name, with arguments as strings."""

from __future__ import annotations

import keyword
from typing import Any

from aioqless.store import Call, Store
from aioqless.store.command_header import read_command


def make_call(store: Store, command: str, form: str | None = None, /, **arguments: Any) -> Call:
    """Return a call of a command, by the names of its header.

    Raises:
        TypeError: There is no such form or argument.
    """
    method = "_".join(filter(None, (command, form or read_command(command).default)))
    given = {
        f"{name}_" if keyword.iskeyword(name) else name: value for name, value in arguments.items()
    }
    if not hasattr(store, method):
        raise TypeError(f"there is no command {method}")
    call: Call = getattr(store, method)(**given)
    return call
