"""`aioqless lake archive` as operators run it."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from aioqless.contrib.lake.cli.lake import archive as archive_command
from aioqless.contrib.lake.lake import Lake
from aioqless.contrib.lake.schema import EVENTS
from aioqless.contrib.partitions import PartitionedClient
from aioqless.contrib.partitions.routing import name_partitions
from tests.contrib.lake.conftest import RunLakeCommand


@pytest.mark.long
@pytest.mark.parametrize("is_stored", [False, True])
def test_partitions_are_archived_in_parallel_into_one_lake(
    run_lake_command: RunLakeCommand,
    redis_url: str,
    namespace: str,
    tmp_path: Path,
    stored_lake: str,
    is_stored: bool,
) -> None:
    import asyncio

    async def end(jids: list[str]) -> None:
        async with PartitionedClient(redis_url, namespace=namespace, partitions=4) as whole:
            await whole.config.set("archive", "on")
            for jid in jids:
                await whole.put("K", jid=jid)
            await whole.jobs.cancel(*jids)

    url = stored_lake if is_stored else str(tmp_path / "lake")
    command = ("archive", "--url", redis_url, "--namespace", namespace, "--partitions", "4")
    for first, last in ((0, 20), (20, 30)):
        asyncio.run(end([f"job-{number}" for number in range(first, last)]))
        code, out, _ = run_lake_command(*command, "--lake", url)
        assert (code, out.split(" in ")[0]) == (0, f"{last - first} events")
    files = Lake(url).table(EVENTS).all_files
    assert sum(each.rows for each in files) == 30
    assert {each.namespace for each in files} == {*name_partitions(namespace, 4)}
    code, out, _ = run_lake_command(*command, "--status")
    assert (code, out.split(";")[0]) == (0, "on")


def test_an_object_store_that_is_away_at_the_start_is_waited_for(
    stored_lake: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = os.environ["AWS_ENDPOINT_URL"]
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    monkeypatch.setattr(archive_command, "_PAUSE", 0.1)
    monkeypatch.setattr(
        archive_command, "print_progress", lambda _: monkeypatch.setenv("AWS_ENDPOINT_URL", place)
    )
    lake = archive_command.open_when_reachable(stored_lake, threading.Event())
    assert lake.table(EVENTS).version == 0


# Commands that are refused, in one process: delta-rs sets up its logs once.
REFUSED = """
import sys
from aioqless.cli.main import main

for url in sys.argv[1:]:
    sys.argv = ["aioqless", "lake", "archive", "--lake", url]
    try:
        main()
    except SystemExit as ended:
        assert ended.code == 1, url
"""


def test_missing_credentials_are_one_line_without_the_logs_of_the_store(tmp_path: Path) -> None:
    urls = [f"{scheme}://bucket/lake" for scheme in ("s3", "gs", "az")]
    refused = subprocess.run(
        [sys.executable, "-c", REFUSED, *urls],
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)},
        capture_output=True, text=True, timeout=300, check=True,
    )  # fmt: skip
    lines = refused.stderr.splitlines()
    assert len(lines) == len(urls) and all("no credentials" in line for line in lines)
