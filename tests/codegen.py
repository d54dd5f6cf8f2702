"""Generate the methods of the Lua commands from their headers.

Those of the core are `store/generated_commands.py`, those of an extension
`contrib/NAME/generated_commands.py`. Run `python -m tests.codegen` after a header has changed; a
test compares the two.
"""

from __future__ import annotations

import keyword
import re
import textwrap
from collections.abc import Iterable, Iterator
from pathlib import Path

import aioqless
from aioqless.lua import extensions
from aioqless.store.command_header import (
    Arg,
    Command,
    Form,
    HeaderError,
    command_files,
    command_names,
    read_command,
)

_PACKAGE = Path(aioqless.__file__).parent
_HEAD = '''\
"""The commands of the state machine, one typed method for each.

Generated from the headers in `aioqless/lua` by `python -m tests.codegen`; don't edit.
"""
# fmt: off

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import NotRequired, TypedDict

from aioqless.redis.connection import Reply
from aioqless.redis.encoding import Json
from aioqless.store.call import (
    BatchEncoder,
    Call,
    Commands,
    T,
    encode,
    encode_optional,
    read_answers,
    read_count,
    read_json,
    read_list,
    read_nothing,
    read_number,
    read_text,
    read_texts,
)
'''
_CLASS = '''

class Store(Commands, ABC):
    """The state machine of one namespace: a method for each command, each to be awaited.

    `aioqless lua COMMAND` prints what a command does.
    """

    @abstractmethod
    async def send(self, call: Call[T]) -> T:
        """Send a call and return its reply.

        Raises:
            ScriptError: Redis refuses it.
            redis.exceptions.RedisError: Redis can't be reached.
        """

    @abstractmethod
    async def pipeline(self, calls: Sequence[Call[T]]) -> list[T | Exception]:
        """Send independent calls in one write, once; a refusal is returned in its place."""

    @abstractmethod
    def request(self) -> AbstractContextManager[str]:
        """Reserve a request id for one call that may have to be sent several times."""

    @abstractmethod
    async def now(self) -> float:
        """Return the time of the clock that commands go by, in seconds since 1970."""
'''
_EXTENSION = '''\
"""The Lua commands of this extension, one typed method for each.

Generated from the headers in `lua` by `python -m tests.codegen`; don't edit.
"""
# fmt: off

from __future__ import annotations

{head}


class {name}Commands(ExtensionCommands):
    """The commands of this extension, each to be awaited."""
'''
_IMPORTS = {
    "collections.abc": ["Sequence"],
    "typing": ["NotRequired", "TypedDict"],
    "aioqless.store": ["Call", "ExtensionCommands", "Json", "Reply"],
    "aioqless.store.call": [
        *("BatchEncoder", "encode", "encode_optional", "read_answers", "read_count", "read_json"),
        *("read_list", "read_nothing", "read_number", "read_text", "read_texts"),
    ],
}

# Types of lib/base/args.lua, in Python; any other is a string.
_PARAMETERS = {
    **dict.fromkeys(("time", "seconds", "interval", "fraction", "priority"), "float"),
    "count": "int",
    **dict.fromkeys(("tags", "jids"), "Sequence[str]"),
    **dict.fromkeys(("data", "object", "job_json"), "str | bytes"),
}
_BY_NAME = {
    "fence": "int | str",  # a number, which Lua compares as a string
    "value": "str | float",  # of an option
    "result": "str | bytes",
    "values": "str | bytes",
}
REPLIES = {
    "json": "Json",
    "number": "float",
    "count": "int",
    "text": "str",
    "texts": "list[str]",
    "answers": "list[str | Exception]",
    "list": "list[Reply]",
    "nothing": "None",
}
_WIDTH = 100


def generate() -> dict[Path, str]:
    """Return the text of each generated file."""
    core = [name for name in command_names() if _extension(name) is None]
    files = {
        _PACKAGE / "store" / "generated_commands.py": _HEAD
        + "".join(_rows(core))
        + _CLASS
        + "".join(_methods(core))
    }
    for extension in extensions():
        file = _PACKAGE / "contrib" / extension / "generated_commands.py"
        files[file] = _generate_extension(extension)
    return files


def _generate_extension(extension: str) -> str:
    names = [name for name in command_names() if _extension(name) == extension]
    rows, methods = "".join(_rows(names)).rstrip("\n"), "".join(_methods(names))
    text = rows + methods + "ExtensionCommands"
    imports: list[str] = []
    for module, known in _IMPORTS.items():
        if module == "aioqless.store" and imports:
            imports.append("")
        used = [each for each in known if re.search(rf"\b{each}\b", text)]
        line = f"from {module} import {', '.join(used)}"
        if len(line) > _WIDTH:
            line = f"from {module} import (\n" + "".join(f"    {each},\n" for each in used) + ")"
        if used:
            imports.append(line)
    head = "\n".join(imports) + ("\n" + rows if rows else "")
    return _EXTENSION.format(head=head, name=extension.title().replace("_", "")) + methods


def _extension(command: str) -> str | None:
    """Return the name of the extension that a command belongs to; None: the core's."""
    found = re.match(r"contrib/(\w+)/", command_files()[command])
    return found and found[1]


def _rows(names: Iterable[str]) -> Iterator[str]:
    for command in map(read_command, names):
        if command.lead.batch:
            yield f"\n\nclass {_row_name(command)}(TypedDict):\n"
            yield f'    """A row of `{command.name}`."""\n\n'
            for arg in command.lead.batch:
                type_ = _type(arg)
                declared = f"NotRequired[{type_} | None]" if arg.optional else type_
                yield f"    {arg.name}: {declared}\n"
            yield f"\n\n{_encoder(command, command.lead.batch)}\n"


