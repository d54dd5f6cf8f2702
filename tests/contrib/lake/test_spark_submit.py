"""The pipeline's commands as spark-submit runs them."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("deltalake")

import pyspark

from aioqless import Client
from tests.contrib.lake.conftest import write_configuration
from tests.contrib.lake.test_events import complete_jobs

HOME = Path(pyspark.__file__).parent
PROGRAM = Path("examples/lake/spark_submit.py").absolute()
PACKED = ("pyarrow", "deltalake", "duckdb", "pandas<3", "venv-pack")


async def submit(
    folder: Path, *arguments: str, spark: Sequence[str] = (), **environment: str
) -> str:
    """Run a command with spark-submit, its options and variables; return what it prints."""
    process = await asyncio.create_subprocess_exec(
        HOME / "bin" / "spark-submit",
        *("--master", "local-cluster[2,1,1024]", "--conf", "spark.executor.memory=1g"),
        *("--conf", "spark.ui.enabled=false", "--conf", "spark.driver.host=127.0.0.1"),
        *("--conf", "spark.driver.bindAddress=127.0.0.1"),
        *(*spark, str(PROGRAM), "lake", *arguments),
        cwd=folder,
        env={
            **os.environ,
            "SPARK_CONF_DIR": write_configuration(folder / f"conf of {arguments[0]}"),
            "PYSPARK_PYTHON": sys.executable,
            **environment,
        },
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, complaints = await asyncio.wait_for(process.communicate(), 600)
    assert process.returncode == 0, (out + complaints).decode()[-3000:]
    return out.decode()


@pytest.mark.long
async def test_executors_use_a_packed_environment(client: Client, tmp_path: Path) -> None:
    """The commands of docs/lake-cluster.md, with this checkout as aioqless."""
    await complete_jobs(client, 5)
    environment = tmp_path / "env"
    for command in (
        (sys.executable, "-m", "venv", environment),
        (environment / "bin/pip", "install", "-q", ".", *PACKED),
        (environment / "bin/venv-pack", "-q", "-p", environment, "-o", tmp_path / "packed.tar.gz"),
    ):
        process = await asyncio.create_subprocess_exec(*command)
        assert await asyncio.wait_for(process.wait(), 600) == 0
    packed = ("--archives", f"{tmp_path}/packed.tar.gz#environment")
    python = {"PYSPARK_DRIVER_PYTHON": sys.executable, "PYSPARK_PYTHON": "./environment/bin/python"}
    lake = str(tmp_path / "lake")
    source = ("--url", str(client.url), "--namespace", client.namespace)
    out = await submit(tmp_path, "archive", *source, "--lake", lake, spark=packed, **python)
    assert "5 events in 1 batches" in out
    out = await submit(tmp_path, "tables", "--lake", lake, spark=packed, **python)
    assert "5 events: tables of" in out
