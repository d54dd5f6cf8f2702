"""Results as JSON, and as tables between markers in the docs."""

from __future__ import annotations

import json
import os
import platform
import re
import statistics
import subprocess
import textwrap
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.bench.durable import JOBS, RATE
from tests.bench.kill import RECOVERY_TIMEOUT
from tests.bench.peers import PEERS, ROOT, Figures

PAGES = ("README.md", "docs/performance.md")  # a part is written where its markers are
IDLE = 0.5  # load of a machine on which figures mean something
LOST = "**lost**"
NAMES = {"bullmq": "BullMQ", "celery": "Celery", "sidekiq": "Sidekiq"}
WHY = {  # what the documentation or the code of each library says about a job whose worker is gone
    "aioqless": "another worker sees that it has sent no beat for 15 s",
    "bullmq": "its lock of 30 s is not renewed; a check for such jobs runs every 30 s",
    "sidekiq": "it was taken from the list when it began, so nothing has it any more",
    "taskiq": "claimed after 600 s without an acknowledgement in the stream",
    "saq": "a sweep finds and aborts it: a job has one try by default",
    "arq": "its marker expires after the job timeout, 300 s by default, and 10 s",
    "streaq": "claimed after 60 s without an acknowledgement in the stream",
    "celery": "acknowledged before it runs, by default",
    "rq": "moved to the failed jobs; runs again only on request",
}


@dataclass(frozen=True)
class Column:
    """A figure of all libraries; `best` chooses the best value."""

    title: str
    key: str
    digits: int
    best: Callable[[Iterable[float]], float]


def store(out: Path, part: str, figures: Figures) -> Path:
    """Store the results of one command beside those of the others; returns the file."""
    file = out / "bench.json"
    known = json.loads(file.read_text()) if file.exists() else {}
    known[part] = {"about": _about()} | figures
    file.write_text(json.dumps(_rounded(known), indent=1) + "\n")
    return file


def load(out: Path) -> Figures:
    known: Figures = json.loads((out / "bench.json").read_text())
    return known


def write_pages(known: Figures, root: Path = ROOT) -> None:
    """Fill in the tables of the pages from all stored results."""
    for page in (root / name for name in PAGES):
        before = page.read_text()
        after = before
        for command, makes in PARTS.items():
            for part, make in makes.items() if command in known else ():
                after = _filled(after, part, make(known))
        if after != before:
            page.write_text(after)


def _filled(page: str, part: str, text: str) -> str:
    """Return the page with the text between a part's markers, or unchanged without markers."""
    head, opening, rest = page.partition(f"<!-- bench:{part} -->\n")
    _, closing, tail = rest.partition(f"<!-- /bench:{part} -->")
    return f"{head}{opening}{text}\n{closing}{tail}" if opening and closing else page


def medians(figures: Figures) -> dict[str, dict[str, float]]:
    """Return {library: {"phase.key": median over the rounds}}, fastest drain first."""
    found: dict[str, dict[str, list[float]]] = {}
    for measured in figures["rounds"]:
        peer = found.setdefault(measured["peer"], {})
        for phase, values in measured.items():
            if isinstance(values, dict):
                for key, value in values.items():
                    if key != "error":
                        peer.setdefault(f"{phase}.{key}", []).append(value)
    table = {
        name: {key: statistics.median(values) for key, values in peer.items()}
        for name, peer in found.items()
    }
    return dict(sorted(table.items(), key=lambda item: -item[1].get("drain.rate", 0)))


def display_name(name: str) -> str:
    return NAMES.get(name, name)


def recovery(known: Figures, name: str) -> str:
    """Return the outcome of a running job whose worker was killed."""
    outcome = known.get("kill", {}).get("outcomes", {}).get(name, {})
    if back := outcome.get("back_after"):
        return f"comes back ({back:.0f} s)"
    waited = "back_after" in outcome and known["kill"]["patience"] >= RECOVERY_TIMEOUT
    return LOST if waited else "—"


def _summary(known: Figures) -> str:
    columns = [
        Column("processed jobs/s", "drain.rate", 0, max),
        Column("enqueued/s (100 clients)", "together.rate", 0, max),
        Column("pickup latency, ms (p50)", "pick_up.p50_ms", 1, min),
    ]
    return "\n".join([_table(known, columns, killed=True), "", _measured(known["peers"])])


