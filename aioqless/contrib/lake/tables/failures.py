"""gold/failures: what failed, per day, group and queue: how often, when, in which klasses, and some
of it to look at."""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from aioqless.contrib.lake.schema import SAMPLE, TABLES
from aioqless.contrib.lake.tables.days import day

SAMPLES: Final = 5  # the latest of a day
LONGEST: Final = (
    2000  # characters of a sample's message: its end, where a traceback says what it was
)


def failures(events: DataFrame) -> DataFrame:
    """Failures of stages (`count`), and runs that were retried for a reason that has a group
    (`retried`)."""
    parts = ("namespace", "jid", "klass", "queue")
    failed = events.where("what = 'fail' AND `group` IS NOT NULL").select(
        *parts, "worker", "ended", "group", "message", F.lit(True).alias("final")
    )
    ran = events.select(*parts, F.explode("runs").alias("each")).select(
        *parts,
        "each.worker",
        "each.ended",
        "each.group",
        "each.message",
        F.lit(False).alias("final"),
        "each.how",
    )
    retried = ran.where("how <> 'fail' AND `group` IS NOT NULL").drop("how")
    all_ = failed.unionByName(retried).withColumns(
        {
            "date": day("ended"),
            "hour": F.floor(F.unix_micros("ended") / 3_600_000_000) % 24,
            "message": F.expr(
                f"IF(length(message) > {LONGEST}, '…' || right(message, {LONGEST}), message)"
            ),
        }
    )
    keys = ("namespace", "date", "group", "queue")
    latest = Window.partitionBy(*keys).orderBy(F.desc("final"), F.desc("ended"), "jid")
    ranked = all_.withColumn("rank", F.row_number().over(latest))
    sample = F.when(F.col("rank") <= SAMPLES, F.struct(*SAMPLE.names))
    return (
        ranked.groupBy(*keys)
        .agg(
            F.count(F.when(F.col("final"), 1)).alias("count"),
            F.count(F.when(~F.col("final"), 1)).alias("retried"),
            F.min("ended").alias("first_seen"),
            F.max("ended").alias("last_seen"),
            F.array_sort(F.collect_set("klass")).alias("klasses"),
            F.array(
                *(
                    F.count(F.when(F.col("final") & (F.col("hour") == hour), 1))
                    for hour in range(24)
                )
            ).alias("by_hour"),
            F.sort_array(F.collect_list(sample), asc=False).alias("samples"),
        )
        .select(*TABLES["gold/failures"].schema.names)
    )
