"""Keeping a namespace in order, and reading its scripts: check, lua."""

from __future__ import annotations

import time
from collections import defaultdict
from typing import Annotated

import typer

from aioqless.cli.app import REFUSED, Namespace, Url, app, run
from aioqless.cli.presentation.formatting import brief, many
from aioqless.cli.presentation.printing import console, show_line, table
from aioqless.cli.presentation.prompts import progress
from aioqless.client import Client
from aioqless.client.archive import Archive
from aioqless.client.results import Finding
from aioqless.errors import AioqlessError


@app.command(
    epilog="Each problem is explained in aioqless/lua/check.lua. Examples: aioqless check; aioqless check --resolve --json"
)
def check(
    resolve: Annotated[
        bool, typer.Option("--resolve", help="Mend what is found, losing no job.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="A line of JSON for each problem.")] = False,
    url: Url = None,
    namespace: Namespace = "ql",
) -> None:
    """Look for what can't be right in the namespace; exit code 1 when something was found that is
    not mended."""
    problems: list[Finding] = []
    troubles: list[str] = []

    async def act(client: Client) -> None:
        with progress("looking", None) as step:
            problems.extend(await client.check(resolve=resolve, step=step))
        if trouble := (await Archive(client.store).state()).trouble(time.time()):
            troubles.append(trouble)

    run(url, namespace, act)
    for trouble in troubles:
        console(errors=True).print(f"the archive: {trouble}", style="yellow", soft_wrap=True)
    left = [problem for problem in problems if not problem.mended]
    if json:
        for problem in problems:
            show_line({**problem.about, "problem": problem.problem, "mended": problem.mended})
    elif problems:
        _report(problems)
    mended = len(problems) - len(left)
    console(errors=True).print(
        many(len(problems), "problem") + (f", {mended} mended" if problems else "")
    )
    if left and not resolve and not json:
        console(errors=True).print(
            "aioqless check --resolve mends them, losing no job", style="dim"
        )
    if left:
        raise typer.Exit(REFUSED)


def _report(problems: list[Finding]) -> None:
    """Problems by kind: how many, how many of them mended, and one of them."""
    kinds: dict[str, list[Finding]] = defaultdict(list)
    for problem in problems:
        kinds[problem.problem].append(problem)
    rows = [
        (
            kind,
            len(some),
            sum(each.mended for each in some),
            brief("  ".join(_about(some[0])), 100),
        )
        for kind, some in sorted(kinds.items(), key=lambda each: -len(each[1]))
    ]
    table(["problem", "found", "mended", "such as"], rows, empty="")


def _about(problem: Finding) -> list[str]:
    return [f"{name}={value}" for name, value in problem.about.items()]


@app.command()
def lua(
    command: Annotated[str, typer.Argument(metavar="COMMAND", help="Such as put.")],
    namespace: Namespace = "ql",
) -> None:
    """Print a command's script, to call it from elsewhere."""
    from aioqless.store.composer import compose
    from aioqless.store.header import command_names

    if command not in command_names():
        raise AioqlessError(
            f"there is no command {command!r}; there are {', '.join(command_names())}"
        )
    print(compose(command, namespace).text)
