"""Adds marks to charts: mark."""

from __future__ import annotations

from typing import Annotated

import typer

from aioqless.cli.app import Section, app
from aioqless.client import Client


@app.command(rich_help_panel=Section.ADMIN, epilog='Example: aioqless mark "database moved"')
async def mark(client: Client, text: Annotated[str, typer.Argument(help="What happens.")]) -> None:
    """Mark this moment in charts, such as a change of the database."""
    await client.metrics.mark(text)
