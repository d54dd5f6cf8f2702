"""gold/throughput: what a queue did in each minute: how many came, began and ended, how many waited
and ran on average."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from aioqless.contrib.lake.schema import TABLES
from aioqless.contrib.lake.tables.days import DAY, day, days_between

MICROS = 1_000_000
_LEVELS = ("waiting", "running")
_STEPS = ("waiting_step", "waiting_part", "running_step", "running_part")
_MOMENTS = ("put", "popped", "completed", "failed", "retried")


def throughput(runs: DataFrame, width: int = 60) -> DataFrame:
    """One row for each queue and each `width` seconds (which divide a day) in which something
    waited, ran, came or ended.

    `waiting` and `running` are means over the time, of what has ended by now: what still runs or
    waits isn't in the lake yet, and of what did so for longer than a month only the last one is.
    """
    steps = _moments(runs, width).unionByName(_levels(runs, width), allowMissingColumns=True)
    slots = steps.groupBy("namespace", "queue", "date", "slot").agg(
        *(F.coalesce(F.sum(name), F.lit(0)).cast("long").alias(name) for name in _MOMENTS),
        *(
            F.coalesce(F.sum(name), F.lit(0.0)).alias(name)
            for name in (f"{level}_{what}" for level in _LEVELS for what in ("step", "part"))
        ),
    )
    day_of = Window.partitionBy("namespace", "queue", "date").orderBy("slot")
    # A slot says how things are until the next that is there: it is repeated for all between, at
    # the level that it leaves behind.
    following = F.coalesce(F.lead("slot").over(day_of), F.lit(DAY // width))
    after = {f"{name}_after": F.sum(f"{name}_step").over(day_of) for name in _LEVELS}
    levels = slots.withColumns({**after, "next": following})
    every = levels.select("*", F.explode(F.sequence("slot", F.col("next") - 1)).alias("at"))
    own = F.col("at") == F.col("slot")
    means = {
        name: F.col(f"{name}_after") - F.when(own, F.col(f"{name}_part")).otherwise(0.0)
        for name in _LEVELS
    }
    start = F.unix_date("date") * F.lit(DAY * MICROS) + F.col("at") * F.lit(width * MICROS)
    table = every.select(
        *("namespace", "date", "queue"),
        F.timestamp_micros(start).alias("start"),
        F.lit(width).cast("long").alias("seconds"),
        *(F.when(own, F.col(name)).otherwise(0).alias(name) for name in _MOMENTS),
        *(F.greatest(F.lit(0.0), F.round(mean, 9)).alias(name) for name, mean in means.items()),
    )
    return table.where(" + ".join((*_MOMENTS, *_LEVELS)) + " > 0").select(
        *TABLES["gold/throughput"].schema.names
    )


def _moments(runs: DataFrame, width: int) -> DataFrame:
    """What happened at one moment: a job came into a stage, a run began, a run ended."""
    ended = (
        F.when(F.col("how").isin("complete", "advance"), "completed")
        .when(F.col("how") == "fail", "failed")
        .otherwise("retried")
    )
    every = F.array(
        F.struct(F.when(F.col("attempt") == 1, "put").alias("name"), F.col("put").alias("at")),
        F.struct(F.lit("popped").alias("name"), F.col("popped").alias("at")),
        F.struct(ended.alias("name"), F.col("ended").alias("at")),
    )
    moments = runs.select("namespace", "queue", F.explode(every).alias("each")).select(
        "namespace", "queue", "each.*"
    )
    placed = moments.where("name IS NOT NULL AND at IS NOT NULL").withColumns(
        {"date": day("at"), "slot": _slot("at", width)}
    )
    return placed.select(
        "namespace",
        "queue",
        "date",
        "slot",
        *((F.col("name") == name).cast("long").alias(name) for name in _MOMENTS),
    )


def _levels(runs: DataFrame, width: int) -> DataFrame:
    """Where the number of those that wait or run rises or falls by one, day by day: who waits over
    midnight falls and rises there.

    `…_part` is the share of the slot for which a step isn't in force.
    """
    spans = F.array(
        F.struct(
            F.lit("waiting").alias("name"),
            F.col("put").alias("start"),
            F.col("popped").alias("end"),
        ),
        F.struct(
            F.lit("running").alias("name"),
            F.col("popped").alias("start"),
            F.col("ended").alias("end"),
        ),
    )
    every = (
        runs.select("namespace", "queue", F.explode(spans).alias("each"))
        .select("namespace", "queue", "each.*")
        .where("start < end")
    )
    daily = every.select("*", F.explode(days_between("start", "end")).alias("date"))
    midnight = F.unix_date("date") * F.lit(DAY * MICROS)
    up = F.greatest(F.unix_micros("start"), midnight)
    down = F.least(F.unix_micros("end"), midnight + F.lit(DAY * MICROS))
    steps = F.array(
        F.struct(up.alias("micros"), F.lit(1).alias("step")),
        F.struct(down.alias("micros"), F.lit(-1).alias("step")),
    )
    since = F.col("s.micros") - midnight
    both = daily.select("*", F.explode(steps).alias("s")).where(since < DAY * MICROS)
    slot = F.floor(since / (width * MICROS))
    part = F.col("s.step") * (since - slot * width * MICROS) / (width * MICROS)
    return both.select(
        *("namespace", "queue", "date", slot.cast("long").alias("slot")),
        *(
            F.when(F.col("name") == name, F.col("s.step")).otherwise(0).alias(f"{name}_step")
            for name in _LEVELS
        ),
        *(
            F.when(F.col("name") == name, part).otherwise(0.0).alias(f"{name}_part")
            for name in _LEVELS
        ),
    )


def _slot(at: str, width: int) -> Column:
    return F.floor((F.unix_micros(at) % (DAY * MICROS)) / (width * MICROS)).cast("long")
