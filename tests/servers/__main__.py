"""Run the tests of scripts, Sentinel and Cluster on every server version.

The command is `python -m tests.servers`. The scripts' tests run as ACL users that may do only what
one script needs.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import time
from pathlib import Path

from tests.servers.processes import TESTED
from tests.servers.versions import ServerVersion, found, installed

HEAD = "| server | from | tests passed | failed |"
ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "redis.md"
TESTS = (
    "tests/lua",
    *(
        f"tests/servers/test_{name}.py"
        for name in ("full_memory", "acl", "sentinel", "cluster", "old_server")
    ),
)


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="nox -s servers --",
        description="All that works on Redis, on every Redis and Valkey that is found.",
    )
    parser.add_argument("--only", default="", help="servers whose names begin so: 'Redis 8'")
    parser.add_argument(
        "--installed", action="store_true", help="only the wheel's server; nothing is downloaded"
    )
    options, arguments = parser.parse_known_args()
    cache, failed = ROOT / ".nox" / "redis", 0
    for server in [installed(cache)] if options.installed else found(cache):
        if str(server).startswith(options.only):
            began = time.monotonic()
            passed, wrong = _run_tests(server, arguments or list(TESTS))
            row = f"| {server} | {server.origin} | {passed:,} | {wrong} |"
            print(row, f"{time.monotonic() - began:.0f} s", flush=True)
            failed += wrong
            if not arguments:
                _record(row)
    return 1 if failed else 0


def _record(row: str) -> None:
    """Write a row into the table, replacing that of an earlier run on this server."""
    text = PAGE.read_text("utf-8")
    marked = re.compile(r"(?<=<!-- servers -->\n).*?(?=<!-- /servers -->)", re.DOTALL)
    known = {line.split("|")[1]: line for line in [*marked.findall(text)[0].splitlines()[2:], row]}
    lines = [HEAD, "|---|---|---|---|", *(known[name] for name in sorted(known, key=_by_version))]
    PAGE.write_text(marked.sub(lambda _: "\n".join([*lines, ""]), text), "utf-8")


def _by_version(name: str) -> tuple[str, list[int]]:
    kind, version = name.split()
    return kind, [int(part) for part in version.split(".")]


def _run_tests(server: ServerVersion, arguments: list[str]) -> tuple[int, int]:
    """Return how many tests passed and failed with this server first on the PATH."""
    folder = server.program.path.parent
    environment = os.environ | {
        "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}",
        TESTED: str(server.program.path),
        "AIOQLESS_LEAST": "1",
    }
    options = [
        "-q",
        "-n",
        "auto",
        "--no-loadscope-reorder",
        "-p",
        "no:cacheprovider",
        "-m",
        "",
        "--show-capture=no",
    ]
    command = [sys.executable, "-m", "pytest", *options, *arguments]
    said = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    ).stdout
    counts = {
        what: int(count)
        for count, what in re.findall(
            r"(\d+) (passed|failed|errors?)\b", said.splitlines()[-1] if said else ""
        )
    }
    wrong = sum(count for what, count in counts.items() if what != "passed")
    if wrong or not counts:
        print(said[-5000:], file=sys.stderr)
    return counts.get("passed", 0), wrong if counts else 1


if __name__ == "__main__":
    sys.exit(main())
