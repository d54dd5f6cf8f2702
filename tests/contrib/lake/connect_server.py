"""A Spark Connect server on this machine, for tests."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType

import pyspark

from tests.server import free_port

_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.connect.grpc.binding.address": "127.0.0.1",
}


@contextmanager
def running_server(folder: Path, conf: Mapping[str, str] = MappingProxyType({})) -> Iterator[str]:
    """Run the server, with `folder` as its working directory; yields its `sc://` URL."""
    home, port = Path(pyspark.__file__).parent, free_port()
    settings = {**_SETTINGS, **conf, "spark.connect.grpc.binding.port": str(port)}
    options = [part for each in settings.items() for part in ("--conf", "=".join(each))]
    command = [
        str(home / "bin" / "spark-submit"), "--master", "local[2]",
        "--class", "org.apache.spark.sql.connect.service.SparkConnectServer",
        *options, "spark-internal",
    ]  # fmt: skip
    environment = {
        **os.environ,
        "SPARK_HOME": str(home),
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": "",
    }
    log = folder / "connect-server.log"
    with log.open("wb") as output:
        server = subprocess.Popen(
            command, env=environment, cwd=folder, stdout=output, stderr=output,
            start_new_session=True,
        )  # fmt: skip
        try:
            _wait_until_listening(port, server, log)
            yield f"sc://127.0.0.1:{port}"
        finally:
            os.killpg(server.pid, signal.SIGTERM)
            server.wait(60)


def _wait_until_listening(port: int, server: subprocess.Popen[bytes], log: Path) -> None:
    for _ in range(1200):
        assert server.poll() is None, log.read_text()[-3000:]
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.1)
    raise TimeoutError("the Spark Connect server doesn't listen")
