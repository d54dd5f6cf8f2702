"""Jobs, one by one: put, get."""

from __future__ import annotations

from typing import Annotated

import msgspec
import typer

from aioqless.cli.app import Namespace, Url, app, run, show
from aioqless.client import Client
from aioqless.errors import AioqlessError
from aioqless.puts import NewJob


@app.command()
def put(
    queue: str,
    klass: str,
    data: Annotated[str, typer.Argument(help="JSON.")] = "null",
    jid: Annotated[str | None, typer.Option(help="Default: a new one.")] = None,
    delay: Annotated[float, typer.Option(help="Seconds.")] = 0,
    priority: Annotated[float | None, typer.Option(help="Lower runs sooner.")] = None,
    tag: Annotated[list[str] | None, typer.Option(help="Repeatable.")] = None,
    retries: Annotated[int | None, typer.Option()] = None,
    depends: Annotated[list[str] | None, typer.Option(help="A jid to wait for; repeatable.")] = None,
    url: Url = None,
    namespace: Namespace = "ql",
) -> None:
    """Put a job; prints its jid."""

    async def act(client: Client) -> None:
        new = NewJob(klass, msgspec.Raw(data.encode()), jid=jid, delay=delay, priority=priority, tags=tag, retries=retries, depends=depends)
        print(await client.queue(queue).put(new))

    run(url, namespace, act)


@app.command()
def get(jid: str, url: Url = None, namespace: Namespace = "ql") -> None:
    """Show a job."""

    async def act(client: Client) -> None:
        record = await client.scripts("get", jid=jid)
        if record is None:
            raise AioqlessError(f"there is no job {jid!r}")
        show(record)

    run(url, namespace, act)
