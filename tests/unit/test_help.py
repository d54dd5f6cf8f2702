"""The help of `aioqless`, and its version, which are shown without importing commands."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
import typer

from aioqless.cli.app import Section, app
from aioqless.cli.help import OPTIONS, list_commands, render_help
from aioqless.cli.main import load_command

load_command()
GROUP: Any = typer.main.get_command(app)  # of click, which Typer keeps private


@pytest.mark.parametrize("section", Section)
def test_help_has_the_first_line_of_each_command(section: Section) -> None:
    assert list_commands()[section] == {
        name: command.get_short_help_str(1000)
        for name, command in sorted(GROUP.commands.items())
        if command.rich_help_panel == section and not command.hidden
    }


def test_help_has_all_sections_and_options() -> None:
    assert list(list_commands()) == list(Section)
    options = GROUP.get_params(typer.Context(GROUP))
    assert {each.opts[0]: each.help for each in options} == OPTIONS


def test_help_fits_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    for columns, width in (("200", 78), ("60", 58), ("10", 50)):
        monkeypatch.setenv("COLUMNS", columns)
        assert width - 8 < max(map(len, render_help().splitlines())) <= width


@pytest.mark.parametrize(
    ("option", "without"),
    [("--version", {"aioqless.cli", "asyncio"}), ("--help", {"typer", "redis", "asyncio"})],
)
def test_version_and_help_import_little(option: str, without: set[str]) -> None:
    code = (
        "import atexit, sys; sys.argv[0] = 'aioqless'; "
        "atexit.register(lambda: print(*sys.modules, file=sys.stderr)); "
        "from aioqless.__main__ import main; main()"
    )
    shown = subprocess.run(
        [sys.executable, "-c", code, option], capture_output=True, text=True, check=True
    )
    assert "aioqless" in shown.stdout
    assert not without & set(shown.stderr.split())
