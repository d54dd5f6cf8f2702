"""With executors that are processes of their own: what they need is sent to them, and they read and
put side by side."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

import pytest

from aioqless import Client
from tests.contrib.lake.test_events import ended


@pytest.mark.long
async def test_executors_elsewhere_read_and_put_and_a_task_that_is_tried_again_puts_nothing_twice(
    client: Client, tmp_path: Path
) -> None:
    await ended(client, 150)
    command = [
        sys.executable,
        "-m",
        "tests.contrib.lake.cluster",
        str(client.url),
        client.namespace,
        str(tmp_path / "checkpoint"),
    ]
    process = await asyncio.create_subprocess_exec(
        *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    out, complaints = await asyncio.wait_for(process.communicate(), 300)
    assert process.returncode == 0, complaints.decode()[-3000:]
    told = json.loads(out.decode().splitlines()[-1])
    assert await client.queue("bulk").length() == 1_500 and told["jobs"] == 1_650
    assert told["executors"] == 2 and len(told["parts"]) > 1 and sum(told["parts"]) == 1_650
    assert told["from"] and all("aioqless.zip" in file for file in told["from"])
    assert told["events"] == [150]
