"""The Typer app that all commands belong to."""

from __future__ import annotations

from enum import StrEnum
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

HELP = """A job queue on Redis.

When something failed: `aioqless failed`, then `aioqless get JID`, `aioqless edit JID`,
`aioqless retry JID --wait`.
"""
MAX_SUMMARY = 300  # characters of a command's line in the help


class Section(StrEnum):
    """Sections of the help, in its order; a command names its own as `rich_help_panel`."""

    INSPECT = "Inspect"
    JOBS = "Manage jobs"
    QUEUES = "Manage queues and workers"
    RUN = "Run"
    ADMIN = "Administer"


class SectionedGroup(TyperGroup):
    """Lists the commands by section in the help."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002 (Click passes it)
        """Write the list of commands; the arguments are Click's, which Typer keeps private."""
        width = max(map(len, self.commands)) + 2
        for section in Section:
            rows = [
                (name.ljust(width), command.get_short_help_str(MAX_SUMMARY))
                for name, command in sorted(self.commands.items())
                if getattr(command, "rich_help_panel", None) == section and not command.hidden
            ]
            with formatter.section(section):
                formatter.write_dl(rows)


app = typer.Typer(
    cls=SectionedGroup,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help=HELP,
    rich_markup_mode=None,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"aioqless {import_module('aioqless').__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """Provide the options of `aioqless` itself."""
