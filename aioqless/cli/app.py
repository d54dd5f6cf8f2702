"""What all commands share: the app they belong to, the options of every one, and the way to Redis."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Annotated, Any

import typer

from aioqless.client import Client

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, help="A job queue on Redis.")

Url = Annotated[str | None, typer.Option("--url", help="Redis to use; default: AIOQLESS_URL, REDIS_URL, else a private server.")]
Namespace = Annotated[str, typer.Option("--namespace", help="The prefix of all keys; ql is that of other qless clients.")]
LogLevel = Annotated[str, typer.Option(help="debug, info, warning or error.")]
LogJson = Annotated[bool | None, typer.Option("--log-json/--log-console", help="Default: JSON unless on a terminal.")]
Poll = Annotated[float, typer.Option(help="Seconds between looks when there is nothing.", min=0.01)]

REFUSED = 1  # what was asked can't be done; the message says why
UNREACHABLE = 3  # Redis can't be reached, or can't be started


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


def show(value: Any) -> None:
    """Print a value as JSON."""
    print(json.dumps(value, indent=2, ensure_ascii=False))
