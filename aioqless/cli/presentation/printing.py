"""How results come out: tables for people, JSON for programs."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from aioqless.cli.presentation.formatting import STYLES, plain

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

WHOLE = 36  # characters up to which a jid stays on one line: it is to be copied
WIDE = 10_000_000  # columns of what isn't a terminal: nothing is cut off


def show(value: Any) -> None:
    """Print a value as JSON."""
    print(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())


def show_line(value: Any) -> None:
    """Print a value as one line of JSON, at once: for streams."""
    print(msgspec.json.encode(value).decode(), flush=True)


def console(*, errors: bool = False) -> Console:
    """Where people read. Colours only on a terminal, and never if NO_COLOR is set."""
    from rich.console import Console

    file = sys.stderr if errors else sys.stdout
    return Console(
        file=file,
        width=None if file.isatty() else WIDE,
        markup=False,
        highlight=False,
        emoji=False,
        soft_wrap=False,
    )


def say(*parts: RenderableType, style: str | None = None) -> None:
    """Print for a person."""
    console().print(*parts, style=style)


def hint(text: str) -> None:
    """Tell a person on a terminal what they could do next; programs aren't bothered."""
    if sys.stdout.isatty():
        console().print(text, style="dim", soft_wrap=True)


def table(columns: Sequence[str], rows: Iterable[Sequence[Any]], *, empty: str) -> None:
    """A table; numbers to the right. Without rows it is said what that means."""
    from rich.table import Table
    from rich.text import Text

    shown = [list(row) for row in rows]
    if not shown:
        say(empty, style="dim")
        return
    grid = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for index, column in enumerate(columns):
        numbers = all(
            isinstance(row[index], int | float) and not isinstance(row[index], bool)
            for row in shown
        )
        grid.add_column(
            column,
            justify="right" if numbers else "left",
            overflow="fold" if column in ("jid", "worker", "name", "group") else "ellipsis",
            min_width=min(WHOLE, max(len(str(row[index])) for row in shown))
            if column == "jid"
            else None,
        )
    for row in shown:
        grid.add_row(
            *(
                each if isinstance(each, Text) else Text(_text(each), style=_style(each))
                for each in row
            )
        )
    console().print(grid)


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "-"
    if isinstance(value, int):
        return f"{value:,}"
    return "-" if value is None or value == "" else plain(str(value))


def _style(value: Any) -> str:
    if value == 0 or value is None or value is False:
        return "dim"
    return STYLES.get(value, "") if isinstance(value, str) else ""
