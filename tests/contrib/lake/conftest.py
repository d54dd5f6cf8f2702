"""One Spark session for all tests of the pipeline, and one lake for those that only read: either
takes longer to make than most of them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import aioqless

pytest.importorskip("pyspark")

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from aioqless.contrib.lake.lake import Lake

# The least work for Java: one compiler, one collector, nothing verified or compressed, no code
# generated for queries of a few rows. Literal rows come in two partitions, and meet in one.
LITTLE = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
QUICK = {
    "spark.driver.extraJavaOptions": f"{LITTLE} -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote",
    "spark.driver.memory": "1g",
    "spark.driver.maxResultSize": "4m",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.files.minPartitionNum": "1",
    "spark.sql.parquet.compression.codec": "uncompressed",
    "spark.shuffle.compress": "false",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.streaming.numRecentProgressUpdates": "100",
    "spark.python.worker.reuse": "true",
}


def configured(folder: Path) -> str:
    """A new folder of Spark's configuration for a program of its own (SPARK_CONF_DIR): ours, and
    the same as here."""
    shutil.copytree(Path(aioqless.__file__).parent / "contrib/lake/conf", folder)
    (folder / "spark-defaults.conf").write_text(
        "".join(f"{name} {value}\n" for name, value in QUICK.items())
    )
    return str(folder)


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """A session on two cores of this machine, which ends with the tests."""
    from aioqless.contrib.lake.session import session

    os.environ["PYTHONPATH"] = os.pathsep.join(
        [str(Path.cwd()), *filter(None, [os.environ.get("PYTHONPATH")])]
    )
    spark = session("tests", master="local[2]", conf=QUICK)
    yield spark
    spark.stop()


@pytest.fixture(scope="session")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """A lake of all events of `lakes.py`, in three batches, and the tables of them. Tests that
    change it make a copy."""
    from aioqless.contrib.lake.lake import Lake
    from aioqless.contrib.lake.refresh import refresh
    from tests.contrib.lake.lakes import EARLY, LATE, archive, no_spark

    lake = Lake(tmp_path_factory.mktemp("whole") / "lake", create=True)
    for rows in (EARLY[:1], EARLY[1:], LATE):
        archive(lake, *rows)
    refresh(lake, no_spark)
    return lake
