"""Options and arguments that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from aioqless.cli.completion import (
    complete_failed_jid,
    complete_group,
    complete_queue,
)
from aioqless.cli.exit_codes import JOB_FAILED
from aioqless.cli.partitions import PARTITIONS_VARIABLE

Url = Annotated[
    str | None,
    typer.Option(
        "--url", help="Redis to use; default: AIOQLESS_URL, REDIS_URL, else a private server."
    ),
]
Namespace = Annotated[
    str,
    typer.Option(
        "--namespace",
        envvar="AIOQLESS_NAMESPACE",
        help="Prefix of all keys; other qless clients use ql.",
    ),
]
Partitions = Annotated[
    int | None,
    typer.Option(
        "--partitions",
        envvar=PARTITIONS_VARIABLE,
        help="Number of partitions that make the namespace; default: it has none.",
    ),
]
Port = Annotated[int, typer.Option(help="0: any free port.", min=0, max=65535)]
TokensFile = Annotated[
    Path | None,
    typer.Option(
        "--tokens",
        help="A TOML file with a table for each token; `aioqless token` makes one. "
        "Default: AIOQLESS_TOKENS.",
    ),
]
TrustedProxies = Annotated[
    str,
    typer.Option(
        envvar="AIOQLESS_WEB_TRUSTED_PROXIES",
        help="Addresses or networks of reverse proxies whose X-Forwarded-For, X-Forwarded-Proto "
        "and --proxy-header are trusted, separated by commas.",
    ),
]
LogLevel = Annotated[str, typer.Option(help="debug, info, warning or error.")]
LogJson = Annotated[
    bool | None,
    typer.Option("--log-json/--log-console", help="Default: JSON unless on a terminal."),
]
Json = Annotated[
    bool, typer.Option("--json", help="Output JSON; docs/command-line.md specifies it.")
]
Poll = Annotated[
    float, typer.Option(help="Seconds between polls when there is nothing to do.", min=0.01)
]
Count = Annotated[int, typer.Option(help="Maximum number of results, 1 to 1,000.", min=1, max=1000)]
Offset = Annotated[int, typer.Option(help="Number of results to skip.", min=0)]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Don't ask for confirmation.")]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Print what would change, and change nothing.")
]
Wait = Annotated[
    bool,
    typer.Option(
        "--wait", help=f"Watch the job until it ends; exit code {JOB_FAILED} if it fails."
    ),
]
QueueName = Annotated[
    str, typer.Argument(metavar="QUEUE", help="A queue's name.", autocompletion=complete_queue)
]
Jid = Annotated[str, typer.Argument(metavar="JID", autocompletion=complete_failed_jid)]
Jids = Annotated[
    list[str] | None, typer.Argument(metavar="[JID]...", autocompletion=complete_failed_jid)
]
FailedGroup = Annotated[
    str | None,
    typer.Option("--group", help="All jobs of this failure group.", autocompletion=complete_group),
]
InSet = Annotated[
    str | None, typer.Option("--set", metavar="NAME", help="Members of this job set.")
]


def _check_filter(text: str | None) -> str | None:
    """Refuse an empty filter, such as that of a variable that is not set: it matches all jobs."""
    if text is None or text.strip():
        return text
    raise typer.BadParameter(
        "it is empty, and would match all jobs: klass:* does, if you mean them"
    )


Filtered = Annotated[
    str | None,
    typer.Option(
        "--filter",
        metavar="FILTER",
        callback=_check_filter,
        help="All jobs that match, such as 'state:failed tag:news' (see aioqless jobs --help).",
    ),
]
Data = Annotated[
    str,
    typer.Argument(metavar="DATA", help="JSON; - reads standard input, @FILE reads a file."),
]
