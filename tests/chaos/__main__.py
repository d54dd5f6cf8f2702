"""The command line of fault injection, run by `nox -s chaos`.

`python -m tests.chaos [--only kill-worker] [options]`
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from dataclasses import replace
from pathlib import Path

from tests.chaos import report
from tests.chaos.clocks import OFFSETS, measure
from tests.chaos.faults import KINDS, TOGETHER, Kind
from tests.chaos.trial import Plan, run_trial
from tests.chaos.verdict import Verdict
from tests.programs import find

# not one of the repeated faults: failover to replicas with other clocks
CLOCKS = "fail-over-clocks"


def main() -> None:
    options = _options()
    plan = replace(Plan(), strikes=options.strikes, rate=options.rate, jobs=options.jobs)
    kinds = [kind for kind in (*KINDS, TOGETHER) if not options.only or kind.name in options.only]
    if (any(kind.clocks for kind in kinds) or CLOCKS in (options.only or [CLOCKS])) and not find(
        "faketime"
    ):
        sys.exit(
            "what sets clocks needs libfaketime: install Debian's faketime, or leave it out by "
            "--only"
        )
    wrong = 0
    for kind in kinds:
        began = time.monotonic()
        verdict = asyncio.run(run_trial(kind, plan, options.seed, keep=options.keep))
        _say(kind, verdict, time.monotonic() - began)
        wrong += len(verdict.wrong)
        report.store(options.out, kind, verdict, plan)
    if not options.only or CLOCKS in options.only:
        report.store_clocks(options.out, [asyncio.run(measure(offset)) for offset in OFFSETS])
    sys.exit(1 if wrong else 0)


def _say(kind: Kind, verdict: Verdict, seconds: float) -> None:
    figures = ", ".join(
        f"{name} {value}"
        for name, value in vars(verdict).items()
        if name not in ("wrong", "recovery")
    )
    print(
        f"{kind.name} ({seconds:.0f} s): {figures}, recovery {verdict.recovery:.1f} s", flush=True
    )
    for line in verdict.wrong[:20]:
        print(f"    {line}", flush=True)


def _options() -> argparse.Namespace:
    names = [*(kind.name for kind in (*KINDS, TOGETHER)), CLOCKS]
    parser = argparse.ArgumentParser(
        prog="nox -s chaos --", description="Faults strike while jobs flow; nothing may be lost."
    )
    parser.add_argument("--only", type=lambda text: text.split(","), help=f"of {','.join(names)}")
    parser.add_argument("--strikes", type=int, default=Plan.strikes, help="of each kind")
    parser.add_argument("--jobs", type=int, default=Plan.jobs, help="at least, for each kind")
    parser.add_argument("--rate", type=float, default=Plan.rate, help="jobs put a second")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument(
        "--out",
        type=Path,
        default=report.DOCS,
        help="where faults.json goes; with docs/, the page is filled",
    )
    parser.add_argument(
        "--keep", action="store_true", help="what the processes wrote, also if nothing is wrong"
    )
    options = parser.parse_args()
    if unknown := set(options.only or ()) - set(names):
        parser.error(f"there is no {', '.join(unknown)}; there are {', '.join(names)}")
    return options


if __name__ == "__main__":
    main()
