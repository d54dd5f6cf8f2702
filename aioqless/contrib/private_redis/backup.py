"""Copies a private server's data, also while the server runs."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from aioqless.contrib.private_redis.data_dir import POLL_INTERVAL, DataDir, translate_os_errors
from aioqless.contrib.private_redis.resp_client import RespClient, connect
from aioqless.errors import ServerUnavailable

REWRITE_OPTION = "auto-aof-rewrite-percentage"
REWRITE_DEFAULT = 100  # settings.py sets no other


@translate_os_errors()
def backup(into: Path, data_dir: Path | None = None, *, timeout: float = 30.0) -> int:
    """Copy the data into a new directory, which is a data directory by itself.

    Everything that was acknowledged before the call is in the copy.

    Args:
        into: the directory to create.
        data_dir: the data directory; default: `$AIOQLESS_DATA`, else the user's own.
        timeout: maximum number of seconds to wait for the server to be ready for a backup.

    Returns:
        The number of bytes.

    Raises:
        ServerUnavailable: if there is no data, if `into` exists, or if its disk is full.
    """
    directory = DataDir.locate(data_dir)
    if not directory.append_only_dir.is_dir():
        raise ServerUnavailable(f"there is no data in {directory.path}")
    into = into.expanduser().resolve()
    if into.exists():
        raise ServerUnavailable(f"{into} exists: choose a directory that doesn't")
    # The server must not start or stop meanwhile: at its start it may truncate a file.
    with (
        directory.lock_transitions(shared=True, timeout=timeout),
        _without_rewrites(directory, timeout),
    ):
        try:
            return _copy(directory, into)
        except OSError as error:
            shutil.rmtree(into, ignore_errors=True)
            raise ServerUnavailable(
                f"{directory.path} can't be copied to {into}: {error.strerror or error}"
            ) from None


def _copy(directory: DataDir, into: Path) -> int:
    into.mkdir(mode=0o700, parents=True)
    folder = into / directory.append_only_dir.name
    folder.mkdir(mode=0o700)
    # The manifest, copied first, names the files that count. These only grow, and a server reads
    # one that ends in the middle of a write up to there.
    files = directory.append_only_dir.iterdir()
    for file in sorted(files, key=lambda each: each.suffix != ".manifest"):
        shutil.copyfile(file, folder / file.name)
    if directory.writer_file.exists():
        shutil.copyfile(directory.writer_file, into / directory.writer_file.name)
    total = 0
    for file in [*folder.iterdir(), *into.iterdir()]:
        if file.is_file():
            file.chmod(0o600)
            total += file.stat().st_size
            with file.open("rb") as written:
                os.fsync(written.fileno())
    return total


@contextmanager
def _without_rewrites(directory: DataDir, timeout: float) -> Iterator[None]:
    """Keep a running server from rewriting its append-only file, which deletes old files."""
    client = connect(directory.socket_path())
    if client is None:
        yield
        return
    with closing(client):
        client.execute(f"CONFIG SET {REWRITE_OPTION} 0")
        try:
            _wait_for_rewrite(directory, client, timeout)
            yield
        finally:
            client.execute(f"CONFIG SET {REWRITE_OPTION} {REWRITE_DEFAULT}")


def _wait_for_rewrite(directory: DataDir, client: RespClient, timeout: float) -> None:
    deadline = time.monotonic() + timeout
    while (
        "aof_rewrite_in_progress:1" in (info := client.execute("INFO persistence"))
        or "aof_rewrite_scheduled:1" in info
    ):
        if time.monotonic() > deadline:
            raise ServerUnavailable(
                f"the server in {directory.path} has been rewriting its append-only file for "
                f"{timeout:g} s: try again later"
            )
        time.sleep(POLL_INTERVAL)
