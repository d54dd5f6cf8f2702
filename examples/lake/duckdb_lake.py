"""Query a lake with DuckDB.

python -m examples.lake.duckdb_lake LAKE "SELECT queue, sum(failed) FROM klasses GROUP BY queue"
"""

from __future__ import annotations

import sys
from pathlib import Path

import duckdb

from aioqless.contrib.lake.read.database import NAMES, create_views, read_sql


def connect(lake: str) -> duckdb.DuckDBPyConnection:
    """Return a connection with a view for each table of the lake, and the views of jobs."""
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    load_delta(connection)
    for view, table in NAMES.items():
        place = f"{lake}/{table}".replace("'", "''")
        connection.execute(f"CREATE VIEW {view} AS SELECT * FROM delta_scan('{place}')")
    connection.execute(read_sql("macros"))
    create_views(connection)
    return connection


def load_delta(connection: duckdb.DuckDBPyConnection) -> None:
    """Load DuckDB's Delta extension, from PyPI if it is installed, otherwise from DuckDB's site."""
    try:
        import duckdb_extension_delta as package
    except ImportError:
        connection.execute("INSTALL delta; LOAD delta")
        return
    folder = Path(package.__file__).parent
    (extension,) = folder.rglob(f"v{duckdb.__version__}/delta.duckdb_extension")
    connection.load_extension(str(extension))


if __name__ == "__main__":
    lake, query = sys.argv[1:]
    print(connect(lake).sql(query))
