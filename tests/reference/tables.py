"""Generates the references of commands, of Lua commands, of keys and of the lake's tables.

They come from the commands themselves, the headers of the scripts, the comments in `keys.lua`, and
the declaration of the tables.
"""

from __future__ import annotations

import re
import runpy
from collections.abc import Callable, Iterator, Mapping
from itertools import takewhile
from pathlib import Path
from typing import Any, Final, NamedTuple

import pyarrow as pa
import typer
from typer.cli import get_docs_for_click

import aioqless
from aioqless.cli.app import Section, app
from aioqless.cli.help import list_commands, read_extension_commands
from aioqless.cli.main import load_command
from aioqless.cli.worker_options import (
    DESCRIPTION,
    METAVARS,
    MODULES_HELP,
    SYNOPSIS,
    list_options,
)
from aioqless.errors import script_error
from aioqless.lua import read_library, read_script
from aioqless.store.command_header import Command, command_files, command_names, read_command

PACKAGE: Final = Path(aioqless.__file__).parent
KEYS: Final = (PACKAGE / "lua" / "lib" / "base" / "keys.lua").read_text("utf-8")
_PARTS = {
    "key": "`KEYS`",
    "keys": "`KEYS`",
    "arg": "argument",
    "literal": "the word itself",
    "rest": "any number of arguments",
    "batch": "a count, then for each",
    "option": "option",
}
_KEY_TYPES: Final = {
    "H": "hash",
    "L": "list",
    "S": "set",
    "Z": "sorted set",
    "T": "string",
    "stream": "stream",
    "channel:": "channel",
}
_KEY: Final = re.compile(
    r"^-- (H|L|S|Z|T|stream|channel:) (.*(?:\n-- .*)*)"
    r"\nfunction keys\.\w+\(.*\)\s+return (ns .*?)(?: end$|\nend)",
    re.MULTILINE,
)
_FIELDS: Final = re.compile(
    r"^--   (x-[a-z-]+) +(.+)|^-- .*?(a recurring job|a day's|a job)", re.MULTILINE
)
_COLUMN_TYPES: Final = {
    pa.string(): "string",
    pa.int64(): "long",
    pa.float64(): "double",
    pa.bool_(): "boolean",
    pa.binary(): "binary",
    pa.date32(): "date",
}


class Directive(NamedTuple):
    """A directive of a header, with its continuation lines."""

    word: str
    text: str


def keys() -> Iterator[str]:
    """Yield the tables of keys and of fields."""
    libraries = [
        file.read_text("utf-8") for file in sorted(PACKAGE.rglob("keys.lua"), key=str, reverse=True)
    ]
    rows = [key for text in libraries for key in _KEY.findall(text)]
    for heading, ours in (("Keys of qless", False), ("Keys of aioqless", True)):
        yield f"\n## {heading}\n\n| key | type | meaning |\n|---|---|---|"
        for kind, meaning, expression in rows:
            name = _key_name(expression)
            if name.startswith("x:") == ours:
                words = " ".join(meaning.replace("\n-- ", " ").split())
                yield f"| `{name}` | {_KEY_TYPES[kind]} | {_escaped(words)} |"
    yield "\n## Fields of aioqless\n\n| field | of | meaning |\n|---|---|---|"
    of = "a job"
    for field, meaning, owner in _FIELDS.findall(KEYS):
        of = {"a day's": "a day's statistics"}.get(owner, owner) or of
        if field:
            yield f"| `{field}` | {of} | {_escaped(meaning)} |"


def _key_name(expression: str) -> str:
    """Return a key without the namespace, with the variable parts in angle brackets."""
    literals = re.sub(r"string\.format\('%d', (\w+)\)", r"\1", expression)
    parts = [part.strip() for part in literals.split("..")][1:]
    text = "".join(part.strip("'") if "'" in part else f"<{part}>" for part in parts)
    return text.removeprefix(":")


def lake_tables() -> Iterator[str]:
    """Yield the columns of the lake's tables."""
    # by its path, since the package of the lake needs Spark
    schema = runpy.run_path(str(PACKAGE / "contrib" / "lake" / "schema.py"))
    for table in schema["TABLES"].values():
        yield f"\n## {table.name}\n\n{table.description}\n"
        yield "| column | type | meaning |\n|---|---|---|"
        for column in table.schema:
            if column.name not in schema["PARTITION_COLUMNS"]:
                yield f"| `{column.name}` | {_column_type(column.type)} | {_column(column)} |"


def _column(field: pa.Field) -> str:
    text = field.metadata[b"comment"].decode()
    kind = field.type.value_type if pa.types.is_list(field.type) else field.type
    if pa.types.is_struct(kind):
        return f"{text} Fields: {', '.join(f'`{each.name}`' for each in kind)}."
    return text


def _column_type(kind: pa.DataType) -> str:
    if pa.types.is_timestamp(kind):
        return "timestamp"
    if pa.types.is_map(kind):
        return f"map of {_column_type(kind.key_type)} to {_column_type(kind.item_type)}"
    if pa.types.is_list(kind):
        return f"list of {_column_type(kind.value_type)}"
    return "struct" if pa.types.is_struct(kind) else _COLUMN_TYPES[kind]


def command_line() -> Iterator[str]:
    """Yield the lines of the page on the command line."""
    load_command()
    group: Any = typer.main.get_command(app)  # of click, which Typer keeps private
    context = typer.Context(group, info_name="aioqless")
    extensions = read_extension_commands()
    extras = {
        name: extensions[name]["extra"] if name in extensions else "cli"
        for commands in list_commands().values()
        for name in commands
    }
    for section in Section:
        yield f"## {section}\n"
        for name, command in sorted(group.commands.items()):
            if command.hidden or command.rich_help_panel != section:
                continue
            if name == "worker":
                yield from _worker()
                continue
            docs = get_docs_for_click(obj=command, ctx=context, indent=2, call_prefix="aioqless")
            heading, _, rest = docs.partition("\n")
            yield f'{heading}\n\nNeeds `pip install "aioqless[{extras[name]}]"`.\n'
            yield rest


