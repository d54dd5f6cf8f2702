"""The Typer app that all commands belong to."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from functools import wraps
from importlib import import_module
from inspect import Parameter, signature
from typing import Annotated, Any, TypeVar

import typer

from aioqless.cli.connect import PARTITIONS_VARIABLE, chosen_partitions
from aioqless.cli.help import INTRODUCTION

Run = TypeVar("Run", bound=Callable[..., Any])

Partitions = Annotated[
    int | None,
    typer.Option(
        "--partitions",
        envvar=PARTITIONS_VARIABLE,
        help="Number of partitions that make the namespace; default: it has none.",
    ),
]


class Section(StrEnum):
    """Sections of the help, in its order; a command names its own as `rich_help_panel`."""

    INSPECT = "Inspect"
    JOBS = "Manage jobs"
    QUEUES = "Manage queues and workers"
    RUN = "Run"
    ADMIN = "Administer"


class App(typer.Typer):
    """A group of commands; those with a namespace take the number of its partitions, too."""

    def command(
        self, name: str | None = None, *, partitions: bool = True, **settings: Any
    ) -> Callable[[Run], Run]:
        """Make a command of a function, which is returned as it is.

        Args:
            name: Name of the command.
            partitions: False if it opens no client, or works on one partition at a time.
            **settings: Further arguments of Typer's own `command`.
        """
        register = super().command(name, **settings)

        def make(run: Run) -> Run:
            register(_with_partitions(run) if partitions and _takes_partitions(run) else run)
            return run

        return make

    def callback(self, **settings: Any) -> Callable[[Run], Run]:
        """Make a function what the group does without a command; it is returned as it is."""
        register = super().callback(**settings)

        def make(run: Run) -> Run:
            register(_with_partitions(run) if _takes_partitions(run) else run)
            return run

        return make


def _takes_partitions(run: Callable[..., Any]) -> bool:
    own = signature(run).parameters
    return "namespace" in own and "partitions" not in own


def _with_partitions(run: Callable[..., Any]) -> Callable[..., Any]:
    """Return a command with the option `--partitions`, by which `run_with_client` goes."""

    @wraps(run)
    def run_with_partitions(*args: Any, partitions: int | None = None, **named: Any) -> Any:
        chosen_partitions.set(partitions)
        return run(*args, **named)

    own = signature(run, eval_str=True)  # annotations are texts, of the names of another module
    option = Parameter("partitions", Parameter.KEYWORD_ONLY, default=None, annotation=Partitions)
    parameters = [*own.parameters.values(), option]
    vars(run_with_partitions)["__signature__"] = own.replace(parameters=parameters)
    run_with_partitions.__annotations__ = {each.name: each.annotation for each in parameters}
    return run_with_partitions


app = App(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help=INTRODUCTION,
    rich_markup_mode=None,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"aioqless {import_module('aioqless').__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """Provide the options of `aioqless` itself."""
