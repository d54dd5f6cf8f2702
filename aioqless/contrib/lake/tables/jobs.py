"""silver/jobs: one row for each job, with its stages. A job is in the partition of the day on which
its first stage ended, for good."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from aioqless.contrib.lake.schema import STAGE, TABLES
from aioqless.contrib.lake.tables.days import seconds


def stages(events: DataFrame) -> DataFrame:
    """One row for each stage of a job that ended: namespace, jid, stage."""
    ran = F.filter("runs", lambda run: run["popped"].isNotNull())
    told = events.withColumns(
        {
            "attempts": F.size(ran).cast("long"),
            "wait": _total(ran, "put", "popped"),
            "run": _total(ran, "popped", "ended"),
            "swept": F.coalesce("swept", F.lit(False)),
        }
    )
    return told.select("namespace", "jid", F.struct(*STAGE.names).alias("stage"))


def stages_of(jobs: DataFrame) -> DataFrame:
    """The stages that rows of jobs were made of, as `stages` has them."""
    return jobs.select("namespace", "jid", F.explode("stages").alias("stage"))


def jobs(stages: DataFrame) -> DataFrame:
    """One row for each jid of a namespace: what its last stage says, what all of them come to, and
    the stages in their order."""
    ordered = F.sort_array(F.collect_list(F.struct("stage.ended", "stage.id", "stage")))
    grouped = stages.groupBy("namespace", "jid").agg(
        F.transform(ordered, lambda each: each["stage"]).alias("stages")
    )
    last = F.element_at("stages", -1)
    of_last = (
        "klass",
        "queue",
        "state",
        "priority",
        "tags",
        "worker",
        "popped",
        "ended",
        "retries",
        "remaining",
        "group",
        "message",
    )
    return grouped.select(
        "namespace",
        "jid",
        *(last[name].alias(name) for name in of_last),
        F.array_min(F.transform("stages", lambda stage: stage["put"])).alias("put"),
        *(_sum(name).alias(name) for name in ("attempts", "wait", "run")),
        _first("spawned_from").alias("spawned_from"),
        F.array_distinct(
            F.flatten(
                F.transform(
                    "stages", lambda s: F.coalesce(s["depends"], F.array().cast("array<string>"))
                )
            )
        ).alias("depends"),
        "stages",
        F.array_min(F.transform("stages", lambda stage: stage["date"])).alias("date"),
    ).select(*TABLES["silver/jobs"].schema.names)


def _total(runs: Column, start: str, end: str) -> Column:
    """Seconds of all runs of a stage together."""
    return F.aggregate(
        runs,
        F.lit(0.0),
        lambda total, run: total + F.coalesce(seconds(run[start], run[end]), F.lit(0.0)),
    )


def _sum(name: str) -> Column:
    zero = F.lit(0).cast("long") if name == "attempts" else F.lit(0.0)
    return F.aggregate("stages", zero, lambda total, stage: total + F.coalesce(stage[name], zero))


def _first(name: str) -> Column:
    """The first stage's that has one."""
    return F.get(
        F.filter(F.transform("stages", lambda stage: stage[name]), lambda value: value.isNotNull()),
        F.lit(0),
    )