def _peers(known: Figures) -> str:
    figures = known["peers"]
    rates = [
        Column("drained/s", "drain.rate", 0, max),
        Column("put one by one/s", "one.rate", 0, max),
        Column("by 100 callers/s", "together.rate", 0, max),
        Column("by a call for many/s", "many.rate", 0, max),
        Column("jobs of 10 ms/s", "sleep.rate", 0, max),
        Column("pick-up p50, ms", "pick_up.p50_ms", 1, min),
        Column("p99", "pick_up.p99_ms", 1, min),
    ]
    costs = [
        Column("worker, µs a job", "drain.worker_us", 0, min),
        Column("Redis, µs a job", "drain.redis_us", 0, min),
        Column("client, µs a put", "one.client_us", 0, min),
        Column("Redis, µs a put", "one.redis_us", 0, min),
        Column("idle commands/s", "pick_up.idle_commands", 1, min),
        Column("worker's MiB", "drain.rss_mib", 0, min),
    ]
    versions = figures["versions"]
    setups = [
        _wrapped(f"- **{display_name(peer.name)} {_version(versions[peer.name])}**: {peer.setup}.")
        for peer in PEERS
        if peer.name in versions
    ]
    left_out = [
        f"- **{display_name(name)}** was left out: {why}."
        for name, why in figures["left_out"].items()
    ]
    return "\n".join([
        _measured(figures),
        "",
        _table(known, rates),
        "",
        "What it costs in processor time, and what an idle worker sends:",
        "",
        _table(known, costs),
        "",
        *setups,
        *left_out,
    ])  # fmt: skip


def _version(versions: str) -> str:
    """Return the version of the library itself, which is named before its dependencies."""
    return versions.partition(",")[0].rpartition(" ")[2]


def _kill(known: Figures) -> str:
    patience = known["kill"]["patience"]
    head = f"| queue | restarted after `kill -9` of its worker (timeout {patience:.0f} s) | why |"
    lines = [_measured(known["kill"]), "", head, "|---|---|---|"]
    for name, outcome in known["kill"]["outcomes"].items():
        back = outcome.get("back_after")
        what = outcome.get("error") or ("no" if back is None else f"after {back:.0f} s")
        lines.append(f"| {display_name(name)} | {what} | {WHY[name]} |")
    return "\n".join(lines)


def _scale(known: Figures) -> str:
    figures = known["scale"]
    few = [*figures["few"], *figures["few_again"], *figures["few_at_last"]]
    usual = statistics.median(few)

    def line(what: str, rates: list[float]) -> str:
        rate = statistics.median(rates)
        return f"| {what} | {rate:,.0f} | {rate / (usual or 1):.0%} |"

    calls = figures["calls"]
    longest = (
        ", ".join(f"{name} {ms:.1f}" for name, ms in list(calls["longest_ms"].items())[:6])
        or "none over 1 ms"
    )
    million, workers, start = figures["million"], figures["workers"], figures["start"]
    smaller = (
        []
        if figures["size"] == 1
        else [f"All numbers of jobs times {figures['size']}: these figures mean nothing.", ""]
    )
    return "\n".join([
        _measured(figures),
        "",
        *smaller,
        "| other jobs in Redis | drained/s | relative |",
        "|---|---|---|",
        line("10,000 waiting", few),
        line("1,000,000 waiting", million["rates"]),
        line("100,000 scheduled, 100,000 held by dependencies, 50,000 completed, 1,000 queues",
            figures["beside"]),
        "",
        "| workers | drained/s | processors used by Redis | by each worker |",
        "|---|---|---|---|",
        *(_of_workers(count, each) for count, each in workers.items()),
        "",
        f"- A waiting job takes {million['bytes']:,.0f} bytes of Redis.",
        f"- A worker's memory: {million['rss_mib_after_a_tenth']:.0f} MiB after 100,000 jobs, "
        f"{million['rss_mib_after_all']:.0f} MiB after 1,000,000.",
        _wrapped(
            "- The longest script calls with all of that in one Redis and data of 1 KiB, in ms: "
            f"{longest}. {calls['over_limit']} took more than 5 ms. LATENCY's longest command: "
            f"{calls['latency_ms']} ms."
        ),
        f"- From the start of a worker to its first job: {start['first_job']:.2f} s; `import "
        f"aioqless`: {start['import']:.2f} s.",
    ])  # fmt: skip


def _of_workers(count: str, figures: Figures) -> str:
    each = statistics.mean(value for name, value in figures.items() if name.startswith("worker"))
    return f"| {count} | {figures['rate']:,.0f} | {figures['redis cpu']:.0%} | {each:.0%} |"


def _micro(known: Figures) -> str:
    figures = known["micro"]
    batches = list(next(iter(figures["commands"].values())))
    bullmq = figures.get("bullmq", {})
    head = ["µs of Redis a job (within scripts)", *(f"by {batch}" for batch in batches)]
    head += ["BullMQ, by 1", "ratio"] if bullmq else []
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    rows = {
        name: [costs[batch] for batch in batches] for name, costs in figures["commands"].items()
    }
    for name, theirs in bullmq.items():
        rows[name].append(theirs)
    rows["put, pop, complete"] = [
        {key: sum(cost[key] for cost in column) for key in column[0]}
        for column in zip(*(rows[name] for name in ("put", "pop", "complete")), strict=True)
    ]
    for name, costs in rows.items():
        cells = [f"{cost['redis_us']:.1f} ({cost['script_us']:.1f})" for cost in costs]
        cells += [f"{costs[0]['redis_us'] / costs[-1]['redis_us']:.2f}"] if bullmq else []
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join([_measured(figures), "", *lines])


