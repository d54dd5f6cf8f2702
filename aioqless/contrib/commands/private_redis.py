"""The private server: redis, and redis start, stop, backup."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from aioqless.cli.app import REFUSED, Json, app
from aioqless.cli.presentation.formatting import many
from aioqless.cli.presentation.printing import say, show
from aioqless.contrib import private_redis

redis = typer.Typer(
    help="The private server. Without a command: show it.", invoke_without_command=True
)
app.add_typer(redis, name="redis")
Home = Annotated[
    Path | None,
    typer.Option("--data", help="Its data directory; default: AIOQLESS_DATA, else the user's own."),
]


@redis.callback()
def shown(context: typer.Context, data: Home = None, json: Json = False) -> None:
    """The private server that serves whoever names no other: without a command, show it; exit code
    1 when it doesn't run."""
    if context.invoked_subcommand:
        return
    found = private_redis.running(data)
    if json:
        server = (
            {
                "url": found[0].url,
                "program": found[0].program,
                "data": str(found[0].data_dir),
                "users": found[1],
            }
            if found
            else {}
        )
        show({"running": bool(found), **server})
    elif found:
        _tell(*found)
    else:
        say("It doesn't run. Whoever needs it starts it; `aioqless redis start` does too.")
    if not found:
        raise typer.Exit(REFUSED)


@redis.command()
def start(data: Home = None) -> None:
    """Start it unless it runs. It ends by itself 20 seconds after its last user."""
    private_redis.ensure(data)
    if found := private_redis.running(data):
        _tell(*found)


@redis.command()
def stop(
    data: Home = None,
    force: Annotated[
        bool, typer.Option("--force", help="Even while somebody is connected.")
    ] = False,
) -> None:
    """Stop it; what was acknowledged is on the disk. Refused while somebody is connected."""
    say("stopped" if private_redis.stop(data, force=force) else "it didn't run")


@redis.command(
    epilog="Example: aioqless redis backup /backups/today; AIOQLESS_DATA=/backups/today aioqless queues"
)
def backup(
    into: Annotated[
        Path,
        typer.Argument(metavar="DIRECTORY", help="A new one. It is a data directory by itself."),
    ],
    data: Home = None,
) -> None:
    """Copy its data while it goes on, or while it doesn't run. To use the copy, name it as
    AIOQLESS_DATA or copy it back."""
    copied = private_redis.backup(into, data)
    say(f"{many(copied, 'byte')} in {into}")


def _tell(server: private_redis.Server, users: int) -> None:
    say(f"{server.program} at {server.url}")
    say(f"{users} connected, data in {server.data_dir}")
