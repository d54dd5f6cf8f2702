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
from aioqless.store.inlining import insert_namespace
from aioqless.store.script_composer import compose, name_functions

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


def in_script(line: str, command: str = "") -> str:
    """Return a line as the script of a command in the namespace `ql` contains it."""
    usual = read_command(command).usual if command else ()
    return insert_namespace("ql", name_functions(line, usual))


def written_out(call: str) -> str:
    """A call whose value is used, as the scripts of the namespace `ql` have it."""
    return in_script(library_linker.write_out(f"= {call}")).removeprefix("= ")


# The scripts of the package


def test_functions_beside_the_usual_ones_are_defined_when_first_needed() -> None:
    text = compose("put", "ql").text
    usual, later = text.index("function enqueue__write("), text.index("function(_, name)")
    assert usual < later < text.index("function lib.archive__append(job, what")


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


def test_first_line_of_a_header_is_the_summary(write: Write) -> None:
    write("do", "-- do: something or other.", "--", "return 1")
    assert read_command("do").summary == "something or other."
    assert read_command("do").body == [(3, "return 1")]


def test_subcommand_selects_the_following_arguments(write: Write) -> None:
    write(
        "do", "-- do: it.", "-- @when list default", "-- @returns json", "-- @when add",
        "-- @arg jid string", "-- @returns number", "",
        "return word",
    )  # fmt: skip
    command, text = read_command("do"), compose("do", "ql").text
    assert command.default == "list" and {
        word: form.returns for word, form in command.forms.items()
    } == {"list": "json", "add": "number"}
    assert "local word = lib.layout__word({list = true, add = true}, 'list', ARGV[1])" in text
    jid = written_out("args.string('jid', ARGV[2])")
    assert f"elseif word == 'add' then\njid = {jid}" in text


def test_roles_and_durability_are_parsed(write: Write) -> None:
    write("do", "-- do: it.", "-- @role producer people", "-- @durable", "", "return 1")
    command = read_command("do")
    assert (command.roles, command.durable) == (("producer", "people"), True)


def test_keys_used_without_being_declared_are_parsed(write: Write) -> None:
    write("do", "-- do: it.", "-- @reads *", "-- @writes job history", "", "return 1")
    assert read_command("do").key_uses == {"*": False, "job": True, "history": True}


def test_text_after_the_arguments_of_a_batch_is_a_comment(write: Write) -> None:
    write(
        "do",
        "-- do: it.",
        "-- @batch jid:jid delay:seconds?  one for each job; jid: its id",
        "",
        "return 1",
    )
    assert [arg.name for arg in read_command("do").lead.batch] == ["jid", "delay"]


def test_shared_options_are_read_from_their_library(write: Write) -> None:
    write(
        "lib/changes/enqueue",
        "-- enqueue: it.",
        "--",
        "-- @option  tags     tags          those that it gets",
        "-- @option  expires_in seconds",
    )
    write("do", "-- do: it.", "-- @options enqueue", "-- @option note string", "", "return 1")
    assert [arg.name for arg in read_command("do").lead.options] == [
        "note",
        "tags",
        "expires_in",
        "request",
    ]
    text = compose("do", "ql").text
    tags = written_out("args.tags('tags', option.tags)")
    assert f"options = {{tags = option.tags and {tags}" in text
    write("do", "-- do: it.", "-- @batch jid:jid", "-- @options enqueue", "", "return 1")
    assert [arg.name for arg in read_command("do").lead.batch] == ["jid", "tags", "expires_in"]
    assert "{tags = tags and tags ~= ''" in compose("do", "ql").text


def test_constants_are_inlined(write: Write) -> None:
    write("do", "-- do: it.", "-- @flags no-writes", "", "return constants.MAX_NAME_LENGTH")
    assert f"return {constant('MAX_NAME_LENGTH')}" in compose("do", "ql").text
    write("do", "-- do: it.", "-- @flags no-writes", "", "return constants.MAX_HOPE")
    with pytest.raises(
        HeaderError,
        match=r"constants\.MAX_HOPE is used but lib/base/constants\.lua doesn't define it",
    ):
        compose("do", "ql")


