"""A database in memory in which SQL finds the tables of a lake, and views of them by name.

The texts are in `sql/`, in DuckDB's dialect. `sql/named` has queries for users.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping
from contextlib import contextmanager
from importlib import resources
from string import Template
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

from aioqless.contrib.lake.lake import Lake
from aioqless.contrib.lake.open_table import ConcurrentCommit
from aioqless.contrib.lake.schema import TABLES
from aioqless.contrib.lake.storage import LakeError
from aioqless.errors import require_extra

with require_extra("lake-read"):
    import duckdb

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import date

    from duckdb import DuckDBPyConnection

NAMES: Final = {
    "unreadable" if name.startswith("quarantine") else name.partition("/")[2]: name
    for name in TABLES
}
VIEWS: Final = {"jobs": ("events",), "paths": ("events", "jobs")}  # with what each is made of
_MEMORY: Final = "1GB"  # beyond which DuckDB writes to files


def read_sql(name: str, **values: object) -> str:
    """Return the SQL of a file in `sql/`, with values in the places that it leaves open."""
    text = resources.files(__package__).joinpath("sql", f"{name}.sql").read_text("utf-8")
    return Template(text).substitute(values) if values else text


def read_named(name: str) -> str:
    """Return a query of `sql/named`.

    Raises:
        LakeError: There is none of this name.
    """
    files = {
        each.name: each for each in resources.files(__package__).joinpath("sql/named").iterdir()
    }
    if (file := files.get(f"{name}.sql")) is None:
        known = ", ".join(sorted(each.removesuffix(".sql") for each in files))
        raise LakeError(f"there is no query {name!r}; there are {known}")
    return file.read_text("utf-8")


def count_statements(text: str) -> int:
    """Return the number of statements in SQL."""
    return len(duckdb.extract_statements(text))


@contextmanager
def open_database() -> Iterator[DuckDBPyConnection]:
    """Yield an empty database, which has the functions of `macros.sql`.

    Raises:
        ConcurrentCommit: Another process deleted files that are read.
    """
    # DuckDB 2 recommends relations, which return rows much slower in DuckDB 1.
    warnings.filterwarnings("ignore", "Arrow output on a DB-API result", UserWarning)
    with TemporaryDirectory(prefix="aioqless-") as folder, duckdb.connect() as database:
        database.execute(f"SET TimeZone = 'UTC'; SET memory_limit = '{_MEMORY}'")
        database.execute("SET preserve_insertion_order = false; SET enable_progress_bar = false")
        database.execute(f"SET temp_directory = '{folder}'")
        database.execute(read_sql("macros"))
        try:
            yield database
        except duckdb.Error as error:
            if "FileNotFoundError" not in str(error):
                raise
            raise ConcurrentCommit("another process deleted files of the lake meanwhile") from None


@contextmanager
def open_lake_database(
    lake: Lake,
    names: Collection[str] = (*NAMES, *VIEWS),
    *,
    namespace: str | None = None,
    dates: tuple[date, date] | None = None,
) -> Iterator[DuckDBPyConnection]:
    """Yield a database with tables and views of a lake.

    Args:
        lake: The lake.
        names: The tables and views, all unless given.
        namespace: Only rows of this namespace and its partitions.
        dates: Only rows from one `date` to another.
    """
    with open_database() as database:
        needed = {*names}.union(*(VIEWS.get(name, ()) for name in names))
        for name, table in NAMES.items():
            if name in needed:
                opened = lake.table(table)
                chosen = {
                    each.partition
                    for each in opened.files(within=namespace)
                    if dates is None or dates[0] <= each.date <= dates[1]
                }
                database.register(name, opened.rows(chosen))
        create_views(database, [name for name in VIEWS if name in needed])
        yield database


def create_views(database: DuckDBPyConnection, names: Collection[str] = tuple(VIEWS)) -> None:
    """Make views known to SQL; the tables of which they are made are known already."""
    for name in names:
        database.execute(f"CREATE TEMP VIEW {name} AS {read_sql(name)}")


def fetch(
    database: DuckDBPyConnection, query: str, values: Mapping[str, Any] | None = None
) -> list[dict[str, Any]]:
    """Return the rows of a query."""
    answer = database.execute(query, dict(values or {}))
    names = [column[0] for column in answer.description]
    return [dict(zip(names, row, strict=True)) for row in answer.fetchall()]
