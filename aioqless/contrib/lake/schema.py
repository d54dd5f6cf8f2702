"""The columns of every table of the lake, and the version of each; what they are called here is
what users query.

A column may be added at any time: files that were written before it read as null. What changes the
meaning of a column raises the table's version. Tables made from others are then made anew; see
`Lake.outdated`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DoubleType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)  # fmt: skip

TEXT, WHOLE, NUMBER, FLAG, TIME, DAY = (
    StringType(),
    LongType(),
    DoubleType(),
    BooleanType(),
    TimestampType(),
    DateType(),
)
TEXTS, BINS = ArrayType(TEXT, False), MapType(TEXT, WHOLE, False)

PARTITIONS: Final = ("namespace", "date")  # of every table, in the names of its folders


@dataclass(frozen=True)
class Table:
    """A table's columns without those of its partitions, in their order in the files."""

    version: int
    columns: StructType

    @property
    def schema(self) -> StructType:
        """What it is read with: guessed, the namespace `007` would be the number 7."""
        return StructType(
            [*self.columns.fields, StructField("namespace", TEXT), StructField("date", DAY)]
        )


def _struct(**columns: DataType) -> StructType:
    return StructType([StructField(name, kind) for name, kind in columns.items()])


RUN: Final = _struct(
    put=TIME, popped=TIME, ended=TIME, how=TEXT, worker=TEXT, fence=WHOLE, group=TEXT, message=TEXT
)

EVENT: Final = _struct(
    id=TEXT, ordinal=WHOLE, what=TEXT, jid=TEXT, klass=TEXT, queue=TEXT, to=TEXT, was=TEXT, state=TEXT, priority=NUMBER, tags=TEXTS,
    worker=TEXT, put=TIME, popped=TIME, ended=TIME, retries=WHOLE, remaining=WHOLE, fence=WHOLE, group=TEXT, message=TEXT,
    spawned_from=TEXT, depends=TEXTS, runs=ArrayType(RUN, False), data=TEXT, data_size=WHOLE, swept=FLAG, history=TEXT,
)  # fmt: skip

UNREADABLE: Final = _struct(id=TEXT, ordinal=WHOLE, problem=TEXT, raw=TEXT)

STAGE: Final = _struct(
    id=TEXT, date=DAY, what=TEXT, klass=TEXT, queue=TEXT, to=TEXT, state=TEXT, priority=NUMBER, tags=TEXTS, worker=TEXT, put=TIME,
    popped=TIME, ended=TIME, attempts=WHOLE, wait=NUMBER, run=NUMBER, retries=WHOLE, remaining=WHOLE, group=TEXT, message=TEXT,
    spawned_from=TEXT, depends=TEXTS, swept=FLAG,
)  # fmt: skip

JOB: Final = _struct(
    jid=TEXT, klass=TEXT, queue=TEXT, state=TEXT, priority=NUMBER, tags=TEXTS, worker=TEXT, put=TIME, popped=TIME, ended=TIME,
    attempts=WHOLE, wait=NUMBER, run=NUMBER, retries=WHOLE, remaining=WHOLE, group=TEXT, message=TEXT, spawned_from=TEXT, depends=TEXTS,
    stages=ArrayType(STAGE, False),
)  # fmt: skip

ATTEMPT: Final = _struct(
    id=TEXT, attempt=WHOLE, jid=TEXT, klass=TEXT, queue=TEXT, tags=TEXTS, priority=NUMBER, worker=TEXT, fence=WHOLE, put=TIME, popped=TIME,
    ended=TIME, wait=NUMBER, run=NUMBER, how=TEXT, group=TEXT, message=TEXT, swept=FLAG,
)  # fmt: skip

_GROUP: Final = {"by": TEXT, "queue": TEXT, "klass": TEXT, "tag": TEXT, "worker": TEXT}

TIMES: Final = _struct(
    **_GROUP, kind=TEXT, count=WHOLE, mean=NUMBER, variance=NUMBER, least=NUMBER, most=NUMBER, p50=NUMBER, p90=NUMBER, p95=NUMBER,
    p99=NUMBER, histogram=BINS, bins=BINS, squares=NUMBER, sketch=BinaryType(),
)  # fmt: skip

COUNTS: Final = _struct(
    **_GROUP, completed=WHOLE, advanced=WHOLE, failed=WHOLE, cancelled=WHOLE, moved=WHOLE, runs=WHOLE, retried=WHOLE, released=WHOLE,
    timed_out=WHOLE, lost=WHOLE,
)  # fmt: skip

SAMPLE: Final = _struct(ended=TIME, jid=TEXT, klass=TEXT, worker=TEXT, message=TEXT)

FAILURES: Final = _struct(
    group=TEXT, queue=TEXT, count=WHOLE, retried=WHOLE, first_seen=TIME, last_seen=TIME, klasses=TEXTS, by_hour=ArrayType(WHOLE, False),
    samples=ArrayType(SAMPLE, False),
)  # fmt: skip

THROUGHPUT: Final = _struct(
    queue=TEXT, start=TIME, seconds=WHOLE, put=WHOLE, popped=WHOLE, completed=WHOLE, failed=WHOLE, retried=WHOLE, waiting=NUMBER,
    running=NUMBER,
)  # fmt: skip

STEP: Final = _struct(
    jid=TEXT, klass=TEXT, queue=TEXT, put=TIME, popped=TIME, ended=TIME, wait=NUMBER, run=NUMBER
)

PATHS: Final = _struct(
    jid=TEXT, klass=TEXT, queue=TEXT, state=TEXT, began=TIME, ended=TIME, seconds=NUMBER, running=NUMBER, waiting=NUMBER, depth=WHOLE,
    steps=ArrayType(STEP, False),
)  # fmt: skip

TABLES: Final = {
    "bronze/events": Table(1, EVENT),
    "quarantine/events": Table(1, UNREADABLE),
    "silver/jobs": Table(1, JOB),
    "silver/runs": Table(1, ATTEMPT),
    "gold/times": Table(1, TIMES),
    "gold/counts": Table(1, COUNTS),
    "gold/failures": Table(1, FAILURES),
    "gold/throughput": Table(1, THROUGHPUT),
    "gold/paths": Table(1, PATHS),
}
