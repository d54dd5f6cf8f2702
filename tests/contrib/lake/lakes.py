"""Events and runs as literal rows with defaults, and lakes of them.

Most tests use the events of eight jobs of three namespaces and two days.
"""

from __future__ import annotations

import asyncio
import functools
import math
import os
import random
import shutil
from collections.abc import Awaitable, Callable, Iterator, Mapping
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from aioqless import Client, NewJob
from aioqless.contrib.lake.lake import Lake
from aioqless.contrib.lake.position import Position
from aioqless.contrib.lake.read.database import create_views, open_database, open_lake_database
from aioqless.contrib.lake.refresh import refresh
from aioqless.contrib.lake.schema import DERIVED, EVENTS, TABLES
from aioqless.contrib.lake.spark.cells import describe_groups
from aioqless.contrib.lake.spark.class_archive import find_cache
from aioqless.contrib.lake.spark.session import session
from aioqless.contrib.lake.spark.transform import GOLD, MINUTE, RUNS, make_gold, make_runs

Result = TypeVar("Result")

HOUR, DAY = 3600, 86_400
MIDNIGHT = datetime(2026, 11, 21, tzinfo=UTC)
TODAY, TOMORROW = date(2026, 11, 21), date(2026, 11, 22)
SECRET = "<script>alert('a job')</script>"
NAMES = TABLES[EVENTS].schema.names
STATES = {
    "complete": "complete", "advance": "waiting", "fail": "failed", "cancel": "cancelled",
    "move": "waiting",
}  # fmt: skip


# Settings that start fast: one compiler, one collector, no compression or generated code.
FAST_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
FAST = {
    "spark.driver.memory": "1g",
    "spark.driver.maxResultSize": "4m",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.files.minPartitionNum": "1",
    "spark.sql.parquet.compression.codec": "uncompressed",
    "spark.shuffle.compress": "false",
    "spark.sql.streaming.numRecentProgressUpdates": "100",
    "spark.python.worker.reuse": "true",
}


@functools.cache
def open_session(_: int = 0) -> SparkSession:
    """The Spark session of the tests of this process, on two cores.

    It uses an archive of Java's classes, but makes none: that takes longer than it saves here, and
    pytest-xdist kills a process that needs more than ten seconds to end.
    """
    if started := SparkSession._instantiatedSession:  # noqa: SLF001 (of any thread)
        return started
    with pytest.MonkeyPatch.context() as patched:
        if not any(find_cache().glob("spark-*.jsa")):
            patched.setenv("XDG_CACHE_HOME", os.devnull)  # in which no file can be made
        return session("tests", master="local[2]", conf=FAST)


def at(seconds: float) -> datetime:
    """Seconds after midnight."""
    return MIDNIGHT + timedelta(seconds=seconds)


def run(
    put: float | None, popped: float, ended: float, how: str = "complete", **more: Any
) -> dict[str, Any]:
    """An attempt; times are seconds after midnight."""
    times = {"put": None if put is None else at(put), "popped": at(popped), "ended": at(ended)}
    usual = {"worker": "w1", "fence": 1, "failure_group": None, "message": None}
    return usual | times | {"how": how} | more


