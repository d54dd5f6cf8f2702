"""Steps on the page of a job."""

from __future__ import annotations

import httpx
import pytest

from aioqless import Client
from aioqless.contrib.durable.generated_commands import DurableCommands
from tests.contrib.dashboard.steps import do


@pytest.fixture
async def jid(client: Client) -> str:
    """Return the jid of a failed job that has stored two steps."""
    jid = await client.queue("mail").put("Greet", {})
    [job] = await client.queue("mail").pop(worker="ann")
    for name, result in (("plan", '["tea"]'), ("draft", '{"password": "hunter2"}')):
        await DurableCommands(client.internals.store).step(
            jid=jid, worker="ann", kind="step", name=name, result=result
        )
    await job.fail("no such word", group="typo")
    return jid


async def test_steps_are_shown_with_redacted_values(http: httpx.AsyncClient, jid: str) -> None:
    page = (await http.get(f"/job?jid={jid}")).text
    assert "Steps" in page and "Step plan stored" in page and "tea" in page
    assert "hunter2" not in page


async def test_job_is_retried_from_a_step(
    http: httpx.AsyncClient, client: Client, jid: str
) -> None:
    said = await do(http, "retry", jid=jid, from_step="draft")
    assert "re-queued in mail from draft" in said
    assert [step.name for step in await client.jobs.steps(jid)] == ["plan"]


async def test_unknown_step_is_a_message(http: httpx.AsyncClient, jid: str) -> None:
    assert "is not a stored step" in await do(http, "retry", jid=jid, from_step="unknown")


async def test_form_sends_the_signal_that_a_job_waits_for(
    http: httpx.AsyncClient, client: Client
) -> None:
    jid = await client.queue("desk").put("Refund", {})
    await client.queue("desk").pop(worker="ann")
    commands = DurableCommands(client.internals.store)
    await commands.wait(jid=jid, worker="ann", wait_kind="wait", name="approval", timeout=60)
    await client.internals.store.release(jid=jid, worker="ann", waiting=["wait:approval"])
    page = (await http.get(f"/job?jid={jid}")).text
    assert "it waits for signal approval" in page and "Send signal" in page
    assert "not JSON" in await do(http, "signal", jid=jid, name="approval", data="yes")
    assert "Signal approval sent" in await do(
        http, "signal", jid=jid, name="approval", data='{"ok": true}'
    )
    assert "Send signal</button>" not in (await http.get(f"/job?jid={jid}")).text
    sent = {step.kind: step.value for step in await client.jobs.steps(jid)}
    assert sent["signal"] == {"ok": True}
