"""The statistics of Redis and the tables agree about the same jobs."""

from __future__ import annotations

import random
from datetime import UTC, date, datetime
from itertools import chain
from typing import Any

import pyarrow as pa
import pytest
from redis.asyncio import Redis

from aioqless.contrib.lake.database import open_database
from aioqless.contrib.lake.event_columns import batch_of
from aioqless.contrib.lake.refresh import TEXTS, prepare
from aioqless.store import ScriptStore

QLESS = (
    *(f"s{number}" for number in range(60)),
    *(f"m{number}" for number in range(1, 60)),
    *(f"h{number}" for number in range(1, 24)),
    *(f"d{number}" for number in range(1, 7)),
)  # in the order in which Redis keeps its counters
START = datetime(2026, 11, 21, 12, tzinfo=UTC).timestamp()


async def test_statistics_of_redis_and_of_the_tables_agree(
    store: ScriptStore, redis: Redis, namespace: str
) -> None:
    for option, value in {"archive": "on", "grace-period": "0", "heartbeat": "60"}.items():
        await store.config_set(option=option, value=value)
    chance, now = random.Random(4), START
    for number in range(40):
        await store.put(
            queue="mail",
            jid=f"j{number}",
            klass="Greet",
            data="{}",
            now=now + number,
            delay=0,
            retries=1,
        )
    now += 60
    while popped := await store.pop(queue="mail", worker="ann", count=1, now=now):
        jid, fate = (
            popped[0]["jid"],
            chance.choice(("complete", "complete", "complete", "fail", "lose")),
        )
        now += chance.choice(
            (0.004, 1.5, 70 if fate == "lose" else 20, 4000 if fate == "complete" else 3)
        )
        if fate == "complete":
            await store.heartbeat(jid=jid, worker="ann", now=now)
            await store.complete(jid=jid, worker="ann", queue="mail", now=now, data="")
        elif fate == "fail":
            await store.fail(jid=jid, worker="ann", group="mail-Error", message="no", now=now)
        else:
            now += 100
    entries = await redis.xrange(f"{namespace}:x:archive")
    assert len(entries) == 40  # type: ignore[arg-type]
    flat: list[Any] = [(id, list(chain.from_iterable(pairs.items()))) for id, pairs in entries]
    table = pa.Table.from_batches([batch_of(0, flat, "ql")]).drop_columns(["problem", "raw"])
    table = table.set_column(
        table.schema.get_field_index("date"), "date", pa.repeat(date(2026, 11, 21), 40)
    )
    theirs = await store.stats(queue="mail", date=START)
    with open_database() as database:
        database.register("events", table)
        prepare(database)
        rows = database.execute(TEXTS["gold/klasses"]).to_arrow_table().to_pylist()
    (counts,) = rows
    for kind in ("wait", "run"):
        ours, redis_ = counts[kind], theirs[kind]
        assert ours["count"] == redis_["count"] > 15
        assert ours["mean"] == pytest.approx(redis_["mean"], rel=1e-9) and ours[
            "variance"
        ] == pytest.approx(redis_["variance"], rel=1e-9)
        histogram = dict(ours["histogram"])
        assert [histogram.get(name, 0) for name in QLESS] == redis_["histogram"]
    exhausted = sum(
        group == "failed-retries-mail" for group in table["failure_group"].to_pylist()
    )  # whose last run was lost, and counts as failed
    assert (counts["failed"], counts["lost"] + counts["timed_out"] + exhausted) == (
        theirs["failures"],
        theirs["lost_locks"],
    )
    assert theirs["failures"] > 3 < theirs["lost_locks"]
