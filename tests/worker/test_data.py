"""Data of a job, read and changed by handlers."""

from __future__ import annotations

import dataclasses
from typing import Any

import pydantic
import pytest

from aioqless import Client, Job, Retry, Snooze, job
from tests.conftest import Until
from tests.worker.conftest import Work
from tests.worker.states import after


@pytest.mark.parametrize("end", [Retry(delay=60), Snooze(60)])
async def test_changed_data_is_stored_when_the_handler_asks_to_run_again(
    client: Client, work: Work, until: Until, end: Exception
) -> None:
    @job(klass="Page")
    async def page(job: Job[Any]) -> None:
        job.data["page"] += 1
        raise end

    jid = await client.queue("mail").put(page, {"page": 1, "rest": []})
    async with work(page):
        later = await after(client, until, jid, "scheduled")
    assert later.data == {"page": 2, "rest": []}
    assert later.remaining == (4 if isinstance(end, Retry) else 5)


async def test_handler_that_takes_no_data_can_set_keys_after_a_refresh(
    client: Client, work: Work, until: Until
) -> None:
    @job(klass="Walk")
    async def walk(job: Job) -> None:
        job.data["page"] = 1
        await job.heartbeat()
        job.data["page"] += 1

    jid = await client.queue("mail").put(walk.data())
    async with work(walk):
        done = await after(client, until, jid, "complete")
    assert done.data == {"page": 2}


async def test_data_of_a_handler_that_takes_none_stays_as_it_was_put(
    client: Client, work: Work, until: Until
) -> None:
    @job(klass="Rest")
    async def rest(job: Job) -> None:
        assert job.data == {}

    jid = await client.queue("mail").put(rest.data())
    async with work(rest):
        done = await after(client, until, jid, "complete")
    assert done.data is None


async def test_jid_of_a_job_put_by_a_handler_is_a_string_everywhere(
    client: Client, work: Work, until: Until
) -> None:
    class Model(pydantic.BaseModel):
        child: str

    @dataclasses.dataclass
    class Made:
        child: str
        children: dict[str, str]

    @job(klass="Child")
    async def child(job: Job[Any], parent: str) -> None: ...

    @job(klass="Parent", result_ttl=60)
    async def parent(job: Job[Any], above: str, model: Model, context: str) -> Made:
        jid = await child.put(parent=above)
        job.data["jid"] = jid
        await job.log("made", child=jid, model=Model(child=jid))
        return Made(jid, {jid: jid})

    above = await client.put(child, {"parent": "none"})
    model = Model(child=above)
    jid = await client.put(
        parent.data(above=above, model=model, context=above), context={"above": above}
    )
    async with work(parent, child, queues=["default"]):
        made = await jid.result(timeout=20)
    assert made.children == {made.child: made.child}
    done = await client.jobs.get(jid)
    assert done is not None
    assert done.data["jid"] == made.child and done.context == {"above": above}
    assert (await client.jobs.get(made.child)) is not None
