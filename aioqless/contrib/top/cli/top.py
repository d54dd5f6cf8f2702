"""The live screen: top."""

from __future__ import annotations

import asyncio
import signal
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from aioqless.cli.app import Act, Section, app
from aioqless.errors import AioqlessError

if TYPE_CHECKING:
    from aioqless.contrib.top import Top

Every = Annotated[
    float, typer.Option("--every", help="Seconds between updates.", min=0.1, max=3600)
]


@app.command(
    rich_help_panel=Section.INSPECT,
    epilog='Keys are shown at the bottom; the mouse works too. Needs pip install "aioqless[top]".',
)
def top(every: Every = 1.0) -> Act:
    """Show queues, failures and workers live, list their jobs, retry and edit them."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise AioqlessError(
            "this takes a terminal; for programs there are `queues --json` and `tail --json`"
        )
    from aioqless.contrib.top import Top

    return lambda client: _run_screen(Top(client, every))


async def _run_screen(screen: Top) -> None:
    """Show the screen until `q` or a signal; the terminal is restored."""
    if sys.platform != "win32":
        loop = asyncio.get_running_loop()
        for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(name, screen.exit)
    await screen.run_async()
