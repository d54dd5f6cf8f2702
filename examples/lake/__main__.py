"""Runs the site audit with the archive on, and makes a lake, tables and a report of its runs.

python -m examples.lake [folder]
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path

from aioqless.cli.app import app
from aioqless.cli.main import load_command
from aioqless.errors import AioqlessError
from aioqless.runtime import log
from examples.site_audit.__main__ import run, say
from examples.site_audit.pages import client


async def audit_site(first: str, max_pages: int) -> None:
    """Audit the site; the end of each run is archived with it."""
    async with client:
        await client.config.set("archive", "on")
        await run(first, max_pages)


def run_command(lake: Path, *command: str) -> None:
    """Run a command of `aioqless lake` in this process, so that Spark starts only once."""
    say(f"$ aioqless lake {' '.join(command)} --lake {lake}")
    app(["lake", *command, "--lake", str(lake)], standalone_mode=False)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m examples.lake", description="A lake and a report of the site audit."
    )
    parser.add_argument(
        "folder",
        nargs="?",
        type=Path,
        default=Path("audit"),
        help="the folder of the lake and the report (default: %(default)s)",
    )
    parser.add_argument(
        "--first", default="index.html", help="the page to begin with (default: %(default)s)"
    )
    parser.add_argument(
        "--pages",
        type=int,
        default=600,
        metavar="N",
        help="maximum number of pages (default: %(default)s)",
    )
    arguments = parser.parse_args()
    log.write_to(level="warning")
    load_command("lake")
    lake, page = arguments.folder / "lake", arguments.folder / "report.html"
    try:
        asyncio.run(audit_site(arguments.first, arguments.pages))
        arguments.folder.mkdir(parents=True, exist_ok=True)
        spark = ("--master", "local[*]")
        run_command(lake, "archive", "--namespace", client.namespace, *spark)
        run_command(lake, "tables", *spark)
        run_command(lake, "stats", "--by", "queue,klass")
        run_command(lake, "report", "--out", str(page))
    except AioqlessError as error:
        sys.exit(str(error))
    say(f"Look at {page.resolve().as_uri()}")


if __name__ == "__main__":
    main()
