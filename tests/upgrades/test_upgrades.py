"""Data of former versions is read, processed to the end, and shared with them."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import Any

import pytest

import aioqless
from aioqless import Client, Job, Key, Settings, Worker, job
from aioqless.client.archive import Archive
from aioqless.contrib.dashboard.generated_commands import DashboardCommands
from aioqless.contrib.encryption import Encryption
from aioqless.contrib.http.generated_commands import HttpCommands
from aioqless.contrib.human_tasks import Person, TaskQueue
from tests.conftest import Until
from tests.upgrades.snapshot import (
    ENCRYPTED_WITH,
    FOLDER,
    THEN,
    dump,
    fetch,
    put_everything,
    restore,
)

VERSIONS = sorted(FOLDER.glob("*.jsonl"))
KEYS = "\n".join(file.read_text() for file in Path(aioqless.__file__).parent.rglob("keys.lua"))
# Reused by later calls, emptied by ticks or as jobs start, or written again by running workers.
BRIEF = {
    *("request", "deferred", "deferred-jids", "deferred-failures", "orphans", "subscriptions"),
    *("overdue", "limit-paused"),
}
PARTITIONED = {"partitions"}  # only in the namespaces of partitions
JIDS = {
    "waiting", "delayed", "dependent", "alone", "few", "late", "flow-1", "flow-2", "completed",
    "failed", "retried", "exhausted", "running",
    "reserved", "in-a-paused-queue",
}  # fmt: skip


def entries(version: Path, namespace: str) -> list[dict[str, Any]]:
    """Return a snapshot's keys, renamed for another namespace."""
    lines = [json.loads(line) for line in version.read_text().splitlines()]
    return [line | {"key": namespace + line["key"].removeprefix("ql")} for line in lines]


@pytest.fixture(params=VERSIONS, ids=lambda version: version.stem)
async def restored(request: pytest.FixtureRequest, client: Client) -> AsyncIterator[Client]:
    """Restore the data of a version, at least an hour old, and return its namespace."""
    await restore(client.redis, entries(request.param, client.namespace))
    async with Client(
        client.url, namespace=client.namespace, codec=Encryption(ENCRYPTED_WITH)
    ) as client:
        yield client


@pytest.fixture
async def latest(client: Client) -> Client:
    """Return the data of this version as its snapshot has it."""
    await restore(client.redis, entries(FOLDER / f"{aioqless.__version__}.jsonl", client.namespace))
    return client


async def jobs_of(client: Client) -> dict[str, Job]:
    """Return all jobs of the snapshot."""
    prefix = f"{client.namespace}:j:"
    keys = [key.decode() async for key in client.redis.scan_iter(f"{prefix}*", _type="hash")]
    return {
        job.jid: job
        for job in await client.jobs.multiget(*(key.removeprefix(prefix) for key in keys))
    }


def test_snapshot_of_this_version_exists() -> None:
    """To write one: python -m tests.upgrades.snapshot."""
    assert aioqless.__version__ in [version.stem for version in VERSIONS]


def test_snapshot_has_each_kind_of_key() -> None:
    """Add a new kind of key to `put_everything`, and write another snapshot."""
    kinds = re.findall(
        r"^-- (\S+).*\nfunction keys\..*ns \.\. ':x:([\w:-]+?):?'.* end$",
        KEYS,
        re.MULTILINE,
    )
    assert len(kinds) > 20
    kept = {name for what, name in kinds if what != "channel:"} - BRIEF - PARTITIONED
    names = [line["key"] for line in entries(FOLDER / f"{aioqless.__version__}.jsonl", "ql")]
    assert {
        kind for kind in kept if not any(name.startswith(f"ql:x:{kind}") for name in names)
    } == set()


