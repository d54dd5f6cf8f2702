"""Reports the nodes that a partial read lacks."""

from __future__ import annotations

from collections.abc import Iterable

import typer

from aioqless.cli.exit_codes import UNREACHABLE
from aioqless.cli.presentation.printing import make_console
from aioqless.client.missing_nodes import MissingNode
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
