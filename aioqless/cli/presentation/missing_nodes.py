"""Reads that return what can be reached, and report the nodes that they lack."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Iterable
from functools import wraps
from typing import Concatenate, ParamSpec

import typer

from aioqless.cli.exit_codes import UNREACHABLE
from aioqless.cli.presentation.printing import make_console
from aioqless.client import Client
from aioqless.client.missing_nodes import MissingNode
from aioqless.errors import AioqlessError
from aioqless.validation import plain

P = ParamSpec("P")


def report_missing(missing: Iterable[MissingNode]) -> None:
    """Print the nodes that are missing, to standard error.

    Raises:
        typer.Exit: There are some.
    """
    lines = [plain(str(each)) for each in missing]
    for line in lines:
        make_console(errors=True).print(line, style="red", soft_wrap=True)
    if lines:
        raise typer.Exit(UNREACHABLE)


def report_missing_nodes(
    act: Callable[Concatenate[Client, P], Awaitable[None]],
) -> Callable[Concatenate[Client, P], Coroutine[object, object, None]]:
    """Make reads return what can be reached; then report the nodes that are missing.

    What the reads don't find may be on a missing node.
    """

    @wraps(act)
    async def read(client: Client, *args: P.args, **given: P.kwargs) -> None:
        with client.partial_reads() as missing:
            try:
                await act(client, *args, **given)
            except AioqlessError:
                report_missing(missing)
                raise
        report_missing(missing)

    return read  # type: ignore[return-value]  # mypy: it has the names of its parameters
