"""The scripts of the state machine, and the values that they define for Python as well.

An extension's own scripts are in `contrib/NAME/lua`, in the same layout.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable

LUA = files(__name__)
CONTRIB = files("aioqless") / "contrib"


@cache
def extensions() -> tuple[str, ...]:
    """Return the names of the extensions that have scripts."""
    if not CONTRIB.is_dir():
        return ()
    return tuple(sorted(each.name for each in CONTRIB.iterdir() if (each / "lua").is_dir()))


def list_commands() -> list[str]:
    """Return the Lua files of the commands: the core's, then those of the extensions.

    Each is named as below `lua/`, or as `contrib/NAME/lua/...`.
    """
    return [name for place in _places() for name in _files_in(place)]


def list_libraries() -> list[str]:
    """Return the Lua files of the libraries, in folders by topic; named as those of commands."""
    return [name for place in _places() for name in _files_in(f"{place}lib/", deep=True)]


def read_library(name: str) -> str:
    """Return the text of a library of the core, such as "enqueue"."""
    return next(read_script(file) for file in list_libraries() if file.endswith(f"/{name}.lua"))


def _places() -> list[str]:
    return ["", *(f"contrib/{name}/lua/" for name in extensions())]


def _files_in(place: str, *, deep: bool = False) -> Iterator[str]:
    if not (folder := _locate(place)).is_dir():
        return
    for each in folder.iterdir():
        if each.name.endswith(".lua"):
            yield place + each.name
        elif deep and each.is_dir():
            yield from _files_in(f"{place}{each.name}/", deep=True)


def read_script(name: str) -> str:
    """Return the text of a Lua file, by its name from `list_commands` or `list_libraries`."""
    return _locate(name).read_text("utf-8")


def _locate(name: str) -> Traversable:
    inside = name.removeprefix("contrib/")
    return CONTRIB / inside if inside != name else LUA / name


@cache
def usual_functions() -> dict[str, list[str]]:
    """Return the library functions that the usual call of each frequent command runs.

    The file is recorded by tests/lua/test_usual_calls.py.
    """
    recorded: dict[str, list[str]] = json.loads((LUA / "usual.json").read_text("utf-8"))
    return recorded


def constant(name: str) -> int:
    """Return a number of lib/base/constants.lua. Raises KeyError."""
    return int(constants()[name])


def exhausted_group(queue: str) -> str:
    """Return the failure group of a queue's jobs that have no retries left."""
    return constants()["EXHAUSTED_GROUP"].strip("'") + queue


@cache
def constants() -> dict[str, str]:
    """Return the values of lib/base/constants.lua by name, as they are written there."""
    text = read_script("lib/base/constants.lua")
    return dict(re.findall(r"^local (\w+) = (\d+|'[^']*')", text, re.M))
