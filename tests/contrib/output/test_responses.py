"""Output as server-sent events, for browsers and on the command line."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncGenerator

import pytest

from aioqless import Client, Worker
from aioqless.client.job import JobState
from aioqless.contrib.output import (
    Emitted,
    Ended,
    Missed,
    Output,
    Restarted,
    encode_events,
    responses,
)
from tests.contrib.output.test_output import count


async def outputs(*given: Output) -> AsyncGenerator[Output, None]:
    for each in given:
        yield each


async def test_each_kind_is_an_event_with_its_id() -> None:
    given: list[Output] = [
        Emitted({"a": "line\nbreak"}, "1-1"),
        Restarted("2-0"),
        Missed(5, "2-5"),
        Ended(JobState.FAILED, "2-5-end"),
    ]
    assert [each async for each in encode_events(outputs(*given))] == [
        b'id: 1-1\ndata: {"a":"line\\nbreak"}\n\n',
        b"id: 2-0\nevent: restarted\ndata: null\n\n",
        b"id: 2-5\nevent: missed\ndata: 5\n\n",
        b'id: 2-5-end\nevent: end\nretry: 86400000\ndata: "failed"\n\n',
    ]


async def test_comment_is_sent_while_the_job_is_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(responses, "KEEP_ALIVE", 0.01)
    silent, closed = asyncio.Event(), asyncio.Event()

    async def output() -> AsyncGenerator[Output, None]:
        try:
            await silent.wait()
            yield Emitted(1, "1-1")
            await asyncio.Event().wait()
        finally:
            closed.set()

    events = encode_events(output())
    assert await anext(events) == b": silent\n\n"
    silent.set()
    while (event := await anext(events)) == b": silent\n\n":
        pass
    assert event == b"id: 1-1\ndata: 1\n\n"
    await anext(events)
    await events.aclose()  # type: ignore[attr-defined]
    await closed.wait()


async def test_unknown_job_is_an_end_without_a_state(client: Client) -> None:
    events = [each async for each in encode_events(client.jobs.output("ghost"))]
    assert events == [b"id: 0-0-end\nevent: end\nretry: 86400000\ndata: null\n\n"]


async def test_command_prints_output(client: Client) -> None:
    jid = await client.queue("default").put(count.data(to=3))
    async with Worker(client, count):
        await client.jobs.wait(jid, 30)
    assert client.url is not None
    where = ["--url", client.url, "--namespace", client.namespace]

    async def call(*arguments: str) -> str:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "aioqless", "output", jid, *arguments, *where),
            stdout=subprocess.PIPE,
        )
        text, _ = await process.communicate()
        assert process.returncode == 0
        return text.decode()

    assert (await call("--follow")).split() == ["0", "1", "2"]
    assert (await call("--json", "--after", "1-2")).splitlines() == [
        '{"kind":"emitted","value":2,"id":"1-3"}',
        '{"kind":"ended","state":"complete","id":"1-3-end"}',
    ]
