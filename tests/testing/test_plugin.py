"""The pytest plugin in another project's tests."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SOMEBODYS = """
import asyncio
import aioqless
from aioqless.testing import drain

ran = []

@aioqless.job
async def greet(job: aioqless.Job, name: str) -> None:
    ran.append(name)

def test_greets(aioqless_client):
    async def greets():
        async with aioqless_client as client:
            await client.queue("default").put(greet.data(name="Ada"))
            await drain(client, greet)
    asyncio.run(greets())
    assert ran == ["Ada"]

def test_sees_nothing_of_other_tests(aioqless_client, aioqless_url):
    async def counts():
        async with aioqless_client as client:
            return await client.queues()
    assert asyncio.run(counts()) == [] and aioqless_url.startswith("unix://")

def test_is_later(aioqless_client, aioqless_clock):
    async def later():
        async with aioqless_client as client:
            await client.queue("default").put(greet.data(name="Eve"), delay=3600)
            aioqless_clock.move(3600)
            await drain(client, greet)
    asyncio.run(later())
    assert ran == ["Ada", "Eve"]
"""


def test_fixtures_work_without_an_asyncio_plugin(tmp_path: Path) -> None:
    (tmp_path / "test_somebodys.py").write_text(SOMEBODYS, "utf-8")
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:valkey",
        "-p",
        "no:asyncio",
        "-p",
        "no:cacheprovider",
        str(tmp_path),
    ]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ended.returncode == 0 and "3 passed" in ended.stdout, ended.stdout
