"""Keys, constants and functions of one expression, written out where scripts use them.

A script pays for each function that it defines, on every call, and for each call of one:
`keys.job(jid)` becomes `('ql:j:' .. jid)`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import NamedTuple

from aioqless.lua import constants, list_libraries, read_script
from aioqless.store.command_header import HeaderError

_FUNCTION = re.compile(r"^function keys\.(\w+)\((.*?)\)\s+return (.*?)\s+end", re.MULTILINE)
# an argument that can be evaluated anywhere, any number of times
_SIMPLE = r"(?:[\w.]+(?:\[[\w. +*]+\])?|'[^']*')"
_CALL = re.compile(rf"\bkeys\.(\w+)\(((?:{_SIMPLE}(?:, {_SIMPLE})*)?)\)")
_ANY_CALL = re.compile(rf"\b([a-z_]+)\.([a-z_]+)\(((?:{_SIMPLE}(?:, {_SIMPLE})*)?)\)")
# what stands before a call whose value is used; other calls are statements
_USED = re.compile(
    r"(?:[=(,{\[<>+*/]|(?<!-)-|\.\.|\b(?:and|or|not|return|if|elseif|until|while))\s*$"
)
_EXPRESSION = re.compile(r"function \w+\.\w+\(([\w, ]*)\)\s+return (.*?)\s+end", re.DOTALL)
_LONGEST = 200  # characters of an expression that is written out
_STATEMENT = re.compile(r"\b(?:return|if|for|while|repeat|local|function|do|end)\b|\.\.\.|--")
_CONSTANT = re.compile(r"\bconstants\.([A-Z_]+)\b")


class Expression(NamedTuple):
    """A function of one expression, which can be written out instead of called."""

    parameters: tuple[str, ...]
    text: str


@cache
def key_functions() -> dict[str, Expression]:
    """Return the functions of lib/base/keys.lua.

    An extension has its own file of that name.
    """
    files = [file for file in list_libraries() if file.endswith("/keys.lua")]
    text = "\n".join(map(read_script, files))
    return {
        name: Expression(tuple(re.findall(r"\w+", parameters)), key)
        for name, parameters, key in _FUNCTION.findall(text)
    }


def inline_keys(line: str) -> str:
    """Write out the keys with simple arguments, and the constants, of a line.

    Raises:
        HeaderError: lib/base/constants.lua doesn't define a constant.
    """
    keys = key_functions()
    line = _CALL.sub(lambda call: _write_out(call, keys.get(call[1]), call[2]), line)
    return _CONSTANT.sub(_constant, line)


def _constant(mention: re.Match[str]) -> str:
    try:
        return constants()[mention[1]]
    except KeyError:
        raise HeaderError(
            f"{mention[0]} is used but lib/base/constants.lua doesn't define it"
        ) from None


def _write_out(call: re.Match[str], found: Expression | None, arguments: str) -> str:
    """Return the expression of a call, or the call if it has none or not these parameters."""
    given = re.findall(_SIMPLE, arguments)
    if found is None or len(given) != len(found.parameters):
        return call[0]
    values = dict(zip(found.parameters, given, strict=True))
    # Fields may be named as parameters.
    words = re.compile(r"'[^']*'|(?<![\w.])\w+")
    return f"({words.sub(lambda word: values.get(word[0], word[0]), found.text)})"


def _has_several(text: str) -> bool:
    """Return whether a string is a list of expressions."""
    depth = 0
    for character in re.sub(r"'[^']*'", "", text):
        depth += (character in "({[") - (character in ")}]")
        if character == "," and depth == 0:
            return True
    return False


def read_expression(source: str, hidden: Iterable[str]) -> Expression | None:
    """Return the expression of a function, if that is all it consists of.

    Args:
        source: The function.
        hidden: Names that only the functions of its library see: it may not mention them.
    """
    found = _EXPRESSION.fullmatch(source)
    if not found or _STATEMENT.search(found[2]) or set(re.findall(r"\w+", found[2])) & set(hidden):
        return None
    if len(found[2]) > _LONGEST or _has_several(found[2]):
        return None
    return Expression(tuple(re.findall(r"\w+", found[1])), " ".join(found[2].split()))


def inline_expressions(line: str, expressions: Mapping[str, Expression]) -> str:
    """Write out the calls of functions of one expression, by `library.name`."""

    def written_out(call: re.Match[str]) -> str:
        if not _USED.search(call.string, 0, call.start()):
            return call[0]
        return _write_out(call, expressions.get(f"{call[1]}.{call[2]}"), call[3])

    while (written := _ANY_CALL.sub(written_out, line)) != line:
        line = written
    return line


def insert_namespace(namespace: str, line: str) -> str:
    """Make the namespace part of the strings of a line that begin with it."""
    return line.replace("ns .. ':", f"'{escape(namespace)}:")


def escape(text: str) -> str:
    """Escape a string for single quotes in Lua."""
    return text.replace("\\", "\\\\").replace("'", "\\'")
