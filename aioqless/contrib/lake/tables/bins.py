"""The bins of histograms: those that the specification has, and from them those of qless."""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F

from aioqless.contrib.lake.tables.days import DAY

MINUTE, HOUR, QUARTER = 60, 3600, 900

# In the order in which Redis keeps its counters: seconds, minutes, hours, days.
QLESS: Final = (
    *(f"s{number}" for number in range(60)),
    *(f"m{number}" for number in range(1, 60)),
    *(f"h{number}" for number in range(1, 24)),
    *(f"d{number}" for number in range(1, 7)),
)
_WIDTHS: Final = {"s": 1, "m": MINUTE, "q": QUARTER, "h": HOUR, "d": DAY}


def fine(value: Column) -> Column:
    """The bin of a number of seconds: s0 to s59, m1 to m59, quarters of an hour q4 to q95, hours
    h24 to h71, then days from d3 on."""

    def named(letter: str) -> Column:
        return F.concat(F.lit(letter), F.floor(value / _WIDTHS[letter]).cast("string"))

    return (
        F.when(value < MINUTE, named("s"))
        .when(value < HOUR, named("m"))
        .when(value < DAY, named("q"))
        .when(value < 3 * DAY, named("h"))
        .otherwise(named("d"))
    )


def qless(bins: Column) -> Column:
    """A histogram of fine bins as one of qless' bins, which are hours within the first day and days
    after it."""

    entries = F.transform(
        F.map_entries(bins),
        lambda each: F.struct(_coarse(each["key"]).alias("key"), each["value"].alias("value")),
    )
    names = F.array_distinct(F.transform(entries, lambda each: each["key"]))

    def total(name: Column) -> Column:
        of_it = F.filter(entries, lambda each: each["key"] == name)
        return F.aggregate(of_it, F.lit(0).cast("long"), lambda total, each: total + each["value"])

    return F.map_from_arrays(names, F.transform(names, total))


def _coarse(name: Column) -> Column:
    letter = F.substring(name, 1, 1)
    number = F.regexp_extract(name, r"(\d+)", 1).cast("long")
    return (
        F.when(letter == "q", F.concat(F.lit("h"), F.floor(number / 4).cast("string")))
        .when(letter == "h", F.concat(F.lit("d"), F.floor(number / 24).cast("string")))
        .otherwise(name)
    )


def span(name: str) -> tuple[int, int]:
    """From how many seconds to how many a bin goes; the second isn't in it."""
    width, number = _WIDTHS[name[0]], int(name[1:])
    return number * width, (number + 1) * width
