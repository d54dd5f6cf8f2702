"""Checks the consistency of a namespace: check."""

from __future__ import annotations

from collections import defaultdict
from typing import Annotated

import typer

from aioqless.cli.app import Section, app
from aioqless.cli.exit_codes import REFUSED
from aioqless.cli.presentation.formatting import pluralize, shorten
from aioqless.cli.presentation.printing import make_console, print_json_line, print_table
from aioqless.cli.presentation.prompts import show_progress
from aioqless.cli.presentation.queue_gaps import print_gaps
from aioqless.client import Client, read_overview
from aioqless.client.consistency import Finding


@app.command(
    rich_help_panel=Section.ADMIN,
    epilog="Each problem is explained in aioqless/lua/check.lua. "
    "Examples: aioqless check; aioqless check --resolve --json",
)
async def check(
    client: Client,
    resolve: Annotated[
        bool, typer.Option("--resolve", help="Fix what is found, losing no job.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="A line of JSON for each problem.")] = False,
) -> None:
    """Check the consistency of the namespace; exit code 1 if a problem remains.

    What other qless clients leave by design is listed last, and doesn't count as a problem.
    """
    errors = make_console(errors=True)
    with show_progress("looking", None) as advance:
        problems = await client.check(resolve=resolve, step=advance)
    overview = await read_overview(client)
    if trouble := overview.archive.describe_problem(overview.when):
        errors.print(f"the archive: {trouble}", style="yellow", soft_wrap=True)
    print_gaps(overview.coverage)
    others = [problem for problem in problems if problem.is_left_by_others]
    own = [problem for problem in problems if not problem.is_left_by_others]
    left = [problem for problem in own if not problem.fixed]
    kinds = {problem.problem for problem in left}
    if json:
        for problem in problems:
            state = {"fixed": problem.fixed, "left_by_others": problem.is_left_by_others}
            print_json_line({**problem.about, "problem": problem.problem, **state})
    else:
        for each in (own, others):
            if each:
                _print_problems(each)
    fixed = f", {len(own) - len(left)} fixed" if own else ""
    errors.print(pluralize(len(own), "problem") + fixed)
    if others:
        what = pluralize(len(others), "entry", "entries")
        done = "were deleted" if resolve else "are harmless; --resolve deletes them"
        errors.print(f"{what} that other qless clients leave by design {done}", style="dim")
    if kinds and not resolve and not json:
        errors.print("aioqless check --resolve fixes them without losing a job", style="dim")
    if left:
        raise typer.Exit(REFUSED)


def _print_problems(problems: list[Finding]) -> None:
    """Print the problems by kind: how many, how many of them fixed, and an example."""
    kinds: dict[str, list[Finding]] = defaultdict(list)
    for problem in problems:
        kinds[problem.problem].append(problem)
    rows = [
        (
            kind,
            len(found),
            sum(each.fixed for each in found),
            shorten("  ".join(_format_details(found[0])), 100),
        )
        for kind, found in sorted(kinds.items(), key=lambda each: -len(each[1]))
    ]
    print_table(["problem", "found", "fixed", "such as"], rows, empty="")


def _format_details(problem: Finding) -> list[str]:
    return [f"{name}={value}" for name, value in problem.about.items()]
