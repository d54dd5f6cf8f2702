"""One Spark session for all tests of the lake, and one lake for those that only read.

Either takes longer to make than most tests take.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("deltalake")

from pyspark.sql import SparkSession

import aioqless
from aioqless.cli.main import main
from aioqless.contrib.lake.lake import Lake
from tests.contrib.lake.lakes import EARLY, FAST, LATE, archive, copied, fill, open_session
from tests.contrib.lake.servers import BUCKET, running_store


def write_configuration(folder: Path) -> str:
    """Write a folder of Spark's configuration for another process (SPARK_CONF_DIR)."""
    logging = Path(aioqless.__file__).parent / "contrib/lake/spark/log4j2.properties"
    folder.mkdir()
    shutil.copy(logging, folder)
    (folder / "spark-defaults.conf").write_text(
        "".join(f"{name} {value}\n" for name, value in FAST.items())
    )
    return str(folder)


RunLakeCommand: TypeAlias = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run_lake_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> RunLakeCommand:
    """Return a function that runs a `lake` command in this process.

    It takes the arguments, and returns the exit code, standard output and standard error.
    """

    def run(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["aioqless", "lake", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        return (int(ended.value.code or 0), *capsys.readouterr())

    return run


@pytest.fixture(scope="session")
def spark(java_program: str) -> Iterator[SparkSession]:
    """Yield a session on two cores of this machine."""
    os.environ["PYTHONPATH"] = os.pathsep.join(
        [str(Path.cwd()), *filter(None, [os.environ.get("PYTHONPATH")])]
    )
    spark = open_session()
    yield spark
    spark.stop()


@pytest.fixture(scope="session")
def store_log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("store") / "log"


@pytest.fixture(scope="session")
def store_environment(store_log: Path) -> Iterator[dict[str, str]]:
    """Yield the environment in which delta-rs finds an object store."""
    with running_store(store_log) as environment:
        yield environment


@pytest.fixture
def stored_lake(
    store_environment: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> str:
    """The URL of a lake on the object store, which isn't there yet."""
    for name, value in store_environment.items():
        monkeypatch.setenv(name, value)
    return f"s3a://{BUCKET}/{tmp_path.name}/sp ace {{é}}"


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """An empty lake."""
    return Lake(tmp_path / "lake", create=True)


@pytest.fixture(scope="session")
def whole(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """Return a lake of all events of `lakes.py`; tests that change it make a copy."""
    lake = Lake(tmp_path_factory.mktemp("whole") / "lake", create=True)
    for rows in (EARLY[:1], EARLY[1:]):
        archive(lake, *rows)
    fill(lake, *LATE)
    return lake


@pytest.fixture
def filled(whole: Lake, tmp_path: Path) -> Lake:
    """A copy of the lake `whole`, to be changed."""
    return copied(whole, tmp_path / "filled")
