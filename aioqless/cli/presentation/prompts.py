"""Confirmation prompts and progress bars."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import typer

from aioqless.cli.presentation.printing import make_console
from aioqless.errors import AioqlessError

SHOW_AFTER = 1.0  # seconds before a progress bar is shown


def confirm(question: str, *, yes: bool, deletes: bool = True) -> None:
    """Ask for confirmation on a terminal, unless it was given by `--yes`.

    Raises:
        AioqlessError: if the answer is no, or if there is no terminal.
    """
    if yes:
        return
    if not sys.stdin.isatty():
        warning = "This can't be undone" if deletes else "Nothing was changed"
        raise AioqlessError(f"{question} {warning}; pass --yes to confirm")
    if not typer.confirm(question, err=True):
        raise AioqlessError("aborted: nothing was changed")


@contextmanager
def show_progress(title: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """Yield a function to call with each number of finished items.

    On a terminal, a bar is shown after a second.
    """
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        SpinnerColumn,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = [
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    ]
    bar = Progress(
        *columns, console=make_console(errors=True), transient=True, disable=not sys.stderr.isatty()
    )
    task, started, shown = bar.add_task(title, total=total), time.monotonic(), False

    def advance(done: int) -> None:
        nonlocal shown
        if not shown and time.monotonic() - started > SHOW_AFTER:
            bar.start()
            shown = True
        bar.advance(task, done)

    try:
        yield advance
    finally:
        if shown:
            bar.stop()