def test_number_or_text_that_functions_share_is_written_out(write: Write) -> None:
    write(
        "lib/base/greet", "local MOST = 3  -- times", "local HELLO = 'MOST'",
        "local NAMES = {'Ada'}", "",
        "function greet.hello(much)", "  call.greeted = much.MOST", "  return HELLO, NAMES[MOST]",
        "end",
    )  # fmt: skip
    write("do", "-- do: it.", "-- @flags no-writes", "", "return greet.hello({})")
    text = compose("do", "ql").text
    assert "local NAMES = {'Ada'}" in text and "local MOST" not in text
    assert "  call.greeted = much.MOST\n  return 'MOST', NAMES[3]" in text


def test_body_that_returns_early_is_a_function(write: Write) -> None:
    early = "if jid == 'a' then return '1' end"
    inner = ["each(function(jid)", "  return jid", "end)"]
    write("do", "-- do: it.", "-- @batch jid:jid", "", *inner, "return '2'")
    assert "answer = '2'\nend" in compose("do", "ql").text
    write("do", "-- do: it.", "-- @arg jid jid", "", early, "return '2'")
    assert f"answer = (function()\n\n{early}\nreturn '2'\nend)()" in compose("do", "ql").text


def test_argument_with_the_name_of_a_variable_of_each_script_is_refused(write: Write) -> None:
    write("do", "-- do: it.", "-- @arg answer name", "", "return answer")
    with pytest.raises(HeaderError, match=r"do\.lua: give its argument answer another name"):
        compose("do", "ql")


def test_raises_and_returns_are_parsed(write: Write) -> None:
    write(
        "do",
        "-- do: it.",
        "-- @raises NOJOB HELD -- sometimes",
        "-- @returns text the jid",
        "",
        "return 1",
    )
    command = read_command("do")
    assert (command.raises, command.returns) == (("NOJOB", "HELD"), "text")


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


def test_function_that_is_not_usual_is_defined_with_what_it_needs(write: Write) -> None:
    write(
        "lib/base/greet", "local HELLO = {'hello'}", "",
        "function greet.hello(name)", "  call.greeted = name", "  return HELLO[1] .. name", "end",
        "function greet.shout(name)", "  return HELLO[1] .. greet.twice(name)", "end", "",
        "function greet.twice(name)", "  call.greeted = name", "  return name .. name", "end",
    )  # fmt: skip
    write(
        "usual", "-- usual: it.", "-- @flags no-writes", "",
        "return greet.hello('Ada') .. greet.shout('Bob')",
    )  # fmt: skip
    usual, _, others = compose("usual", "ql").text.partition("function(_, name)")
    assert usual.count("local HELLO") == others.count("local HELLO") == 1
    assert "function greet__hello(" in usual and "greet__twice(" not in usual
    assert "function lib.greet__shout(" in others and "function lib.greet__twice(" in others


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


@pytest.mark.parametrize(
    ("function", "line", "written"),
    [
        ("function odd.half(n) return n / 2 end", "return odd.half(x.y)", "return (x.y / 2)"),
        ("function odd.half(n) return n / 2 end", "odd.half(x)", "odd.half(x)"),
        ("function odd.half(n) return n / 2 end", "return odd.half(x + 1)", None),
        ("function odd.both(n) return n, 2 end", "return odd.both(x)", None),
        ("function odd.name(name) return name.name end", "return odd.name(x)", "return (x.name)"),
        ("function odd.list(n) return {n, 2} end", "return odd.list(x)", "return ({x, 2})"),
        ("function odd.all(...) return f(...) end", "return odd.all(x)", None),
    ],
)
def test_function_of_one_expression_is_written_out_where_its_value_is_used(
    write: Write, function: str, line: str, written: str | None
) -> None:
    write("lib/base/odd", function)
    assert library_linker.write_out(line) == (written or line)


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
