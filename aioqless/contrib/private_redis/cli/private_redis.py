"""The private Redis: redis."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from aioqless.cli.app import Section, app
from aioqless.cli.exit_codes import REFUSED
from aioqless.cli.options import Json
from aioqless.cli.presentation.printing import print_json, print_text
from aioqless.contrib import private_redis

DataDirectory = Annotated[
    Path | None,
    typer.Option("--data", help="Its data directory; default: AIOQLESS_DATA, else the user's own."),
]


@app.command(rich_help_panel=Section.ADMIN)
def redis(
    data: DataDirectory = None,
    stop: Annotated[
        bool,
        typer.Option(
            "--stop",
            help="Stop it, unless clients are connected. Acknowledged data is on the disk.",
        ),
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="With --stop: even while clients are connected.")
    ] = False,
    json: Json = False,
) -> None:
    """Show or stop the private Redis server, which starts when a client without a URL needs it.

    Exit code 1 if it doesn't run.
    """
    if stop:
        was_running = private_redis.stop(data, force=force)
        print_text("stopped" if was_running else "it wasn't running")
        return
    if force:
        raise typer.BadParameter("--force is for --stop")
    found = private_redis.running(data)
    if json:
        fields: dict[str, object] = {}
        if found:
            server, users = found
            fields = {
                "url": server.url,
                "program": server.program,
                "data": str(server.data_dir),
                "users": users,
            }
        print_json({"running": bool(found), **fields})
    elif found:
        _print_server(*found)
    else:
        print_text("It isn't running. It starts when it is needed.")
    if not found:
        raise typer.Exit(REFUSED)


def _print_server(server: private_redis.Server, users: int) -> None:
    print_text(f"{server.program} at {server.url}")
    print_text(f"{users} connected, data in {server.data_dir}")
