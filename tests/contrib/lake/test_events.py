"""The archive's stream from one offset to another, without Spark."""

from __future__ import annotations

import pyarrow as pa
import pytest

from aioqless import Client, NewJob
from aioqless.contrib.lake.source.event_columns import SCHEMA, batch_of
from aioqless.contrib.lake.source.events import EventLog, Offset, Stretch
from aioqless.contrib.lake.source.options import Where
from aioqless.errors import AioqlessError
from aioqless.store import Keys


async def ended(client: Client, number: int, *, tags: list[str] | None = None) -> None:
    """So many jobs whose ends are archived."""
    await client.config.set("archive", "on")
    await client.queue("mail").put_many(
        [NewJob("greet", {"n": n}, tags=tags) for n in range(number)]
    )
    for job in await client.queue("mail").pop(number):
        await job.complete()


def key(client: Client) -> bytes:
    return Keys(client.namespace)("archive")


async def rows(client: Client, after: Offset, upto: Offset) -> list[dict[str, object]]:
    stretch = Stretch(Where(client.url, client.namespace), after, upto)
    return [
        row
        async for n, entries in EventLog(client).read(stretch)
        for row in batch_of(n, entries, SCHEMA).to_pylist()
    ]


async def test_a_stream_that_there_is_not_yet_has_nothing_to_read(client: Client) -> None:
    assert await EventLog(client).latest(Offset(), None) == Offset()


async def test_each_event_is_a_row_with_its_ordinal(client: Client) -> None:
    await ended(client, 3, tags=["a", "b"])
    upto = await EventLog(client).latest(Offset(), None)
    read = await rows(client, Offset(), upto)
    assert [row["ordinal"] for row in read] == [1, 2, 3] and upto.n == 3
    assert (
        {row["what"] for row in read} == {"complete"}
        and read[0]["tags"] == ["a", "b"]
        and read[0]["problem"] is None
    )
    run = read[0]["runs"][0]  # type: ignore[index]
    assert run["how"] == "complete" and run["popped"] == read[0]["popped"]


async def test_no_more_is_read_at_once_than_was_asked_for(client: Client) -> None:
    await ended(client, 25)
    log, offset, sizes = EventLog(client), Offset(), []
    while (upto := await log.latest(offset, 10)) != offset:
        sizes.append(len(await rows(client, offset, upto)))
        offset = upto
    assert sizes == [10, 10, 5] and offset.n == 25


async def test_tasks_read_what_lies_between_their_bounds_and_all_of_it_once(client: Client) -> None:
    await ended(client, 25)
    end = await EventLog(client).latest(Offset(), None)
    bounds = await EventLog(client).walked(Offset(), end, 10)
    assert [bound.n for bound in bounds] == [10, 20, 25] and bounds[-1] == end
    read = [
        row["ordinal"]
        for pair in zip([Offset(), *bounds], bounds, strict=False)
        for row in await rows(client, *pair)
    ]
    assert read == list(range(1, 26))


async def test_what_was_cut_unread_is_counted(client: Client) -> None:
    await ended(client, 10)
    read = await EventLog(client).latest(Offset(), 2)
    await client.redis.xtrim(key(client), maxlen=3, approximate=False)
    upto = await EventLog(client).latest(read, None)
    assert upto.lost == 5 and upto.n == 10
    assert [row["ordinal"] for row in await rows(client, Offset(read.sid, 7), upto)] == [8, 9, 10]


async def test_what_is_cut_between_planning_and_reading_is_told_and_the_ordinals_stay_right(
    client: Client,
) -> None:
    await ended(client, 10)
    upto = await EventLog(client).latest(Offset(), None)
    await client.redis.xtrim(key(client), maxlen=3, approximate=False)
    assert [row["ordinal"] for row in await rows(client, Offset(), upto)] == [8, 9, 10]
    strict = Stretch(Where(client.url, client.namespace), Offset(), upto, fail_on_loss=True)
    with pytest.raises(AioqlessError, match="7 events behind 0-0 were cut"):
        [page async for page in EventLog(client).read(strict)]


async def test_a_server_that_lost_its_last_writes_is_read_on_from_where_it_is(
    client: Client,
) -> None:
    await ended(client, 10)
    read = await EventLog(client).latest(Offset(), None)
    await client.redis.delete(key(client))
    await ended(client, 4)
    upto = await EventLog(client).latest(read, None)
    assert upto.n == 4 and len(await rows(client, Offset(read.sid, 0), upto)) == 4


async def test_what_comes_later_than_the_target_is_left_for_the_next_query(client: Client) -> None:
    await ended(client, 3)
    target = (await EventLog(client).state()).last
    await ended(client, 3)
    assert (await EventLog(client).latest(Offset(), None, target)).n == 3


async def test_an_entry_that_cant_be_read_is_a_row_with_the_reason(client: Client) -> None:
    await ended(client, 1)
    await client.redis.xadd(key(client), {"v": "7", "jid": b"\xff"})
    await ended(client, 1)
    good, bad, after = await rows(client, Offset(), await EventLog(client).latest(Offset(), None))
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


async def test_only_the_columns_of_the_schema_are_made(client: Client) -> None:
    await ended(client, 2)
    log = EventLog(client)
    page = await log.page("0-0", "+")
    assert batch_of(
        0, page, pa.schema([SCHEMA.field("jid"), SCHEMA.field("ended")])
    ).schema.names == ["jid", "ended"]
