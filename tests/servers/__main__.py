"""The tests of the scripts, of sentinels and of a Cluster on every server that is found: `python -m tests.servers [pytest's arguments]`.

Stories of scripts are told by users who may do what one script needs, and no more.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path

from .found import Found, found
from .running import TESTED

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "servers.md"
TESTS = ("tests/lua", *(f"tests/servers/test_{name}.py" for name in ("full_memory", "acl", "sentinel", "cluster")))


def main(arguments: list[str]) -> int:
    rows, failed = [], 0
    for server in found(ROOT / ".nox" / "redis"):
        began = time.monotonic()
        passed, wrong = _tested(server, arguments or list(TESTS))
        rows.append(f"| {server} | {server.origin} | {passed:,} | {wrong} |")
        print(rows[-1], f"{time.monotonic() - began:.0f} s", flush=True)
        failed += wrong
    if not arguments:
        table = "\n".join(["| server | from | tests passed | failed |", "|---|---|---|---|", *rows])
        marked = re.compile(r"(?<=<!-- servers -->\n).*?(?=<!-- /servers -->)", re.DOTALL)
        PAGE.write_text(marked.sub(lambda _: f"{table}\n", PAGE.read_text("utf-8")), "utf-8")
    return 1 if failed else 0


def _tested(server: Found, arguments: list[str]) -> tuple[int, int]:
    """How many tests passed and failed with this server as the one that is found first."""
    folder = server.program.path.parent
    environment = os.environ | {
        "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}",
        TESTED: str(server.program.path),
        "AIOQLESS_LEAST": "1",
    }
    options = ["-q", "-n", "auto", "--no-loadscope-reorder", "-p", "no:cacheprovider", "--show-capture=no"]
    command = [sys.executable, "-m", "pytest", *options, *arguments]
    said = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False).stdout
    counts = {what: int(count) for count, what in re.findall(r"(\d+) (passed|failed|errors?)\b", said.splitlines()[-1] if said else "")}
    wrong = sum(count for what, count in counts.items() if what != "passed")
    if wrong or not counts:
        print(said[-5000:], file=sys.stderr)
    return counts.get("passed", 0), wrong if counts else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
