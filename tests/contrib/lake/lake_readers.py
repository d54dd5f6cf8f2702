"""The rows of a lake as other programs read them."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from deltalake import DeltaTable

from aioqless.contrib.lake.lake import Lake

if TYPE_CHECKING:
    import duckdb

COLUMNS = ("ordinal", "id", "jid", "what", "namespace")


def read_with_delta_rs(
    lake: Lake, table: str, columns: Iterable[str] = COLUMNS
) -> list[tuple[Any, ...]]:
    place = lake.storage.within(table)
    opened = DeltaTable(place.url, storage_options=dict(place.options))
    found = opened.to_pyarrow_table(columns=list(columns)).to_pydict()
    return sorted(zip(*found.values(), strict=True))


def read_with_duckdb(
    lake: Lake, table: str, columns: Iterable[str] = COLUMNS
) -> list[tuple[Any, ...]]:
    with connect_duckdb() as connection:
        place = lake.storage.within(table).url
        query = f"SELECT {', '.join(columns)} FROM delta_scan(?)"
        return sorted(connection.execute(query, [place]).fetchall())


def connect_duckdb() -> duckdb.DuckDBPyConnection:
    """Connect to a database in memory that reads Delta tables, also those of the object store."""
    import duckdb
    import duckdb_extension_delta
    import duckdb_extension_httpfs

    connection = duckdb.connect()
    for extension in (duckdb_extension_httpfs, duckdb_extension_delta):
        (file,) = Path(str(extension.__file__)).parent.rglob("*.duckdb_extension")
        connection.execute(f"LOAD '{file}'")
    if endpoint := os.environ.get("AWS_ENDPOINT_URL"):
        connection.execute(
            f"CREATE SECRET (TYPE s3, KEY_ID 'test', SECRET 'test', REGION 'us-east-1', "
            f"ENDPOINT '{urlsplit(endpoint).netloc}', USE_SSL false, URL_STYLE 'path')"
        )
    return connection
