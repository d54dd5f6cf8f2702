"""Prints what a job emits: output."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from aioqless.cli.app import Section, app
from aioqless.cli.job_lookup import find_job
from aioqless.cli.options import Jid, Json
from aioqless.cli.presentation.printing import escape_json, print_json_line
from aioqless.client import Client, json_types
from aioqless.client.job.state import Emitted, Ended, Missed, Output, Restarted
from aioqless.validation import plain


@app.command(rich_help_panel=Section.INSPECT, epilog="Example: aioqless output 4f2a9c --follow")
async def output(
    client: Client,
    jid: Jid,
    follow: Annotated[
        bool, typer.Option("--follow", help="Continue until the job has ended.")
    ] = False,
    after: Annotated[str | None, typer.Option(metavar="ID", help="Only after this id.")] = None,
    json: Json = False,
) -> None:
    """Print what a job has emitted.

    Texts follow each other as they are; other values are lines of JSON.
    """
    if after is None:
        jid = (await find_job(client, jid)).jid
    async for each in client.jobs.output(jid, after=after, follow=follow):
        if json:
            print_json_line({"kind": type(each).__name__.lower(), **vars(each)})
        else:
            _print(each)
    if not json:
        print()


def _print(output: Output) -> None:
    match output:
        case Emitted(value=str(text)):
            print(plain(text, lines=True), end="", flush=True)
        case Emitted(value=value):
            print(escape_json(json_types.encode(value).decode()), flush=True)
        case Restarted():
            print("\nanother run begins:", file=sys.stderr)
        case Missed(count=count):
            print(f"\n{count} values are missing", file=sys.stderr)
        case Ended():
            pass
