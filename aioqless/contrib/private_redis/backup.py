"""A copy of a private server's data, taken while it goes on."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from .data_dir import PAUSE, Home, NoServer, explained
from .resp_client import Line, call

REWRITE, USUAL = (
    "auto-aof-rewrite-percentage",
    100,
)  # nobody sets another: a server of ours is run as settings.py says


@explained()
def backup(into: Path, data_dir: Path | None = None, *, patience: float = 30.0) -> int:
    """Copy the data into a new directory, which is a data directory by itself; returns how many
    bytes. What was acknowledged before the call is in it. Raises `NoServer` when there is nothing
    to copy, when `into` is there already, or has no room."""
    home = Home.at(data_dir)
    if not home.data.is_dir():
        raise NoServer(f"there are no data in {home.path}")
    into = into.expanduser().resolve()
    if into.exists():
        raise NoServer(f"{into} is there already: name a directory that isn't")
    # Nobody starts or stops the server meanwhile: a start may mend the end of the file.
    with home.turn(shared=True, patience=patience), _unchanging(home, patience):
        try:
            return _copied(home, into)
        except OSError as wrong:
            shutil.rmtree(into, ignore_errors=True)
            raise NoServer(
                f"{home.path} can't be copied to {into}: {wrong.strerror or wrong}"
            ) from None


def _copied(home: Home, into: Path) -> int:
    into.mkdir(mode=0o700, parents=True)
    folder = into / home.data.name
    folder.mkdir(mode=0o700)
    # The manifest says which files count. Those only grow, and one that ends in the middle of a
    # write is read up to there.
    for file in sorted(home.data.iterdir(), key=lambda each: each.suffix != ".manifest"):
        shutil.copyfile(file, folder / file.name)
    if home.marker.exists():
        shutil.copyfile(home.marker, into / home.marker.name)
    total = 0
    for file in [*folder.iterdir(), *into.iterdir()]:
        if file.is_file():
            file.chmod(0o600)
            total += file.stat().st_size
            with file.open("rb") as written:
                os.fsync(written.fileno())
    return total


@contextmanager
def _unchanging(home: Home, patience: float) -> Iterator[None]:
    """Keep a server that runs from writing its files anew, by which those that are copied would
    go."""
    line = call(home.address())
    if line is None:
        yield
        return
    with closing(line):
        line.ask(f"CONFIG SET {REWRITE} 0")
        try:
            _await_rewrite(home, line, patience)
            yield
        finally:
            line.ask(f"CONFIG SET {REWRITE} {USUAL}")


def _await_rewrite(home: Home, line: Line, patience: float) -> None:
    deadline = time.monotonic() + patience
    while (
        "aof_rewrite_in_progress:1" in (told := line.ask("INFO persistence"))
        or "aof_rewrite_scheduled:1" in told
    ):
        if time.monotonic() > deadline:
            raise NoServer(
                f"the server in {home.path} has been writing its files anew for {patience:g} s: try again later"
            )
        time.sleep(PAUSE)
