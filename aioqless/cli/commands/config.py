"""The shared configuration: config."""

from __future__ import annotations

from typing import Annotated

import typer

from aioqless.cli.app import Act, Section, app
from aioqless.cli.completion import complete_option
from aioqless.cli.options import DryRun, Json
from aioqless.cli.presentation.printing import print_json, print_table, print_text
from aioqless.client import Client
from aioqless.client.config import OPTION_DESCRIPTIONS, describe_unknown, is_known
from aioqless.errors import AioqlessError
from aioqless.validation import plain

EXAMPLES = (
    "Examples: aioqless config; aioqless config mail-max-concurrency 10; "
    "aioqless config heartbeat --unset"
)


@app.command(rich_help_panel=Section.ADMIN, epilog=EXAMPLES)
def config(
    option: Annotated[
        str | None, typer.Argument(metavar="[OPTION]", autocompletion=complete_option)
    ] = None,
    value: Annotated[str | None, typer.Argument(metavar="[VALUE]", help="The new value.")] = None,
    unset: Annotated[bool, typer.Option("--unset", help="Restore the default.")] = False,
    force: Annotated[
        bool,
        typer.Option(
            "--force", help="Store an option that no command reads, such as one of your own."
        ),
    ] = False,
    dry_run: DryRun = False,
    json: Json = False,
) -> Act:
    """Show the configuration of all workers and clients, or set an option of it."""
    if unset and (option is None or value is not None):
        raise typer.BadParameter("--unset takes an option, and no value")

    async def act(client: Client) -> None:
        if option is None:
            await _print_all(client, json)
            return
        before = await client.config.get(option)
        if not is_known(option) and (before is None if value is None else not force):
            hint = " --force stores it nevertheless" if value is not None else ""
            raise AioqlessError(describe_unknown(option) + hint)
        if value is None and not unset:
            print_json(before) if json else print_text(_format_value(before))
            return
        if not dry_run:
            await _change(client, option, value)
        after = await client.config.get(option) if value is None and not dry_run else value
        new = "its default" if unset and dry_run else _format_value(after)
        done = " (not done)" if dry_run else ""
        print_text(f"{plain(option)}: {_format_value(before)} → {new}{done}")

    return act


async def _change(client: Client, option: str, value: str | None) -> None:
    if value is None:
        await client.config.unset(option)
    else:
        await client.config.set(option, value, force=True)


def _format_value(value: object) -> str:
    return "not set" if value is None else plain(str(value))


async def _print_all(client: Client, json: bool) -> None:
    options = dict(sorted((await client.config.all()).items()))
    if json:
        print_json(options)
        return
    print_table(
        ["option", "value", "about"],
        [(name, str(value), OPTION_DESCRIPTIONS.get(name, "")) for name, value in options.items()],
        empty="No options.",
    )
