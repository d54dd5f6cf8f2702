"""What code under test puts, without Redis."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from aioqless import AioqlessError, Client, InvalidData, Job, chain, job
from aioqless.testing import MemoryClient, PutJob, put_jobs


@job(klass="Greet", queue="mail")
async def greet(job: Job[Any], name: str) -> None: ...


@job(klass="Sweep", unique=())
async def sweep(job: Job[Any]) -> None: ...


async def test_puts_are_returned_in_order(aioqless_memory_client: MemoryClient) -> None:
    async with aioqless_memory_client as client:
        jid = await client.put(greet.data(name="Ada"), delay=timedelta(minutes=1), tags=["new"])
        await client.queue("other").put("Elsewhere", [1], expires_in=5, context={"a": "b"})
        assert put_jobs(client) == [
            PutJob("Greet", {"name": "Ada"}, "mail", {"delay": 60, "tags": ["new"]}, jid),
            PutJob(
                "Elsewhere",
                [1],
                "other",
                {"expires_in": 5, "context": {"a": "b"}},
                put_jobs(client)[1].jid,
            ),
        ]
        assert [put.jid for put in put_jobs(client, greet.klass)] == [jid]


async def test_put_jobs_selects_by_handler_or_klass(aioqless_memory_client: MemoryClient) -> None:
    async with aioqless_memory_client as client:
        await client.put_many([greet.data(name="Ada"), sweep.data()])
        for selected in (greet, greet.klass):
            assert [put.klass for put in put_jobs(client, selected)] == ["Greet"]
        for wrong in (greet.fn, greet.data(name="Ada"), 5):
            with pytest.raises(TypeError, match="a handler or the name of a klass"):
                put_jobs(client, wrong)  # type: ignore[arg-type]  # on purpose


async def test_many_jobs_and_workflows_are_kept(aioqless_memory_client: MemoryClient) -> None:
    async with aioqless_memory_client as client:
        await client.put_many([greet.data(name="a"), greet.data(name="b")])
        await client.queue("mail").put_flow(chain(sweep.data(), greet.data(name="c")))
        await asyncio.gather(*(client.put(greet.data(name=name)) for name in "de"))
        puts = put_jobs(client)
    assert [put.data.get("name") for put in puts if put.klass == "Greet"] == list("abcde")
    first, second = puts[2], puts[3]
    assert first.options["constraints"] == {"unique": "Sweep", "until": "done"}
    assert second.options["depends"] == [first.jid]


async def test_jobs_are_checked(aioqless_memory_client: MemoryClient) -> None:
    async with aioqless_memory_client as client:
        with pytest.raises(InvalidData):
            await client.queue("mail").put(greet, {"nme": "Ada"})
        with pytest.raises(TypeError, match="delya"):
            await client.put(greet.data(name="Ada"), delya=1)  # type: ignore[call-arg]  # wrong
        assert put_jobs(client) == []


async def test_whatever_else_needs_redis_is_refused(aioqless_memory_client: MemoryClient) -> None:
    async with aioqless_memory_client as client:
        with pytest.raises(AioqlessError, match="a MemoryClient can't run get"):
            await client.jobs.get("a")


def test_jobs_of_another_client_are_in_redis() -> None:
    with pytest.raises(TypeError, match="put_jobs needs a MemoryClient"):
        put_jobs(Client("redis://localhost"))  # type: ignore[arg-type]  # on purpose
