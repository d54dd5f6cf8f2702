"""The figures as JSON, and as a table in the docs."""

from __future__ import annotations

import json
import os
import platform
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.chaos.faults import KINDS, TOGETHER, Kind
from tests.chaos.trial import Plan
from tests.chaos.verdict import Verdict

DOCS = Path(__file__).parents[2] / "docs"
OPENING, CLOSING = "<!-- chaos -->\n", "<!-- /chaos -->"


def store(out: Path, kind: Kind, verdict: Verdict, plan: Plan) -> None:
    """Keep one kind's figures beside those of the others, and fill the table of the page."""
    out.mkdir(parents=True, exist_ok=True)
    file = out / "faults.json"
    known: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}
    figures = {name: value for name, value in vars(verdict).items() if name != "wrong"} | {"wrong": len(verdict.wrong)}
    known[kind.name] = figures | {"recovery": round(verdict.recovery, 1), "date": f"{datetime.now(UTC):%Y-%m-%d}"}
    known["about"] = {"heartbeat": plan.heartbeat, "grace": plan.grace, "machine": f"{os.cpu_count()} processors, {platform.system()}"}
    file.write_text(json.dumps(known, indent=1) + "\n")
    page = out / "faults.md"
    if page.exists():
        head, _, rest = page.read_text().partition(OPENING)
        page.write_text(f"{head}{OPENING}{table(known)}{CLOSING}{rest.partition(CLOSING)[2]}")


def table(known: dict[str, Any]) -> str:
    kinds = [kind for kind in (*KINDS, TOGETHER) if kind.name in known]
    lines = ["| fault | | times | jobs | lost | run again | given up | longest recovery |", "|---|---|---|---|---|---|---|---|"]
    for kind in kinds:
        figures = known[kind.name]
        numbers = (figures[name] for name in ("struck", "jobs", "lost", "reruns", "given_up"))
        cells = [f"`{kind.name}`", kind.what, *(f"{number:,}" for number in numbers), f"{figures['recovery']:.1f} s"]
        lines.append(f"| {' | '.join(cells)} |")
    total = {name: sum(known[kind.name][name] for kind in kinds) for name in ("struck", "jobs", "lost", "reruns", "given_up", "wrong")}
    sums = " | ".join(f"{total[name]:,}" for name in ("struck", "jobs", "lost", "reruns", "given_up"))
    lines.append(f"| in all | {total['wrong']} of the rules above broken | {sums} | |")
    return "\n".join(lines) + "\n"
