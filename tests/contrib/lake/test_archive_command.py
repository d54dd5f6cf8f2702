"""`aioqless lake archive` as operators run it."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from functools import partial
from pathlib import Path

import pytest

from aioqless import Client
from aioqless.contrib.lake.cli.lake import archive as archive_command
from aioqless.contrib.lake.lake import Lake
from aioqless.contrib.lake.schema import EVENTS
from aioqless.contrib.partitions import PartitionedClient
from aioqless.contrib.partitions.routing import name_partitions
from tests.contrib.lake.conftest import RunLakeCommand
from tests.contrib.lake.object_store import BUCKET


@pytest.fixture
def run(
    run_lake_command: RunLakeCommand,
    store_environment: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
) -> RunLakeCommand:
    """Run `lake archive` with the environment of the object store."""
    for name, value in store_environment.items():
        monkeypatch.setenv(name, value)
    return partial(run_lake_command, "archive")


def test_a_lake_on_an_object_store_is_archived_into(
    run: RunLakeCommand, client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import asyncio

    async def end(jid: str) -> None:
        async with Client(client.url, namespace=client.namespace) as own:
            await own.config.set("archive", "on")
            await own.queue("q").put("K", jid=jid)
            await own.jobs.cancel(jid)

    monkeypatch.chdir(tmp_path)
    url = f"s3://{BUCKET}/{tmp_path.name}/my lake"
    place = ("--url", client.url, "--namespace", client.namespace, "--lake", url)
    for jid in ("a", "b"):
        asyncio.run(end(jid))
        code, out, _ = run(*place)
        assert (code, out.split(" in ")[0]) == (0, "1 events")
    assert sum(each.rows for each in Lake(url).table(EVENTS).all_files) == 2
    assert list(tmp_path.iterdir()) == [], "nothing is written to a local folder of that name"


def test_partitions_are_archived_in_parallel_into_one_lake(
    run: RunLakeCommand, redis_url: str, namespace: str, tmp_path: Path
) -> None:
    import asyncio

    async def end(jids: list[str]) -> None:
        async with PartitionedClient(redis_url, namespace=namespace, partitions=4) as whole:
            await whole.config.set("archive", "on")
            for jid in jids:
                await whole.put("K", jid=jid)
            await whole.jobs.cancel(*jids)

    place = ("--url", redis_url, "--namespace", namespace, "--partitions", "4")
    for first, last in ((0, 20), (20, 30)):
        asyncio.run(end([f"job-{number}" for number in range(first, last)]))
        code, out, _ = run(*place, "--lake", str(tmp_path / "lake"))
        assert (code, out.split(" in ")[0]) == (0, f"{last - first} events")
    files = Lake(str(tmp_path / "lake")).table(EVENTS).all_files
    assert sum(each.rows for each in files) == 30
    assert {each.namespace for each in files} == {*name_partitions(namespace, 4)}
    code, out, _ = run(*place, "--status")
    assert (code, out.split(";")[0]) == (0, "on")


def test_an_object_store_that_is_away_at_the_start_is_waited_for(
    client: Client,
    store_environment: dict[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(archive_command, "_PAUSE", 0.1)
    for name, value in {**store_environment, "AWS_ENDPOINT_URL": "http://127.0.0.1:1"}.items():
        monkeypatch.setenv(name, value)

    def start(_: str) -> None:
        monkeypatch.setenv("AWS_ENDPOINT_URL", store_environment["AWS_ENDPOINT_URL"])

    monkeypatch.setattr(archive_command, "print_progress", start)
    lake = archive_command.open_when_reachable(f"s3://{BUCKET}/{tmp_path.name}", threading.Event())
    assert lake.table(EVENTS).version == 0


def test_missing_credentials_are_one_line_without_the_logs_of_the_store(tmp_path: Path) -> None:
    """In a process of its own, since delta-rs sets up its logs once."""
    own = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    refused = subprocess.run(
        [sys.executable, "-m", "aioqless", "lake", "archive", "--lake", "s3://bucket/lake"],
        env=own,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert refused.returncode == 1
    assert len(refused.stderr.splitlines()) == 1
    assert "no credentials" in refused.stderr
