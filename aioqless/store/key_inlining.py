"""Keys and constants, written out where scripts use them.

A script pays for each function that it defines, on every call, and for each call of one:
`keys.job(jid)` becomes `('ql:j:' .. jid)`.
"""

from __future__ import annotations

import re
from functools import cache

from aioqless.lua import LUA, constants
from aioqless.store.command_header import HeaderError

_FUNCTION = re.compile(r"^function keys\.(\w+)\((.*?)\)\s+return (.*?)\s+end", re.MULTILINE)
# an argument that can be evaluated anywhere, any number of times
_SIMPLE = r"(?:[\w.]+(?:\[[\w. +*]+\])?|'[^']*')"
_CALL = re.compile(rf"\bkeys\.(\w+)\(((?:{_SIMPLE}(?:, {_SIMPLE})*)?)\)")
_CONSTANT = re.compile(r"\bconstants\.([A-Z_]+)\b")


@cache
def key_functions() -> dict[str, tuple[tuple[str, ...], str]]:
    """Return the parameters and the expression of each function of lib/keys.lua."""
    text = (LUA / "lib" / "keys.lua").read_text("utf-8")
    return {
        name: (tuple(re.findall(r"\w+", parameters)), key)
        for name, parameters, key in _FUNCTION.findall(text)
    }


def inline_keys(line: str) -> str:
    """Write out the keys with simple arguments, and the constants, of a line.

    Raises:
        HeaderError: lib/constants.lua doesn't define a constant.
    """
    return _CONSTANT.sub(_constant, _CALL.sub(_inline, line))


def _constant(mention: re.Match[str]) -> str:
    try:
        return constants()[mention[1]]
    except KeyError:
        raise HeaderError(f"{mention[0]} is used but lib/constants.lua doesn't define it") from None


def _inline(call: re.Match[str]) -> str:
    parameters, key = key_functions().get(call[1], ((), ""))
    arguments = re.findall(_SIMPLE, call[2])
    if not key or len(arguments) != len(parameters):
        return call[0]
    given = dict(zip(parameters, arguments, strict=True))
    return "(" + re.sub(r"'[^']*'|\w+", lambda word: given.get(word[0], word[0]), key) + ")"


def insert_namespace(namespace: str, line: str) -> str:
    """Make the namespace part of the strings of a line that begin with it."""
    return line.replace("ns .. ':", f"'{escape(namespace)}:")


def escape(text: str) -> str:
    """Escape a string for single quotes in Lua."""
    return text.replace("\\", "\\\\").replace("'", "\\'")
