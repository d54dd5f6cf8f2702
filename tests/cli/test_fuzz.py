"""Random command lines end with a documented exit code, and with a message if they are refused."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Iterator
from typing import Any

import pytest
import typer
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from aioqless import Client, cli
from aioqless.cli.app import app
from aioqless.cli.exit_codes import UNREACHABLE
from aioqless.cli.main import load_command
from tests.cli.conftest import restored_process, run_main

DONE_REFUSED_UNREADABLE = {0, 1, 2}
SERVES = {
    "import",
    "outbox",
    "lake",
    "redis",
    "tail",
    "top",
    "web",
    "token",
    "worker",
}  # commands that run until stopped, or beside Redis
# Options that wait for a job, end the command at once, or lead to another namespace.
LEFT_OUT = {"--wait", "--follow", "--help", "--url", "--namespace"}
NO_OPTION = "--no-such-option"

TEXTS = [
    *(
        "mail",
        "a",
        "b",
        "c",
        "typo",
        "mail-typo",
        "r",
        "x",
        "heartbeat",
        "Greet",
        "waiting",
        "failed",
        "worker",
        "put",
        "producer",
    ),
    *(
        "",
        " ",
        "-",
        "--",
        "\n",
        "a\nb",
        "\x1b[31m",
        "\u202e",
        "Gr\u00fc\u00dfe",
        "\udcff",
        "{",
        "{}",
        "[]",
        "null",
        "false",
        "NaN",
        '"',
        "'",
    ),
    *(
        "0",
        "-1",
        "1",
        "1.5",
        "1e309",
        "nan",
        "inf",
        "0x10",
        "123456789012345678901234567890",
        "x" * 600,
        "[" * 1200,
        "*",
        "../..",
        "%s",
    ),
    *(
        "2026-02-30",
        "@every 5m",
        "* * * * *",
        "61 * * * *",
        "Europe/Paris",
        "all",
        "a-history",
        '{"a": [1e999]}',
        "ql:q:mail",
    ),
]
texts = st.sampled_from(TEXTS) | st.text(
    st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=6
)


def all_commands(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Return each command of the real command line, by its words."""
    for name, each in getattr(command, "commands", {}).items():
        yield from all_commands(each, (*path, name))
    if not hasattr(command, "commands"):
        yield path, command


load_command()
TREE = typer.main.get_command(app)
COMMANDS = dict(all_commands(TREE))
OFTEN = [path for path in sorted(COMMANDS) for _ in range(1 if path[0] in SERVES else 3)]


@st.composite
def command_lines(draw: st.DrawFn) -> list[str]:
    """Generate a command with valid, too many or too few arguments.

    A command that runs until stopped gets an option that no command has.
    """
    path = draw(st.sampled_from(OFTEN))
    words: list[str] = []
    for taken in COMMANDS[path].params:
        if taken.param_type_name == "argument":
            least = 1 if taken.required and draw(st.integers(0, 9)) else 0
            words += draw(
                st.lists(
                    texts,
                    min_size=least,
                    max_size=3 if taken.nargs < 0 else max(least, draw(st.integers(0, 1))),
                )
            )
        elif not LEFT_OUT & set(taken.opts) and not draw(st.integers(0, 2)):
            words += [
                draw(st.sampled_from([*taken.opts, *taken.secondary_opts])),
                *([] if taken.is_flag else [draw(texts)]),
            ]
    if path[0] in SERVES:
        words.append(NO_OPTION)
    return [*path, *(draw(st.permutations(words)) if not draw(st.integers(0, 4)) else words)]


@pytest.mark.parametrize("calls", [15, pytest.param(1200, marks=pytest.mark.long)])
async def test_random_command_line_ends_with_a_documented_exit_code(
    client: Client, redis_url: str, namespace: str, monkeypatch: pytest.MonkeyPatch, calls: int
) -> None:
    monkeypatch.setenv("AIOQLESS_URL", redis_url)
    monkeypatch.setenv("AIOQLESS_NAMESPACE", namespace)
    monkeypatch.setattr(
        cli, "app", TREE
    )  # building the parser for each call would take longer than most calls
    monkeypatch.setenv("EDITOR", "true")
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    await client.queue("mail").put("Greet", {"n": 1}, jid="a", tags=["x"])
    await client.queue("mail").put("Greet", jid="b", depends=["a"])
    await client.queue("mail").recur("Greet", every=60, jid="r")

    @settings(
        max_examples=calls,
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(command_lines())
    def check(words: list[str]) -> None:
        with restored_process():
            ended = run_main(*words)
        documented = DONE_REFUSED_UNREADABLE | ({UNREACHABLE} if words[:1] == ["redis"] else set())
        assert ended.code in documented, (words, ended)
        assert ended.code != 0 or NO_OPTION not in words, (words, ended)
        assert ended.code == 0 or ended.err, (words, ended)
        assert "Traceback" not in ended.err, (words, ended)

    await asyncio.to_thread(check)
    assert await client.check() == []
