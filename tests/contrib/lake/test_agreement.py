"""What Redis counts and what the tables say of the same jobs is the same."""

from __future__ import annotations

import random
from datetime import UTC, date, datetime
from typing import Any

import pytest
from pyspark.sql import SparkSession
from redis.asyncio import Redis

from aioqless.client.archive import Event, Run, parse_raw
from aioqless.contrib.lake import tables
from aioqless.contrib.lake.schema import TABLES
from aioqless.contrib.lake.tables.bins import QLESS
from aioqless.store import ScriptStore
from tests.contrib.lake.literal import by

NAMES = TABLES["bronze/events"].schema.names
START = datetime(2026, 11, 21, 12, tzinfo=UTC).timestamp()


def _row(event: Event) -> tuple[Any, ...]:
    def moment(micros: int | None) -> datetime | None:
        return None if micros is None else datetime.fromtimestamp(micros / 1e6, UTC)

    def attempt(run: Run) -> tuple[Any, ...]:
        return (
            moment(run.put),
            moment(run.popped),
            moment(run.ended),
            run.how,
            run.worker,
            run.fence,
            run.group,
            run.message,
        )

    values = {name: getattr(event, name, None) for name in NAMES}
    values |= {name: moment(values[name]) for name in ("put", "popped", "ended")}
    values |= {
        "ordinal": 0,
        "namespace": "ql",
        "date": date(2026, 11, 21),
        "runs": [attempt(run) for run in event.runs],
    }
    return tuple(list(value) if isinstance(value, tuple) else value for value in values.values())


async def test_statistics_of_redis_and_of_the_tables_agree(
    store: ScriptStore, redis: Redis, namespace: str, spark: SparkSession
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
    events = [
        parse_raw(id.decode(), [each for pair in fields.items() for each in pair])  # type: ignore[misc]
        for id, fields in entries
    ]
    table = spark.createDataFrame([_row(event) for event in events], TABLES["bronze/events"].schema)

    theirs = await store.stats(queue="mail", date=START)
    times = by(tables.times(tables.runs(table)).where("by = 'queue'").collect(), "kind")
    for kind in ("wait", "run"):
        ours, redis_ = times[kind], theirs[kind]
        assert ours["count"] == redis_["count"] > 15
        assert ours.mean == pytest.approx(
            redis_["mean"], rel=1e-9
        ) and ours.variance == pytest.approx(redis_["variance"], rel=1e-9)
        assert [ours.histogram.get(name, 0) for name in QLESS] == redis_["histogram"]
    (counts,) = tables.counts(table).where("by = 'queue'").collect()
    exhausted = sum(
        event.group == "failed-retries-mail" for event in events
    )  # whose last run was lost, and counts as failed
    assert (counts.failed, counts.lost + counts.timed_out + exhausted) == (
        theirs["failures"],
        theirs["lost_locks"],
    )
    assert theirs["failures"] > 3 < theirs["lost_locks"]
