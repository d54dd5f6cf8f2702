"""Reads that return what can be reached, and report the nodes that they lack."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable

import typer

from aioqless.cli.connect import run_with_client
from aioqless.cli.exit_codes import UNREACHABLE
from aioqless.cli.presentation.printing import make_console
from aioqless.client import Client
from aioqless.client.missing_nodes import MissingNode
from aioqless.errors import AioqlessError
from aioqless.validation import plain


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


def run_partial_read(
    url: str | None, namespace: str, act: Callable[[Client], Awaitable[None]]
) -> None:
    """Run reads that return what can be reached, then report the nodes that are missing.

    Args:
        url: Where Redis is.
        namespace: The namespace.
        act: Reads and prints. What it doesn't find may be on a missing node.

    Raises:
        typer.Exit: Nodes are missing.
    """

    async def read(client: Client) -> None:
        with client.partial_reads() as missing:
            try:
                await act(client)
            except AioqlessError:
                report_missing(missing)
                raise
        report_missing(missing)

    run_with_client(url, namespace, read)
