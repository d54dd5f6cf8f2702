"""Runs commands of `aioqless lake` in one process, which starts Spark once.

`python -m tests.contrib.lake.lake_commands` reads the arguments of each command, a list of
lists as JSON, from standard input.
"""

from __future__ import annotations

import json
import sys

from aioqless.cli.main import main


def run(commands: list[list[str]]) -> None:
    for command in commands:
        sys.argv = ["aioqless", "lake", *command]
        try:
            main()
        except SystemExit as ended:
            if ended.code:
                raise


if __name__ == "__main__":
    run(json.load(sys.stdin))
