"""Keeping a namespace in order, and reading its scripts: check, lua."""

from __future__ import annotations

import json
import sys
from typing import Annotated, Any

import typer

from aioqless.cli.app import REFUSED, Namespace, Url, app, run
from aioqless.client import Client
from aioqless.errors import AioqlessError


@app.command()
def check(
    resolve: Annotated[bool, typer.Option("--resolve", help="Mend what is found, losing no job.")] = False,
    url: Url = None,
    namespace: Namespace = "ql",
) -> None:
    """Look for what can't be right in the namespace; exit code 1 when something was found and not mended."""
    problems: list[dict[str, Any]] = []

    async def act(client: Client) -> None:
        problems.extend(await client.check(resolve=resolve))

    run(url, namespace, act)
    for problem in problems:
        print(json.dumps(problem, ensure_ascii=False))
    print(f"{len(problems)} problems" + (", mended" if resolve and problems else ""), file=sys.stderr)
    if problems and not resolve:
        raise typer.Exit(REFUSED)


@app.command()
def lua(command: str, namespace: Namespace = "ql") -> None:
    """Print a command's script, to call it from elsewhere."""
    from aioqless.scripts.compose import compose
    from aioqless.scripts.header import command_names

    if command not in command_names():
        raise AioqlessError(f"there is no command {command!r}; there are {', '.join(command_names())}")
    print(compose(command, namespace).text)
