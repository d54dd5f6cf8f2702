"""Data of former versions is read, processed to the end, and shared with them."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import Any

import pytest

import aioqless
from aioqless import Client, Job, Settings, Worker, job
from aioqless.client.archive.stream import Archive
from aioqless.contrib.encryption import Encryption
from aioqless.contrib.human_tasks import Person, TaskQueue
from tests.conftest import Until
from tests.upgrades.snapshot import FOLDER, SEALED_WITH, THEN, everything, stored, written

VERSIONS = sorted(FOLDER.glob("*.jsonl"))
KEYS = Path(aioqless.__file__).parent / "lua" / "lib" / "keys.lua"
BRIEF = {"request", "todo", "left", "fallen"}  # kept from one call to the next
NO_LONGER = {"x:pruned"}  # keys that only former versions write
JIDS = {
    "waiting", "delayed", "dependent", "alone", "few", "late", "flow-1", "flow-2", "completed",
    "failed", "retried", "exhausted", "running",
    "reserved", "in-a-paused-queue",
}  # fmt: skip


def entries(version: Path, namespace: str) -> list[dict[str, Any]]:
    """A snapshot, for another namespace than its own."""
    lines = [json.loads(line) for line in version.read_text().splitlines()]
    return [line | {"key": namespace + line["key"].removeprefix("ql")} for line in lines]


@pytest.fixture(params=VERSIONS, ids=lambda version: version.stem)
async def left(request: pytest.FixtureRequest, client: Client) -> AsyncIterator[Client]:
    """What a version left, an hour and more later, and who has its keys."""
    await stored(client.redis, entries(request.param, client.namespace))
    async with Client(
        client.url, namespace=client.namespace, codec=Encryption(SEALED_WITH)
    ) as client:
        yield client


@pytest.fixture
async def latest(client: Client) -> Client:
    """What this version leaves, as it was written down."""
    await stored(client.redis, entries(FOLDER / f"{aioqless.__version__}.jsonl", client.namespace))
    return client


async def jobs_of(client: Client) -> dict[str, Job]:
    """All jobs that were left."""
    prefix = f"{client.namespace}:j:"
    keys = [key.decode() async for key in client.redis.scan_iter(f"{prefix}*", _type="hash")]
    return {
        job.jid: job
        for job in await client.jobs.multiget(*(key.removeprefix(prefix) for key in keys))
    }


def test_snapshot_of_this_version_exists() -> None:
    """Else: python -m tests.upgrades.snapshot."""
    assert aioqless.__version__ in [version.stem for version in VERSIONS]


def test_snapshot_has_each_kind_of_key() -> None:
    """A kind that is new belongs into `everything`, and into another snapshot."""
    kinds = re.findall(
        r"^-- (\S+).*\nfunction keys\..*ns \.\. ':x:([\w:]+?):?'.* end$",
        KEYS.read_text(),
        re.MULTILINE,
    )
    assert len(kinds) > 20
    kept = {name for what, name in kinds if what != "channel:"} - BRIEF
    names = [line["key"] for line in entries(FOLDER / f"{aioqless.__version__}.jsonl", "ql")]
    assert {
        kind for kind in kept if not any(name.startswith(f"ql:x:{kind}") for name in names)
    } == set()


@pytest.mark.parametrize("version", VERSIONS, ids=lambda version: version.stem)
async def test_this_version_writes_the_same_keys_and_fields_as_former_ones(
    version: Path, client: Client
) -> None:
    """A field or key that changes its meaning would be a break; one that comes new is none."""
    now = Client(client.url, namespace=client.namespace, clock=lambda: THEN, name="snapshot")
    async with now:
        await everything(now)
        mine = {line["key"]: line for line in await written(client.redis, client.namespace)}
    former = [
        line
        for line in entries(version, client.namespace)
        if line["key"].removeprefix(f"{client.namespace}:") not in NO_LONGER
    ]
    for line in former:
        here = mine[line["key"]]
        assert here["type"] == line["type"], line["key"]
        if line["type"] == "hash":
            assert here["value"].keys() >= line["value"].keys(), line["key"]


async def test_every_job_is_read_with_all_its_fields(left: Client) -> None:
    jobs = await jobs_of(left)
    assert jobs.keys() >= JIDS
    waiting = jobs["waiting"]
    assert (waiting.priority, waiting.tags, waiting.retries, waiting.tracked) == (
        -3,
        ["red", "blue", "watched"],
        2,
        True,
    )
    assert waiting.raw_data == '{"n":[],"big":12345678901234567}'
    assert jobs["late"].context == {"trace": "abc"}
    assert (jobs["failed"].failure and jobs["failed"].failure.group) == "broken"
    assert (jobs["exhausted"].state, jobs["running"].state, jobs["running"].worker) == (
        "failed",
        "running",
        "worker-running",
    )
    assert await left.check() == []


async def test_every_job_runs_to_its_end(left: Client, until: Until) -> None:
    @job(klass="Greet", aliases=("Judge",))
    async def greet(job: Job[Any]) -> None:
        pass

    await left.config.set("grace-period", 0)
    await left.queue("closed").unpause()
    jobs = await jobs_of(left)
    for jid, found in jobs.items():
        if found.state == "failed":
            await left.jobs.retry(jid)
    for jid in ("interval", "cron"):
        recurring = await left.jobs.recurring(jid)
        assert recurring is not None and not recurring.paused
    async with Worker(left, greet, settings=Settings(queues=("*",), poll=0.05)):
        await until(lambda: _all_complete(left, jobs), 20)
    made = [each.jid async for each in left.recurring()]
    assert set(made) == {"interval", "cron", "paused"}


async def _all_complete(client: Client, jids: Iterable[str]) -> bool:
    return {each.state for each in await client.jobs.multiget(*jids)} == {"complete"}


async def test_resolving_check_prunes_old_statistics_of_former_versions(
    left: Client,
) -> None:
    assert await left.check(resolve=True) == []
    keys = [
        key.decode().removeprefix(f"{left.namespace}:")
        async for key in left.redis.scan_iter(f"{left.namespace}:*")
    ]
    assert [key for key in keys if key.startswith("s:") or key in NO_LONGER] == []


async def test_data_beside_jobs_is_read(latest: Client) -> None:
    found = await latest.jobs.get("with-a-result")
    assert found is not None and await found.result() == [1]
    state = await Archive(latest.store).state()
    assert (state.on, state.length, state.reader) == (True, 1, "lake")
    trail = await latest.store.trail_list()
    assert [(act["who"], act["act"]) for act in trail] == [("ann", "cancel")]
    assert [act["act"] for act in await latest.store.trail_logins()] == ["login"]
    assert await latest.store.session_read(ids=["known", "unknown"]) == [
        "of-a-password",
        False,
    ]
    assert await latest.config.get("aged-failed-history") in (10**9, str(10**9))


async def test_limits_unique_keys_and_skips_still_apply(latest: Client) -> None:
    assert await latest.queue("mail").put("Greet", jid="another", unique="user") == "alone"
    assert (
        await latest.queue("shared").pop(2, worker="now") == []
    )  # the one that has the lock has its grace now
    await latest.store.timeout(jids=["holding"])
    (first,) = await latest.queue("shared").pop(2, worker="now")
    assert first.jid in ("holding", "held-back")
    reserved = await TaskQueue(latest, "desk").reserve(Person("ann", "1"))
    assert reserved is not None and reserved.job.jid == "handed-over"
    assert await TaskQueue(latest, "desk").reserve(Person("ann", "2")) is None


async def test_encrypted_data_is_decrypted_with_the_key(left: Client) -> None:
    found = await left.jobs.get("sealed")
    if found is not None:  # the first to be written down had none
        assert found.data == {"card": 1} and "card" not in found.raw_data
