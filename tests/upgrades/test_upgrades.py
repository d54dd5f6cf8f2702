"""Data that versions up to this one left are read, worked to the end, and shared with who wrote them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import aioqless
from aioqless import Client, Job, Settings, Worker, job
from tests.conftest import Until

from .snapshot import FOLDER, THEN, everything, stored, written

VERSIONS = sorted(FOLDER.glob("*.jsonl"))
JIDS = {
    "waiting", "delayed", "dependent", "alone", "few", "late", "flow-1", "flow-2", "completed", "failed", "retried", "exhausted", "running",
    "reserved", "in-a-paused-queue",
}  # fmt: skip


def entries(version: Path, namespace: str) -> list[dict[str, Any]]:
    """A snapshot, for another namespace than its own."""
    lines = [json.loads(line) for line in version.read_text().splitlines()]
    return [line | {"key": namespace + line["key"].removeprefix("ql")} for line in lines]


@pytest.fixture(params=VERSIONS, ids=lambda version: version.stem)
async def left(request: pytest.FixtureRequest, client: Client) -> Client:
    """What a version left, an hour and more later."""
    await stored(client.redis, entries(request.param, client.namespace))
    return client


def test_this_version_has_left_something() -> None:
    """Else: python -m tests.upgrades.snapshot."""
    assert aioqless.__version__ in [version.stem for version in VERSIONS]


@pytest.mark.parametrize("version", VERSIONS, ids=lambda version: version.stem)
async def test_what_this_version_writes_has_no_other_shape_than_what_is_read_of_former_ones(version: Path, client: Client) -> None:
    """A field or key that changes its meaning would be a break; one that comes new is none."""
    now = Client(client.url, namespace=client.namespace, clock=lambda: THEN, name="snapshot")
    async with now:
        await everything(now)
        mine = {line["key"]: line for line in await written(client.redis, client.namespace)}
    for line in entries(version, client.namespace):
        here = mine[line["key"]]
        assert here["type"] == line["type"], line["key"]
        if line["type"] == "hash":
            assert here["value"].keys() >= line["value"].keys(), line["key"]


async def test_every_job_is_read_with_all_that_it_carries(left: Client) -> None:
    jobs = {each.jid: each for each in await left.jobs.multiget(*JIDS)}
    assert jobs.keys() == JIDS
    waiting = jobs["waiting"]
    assert (waiting.priority, waiting.tags, waiting.retries, waiting.tracked) == (-3, ["red", "blue", "watched"], 2, True)
    assert waiting.raw_data == '{"n":[],"big":12345678901234567}'
    assert jobs["late"].context == {"trace": "abc"}
    assert (jobs["failed"].failure and jobs["failed"].failure.group) == "broken"
    assert (jobs["exhausted"].state, jobs["running"].state, jobs["running"].worker) == ("failed", "running", "worker-running")
    assert await left.check() == []


async def test_every_job_is_worked_to_its_end(left: Client, until: Until) -> None:
    @job(klass="Greet", aliases=("Judge",))
    async def greet(job: Job[Any]) -> None:
        pass

    await left.config.set("grace-period", 0)
    await left.queue("closed").unpause()
    for jid in ("failed", "exhausted"):
        await left.jobs.revive(jid)
    for jid in ("interval", "cron"):
        recurring = await left.jobs.recurring(jid)
        assert recurring is not None and not recurring.paused
    queues = ("mail", "retried", "running", "review", "closed", "failed", "exhausted")
    async with Worker(left, greet, settings=Settings(queues=queues, poll=0.05)):
        await until(lambda: _all_complete(left), 20)
    made = [each.jid async for each in left.recurring()]
    assert set(made) == {"interval", "cron", "paused"}


async def _all_complete(client: Client) -> bool:
    return {each.state for each in await client.jobs.multiget(*JIDS)} == {"complete"}
