"""Configuration that all share: config."""

from __future__ import annotations

from typing import Annotated

import typer

from aioqless.cli.app import Json, Namespace, Url, app, run
from aioqless.cli.presentation.completion import option_names
from aioqless.cli.presentation.formatting import plain
from aioqless.cli.presentation.printing import say, show, table
from aioqless.cli.presentation.prompts import DryRun
from aioqless.client import Client
from aioqless.client.config import ABOUT, is_known, unknown
from aioqless.errors import AioqlessError


@app.command(
    epilog="Examples: aioqless config; aioqless config mail-max-concurrency 10; aioqless config heartbeat --unset"
)
def config(
    option: Annotated[
        str | None, typer.Argument(metavar="[OPTION]", autocompletion=option_names)
    ] = None,
    value: Annotated[str | None, typer.Argument(metavar="[VALUE]", help="Set it for all.")] = None,
    unset: Annotated[bool, typer.Option("--unset", help="Go back to the default.")] = False,
    force: Annotated[
        bool,
        typer.Option(
            "--force", help="Store an option that no command reads, such as one of your own."
        ),
    ] = False,
    dry_run: DryRun = False,
    json: Json = False,
    url: Url = None,
    namespace: Namespace = "ql",
) -> None:
    """Show what all workers and clients share, or set an option of it."""
    if unset and (option is None or value is not None):
        raise typer.BadParameter("--unset takes an option, and no value")

    async def act(client: Client) -> None:
        if option is None:
            await _all(client, json)
            return
        before = await client.config.get(option)
        if not is_known(option) and (before is None if value is None else not force):
            raise AioqlessError(
                unknown(option) + (" --force stores it nevertheless" if value is not None else "")
            )
        if value is None and not unset:
            show(before) if json else say("not set" if before is None else plain(str(before)))
            return
        if not dry_run:
            await (
                client.config.unset(option)
                if unset
                else client.config.set(option, value or "", force=True)
            )
        after = (
            value
            if value is not None
            else "its default"
            if dry_run
            else await client.config.get(option)
        )
        changed = " → ".join(
            "not set" if each is None else plain(str(each)) for each in (before, after)
        )
        say(f"{plain(option)}: {changed}" + (" (not done)" if dry_run else ""))

    run(url, namespace, act)


async def _all(client: Client, json: bool) -> None:
    options = dict(sorted((await client.config.all()).items()))
    if json:
        show(options)
        return
    table(
        ["option", "value", "about"],
        [(name, str(value), ABOUT.get(name, "")) for name, value in options.items()],
        empty="No options.",
    )
