"""Results as charts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

from tests.bench.peers import Figures
from tests.bench.report import LOST, display_name, medians, recovery

Table = dict[str, dict[str, float]]
OURS, OTHERS, PALE = "#c0392b", "#7f8c8d", "#bdc3c7"


def draw_peers(known: Figures, file: Path) -> None:
    """Draw four panels: drained, put, processor time per job, pickup latency."""
    table = medians(known["peers"])
    names = list(table)[::-1]
    figure, panels = plt.subplots(2, 2, figsize=(12, 8.5), layout="constrained")
    about = known["peers"]["about"]
    figure.suptitle(
        f"No-op jobs, one worker process, 100 at once where a worker can — {about['machine']}, "
        f"{about['date']}",
        fontsize=10,
    )
    _bars(panels[0][0], "Jobs drained a second", names, table, {"drain.rate": ""})
    ways = {
        "many.rate": "a call for many",
        "together.rate": "100 callers",
        "one.rate": "one by one",
    }
    _bars(panels[0][1], "Jobs put a second", names, table, ways)
    _stack(panels[1][0], "Processor time a drained job, µs", names, table)
    _bars(
        panels[1][1],
        "From put to the first line of the handler, ms",
        names,
        table,
        {"pick_up.p99_ms": "p99", "pick_up.p50_ms": "p50"},
    )
    panels[1][1].set_xscale("log")
    if lost := [name for name in names if recovery(known, name) == LOST]:
        panels[0][0].set_yticks(
            range(len(names)),
            [display_name(name) + (" †" if name in lost else "") for name in names],
        )
        panels[0][0].set_xlabel(
            "† by default, the job of a worker that is killed is lost", fontsize=8, loc="left"
        )
    figure.savefig(file, dpi=110)
    plt.close(figure)


def draw_cost(known: Figures, file: Path) -> None:
    """Draw two bars: µs per job in Redis by command, and in the worker by file."""
    cost = known["cost"]
    figure, panel = plt.subplots(figsize=(12, 3.2), layout="constrained")
    for row, (where, colours) in enumerate({"worker": "tab20", "redis": "Set2"}.items()):
        palette, left = plt.get_cmap(colours), 0.0
        for number, (what, us) in enumerate(cost[where].items()):
            panel.barh(row, us, left=left, color=palette(number), edgecolor="white")
            if us > 1.5:
                panel.text(
                    left + us / 2,
                    row,
                    f"{what.rpartition('/')[2]}\n{us:.0f}",
                    ha="center",
                    va="center",
                    fontsize=7,
                )
            left += us
    panel.set_yticks([0, 1], ["a busy worker", "Redis"])
    panel.set_title("Where the time of one job goes, µs of processor", fontsize=10, loc="left")
    _tidy(panel)
    figure.savefig(file, dpi=110)
    plt.close(figure)


def _bars(panel: Any, title: str, names: list[str], table: Table, keys: dict[str, str]) -> None:
    """Draw a bar for each key of each library; the bars of aioqless are colored."""
    height = 0.8 / len(keys)
    for number, (key, label) in enumerate(keys.items()):
        place, alpha = 0.4 - height * (len(keys) - number - 0.5), 1 - 0.3 * (len(keys) - 1 - number)
        for row, name in enumerate(names):
            if (value := table[name].get(key)) is not None:
                ours = name == "aioqless"
                panel.barh(row + place, value, height, color=OURS if ours else OTHERS, alpha=alpha)
                text = f" {value:,.0f}" if value >= 100 else f" {value:,.1f}"
                panel.text(
                    value,
                    row + place,
                    f"{text}  {label}" if ours else text,
                    va="center",
                    fontsize=7,
                )
    _finish(panel, title, names)


def _stack(panel: Any, title: str, names: list[str], table: Table) -> None:
    """Draw the part of Redis behind the part of the worker."""
    for row, name in enumerate(names):
        redis, worker = table[name].get("drain.redis_us", 0), table[name].get("drain.worker_us", 0)
        panel.barh(row, worker, 0.7, color=OURS if name == "aioqless" else OTHERS)
        panel.barh(row, redis, 0.7, left=worker, color=PALE)
        panel.text(
            worker + redis,
            row,
            f" {worker:,.0f} worker + {redis:,.0f} Redis",
            va="center",
            fontsize=7,
        )
    _finish(panel, title, names)


def _finish(panel: Any, title: str, names: list[str]) -> None:
    panel.set_yticks(range(len(names)), [display_name(name) for name in names])
    panel.set_title(title, fontsize=10, loc="left")
    panel.margins(x=0.3)  # space for the labels
    _tidy(panel)


def _tidy(panel: Any) -> None:
    panel.spines[["top", "right"]].set_visible(False)
    panel.tick_params(labelsize=8)
