"""The web example as its own process, over HTTP."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import struct
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from aioqless import Client
from aioqless.contrib import private_redis
from tests.conftest import Until, existing_job
from tests.examples.conftest import environment_of

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[2]


@pytest.fixture
async def client(data: Path) -> AsyncIterator[Client]:
    server = await asyncio.to_thread(private_redis.ensure, data)
    async with Client(server.url) as client:
        yield client


class Site:
    """The example while it runs."""

    def __init__(self, data: Path, folder: Path, until: Until, *options: str) -> None:
        self.told = folder / "stderr"
        more = {"XDG_CACHE_HOME": str(folder), "PYTHONUNBUFFERED": "1"}
        self.environment = environment_of(data) | more
        self._until = until
        with self.told.open("wb") as stderr:
            self.process = self.start("-m", "examples.web", "--port", "0", *options, stderr=stderr)

    def start(self, *command: str, stderr: Any = None) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, *command], cwd=ROOT, env=self.environment, stdout=stderr, stderr=stderr
        )

    async def ready(self) -> httpx.AsyncClient:
        """Return a client for it as soon as it answers."""
        found = await self._until(
            lambda: (
                self.process.poll() is not None
                or re.search(r"running on (http://\S+)", self.told.read_text())
            )
        )
        assert found is not True, self.told.read_text()
        return httpx.AsyncClient(base_url=found[1], trust_env=False, timeout=60)

    async def end(self) -> int:
        """Wait for its end; returns its exit code."""
        return await asyncio.to_thread(self.process.wait, 30)


@asynccontextmanager
async def site(
    data: Path, folder: Path, until: Until, *options: str
) -> AsyncIterator[tuple[Site, httpx.AsyncClient]]:
    running = Site(data, folder, until, *options)
    try:
        async with await running.ready() as http:
            yield running, http
    finally:
        if running.process.poll() is None:
            running.process.kill()
        await running.end()


async def order(http: httpx.AsyncClient, place: str, size: str = "small") -> str:
    """Order a picture; returns its page."""
    answer = await http.post("/pictures", data={"place": place, "size": size})
    assert answer.status_code == 303
    return answer.headers["location"]


async def stream(http: httpx.AsyncClient, page: str) -> AsyncIterator[dict[str, Any]]:
    async with http.stream("GET", f"{page}/events") as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        async for line in answer.aiter_lines():
            if line:
                yield json.loads(line.removeprefix("data: "))


async def test_ordered_picture_is_seen_with_its_progress(
    data: Path, tmp_path: Path, until: Until
) -> None:
    async with site(data, tmp_path, until) as (_, http):
        page = await order(http, "The whole")
        assert "<noscript>" in (await http.get(page)).text
        told = [each async for each in stream(http, page)]
        shares = [each["share"] for each in told]
        assert shares == sorted(shares) and len(set(shares)) > 5
        files = {each["file"] for each in told} - {None}
        assert len(files) > 1  # coarse, then finer
        assert {each["state"] for each in told[:-1]} <= {"waiting", "running"} and told[-1][
            "state"
        ] == "complete"

        picture = (await http.get(told[-1]["file"])).content
        assert picture.startswith(b"\x89PNG") and struct.unpack(">II", picture[16:24]) == (480, 270)
        assert [each async for each in stream(http, page)] == [
            told[-1]
        ]  # a reconnecting client gets the present state
        answer = await http.get(page)
        assert answer.headers["content-security-policy"] == "default-src 'self'"
        assert told[-1]["file"] in answer.text and "<noscript>" not in answer.text
        assert f'href="{page}"' in (await http.get("/")).text  # among the latest


async def test_unknown_pictures_and_sizes_are_refused(
    client: Client, data: Path, tmp_path: Path, until: Until
) -> None:
    async with site(data, tmp_path, until, "--no-worker") as (_, http):
        assert (await http.post("/pictures", data={"place": "Atlantis"})).status_code == 400
        assert (await http.post("/pictures", content=b"\xff")).status_code == 400
        other = await client.queue("mail").put("Greet", {"name": "Ada"})
        for jid in ("none", other):
            assert [
                (await http.get(f"/pictures/{jid}{more}")).status_code for more in ("", "/events")
            ] == [404, 404]


async def test_stopping_server_finishes_the_picture(
    client: Client, data: Path, tmp_path: Path, until: Until
) -> None:
    async with site(data, tmp_path, until) as (running, http):
        page = await order(http, "Seahorses")
        states = []
        async for each in stream(http, page):
            states.append(each["state"])
            if len(states) == 3:
                running.process.send_signal(signal.SIGTERM)
        assert await running.end() == 0, running.told.read_text()
    assert (await existing_job(client, page.rpartition("/")[2])).state == "complete"
    told = running.told.read_text()
    assert (
        '"worker.shutdown_started"' in told
        and '"worker.stopped"' in told
        and "Traceback" not in told
    )


async def test_stopping_server_ends_open_streams(data: Path, tmp_path: Path, until: Until) -> None:
    async with site(data, tmp_path, until, "--no-worker") as (running, http):
        states = []
        async for each in stream(http, await order(http, "Seahorses")):
            states.append(each["state"])
            running.process.send_signal(signal.SIGTERM)
        assert states == ["waiting"] and await running.end() == 0
    assert "Traceback" not in running.told.read_text()


async def test_separate_worker_draws_the_picture(data: Path, tmp_path: Path, until: Until) -> None:
    async with site(data, tmp_path, until, "--no-worker") as (running, http):
        page = await order(http, "The whole")
        with (tmp_path / "worker").open("wb") as stderr:
            worker = running.start(
                "-m",
                "aioqless",
                "worker",
                "examples.web.jobs",
                "-q",
                "pictures",
                "--burst",
                stderr=stderr,
            )
        told = [each async for each in stream(http, page)]
        assert told[-1]["state"] == "complete" and len(told) > 3
        assert await asyncio.to_thread(worker.wait, 30) == 0
