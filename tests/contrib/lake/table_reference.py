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
