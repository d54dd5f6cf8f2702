"""The pipeline's commands as spark-submit runs them."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from aioqless import Client
from tests.contrib.lake.conftest import write_configuration
from tests.contrib.lake.lakes import complete_jobs
from tests.contrib.lake.servers import LOCAL_SPARK, SPARK_HOME, options_of

PROGRAM = Path("examples/lake/spark_submit.py").absolute()
PACKED = ("pyarrow", "deltalake", "pandas<3", "venv-pack")


async def run(*command: object, folder: Path | None = None, **environment: str) -> str:
    ran = await asyncio.to_thread(
        subprocess.run, [*map(str, command)],
        cwd=folder, env=os.environ | environment, capture_output=True, text=True, timeout=600,
        check=False,
    )  # fmt: skip
    assert ran.returncode == 0, (ran.stdout + ran.stderr)[-3000:]
    return ran.stdout


@pytest.mark.long
async def test_executors_use_a_packed_environment(client: Client, tmp_path: Path) -> None:
    """The commands of docs/lake-cluster.md, with this checkout as aioqless."""
    await complete_jobs(client, 5)
    packed, environment = tmp_path / "packed.tar.gz", tmp_path / "env"
    await run(sys.executable, "-m", "venv", environment)
    await run(environment / "bin/pip", "install", "-q", ".", *PACKED)
    await run(environment / "bin/venv-pack", "-q", "-p", environment, "-o", packed)
    (tmp_path / "environment").symlink_to(environment)  # in which the driver's Java plans
    conf = options_of({**LOCAL_SPARK, "spark.executor.memory": "1g"})
    submit = (
        *(SPARK_HOME / "bin/spark-submit", "--master", "local-cluster[2,1,1024]", *conf),
        *("--archives", f"{packed}#environment", PROGRAM, "lake"),
    )
    variables = {
        "SPARK_CONF_DIR": write_configuration(tmp_path / "conf"),
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "PYSPARK_PYTHON": "./environment/bin/python",
    }
    source = ("--url", client.url, "--namespace", client.namespace)
    lake = ("--lake", tmp_path / "lake")
    out = await run(*submit, "archive", *source, *lake, folder=tmp_path, **variables)
    assert "5 events in 1 batches" in out
    out = await run(*submit, "tables", *lake, folder=tmp_path, **variables)
    assert "5 events: tables of" in out
