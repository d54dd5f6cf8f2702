"""The typed methods of the commands."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from aioqless.errors import AioqlessError
from aioqless.store import Call, OfflineStore
from aioqless.store.command_header import command_names, read_command
from tests.codegen import generate
from tests.command_calls import commands_of


def test_generated_methods_are_up_to_date() -> None:
    for file, text in generate().items():
        assert file.read_text("utf-8") == text, "run python -m tests.codegen"


def test_every_form_of_every_command_has_a_method() -> None:
    for name in command_names():
        for form in read_command(name).forms or [""]:
            commands = commands_of(OfflineStore(), name)
            assert callable(getattr(commands, f"{name}_{form}".rstrip("_")))


def test_every_form_says_what_it_does() -> None:
    for command in map(read_command, command_names()):
        summaries = [form.summary for form in command.forms.values()]
        assert all(summaries) and len(set(summaries)) == len(summaries), command.name


def test_method_returns_a_call_that_is_sent_when_awaited() -> None:
    sent: list[Call] = []

    class Noting(OfflineStore):
        async def send(self, call: Call[Any]) -> Any:
            sent.append(call)
            return 7

    async def act() -> None:
        call = Noting().tag_get(tag="x", count=3)
        assert sent == []
        assert await call == 7

    asyncio.run(act())
    assert [(call.command, call.argv) for call in sent] == [("tag", [b"get", b"x", b"", b"3"])]


@pytest.mark.parametrize("act", ["get", "now", "lake", "request"])
def test_every_method_raises_without_a_connection(act: str) -> None:
    store = OfflineStore()

    async def attempt() -> None:
        match act:
            case "get":
                await store.get(jid="a")
            case "now":
                await store.now()
            case "lake":
                await store.pipeline([store.get(jid="a")])
            case _:
                store.request()

    with pytest.raises(AioqlessError, match=r"a job in a process of its own has no connection"):
        asyncio.run(attempt())
