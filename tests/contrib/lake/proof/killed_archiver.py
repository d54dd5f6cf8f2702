"""`aioqless lake archive` that is killed at one of its commits.

`python -m tests.contrib.lake.proof.killed_archiver POINT NUMBER ARGUMENTS...` dies by SIGKILL
before, within or after its commit of that number.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from typing import Any

from aioqless.cli.main import main as run_command
from aioqless.contrib.lake.open_table import OpenTable

POINTS = ("before", "within", "after")
LONGEST_COMMIT = 0.04


def main(point: str, number: int, *arguments: str) -> None:
    commit = OpenTable.commit
    commits = 0

    def commit_or_die(self: OpenTable, *arguments: Any, **options: Any) -> None:
        nonlocal commits
        commits += 1
        if commits < number:
            return commit(self, *arguments, **options)
        if point == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        if point == "within":
            # By another process: delta-rs may hold the interpreter's lock meanwhile.
            delay = random.uniform(0, LONGEST_COMMIT)
            subprocess.Popen(["sh", "-c", f"sleep {delay:.3f}; kill -9 {os.getpid()}"])
        commit(self, *arguments, **options)
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError("survived")

    OpenTable.commit = commit_or_die  # type: ignore  # what this program is for
    sys.argv = ["aioqless", *arguments]
    run_command()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), *sys.argv[3:])
