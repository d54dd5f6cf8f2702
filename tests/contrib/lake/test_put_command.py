"""`aioqless lake put` as operators run it: files of each format become jobs, once."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from aioqless import Client
from aioqless.cli.exit_codes import ROWS_REJECTED
from tests.contrib.lake.conftest import RunLakeCommand


def written(folder: Path, kind: str, rows: list[dict[str, Any]]) -> Path:
    """A file of this kind."""
    file = folder / f"orders.{kind}"
    lines = [",".join(map(str, row.values())) for row in rows]
    if kind == "parquet":
        pq.write_table(pa.Table.from_pylist(rows), file)
    else:
        lines = [",".join(rows[0]), *lines] if kind == "csv" else list(map(json.dumps, rows))
        file.write_text("\n".join([*lines, ""]))
    return file


@pytest.fixture
def run_put(
    client: Client, spark: SparkSession, run_lake_command: RunLakeCommand
) -> RunLakeCommand:
    """Run `lake put` in the session of the tests."""
    return partial(run_lake_command, "put", "--url", client.url, "--namespace", client.namespace)


@pytest.mark.parametrize(
    "kind", ["csv", *(pytest.param(each, marks=pytest.mark.long) for each in ("json", "parquet"))]
)
async def test_rows_of_a_file_become_jobs_once(
    run_put: RunLakeCommand, client: Client, tmp_path: Path, kind: str
) -> None:
    file = written(tmp_path, kind, [{"order": "007", "amount": 1}, {"order": "008", "amount": 2}])
    given = (file, "--queue", "billing", "--klass", "app.jobs.bill", "--tags", "a, b")
    code, out, err = run_put(*given)
    assert (code, out.splitlines()[-1]) == (0, "2 put, 0 existed, 0 rejected"), err
    jobs = {job.data["order"]: job for job in await client.queue("billing").peek(count=10)}
    amount = "1" if kind == "csv" else 1  # nothing is guessed of texts
    assert set(jobs) == {"007", "008"} and jobs["007"].data == {"order": "007", "amount": amount}
    assert jobs["007"].klass == "app.jobs.bill" and jobs["007"].tags == ["a", "b"]
    if kind == "json":  # the same for each kind
        done, running = await client.queue("billing").pop(2)
        await done.complete()
        assert run_put(*given)[:2] == (0, "0 put, 2 existed, 0 rejected\n")
        counts = await client.queue("billing").counts()
        assert (counts.waiting, counts.running) == (0, 1), "existing jobs are not changed"
        await running.complete()
        assert sorted(await client.jobs.complete_jids()) == sorted([done.jid, running.jid])
        assert run_put(*given, "--batch", "monday")[:2] == (0, "2 put, 0 existed, 0 rejected\n")


async def test_rejected_rows_are_stored_with_the_reason_and_an_exit_code(
    run_put: RunLakeCommand, client: Client, tmp_path: Path
) -> None:
    """One row is no job; Redis refuses another, which depends on itself."""
    depends = {"a": [], "b-history": [], "c": ["c"], "d": []}
    rows = [{"jid": jid, "depends": others} for jid, others in depends.items()]
    given = (written(tmp_path, "json", rows), "--queue", "billing", "--klass", "k")
    code, out, err = run_put(*given)
    assert (code, out) == (1, "")
    assert all(each in err for each in ("a row can't be put as jobs", "b-history", "rejects"))
    for _ in range(2):  # the second time, nothing is stored again
        code, out, err = run_put(*given, "--rejects", tmp_path / "rejects")
        put, existing, rejected = (int(each.split()[0]) for each in out.split(", "))
        assert (code, put + existing, rejected) == (ROWS_REJECTED, 2, 2)
        assert str(tmp_path / "rejects") in err
    rejects = pq.read_table(tmp_path / "rejects").to_pylist()
    reasons = {json.loads(each["row"])["jid"]: each["reason"] for each in rejects}
    assert len(rejects) == len(reasons) == 2
    assert "-history" in reasons["b-history"] and "itself" in reasons["c"]
    assert sorted(job.jid for job in await client.queue("billing").peek(count=10)) == ["a", "d"]


QUEUE, KLASS = ("--queue", "q"), ("--klass", "k")


@pytest.mark.parametrize(
    ("name", "content", "arguments", "why"),
    [
        ("orders.xml", "<a/>", [*QUEUE, *KLASS], "give one of csv, json, parquet by --format"),
        ("none.csv", None, [*QUEUE, *KLASS], "none.csv"),
        ("orders.csv", "n\n1\n", QUEUE, "there is no column 'klass' and no option"),
        ("rows.json", '{"n"\n', [*QUEUE, *KLASS, "--schema", "n long"], "rows.json"),
    ],
)
async def test_errors_are_one_line_and_nothing_is_put(
    run_put: RunLakeCommand,
    client: Client,
    tmp_path: Path,
    name: str,
    content: str | None,
    arguments: list[str],
    why: str,
) -> None:
    if content is not None:
        (tmp_path / name).write_text(content)
    code, out, err = run_put(tmp_path / name, *arguments)
    assert (code, out) == (1, "") and why in err.splitlines()[-1]
    assert await client.queues() == []
