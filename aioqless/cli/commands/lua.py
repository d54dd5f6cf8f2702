"""Prints the scripts of Lua commands: lua."""

from __future__ import annotations

from typing import Annotated

import typer

from aioqless.cli.app import Section, app
from aioqless.cli.options import Namespace
from aioqless.cli.partitions import check_one_partition
from aioqless.errors import AioqlessError


@app.command(rich_help_panel=Section.ADMIN)
def lua(
    command: Annotated[str, typer.Argument(metavar="COMMAND", help="Such as put.")],
    namespace: Namespace = "ql",
) -> None:
    """Print the script of a Lua command, to call it from other programs."""
    from aioqless.store.command_header import command_names
    from aioqless.store.script_composer import compose

    if command not in command_names():
        raise AioqlessError(
            f"there is no command {command!r}; there are {', '.join(command_names())}"
        )
    check_one_partition(namespace)
    print(compose(command, namespace).text)
