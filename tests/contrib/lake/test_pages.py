"""The commands and programs of the pages on the lake and on the Spark source run."""

from __future__ import annotations

import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from aioqless import Client
from aioqless.contrib.lake.archiver import Archiver
from tests.cli.conftest import restored_process, run_main
from tests.contrib.lake.lakes import ask, before, complete_jobs
from tests.pages import ROOT, blocks

LAKE: Final = ROOT / "docs" / "lake.md"
CLUSTER: Final = ROOT / "docs" / "lake-cluster.md"
SOURCE: Final = ROOT / "docs" / "spark-source.md"
ERASED: Final = ("4f1c2b", "77ab90")
Capture: TypeAlias = pytest.CaptureFixture[str]
# What is elsewhere, or another day, in a test. Java has a working directory of its own.
SUBSTITUTES: Final = {
    "/var/lib/node_exporter": "{folder}",
    "s3://bucket": "{folder}",
    "orders.csv": "{folder}/orders.csv",
    "--until yesterday": "--until today",
}
# Programs of others, by the first word of their lines.
NOT_RUN: Final = {
    "pip": "the packages are there",
    "export": "the test has an environment of its own",
    "spark-submit": "tests/contrib/lake/test_spark_submit.py",
    "python -m venv": "tests/contrib/lake/test_spark_submit.py",
    "env/bin/": "tests/contrib/lake/test_spark_submit.py",
    "ln -s": "tests/contrib/lake/test_spark_submit.py",
}


def shell_lines(page: Path) -> list[str]:
    """Return the lines of the page's shell examples, without comments."""
    lines = "".join(blocks(page, "sh")).replace("\\\n", " ").splitlines()
    return [shlex.join(shlex.split(line, comments=True)) for line in lines]


def is_ours(line: str) -> bool:
    return line.startswith(("aioqless ", "python -m app."))


@pytest.fixture
def folder(tmp_path: Path, redis_url: str, namespace: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the working directory, with the files of the README's example."""
    for block in blocks(ROOT / "README.md", "python"):
        if found := re.match(r"# (app/\w+\.py)\n", block):
            (tmp_path / found[1]).parent.mkdir(exist_ok=True)
            (tmp_path / found[1]).write_text(block)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("AIOQLESS_URL", redis_url)
    monkeypatch.setenv("AIOQLESS_NAMESPACE", namespace)
    return tmp_path


def run(line: str, folder: Path) -> str:
    """Run a line, and return what it prints; those that use Spark have the session of the tests."""
    for text, here in SUBSTITUTES.items():
        line = line.replace(text, here.format(folder=folder))
    program, *words = shlex.split(line)
    if program == "aioqless" and words[0] != "worker":
        with restored_process():
            ended = run_main(*words)
        assert ended.code == 0, f"{line}: {ended.err}"
        return ended.out
    if program == "aioqless":
        words = ["-m", "aioqless", *words]
    return subprocess.run(
        [sys.executable, *words], stdout=subprocess.PIPE, text=True, check=True, timeout=300
    ).stdout


def run_until_archived(line: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run an archiver until it has committed a batch, when it gets SIGTERM."""
    before(monkeypatch, Archiver, "_note", lambda: signal.raise_signal(signal.SIGTERM))
    handlers = {each: signal.getsignal(each) for each in (signal.SIGTERM, signal.SIGINT)}
    try:
        assert "1 events in 1 batches" in run(line, folder)
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


async def put(client: Client, *jids: str) -> None:
    for jid in jids:
        await client.put("app.jobs.greet", {"name": "Ada"}, jid=jid)


def test_commands_of_the_lake_run_in_the_order_of_the_page(
    folder: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask(lambda client: put(client, *ERASED))
    printed: dict[str, str] = {}
    for line in filter(is_ours, shell_lines(LAKE)):
        if "--every" in line:
            ask(lambda client: put(client, "late"))
            run("aioqless worker app.jobs --burst", folder)
            run_until_archived(line, folder, monkeypatch)
        else:
            printed[line] = run(line, folder)
    assert "3 events in 1 batches" in printed["aioqless lake archive"]
    assert (folder / "report.html").exists() and (folder / "lake.prom").exists()
    (erased,) = [text for line, text in printed.items() if line.startswith("aioqless lake er")]
    assert "2" in erased
    (counted,) = [text for line, text in printed.items() if "count(*)" in line]
    assert counted.splitlines()[1].split()[:2] == ["app.jobs.greet", "4"]


@pytest.mark.long
def test_commands_on_a_cluster_run(folder: Path, spark: SparkSession) -> None:
    ask(lambda client: complete_jobs(client, 3))
    archived, *rest = [run(each, folder) for each in shell_lines(CLUSTER) if is_ours(each)]
    assert "3 events in 1 batches" in archived and "3 events: tables of" in rest[0]
    assert len(rest) == 1


@pytest.mark.long
def test_rows_of_a_file_are_put_by_the_command_of_the_page(
    folder: Path, redis_url: str, namespace: str, spark: SparkSession
) -> None:
    (folder / "orders.csv").write_text("order_id,amount\n7,10\n8,20\n")
    (line,) = [each for each in shell_lines(SOURCE) if is_ours(each)]
    here = f"--url {redis_url} --namespace {namespace}"  # Spark has the environment of its start
    assert run(f"{line} {here}", folder) == "2 put, 0 existed, 0 rejected\n"


def test_lines_of_other_programs_are_known() -> None:
    lines = [
        each for page in (LAKE, CLUSTER, SOURCE) for each in shell_lines(page) if not is_ours(each)
    ]
    assert {each for each in lines if not each.startswith(tuple(NOT_RUN))} == set()


@pytest.mark.long
def test_programs_of_the_page_on_the_source_run(
    folder: Path, redis_url: str, namespace: str, spark: SparkSession, capsys: Capture
) -> None:
    async def prepare(client: Client) -> None:
        await client.put("app.jobs.greet", {"name": "Ada"}, queue="mail")
        (job,) = await client.queue("mail").pop()
        await job.fail("refused", group="mail-SMTPError")

    here = {"url": redis_url, "namespace": namespace}  # Spark has the environment of its start
    ask(prepare)
    orders = pa.table({"order_id": [7, 8], "amount": [10.0, 20.0], "tags": [["a"], None]})
    (folder / "orders").mkdir()
    pq.write_table(orders, folder / "orders" / "2026-01-05")
    names: dict[str, Any] = {}
    for block in blocks(SOURCE, "python"):
        code = block.replace('.option("url", "redis://localhost")', "")
        code = code.replace('("aioqless")', f'("aioqless").options(**{here})')
        # Java has a working directory of its own.
        exec(re.sub(r'(?<=")(?=(?:orders/|rejects"))', f"{folder}/", code), names)
    assert "|mail-SMTPError|    1|" in capsys.readouterr().out
    jobs = {job.data["order_id"]: job for job in ask(lambda own: own.queue("billing").peek())}
    assert jobs.keys() == {7, 8}
    assert jobs[7].tags == ["a"] and jobs[7].klass == "app.jobs.bill"
