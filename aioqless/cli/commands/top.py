"""The live screen: top."""

from __future__ import annotations

import asyncio
import signal
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer
from redis import exceptions

from aioqless.cli.app import Section, app
from aioqless.cli.connect import run_with_client
from aioqless.cli.options import Namespace, Url
from aioqless.client import Client
from aioqless.runtime.tasks import cancel_and_wait

if TYPE_CHECKING:
    from aioqless.cli.top import Controller, Keys, Sampler

Every = Annotated[
    float, typer.Option("--every", help="Seconds between updates.", min=0.1, max=3600)
]


@app.command(
    rich_help_panel=Section.INSPECT,
    epilog="Keys: arrows or j/k select, Tab next list, s sort, p pause or resume, r retry, "
    "Enter details, q quit.",
)
def top(every: Every = 1.0, url: Url = None, namespace: Namespace = "ql") -> None:
    """Show queues, failures and workers live, and act on them."""
    run_with_client(url, namespace, lambda client: _run_screen(client, every))


async def _run_screen(client: Client, every: float) -> None:
    """Show the screen until `q` or a signal, and restore the terminal."""
    from rich.live import Live

    from aioqless.cli.presentation.printing import make_console
    from aioqless.cli.top import Controller, Sampler, render
    from aioqless.cli.top.terminal import read_keys

    controller, sampler, changed = Controller(client), Sampler(client), asyncio.Event()
    console = make_console()
    with read_keys() as keys:
        loop = asyncio.get_running_loop()
        for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(name, keys.put_nowait, "q")
        loop.add_signal_handler(signal.SIGWINCH, changed.set)
        tasks = [
            asyncio.create_task(_sample(controller, sampler, changed, every)),
            asyncio.create_task(_handle_keys(controller, keys, changed)),
        ]
        server = f"{client.endpoint['url']} {client.namespace}"
        try:
            with Live(console=console, screen=True, auto_refresh=False) as live:
                while not controller.finished:
                    width, height = console.size
                    live.update(render(controller, width, height, server), refresh=True)
                    await changed.wait()
                    changed.clear()
        finally:
            await cancel_and_wait(*tasks)


async def _sample(
    controller: Controller, sampler: Sampler, changed: asyncio.Event, every: float
) -> None:
    while True:
        try:
            controller.snapshot = await sampler.sample()
        except (exceptions.RedisError, OSError) as error:
            controller.snapshot = replace(controller.snapshot, error=str(error))
        changed.set()
        await asyncio.sleep(every)


async def _handle_keys(controller: Controller, keys: Keys, changed: asyncio.Event) -> None:
    while not controller.finished:
        await controller.press(await keys.get())
        changed.set()
