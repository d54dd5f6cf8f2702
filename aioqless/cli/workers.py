"""Workers, and orders to them: workers, subscribe, unsubscribe, quiet, resume."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated, Any

import typer

from aioqless.cli.app import Namespace, Url, app, run
from aioqless.client import Client
from aioqless.worker import Subscription

Name = Annotated[str, typer.Argument(metavar="WORKER", help="Its name; `aioqless workers` shows them.")]


@app.command()
def workers(url: Url = None, namespace: Namespace = "ql") -> None:
    """Show who works: how many jobs each holds, and how many of their locks ran out."""

    async def act(client: Client) -> None:
        print(f"{'name':<48}{'jobs':>8}{'stalled':>9}")
        for worker in await client.workers.counts():
            print(f"{worker['name']:<48}{worker['jobs']:>8}{worker['stalled']:>9}")

    run(url, namespace, act)


@app.command()
def subscribe(
    worker: Name,
    queue: Annotated[str, typer.Argument(help="As for `worker -q`: mail, reports=4, urgent,5, 'mail-*'.")],
    url: Url = None,
    namespace: Namespace = "ql",
) -> None:
    """Let a running worker serve a queue from now on, or under these terms."""
    asked = Subscription.read(queue)
    weight = None if asked.weight == 1 else asked.weight
    _order(url, namespace, lambda client: client.workers.subscribe(worker, asked.queue, limit=asked.limit, weight=weight))


@app.command()
def unsubscribe(worker: Name, queue: str, url: Url = None, namespace: Namespace = "ql") -> None:
    """Let a running worker serve a queue no longer; what runs of it goes on."""
    _order(url, namespace, lambda client: client.workers.unsubscribe(worker, queue))


@app.command()
def quiet(worker: Name, url: Url = None, namespace: Namespace = "ql") -> None:
    """Let a running worker begin nothing more until it is told to resume."""
    _order(url, namespace, lambda client: client.workers.quiet(worker))


@app.command()
def resume(worker: Name, url: Url = None, namespace: Namespace = "ql") -> None:
    """Let a worker that was told to be quiet go on."""
    _order(url, namespace, lambda client: client.workers.resume(worker))


def _order(url: str | None, namespace: str, order: Callable[[Client], Awaitable[dict[str, Any]]]) -> None:
    """Give an order, and print what the worker does from then on."""

    async def act(client: Client) -> None:
        told = await order(client)
        print(" ".join(told["queues"]) + (" (paused)" if told["paused"] else ""))

    run(url, namespace, act)
