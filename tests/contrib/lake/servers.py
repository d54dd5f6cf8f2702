"""Servers on this machine for tests: object stores like S3 and Azure, and Spark Connect."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import pyspark
from pyarrow.fs import AzureFileSystem, S3FileSystem

from tests.server import free_port

BUCKET = "lake-tests"
AZURITE = {
    "account_name": "devstoreaccount1",
    "account_key": (
        "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
    ),
    "blob_storage_scheme": "http",
}
SPARK_HOME = Path(pyspark.__file__).parent
LOCAL_SPARK = {
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}


def options_of(conf: Mapping[str, str]) -> list[str]:
    """Return settings of Spark as options of its programs, and of `aioqless lake`."""
    return [part for each in conf.items() for part in ("--conf", "=".join(each))]


@contextmanager
def running(port: int, log: Path, *command: str, **environment: str) -> Iterator[None]:
    """Run a server in a group of its own, from when it listens; the log has its output."""
    with (
        log.open("wb") as output,
        subprocess.Popen(
            command, env=os.environ | environment, cwd=log.parent, stdout=output, stderr=output,
            start_new_session=True,
        ) as server,
    ):  # fmt: skip
        try:
            for _ in range(1_200):
                assert server.poll() is None, log.read_text()[-3000:]
                with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                    break
                time.sleep(0.1)
            else:
                raise TimeoutError("the server doesn't listen")
            yield
        finally:
            os.killpg(server.pid, signal.SIGTERM)


@contextmanager
def running_store(log: Path) -> Iterator[dict[str, str]]:
    """Run the store with an empty bucket; yields the environment with which delta-rs finds it.

    It logs a line for each request.
    It has a process of its own: delta-rs holds the interpreter's lock while it waits for replies.
    """
    port = free_port()
    program = f"from moto.server import main; main(['-H', '127.0.0.1', '-p', '{port}'])"
    with running(port, log, sys.executable, "-c", program):
        endpoint = f"http://127.0.0.1:{port}"
        S3FileSystem(
            access_key="test", secret_key="test", region="us-east-1", endpoint_override=endpoint,
            allow_bucket_creation=True,
        ).create_dir(BUCKET)  # fmt: skip
        yield {
            "AWS_ENDPOINT_URL": endpoint,
            "AWS_ALLOW_HTTP": "true",
            "AWS_CONDITIONAL_PUT": "etag",
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_REGION": "us-east-1",
        }


@contextmanager
def running_azurite(folder: Path) -> Iterator[dict[str, str]]:
    """Run Azure's emulator with an empty container; yields the environment of `running_store`.

    The address is in a setting, which the archiver passes to Spark's tasks. delta-rs' own variable
    for an emulator is no setting: tasks would need it in the environment of their Java process,
    which an earlier test may have started.
    """
    port = free_port()
    command = ("npx", "--yes", "--package", "azurite@3.37.0", "azurite-blob", "--silent")
    place = ("--blobHost", "127.0.0.1", "--blobPort", str(port), "--location", str(folder))
    options = (*place, "--skipApiVersionCheck")  # pyarrow's may be newer
    with running(port, folder / "log", *command, *options):
        AzureFileSystem(**AZURITE, blob_storage_authority=f"127.0.0.1:{port}").create_dir(BUCKET)
        yield {
            "AZURE_STORAGE_ACCOUNT_NAME": AZURITE["account_name"],
            "AZURE_STORAGE_ACCOUNT_KEY": AZURITE["account_key"],
            "AZURE_STORAGE_ENDPOINT": f"http://127.0.0.1:{port}/{AZURITE['account_name']}",
            "AZURE_ALLOW_HTTP": "true",
        }


@contextmanager
def running_spark_connect(folder: Path, conf: Mapping[str, str]) -> Iterator[str]:
    """Run Spark Connect, with `folder` as its working directory; yields its `sc://` URL."""
    port = free_port()
    settings = {
        **LOCAL_SPARK, **conf, "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
    }  # fmt: skip
    command = [
        str(SPARK_HOME / "bin" / "spark-submit"), "--master", "local[2]",
        "--class", "org.apache.spark.sql.connect.service.SparkConnectServer",
        *options_of(settings), "spark-internal",
    ]  # fmt: skip
    environment = {
        "SPARK_HOME": str(SPARK_HOME), "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": "",
    }  # fmt: skip
    with running(port, folder / "connect-server.log", *command, **environment):
        yield f"sc://127.0.0.1:{port}"
