"""By what rows are grouped: each row becomes one for every grouping it is in, and one for each of
its tags."""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

PARTS: Final = ("queue", "klass", "tag", "worker")
GROUPINGS: Final = (
    "",
    "queue",
    "klass",
    "tag",
    "queue,klass",
    "queue,tag",
    "klass,tag",
    "queue,klass,tag",
    "worker",
    "queue,worker",
)
KEYS: Final = ("namespace", "date", "by", *PARTS)


def grouped(rows: DataFrame) -> DataFrame:
    """Each row with `queue`, `klass`, `worker` and `tags` once for every grouping: `by` names it,
    the parts it leaves out are null.

    A job without tags is in none of those by tag; what no worker ran is in none by worker.
    """
    plain = F.array(*(_group(by) for by in GROUPINGS if "tag" not in by.split(",")))
    tagged = [by for by in GROUPINGS if "tag" in by.split(",")]
    by_tags = F.flatten(
        F.transform(
            F.array_distinct("tags"), lambda tag: F.array(*(_group(by, tag) for by in tagged))
        )
    )
    groups = F.when(F.size("tags") > 0, F.concat(plain, by_tags)).otherwise(plain)
    rest = [name for name in rows.columns if name not in (*PARTS, "tags")]
    every = rows.select(*rest, F.explode(groups).alias("group_")).select(*rest, "group_.*")
    return every.where("worker IS NOT NULL OR by NOT LIKE '%worker'")


def known(by: str) -> str:
    """The grouping that a text such as `klass,queue` names. Raises ValueError if there is none."""
    parts = [part.strip() for part in by.split(",") if part.strip()]
    if unknown := [part for part in parts if part not in PARTS]:
        raise ValueError(f"{unknown[0]!r} is nothing to group by; there are {', '.join(PARTS)}")
    name = ",".join(part for part in PARTS if part in parts).replace("klass,worker", "worker,klass")
    if name not in GROUPINGS:
        raise ValueError(
            f"by {name} nothing is kept; there are {' '.join(filter(None, GROUPINGS))}"
        )
    return name


def _group(by: str, tag: Column | None = None) -> Column:
    kept = by.split(",")
    values = {
        "queue": F.col("queue"),
        "klass": F.col("klass"),
        "tag": tag if tag is not None else F.lit(None),
        "worker": F.col("worker"),
    }
    columns = [
        (values[part] if part in kept else F.lit(None)).cast("string").alias(part) for part in PARTS
    ]
    return F.struct(F.lit(by).alias("by"), *columns)