def event(jid: str, *attempts: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """The end of a stage with these runs; the last one says how it ended."""
    last = attempts[-1] if attempts else {"ended": at(more.pop("ended", 0))}
    what = more.get("what", last.get("how", "cancel"))
    usual = {
        "id": f"{int(last['ended'].timestamp() * 1000)}-0",
        "what": what,
        "jid": jid,
        "klass": "Greet",
        "queue": "mail",
        "state": STATES[what],
        "priority": 0.0,
        "tags": [],
        "depends": [],
        "retries": 5,
        "remaining": 5,
        "swept": False,
        "put": attempts[0]["put"] if attempts else None,
        **{name: last.get(name) for name in ("popped", "worker", "failure_group", "message")},
        "ended": last["ended"],
        "runs": list(attempts),
        "namespace": "ql",
        "date": TODAY,
    }
    return dict.fromkeys(NAMES) | usual | more


def fail(jid: str, group: str, **more: Any) -> dict[str, Any]:
    return event(jid, run(0, 1, 3, "fail", failure_group=group), **more)


EARLY = [
    event("a", run(0, 1, 2, "fail", failure_group="g", message=SECRET), id="1-0"),
    event("b", run(0, 5, 9), id="2-0", tags=["x"], klass="Send", job_set="import-1", tenant="t"),
    event("other", run(0, 5, 9), id="1-0", namespace="{billing}"),
    event(
        "never", id="2-0", namespace="{billing}", what="fail", failure_group="dependency",
        ended=DAY + 5,
    ),  # on a day when nothing ran
    event("gone", id="1-0", namespace="cancelled"),
]  # fmt: skip
LATE = [
    event("a", run(DAY - 60, DAY + 1, DAY + 2), id="3-0", date=TOMORROW),  # over midnight
    event("c", run(20, 30, 40), id="4-0", date=TOMORROW, swept=True, tags=["x"]),  # a day late
    event("d", run(DAY + 5, DAY + 6, DAY + 7), id="5-0", date=TOMORROW, depends=["a", "b"]),
    event(
        "e",
        run(DAY + 5, DAY + 6, DAY + 8, "fail", failure_group="mail-SMTPError", message=SECRET),
        id="6-0",
        date=TOMORROW,
    ),
]


def random_events(chance: random.Random, number: int) -> list[dict[str, Any]]:
    """Events of all kinds, in several days, queues and namespaces, some of the same job."""
    made = []
    for n in range(number):
        start, attempts = chance.uniform(0, 2 * DAY), []
        retries = chance.choices(["retried", "lost", "released", "timed-out"], k=n % 3)
        for how in [*retries, chance.choice(["complete", "advance", "fail", "fail", "move"])]:
            popped = start + chance.choice([0, 0.001, 7, 90, DAY])
            ended = popped + chance.choice([0.000001, 1, 61, 4000])
            group = {"failure_group": chance.choice("gh")} if how in ("fail", "retried") else {}
            put = chance.choice([None, start, start])
            attempts.append(run(put, popped, ended, how, message=f"m{n}", **group))
            start = ended
        choices: dict[str, list[Any]] = {
            "queue": ["mail", "post"],
            "klass": ["Greet", "Send"],
            "namespace": ["ql", "{other}"],
            "tags": [[], ["x"], ["y", "x", "x"], [""]],
            "depends": [[], ["j1"], ["j2", "j1"]],
            "spawned_from": [None, "r1", "r2"],
            "date": [TODAY, TOMORROW],
        }
        chosen = {name: chance.choice(values) for name, values in choices.items()}
        made.append(event(f"j{n % (number // 2)}", *attempts, id=f"{1000 + n}-0", **chosen))
    return made


def events(*rows: Mapping[str, Any]) -> pa.Table:
    """A table of events."""
    return pa.Table.from_pylist([dict(row) for row in rows], TABLES[EVENTS].schema)


def made(name: str, *given: Mapping[str, Any], micros: int = MINUTE, **texts: str) -> pa.Table:
    """A table or view of the lake, made of these events; or what another text says, by name."""
    spark = open_session()
    frame = spark.createDataFrame(events(*given)).coalesce(1)  # as few events are read: no shuffle
    runs = make_runs(spark, frame)
    if name == RUNS:
        return runs.drop("_table").toArrow()
    for text, tables in GOLD.items():
        if name in tables:
            found = make_gold(spark, text, runs, frame, 1, micros=micros).toArrow()
            if text == "groups":
                groups = list(describe_groups(found.to_batches()))
                schema = groups[0].schema if groups else TABLES[name].schema
                found = pa.Table.from_batches(groups, schema)
                found = found.filter(pc.equal(found["_table"], name)) if groups else found
            return found.select(TABLES[name].schema.names)
    with open_database() as database:
        database.register("events", events(*given))
        database.register("runs", runs.toArrow())
        create_views(database)
        text = {"jobs": "FROM jobs", "paths": "FROM paths", **texts}[name]
        return database.execute(text).to_arrow_table()


class Row(dict[str, Any]):
    """A row whose values are attributes, too; also those of the structs in it."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None


def rows(table: pa.Table) -> list[Row]:
    """The rows of a table; maps as dictionaries."""
    return [_row(each) for each in table.to_pylist(maps_as_pydicts="strict")]


def _row(value: Any) -> Any:
    if isinstance(value, dict):
        return Row({name: _row(each) for name, each in value.items()})
    return [_row(each) for each in value] if isinstance(value, list) else value


def by(table: pa.Table, *keys: str) -> dict[Any, Row]:
    """Rows by the value of a column, or of several."""
    return {
        row[keys[0]] if len(keys) == 1 else tuple(row[key] for key in keys): row
        for row in rows(table)
    }


def archive(lake: Lake, *given: Mapping[str, Any], skipped: int = 0) -> None:
    """Put events into the lake as one batch of the archiver's, after a number of entries that
    were rejected."""
    table, last = lake.table(EVENTS), dict[str, int]()
    numbered = []
    for row in given:
        name = row["namespace"]
        before = last.get(name, Position.of(table, name).ordinal + skipped)
        last[name] = before + 1
        numbered.append({**row, "ordinal": last[name]})
    ends = [Position(ordinal=number).transactions(name) for name, number in last.items()]
    table.append(events(*numbered).to_batches(), {k: v for each in ends for k, v in each.items()})


def fill(lake: Lake, *given: Mapping[str, Any]) -> None:
    """Put events into the lake, and compute its tables."""
    archive(lake, *given)
    refresh(lake, open_session)


def raw(lake: Lake, table: str) -> list[Row]:
    """The rows of a table as any reader of Delta finds them."""
    place = lake.storage.within(table)
    opened = DeltaTable(place.url, storage_options=dict(place.options))
    return rows(opened.to_pyarrow_table())


def view(lake: Lake, name: str) -> list[Row]:
    """The rows of a view such as `jobs`."""
    with open_lake_database(lake, [name]) as database:
        return rows(database.execute(f"FROM {name}").to_arrow_table())


def contents(lake: Lake) -> dict[str, list[str]]:
    """Every row of every derived table; not how they are spread over files. Numbers without their
    last digits, which depend on the order of sums."""
    return {name: comparable(raw(lake, name)) for name in DERIVED}


def comparable(found: list[Row]) -> list[str]:
    """Rows in a fixed order, to be compared."""
    return sorted(repr(_plain(row)) for row in found)


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return f"{value * math.pi:.9g}"  # times are decimal fractions: none is just half a digit
    if isinstance(value, dict):
        return sorted((key, _plain(each)) for key, each in value.items())
    if isinstance(value, list):
        plain = [_plain(each) for each in value]
        return sorted(plain) if all(isinstance(each, str) for each in plain) else plain
    return value


def copied(lake: Lake, folder: Path) -> Lake:
    """The same lake in another folder, to be changed."""
    return Lake(shutil.copytree(lake.url, folder))


def texts(lake: Lake) -> Iterator[str]:
    """Yield the contents of every file of a lake, Parquet files decompressed."""
    for path in Path(lake.url).rglob("*"):
        if path.suffix == ".parquet" and "_delta_log" not in path.parts:
            yield repr(pq.ParquetFile(path).read().to_pylist())
        elif path.is_file():
            yield path.read_bytes().decode("utf-8", "replace")


def ask(
    act: Callable[[Client], Awaitable[Result]],
    url: str | None = None,
    namespace: str | None = None,
) -> Result:
    """Call a function with a client of its own loop, since commands run a loop of their own."""

    async def connect() -> Result:
        async with Client(url, namespace=namespace) as own:
            return await act(own)

    return asyncio.run(connect())


async def complete_jobs(client: Client, number: int) -> list[str]:
    """Put and complete jobs, whose ends are archived; return their jids."""
    await client.config.set("archive", "on")
    await client.queue("mail").put_many([NewJob("greet", {"n": n}) for n in range(number)])
    jobs = await client.queue("mail").pop(number)
    for job in jobs:
        await job.complete()
    return [job.jid for job in jobs]


def before(
    monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, action: Callable[[], object]
) -> None:
    """Do something once, before a function is called the first time."""
    function = getattr(owner, name)

    def act(*arguments: Any, **options: Any) -> Any:
        monkeypatch.setattr(owner, name, function)
        action()
        return function(*arguments, **options)

    monkeypatch.setattr(owner, name, act)
