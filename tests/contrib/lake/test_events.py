"""The archive's stream, and its entries as columns."""

from __future__ import annotations

from aioqless import Client, NewJob
from aioqless.contrib.lake.event_columns import batch_of
from aioqless.contrib.lake.event_log import EventLog
from aioqless.store import Keys


async def complete_jobs(client: Client, number: int, *, tags: list[str] | None = None) -> None:
    """Put and complete jobs, whose ends are archived."""
    await client.config.set("archive", "on")
    await client.queue("mail").put_many(
        [NewJob("greet", {"n": n}, tags=tags) for n in range(number)]
    )
    for job in await client.queue("mail").pop(number):
        await job.complete()


async def test_entries_are_rows_and_an_invalid_one_has_the_reason(client: Client) -> None:
    await complete_jobs(client, 1, tags=["a", "b"])
    await client.redis.xadd(Keys(client.namespace)("archive"), {"v": "7", "jid": b"\xff"})
    await complete_jobs(client, 1)
    page = await EventLog(client).read_page("0-0", "+")
    good, bad, after = batch_of(6, page, "ql").to_pylist()
    assert [row["ordinal"] for row in (good, bad, after)] == [7, 8, 9]
    assert good["what"] == "complete" and good["tags"] == ["a", "b"] and good["namespace"] == "ql"
    assert good["problem"] is None is good["raw"] and after["problem"] is None
    run = good["runs"][0]
    assert run["how"] == "complete" and run["popped"] == good["popped"]
    assert bad["jid"] is None and "UTF-8" in str(bad["problem"])
    assert bad["raw"] == '{"v": "7", "jid": "\ufffd"}' and bad["date"] == good["date"]
