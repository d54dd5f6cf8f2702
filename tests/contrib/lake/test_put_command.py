"""`aioqless pipeline put`, as people type it: files of each kind become jobs, once, and what can't
be one is told with the reason."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from aioqless import Client
from aioqless.cli.exit_codes import ROWS_REJECTED
from aioqless.cli.main import main

Told = Callable[..., tuple[int, str, str]]


def written(folder: Path, kind: str, rows: list[dict[str, Any]]) -> Path:
    """A file of this kind."""
    file = folder / f"orders.{kind}"
    match kind:
        case "csv":
            file.write_text(
                "\n".join([",".join(rows[0]), *(",".join(map(str, row.values())) for row in rows)])
                + "\n"
            )
        case "json":
            file.write_text("".join(json.dumps(row) + "\n" for row in rows))
        case _:
            pq.write_table(pa.Table.from_pylist(rows), file)
    return file


@pytest.fixture
def told(
    client: Client,
    spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Told:
    """Run `pipeline put` in this process, in the tests' session; returns its exit code and what it
    wrote to standard output and error."""

    def run(*arguments: object) -> tuple[int, str, str]:
        place = ("--url", client.url, "--namespace", client.namespace)
        monkeypatch.setattr(
            sys, "argv", ["aioqless", "pipeline", "put", *map(str, arguments + place)]
        )
        with pytest.raises(SystemExit) as ended:
            main()
        return (int(ended.value.code or 0), *capsys.readouterr())

    return run


@pytest.mark.parametrize("kind", ["csv", "json", "parquet"])
async def test_a_file_becomes_jobs_and_once_again_nothing(
    told: Told, client: Client, tmp_path: Path, kind: str
) -> None:
    file = written(tmp_path, kind, [{"order": "007", "amount": 1}, {"order": "008", "amount": 2}])
    given = (file, "--queue", "billing", "--klass", "app.jobs.bill", "--tags", "a, b")
    code, out, err = told(*given)
    assert (code, out.splitlines()[-1]) == (0, "2 put, 0 there already, 0 rejected"), err
    jobs = {job.data["order"]: job for job in await client.queue("billing").peek(10)}
    amount = "1" if kind == "csv" else 1  # nothing is guessed of texts
    assert set(jobs) == {"007", "008"} and jobs["007"].data == {"order": "007", "amount": amount}
    assert jobs["007"].klass == "app.jobs.bill" and jobs["007"].tags == ["a", "b"]

    assert told(*given)[:2] == (0, "0 put, 2 there already, 0 rejected\n")
    assert await client.queue("billing").length() == 2
    if kind == "json":
        assert told(*given, "--batch", "monday")[:2] == (0, "2 put, 0 there already, 0 rejected\n")


async def test_what_can_not_be_a_job_is_kept_with_the_reason_and_the_exit_code_says_so(
    told: Told, client: Client, tmp_path: Path
) -> None:
    file = written(
        tmp_path, "json", [{"jid": "a", "n": 1}, {"jid": "b-history", "n": 2}, {"jid": "c", "n": 3}]
    )
    given = (file, "--queue", "billing", "--klass", "k")
    code, out, err = told(*given)
    assert (
        (code, out) == (1, "")
        and "a row can't be put as jobs" in err
        and "b-history" in err
        and "rejects" in err
    )
    code, out, err = told(*given, "--rejects", tmp_path / "rejects")
    put, there, rejected = (int(each.split()[0]) for each in out.split(", "))
    assert (
        code == ROWS_REJECTED
        and (put + there, rejected) == (2, 1)
        and str(tmp_path / "rejects") in err
    )
    (reject,) = pq.read_table(tmp_path / "rejects").to_pylist()
    assert "-history" in reject["reason"] and json.loads(reject["row"])["jid"] == "b-history"
    assert sorted(job.jid for job in await client.queue("billing").peek(10)) == ["a", "c"]


@pytest.mark.parametrize(
    ("name", "content", "arguments", "why"),
    [
        (
            "orders.xml",
            "<a/>",
            ["--queue", "q", "--klass", "k"],
            "say one of csv, json, parquet by --format",
        ),
        ("none.csv", None, ["--queue", "q", "--klass", "k"], "none.csv"),
        ("orders.csv", "n\n1\n", ["--queue", "q"], "there is no column 'klass' and no option"),
        (
            "orders.json",
            '{"n": 1}\n{"n"\n',
            ["--queue", "q", "--klass", "k", "--schema", "n long"],
            "orders.json",
        ),
    ],
)
async def test_what_is_wrong_is_said_in_a_line_and_nothing_is_put(
    told: Told,
    client: Client,
    tmp_path: Path,
    name: str,
    content: str | None,
    arguments: list[str],
    why: str,
) -> None:
    if content is not None:
        (tmp_path / name).write_text(content)
    code, out, err = told(tmp_path / name, *arguments)
    assert (code, out) == (1, "") and why in err.splitlines()[-1]
    assert await client.queues() == []
