"""Calls of Lua commands by name, with arguments as strings."""

from __future__ import annotations

import keyword
from importlib import import_module
from typing import Any

from aioqless.store import Call, ExtensionCommands, Store
from aioqless.store.call import Commands
from aioqless.store.command_header import command_files, read_command


def commands_of(store: Store, command: str) -> Commands:
    """Return what has the methods of a command: the store, or the commands of an extension."""
    folder, _, _ = command_files()[command].rpartition("/lua/")
    if not folder:
        return store
    module = import_module(f"aioqless.{folder.replace('/', '.')}.generated_commands")
    (found,) = (
        each
        for each in vars(module).values()
        if isinstance(each, type) and ExtensionCommands in each.__bases__
    )
    return found(store)


def make_call(store: Store, command: str, form: str | None = None, /, **arguments: Any) -> Call:
    """Return a call of a command, by the names of its header.

    Raises:
        TypeError: There is no such form or argument.
    """
    method = "_".join(filter(None, (command, form or read_command(command).default)))
    given = {
        f"{name}_" if keyword.iskeyword(name) else name: value for name, value in arguments.items()
    }
    commands = commands_of(store, command)
    if not hasattr(commands, method):
        raise TypeError(f"there is no command {method}")
    call: Call = getattr(commands, method)(**given)
    return call
