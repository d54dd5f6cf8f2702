"""Rows as jobs, without Spark."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from aioqless import Client
from aioqless.client.codec import PLAIN
from aioqless.contrib.lake.source.job_writer import put_rows
from aioqless.contrib.lake.source.options import SaveOptions, parse_options
from aioqless.contrib.lake.source.row_mapping import Reject, RowMapping
from aioqless.errors import AioqlessError
from tests.conftest import Until


def batch(*rows: dict[str, Any], **kinds: pa.DataType) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(list(rows), **({"schema": pa.schema(kinds)} if kinds else {}))


def mapping(rows: pa.RecordBatch, **options: str) -> RowMapping:
    return RowMapping.of(parse_options(SaveOptions, options), rows.schema)


def jobs(rows: pa.RecordBatch, **options: str) -> list[Any]:
    return list(mapping(rows, **options).jobs(rows, PLAIN))


async def put(
    client: Client, rows: pa.RecordBatch, **options: str
) -> tuple[int, int, list[Reject]]:
    given = parse_options(SaveOptions, options)
    counts = await put_rows(client, mapping(rows, **options), given, [rows])
    return counts.put, counts.existing, counts.rejects


def test_columns_are_fields_of_the_job_by_name_and_the_others_are_its_data() -> None:
    when = datetime(2026, 1, 2, tzinfo=UTC)
    fields = {"klass": "k", "jid": "j", "priority": -2, "delay": 5.0, "retries": 1}
    fields |= {"tags": ["a"], "depends": ["x"]}
    others = {"url": "/", "when": when, "price": Decimal("1.50"), "none": None}
    ((queue, job),) = jobs(batch({"queue": "q", **fields, **others}))
    data = b'{"url":"/","when":"2026-01-02T00:00:00Z","price":"1.50","none":null}'
    assert queue == "q" and {name: job[name] for name in fields} == fields and job["data"] == data


def test_data_is_json_or_a_struct_and_options_are_defaults() -> None:
    ((_, text),) = jobs(
        batch({"data": "[1, 2.50]", "priority": None}, data=pa.string(), priority=pa.int64()),
        queue="q",
        klass="k",
        priority="3",
    )
    ((_, struct),) = jobs(
        batch({"data": {"n": 1}}), queue="q", klass="k", tags="a, b", delay="1.5", retries="0"
    )
    assert text["data"] == b"[1, 2.50]" and text["priority"] == 3.0
    given = {"data": b'{"n":1}', "tags": ["a", "b"], "delay": 1.5, "retries": 0}
    assert {name: struct[name] for name in given} == given


def test_a_row_has_the_same_jid_within_a_batch_name() -> None:
    rows = batch({"n": 1, "m": "x"}, {"n": 2, "m": "x"}, {"n": 1, "m": "x"})
    first, again = ([job["jid"] for _, job in jobs(rows, queue="q", klass="k")] for _ in range(2))
    other = [job["jid"] for _, job in jobs(rows, queue="q", klass="k", batch="monday")]
    assert first == again and first[0] == first[2] != first[1] and not set(first) & set(other)


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"data": "{"}, "is not JSON"),
        ({"data": "false"}, "false"),
        ({"jid": None}, "jid is null"),
        ({"jid": "x-history"}, "-history"),
        ({"klass": None}, "klass is null"),
        ({"tags": ["a", ""]}, "must not be empty"),
        ({"delay": -1.0}, "delay"),
        ({"priority": float("nan")}, "priority"),
        ({"n": float("inf")}, "can't be written as JSON"),
    ],
)
def test_an_invalid_row_is_rejected_with_the_reason(row: dict[str, Any], reason: str) -> None:
    usual = {"data": "{}", "tags": ["a"], "klass": "k", "jid": "b"}
    good = {"klass": "k", "jid": "a"} | {name: usual.get(name, 1.0) for name in row}
    (queue, _), rejected = jobs(batch(good, good | row), queue="q")
    assert queue == "q" and isinstance(rejected, Reject)
    assert reason in rejected.reason and rejected.row.startswith("{")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"klass": ""}, "there is no column 'klass' and no option"),
        ({"retries": "-1"}, "retries must be int >= 0"),
        ({"delay": "-1"}, r"delay must be finite and >= 0 \(got -1.0\)"),
        ({"tags": "a,,b"}, "each of tags must not be empty"),
        ({"dropNulls": "perhaps"}, r"dropNulls must be bool \(got 'perhaps'\)"),
    ],
)
def test_invalid_options_are_refused_before_the_first_row(
    options: dict[str, str], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        mapping(batch(n=pa.int64()), **{"queue": "q", "klass": "k"} | options)


def test_columns_of_a_wrong_type_are_refused_before_the_first_row() -> None:
    with pytest.raises(ValueError, match="the column 'priority' must be a number, not string"):
        mapping(batch(priority=pa.string()), queue="q", klass="k")


async def test_rows_go_to_the_queues_of_their_column(client: Client) -> None:
    rows = batch(*({"queue": f"q{n % 3}", "n": n} for n in range(200)))
    assert (await put(client, rows, klass="k"))[0] == 200
    assert sorted(counts.waiting for counts in await client.queues()) == [66, 67, 67]


async def test_a_write_waits_while_a_queue_has_its_maximum_depth(
    client: Client, until: Until
) -> None:
    rows = batch(*({"n": n} for n in range(30)))
    with pytest.raises(AioqlessError, match="had 10 jobs or more for longer than the option wait"):
        await put(client, rows, maxDepth="10", wait="0.01", queue="q", klass="k")
    writing = asyncio.create_task(put(client, rows, maxDepth="10", wait="60", queue="q", klass="k"))
    queue, done, deepest = client.queue("q"), 0, 0
    while done < 30:
        deepest = max(deepest, await queue.length())
        for job in await queue.pop(4):
            await job.complete()
            done += 1
    assert sum((await writing)[:2]) == 30 and deepest <= 10
