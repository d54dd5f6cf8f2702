"""The live screen: top."""

from __future__ import annotations

import asyncio
import signal
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer
from redis import exceptions

from aioqless.cli.app import Namespace, Url, app, run
from aioqless.client import Client
from aioqless.waiting import cancel_and_wait

if TYPE_CHECKING:
    from aioqless.cli.presentation.top import Board, Keys, Looking

Every = Annotated[
    float, typer.Option("--every", help="Seconds from one look to the next.", min=0.1, max=3600)
]


@app.command(
    epilog="Keys: arrows or j k choose, tab goes to the next list, p pauses, r runs failures again, enter tells why, q quits."
)
def top(every: Every = 1.0, url: Url = None, namespace: Namespace = "ql") -> None:
    """Watch queues, failures and workers as they are now, and act on them."""
    run(url, namespace, lambda client: _live(client, every))


async def _live(client: Client, every: float) -> None:
    """Until `q` or a signal. The terminal is left as it was found."""
    from rich.live import Live

    from aioqless.cli.presentation.printing import console
    from aioqless.cli.presentation.top import Board, Looking, drawn
    from aioqless.cli.presentation.top.terminal import pressed

    board, looking, changed, screen = Board(client), Looking(client), asyncio.Event(), console()
    with pressed() as keys:
        loop = asyncio.get_running_loop()
        for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(name, keys.put_nowait, "q")
        loop.add_signal_handler(signal.SIGWINCH, changed.set)
        tasks = [
            asyncio.create_task(_look(board, looking, changed, every)),
            asyncio.create_task(_obey(board, keys, changed)),
        ]
        try:
            with Live(console=screen, screen=True, auto_refresh=False) as live:
                while not board.over:
                    width, height = screen.size
                    live.update(
                        drawn(board, width, height, f"{client.where['url']} {client.namespace}"),
                        refresh=True,
                    )
                    await changed.wait()
                    changed.clear()
        finally:
            await cancel_and_wait(*tasks)


async def _look(board: Board, looking: Looking, changed: asyncio.Event, every: float) -> None:
    while True:
        try:
            board.seen = await looking.look()
        except (exceptions.RedisError, OSError) as away:
            board.seen = replace(board.seen, away=str(away))
        changed.set()
        await asyncio.sleep(every)


async def _obey(board: Board, keys: Keys, changed: asyncio.Event) -> None:
    while not board.over:
        await board.press(await keys.get())
        changed.set()
