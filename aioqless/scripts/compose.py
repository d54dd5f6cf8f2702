"""Build a Lua script from a command's header and body and the library functions that they reach.

A library is a file of top-level functions `function lib.name(...)`. Only those that a command mentions, directly or through others, are
put into its script, since Redis pays for each definition at each call. What follows a line `-- @late` in a library is defined only in
calls that say `late()` before they use it: one definition instead of many where a feature isn't used.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import TypeAlias

from aioqless.scripts.header import LUA, Arg, Command, Form, HeaderError, read_command
from aioqless.scripts.spelling import quotable, spelled, within

Line: TypeAlias = tuple[str, tuple[str, int] | None]


@dataclass(frozen=True)
class Script:
    """A composed script: its text, and for each of its lines the file and line that it came from."""

    command: Command
    text: str
    origins: tuple[tuple[str, int] | None, ...]

    def origin(self, line: int) -> str:
        """Where line `line` of the script was written, as `lib/job.lua:12`."""
        found = self.origins[line - 1] if 0 < line <= len(self.origins) else None
        return f"{found[0]}:{found[1]}" if found else f"{self.command.name} (composed):{line}"


@cache
def compose(name: str, namespace: str, *, looks_back: bool = False) -> Script:
    """The script of command `name` for a namespace; or one that `looks_back`: it takes and returns the same, but only reads what the
    command answered to this request. Raises HeaderError for a header or a library that can't be understood."""
    command = read_command(name)
    flags = ("no-writes",) if looks_back else command.flags
    shebang = "#!lua" + (f" flags={','.join(flags)}" if flags else "")
    composed = ((within(namespace, text), at) for text, at in _lines(name, looks_back))
    lines = [(shebang, None), (f"local ns = {_quoted(namespace)}", None), *composed]
    return Script(command, "\n".join(text for text, _ in lines), tuple(origin for _, origin in lines))


@cache
def _lines(name: str, looks_back: bool) -> list[Line]:
    """All of a command's script that is the same in every namespace."""
    command = read_command(name)
    for hidden in _library_names().intersection(command.names()):
        raise HeaderError(f"{name}.lua: its argument {hidden} hides lib/{hidden}.lua; give it another name")
    arguments = list(_arguments(command))
    tail = list(_tail_that_looks_back(command) if looks_back else _tail(command))
    body = [] if looks_back else [(number, spelled(text)) for number, text in command.body]
    used = _libraries("\n".join([*arguments, *tail, *(text for _, text in body)]))
    lines: list[Line] = [(f"local {library} = {{}}", None) for library in used]
    if any(block.late for blocks in used.values() for block in blocks):
        lines += [("local function late()", None), ("late = function() end", None), *_definitions(used, late=True), ("end", None)]
    lines += _definitions(used, late=False)
    lines += [(text, None) for text in arguments]
    lines.append(("local function perform()", None))
    lines += [(text, (f"{name}.lua", number)) for number, text in body]
    lines.append(("end", None))
    return lines + [(text, None) for text in tail]


def _definitions(used: dict[str, list[_Block]], *, late: bool) -> Iterator[Line]:
    for library, blocks in used.items():
        if chosen := [block for block in blocks if block.late == late]:
            yield "do", None
            yield from ((text, (f"lib/{library}.lua", number)) for block in chosen for number, text in block.lines)
            yield "end", None


def _quoted(text: str) -> str:
    return f"'{quotable(text)}'"


def _arguments(command: Command) -> Iterator[str]:
    """Lua that turns KEYS and ARGV into checked locals."""
    if command.key:
        yield f"local {command.key} = args.{command.key_type}({_quoted(command.key)}, KEYS[1])"
    if command.keys:
        yield f"local {command.keys} = args.queues(KEYS)"
    if not command.forms:
        yield from _form(command, command.lead, 1, declare=True)
        return
    at = len(command.lead.args) + 1
    yield from _form(command, command.lead, 1, declare=True)
    names = {name: None for form in command.forms.values() for name in form.names()}
    yield f"local word = layout.word({_words(command)}, ARGV[{at}])"
    yield f"local {', '.join([*names, 'rest_end'])}"
    for index, (word, form) in enumerate(command.forms.items()):
        yield f"{'if' if index == 0 else 'elseif'} word == {_quoted(word)} then"
        yield from _form(command, form, at + 1, declare=False)
    yield "end"


def _words(command: Command) -> str:
    words = ", ".join(f"{word} = true" for word in command.forms)
    return f"{{{words}}}, {_quoted(command.default) if command.default else 'nil'}"


