"""A PostgreSQL server of a test session's own, which listens on a socket in its folder."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg


@contextmanager
def running_server(initdb: str, folder: Path) -> Iterator[None]:
    """Run the server of an initdb in an empty folder; PostgreSQL refuses to run as root."""
    binaries = Path(initdb).resolve().parent
    user = None
    if os.getuid() == 0:
        user = "nobody"
        shutil.chown(folder, user)
    data = folder / "data"
    subprocess.run(
        [binaries / "initdb", "-D", data, "-U", "postgres", "-A", "trust", "--no-sync"],
        user=user,
        check=True,
        stdout=subprocess.DEVNULL,
        cwd=folder,
    )
    options = ("listen_addresses=", f"unix_socket_directories={folder}", "fsync=off")
    settings = [word for option in options for word in ("-c", option)]
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen(
            [binaries / "postgres", "-D", data, *settings],
            user=user,
            stdout=log,
            stderr=log,
            cwd=folder,
        )
    try:
        _wait_until_ready(server, folder)
        yield
    finally:
        server.send_signal(signal.SIGINT)  # fast shutdown: SIGTERM waits for connections
        server.wait(60)


def _wait_until_ready(server: subprocess.Popen[bytes], folder: Path) -> None:
    while server.poll() is None:
        try:
            psycopg.connect(host=str(folder), user="postgres", connect_timeout=5).close()
        except psycopg.OperationalError:
            continue
        return
    raise AssertionError((folder / "log").read_text())
