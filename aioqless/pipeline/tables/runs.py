"""silver/runs: one row for each attempt at a job."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from aioqless.pipeline.schema import TABLES
from aioqless.pipeline.tables.clock import seconds


def runs(events: DataFrame) -> DataFrame:
    """The attempts that events tell of; `attempt` counts from 1 within a stage. Partitioned as the events are."""
    exploded = events.select("*", F.posexplode("runs").alias("position", "each"))
    return exploded.select(
        "id",
        (F.col("position") + 1).cast("long").alias("attempt"),
        *("jid", "klass", "queue", "tags", "priority"),
        *(F.col(f"each.{name}").alias(name) for name in ("worker", "fence", "put", "popped", "ended")),
        seconds("each.put", "each.popped").alias("wait"),
        seconds("each.popped", "each.ended").alias("run"),
        *(F.col(f"each.{name}").alias(name) for name in ("how", "group", "message")),
        F.coalesce("swept", F.lit(False)).alias("swept"),
        *("namespace", "date"),
    ).select(*TABLES["silver/runs"].schema.names)
