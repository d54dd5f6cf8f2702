"""Events and runs as literal rows, with defaults for what a test doesn't give."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pyarrow as pa

from aioqless.contrib.lake.database import create_views, open_database
from aioqless.contrib.lake.refresh import TEXTS, prepare
from aioqless.contrib.lake.schema import TABLES

MIDNIGHT = datetime(2026, 11, 21, tzinfo=UTC)
NAMES = TABLES["bronze/events"].schema.names


def at(seconds: float) -> datetime:
    """Seconds after midnight."""
    return MIDNIGHT + timedelta(seconds=seconds)


def run(
    put: float | None, popped: float, ended: float, how: str = "complete", **more: Any
) -> dict[str, Any]:
    """An attempt; times are seconds after midnight."""
    times = {"put": None if put is None else at(put), "popped": at(popped), "ended": at(ended)}
    return (
        {"worker": "w1", "fence": 1, "failure_group": None, "message": None}
        | times
        | {"how": how}
        | more
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
        "id": f"{int(last['ended'].timestamp() * 1000)}-0",
        "what": what,
        "jid": jid,
        "klass": "Greet",
        "queue": "mail",
        "state": states[what],
        "priority": 0.0,
        "tags": [],
        "depends": [],
        "retries": 5,
        "remaining": 5,
        "swept": False,
        "put": attempts[0]["put"] if attempts else None,
        **{name: last.get(name) for name in ("popped", "worker", "failure_group", "message")},
        "ended": last["ended"],
        "runs": list(attempts),
        "namespace": "ql",
    }
    row = dict.fromkeys(NAMES) | usual | more
    return row | {"date": row["date"] or date(2026, 11, 21)}


def events(*rows: Mapping[str, Any]) -> pa.Table:
    """A table of events."""
    return pa.Table.from_pylist([dict(row) for row in rows], TABLES["bronze/events"].schema)


def made(name: str, *given: Mapping[str, Any], **texts: str) -> pa.Table:
    """A table or view of the lake, made of these events; or what another text says, by name."""
    with open_database() as database:
        database.register("events", events(*given))
        prepare(database)
        create_views(database)
        text = {**TEXTS, "jobs": "FROM jobs", "paths": "FROM paths", **texts}[name]
        return database.execute(text).to_arrow_table()


class Row(dict[str, Any]):
    """A row whose values are attributes, too; also those of the structs in it."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None


def rows(table: pa.Table) -> list[Row]:
    """The rows of a table; maps as dictionaries."""
    is_map = {each.name for each in table.schema if pa.types.is_map(each.type)}
    return [
        Row({name: dict(value) if name in is_map else _row(value) for name, value in row.items()})
        for row in table.to_pylist()
    ]


def _row(value: Any) -> Any:
    if isinstance(value, dict):
        return Row(value)
    return [_row(each) for each in value] if isinstance(value, list) else value


def by(rows: pa.Table | Sequence[Row], *keys: str) -> dict[Any, Row]:
    """Rows by the value of a column, or of several."""
    found = as_rows(rows) if isinstance(rows, pa.Table) else rows
    return {
        row[keys[0]] if len(keys) == 1 else tuple(row[key] for key in keys): row for row in found
    }


as_rows = rows
