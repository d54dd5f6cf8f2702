"""The private Redis: redis, and redis start, stop."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from aioqless.cli.app import Section, app
from aioqless.cli.exit_codes import REFUSED
from aioqless.cli.options import Json
from aioqless.cli.presentation.printing import print_json, print_text
from aioqless.contrib import private_redis

redis = typer.Typer(
    help="The private Redis server. Without a command: show it.", invoke_without_command=True
)
app.add_typer(redis, name="redis", rich_help_panel=Section.ADMIN)
DataDirectory = Annotated[
    Path | None,
    typer.Option("--data", help="Its data directory; default: AIOQLESS_DATA, else the user's own."),
]


@redis.callback()
def show_server(context: typer.Context, data: DataDirectory = None, json: Json = False) -> None:
    """Show the private Redis server, which is used without a URL, unless a command is given.

    Exit code 1 if it doesn't run.
    """
    if context.invoked_subcommand:
        return
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
        print_text(
            "It isn't running. It starts when it is needed; `aioqless redis start` starts it too."
        )
    if not found:
        raise typer.Exit(REFUSED)


@redis.command()
def start(data: DataDirectory = None) -> None:
    """Start it unless it runs. It stops 20 seconds after its last user has disconnected."""
    private_redis.ensure(data)
    if found := private_redis.running(data):
        _print_server(*found)


@redis.command()
def stop(
    data: DataDirectory = None,
    force: Annotated[bool, typer.Option("--force", help="Even while users are connected.")] = False,
) -> None:
    """Stop it, unless users are connected. Acknowledged data is on the disk."""
    print_text("stopped" if private_redis.stop(data, force=force) else "it wasn't running")


def _print_server(server: private_redis.Server, users: int) -> None:
    print_text(f"{server.program} at {server.url}")
    print_text(f"{users} connected, data in {server.data_dir}")
