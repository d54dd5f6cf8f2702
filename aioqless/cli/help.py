"""The help of `aioqless` itself. It is shown without importing the commands, which takes long."""

from __future__ import annotations

import json
import shutil
import textwrap
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import TypedDict, cast

INTRODUCTION = """A job queue on Redis.

When something failed: `aioqless failed`, then `aioqless get JID`, `aioqless edit JID`,
`aioqless retry JID --wait`.
"""
OPTIONS = {
    "--version": "Print the version and exit.",
    "--install-completion": "Install completion for the current shell.",
    "--show-completion": "Show completion for the current shell, to copy it or customize the "
    "installation.",
    "--help": "Show this message and exit.",
}
# The commands of the core by section, with the first line of their docstring.
COMMANDS = {
    "Inspect": {
        "failed": "Show what fails by error, rising first; or the failed jobs of a group.",
        "get": "Show a job: state, failure, data, history.",
        "jobs": "List jobs that match a filter.",
        "queues": "Show how many jobs each queue has in each state; or show one, with its tenants.",
        "stats": "Show how long jobs of a day waited and ran, and how many failed or were retried.",
        "tail": "Print events of jobs until Ctrl-C.",
        "workers": "List workers: their queues, how many jobs each holds, how many locks expired; "
        "or show one.",
    },
    "Manage jobs": {
        "cancel": "Delete jobs by jid, failure group, filter or job set.",
        "edit": "Change the data of a failed job, and retry it.",
        "move": "Move jobs to another queue, to run there.",
        "priority": "Set the priority of jobs by jid, or of those of a filter that have not ended.",
        "put": "Put a job; print its jid.",
        "retry": "Retry failed jobs by jid, group, filter, job set, or all.",
        "signal": "Send a signal to a job, which waits for it now or later.",
        "tag": "Tag a job and show its tags, or tag the jobs of a filter.",
    },
    "Manage queues and workers": {
        "clear": "Delete the jobs of a queue, except running jobs and dependencies of other jobs.",
        "pause": "Pause queues, or a worker.",
        "recur": "Recurring jobs.",
        "resume": "Resume queues, or a worker.",
    },
    "Run": {"worker": "Run jobs."},
    "Administer": {
        "acl": "Print a user of Redis with the least privileges of a role, as a line for its "
        "ACL file.",
        "check": "Check the consistency of the namespace; exit code 1 if a problem remains.",
        "config": "Show the configuration of all workers and clients, or set an option of it.",
        "lua": "Print the script of a Lua command, to call it from other programs.",
    },
}
WIDTHS = (50, 80)  # columns


class ExtensionCommand(TypedDict):
    """A command of an extension, as its `cli/commands.json` describes it."""

    section: str
    extra: str
    help: str


@cache
def read_extension_commands() -> Mapping[str, ExtensionCommand]:
    """Return the commands of the extensions, by name, without importing an extension."""
    commands: dict[str, ExtensionCommand] = {}
    for file in sorted(Path(__file__).parents[1].glob("contrib/*/cli/commands.json")):
        commands |= cast("dict[str, ExtensionCommand]", json.loads(file.read_text("utf-8")))
    return commands


def list_commands() -> dict[str, dict[str, str]]:
    """Return the help of all commands, by section and name."""
    sections = {section: dict(commands) for section, commands in COMMANDS.items()}
    for name, command in read_extension_commands().items():
        sections[command["section"]][name] = command["help"]
    return {section: dict(sorted(commands.items())) for section, commands in sections.items()}


def render_help() -> str:
    """Return the help, as Typer would render it."""
    least, most = WIDTHS
    width = max(min(shutil.get_terminal_size().columns, most) - 2, least)
    lines = ["Usage: aioqless [OPTIONS] COMMAND [ARGS]..."]
    for paragraph in INTRODUCTION.split("\n\n"):
        lines += ["", textwrap.fill(paragraph, width, initial_indent="  ", subsequent_indent="  ")]
    lines += ["", "Options:", *_rows(OPTIONS, width, max(map(len, OPTIONS)))]
    sections = list_commands()
    longest = max(len(name) for commands in sections.values() for name in commands)
    for section, commands in sections.items():
        lines += ["", f"{section}:", *_rows(commands, width, longest)]
    return "\n".join(lines)


def _rows(texts: Mapping[str, str], width: int, longest: int) -> Iterator[str]:
    indent = longest + 4
    for name, text in texts.items():
        start = f"  {name}".ljust(indent)
        yield textwrap.fill(text, width, initial_indent=start, subsequent_indent=" " * indent)
