"""Files and functions stay small enough to be read at once."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from .source import FILES, LUA, functions, name_of

FILE, FUNCTION, PARAMETERS = 250, 40, 6
LUA_COMMAND, LUA_LIBRARY = 80, 120
DECORATOR = "job"  # its options are what it is for


@pytest.mark.parametrize("file", FILES, ids=name_of)
def test_a_file_has_at_most_250_lines(file: Path) -> None:
    assert len(file.read_text("utf-8").splitlines()) <= FILE


@pytest.mark.parametrize("file", FILES, ids=name_of)
def test_a_function_has_at_most_40_lines(file: Path) -> None:
    for function in functions(file):
        assert (function.end_lineno or 0) - function.lineno < FUNCTION, function.name


@pytest.mark.parametrize("file", FILES, ids=name_of)
def test_a_function_has_at_most_6_parameters_unless_it_is_a_command_of_the_command_line(file: Path) -> None:
    for function in functions(file):
        arguments = function.args
        parameters = [each.arg for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
        is_command = any(re.match(r"\w+\.command\(", ast.unparse(decorator)) for decorator in function.decorator_list)
        assert (
            len([each for each in parameters if each not in ("self", "cls")]) <= PARAMETERS or is_command or function.name == DECORATOR
        ), function.name


@pytest.mark.parametrize("file", LUA, ids=lambda file: f"{file.parent.name}/{file.stem}")
def test_a_lua_command_has_at_most_80_lines_and_a_library_120_beside_comments(file: Path) -> None:
    code = [line for line in file.read_text("utf-8").splitlines() if line.strip() and not line.strip().startswith("--")]
    assert len(code) <= (LUA_LIBRARY if file.parent.name == "lib" else LUA_COMMAND)
