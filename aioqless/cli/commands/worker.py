"""Lists `worker` in the help and completes its options; `cli/worker_command.py` runs it."""

from __future__ import annotations

import sys
from inspect import Parameter, Signature
from typing import Annotated, Any, get_origin

import typer

from aioqless.cli.app import Section, app
from aioqless.cli.worker_command import run_worker
from aioqless.cli.worker_options import DESCRIPTION, MODULES_HELP, Option, list_options

Modules = Annotated[list[str], typer.Argument(metavar="MODULE...", help=MODULES_HELP)]


def worker(**_: object) -> None:
    """Run a worker by its own parser, where Typer is asked first: `aioqless -- worker`."""
    raise typer.Exit(run_worker(sys.argv[sys.argv.index("worker") + 1 :]))


def _parameter(option: Option) -> Parameter:
    """Return an option as Typer reads it; values are strings."""
    values: Any = str
    if option.type is bool:
        values = bool
    elif get_origin(option.type) is list:
        values = list[str]
    *others, last = option.flags
    spelled = f"{last}/{option.off}" if option.off else last
    declared = typer.Option(*others, spelled, help=option.help, hidden=not option.help)
    return Parameter(
        option.name,
        Parameter.KEYWORD_ONLY,
        annotation=Annotated[values | None, declared],
        default=option.default if values is bool else None,
    )


_parameters = [
    Parameter("modules", Parameter.KEYWORD_ONLY, annotation=Modules),
    *map(_parameter, list_options()),
]
worker.__doc__ = DESCRIPTION
worker.__annotations__ = {each.name: each.annotation for each in _parameters}
worker.__signature__ = Signature(_parameters)  # type: ignore[attr-defined]  # inspect reads it
app.command(rich_help_panel=Section.RUN)(worker)
