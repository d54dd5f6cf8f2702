"""Alarms of the overview: lost workers, and queues without workers."""

from __future__ import annotations

import asyncio
import contextlib
import re
import sys
from asyncio.subprocess import DEVNULL
from collections.abc import AsyncIterator
from dataclasses import replace

import httpx
import pytest
from starlette.applications import Starlette

from aioqless import Client
from aioqless.client.overview import OverviewReader
from aioqless.contrib.dashboard.audit_log import read_entries
from aioqless.contrib.dashboard.pages.overview import ALARM_FOR, MAX_QUEUES, find_alarms
from aioqless.errors import NoSuchWorker
from tests.conftest import Until
from tests.contrib.dashboard import jobs
from tests.contrib.dashboard.conftest import entered, worked
from tests.contrib.dashboard.steps import do

pytestmark = pytest.mark.long


@pytest.fixture
async def process(client: Client, redis_url: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """Run a worker in its own process."""
    options = ["-q", "mail", "--url", redis_url, "--namespace", client.namespace]
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "aioqless",
        "worker",
        "tests.contrib.dashboard.jobs",
        *options,
        stderr=DEVNULL,
    )
    yield process
    with contextlib.suppress(ProcessLookupError):
        process.kill()
    await process.wait()


async def test_killed_worker_raises_an_alarm(
    http: httpx.AsyncClient,
    client: Client,
    process: asyncio.subprocess.Process,
    until: Until,
) -> None:
    (worker,) = await until(client.workers.counts)
    name = worker.name

    async def alarmed() -> str | None:
        page = (await http.get("/")).text
        return page if "Workers disappeared" in page else None

    async def paused() -> bool:
        try:
            return (await client.workers.pause("paused-1")).paused
        except NoSuchWorker:  # it doesn't listen yet
            return False

    async with worked(client, "paused-1", queues=("mail",)):
        await until(paused)
        page = (await http.get("/")).text
        assert "disappeared" not in page and name in page
        process.kill()
        page = await until(alarmed, patience=60)
        assert (
            f"Workers disappeared without shutting down: {name}." in page
        )  # not about the paused one, which is silent too
        assert "offline, last seen" in page and ">offline<" in (await http.get("/workers")).text
        assert "disappeared without shutting down" in (await http.get(f"/worker?name={name}")).text
    sample = await OverviewReader(client).read()
    assert name in sample.lost
    assert not any(
        "disappeared" in each.problem
        for each in find_alarms(replace(sample, when=sample.when + ALARM_FOR))
    )


async def test_queue_without_workers_raises_an_alarm_at_any_place_of_the_list(
    http: httpx.AsyncClient, client: Client, earlier: Client
) -> None:
    async with worked(client, queues=("mail",)):
        await earlier.queue("unserved").put("Greet", {})
        for number in range(MAX_QUEUES + 3):
            await client.queue(f"busy-{number}").put_many(
                [jobs.resize.data(path="a.jpg") for _ in range(3)]
            )
            await client.queue(f"busy-{number}").pop(worker="ann")
        page = (await http.get("/")).text
    assert "Jobs are waiting, and no worker takes them: unserved." in page
    assert 'href="/queue?name=unserved"' in page  # first in the list, too


async def test_limited_queue_names_its_limit_and_asks_for_no_worker(
    http: httpx.AsyncClient, client: Client, earlier: Client
) -> None:
    await client.config.set("mail-rate-limit", "1/3600")
    for _ in range(3):
        await earlier.queue("mail").put("Greet", {})
    (job,) = await client.queue("mail").pop(worker="ruby")  # does not say what it serves
    await job.complete()
    for page in [(await http.get(path)).text for path in ("/", "/queue?name=mail")]:
        assert "1 of 1 starts in 3600 s used (rate limit), next in " in page
        assert "no worker" not in page and "Start a worker" not in page


async def test_urgent_alarms_come_first(client: Client, earlier: Client) -> None:
    await earlier.queue("held").put("Greet", {})
    await earlier.queue("held").pause()
    await earlier.queue("alone").put("Greet", {})
    await client.internals.store.beat(worker="ann", process="{}", queues=["held"])
    await client.queue("other").pop(worker="ann")
    first, second = find_alarms(await OverviewReader(client).read())
    assert first.is_urgent and "no worker takes them: alone" in first.problem
    assert not second.is_urgent and "Paused queues" in second.problem


async def test_alarm_is_dismissed_by_a_form_in_one_browser_until_it_ends(
    site: str, http: httpx.AsyncClient, client: Client
) -> None:
    held = client.queue("held")
    await held.put("Greet", {})
    await held.pause()
    await client.queue("other").pop(worker="ann")
    problem = "Paused queues with waiting jobs: held."

    async def page() -> str:
        await http.get("/")
        return (await http.get("/")).text

    form = (await page()).split(problem)[1]
    key = re.search(r'name="key" value="(\w+)"', form)
    assert key
    await do(http, "dismiss", key=key[1])
    shown = await page()
    assert problem not in shown and '<li class="dismissed">' in shown
    async with entered(site) as other:
        assert problem in (await other.get("/")).text
    await do(http, "dismiss")
    assert problem in await page()
    assert await read_entries(client, logins=False, before=None, count=9) == []


async def test_dismissed_alarm_that_has_ended_and_begins_again_is_shown(
    app: Starlette, http: httpx.AsyncClient, client: Client
) -> None:
    overviews, held = app.state.dashboard.overviews, client.queue("held")
    await held.put("Greet", {})
    await held.pause()
    await client.queue("other").pop(worker="ann")
    (alarm,) = find_alarms(await overviews.read(max_age=0))
    await do(http, "dismiss", key=alarm.key)
    for change, is_shown in ((held.resume, False), (held.pause, True)):
        await change()
        await overviews.read(max_age=0)
        assert ("Paused queues" in (await http.get("/")).text) == is_shown
