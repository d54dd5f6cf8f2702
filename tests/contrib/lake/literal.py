"""Events and runs written down as rows: what isn't said is what most have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any

from pyspark.sql import DataFrame, Row, SparkSession

from aioqless.contrib.lake.schema import TABLES
from aioqless.contrib.lake.tables import runs

MIDNIGHT = datetime(2026, 11, 21, tzinfo=UTC)
NAMES = TABLES["bronze/events"].schema.names


def at(seconds: float) -> datetime:
    """So many seconds after midnight."""
    return MIDNIGHT + timedelta(seconds=seconds)


def run(
    put: float | None, popped: float, ended: float, how: str = "complete", **more: Any
) -> dict[str, Any]:
    """An attempt; times are seconds after midnight."""
    times = {"put": None if put is None else at(put), "popped": at(popped), "ended": at(ended)}
    return (
        {"worker": "w1", "fence": 1, "group": None, "message": None} | times | {"how": how} | more
    )


def event(jid: str, *attempts: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """The end of a stage with these runs; the last one says how it ended."""
    last = attempts[-1] if attempts else {"ended": at(more.pop("ended", 0))}
    what = more.get("what", last.get("how", "cancel"))
    states = {
        "complete": "complete",
        "advance": "waiting",
        "fail": "failed",
        "cancel": "cancelled",
        "move": "waiting",
    }
    usual = {
        "id": f"{int(last['ended'].timestamp() * 1000)}-0", "what": what, "jid": jid, "klass": "Greet", "queue": "mail",
        "state": states[what], "priority": 0.0, "tags": [], "depends": [], "retries": 5, "remaining": 5, "swept": False,
        "put": attempts[0]["put"] if attempts else None, "popped": last.get("popped"), "ended": last["ended"], "worker": last.get("worker"),
        "group": last.get("group"), "message": last.get("message"), "runs": list(attempts), "namespace": "ql",
    }  # fmt: skip
    row = dict.fromkeys(NAMES) | usual | more
    return row | {"date": row["date"] or date(2026, 11, 21)}


def events(spark: SparkSession, *rows: Mapping[str, Any]) -> DataFrame:
    """A table of events."""
    return spark.createDataFrame(
        [tuple(row[name] for name in NAMES) for row in rows], TABLES["bronze/events"].schema
    )


def attempts(spark: SparkSession, *rows: Mapping[str, Any]) -> DataFrame:
    """A table of the runs that these events tell of."""
    return runs(events(spark, *rows))


def by(rows: Sequence[Row], *keys: str) -> dict[Any, Row]:
    """Rows by the value of a column, or of several."""
    return {
        row[keys[0]] if len(keys) == 1 else tuple(row[key] for key in keys): row for row in rows
    }
