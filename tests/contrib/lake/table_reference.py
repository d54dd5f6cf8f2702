"""Write the reference of the lake's tables from their declaration: docs/lake-tables.md.

python -m tests.contrib.lake.table_reference
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pyarrow as pa

from aioqless.contrib.lake.schema import PARTITION_COLUMNS, TABLES

PAGE: Final = Path(__file__).parents[3] / "docs" / "lake-tables.md"
_HEAD: Final = """# Tables of the lake

All tables and columns of [the lake](lake.md). The same descriptions are in the metadata of the
Delta tables.

Every table is partitioned by `namespace` and `date`, a day in UTC. Timestamps have microseconds and
are in UTC; durations are seconds. Any column may be null, and columns that were added later are
null in older files.

- **`how`** a run ended: `complete`, `advance`, `fail`, `cancel`, `move`, or it was `retried`,
  `released`, `timed-out`, or `lost` its lock. A run that was lost without a retry left counts as a
  failure here; Redis counts it among `retries`, too.
- **`kind`** of times: `wait` is on the day on which the run began, the others on the day it ended.
- **`grouping`** names the columns by which rows are grouped; the others are null. `''` is all. A
  job counts for each of its tags.
- **`histogram`** has qless' bins `s0` to `s59`, `m1` to `m59`, `h1` to `h23`, then days; `bins` has
  finer ones: quarters of an hour (`q4` to `q95`), hours (`h24` to `h71`), then days from `d3`.
- **Percentiles** come from `log_bins` and are within 0.6 % of the exact value. `log_bins`, `bins`,
  `squares` and `count` of several rows add up.
- **`throughput`** has only the last 31 days of a wait or run that is longer than that.
- **A critical path** is the dependency that ended last, the one that it had waited for, and so on,
  at most 90 steps; of the dependencies that a job was put with.

## Schema evolution

- **A new version of aioqless has a column or a table more:** the next `archive` or refresh adds it;
  older rows are null. If the meaning of a column changes, the next refresh rebuilds the tables that
  have it.
- **You add a column:** it is kept; new rows, and rows of silver and gold that a refresh makes
  again, are null. A table of your own that is joined by `jid` lasts longer.
- **You change settings of a table**, such as a description: they are kept.
- **Refused**, without any change: a table that a newer version of aioqless wrote (update aioqless),
  a lake from before Delta (start a new one), and a table with a renamed or dropped column, another
  type, other partitions, or a newer reader of Delta (restore an earlier version of the table).
"""
_TYPES: Final = {
    pa.string(): "string",
    pa.int64(): "long",
    pa.float64(): "double",
    pa.bool_(): "boolean",
    pa.binary(): "binary",
    pa.date32(): "date",
}


def render() -> str:
    """Return the page."""
    parts = [_HEAD]
    for table in TABLES.values():
        parts.append(f"## {table.name}\n\n{table.description}\n")
        rows = [
            f"| `{each.name}` | {_type(each.type)} | {_description(each)} |"
            for each in table.schema
            if each.name not in PARTITION_COLUMNS
        ]
        parts.append("| column | type | |\n|---|---|---|\n" + "\n".join(rows) + "\n")
    return "\n".join(parts)


def _description(field: pa.Field) -> str:
    text = field.metadata[b"comment"].decode()
    if pa.types.is_list(field.type) and pa.types.is_struct(field.type.value_type):
        names = ", ".join(f"`{each.name}`" for each in field.type.value_type)
        return f"{text} Fields: {names}."
    return text


def _type(kind: pa.DataType) -> str:
    if pa.types.is_timestamp(kind):
        return "timestamp"
    if pa.types.is_map(kind):
        return f"map of {_type(kind.key_type)} to {_type(kind.item_type)}"
    if pa.types.is_list(kind):
        return f"list of {_type(kind.value_type)}"
    return "struct" if pa.types.is_struct(kind) else _TYPES[kind]


if __name__ == "__main__":
    PAGE.write_text(render(), "utf-8")
