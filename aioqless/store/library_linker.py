"""The libraries of Lua functions: the blocks of each, and which of them a script needs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache

from aioqless.lua import LUA
from aioqless.store.command_header import HeaderError
from aioqless.store.key_inlining import inline_keys

MENTION = re.compile(r"\b([a-z_]+)\.([a-z_]+)\b")
_FIRST = ("args", "keys")  # other libraries' tables may hold functions of these


@dataclass(frozen=True)
class Block:
    """A top-level piece of a library: one function, or lines that several functions share.

    Attributes:
        lib: Name of its library.
        name: Name of the function or local.
        shared: Whether it is a local, known by its bare name to the functions of its library.
        lines: Its lines, with their numbers.
        seldom: Whether it is a function that most calls don't need.
        source: Its text as written, with the names of keys.
    """

    lib: str
    name: str
    shared: bool
    lines: tuple[tuple[int, str], ...]
    seldom: bool
    source: str

    @property
    def path(self) -> str:
        """Its name, as scripts mention it."""
        return f"{self.lib}.{self.name}"

    @property
    def has_state(self) -> bool:
        """Whether it is a local that changes; the names of those that don't are in capitals."""
        return (
            self.shared
            and not self.name.isupper()
            and not self.lines[0][1].startswith("local function")
        )

    @property
    def text(self) -> str:
        """Its lines."""
        return "\n".join(text for _, text in self.lines)


@cache
def _blocks(library: str) -> tuple[Block, ...]:
    """Split a library into blocks.

    Each begins in the first column with a function or a local; the rest of it is indented, or
    closes it.
    """
    file = known_libraries()[library]
    begins = re.compile(rf"(?:local function (\w+)|function {library}\.(\w+)|local (\w+))")
    blocks: list[tuple[re.Match[str], bool, list[tuple[int, str]]]] = []
    seldom, inside = False, False
    for number, line in enumerate((LUA / file).read_text("utf-8").splitlines(), 1):
        if begin := begins.match(line):
            blocks.append((begin, seldom, []))
            seldom, inside = False, True
        elif line.startswith("--"):
            seldom, inside = seldom or line == "-- @seldom", False
        elif line and not (inside and re.match(r"\s|end$|}$", line)):
            raise HeaderError(f"{file}:{number}: {line!r} starts neither a function nor a local")
        if line and inside:
            blocks[-1][2].append((number, line))
    for _, _, lines in blocks:
        first, last = lines[0][1], re.sub(r"\s+--.*", "", lines[-1][1])
        is_open = "function" in first and not last.endswith("end")
        if is_open or (first.endswith("{") and last != "}"):
            raise HeaderError(f"{file}:{lines[0][0]}: this block does not end")
    return tuple(
        Block(
            library,
            name=begin[1] or begin[2] or begin[3],
            shared=not begin[2],
            lines=tuple((n, line if library == "keys" else inline_keys(line)) for n, line in lines),
            seldom=seldom,
            source="\n".join(line for _, line in lines),
        )
        for begin, seldom, lines in blocks
    )


@cache
def known_libraries() -> dict[str, str]:
    """Return the file of each library below `lua/`.

    Those that only the consistency checks need are in a folder of their own.
    """
    folders = ("lib", "lib/check")
    return {
        f.name.removesuffix(".lua"): f"{folder}/{f.name}"
        for folder in folders
        for f in (LUA / folder).iterdir()
        if f.is_file()
    }


def find_blocks(text: str) -> tuple[list[Block], list[Block], list[Block]]:
    """Find the blocks that a script needs.

    Returns:
        The blocks that are always defined, the seldom functions that these mention, and the blocks
        that the seldom functions need besides.

    Raises:
        HeaderError: A seldom function and another one would share a local that changes.
    """
    found = _closure(_mentions(None, text), lambda block: not block.seldom)
    always, stubs = (
        {block for block in found if not block.seldom},
        {block for block in found if block.seldom},
    )
    deferred = _closure(stubs, lambda block: block not in always or block.shared)
    deferred -= {block for block in always if not block.shared}
    for block in deferred & always:
        if block.has_state:
            file, why = (
                known_libraries()[block.lib],
                "is kept for functions that are @seldom and for others; it can't be both",
            )
            raise HeaderError(f"{file}: {block.name} {why}")
    return _in_order(always), _in_order(stubs), _in_order(deferred)


def _closure(blocks: Iterable[Block], goes_on: Callable[[Block], bool]) -> set[Block]:
    """Return these and what they mention, recursively, not going on at some blocks."""
    found, todo = set[Block](), list(blocks)
    while todo:
        block = todo.pop()
        if block not in found:
            found.add(block)
            if goes_on(block):
                todo += _mentions(block.lib, block.text)
    return found


def _in_order(blocks: set[Block]) -> list[Block]:
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
        yield from (block for block in _blocks(home) if block.shared and block.name in words)
