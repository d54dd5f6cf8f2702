"""Days and seconds, out of timestamps. Days are UTC's, whatever time zone the session has."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

DAY = 86_400


def day(time: Column | str) -> Column:
    """The day of a timestamp."""
    return F.date_from_unix_date(F.floor(F.unix_micros(time) / (DAY * 1_000_000)).cast("int"))


def seconds(start: Column | str, end: Column | str) -> Column:
    """Seconds between two timestamps, exact to the microsecond; not below 0, which clocks that were set back would make them."""
    span = (F.unix_micros(end) - F.unix_micros(start)) / 1e6
    return F.when(span < 0, 0.0).otherwise(span)