def _methods(names: Iterable[str]) -> Iterator[str]:
    for name in names:
        command = read_command(name)
        for word, form in command.forms.items():
            yield _method(command, word, form)
        if not command.forms:
            yield _method(command, None, command.lead)


def _method(command: Command, word: str | None, form: Form) -> str:
    name = "_".join(filter(None, (command.name, word)))
    parameters = list(_parameters(command, form))
    reply = form.returns or command.returns
    signature = _filled(
        f"    def {name}(", ["self", *(["*"] if parameters else []), *parameters],
        f") -> Call[{REPLIES[reply]}]:",
    )  # fmt: skip
    argv = list(_argv(command, word, form))
    options = [each.name for each in form.options if each.name != "request"]
    lines = [_filled("        argv = [", argv, "]")] if argv or form.batch or options else []
    if form.batch:
        lines.append(f"        argv += {_encoder_name(command)}(batch)")
    for name in options:
        given = _python_name(name)
        lines.append(f"        if {given} is not None:")
        lines.append(f'            argv += [b"{name}", encode({given})]')
    sent = ["self.send", f'"{command.name}"', f"read_{reply}", _keys(command)]
    sent.append("argv" if lines else "[]")
    if command.writes:
        sent += ["request", "writes=True"]
    if command.durable:
        sent.append("durable=True")
    lines.append(_filled("        return Call(", sent, ")"))
    body = "\n".join(lines)
    return f'\n{signature}\n        """{_sentence(form.summary or command.summary)}"""\n{body}\n'


def _parameters(command: Command, form: Form) -> Iterator[str]:
    """The arguments of a form as Python declares them."""
    if command.key:
        yield f"{command.key}: str"
    if command.keys:
        yield f"{command.keys}: Sequence[str]"
    for arg in _positional(command, form):
        if arg.type != "literal":
            yield _declaration(arg, arg.optional or arg.type == "time")
    if form.rest:
        yield f"{_python_name(form.rest.name)}: Sequence[str] = ()"
    if form.batch:
        yield f"batch: Sequence[{_row_name(command)}]"
    for option in form.options:
        yield _declaration(option, optional=True)


def _positional(command: Command, form: Form) -> list[Arg]:
    return form.args if form is command.lead else [*command.lead.args, *form.args]


def _keys(command: Command) -> str:
    """The KEYS: one of the namespace, by which a Cluster finds the node, or the queues."""
    if command.key:
        return f"[self._encode_queue({command.key})]"
    if command.keys:
        return f"list(map(self._encode_queue, {command.keys}))"
    return "[encode(self.namespace)]"


def _argv(command: Command, word: str | None, form: Form) -> Iterator[str]:
    """The ARGV before batch and options: lead, word, arguments of the word, tail."""
    if word is not None:
        yield from map(_encoded, command.lead.args)
        yield f'b"{word}"'
    yield from map(_encoded, form.args)
    if form.rest:
        yield f"*map(encode, {_python_name(form.rest.name)})"
        yield 'b""'


def _encoder(command: Command, members: list[Arg]) -> str:
    """The function that encodes the batches of a command."""
    required = [arg.name for arg in members if not arg.optional]
    optional = [arg.name for arg in members if arg.optional]
    if [arg.name for arg in members] != required + optional:
        raise HeaderError(f"{command.name}.lua: members that may be left out must come last")
    arguments = [f'"{command.name}"', _words("required", required)]
    if optional:
        arguments.append(_words("optional", optional))
    return _filled(f"{_encoder_name(command)} = BatchEncoder(", arguments, ")")


def _words(name: str, words: list[str]) -> str:
    """An argument whose value is words, on as many lines as it needs."""
    first, *others = textwrap.wrap(" ".join(words), _WIDTH - 20)
    return f'{name}="{first}' + "".join(f' "\n        "{line}' for line in others) + '"'


def _encoded(arg: Arg) -> str:
    name = _python_name(arg.name)
    if arg.type == "literal":
        return f'b"{arg.name}"'
    if arg.type == "time":
        return f"self._encode_time({name})"
    return f"encode_optional({name})" if arg.optional else f"encode({name})"


def _declaration(arg: Arg, optional: bool) -> str:
    return f"{_python_name(arg.name)}: {_type(arg)}{' | None = None' if optional else ''}"


def _type(arg: Arg) -> str:
    return _BY_NAME.get(arg.name) or _PARAMETERS.get(arg.type, "str")


def _encoder_name(command: Command) -> str:
    return f"_encode_{command.name}_batch"


def _row_name(command: Command) -> str:
    return f"{command.name.title().replace('_', '')}Row"


def _python_name(name: str) -> str:
    return f"{name}_" if keyword.iskeyword(name) else name


def _sentence(summary: str) -> str:
    """The first sentence of a header, as the first line of a docstring."""
    first = re.split(r"[.;:](?: |$)", summary)[0]
    return f"{first[:1].upper()}{first[1:]}."


def _filled(begin: str, items: list[str], end: str) -> str:
    """A call or signature, on as many lines as it needs."""
    if len(line := begin + ", ".join(items) + end) <= _WIDTH:
        return line
    indent = " " * (len(begin) - len(begin.lstrip()))
    lines = [f"{indent}    {items[0]},"]
    for item in items[1:]:
        if len(lines[-1]) + len(item) + 2 > _WIDTH:
            lines.append(f"{indent}    {item},")
        else:
            lines[-1] += f" {item},"
    return "\n".join([begin, *lines, f"{indent}{end}"])


if __name__ == "__main__":
    for file, text in generate().items():
        file.write_text(text, "utf-8")
