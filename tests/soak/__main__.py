"""The command line: `python -m tests.soak [--minutes 10]`, which `nox -s soak` runs."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.soak.gauges import GAUGES, thirds
from tests.soak.run import SoakResult, soak

PAGE = Path(__file__).parents[2] / "docs" / "faults.md"
OPENING, CLOSING = "<!-- soak -->\n", "<!-- /soak -->"


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="nox -s soak --", description="Mixed load; nothing may grow."
    )
    parser.add_argument("--minutes", type=float, default=60)
    minutes = parser.parse_args().minutes
    soaked = asyncio.run(soak(minutes * 60, warm=min(150, minutes * 20), every=max(1, minutes / 4)))
    head, _, rest = PAGE.read_text().partition(OPENING)
    PAGE.write_text(f"{head}{OPENING}{table(soaked)}{CLOSING}{rest.partition(CLOSING)[2]}")
    print(table(soaked))
    print(json.dumps(soaked.wrong))
    sys.exit(1 if soaked.wrong else 0)


def table(soaked: SoakResult) -> str:
    lines = ["| figure | first third | last third | highest |", "|---|---|---|---|"]
    for gauge in GAUGES:
        readings: list[Any] = [reading[gauge.name] / gauge.unit for reading in soaked.readings]
        lines.append(
            f"| {gauge.name} | "
            f"{' | '.join(f'{value:,.1f}' for value in (*thirds(readings), max(readings)))} |"
        )
    lasted = f"{soaked.jobs:,} jobs in {soaked.seconds / 60:.0f} minutes"
    about = f"*{datetime.now(UTC):%Y-%m-%d}: {lasted}; medians of {len(soaked.readings)} readings.*"
    return "\n".join([*lines, "", about]) + "\n"


if __name__ == "__main__":
    main()
