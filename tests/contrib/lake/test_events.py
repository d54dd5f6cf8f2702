"""The archive's stream from one offset to another, without Spark."""

from __future__ import annotations

import pyarrow as pa
import pytest

from aioqless import Client, NewJob
from aioqless.contrib.lake.source.event_columns import SCHEMA, batch_of
from aioqless.contrib.lake.source.events import EventLog, Offset, StreamRange
from aioqless.contrib.lake.source.options import ClientSettings
from aioqless.errors import AioqlessError
from aioqless.store import Keys


async def complete_jobs(client: Client, number: int, *, tags: list[str] | None = None) -> None:
    """Put and complete jobs, whose ends are archived."""
    await client.config.set("archive", "on")
    await client.queue("mail").put_many(
        [NewJob("greet", {"n": n}, tags=tags) for n in range(number)]
    )
    for job in await client.queue("mail").pop(number):
        await job.complete()


def key(client: Client) -> bytes:
    return Keys(client.namespace)("archive")


async def rows(client: Client, after: Offset, until: Offset) -> list[dict[str, object]]:
    part = StreamRange(ClientSettings(client.url, client.namespace), after, until)
    return [
        row
        async for n, entries in EventLog(client).read(part)
        for row in batch_of(n, entries, SCHEMA).to_pylist()
    ]


async def test_a_missing_stream_has_no_entries(client: Client) -> None:
    assert await EventLog(client).find_end(Offset(), None) == Offset()


async def test_each_event_is_a_row_with_its_ordinal(client: Client) -> None:
    await complete_jobs(client, 3, tags=["a", "b"])
    until = await EventLog(client).find_end(Offset(), None)
    read = await rows(client, Offset(), until)
    assert [row["ordinal"] for row in read] == [1, 2, 3] and until.ordinal == 3
    assert (
        {row["what"] for row in read} == {"complete"}
        and read[0]["tags"] == ["a", "b"]
        and read[0]["problem"] is None
    )
    run = read[0]["runs"][0]  # type: ignore[index]
    assert run["how"] == "complete" and run["popped"] == read[0]["popped"]


async def test_a_batch_has_at_most_the_maximum_number_of_entries(client: Client) -> None:
    await complete_jobs(client, 25)
    log, offset, sizes = EventLog(client), Offset(), []
    while (until := await log.find_end(offset, 10)) != offset:
        sizes.append(len(await rows(client, offset, until)))
        offset = until
    assert sizes == [10, 10, 5] and offset.ordinal == 25


async def test_ranges_of_tasks_have_every_entry_once(client: Client) -> None:
    await complete_jobs(client, 25)
    end = await EventLog(client).find_end(Offset(), None)
    bounds = await EventLog(client).divide(Offset(), end, 10)
    assert [bound.ordinal for bound in bounds] == [10, 20, 25] and bounds[-1] == end
    read = [
        row["ordinal"]
        for pair in zip([Offset(), *bounds], bounds, strict=False)
        for row in await rows(client, *pair)
    ]
    assert read == list(range(1, 26))


async def test_entries_cut_before_planning_are_counted_as_lost(client: Client) -> None:
    await complete_jobs(client, 10)
    read = await EventLog(client).find_end(Offset(), 2)
    await client.redis.xtrim(key(client), maxlen=3, approximate=False)
    until = await EventLog(client).find_end(read, None)
    assert until.lost == 5 and until.ordinal == 10
    assert [row["ordinal"] for row in await rows(client, Offset(read.id, 7), until)] == [8, 9, 10]


async def test_ordinals_are_right_after_entries_were_cut_between_planning_and_reading(
    client: Client,
) -> None:
    await complete_jobs(client, 10)
    until = await EventLog(client).find_end(Offset(), None)
    await client.redis.xtrim(key(client), maxlen=3, approximate=False)
    assert [row["ordinal"] for row in await rows(client, Offset(), until)] == [8, 9, 10]
    strict = StreamRange(
        ClientSettings(client.url, client.namespace), Offset(), until, fail_on_loss=True
    )
    with pytest.raises(AioqlessError, match="7 events after 0-0 were cut"):
        [page async for page in EventLog(client).read(strict)]


async def test_reading_continues_after_the_server_lost_its_latest_entries(
    client: Client,
) -> None:
    await complete_jobs(client, 10)
    read = await EventLog(client).find_end(Offset(), None)
    await client.redis.delete(key(client))
    await complete_jobs(client, 4)
    until = await EventLog(client).find_end(read, None)
    assert until.ordinal == 4 and len(await rows(client, Offset(read.id, 0), until)) == 4


async def test_entries_after_the_target_are_left_for_the_next_query(client: Client) -> None:
    await complete_jobs(client, 3)
    target = (await EventLog(client).state()).last
    await complete_jobs(client, 3)
    assert (await EventLog(client).find_end(Offset(), None, target)).ordinal == 3


async def test_an_invalid_entry_is_a_row_with_the_reason(client: Client) -> None:
    await complete_jobs(client, 1)
    await client.redis.xadd(key(client), {"v": "7", "jid": b"\xff"})
    await complete_jobs(client, 1)
    good, bad, after = await rows(client, Offset(), await EventLog(client).find_end(Offset(), None))
    assert (
        good["problem"] is None
        and after["problem"] is None
        and [bad["ordinal"], after["ordinal"]] == [2, 3]
    )
    assert (
        bad["jid"] is None
        and "UTF-8" in str(bad["problem"])
        and bad["raw"] == '{"v": "7", "jid": "\ufffd"}'
    )


async def test_a_batch_has_only_the_columns_of_the_schema(client: Client) -> None:
    await complete_jobs(client, 2)
    log = EventLog(client)
    page = await log.read_page("0-0", "+")
    assert batch_of(
        0, page, pa.schema([SCHEMA.field("jid"), SCHEMA.field("ended")])
    ).schema.names == ["jid", "ended"]
