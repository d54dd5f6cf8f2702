"""silver/runs: one row for each attempt at a job; and which days these tell of."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from aioqless.contrib.lake.schema import TABLES
from aioqless.contrib.lake.tables.days import day, days_between, seconds


def runs(events: DataFrame) -> DataFrame:
    """The attempts that events tell of; `attempt` counts from 1 within a stage. Partitioned as the
    events are."""
    exploded = events.select("*", F.posexplode("runs").alias("position", "each"))
    return exploded.select(
        "id",
        (F.col("position") + 1).cast("long").alias("attempt"),
        *("jid", "klass", "queue", "tags", "priority"),
        *(
            F.col(f"each.{name}").alias(name)
            for name in ("worker", "fence", "put", "popped", "ended")
        ),
        seconds("each.put", "each.popped").alias("wait"),
        seconds("each.popped", "each.ended").alias("run"),
        *(F.col(f"each.{name}").alias(name) for name in ("how", "group", "message")),
        F.coalesce("swept", F.lit(False)).alias("swept"),
        *("namespace", "date"),
    ).select(*TABLES["silver/runs"].schema.names)


def days_told(events: DataFrame) -> DataFrame:
    """Each `day` that an event is about, beside the namespace and date of its partition: a job may
    have waited and run for many."""

    def of_run(run: Column) -> Column:
        moments = F.array_compact(F.array(*(day(run[name]) for name in ("put", "popped", "ended"))))
        spans = (
            days_between(run[start], run[end])
            for start, end in (("put", "popped"), ("popped", "ended"))
        )
        return F.concat(
            moments, *(F.coalesce(span, F.array().cast("array<date>")) for span in spans)
        )

    days = F.array_append(F.flatten(F.transform("runs", of_run)), day("ended"))
    return events.select("namespace", "date", F.explode(F.array_distinct(days)).alias("day"))
