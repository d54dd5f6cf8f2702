"""What an audit's jobs leave: the site audit runs with its archive on, and becomes a lake, tables
and a report to look at.

python -m examples.lake [folder]
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path

from aioqless import log
from aioqless.cli.app import app
from aioqless.cli.main import load_command
from aioqless.errors import AioqlessError
from examples.site_audit.__main__ import run, say
from examples.site_audit.pages import client


async def audited(first: str, most: int) -> None:
    """Audit the site; each job that ends is kept for the lake, in the same step in which it
    ends."""
    async with client:
        await client.config.set("archive", "on")
        await run(first, most)


def asked(lake: Path, *command: str) -> None:
    """Run a command of `aioqless pipeline` on this lake, as one would type it; but in this process,
    so that Spark starts once."""
    say(f"$ aioqless pipeline {' '.join(command)} --lake {lake}")
    app(["pipeline", *command, "--lake", str(lake)], standalone_mode=False)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m examples.lake", description="A lake and a report of the site audit."
    )
    parser.add_argument(
        "folder",
        nargs="?",
        type=Path,
        default=Path("audit"),
        help="where both are made (default: %(default)s)",
    )
    parser.add_argument(
        "--first", default="index.html", help="the page to begin with (default: %(default)s)"
    )
    parser.add_argument(
        "--pages",
        type=int,
        default=600,
        metavar="N",
        help="visit so many at most (default: %(default)s)",
    )
    arguments = parser.parse_args()
    log.write_to(level="warning")
    load_command("pipeline")
    lake, page = arguments.folder / "lake", arguments.folder / "report.html"
    try:
        asyncio.run(audited(arguments.first, arguments.pages))
        arguments.folder.mkdir(parents=True, exist_ok=True)
        asked(lake, "archive", "--namespace", client.namespace)
        asked(lake, "stats", "--by", "queue,klass")
        asked(lake, "report", "--no-refresh", "--out", str(page))
    except AioqlessError as error:
        sys.exit(str(error))
    say(f"Look at {page.resolve().as_uri()}")


if __name__ == "__main__":
    main()
