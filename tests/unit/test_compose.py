"""Composing scripts from a command's header and body and the library functions they use."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from aioqless import lua
from aioqless.lua import constant
from aioqless.store import command_header, library_linker, script_composer
from aioqless.store.command_header import HeaderError, command_names, read_command
from aioqless.store.script_composer import compose

Write = Callable[..., None]

CACHES = (
    lua.usual_functions,
    command_header.command_names,
    command_header.command_files,
    command_header.read_command,
    command_header._shared_options,
    script_composer.compose,
    script_composer._lines,
    library_linker._blocks,
    library_linker._split,
    library_linker._scalars,
    library_linker.expressions,
    library_linker.known_libraries,
)


# The scripts of the package


def test_only_commands_that_create_data_are_refused_when_memory_is_full() -> None:
    denied = {
        name
        for name in command_names()
        if not set(read_command(name).flags) & {"no-writes", "allow-oom"}
    }
    assert denied == {
        "put",
        "put_many",
        "put_flow",
        "set_put",
        "set_put_flow",
        "move",
        "requeue",
        "recur",
        "declare",
        "tick",
        "import",
        "emit",
    }


# Headers, one directive at a time


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Write]:
    """Write a command beside the package's libraries; `lib/x` writes a library."""
    shutil.copytree(str(lua.LUA / "lib"), tmp_path / "lib")
    (tmp_path / "usual.json").write_text('{"usual": ["greet.hello"], "lost": ["json.poem"]}')
    monkeypatch.setattr(lua, "LUA", tmp_path)

    def write(name: str, *lines: str) -> None:
        (tmp_path / f"{name}.lua").write_text("\n".join(lines) + "\n")
        clear()

    yield write
    clear()


def clear() -> None:
    for cache in CACHES:
        cache.cache_clear()


def test_constants_are_inlined(write: Write) -> None:
    write("do", "-- do: it.", "-- @flags no-writes", "", "return constants.MAX_NAME_LENGTH")
    assert f"return {constant('MAX_NAME_LENGTH')}" in compose("do", "ql").text
    write("do", "-- do: it.", "-- @flags no-writes", "", "return constants.MAX_HOPE")
    with pytest.raises(
        HeaderError,
        match=r"constants\.MAX_HOPE is used but lib/base/constants\.lua doesn't define it",
    ):
        compose("do", "ql")


def test_argument_with_the_name_of_a_variable_of_each_script_is_refused(write: Write) -> None:
    write("do", "-- do: it.", "-- @arg answer name", "", "return answer")
    with pytest.raises(HeaderError, match=r"do\.lua: give its argument answer another name"):
        compose("do", "ql")


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("-- @argument jid string", r"do\.lua: unknown directive @argument"),
        ("-- @arg jid", r"do\.lua:2: @arg lacks a word"),
        ("-- @key", r"do\.lua:2: @key lacks a word"),
        ("-- @option now", r"do\.lua:2: @option lacks a word"),
    ],
)
def test_header_with_an_unknown_directive_is_refused(write: Write, line: str, why: str) -> None:
    write("do", "-- do: it.", line, "", "return 1")
    with pytest.raises(HeaderError, match=why):
        read_command("do")


def test_unknown_type_is_refused(write: Write) -> None:
    write("do", "-- do: it.", "-- @arg jid colour", "", "return 1")
    with pytest.raises(
        HeaderError, match=r"args\.colour is used but lib/base/args\.lua doesn't define it"
    ):
        compose("do", "ql")


@pytest.mark.parametrize(
    "line",
    [
        "-- @arg stats string",
        "-- @key stats",
        "-- @rest stats name",
        "-- @option stats name",
        "-- @batch stats:name",
    ],
)
def test_argument_named_like_a_library_is_refused(write: Write, line: str) -> None:
    write("do", "-- do: it.", line, "", "return 1")
    with pytest.raises(
        HeaderError,
        match=r"do\.lua: its argument stats hides lib/facts/stats\.lua; give it another name",
    ):
        compose("do", "ql")


# Libraries


def test_script_contains_only_reachable_functions(write: Write) -> None:
    write("lib/base/greet", "local HELLO = {'hello'}", "",
        "function greet.hello(name) return HELLO[1] .. greet.shout(name) end", "",
          "function greet.shout(name)", "  local loud = string.upper(name)", "  return loud", "end",
          "", "function greet.never()", "end")  # fmt: skip
    write(
        "do",
        "-- do: it.",
        "-- @arg who string",
        "-- @flags no-writes",
        "",
        "return greet.hello(who)",
    )
    text = compose("do", "ql").text
    assert (
        "local HELLO" in text
        and "function lib.greet__hello" in text
        and "function lib.greet__shout" in text
    )
    assert "never" not in text


def test_local_that_is_no_constant_is_refused(write: Write) -> None:
    write(
        "lib/base/greet",
        "local met = {}",
        "",
        "function greet.hello(name)",
        "  met[1] = name",
        "end",
    )
    write("do", "-- do: it.", "", "greet.hello('Ada')")
    with pytest.raises(HeaderError, match=r"lib/base/greet\.lua:1: met is no constant.*`call`"):
        compose("do", "ql")


def test_usual_function_that_the_command_does_not_reach_is_refused(write: Write) -> None:
    write("lost", "-- lost: it.", "", "return 1")
    with pytest.raises(HeaderError, match=r"json\.poem: the command doesn't reach it"):
        compose("lost", "ql")


def test_unknown_library_function_is_refused(write: Write) -> None:
    write("do", "-- do: it.", "", "return json.poem()")
    with pytest.raises(
        HeaderError, match=r"json\.poem is used but lib/base/json\.lua doesn't define it"
    ):
        compose("do", "ql")


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        (["print('hello')"], r"lib/base/odd\.lua:1: .* starts neither a function nor a local"),
        (["function odd.one()", "  return 1"], r"lib/base/odd\.lua:1: this block does not end"),
        (["function even.one() return 1 end"], "starts neither a function nor a local"),
    ],
)
def test_library_with_statements_beside_functions_is_refused(
    write: Write, lines: list[str], why: str
) -> None:
    write("lib/base/odd", *lines)
    write("do", "-- do: it.", "", "return odd.one()")
    with pytest.raises(HeaderError, match=why):
        compose("do", "ql")


def test_script_line_is_translated_to_file_and_line(write: Write) -> None:
    write("lib/base/greet", "-- greet", "", "function greet.hello()", "  error(1 + nil)", "end")
    write("do", "-- do: it.", "-- @flags no-writes", "", "return greet.hello()")
    script = compose("do", "ql")
    lines = script.text.splitlines()
    assert script.origin(lines.index("  error(1 + nil)") + 1) == "lib/base/greet.lua:4"
    assert script.origin(lines.index("return lib.greet__hello()") + 1) == "do.lua:4"
    assert script.origin(1) == "do (composed):1" and script.origin(5000) == "do (composed):5000"
