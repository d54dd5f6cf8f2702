"""Puts a file of rows as jobs: lake put."""

from __future__ import annotations

import json
import tempfile
from inspect import Parameter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from aioqless.cli.connect import check_one_partition
from aioqless.cli.exit_codes import ROWS_REJECTED
from aioqless.cli.options import Namespace, Url

from .shared import Conf, Master, command, print_progress, spark_opener

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# Options of the source that are options of the command: their types and what they mean.
_OPTIONS: Final[dict[str, tuple[Any, str]]] = {
    "queue": (str, "Queue of the jobs, unless the rows have a column queue."),
    "klass": (str, "Klass of the jobs, unless the rows have a column klass."),
    "priority": (float, "Lower runs sooner."),
    "delay": (float, "Seconds until they may run."),
    "retries": (int, "Maximum number of retries of each."),
    "tags": (str, "Separated by commas."),
    "batch": (str, "A name for this load: the same rows of another load are put again."),
    "max_depth": (int, "Wait while a queue has this many jobs."),
    "rejects": (str, "A folder for rows that can't be jobs, with the reasons."),
}
_PARAMETERS: Final = [
    Parameter(
        name,
        Parameter.KEYWORD_ONLY,
        default=None,
        annotation=Annotated[kind | None, typer.Option(help=text)],
    )
    for name, (kind, text) in _OPTIONS.items()
]


@command(parameters=_PARAMETERS)
def put(
    file: Annotated[
        str, typer.Argument(help="A file or folder of CSV, JSON (an object a line) or Parquet.")
    ],
    format: Annotated[
        str | None, typer.Option(help="csv, json or parquet; default: by the file's name.")
    ] = None,
    schema: Annotated[
        str | None, typer.Option(help="The columns, as in SQL: 'url string, size long'.")
    ] = None,
    master: Master = None,
    conf: Conf = None,
    url: Url = None,
    namespace: Namespace = "ql",
    **options: Any,
) -> None:
    """Put each row as a job.

    Rows that this command or a former run of it has put are not put again.

    Exit code 6: some rows were rejected, the others are jobs.
    """
    check_one_partition(namespace)
    open_session = spark_opener("put", master, conf, is_needed=True)
    assert open_session
    from aioqless.contrib.lake.row_files import read_rows

    given = {"url": url, "namespace": namespace, "dropNulls": "true", **options}
    given["maxDepth"] = given.pop("max_depth")
    rows = read_rows(open_session(), file, kind=format, schema=schema)
    print_progress(f"putting the rows of {file}")
    counts = _write(rows, {name: str(each) for name, each in given.items() if each is not None})
    print(f"{counts['put']:,} put, {counts['existing']:,} existed, {counts['rejected']:,} rejected")
    if counts["rejected"]:
        print_progress(f"what was rejected, and why: {options['rejects']}")
        raise typer.Exit(ROWS_REJECTED)


def _write(rows: DataFrame, options: dict[str, str]) -> dict[str, int]:
    """Write the rows; return how many were put, existed already, and were rejected."""
    with tempfile.TemporaryDirectory(prefix="aioqless-") as folder:
        file = Path(folder) / "counts.json"
        rows.write.format("aioqless").mode("append").options(**options, counts=str(file)).save()
        counts: dict[str, int] = json.loads(file.read_text("utf-8"))
        return counts
