"""Executors in other processes get the package, read and put in parallel."""

from __future__ import annotations

import asyncio
import json
import sys

import pytest

from aioqless import Client
from tests.contrib.lake.test_events import complete_jobs


@pytest.mark.long
async def test_executors_read_and_put_and_a_repeated_task_puts_nothing_twice(
    client: Client,
) -> None:
    await complete_jobs(client, 150)
    command = [
        sys.executable,
        "-m",
        "tests.contrib.lake.cluster",
        str(client.url),
        client.namespace,
    ]
    process = await asyncio.create_subprocess_exec(
        *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    out, complaints = await asyncio.wait_for(process.communicate(), 300)
    assert process.returncode == 0, complaints.decode()[-3000:]
    found = json.loads(out.decode().splitlines()[-1])
    assert await client.queue("bulk").length() == 1_500 and found["jobs"] == 1_650
    assert found["executors"] == 2 and len(found["parts"]) > 1 and sum(found["parts"]) == 1_650
    assert found["from"] and all("aioqless.zip" in file for file in found["from"])
