"""Jobs that match a filter, a day of the lake at a time: also those that Redis no longer has."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import date
from typing import Any, Final

import msgspec

from aioqless.client.job.summaries import JobSummary
from aioqless.contrib.job_filter import JobFilter
from aioqless.contrib.lake.lake import Lake
from aioqless.contrib.lake.read.database import fetch, open_lake_database
from aioqless.contrib.lake.schema import EVENTS

_MAX_DATA: Final = 2000  # bytes, as in lists of Redis' jobs
# What texts of a condition are compared with; an expression that is null has none.
_TEXTS: Final = {
    **{key: f"[{key}]" for key in ("state", "klass", "jid", "queue", "worker")},
    "group": "[if(state = 'failed', failure_group, NULL)]",
    "tag": "tags",
}
_NUMBERS: Final = {
    "time": "epoch_us(ended) / 1e6",
    "run": "seconds_between(popped, ended)",
}
_QUERY: Final = """
SELECT
    jid, klass, state, '' AS queue, '' AS worker, coalesce(priority, 0) AS priority,
    coalesce(retries, 0) AS retries, coalesce(remaining, 0) AS remaining, 0 AS expires,
    coalesce(tags, []) AS tags, epoch_us(ended) / 1e6 AS time, 0 AS due,
    coalesce(failure_group, '') AS "group", coalesce(message, '') AS message,
    epoch_us(ended) / 1e6 AS failed, coalesce(worker, '') AS failed_by,
    if(strlen(data) > $most, NULL, data) AS data,
    coalesce(strlen(data), data_size, 0) AS size, coalesce(queue, '') AS last_queue,
    coalesce(worker, '') AS last_worker, seconds_between(popped, ended) AS ran
FROM (
    FROM events
    QUALIFY row_number() OVER (PARTITION BY namespace, jid ORDER BY ended DESC, id DESC) = 1
)
WHERE {conditions}
ORDER BY ended DESC, jid LIMIT $count
"""


def list_days(lake: Lake, namespace: str) -> list[date]:
    """Return the days of which the lake has events, latest first."""
    files = lake.table(EVENTS).files(within=namespace)
    return sorted({each.date for each in files}, reverse=True)


def search_day(
    lake: Lake,
    namespace: str,
    wanted: JobFilter,
    day: date,
    count: int,
    *,
    max_data: int = _MAX_DATA,
) -> list[JobSummary]:
    """Return jobs that match a filter as they were at the end of their last stage of a day.

    Args:
        lake: The lake.
        namespace: The namespace, with its partitions.
        wanted: The filter.
        day: The day, in UTC.
        count: Maximum number of jobs, the latest.
        max_data: Maximum number of bytes of data that are returned with a job.
    """
    values: dict[str, Any] = {"most": max_data, "count": count}
    conditions = msgspec.json.decode(wanted.encode(time.time()))
    texts = [_write(each, values) for each in conditions]
    query = _QUERY.format(conditions=" AND ".join(texts) or "true")
    with open_lake_database(lake, ["events"], namespace=namespace, dates=(day, day)) as database:
        return [JobSummary(**row) for row in fetch(database, query, values)]


def _write(condition: dict[str, Any], values: dict[str, Any]) -> str:
    """Return a condition in SQL, and add the values that it names."""

    def name(value: Any) -> str:
        values[key := f"v{len(values)}"] = value
        return f"${key}"

    if (texts := condition.get("values")) is None:
        number = _NUMBERS[condition["key"]]
        bounds = {"least": ">=", "most": "<"}
        found = " AND ".join(
            f"{number} {sign} {name(condition[bound])}"
            for bound, sign in bounds.items()
            if bound in condition
        )
    else:
        lists = _list_texts(condition, name)
        found = f"len(list_filter({lists}, lambda x: {' OR '.join(_compare(texts, name))})) > 0"
    return f"{'NOT ' * condition['negated']}coalesce({found}, false)"


def _list_texts(condition: dict[str, Any], name: Any) -> str:
    if condition["key"] == "data":
        steps = (each.replace("~", "~0").replace("/", "~1") for each in condition["path"])
        pointer = name("".join(f"/{each}" for each in steps))
        member = f"json_extract(if(json_valid(data), data, NULL), {pointer})"
        scalar = f"if(json_type({member}) IN ('OBJECT', 'ARRAY'), NULL, {member} ->> '$')"
        return f"[if(json_type({member}) = 'NULL', 'null', {scalar})]"
    if condition["key"] == "text":
        wanted = name(condition["values"][0][0])
        return f"[jid, if(contains(lower(klass), lower({wanted})), {wanted}, NULL)]"
    return _TEXTS[condition["key"]]


def _compare(texts: list[Any], name: Any) -> Iterator[str]:
    for text, open_start, open_end in texts:
        value = name(text)
        if open_start and open_end:
            yield f"contains(x, {value})"
        elif open_start or open_end:
            yield f"{'ends_with' if open_start else 'starts_with'}(x, {value})"
        else:
            yield f"x = {value}"
