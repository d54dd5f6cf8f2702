"""Shows how fresh a lake is: lake status."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from aioqless.cli.exit_codes import REFUSED
from aioqless.cli.presentation.formatting import format_duration
from aioqless.errors import AioqlessError

from .shared import LAKE, LakeUrl, command


@command()
def status(
    max_lag: Annotated[
        float, typer.Option(help="Exit code 1 if the tables are behind by more, in seconds.", min=0)
    ] = 86_400,
    metrics: Annotated[
        Path | None,
        typer.Option(help="Also write metrics to this file, in Prometheus' text format."),
    ] = None,
    lake: LakeUrl = LAKE,
) -> None:
    """Show how far the tables are behind the archived events."""
    from aioqless.contrib.lake.freshness import format_metrics, read_freshness
    from aioqless.contrib.lake.lake import Lake

    found = read_freshness(Lake(lake))
    now = datetime.now(UTC)
    if metrics:
        _write_metrics(metrics, format_metrics(found, now))
    if not found:
        print("the lake has no events yet")
    for each in found:
        last = format_duration((now - each.ended).total_seconds())
        behind = (
            f"{each.missing:,} are not in the tables, the oldest for "
            f"{format_duration(each.lag(now))}"
            if each.missing
            else "the tables are up to date"
        )
        print(f"{each.namespace}: {each.events:,} events, the last one {last} ago; {behind}")
    if any(each.lag(now) > max_lag for each in found):
        raise typer.Exit(REFUSED)


def _write_metrics(file: Path, text: str) -> None:
    """Replace a file, of which readers find the old text or the new one."""
    written = file.with_name(f"{file.name}.new")
    try:
        written.write_text(text, "utf-8")
        written.replace(file)
    except OSError as error:
        raise AioqlessError(f"--metrics {file} can't be written: {error.strerror}") from None