def _medians_of(rounds: list[Figures], peer: str) -> dict[str, float]:
    """Return the medians of one library's figures, by name."""
    own = [each for each in rounds if each["peer"] == peer]
    keys = [key for key, value in own[0].items() if isinstance(value, float)]
    return {key: statistics.median(each[key] for each in own) for key in keys}


def _steady(known: Figures) -> str:
    """Return a row for each rate and library, and one for each rate with the ratios."""
    figures = known["steady"]
    columns = {
        "put/s": ("put_rate", 0),
        "Redis, µs a job": ("redis_us", 0),
        "producers, µs a job": ("producer_us", 0),
        "worker, µs a job": ("worker_us", 0),
        "pick-up p50, ms": ("p50_ms", 1),
        "p99": ("p99_ms", 1),
    }
    lines = [f"| jobs/s | queue | {' | '.join(columns)} |", "|---" * (len(columns) + 2) + "|"]
    for rate in dict.fromkeys(each["rate"] for each in figures["rounds"]):
        of_rate = [each for each in figures["rounds"] if each["rate"] == rate]
        rows = {name: _medians_of(of_rate, name) for name in figures["versions"]}
        for name, row in rows.items():
            cells = [
                f"{row[key]:,.{digits}f}" if key in row else "—" for key, digits in columns.values()
            ]
            lines.append(f"| {rate} | {display_name(name)} | {' | '.join(cells)} |")
        ours = rows.pop("aioqless")
        for name, row in rows.items():
            cells = [
                f"{ours[key] / row[key]:.2f}" if key in row else "—" for key, _ in columns.values()
            ]
            lines.append(f"| | aioqless / {display_name(name)} | {' | '.join(cells)} |")
    return "\n".join([_measured(figures), "", *lines])


def _durable(known: Figures) -> str:
    """Return a sentence on steps, and one on output."""
    figures = known["durable"]
    cores = [f"{each['core']:.1%} of a core {name}" for name, each in figures["output"].items()]
    return _wrapped(
        f"Storing a step takes {figures['ratio']:.2f} times as long as a heartbeat with data. "
        f"{JOBS} jobs that emit {RATE} tokens/s each take {' and '.join(cores)}."
    )


PARTS: dict[str, dict[str, Callable[[Figures], str]]] = {
    "peers": {"summary": _summary, "peers": _peers},
    "kill": {"kill": _kill},
    "steady": {"steady": _steady},
    "scale": {"scale": _scale},
    "micro": {"micro": _micro},
    "durable": {"durable": _durable},
}


def _table(known: Figures, columns: list[Column], *, killed: bool = False) -> str:
    """Return a table with a row per library; the best value of each column is bold."""
    table = medians(known["peers"])
    best = {
        column.key: column.best(
            [row[column.key] for row in table.values() if column.key in row] or [0]
        )
        for column in columns
    }
    head = [
        "queue",
        *(column.title for column in columns),
        *(["a killed worker's job"] if killed else []),
    ]
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for name, row in table.items():
        cells = [_cell(row.get(column.key), column.digits, best[column.key]) for column in columns]
        cells += [recovery(known, name)] if killed else []
        lines.append(f"| {' | '.join([display_name(name), *cells])} |")
    return "\n".join(lines)


def _cell(value: float | None, digits: int, best: float) -> str:
    if value is None:
        return "—"
    text = f"{value:,.{digits}f}"
    return f"**{text}**" if value == best else text


def _measured(figures: Figures) -> str:
    about = figures["about"]
    rounds = max((each["round"] for each in figures.get("rounds", [])), default=1)
    many = f" Medians of {rounds} rounds." if rounds > 1 else ""
    load = figures.get("load_before", 0)
    busy = f" The machine was busy (load {load:.0f}): read the ratios." if load > IDLE else ""
    redis = figures.get("redis")
    redis = f" {redis}," if isinstance(redis, str) else ""
    return _wrapped(
        f"*{about['date']}, {about['machine']};{redis} {about['python']}, aioqless at "
        f"{about['commit']}.{many}{busy}*"
    )


def _wrapped(text: str) -> str:
    """Return a sentence or an item of a list in lines as long as those of the pages."""
    indent = "  " if text.startswith("- ") else ""
    return textwrap.fill(text, 100, subsequent_indent=indent, break_on_hyphens=False)


def _about() -> dict[str, str]:
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "machine": f"{os.cpu_count()} processors ({_processor()}), {platform.system()} "
        f"{platform.release().split('-')[0]}",
        "python": f"Python {platform.python_version()}",
        "commit": _commit(),
    }


def _processor() -> str:
    known = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    return known[1] if known else platform.machine()


def _commit() -> str:
    git = ["git", "-C", str(ROOT), "describe", "--always", "--dirty"]
    try:
        return subprocess.run(git, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "an unknown commit"


def _rounded(value: Any) -> Any:
    """Return a figure rounded to the precision that it has."""
    match value:
        case dict():
            return {key: _rounded(each) for key, each in value.items()}
        case list():
            return [_rounded(each) for each in value]
        case float():
            return float(f"{value:.5g}")
    return value
