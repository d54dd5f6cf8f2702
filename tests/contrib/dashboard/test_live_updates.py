"""Live updates: limits for readers and for Redis, and the badge with the age of a page."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import pairwise
from typing import Any

import httpx
import pytest
from playwright.async_api import Browser, Page, expect
from starlette.applications import Starlette

from aioqless import Client
from aioqless.contrib.dashboard import create_app
from aioqless.contrib.dashboard.live_updates import MAX_STREAMS_PER_READER, Topic
from aioqless.contrib.dashboard.page_request import PageRequest
from aioqless.contrib.dashboard.rendering import Renderer
from aioqless.contrib.dashboard.throttled_connection import ThrottledConnection
from tests.conftest import Until, existing_job
from tests.contrib.dashboard.conftest import OPEN, browser_context, entered, served
from tests.contrib.dashboard.test_access import (  # type: ignore[attr-defined]
    USERS,
    client_of,
    log_in,
    token,
)
from tests.server import OwnServer

pytestmark = pytest.mark.long


@asynccontextmanager
async def stream(http: httpx.AsyncClient, at: str) -> AsyncIterator[AsyncIterator[str]]:
    """Yield the contents of a page whenever they change."""
    async with http.stream("GET", "/live", params={"at": at}, timeout=60) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")

        async def contents() -> AsyncIterator[str]:
            async for line in answer.aiter_lines():
                if line.startswith("data: "):
                    yield json.loads(line.removeprefix("data: "))

        yield contents()


async def test_changed_page_is_sent_again(http: httpx.AsyncClient, client: Client) -> None:
    jid = await client.queue("mail").put("Greet", {})
    async with stream(http, f"/job?jid={jid}") as contents:
        await _shows(contents, 's-waiting">waiting')
        (job,) = await client.queue("mail").pop()
        await _shows(contents, 's-running">running')
        await job.fail("no such word", group="typo")
        await _shows(contents, 's-failed">failed')
        await client.jobs.cancel(jid)
        await _shows(contents, "This job does not exist")


async def test_each_browser_gets_its_own_token(client: Client, site: str) -> None:
    await client.queue("mail").put("Greet", {})
    tokens, told = set(), []
    for _ in range(2):
        async with entered(site) as http:
            tokens.add(await token(http, "/queue?name=mail"))
            async with stream(http, "/queue?name=mail") as contents:
                told.append(await anext(contents))
    assert len(tokens) == 2 and all(sum(each in text for each in tokens) == 1 for text in told)
    assert {each for each in tokens for text in told if each in text} == tokens


async def test_live_pages_use_at_most_a_share_of_redis_time() -> None:
    class SlowRedis:
        calls = 0

        async def execute(self, *command: object) -> object: ...
        async def aclose(self) -> None: ...

        async def execute_many(
            self, commands: list[Any], *, raise_errors: bool = True
        ) -> list[None]:
            self.calls += 1
            await asyncio.sleep(0.02)
            return [None]

    redis, counted = SlowRedis(), list[int]()
    throttled = ThrottledConnection(redis, counted.append, share=0.2)
    began = time.monotonic()
    await asyncio.gather(*[throttled.execute("PING") for _ in range(6)])
    assert redis.calls == 6 and len(counted) == 6
    assert time.monotonic() - began >= 5 * 0.1 + 0.02


async def _shows(contents: AsyncIterator[str], text: str) -> None:
    """Wait for a page with these words; others may come before, as the times on it change."""
    async for html in contents:
        if text in html:
            return
    pytest.fail(f"the stream has ended without {text}")


async def test_reader_with_many_pages_does_not_slow_down_another_reader(
    app: Starlette, site: str, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    rendered: list[str] = []

    async def render_slowly(topic: Topic) -> str:
        rendered.append(topic.request.query["name"])
        await asyncio.sleep(0.15)
        return f"<h1>{len(rendered)}</h1>"

    monkeypatch.setattr(app.state.live, "_render", render_slowly)
    async with AsyncExitStack() as stack:
        for reader in ("greedy", "modest"):
            http = await stack.enter_async_context(entered(site))
            await http.get("/config")
            for number in range(MAX_STREAMS_PER_READER if reader == "greedy" else 1):
                contents = await stack.enter_async_context(
                    stream(http, f"/queue?name={reader}-{number}")
                )
        async with asyncio.timeout(60):
            for _ in range(4):
                await anext(contents)
    turns = [index for index, name in enumerate(rendered) if name == "modest-0"]
    assert (
        max(later - earlier for earlier, later in pairwise(turns[1:])) <= 10
    )  # less often than 26 renderings


async def test_live_page_beyond_a_readers_limit_is_refused_with_the_reason(
    http: httpx.AsyncClient, client: Client
) -> None:
    await http.get("/config")
    async with AsyncExitStack() as stack:
        for number in range(MAX_STREAMS_PER_READER):
            await stack.enter_async_context(stream(http, f"/queue?name=q{number}"))
        refused = await http.get("/live", params={"at": "/"})
        assert (
            "event: refused" in refused.text
            and f"{MAX_STREAMS_PER_READER} live pages open" in refused.text
        )
    async with stream(http, "/") as contents:
        assert "Overview" in await anext(contents)


async def test_redis_gets_no_commands_while_no_page_is_open(
    app: Starlette, http: httpx.AsyncClient, client: Client, until: Until
) -> None:
    async with stream(http, "/") as contents:
        await anext(contents)
    live = app.state.live
    await until(lambda: live.streams == 0 and live._rendering_task is None)

    async def gets_no_commands() -> bool:
        before = (await client.redis.info("stats"))["total_commands_processed"]
        await asyncio.sleep(0.3)  # nothing may happen in this time
        return (await client.redis.info("stats"))["total_commands_processed"] <= before + 1

    await until(gets_no_commands)


@pytest.mark.xdist_group("browser")
async def test_badge_says_when_updates_are_late_or_refused(
    page: Page, app: Starlette, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    live, badge, goes_on = app.state.live, page.locator("#live"), asyncio.Event()
    render = live._render

    async def render_late(topic: Topic) -> str:
        await goes_on.wait()
        return await render(topic)

    await page.goto("/queues")
    await expect(badge).to_have_text("live")
    await asyncio.sleep(
        16
        # longer than the badge's timeout: nothing changes, and the page stays live since the server
        # says so
    )
    await expect(badge).to_have_text("live")
    monkeypatch.setattr(live, "_render", render_late)
    await expect(badge).to_have_text(re.compile("updated [0-9]+ s ago"), timeout=30_000)
    goes_on.set()
    await expect(badge).to_have_text("live")
    monkeypatch.setattr("aioqless.contrib.dashboard.live_updates.MAX_STREAMS_PER_READER", 0)
    await page.reload()
    await expect(badge).to_have_text(
        "not live: you have 0 live pages open, the most for one reader"
    )


async def test_stream_ends_when_its_user_logs_out(client: Client) -> None:
    async with client_of(create_app(client, identify=USERS)) as http:
        await log_in(http, "ada")
        async with stream(http, "/queue?name=mail") as contents:
            await anext(contents)
            await http.post("/logout", data={"token": await token(http)})
            await client.queue("mail").put("Greet", {})
            assert not [each async for each in contents if "Greet" in each]


async def test_stopping_server_ends_its_streams(client: Client) -> None:
    async with AsyncExitStack() as stack:
        async with served(create_app(client, identify=OPEN)) as address:
            http = await stack.enter_async_context(entered(address))
            contents = await stack.enter_async_context(stream(http, "/"))
            await anext(contents)
        async for _ in contents:  # it ends, perhaps after one more with other numbers
            pass


@pytest.mark.xdist_group("browser")
async def test_input_open_sections_and_focus_survive_updates(page: Page, client: Client) -> None:
    jid = await client.queue("mail").put("Greet", {"to": "Ada"}, delay=100)
    await page.goto(f"/job?jid={jid}")
    await expect(page.locator("#live")).to_have_text("live")
    await page.get_by_text("Move, priority, tags…").click()
    await page.get_by_label("Data of the job, as JSON").fill('{"to": "Bob"}')
    await page.get_by_label("Tags").fill("half a wo")
    job = await existing_job(client, jid)
    await job.tag("seen")
    await expect(page.locator(".facts")).to_contain_text("seen")
    assert await page.get_by_label("Data of the job, as JSON").input_value() == '{"to": "Bob"}'
    assert await page.get_by_label("Tags").input_value() == "half a wo"
    assert await page.evaluate("document.activeElement.name") == "tags"


@pytest.mark.xdist_group("browser")
async def test_page_shows_an_outage_and_recovers(browser: Browser, own_server: OwnServer) -> None:
    async with (
        Client(own_server.url) as client,
        served(create_app(client, identify=OPEN)) as address,
        browser_context(browser, address) as context,
    ):
        page = await context.new_page()
        await client.queue("mail").put("Greet", {})
        await page.goto("/queues")
        await expect(page.locator("#live")).to_have_text("live")
        own_server.kill()
        await expect(page.locator("h1")).to_have_text("Redis is unavailable", timeout=60_000)
        await expect(page.locator("main")).to_contain_text("reloads when Redis")
        own_server.start()
        await expect(page.locator("h1")).to_contain_text("Queues", timeout=60_000)
        await expect(page.locator("#live")).to_have_text("live")


async def test_live_pages_leave_half_of_the_process_to_requests(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    app, spent = create_app(client, identify=OPEN), []

    async def render(_renderer: Renderer, request: PageRequest) -> str:
        began = time.process_time()
        while time.process_time() - began < 0.05:
            pass
        spent.append(time.process_time() - began)
        return f"{request.path} {len(spent)}"

    monkeypatch.setattr(Renderer, "render_contents", render)
    async with served(app) as site, AsyncExitStack() as stack:
        http = await stack.enter_async_context(entered(site))
        pages = [
            await stack.enter_async_context(stream(http, f"/jobs?filter={number}"))
            for number in range(MAX_STREAMS_PER_READER)
        ]
        for page in pages:
            await anext(page)
        count, began = len(spent), time.monotonic()
        for page in pages:
            await anext(page)
        assert sum(spent[count:]) <= 0.6 * (time.monotonic() - began)
