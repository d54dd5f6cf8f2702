"""Generate `commands.py` from the headers of the Lua commands.

Run `python -m aioqless.store.codegen` after a header has changed; a test compares the two.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterator
from pathlib import Path

from aioqless.store.header import Arg, Command, Form, command_names, read_command

TARGET = Path(__file__).with_name("commands.py")

_HEAD = '''\
"""The commands of the state machine, one typed method for each.

Generated from the headers in `aioqless/lua` by `python -m aioqless.store.codegen`; don't edit.
"""
# fmt: off

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from aioqless.store.call import Arguments, Call

Json: TypeAlias = Any
Batch: TypeAlias = Sequence[Mapping[str, Any]]


class Commands(ABC):
    """Every command by its name and form; `aioqless lua COMMAND` prints what one does."""

    @abstractmethod
    def call(self, command: str, form: str | None, arguments: Arguments) -> Call:
        """Return a call of a command, to be awaited."""
'''

# Types of lib/args.lua, in Python; any other is a text.
_PARAMETERS = {
    **dict.fromkeys(("time", "seconds", "interval", "fraction", "priority"), "float"),
    "count": "int",
    **dict.fromkeys(("tags", "jids"), "Sequence[str]"),
    **dict.fromkeys(("data", "object"), "str | bytes"),
}
_BY_NAME = {
    "fence": "int | str",  # a number, which Lua compares as a text
    "value": "str | float",  # of an option
}
_REPLIES = {
    "json": "Json",
    "number": "int",
    "time": "float",
    "text": "str",
    "list": "list[Any]",
    "nothing": "None",
}
_WIDTH = 100


def generate() -> str:
    """Return the text of `commands.py`."""
    return _HEAD + "".join(_methods())


def _methods() -> Iterator[str]:
    for name in command_names():
        command = read_command(name)
        for word, form in command.forms.items():
            yield _method(command, word, form)
        if not command.forms:
            yield _method(command, None, command.lead)


def _method(command: Command, word: str | None, form: Form) -> str:
    name = "_".join(filter(None, (command.name, word)))
    parameters = dict(_parameters(command, form))
    signature = _filled(
        f"    def {name}(", ["self", *(["*"] if parameters else []), *parameters.values()],
        f") -> Call[{_REPLIES[form.returns or command.returns]}]:",
    )  # fmt: skip
    spelled_word = f'"{word}"' if word else None
    call = _filled(
        f'        return self.call("{command.name}", {spelled_word}, {{',
        [f'"{each}": {_python_name(each)}' for each in parameters],
        "})",
    )
    return f'\n{signature}\n        """{_sentence(command.summary)}"""\n{call}\n'


def _parameters(command: Command, form: Form) -> Iterator[tuple[str, str]]:
    """The arguments of a form and how Python declares them."""
    if command.key:
        yield command.key, f"{command.key}: str"
    if command.keys:
        yield command.keys, f"{command.keys}: Sequence[str]"
    positional = form.args if form is command.lead else [*command.lead.args, *form.args]
    for arg in positional:
        if arg.type != "literal":
            yield arg.name, _declaration(arg, arg.optional or arg.type == "time")
    if form.rest:
        yield form.rest.name, f"{_python_name(form.rest.name)}: Sequence[str] = ()"
    if form.batch:
        yield "batch", "batch: Batch"
    for option in form.options:
        yield option.name, _declaration(option, optional=True)


def _declaration(arg: Arg, optional: bool) -> str:
    type_ = _BY_NAME.get(arg.name) or _PARAMETERS.get(arg.type, "str")
    return f"{_python_name(arg.name)}: {type_}{' | None = None' if optional else ''}"


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
    TARGET.write_text(generate(), "utf-8")
