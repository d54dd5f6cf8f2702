"""The Typer app that all commands belong to."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from enum import StrEnum
from functools import partial, wraps
from importlib import import_module
from inspect import Parameter, Signature, iscoroutinefunction, signature
from typing import TYPE_CHECKING, Annotated, Any, Protocol, TypeVar

import typer

from aioqless.cli.help import INTRODUCTION
from aioqless.cli.options import Namespace, Partitions, Url

if TYPE_CHECKING:
    from aioqless.client import Client

Run = TypeVar("Run", bound=Callable[..., Any])

# The options of a command that needs a client.
CONNECTION = [
    Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
    for name, default, annotation in (
        ("url", None, Url),
        ("namespace", "ql", Namespace),
        ("partitions", None, Partitions),
    )
]


class Section(StrEnum):
    """Sections of the help, in its order; a command names its own as `rich_help_panel`."""

    INSPECT = "Inspect"
    JOBS = "Manage jobs"
    QUEUES = "Manage queues and workers"
    RUN = "Run"
    ADMIN = "Administer"


class Act(Protocol):
    """What a command does with a client, after it has checked its arguments."""

    def __call__(self, client: Client, /) -> Awaitable[None]:
        """Do it."""


class App(typer.Typer):
    """A group of commands. One that needs a client gets it, and the options that say which.

    Such a command is a coroutine function whose first parameter is the client; or a function that
    checks its arguments first, and returns what is then called with the client.
    """

    def command(self, name: str | None = None, **settings: Any) -> Callable[[Run], Run]:
        """Make a command of a function, which is returned as it is."""
        return _register(super().command(name, **settings))

    def callback(self, **settings: Any) -> Callable[[Run], Run]:
        """Make a function what the group does without a command; it is returned as it is."""
        return _register(super().callback(**settings))


def _register(register: Callable[[Callable[..., Any]], object]) -> Callable[[Run], Run]:
    def make(run: Run) -> Run:
        own = signature(run, eval_str=True)  # annotations are texts, of the names of another module
        if iscoroutinefunction(run):
            register(_connected(run, own, lambda **given: partial(run, **given)))
        elif own.return_annotation in (Act, Act | None):
            register(_connected(run, own, run))
        else:
            register(run)
        return run

    return make


def _connected(
    run: Callable[..., Any], own: Signature, prepare: Callable[..., Act | None]
) -> Callable[..., None]:
    """Return a command that calls with a client what `prepare` makes of the other arguments."""

    @wraps(run)
    def connect(*, url: str | None, namespace: str, partitions: int | None, **given: Any) -> None:
        from aioqless.cli.connect import run_with_client  # commands without a client start faster

        if (act := prepare(**given)) is not None:
            run_with_client(url, namespace, act, partitions)

    parameters = [each for each in own.parameters.values() if each.name != "client"]
    parameters += CONNECTION
    vars(connect)["__signature__"] = Signature(parameters)
    connect.__annotations__ = {each.name: each.annotation for each in parameters}
    return connect


app = App(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help=INTRODUCTION,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["--help", "-h"]},
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
