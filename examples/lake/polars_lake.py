"""Read a lake with Polars.

python -m examples.lake.polars_lake LAKE
"""

from __future__ import annotations

import sys
from datetime import date

import polars as pl


def slowest_classes(lake: str, first: date, top: int = 10) -> pl.DataFrame:
    """Return the classes with the highest 95th percentile of run times since a day.

    The statistics that Delta's log has of each file keep Polars from reading other days.
    """
    return (
        pl.scan_delta(f"{lake}/silver/runs")
        .filter(pl.col("date") >= first, pl.col("how").is_in(["complete", "advance"]))
        .group_by("klass")
        .agg(pl.len().alias("runs"), pl.col("run").quantile(0.95).alias("p95"))
        .sort("p95", "klass", descending=[True, False])
        .head(top)
        .collect()
    )


if __name__ == "__main__":
    print(slowest_classes(sys.argv[1], date(1970, 1, 1)))
