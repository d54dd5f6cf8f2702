"""Prints results: tables for people, JSON for programs."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import msgspec

from aioqless.cli.presentation.formatting import STYLES
from aioqless.validation import plain

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

MAX_JID_WIDTH = 36  # characters up to which a jid stays on one line, so that it can be copied
UNLIMITED_WIDTH = 10_000_000  # columns where output is no terminal: nothing is cut off
FOLDED = ("jid", "worker", "name", "group")  # columns whose text is wrapped, not cut off


def print_json(value: object) -> None:
    """Print a value as JSON."""
    print(escape_json(_encode_json(value, 2)))


def print_json_line(value: object) -> None:
    """Print a value as one line of JSON and flush it: for streams."""
    print(escape_json(_encode_json(value)), flush=True)


def _encode_json(value: object, indent: int | None = None) -> str:
    try:
        encoded = msgspec.json.encode(value)
        return (encoded if indent is None else msgspec.json.format(encoded, indent=indent)).decode()
    except UnicodeEncodeError:  # a name that isn't UTF-8: halves of surrogate pairs are escaped
        return json.dumps(value, indent=indent, default=_to_builtins)


def _to_builtins(value: object) -> object:
    raw = isinstance(value, msgspec.Raw)
    return json.loads(bytes(value)) if raw else msgspec.to_builtins(value)  # type: ignore[call-overload]


def escape_json(text: str) -> str:
    """Escape what `validation.plain` does, in JSON, whose value stays the same.

    If standard output isn't UTF-8, escape all but ASCII.
    """
    ascii_only = not (sys.stdout.encoding or "utf-8").lower().startswith("utf")

    def is_kept(characters: str) -> bool:
        return characters.isprintable() and (characters.isascii() or not ascii_only)

    if is_kept(text):
        return text
    escaped = (each if each == "\n" or is_kept(each) else json.dumps(each)[1:-1] for each in text)
    return "".join(escaped)


def make_console(*, errors: bool = False) -> Console:
    """Return a console on standard output or standard error.

    It has colors only on a terminal, and none if NO_COLOR is set.
    """
    from rich.console import Console

    file = sys.stderr if errors else sys.stdout
    return Console(
        file=file,
        width=None if file.isatty() else UNLIMITED_WIDTH,
        markup=False,
        highlight=False,
        emoji=False,
        soft_wrap=False,
    )


def print_text(*parts: RenderableType, style: str | None = None) -> None:
    """Print text for people."""
    make_console().print(*parts, style=style)


def print_hint(text: str) -> None:
    """Print what a person on a terminal could do next; programs don't get it."""
    if sys.stdout.isatty():
        make_console().print(text, style="dim", soft_wrap=True)


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]], *, empty: str) -> None:
    """Print a table with numbers aligned right; without rows, print `empty`."""
    from rich.table import Table
    from rich.text import Text

    shown = [list(row) for row in rows]
    if not shown:
        print_text(empty, style="dim")
        return
    grid = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for index, column in enumerate(columns):
        cells = [row[index] for row in shown]
        width = min(MAX_JID_WIDTH, max(len(str(cell)) for cell in cells))
        grid.add_column(
            column,
            justify="right" if all(map(_is_number, cells)) else "left",
            overflow="fold" if column in FOLDED else "ellipsis",
            min_width=width if column == "jid" else None,
        )
    for row in shown:
        grid.add_row(
            *(
                cell if isinstance(cell, Text) else Text(_format_cell(cell), style=_style(cell))
                for cell in row
            )
        )
    make_console().print(grid)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _format_cell(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "-"
    if isinstance(value, int):
        return f"{value:,}"
    return "-" if value is None or value == "" else plain(str(value))


def _style(value: object) -> str:
    if value == 0 or value is None or value is False:
        return "dim"
    return STYLES.get(value, "") if isinstance(value, str) else ""
