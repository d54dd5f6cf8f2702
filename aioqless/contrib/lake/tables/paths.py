"""gold/paths: for each job that waited for others, the chain of jobs that decided when it could
begin."""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from aioqless.contrib.lake.schema import STEP, TABLES
from aioqless.contrib.lake.tables.days import day, seconds

LONGEST: Final = 90  # steps that are followed back; Spark recurses 100 times

_FOLLOWED = f"""
WITH RECURSIVE followed (namespace, jid, before, depth, steps) AS (
  SELECT namespace, jid, before, 1, array(step) FROM {{linked}} WHERE before IS NOT NULL
  UNION ALL
  SELECT f.namespace, f.jid, l.before, depth + 1, concat(array(l.step), steps)
  FROM followed f JOIN {{linked}} l ON l.namespace = f.namespace AND l.jid = f.before
  WHERE depth < {LONGEST}
)
SELECT * FROM followed WHERE before IS NULL OR depth = {LONGEST}
"""


def paths(jobs: DataFrame) -> DataFrame:
    """The critical path of each job that has dependencies which ended before it began: the one that
    ended last, what that one waited for, and so on; `steps` begins with the first. On the day of
    the job's end."""
    ran = jobs.where("popped IS NOT NULL")
    asked = ran.where("size(depends) > 0").select(
        *(
            "namespace",
            F.col("jid").alias("of"),
            "popped",
            "ended",
            F.explode("depends").alias("jid"),
        )
    )
    ends = ran.select("namespace", "jid", F.col("ended").alias("done"))
    last = (
        asked.join(ends, ["namespace", "jid"])
        .where("done <= popped AND done < ended")
        .groupBy("namespace", "of")
    )
    before = last.agg(F.max_by("jid", F.struct("done", "jid")).alias("before")).withColumnRenamed(
        "of", "jid"
    )
    linked = ran.join(before, ["namespace", "jid"], "left").select(
        "namespace", "jid", "before", F.struct(*STEP.names).alias("step")
    )
    linked = linked.localCheckpoint()  # or each step back would join anew
    followed = jobs.sparkSession.sql(_FOLLOWED, linked=linked)
    first, final = F.element_at("steps", 1), F.element_at("steps", -1)
    found = followed.join(ran.select("namespace", "jid", "state"), ["namespace", "jid"]).select(
        *("namespace", "jid", "state"),
        *(final[name].alias(name) for name in ("klass", "queue", "ended")),
        F.coalesce(first["put"], first["popped"]).alias("began"),
        F.size("steps").cast("long").alias("depth"),
        F.aggregate(
            "steps", F.lit(0.0), lambda total, step: total + F.coalesce(step["run"], F.lit(0.0))
        ).alias("running"),
        "steps",
    )
    spans = found.withColumns({"date": day("ended"), "seconds": seconds("began", "ended")})
    return spans.withColumn(
        "waiting", F.greatest(F.lit(0.0), F.col("seconds") - F.col("running"))
    ).select(*TABLES["gold/paths"].schema.names)
