"""Before much is done: what would be, whether to, and how far it is."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from aioqless.cli.presentation.printing import console
from aioqless.errors import AioqlessError

PATIENCE = 1.0  # seconds that something may take before it is shown how far it is

Yes = Annotated[bool, typer.Option("--yes", "-y", help="Don't ask.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only say what would be done.")]


def confirm(question: str, *, yes: bool) -> None:
    """Ask on a terminal. Elsewhere nobody can answer: raises AioqlessError unless it was said
    beforehand, and when the answer is no."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise AioqlessError(
            f"{question} This can't be undone; say --yes to do it without being asked"
        )
    if not typer.confirm(question, err=True):
        raise AioqlessError("nothing was done")


@contextmanager
def progress(title: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """What is called with how many more are done. After a second a bar is shown, if somebody can
    see it."""
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
        *columns, console=console(errors=True), transient=True, disable=not sys.stderr.isatty()
    )
    task, started, shown = bar.add_task(title, total=total), time.monotonic(), False

    def step(done: int) -> None:
        nonlocal shown
        if not shown and time.monotonic() - started > PATIENCE:
            bar.start()
            shown = True
        bar.advance(task, done)

    try:
        yield step
    finally:
        if shown:
            bar.stop()
