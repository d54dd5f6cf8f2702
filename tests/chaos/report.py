"""The results as JSON, and as a table in the docs."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.chaos.clocks import FailoverResult
from tests.chaos.faults import KINDS, TOGETHER, Kind
from tests.chaos.trial import Plan
from tests.chaos.verdict import Verdict

DOCS = Path(__file__).parents[2] / "docs"


def store(out: Path, kind: Kind, verdict: Verdict, plan: Plan) -> None:
    """Store the results of one kind beside those of the others, and update the page's table."""
    known = _stored_results(out)
    figures = {name: value for name, value in vars(verdict).items() if name != "wrong"} | {
        "wrong": len(verdict.wrong)
    }
    figures |= {
        "recovery": round(verdict.recovery, 1),
        "astray": round(verdict.astray, 1),
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
    }
    known["kinds"][kind.name] = figures
    known["about"] = {
        "heartbeat": plan.heartbeat,
        "grace": plan.grace,
        "machine": f"{os.cpu_count()} processors, {platform.system()}",
    }
    _write_results(out, known)


def store_clocks(out: Path, rows: Sequence[FailoverResult]) -> None:
    """Store the results of the failovers to other clocks, and update the page's table."""
    known = _stored_results(out)
    known["clocks"] = [vars(row) for row in rows]
    _write_results(out, known)


def _stored_results(out: Path) -> dict[str, Any]:
    file = out / "faults.json"
    return json.loads(file.read_text()) if file.exists() else {"kinds": {}}


def _write_results(out: Path, known: dict[str, Any]) -> None:
    out.mkdir(parents=True, exist_ok=True)
    (out / "faults.json").write_text(json.dumps(known, indent=1) + "\n")
    page = out / "faults.md"
    if page.exists():
        text = page.read_text()
        for part, filled in {
            "chaos": table(known["kinds"]),
            "clocks": clocks_table(known.get("clocks", [])),
        }.items():
            head, opening, rest = text.partition(f"<!-- {part} -->\n")
            _, closing, tail = rest.partition(f"<!-- /{part} -->")
            text = f"{head}{opening}{filled}{closing}{tail}"
        page.write_text(text)


def table(known: dict[str, Any]) -> str:
    kinds = [kind for kind in (*KINDS, TOGETHER) if kind.name in known]
    lines = [
        "| fault | description | jobs | run again | given up | longest recovery |",
        "|---|---|---|---|---|---|",
    ]
    for kind in kinds:
        figures = known[kind.name]
        numbers = (figures[name] for name in ("jobs", "reruns", "given_up"))
        cells = [
            f"`{kind.name}`",
            kind.what,
            *(f"{number:,}" for number in numbers),
            f"{figures['recovery']:.1f} s",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    total = {
        name: sum(known[kind.name][name] for kind in kinds if kind.name != "nothing")
        for name in ("struck", "jobs", "lost", "reruns", "given_up", "wrong")
    }
    sums = " | ".join(f"{total[name]:,}" for name in ("jobs", "reruns", "given_up"))
    about = f"{total['struck']:,} faults, {total['lost']} jobs lost, {total['wrong']} rules broken"
    lines.append(f"| in all | {about} | {sums} | |")
    return "\n".join(lines) + "\n"


def clocks_table(rows: Sequence[dict[str, Any]]) -> str:
    lines = [
        "| new clock | ten running jobs | job of a dead worker | job delayed by 6 s |",
        "|---|---|---|---|",
    ]
    for row in rows:
        offset = row["offset"]
        clock = (
            "the same"
            if not offset
            else f"{abs(offset):.0f} s {'ahead' if offset > 0 else 'behind'}"
        )
        live = f"{row['live_done']} done, {row['live_again']} run twice"
        dead, delayed = row["dead_back"], row["delayed"]
        back = (
            f"back after {dead:.1f} s"
            if dead is not None
            else f"its lock expires in {row['dead_due']:.0f} s"
        )
        begun = (
            f"started after {delayed:.1f} s" if delayed is not None else "not started within 9 s"
        )
        lines.append(f"| {clock} | {live} | {back} | {begun} |")
    return "\n".join(lines) + "\n"
