"""What is known of many numbers: how many, mean, squares, least, most, bins, and a sketch for
quantiles. Cells merge into cells.

`squares` is the sum of the squared distances from the mean, so that variances merge without loss.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from aioqless.contrib.lake.tables.bins import fine

SIZE: Final = 1000  # of a sketch: exact up to about so many numbers, then within 0.3 % of the rank
QUANTILES: Final = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99}


def cells(numbers: DataFrame, keys: Sequence[str]) -> DataFrame:
    """The column `seconds` as one cell for each group of `keys` and each bin: small, whatever the
    number of rows."""
    return (
        numbers.withColumn("bin", fine(F.col("seconds")))
        .groupBy(*keys, "bin")
        .agg(
            F.count("*").alias("count"),
            F.avg("seconds").alias("mean"),
            (F.var_pop("seconds") * F.count("*")).alias("squares"),
            F.min("seconds").alias("least"),
            F.max("seconds").alias("most"),
            F.expr(f"kll_sketch_agg_double(seconds, {SIZE})").alias("sketch"),
        )
        .withColumn("bins", F.create_map("bin", "count"))
        .drop("bin")
    )


def merged(cells: DataFrame, keys: Sequence[str]) -> DataFrame:
    """One cell for each group of `keys`, of all numbers that are in its cells."""
    moments = F.collect_list(F.struct(F.col("count").alias("n"), F.col("mean"), F.col("squares")))
    together = cells.groupBy(*keys).agg(
        _folded(moments).alias("moments"),
        F.min("least").alias("least"),
        F.max("most").alias("most"),
        F.expr("kll_merge_agg_double(sketch)").alias("sketch"),
        F.aggregate(
            F.collect_list("bins"), F.create_map().cast("map<string,bigint>"), _added
        ).alias("bins"),
    )
    return together.select(
        *keys,
        F.col("moments.n").alias("count"),
        *(F.col(f"moments.{name}").alias(name) for name in ("mean", "squares")),
        *("least", "most", "sketch", "bins"),
    )


def described(cells: DataFrame) -> DataFrame:
    """Cells with their variance (the sample's, as qless has it) and their quantiles."""
    ranks = F.expr(
        f"kll_sketch_get_quantile_double(sketch, array({', '.join(f'{rank}D' for rank in QUANTILES.values())}))"
    )
    variance = F.when(F.col("count") > 1, F.col("squares") / (F.col("count") - 1)).otherwise(0.0)
    ranked = cells.withColumns({"variance": variance, "ranks_": ranks})
    return ranked.withColumns(
        {name: F.col("ranks_")[index] for index, name in enumerate(QUANTILES)}
    ).drop("ranks_")


def _folded(moments: Column) -> Column:
    zero = F.struct(
        F.lit(0).cast("long").alias("n"), F.lit(0.0).alias("mean"), F.lit(0.0).alias("squares")
    )

    def fold(one: Column, other: Column) -> Column:
        n = one["n"] + other["n"]
        apart = other["mean"] - one["mean"]
        return F.struct(
            n.alias("n"),
            (one["mean"] + apart * other["n"] / n).alias("mean"),
            (one["squares"] + other["squares"] + apart * apart * one["n"] * other["n"] / n).alias(
                "squares"
            ),
        )

    return F.aggregate(moments, zero, fold)


def _added(one: Column, other: Column) -> Column:
    return F.map_zip_with(
        one,
        other,
        lambda _, a, b: F.coalesce(a, F.lit(0).cast("long")) + F.coalesce(b, F.lit(0).cast("long")),
    )
