"""Days and seconds, out of timestamps. Days are UTC's, whatever time zone the session has."""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F

DAY: Final = 86_400
LONGEST: Final = 31  # days of a span that are told of one by one


def day(time: Column | str) -> Column:
    """The day of a timestamp."""
    return F.date_from_unix_date(F.floor(F.unix_micros(time) / (DAY * 1_000_000)).cast("int"))


def days_between(start: Column | str, end: Column | str) -> Column:
    """The days from one moment to another, both with, as an array. Of a longer span its last 31: a
    clock that was wrong once, or a time of 1970, would else make tables of 20,000 days."""
    first = F.greatest(F.least(day(start), day(end)), F.date_sub(day(end), LONGEST - 1))
    return F.sequence(first, day(end), F.expr("interval 1 day"))


def seconds(start: Column | str, end: Column | str) -> Column:
    """Seconds between two timestamps, exact to the microsecond; not below 0, which clocks that were
    set back would make them."""
    span = (F.unix_micros(end) - F.unix_micros(start)) / 1e6
    return F.when(span < 0, 0.0).otherwise(span)