def _form(command: Command, form: Form, at: int, *, declare: bool) -> Iterator[str]:
    local = "local " if declare else ""
    for arg in form.args:
        if arg.type == "literal":
            yield f"layout.literal({_quoted(arg.name)}, ARGV[{at}])"
        else:
            yield f"{local}{arg.name} = {_read(arg, f'ARGV[{at}]')}"
        at += 1
    last = f"{at}"
    if form.rest:
        yield f"{local}{form.rest.name}, rest_end = layout.rest({_quoted(form.rest.name)}, args.{form.rest.type}, {at})"
        last = "rest_end"
    if form.batch:
        yield f"local batch_end = layout.batch({at}, {len(form.batch)})"
        reads = ", ".join(_read(arg, f"ARGV[i + {offset}]") for offset, arg in enumerate(form.batch))
        yield "local function each(perform)"
        yield f"  return layout.each({at + 1}, batch_end, {len(form.batch)}, function(i) return perform({reads}) end)"
        yield "end"
        last = "batch_end"
    if form.options:
        known = ", ".join(f"{option.name} = true" for option in form.options)
        yield f"local option = layout.options({{{known}}}, {last})"
        for option in form.options:
            value = f"option.{option.name}"  # absent is nil; an empty one was meant to say something
            yield f"{local}{option.name} = {value} and args.{option.type}({_quoted(option.name)}, {value})"
    elif not command.forms or form is not command.lead:
        yield f"layout.no_more({last})"


def _read(arg: Arg, value: str) -> str:
    call = f"args.{arg.type}({_quoted(arg.name)}, {value})"
    return f"{value} and {value} ~= '' and {call} or nil" if arg.optional else call


def _tail(command: Command) -> Iterator[str]:
    """Lua that runs the body, once for each request identity."""
    if not command.writes:
        yield "return perform()"
        return
    yield "local kept, answer = requests.kept(request)"
    yield "if not kept then"
    yield "  answer = perform()"
    yield "  requests.keep(request, answer)"
    yield "end"
    yield f"return {command.present}"


def _tail_that_looks_back(command: Command) -> Iterator[str]:
    """Lua that answers a request which was carried out before, and one that wasn't as a server without memory does."""
    yield "local kept, answer = requests.kept(request)"
    yield "if not kept then return redis.error_reply('OOM and it was not carried out before') end"
    yield f"return {command.present}"


@dataclass(frozen=True)
class _Block:
    """A top-level piece of a library: one function, or lines that several functions share."""

    name: str
    shared: bool  # a local, known by its bare name to the functions of its library
    lines: tuple[tuple[int, str], ...]
    late: bool = False

    @property
    def text(self) -> str:
        return "\n".join(text for _, text in self.lines)


@cache
def _blocks(library: str) -> tuple[_Block, ...]:
    blocks: list[_Block] = []
    current: list[tuple[int, str]] = []
    name, shared, late = "", False, False
    for number, line in enumerate((LUA / "lib" / f"{library}.lua").read_text("utf-8").splitlines(), 1):
        late = late or line == "-- @late"
        if not current and (not line or line.startswith("--")):
            continue
        if not current:
            start = re.match(rf"(?:local function (\w+)|function {library}\.(\w+)|local (\w+))", line)
            if not start:
                raise HeaderError(f"lib/{library}.lua:{number}: {line!r} starts neither a function nor a local")
            name, shared = start[1] or start[2] or start[3], not start[2]
        current.append((number, line if library == "keys" else spelled(line)))
        code = re.sub(r"\s+--.*", "", line)
        opens = "function" in code or code.endswith("{")
        if code in ("end", "}") or (len(current) == 1 and (not opens or code.endswith((" end", "}")))):
            blocks.append(_Block(name, shared, tuple(current), late))
            current = []
    if current:
        raise HeaderError(f"lib/{library}.lua:{current[0][0]}: this block does not end")
    return tuple(blocks)


@cache
def _library_names() -> frozenset[str]:
    return frozenset(f.name.removesuffix(".lua") for f in (LUA / "lib").iterdir() if f.name.endswith(".lua"))


def _libraries(text: str) -> dict[str, list[_Block]]:
    """For each library that `text` reaches, the blocks it needs of it, in the order of the file."""
    needed: dict[str, set[_Block]] = {}
    todo: list[tuple[str | None, str]] = [(None, text)]
    while todo:
        home, text = todo.pop()
        for library, name in _mentions(home, text):
            for block in _blocks(library):
                if block.name == name and block not in needed.setdefault(library, set()):
                    needed[library].add(block)
                    todo.append((library, block.text))
    return {library: [b for b in _blocks(library) if b in needed[library]] for library in sorted(needed)}


def _mentions(home: str | None, text: str) -> Iterator[tuple[str, str]]:
    """Every `library.name` in `text`, and within a library the locals it shares."""
    for library, name in re.findall(r"\b([a-z_]+)\.([a-z_]+)\b", text):
        if library in _library_names():
            if not any(block.name == name for block in _blocks(library)):
                raise HeaderError(f"{library}.{name} is used but lib/{library}.lua doesn't define it")
            yield library, name
    if home:
        words = set(re.findall(r"\b[A-Za-z_]+\b", text))
        yield from ((home, block.name) for block in _blocks(home) if block.shared and block.name in words)
