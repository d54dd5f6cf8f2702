"""The command line of the benchmarks, run by `nox -s bench`.

`python -m tests.bench [peers|steady|kill|scale|micro|durable|cost|lake|smoke] [options]`
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from tests.bench import report
from tests.bench.cost import run_cost
from tests.bench.durable import run_durable
from tests.bench.kill import RECOVERY_TIMEOUT, run_kill
from tests.bench.lake import run_lake
from tests.bench.micro import run_micro
from tests.bench.peers import PEERS, ROOT, Figures, Peer
from tests.bench.phases import PHASES, run_peers
from tests.bench.scale import run_scale
from tests.bench.steady import run_steady

COMMANDS: dict[str, tuple[str, Callable[[argparse.Namespace], Figures]]] = {
    "peers": (
        "aioqless beside its peers (about 20 minutes)",
        lambda o: run_peers(o.peers, o.phases, o.rounds, o.n or 20_000),
    ),
    "steady": (
        "jobs that arrive one by one, beside BullMQ (about 6 minutes)",
        lambda o: run_steady(o.rounds, o.seconds),
    ),
    "kill": (
        "what becomes of a killed worker's job (up to 11 minutes of waiting)",
        lambda o: run_kill(o.peers, o.patience),
    ),
    "scale": (
        "a million jobs, many states, several workers (about 8 minutes)",
        lambda o: run_scale(o.size),
    ),
    "micro": (
        "what each command costs Redis, and those of BullMQ (2 minutes)",
        lambda o: run_micro(o.n or 3_000, o.peers),
    ),
    "durable": (
        "what steps and output cost Redis (a minute)",
        lambda o: run_durable(o.n or 200, o.seconds),
    ),
    "lake": (
        "Spark beside one process: rows read, archived, put (5 minutes)",
        lambda o: run_lake(o.n or 20_000),
    ),
    "cost": ("where the time of one job goes (a minute)", lambda o: run_cost(o.n or 20_000)),
}


def main() -> None:
    options = _options()
    # A worker's start is measured as it is where bytecode is kept.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    signal.signal(
        signal.SIGTERM, lambda *_: sys.exit("ended")
    )  # SIGTERM ends the started processes as Ctrl-C does
    if options.command == "smoke":
        _smoke()
        return
    if (load := os.getloadavg()[0]) > report.IDLE:
        print(
            f"the machine is not idle (load {load:.1f}): the figures will not be what it can do",
            file=sys.stderr,
        )
    _, measure = COMMANDS[options.command]
    figures = measure(options) | {"load_before": load}
    _keep(options.command, figures, options.out)


def _keep(command: str, figures: Figures, out: Path) -> None:
    """Write JSON, pages and charts: into the project's docs, or into the output folder only."""
    out.mkdir(parents=True, exist_ok=True)
    print(f"wrote {report.store(out, command, figures)}")
    known = report.load(out)
    if out.resolve() == ROOT / "docs":
        report.write_pages(known)
    _draw(known, out)
    for name, make in report.PARTS[command].items():
        print(f"\n{name}\n\n{make(known)}")


def _draw(known: Figures, out: Path) -> None:
    try:
        from tests.bench import chart
    except ImportError as missing:
        print(f"no pictures: {missing}", file=sys.stderr)
        return
    if "peers" in known:
        chart.draw_peers(known, out / "bench.png")
    if "cost" in known:
        chart.draw_cost(known, out / "cost.png")


def _smoke() -> None:
    """Run everything with very few jobs and only aioqless: checks the code, measures nothing."""
    with tempfile.TemporaryDirectory(prefix="aioqless-bench-") as folder:
        out = Path(folder)
        _keep("peers", run_peers(PEERS[:1], list(PHASES), 1, 200), out)
        _keep("micro", run_micro(200), out)
        _keep("durable", run_durable(10, 1), out)


def _options() -> argparse.Namespace:
    arguments = sys.argv[1:]
    if not arguments or arguments[0].startswith("--"):
        arguments = ["peers", *arguments]
    listed = "\n".join(f"  {name:9}{about}" for name, (about, _) in COMMANDS.items())
    parser = argparse.ArgumentParser(
        prog="nox -s bench --",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog=f"commands:\n{listed}\n  smoke    all phases and micro of ours alone, in half a "
        f"minute, with figures that mean nothing",
    )
    parser.add_argument("command", choices=[*COMMANDS, "smoke"])
    parser.add_argument(
        "--peers", type=_peers, default=PEERS, help=f"of {','.join(peer.name for peer in PEERS)}"
    )
    parser.add_argument(
        "--phases", type=_phases, default=list(PHASES), help=f"of {','.join(PHASES)}"
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--n", type=int, help="jobs")
    parser.add_argument(
        "--seconds",
        type=float,
        default=20.0,
        help="of steady and durable: how long",
    )
    parser.add_argument(
        "--size",
        type=float,
        default=1.0,
        help="of scale: 0.01 for 10,000 jobs instead of a million",
    )
    parser.add_argument(
        "--patience",
        type=float,
        default=RECOVERY_TIMEOUT,
        help="of kill: seconds to wait for a job to come back",
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=ROOT / "docs",
        help="where bench.json and pictures go; with docs/, pages are filled",
    )
    return parser.parse_args(arguments)


def _peers(names: str) -> list[Peer]:
    wanted = names.split(",")
    if unknown := set(wanted) - {peer.name for peer in PEERS}:
        raise argparse.ArgumentTypeError(f"there is no peer {', '.join(unknown)}")
    return [peer for peer in PEERS if peer.name in wanted]


def _phases(names: str) -> list[str]:
    wanted = names.split(",")
    if unknown := set(wanted) - set(PHASES):
        raise argparse.ArgumentTypeError(f"there is no phase {', '.join(unknown)}")
    return [name for name in PHASES if name in wanted]


if __name__ == "__main__":
    main()