def _worker() -> Iterator[str]:
    """Yield the lines on `aioqless worker`, which is parsed without Typer."""
    yield f"### `aioqless worker`\n\n{DESCRIPTION}\n**Usage**:\n"
    yield f"```console\n$ {SYNOPSIS}\n```\n"
    yield f"**Arguments**:\n\n* `MODULE`: {MODULES_HELP}\n\n**Options**:\n"
    for option in list_options():
        if option.help:
            spelled = ", ".join(option.flags) + (f" / {option.off}" if option.off else "")
            if option.type is not bool:
                spelled += f" {option.metavar or METAVARS.get(option.type)}"
            given = option.default is not None and option.type is not bool
            known = given and "default" not in option.help
            yield f"* `{spelled}`: {option.help}" + (f"  [default: {option.default}]" * known)
    yield ""


def lua_commands() -> Iterator[str]:
    """Yield the lines of the page on the Lua commands."""
    yield "| command | what it does | roles |\n|---|---|---|"
    for command in map(read_command, command_names()):
        summary = _sentence(command.summary)
        yield f"| [`{command.name}`](#{command.name}) | {summary} | {_roles(command)} |"
    for name in command_names():
        yield from _lua_command(name)


def _lua_command(name: str) -> Iterator[str]:
    command = read_command(name)
    directives = list(_directives(read_script(command_files()[name])))
    yield f"\n## `{name}`\n\n{_sentence(command.summary)}\n"
    yield from _details(name)
    table = False
    for word, text in directives:
        if word == "when":
            call, _, meaning = text.partition("  ")
            named, *default = call.split()
            note = " (the default)" if default else ""
            yield f"\n**`{named}`**{note}{': ' if meaning else ''}{meaning.strip()}\n"
            table = False
        elif word == "returns":
            kind, _, meaning = text.partition(" ")
            reply = "nothing" if kind == "nothing" else f"{meaning.strip() or kind} (`{kind}`)"
            yield f"\nReply: {_escaped(reply)}\n"
        elif word in (*_PARTS, "options"):
            if not table:
                yield "\n| part | name | type | meaning |\n|---|---|---|---|"
                table = True
            yield from _rows(word, text)
    errors = [
        f"`{code}` ({type(script_error(name, code, {})).__name__})" for code in command.raises
    ]
    facts = {
        "Errors": ", ".join(errors),
        "Roles": _roles(command),
        "Option `request`": "a request id, `line:number`, that makes repeating the call safe"
        if command.writes
        else "",
    }
    yield "\n" + "\n\n".join(f"{title}: {fact}" for title, fact in facts.items() if fact)


def _details(name: str) -> Iterator[str]:
    """Yield the prose between a header's first line and its directives."""
    lines = read_script(command_files()[name]).splitlines()[1:]
    prose = [
        line.removeprefix("--").removeprefix(" ")
        for line in takewhile(lambda line: line.startswith("--") and "-- @" not in line, lines)
    ]
    text = "\n".join(prose).strip("\n")
    if "\n  " in text:
        text = f"```text\n{text}\n```"
    yield text


def _directives(text: str) -> Iterator[Directive]:
    """Yield the directives of a header, each with its continuation lines."""
    header = [*takewhile(lambda line: line.startswith("--"), text.splitlines())]
    joined = re.sub(r"\n-- {3,}", "  ", "\n".join(header))
    for word, rest in re.findall(r"^-- @(\w+) *(.*)$", joined, re.MULTILINE):
        yield Directive(word, rest.split(" -- ")[0])


def _rows(word: str, text: str) -> Iterator[str]:
    """Yield the rows of a table for a directive."""
    if word == "options":
        library = read_library(text).partition("\n\n")[2]
        shared = library.replace("\n--\n", "\n")
        for each in _directives(shared):
            yield from _rows(each.word, each.text)
        return
    first, _, rest = text.partition(" ")
    if word == "batch":
        fields = [part for part in text.split() if ":" in part]
        meaning = text[text.rindex(fields[-1]) + len(fields[-1]) :].strip()
        for number, field in enumerate(fields):
            name, _, kind = field.partition(":")
            yield _row(_PARTS[word] if not number else "", name, kind, "" if number else meaning)
        return
    kind, _, meaning = (rest.strip() + " ").partition(" ")
    if word in ("key", "keys"):
        kind, meaning = "", "names of queues" if word == "keys" else "a queue's name"
    yield _row(_PARTS[word], first, kind, meaning.strip())


def _row(part: str, name: str, kind: str, meaning: str) -> str:
    optional = kind.endswith("?")
    type_ = f"`{kind.rstrip('?')}`" if kind else ""
    return f"| {part} | `{name}` | {type_}{', optional' * optional} | {_escaped(meaning)} |"


def _roles(command: Command) -> str:
    """Return the roles whose users may call a command: the reader all that change nothing."""
    return ", ".join(dict.fromkeys((*command.roles, *(() if command.writes else ("reader",)))))


def _sentence(summary: str) -> str:
    return _escaped(summary[:1].upper() + summary[1:])


def _escaped(text: str) -> str:
    return re.sub(r"  +", " ", text).replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*")


TABLES: Final[Mapping[str, Callable[[], Iterator[str]]]] = {
    "commands": command_line,
    "keys": keys,
    "lake-tables": lake_tables,
    "lua-commands": lua_commands,
}
