"""How many commands Redis runs for live pages."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import httpx
import pytest

from aioqless import Client, NewJob
from aioqless.contrib.dashboard import create_app, live_updates
from aioqless.contrib.dashboard.dashboard import OVERVIEW_RATE
from aioqless.contrib.dashboard.live_updates import COMMAND_RATE, RENDER_INTERVAL
from tests.commands import count_commands
from tests.conftest import Until
from tests.contrib.dashboard.conftest import OPEN, entered, served
from tests.contrib.dashboard.steps import do
from tests.reported_runs import report_runs, run_values
from tests.server import OwnServer

MOST = 100  # commands per second
QUEUES = ("billing", "ledger", "mail", "pictures", "stock", "reports")
PAGES = (
    "/", "/queues", "/queue?name=mail", "/queue?name=mail&tab=scheduled",
    "/queue?name=mail&tab=running", "/queue?name=mail&tab=statistics",
    "/queue?name=mail&tab=tenants", "/jobs?filter=state:scheduled", "/jobs?filter=state:failed",
    "/jobs?filter=Greet", "/failures", "/failures?by=group", "/group?error=ValueError",
    "/group?name=mail-ValueError", "/classes", "/class?name=Greet", "/workers",
    "/worker?name=web-mail", "/recurring", "/tracked", "/sets", "/tags", "/redis",
    "/job?jid=looked-at",
)  # fmt: skip


@pytest.fixture
async def client(own_server: OwnServer) -> AsyncIterator[Client]:
    """Return a client of a server of its own, with six queues, failures and workers."""
    async with Client(own_server.url) as client:
        await client.queue("mail").put("Greet", jid="looked-at", delay=900)
        for name in QUEUES:
            queue = client.queue(name)
            await client.put_many([NewJob("Greet", {"n": n}) for n in range(60)], queue=name)
            await client.put_many([NewJob("Greet", delay=900) for _ in range(60)], queue=name)
            for job in await queue.pop(12):
                await job.fail("no", group=f"{name}-ValueError")
            await queue.pop(3, worker=f"web-{name}")
            rows = [(name, "Greet", run_values(5))]
            await report_runs(client, time.time(), rows, worker=f"web-{name}", queues=[name])
        yield client


async def follow(
    http: httpx.AsyncClient, at: str, shown: list[str], contents: list[str] | None = None
) -> None:
    async with http.stream("GET", "/live", params={"at": at}, timeout=60) as answer:
        async for line in answer.aiter_lines():
            if line.startswith("data: "):
                shown.append(at)
                if contents is not None:
                    contents.append(line)


async def test_pause_after_each_live_page_pays_for_its_commands(
    client: Client, until: Until
) -> None:
    app = create_app(client, identify=OPEN)
    live, dashboard = app.state.live, app.state.dashboard
    costly = []
    async with served(app) as site, entered(site) as http:
        for at in PAGES:
            shown = list[str]()
            reading = asyncio.create_task(follow(http, at, shown))
            await until(lambda shown=shown: shown)
            (topic,) = live._topics.values()
            live._rendering_task.cancel()
            await asyncio.wait([live._rendering_task])
            await dashboard.overviews.read()  # that of the rendering is the same
            before, estimated = await count_commands(client), live._commands
            await live._render(topic)
            took = await count_commands(client) - before - 1
            pause = max(RENDER_INTERVAL, (live._commands - estimated) / COMMAND_RATE)
            if took > (MOST - OVERVIEW_RATE) * pause:
                costly.append((at, took, pause))
            reading.cancel()
            await asyncio.wait([reading])
            live._topics.clear()
    assert not costly


async def test_streams_of_one_page_share_its_reading(
    client: Client, monkeypatch: pytest.MonkeyPatch, until: Until
) -> None:
    app, shown = create_app(client, identify=OPEN), list[str]()
    monkeypatch.setattr(live_updates, "RENDER_INTERVAL", 3600)
    async with served(app) as site, AsyncExitStack() as stack:
        readers = [await stack.enter_async_context(entered(site)) for _ in range(20)]
        readings = [asyncio.create_task(follow(readers[0], "/queues", shown))]
        await until(lambda: shown)
        before = await count_commands(client)
        readings += [asyncio.create_task(follow(http, "/queues", shown)) for http in readers[1:]]
        await until(lambda: len(shown) == 20)
        took = await count_commands(client) - before - 1
        for each in readings:
            each.cancel()
        await asyncio.wait(readings)
    assert took < 20 * 5  # each checks its session, and none reads queues


async def test_live_page_that_was_read_before_an_action_is_not_shown_after_it(
    client: Client, monkeypatch: pytest.MonkeyPatch, until: Until
) -> None:
    app, shown = create_app(client, identify=OPEN), list[str]()
    before, after = list[str](), list[str]()
    monkeypatch.setattr(live_updates, "RENDER_INTERVAL", 3600)
    async with served(app) as site, entered(site, headers={"Origin": site}) as http:
        readings = [asyncio.create_task(follow(http, "/queue?name=mail", shown, before))]
        await until(lambda: before)
        await do(http, "pause", queue="mail")
        readings.append(asyncio.create_task(follow(http, "/queue?name=mail", shown, after)))
        await until(lambda: after)
        for each in readings:
            each.cancel()
        await asyncio.wait(readings)
    assert "Resume" not in before[0] and "Resume" in after[0]


async def test_live_page_shows_what_follows_from_an_action_without_a_long_pause(
    client: Client, monkeypatch: pytest.MonkeyPatch, until: Until
) -> None:
    app, shown, contents = create_app(client, identify=OPEN), list[str](), list[str]()
    monkeypatch.setattr(live_updates, "COMMAND_RATE", 0.001)
    monkeypatch.setattr(live_updates, "MAX_COMMAND_PAUSE", 600.0)
    async with served(app) as site, entered(site, headers={"Origin": site}) as http:
        reading = asyncio.create_task(follow(http, "/queue?name=mail", shown, contents))
        await until(lambda: shown)
        await do(http, "pause", queue="mail")
        await until(lambda: "Resume" in contents[-1])
        await client.queue("mail").put("Later", {}, tags=["follows"])
        await until(lambda: "Later" in contents[-1])
        reading.cancel()
        await asyncio.wait([reading])
