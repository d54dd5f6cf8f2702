"""What all commands share: the app they belong to, the options of every one, and the way to
Redis."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from aioqless.cli.command_index import sections
from aioqless.cli.presentation.completion import queue_names
from aioqless.client import Client

HELP = """A job queue on Redis.

When something failed: `aioqless failed`, then `aioqless get JID`, `aioqless edit JID`, `aioqless retry JID --wait`.
"""
SENTENCE = 300  # characters of what a command is about, at most


class Commands(TyperGroup):
    """The commands, in the help under what they are for."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        known = {
            name: command
            for name in self.list_commands(ctx)
            if (command := self.get_command(ctx, name)) and not command.hidden
        }
        width = max(map(len, known)) + 2
        for title, names in sections().items():
            rows = [
                (name.ljust(width), known[name].get_short_help_str(SENTENCE))
                for name in names
                if name in known
            ]
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)


app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help=HELP,
    rich_markup_mode=None,
)

Url = Annotated[
    str | None,
    typer.Option(
        "--url", help="Redis to use; default: AIOQLESS_URL, REDIS_URL, else a private server."
    ),
]
Namespace = Annotated[
    str,
    typer.Option(
        "--namespace",
        envvar="AIOQLESS_NAMESPACE",
        help="The prefix of all keys; ql is that of other qless clients.",
    ),
]
LogLevel = Annotated[str, typer.Option(help="debug, info, warning or error.")]
LogJson = Annotated[
    bool | None,
    typer.Option("--log-json/--log-console", help="Default: JSON unless on a terminal."),
]
Poll = Annotated[float, typer.Option(help="Seconds between looks when there is nothing.", min=0.01)]
Json = Annotated[
    bool, typer.Option("--json", help="For programs: docs/command-line.md says the shape.")
]
Count = Annotated[int, typer.Option(help="How many at most, up to 1,000.", min=1, max=1000)]
Offset = Annotated[int, typer.Option(help="How many to pass over.", min=0)]
QueueName = Annotated[
    str, typer.Argument(metavar="QUEUE", help="A queue's name.", autocompletion=queue_names)
]

REFUSED = 1  # what was asked can't be done; the message says why
UNREACHABLE = 3  # Redis can't be reached, or can't be started
FAILED = 5  # a job that was waited for failed
REJECTED = 6  # some rows of a file can't be jobs; the others are


def _version(asked: bool) -> None:
    if asked:
        print(f"aioqless {import_module('aioqless').__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print it, and end.")
    ] = False,
) -> None:
    pass


def run(url: str | None, namespace: str, act: Callable[[Client], Awaitable[None]]) -> None:
    """Do something with a connected client, on a loop of its own."""

    async def connected() -> None:
        async with Client(url, namespace=namespace) as client:
            await act(client)

    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        runner.run(connected())


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop
    except ImportError:  # no uvloop on this platform
        return None
    return uvloop.new_event_loop
