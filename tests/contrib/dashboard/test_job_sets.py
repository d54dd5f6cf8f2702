"""Job sets on the dashboard."""

from __future__ import annotations

import httpx

from aioqless import Client, NewJob
from tests.contrib.dashboard.steps import do


async def test_set_is_shown_retried_and_canceled(http: httpx.AsyncClient, client: Client) -> None:
    mails = client.job_set("mails", when_ended=NewJob("Report", {}))
    await mails.put_many(NewJob("Greet", {"n": number}) for number in range(3))
    (job,) = await client.queue("default").pop()
    await job.fail("no such word", group="typo")
    assert "mails" in (await http.get("/sets")).text
    page = (await http.get("/set?name=mails")).text
    assert "Retry failed" in page and "typo" in page and job.jid in page
    assert "1 members of mails re-queued" in await do(http, "set-retry", name="mails")
    assert "Set mails closed." in await do(http, "set-close", name="mails")
    assert "3 members canceled" in await do(http, "set-cancel", name="mails")
    page = (await http.get("/set?name=mails&place=canceled")).text
    assert "ended" in page and "mails-ended-1" in page and job.jid in page
    assert (await http.get("/set?name=other")).status_code == 404
