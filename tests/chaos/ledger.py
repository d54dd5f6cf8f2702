"""The ledger: records of all processes, outside of Redis, one line per event in a file each."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

# The records with their values:
#   offer    jids                             a producer is about to put these, in one step
#   put      jids                             Redis acknowledged them
#   refused  jids                             Redis had no memory for them
#   unknown  jids                             no answer came
#   start    jid fence worker expires wall pid   a handler starts; `expires` by Redis' clock, `wall`
#                                             by the process' own
#   end      jid fence how expires            it has ended; `how` is explained in jobs.py
#   set      name jids                        these are about to be put into a job set
#   effect   jid value                        a step has had its effect
#   stored   jid name value                   a run has read this, from now on it stays
#   position jid number                       the position that a cursor has in the beginning
#   item     jid number                       an item of a cursor is finished
#   read     jid values                       what a reader has of an output at its end
#   `told`   jid fence end                    the worker's hook: Redis has stored the outcome


@dataclass(frozen=True, slots=True)
class Note:
    """One record.

    `at` is the monotonic clock that all processes of a machine share (CLOCK_MONOTONIC).
    """

    at: float
    what: str
    values: tuple[Any, ...]


class Ledger:
    """The file of one process.

    When `note` returns, the kernel has the line: it is kept whatever ends the process.
    """

    def __init__(self, folder: Path, role: str) -> None:
        self._folder = folder
        self._file = os.open(
            folder / f"{role}-{os.getpid()}.ledger", os.O_APPEND | os.O_CREAT | os.O_WRONLY
        )

    def note(self, what: str, *values: Any) -> None:
        os.write(self._file, msgspec.json.encode([time.monotonic(), what, *values]) + b"\n")

    def is_first(self, what: str, jid: str) -> bool:
        """Return whether no process has asked this before."""
        try:
            (self._folder / f"{what}-{jid}").touch(exist_ok=False)
        except FileExistsError:
            return False
        return True


def read(folder: Path, process: str = "*") -> list[Note]:
    """Return the records in the order of their times, of all processes or of `worker-<pid>`."""
    return sorted(_lines(folder, process), key=lambda note: note.at)


def _lines(folder: Path, process: str) -> Iterator[Note]:
    for file in folder.glob(f"{process}.ledger"):
        for line in file.read_bytes().splitlines():
            at, what, *values = msgspec.json.decode(line)
            yield Note(at, what, tuple(values))
