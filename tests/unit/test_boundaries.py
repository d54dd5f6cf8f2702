"""Rules about the source that neither ruff nor import-linter can check."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.unit.source import FILES, LUA, name_of, tree_of

LUA_COMMAND, LUA_LIBRARY = 80, 150  # lines without comments
PROCESS_CONTROL = (
    *("sys.argv", "sys.exit", "os._exit"),
    *("loop.add_signal_handler", "signal.signal"),
)


def test_only_the_command_line_and_own_processes_use_argv_signals_and_exit() -> None:
    using = {
        name_of(file)
        for file in FILES
        for node in ast.walk(tree_of(file))
        if isinstance(node, ast.Attribute) and ast.unparse(node) in PROCESS_CONTROL
    }
    own_processes = {"contrib.process_pool.child_main", "runtime.os_signals", "runtime.forks"}
    allowed = (
        "__main__",
        "cli.",
        "contrib.django.management.commands.",
        "contrib.private_redis",
    )
    others = {name for name in using - own_processes if not name.startswith(allowed)}
    assert not {name for name in others if not re.match(r"contrib\.\w+\.cli\b", name)}


def test_python_spells_no_key_of_a_queue_or_of_the_namespace() -> None:
    sets = (
        *("-work", "-scheduled", "-locks", "-depends", "-recur"),
        *(":queues", ":workers", ":completed", ":failures"),
    )
    for file in FILES:
        texts = [
            node.value
            for node in ast.walk(tree_of(file))
            if isinstance(node, ast.Constant) and isinstance(node.value, str)
        ]
        assert not [text for text in texts if text.endswith(sets) and " " not in text], name_of(
            file
        )


@pytest.mark.parametrize("file", LUA, ids=lambda file: f"{file.parent.name}/{file.stem}")
def test_lua_files_are_short(file: Path) -> None:
    lines = file.read_text("utf-8").splitlines()
    code = [line for line in lines if line.strip() and not line.strip().startswith("--")]
    assert len(code) <= (LUA_LIBRARY if "lib" in file.parts else LUA_COMMAND)


@pytest.mark.parametrize("file", LUA, ids=lambda file: f"{file.parent.name}/{file.stem}")
def test_lua_lines_have_at_most_100_characters(file: Path) -> None:
    assert [line for line in file.read_text("utf-8").splitlines() if len(line) > 100] == []


@pytest.mark.parametrize(
    "file", [each for each in FILES if each.name == "__init__.py"], ids=name_of
)
def test_files_that_a_package_docstring_lists_exist(file: Path) -> None:
    docstring = ast.get_docstring(tree_of(file)) or ""
    listed = re.findall(r"^ *(\w+(?:\.py|/))(?=\s{1,}\S)", docstring, re.M)
    assert not [name for name in listed if not (file.parent / name).exists()]
