"""The libraries of Lua functions: the blocks of each, and which of them a script needs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TypeAlias

from aioqless.lua import list_libraries, read_script
from aioqless.store.command_header import HeaderError
from aioqless.store.inlining import (
    Expression,
    inline_expressions,
    inline_keys,
    read_expression,
)
from aioqless.store.library_floors import check_use

MENTION = re.compile(r"\b([a-z_]+)\.([a-z_]+)\b")
_COMMENT = re.compile(r"\s+--.*")
_SCALAR = re.compile(r"local ([A-Z_]+) = ([\d.]+(?:e\d+)?|'[^'\n]*')")
_WORD = re.compile(r"'[^']*'|(?<![\w.])[A-Z_]+\b")
_KEY = re.compile(r"\bkeys\.\w+")
_FIRST = ("args", "keys")  # other libraries' tables may hold functions of these


@dataclass(frozen=True)
class Block:
    """A top-level piece of a library: one function, or lines that several functions share.

    Attributes:
        lib: Name of its library.
        name: Name of the function or local.
        shared: Whether it is a local, known by its bare name to the functions of its library.
        lines: Its lines, with their numbers.
        source: Its text as written, with the names of keys.
    """

    lib: str
    name: str
    shared: bool
    lines: tuple[tuple[int, str], ...]
    source: str

    @property
    def path(self) -> str:
        """Its name, as scripts mention it."""
        return f"{self.lib}.{self.name}"

    @cached_property
    def locals(self) -> frozenset[str]:
        """The names that a shared block defines."""
        names = re.match(r"local (?:function )?(\w+(?:, \w+)*)", self.lines[0][1])
        return frozenset(names[1].split(", ")) if self.shared and names else frozenset()

    @cached_property
    def written_out(self) -> tuple[tuple[int, str], ...]:
        """Its lines as they are put into scripts, with their numbers."""
        return tuple(
            (number, inline_expressions(text, expressions())) for number, text in self.lines
        )

    @cached_property
    def needs(self) -> tuple[Block, ...]:
        """What it mentions in scripts."""
        return tuple(_mentions(self.lib, "\n".join(text for _, text in self.written_out)))


_Lines: TypeAlias = list[tuple[int, str]]


@cache
def _split(library: str) -> list[tuple[re.Match[str], _Lines]]:
    """Split a library into its pieces: how each begins, and its lines.

    Each begins in the first column with a function or a local; the rest of it is indented, or
    closes it.
    """
    file = known_libraries()[library]
    begins = re.compile(rf"(?:local function (\w+)|function {library}\.(\w+)|local (\w+))")
    pieces: list[tuple[re.Match[str], _Lines]] = []
    inside = False
    for number, line in enumerate(read_script(file).splitlines(), 1):
        if begin := begins.match(line):
            if begin[3] and not begin[3].isupper():
                raise HeaderError(
                    f"{file}:{number}: {begin[3]} is no constant, whose name is in capitals; "
                    "what lives for one call is a field of the table `call`"
                )
            pieces.append((begin, []))
            inside = True
        elif line.startswith("--"):
            inside = False
        elif line and not (inside and re.match(r"\s|end$|}$", line)):
            raise HeaderError(f"{file}:{number}: {line!r} starts neither a function nor a local")
        if line and inside:
            pieces[-1][1].append((number, line))
    for _, lines in pieces:
        first, last = lines[0][1], strip_comment(lines[-1][1])
        is_open = "function" in first and not last.endswith("end")
        if is_open or (first.endswith("{") and last != "}"):
            raise HeaderError(f"{file}:{lines[0][0]}: this block does not end")
    return pieces


@cache
def _blocks(library: str) -> tuple[Block, ...]:
    """Return the blocks of a library. Raises HeaderError if it uses one that it may not know."""
    files = known_libraries()
    for _, lines in _split(library):
        for number, line in lines:
            for used, _ in MENTION.findall(strip_comment(line)):
                if used in files:
                    check_use(files[library], files[used], number)
    return tuple(
        Block(
            library,
            name=begin[1] or begin[2] or begin[3],
            shared=not begin[2],
            lines=tuple(
                (number, write_scalars(library, text))
                for number, line in lines
                if (text := strip_comment(line))
            ),
            source="\n".join(line for _, line in lines),
        )
        for begin, lines in _split(library)
        if begin[3] not in _scalars(library)
    )


def write_scalars(library: str, line: str) -> str:
    """Write out the keys and constants of a line, and the numbers and strings of its library.

    A variable that functions share is another one to make at each call, so scripts don't have it.
    """
    scalars = _scalars(library)
    text = line if library == "keys" else inline_keys(line)
    return _WORD.sub(lambda word: scalars.get(word[0], word[0]), text)


@cache
def _scalars(library: str) -> dict[str, str]:
    """Return the numbers and strings that functions of a library share, as Lua, by name."""
    only = (lines[0][1] for _, lines in _split(library) if len(lines) == 1)
    found = (_SCALAR.fullmatch(inline_keys(strip_comment(line))) for line in only)
    return {each[1]: each[2] for each in found if each}


def strip_comment(line: str) -> str:
    """Return a line as it is put into scripts, which Redis compiles again and again."""
    return _COMMENT.sub("", line)


@cache
def expressions() -> dict[str, Expression]:
    """Return all functions of one expression, by `library.name`."""
    found = {}
    for library in known_libraries().keys() - {"keys", "constants"}:
        hidden = {name for block in _blocks(library) for name in block.locals}
        for block in _blocks(library):
            text = "\n".join(line for _, line in block.lines)
            if not block.shared and (expression := read_expression(text, hidden)):
                found[block.path] = expression
    return found


def write_out(line: str) -> str:
    """Write out the keys, constants and functions of one expression that a line uses."""
    return inline_expressions(inline_keys(line), expressions())


@cache
def known_libraries() -> dict[str, str]:
    """Return the file of each library, by its name.

    The keys of an extension are always written out.
    """
    return {
        file.rpartition("/")[2].removesuffix(".lua"): file
        for file in list_libraries()
        if file == "lib/base/keys.lua" or not file.endswith("/keys.lua")
    }


def find_blocks(
    text: str, usual: Iterable[str] = ()
) -> tuple[list[Block], dict[Block, list[Block]]]:
    """Find the blocks that a script needs, directly or through others.

    Args:
        text: Lua.
        usual: The functions that the usual call reaches, as `library.name`.

    Returns:
        What every call defines, in this order, and what a call defines when it first needs a
        function.

    Raises:
        HeaderError: A function is unknown or not needed.
    """
    reached = _reach(_mentions(None, text), lambda block: block.needs)
    functions = {block for block in reached if not block.shared}
    wanted = set(usual)
    if unknown := wanted - {block.path for block in functions}:
        raise HeaderError(f"{', '.join(sorted(unknown))}: the command doesn't reach it")
    first = {block for block in functions if block.path in wanted}
    deferred = {
        function: _in_order(_with_locals({function})) for function in _in_order(functions - first)
    }
    return _in_order(_with_locals(first)), deferred


def reaches(text: str, function: str) -> bool:
    """Return whether a script may call a function, by `library.name`."""
    found = _reach(_mentions(None, text), lambda block: block.needs)
    return any(block.path == function for block in found)


def find_sources(text: str) -> list[str]:
    """Return what is written in the libraries and reached by a script, except keys."""
    found = _reach(
        _mentions(None, _KEY.sub("", text)),
        lambda block: _mentions(block.lib, _KEY.sub("", block.source)),
    )
    return [block.source for block in found if block.lib != "constants"]


def _with_locals(functions: set[Block]) -> Iterable[Block]:
    """Return functions, and the locals of their libraries that they mention."""
    return _reach(functions, lambda block: [each for each in block.needs if each.shared])


def _reach(
    blocks: Iterable[Block], follow: Callable[[Block], Iterable[Block]]
) -> Mapping[Block, None]:
    """Return these blocks, and those to which they lead, directly or through others."""
    found, todo = dict[Block, None](), list(blocks)
    while todo:
        block = todo.pop()
        if block not in found:
            found[block] = None
            todo += follow(block)
    return found


def _in_order(blocks: Iterable[Block]) -> list[Block]:
    """Sort by library, and by position in its file."""
    return sorted(blocks, key=lambda block: (block.lib not in _FIRST, block.lib, block.lines[0][0]))


def _mentions(home: str | None, text: str) -> Iterator[Block]:
    """Yield every `library.name` in a script, and within a library the shared locals."""
    for library, name in MENTION.findall(text):
        if library in known_libraries():
            block = next(
                (each for each in _blocks(library) if each.name == name and not each.shared), None
            )
            if block is None:
                raise HeaderError(
                    f"{library}.{name} is used but {known_libraries()[library]} doesn't define it"
                )
            yield block
    if home:
        words = set(re.findall(r"\b[A-Za-z_]+\b", text))
        yield from (block for block in _blocks(home) if block.locals & words)