@pytest.mark.parametrize("version", VERSIONS, ids=lambda version: version.stem)
async def test_this_version_writes_the_same_keys_and_fields_as_former_ones(
    version: Path, client: Client
) -> None:
    """A changed meaning of a field or key would be incompatible; a new one is compatible."""
    now = Client(client.url, namespace=client.namespace, clock=lambda: THEN, name="snapshot")
    async with now:
        await put_everything(now)
        mine = {line["key"]: line for line in await dump(client.redis, client.namespace)}
    for line in entries(version, client.namespace):
        here = mine[line["key"]]
        assert here["type"] == line["type"], line["key"]
        if line["type"] == "hash":
            assert here["value"].keys() >= line["value"].keys(), line["key"]


async def test_every_job_is_read_with_all_its_fields(restored: Client) -> None:
    jobs = await jobs_of(restored)
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
    assert await restored.check() == []


async def test_every_job_runs_to_its_end(restored: Client, until: Until) -> None:
    @job(klass="Greet", aliases=("Judge", "Take", "Report"))
    async def greet(job: Job[Any]) -> None:
        pass

    await restored.config.set("grace-period", 0)
    await restored.queue("closed").resume()
    jobs = await jobs_of(restored)
    for jid, found in jobs.items():
        if found.state == "failed":
            await restored.jobs.retry(jid)
    for jid in ("interval", "cron"):
        recurring = await restored.recurring.get(jid)
        assert recurring is not None and not recurring.paused
    async with Worker(restored, greet, fetch, settings=Settings(queues=("*",), poll=0.05)):
        await until(lambda: _all_complete(restored, jobs))
    made = [each.jid async for each in restored.recurring.all()]
    assert set(made) == {"interval", "cron", "paused"}


async def _all_complete(client: Client, jids: Iterable[str]) -> bool:
    return {each.state for each in await client.jobs.multiget(*jids)} == {"complete"}


async def test_resolving_check_prunes_old_statistics_of_former_versions(
    restored: Client,
) -> None:
    assert await restored.check(resolve=True) == []
    keys = [
        key.decode().removeprefix(f"{restored.namespace}:")
        async for key in restored.redis.scan_iter(f"{restored.namespace}:*")
    ]
    assert [key for key in keys if key.startswith("s:")] == []


async def test_data_beside_jobs_is_read(latest: Client) -> None:
    found = await latest.jobs.get("with-a-result")
    assert found is not None and await found.result() == [1]
    state = await Archive(latest.internals.store).state()
    assert (state.on, state.length, state.reader) == (True, 1, "lake")
    entries = await DashboardCommands(latest.internals.store).audit_log_list()
    assert [(act["who"], act["act"]) for act in entries] == [("ann", "cancel")]
    assert [
        act["act"] for act in await DashboardCommands(latest.internals.store).audit_log_logins()
    ] == ["login"]
    assert await HttpCommands(latest.internals.store).session_read(ids=["known", "unknown"]) == [
        "of-a-password",
        False,
    ]
    assert await latest.config.get("aged-failed-history") in (10**9, str(10**9))


async def test_limits_unique_keys_and_skips_still_apply(latest: Client) -> None:
    assert await latest.queue("mail").put("Greet", jid="another", unique=Key("user")) == "alone"
    assert (
        await latest.queue("shared").pop(2, worker="now") == []
    )  # the job with the lock is in its grace period now
    await latest.internals.store.timeout(jids=["holding"])
    (first,) = await latest.queue("shared").pop(2, worker="now")
    assert first.jid in ("holding", "held-back")
    (tenant,) = await latest.queue("imports").tenants()
    assert (tenant.key, tenant.waiting) == ("customer=7", 2)
    reserved = await TaskQueue(latest, "desk").reserve(Person("ann", "1"))
    assert reserved is not None and reserved.job.jid == "handed-over"
    assert await TaskQueue(latest, "desk").reserve(Person("ann", "2")) is None


async def test_encrypted_data_is_decrypted_with_the_key(restored: Client) -> None:
    found = await restored.jobs.get("encrypted")
    assert found is not None
    assert found.data == {"card": 1} and "card" not in found.raw_data
