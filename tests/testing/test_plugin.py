"""The pytest plugin in another project's tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.projects import run_pytest

SOMEBODYS = """
import asyncio
import aioqless
from aioqless.testing import run_jobs

ran = []

@aioqless.job
async def greet(job: aioqless.Job, name: str) -> None:
    ran.append(name)

def test_greets(aioqless_client):
    async def greets():
        async with aioqless_client as client:
            await client.queue("default").put(greet.data(name="Ada"))
            await run_jobs(client, greet)
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
            await run_jobs(client, greet)
    asyncio.run(later())
    assert ran == ["Ada", "Eve"]
"""


def test_fixtures_work_without_an_asyncio_plugin(tmp_path: Path) -> None:
    (tmp_path / "test_somebodys.py").write_text(SOMEBODYS, "utf-8")
    assert "3 passed" in run_pytest(tmp_path, "-p", "no:asyncio")


COROUTINES = """
import aioqless
from aioqless.testing import run_jobs, put_jobs
{mark}

@aioqless.job
async def greet(job: aioqless.Job, name: str) -> None: ...

async def test_greets(aioqless_client):
    async with aioqless_client as client:
        await client.queue("mail").put(greet.data(name="Ada"))
        await run_jobs(client, greet)
        assert await client.queue("mail").length() == 0

async def test_puts(aioqless_memory_client):
    async with aioqless_memory_client as client:
        await client.put(greet.data(name="Ada"))
        assert [put.data for put in put_jobs(client)] == [{{"name": "Ada"}}]
"""
MARKED = "import pytest; pytestmark = pytest.mark.asyncio"


@pytest.mark.parametrize(("mode", "mark"), [("strict", MARKED), ("auto", "")])
def test_fixtures_work_in_both_modes_of_pytest_asyncio(
    tmp_path: Path, mode: str, mark: str
) -> None:
    (tmp_path / "test_app.py").write_text(COROUTINES.format(mark=mark), "utf-8")
    assert "2 passed" in run_pytest(tmp_path, "-o", f"asyncio_mode={mode}")


FORGETS = """
import aioqless

@aioqless.job
async def greet(job: aioqless.Job) -> None: ...

def test_view():
    greet.put()
"""


def test_test_in_which_a_put_was_never_awaited_fails(tmp_path: Path) -> None:
    (tmp_path / "test_app.py").write_text(FORGETS, "utf-8")
    with pytest.raises(
        AssertionError, match=r"test_app\.py:8: the put of .*greet was never awaited"
    ):
        run_pytest(tmp_path)
