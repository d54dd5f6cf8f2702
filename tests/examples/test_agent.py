"""The agent example: a person approves, and no call of the model is made twice."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from aioqless import Client, Settings, Worker
from examples.agent import jobs, model
from tests.conftest import Until


@pytest.fixture
def url(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setattr(model.Model, "calls", 0)
    with model.serve() as url:
        yield url


def is_parked(client: Client, jid: str) -> Callable[[], Any]:
    async def look() -> bool:
        job = await client.jobs.get(jid)
        return job is not None and job.held_back is not None

    return look


@pytest.mark.parametrize(("ok", "said"), [(True, "sent"), (False, "ada said no")])
async def test_agent_sends_what_a_person_approves(
    client: Client, url: str, until: Until, capsys: pytest.CaptureFixture[str], ok: bool, said: str
) -> None:
    jid = await client.put(jobs.research.data(question="rust", model=url))
    settings = Settings(queues=["agents"], park_after=0)
    async with Worker(client, jobs, settings=settings):
        await until(is_parked(client, jid))
        assert model.Model.calls == 3
    async with Worker(client, jobs, settings=settings):  # another worker, days later
        await client.jobs.signal(jid, "approval 2", jobs.Approval(ok=ok, by="ada"))
        assert await client.jobs.result(jid, timeout=30) == said
    assert model.Model.calls == 4
    assert ("About rust" in capsys.readouterr().out) == ok
