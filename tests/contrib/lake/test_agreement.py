"""The statistics of Redis and the tables agree about the same jobs."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from itertools import chain
from typing import Any

import pytest
from redis.asyncio import Redis

from aioqless.contrib.lake.event_columns import batch_of
from aioqless.store import ScriptStore
from tests.contrib.lake.lakes import TODAY, made, rows

pytestmark = pytest.mark.long

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
        job: dict[str, Any] = {"jid": f"j{number}", "klass": "Greet", "data": "{}", "retries": 1}
        await store.put(queue="mail", now=now + number, delay=0, **job)
    now += 60
    while popped := await store.pop(queue="mail", worker="ann", count=1, now=now):
        jid, fate = popped[0]["jid"], chance.choice(("complete",) * 3 + ("fail", "lose"))
        # None is on the border of two bins: Redis has more digits of a time than tables.
        longest = {"complete": 4000.5, "fail": 3.5, "lose": 70.5}[fate]
        now += chance.choice((0.004, 1.5, 20.5, longest))
        if fate == "complete":
            await store.heartbeat(jid=jid, worker="ann", now=now)
            await store.complete(jid=jid, worker="ann", queue="mail", now=now, data="")
        elif fate == "fail":
            await store.fail(jid=jid, worker="ann", group="mail-Error", message="no", now=now)
        else:
            now += 100
    entries: Any = await redis.xrange(f"{namespace}:x:archive")
    flat: list[Any] = [(id, list(chain.from_iterable(pairs.items()))) for id, pairs in entries]
    events = [each | {"date": TODAY} for each in batch_of(0, flat, "ql").to_pylist()]
    assert len(events) == 40
    theirs, (ours,) = (
        await store.stats(queue="mail", date=START),
        rows(made("gold/klasses", *events)),
    )
    for kind in ("wait", "run"):
        assert ours[kind]["count"] == theirs[kind]["count"] > 15
        for name in ("mean", "variance"):
            assert ours[kind][name] == pytest.approx(theirs[kind][name], rel=1e-9)
        histogram = dict(ours[kind]["histogram"])
        assert [histogram.get(name, 0) for name in QLESS] == theirs[kind]["histogram"]
    # Those whose last run was lost count as failed.
    exhausted = sum(each["failure_group"] == "failed-retries-mail" for each in events)
    assert ours["failed"] == theirs["failures"] > 3
    assert ours["lost"] + ours["timed_out"] + exhausted == theirs["lost_locks"] > 3
