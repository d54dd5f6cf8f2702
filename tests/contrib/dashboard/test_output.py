"""Output on the page of a job."""

from __future__ import annotations

import httpx

from aioqless import Client
from aioqless.contrib.output.generated_commands import EmitRow, OutputCommands


async def test_output_is_shown_with_redacted_values(
    http: httpx.AsyncClient, client: Client
) -> None:
    jid = await client.queue("mail").put("Greet", {})
    [job] = await client.queue("mail").pop(worker="ann")
    text = '["Dear ","Ada <b>",{"password":"hunter2","to":"ada"}]'
    row = EmitRow(jid=jid, fence=str(job.fence), start=0, count=3, values=text, ttl=60)
    await OutputCommands(client.internals.store).emit(worker="ann", batch=[row])
    page = (await http.get(f"/job?jid={jid}")).text
    assert "Output" in page and "Dear Ada &lt;b&gt;" in page and "ada" in page
    assert "hunter2" not in page


async def test_job_without_output_shows_none(http: httpx.AsyncClient, client: Client) -> None:
    jid = await client.queue("mail").put("Greet", {})
    assert "Output" not in (await http.get(f"/job?jid={jid}")).text
