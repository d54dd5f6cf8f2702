"""Bounds of how much of the state machine depends on how much. They may only get smaller."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest
import typer.main
from typer.core import TyperGroup

import aioqless
from aioqless import Job, JobRecord
from aioqless.cli.app import app
from aioqless.cli.main import load_command
from aioqless.client.put_options import PutOptions
from aioqless.lua import LUA, list_commands, list_libraries, read_script
from aioqless.store.command_header import HeaderError, command_names
from aioqless.store.library_floors import FLOORS, check_use
from aioqless.store.library_linker import MENTION, known_libraries
from aioqless.store.script_composer import compose

LONGEST_LIBRARY = 400  # lines
LARGEST_SCRIPT = 120_500  # characters
ALL_SCRIPTS = 3_092_000
FIELDS_OF_CALL = 15
OWN_KEYS = 45  # of the core and of extensions
OWN_JOB_FIELDS = 28
OPTIONS_OF_PUT = 15
NAMES_OF_JOBS = 50  # of `Job`, and of `JobRecord`
SAMPLERS = 1  # which read counts again and again, and make rates of them
WAYS_TO_IDENTIFY = 1  # signatures of what says who sent a request
COMMANDS = 50  # of the command line; those of a group count one by one


@cache
def code(file: str) -> str:
    return re.sub(r"(?:^|\s)--.*$", "", read_script(file), flags=re.MULTILINE)


def uses() -> dict[str, set[str]]:
    """Return which libraries each library of the core uses."""
    files = known_libraries()
    return {
        name: {used for used, _ in MENTION.findall(code(file)) if used in files} - {name}
        for name, file in files.items()
        if not file.startswith("contrib/")
    }


def imports() -> dict[str, set[str]]:
    """Return which modules each module imports, wherever it does, also for type checkers alone."""
    package = Path(aioqless.__file__).parent
    files = {
        ".".join(file.relative_to(package.parent).with_suffix("").parts).removesuffix(
            ".__init__"
        ): file
        for file in package.rglob("*.py")
    }
    graph: dict[str, set[str]] = {}
    for name, file in files.items():
        found = set[str]()
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                found |= {each.name for each in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                inner = {f"{node.module}.{each.name}" for each in node.names}
                found |= {each if each in files else node.module for each in inner}
        graph[name] = found & files.keys() - {name}
    return graph


def reached(graph: Mapping[str, set[str]], start: str) -> set[str]:
    found, todo = set[str](), list(graph[start])
    while todo:
        if (name := todo.pop()) not in found:
            found.add(name)
            todo += graph[name]
    return found


def test_no_library_needs_itself_through_others() -> None:
    graph = uses()
    assert [name for name in graph if name in reached(graph, name)] == []


def test_no_module_imports_itself_through_others() -> None:
    graph = imports()
    assert [name for name in graph if name in reached(graph, name)] == []


def test_each_library_stands_on_a_floor() -> None:
    folders = {each.name for each in (Path(str(LUA)) / "lib").iterdir()}
    assert folders == set(FLOORS)


def test_longest_library_is_bounded() -> None:
    longest = {file: read_script(file).count("\n") for file in list_libraries()}
    assert max(longest.values()) <= LONGEST_LIBRARY


def test_scripts_are_bounded_in_size() -> None:
    sizes = {name: len(compose(name, "ql").text) for name in command_names()}
    assert max(sizes.values()) <= LARGEST_SCRIPT
    assert sum(sizes.values()) <= ALL_SCRIPTS


def words(pattern: str) -> Iterator[str]:
    for file in (*list_libraries(), *list_commands()):
        yield from re.findall(pattern, code(file))


def test_state_of_a_call_is_bounded() -> None:
    assert len(set(words(r"\bcall\.([a-z_]+)"))) <= FIELDS_OF_CALL


def test_own_keys_are_bounded() -> None:
    files = [each for each in list_libraries() if each.endswith("/keys.lua")]
    found = [each for file in files for each in re.findall(r"ns \.\. ':x:([a-z:-]+)'", code(file))]
    assert len(set(found)) <= OWN_KEYS


def test_own_fields_of_a_job_are_bounded() -> None:
    described = read_script("lib/base/keys.lua").partition("-- in a recurring job's:")[0]
    assert len(set(re.findall(r"^--   (x-[a-z-]+) ", described, re.MULTILINE))) <= OWN_JOB_FIELDS


def test_options_of_put_are_bounded() -> None:
    assert len(PutOptions.__annotations__) <= OPTIONS_OF_PUT


def leaves(command: object) -> Iterator[object]:
    if isinstance(command, TyperGroup):
        for each in command.commands.values():
            yield from leaves(each)
    else:
        yield command


def test_commands_of_the_command_line_are_bounded() -> None:
    load_command()
    assert len(list(leaves(typer.main.get_command(app)))) <= COMMANDS


def modules_with(pattern: str) -> list[Path]:
    """Return the modules of the package that have a line like this."""
    files = Path(aioqless.__file__).parent.rglob("*.py")
    return [each for each in files if re.search(pattern, each.read_text("utf-8"), re.MULTILINE)]


def test_one_module_makes_rates_and_one_type_says_who_someone_is() -> None:
    assert len(modules_with(r"[^f] rates_between\(")) <= SAMPLERS
    assert (
        len(modules_with(r"^\w+: TypeAlias = Callable\[\[Request\], .*Identity"))
        <= WAYS_TO_IDENTIFY
    )


@pytest.mark.parametrize("kind", [Job, JobRecord])
def test_names_of_jobs_are_bounded(kind: type[object]) -> None:
    assert len([name for name in dir(kind) if not name.startswith("_")]) <= NAMES_OF_JOBS


@pytest.mark.parametrize(
    ("user", "used"),
    [
        ("lib/facts/history.lua", "lib/places/turns.lua"),
        ("lib/ends/failing.lua", "lib/ends/completion.lua"),
        ("lib/changes/enqueue.lua", "lib/agenda/dependents.lua"),
        ("lib/agenda/calls.lua", "lib/agenda/dependents.lua"),
        ("lib/places/turns.lua", "contrib/output/lua/lib/output_entries.lua"),
    ],
)
def test_use_of_a_library_that_is_not_lower_is_refused(user: str, used: str) -> None:
    with pytest.raises(HeaderError, match=rf"{re.escape(user)}:12: {re.escape(used)} is not on a"):
        check_use(user, used, 12)


@pytest.mark.parametrize(
    ("user", "used"),
    [
        ("lib/agenda/agenda.lua", "lib/agenda/calls.lua"),
        ("lib/agenda/calls.lua", "lib/changes/enqueue.lua"),
        ("lib/places/limits.lua", "lib/places/rates.lua"),
        ("contrib/job_sets/lua/lib/job_sets.lua", "lib/changes/revival.lua"),
    ],
)
def test_use_of_a_lower_library_is_accepted(user: str, used: str) -> None:
    check_use(user, used, 12)
