"""What users of the dashboard did: audit-log."""

from __future__ import annotations

from typing import Annotated

import typer

from aioqless.cli.app import Section, app
from aioqless.cli.options import Count, Json
from aioqless.cli.presentation.formatting import format_time, shorten
from aioqless.cli.presentation.printing import print_json, print_table
from aioqless.client import Client


@app.command(rich_help_panel=Section.INSPECT, epilog="Example: aioqless audit-log --logins")
async def audit_log(
    client: Client,
    logins: Annotated[bool, typer.Option("--logins", help="Sign-ins instead.")] = False,
    count: Count = 50,
    json: Json = False,
) -> None:
    """Show what users of the dashboard did, latest first."""
    from aioqless.contrib.dashboard import actions, audit_log, formatting

    if logins:
        entries = await audit_log.read_entries(client, logins=True, before=None, count=count)
    else:
        entries, _ = await audit_log.read_actions(client, before=None, count=count)
    if json:
        print_json(entries)
        return
    print_table(
        ["when", "user", "action", "about", "result", "started"],
        [
            (
                format_time(each["when"]),
                each["who"],
                actions.action_name(each["act"]),
                shorten(
                    ", ".join(
                        f"{formatting.field_name(name)}: {value}"
                        for name, value in each["about"].items()
                    )
                ),
                shorten(each["outcome"]),
                format_time(each["started"]) if "started" in each else "",
            )
            for each in entries
        ],
        empty="Nothing is recorded.",
    )
