"""Renders the screen: as many lines as fit, around the selected one."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from aioqless.cli.presentation.formatting import (
    STYLES,
    format_relative_time,
    format_time,
    pluralize,
    shorten,
)
from aioqless.cli.presentation.histograms import draw_sparkline
from aioqless.cli.top.controller import Controller
from aioqless.client.job.summaries import FailureGroup
from aioqless.validation import plain

COUNTS = ("waiting", "running", "stalled", "scheduled", "depends")
FIXED_LINES = 6  # lines that are always there: head, titles, foot
TREND_WIDTH = 20  # columns
KEYS = {
    "queues": "p pause/resume",
    "failures": "r retry  enter details",
    "workers": "p quiet/resume",
}
SELECTED_STYLE = "reverse"
KEEP_SPACES: dict[str, Any] = {"drop_whitespace": False, "replace_whitespace": False}


def render(controller: Controller, width: int, height: int, where: str) -> RenderableType:
    """Render the screen at a size."""
    rest = max(3, height - FIXED_LINES)
    if controller.failure:
        lines = _render_failure(controller.failure, width, rest + FIXED_LINES - 3)[
            : rest + FIXED_LINES - 3
        ]
        return Group(
            *_head(controller, where),
            *lines,
            *_blank(rest + FIXED_LINES - 3 - len(lines)),
            _foot(controller),
        )
    wanted = [
        max(1, len(each))
        for each in (
            controller.snapshot.queues,
            controller.snapshot.failed,
            controller.snapshot.workers,
        )
    ]
    least = max(1, rest // 4)
    queues = min(
        wanted[0], max(rest - sum(min(each, least) for each in wanted[1:]), rest - 2 * least)
    )
    failures = min(wanted[1], rest - queues - min(wanted[2], least))
    workers = min(wanted[2], rest - queues - failures)
    return Group(
        *_head(controller, where),
        _pane(controller, "queues", _queue_columns(width), _queue_rows(controller, width), queues),
        _pane(
            controller,
            "failures",
            [("failed", 9), ("group", None)],
            [(f"{n:,}", name) for name, n in controller.snapshot.failed.items()],
            failures,
        ),
        _pane(
            controller,
            "workers",
            [("jobs", 9), ("stalled", 9), ("worker", None), ("heard of", 16)],
            _worker_rows(controller),
            workers,
        ),
        *_blank(rest - queues - failures - workers),
        _foot(controller),
    )


def _render_failure(group: FailureGroup, width: int, height: int) -> list[Text]:
    """Render the latest failure of a group: message, job, data, and next steps.

    A long message is cut at its beginning: a traceback ends with the error.
    """
    assert group.latest
    job = group.latest
    title = (
        f"{plain(group.group)} · {pluralize(group.total, 'job')} · "
        f"the latest {format_relative_time(job.failed)}, {plain(job.klass)}"
    )
    message = [
        part
        for line in plain(job.message.strip(), lines=True).split("\n")
        for part in wrap(line, width - 2, **KEEP_SPACES) or [""]
    ]
    data = shorten(job.data, 500) if job.data is not None else f"{job.size:,} bytes"
    data_lines = wrap(data, width - 5) or [""]
    message = message[-max(1, height - 5 - len(data_lines)) :]
    lines = [
        Text(),
        Text(title, style=STYLES["failed"]),
        *(Text(f"  {line}") for line in message),
        Text(),
    ]
    lines += [
        Text.assemble(("     " if at else "data ", "dim"), line)
        for at, line in enumerate(data_lines)
    ]
    for command, does in (("edit", "change its data and retry it"), ("get", "see all of it")):
        lines.append(Text.assemble(f"aioqless {command} {plain(job.jid)}", (f"   {does}", "dim")))
    return [_cut(line) for line in lines]


def _blank(count: int) -> list[Text]:
    return [Text() for _ in range(count)]


def _head(controller: Controller, where: str) -> list[Text]:
    snapshot, redis = controller.snapshot, controller.snapshot.redis
    away = (
        ("Redis is unavailable: " + snapshot.error, "bold white on red") if snapshot.error else ""
    )
    memory = (
        f"{redis.get('used_memory_human', '?')} memory · "
        f"{redis.get('connected_clients', '?')} clients"
        if redis
        else ""
    )
    first = Text.assemble(
        ("aioqless ", "bold"),
        plain(where),
        "  ",
        (format_time(snapshot.when)[11:] if snapshot.when else "", "dim"),
        "  ",
        (memory, "dim"),
        "  ",
        away,
    )
    counts = [
        part
        for count in COUNTS
        for part in ((f"{snapshot.total(count):,} {count}", STYLES[count]), "  ")
    ]
    failed = sum(snapshot.failed.values())
    rate = sum(queue.rates.completed for queue in snapshot.queues)
    second = Text.assemble(
        *counts,
        (f"{failed:,} failed", STYLES["failed"] if failed else "dim"),
        f"  {rate:,.1f} done/s",
    )
    return [_cut(first), _cut(second)]


def _cut(text: Text) -> Text:
    text.no_wrap, text.overflow = True, "ellipsis"
    return text


def _queue_columns(width: int) -> list[tuple[str, int | None]]:
    """Return the columns that fit."""
    columns: list[tuple[str, int | None]] = [
        ("queue", None),
        *((count, 9) for count in COUNTS if width >= 100 or count in COUNTS[:3]),
    ]
    columns += [("done/s", 9), ("failed/s", 9)]
    return [*columns, ("lately", TREND_WIDTH)] if width >= 120 else columns


def _queue_rows(controller: Controller, width: int) -> list[tuple[Any, ...]]:
    rows = []
    for queue in controller.sorted_queues():
        name = Text.assemble(
            plain(queue.counts.name), (" paused", STYLES["paused"]) if queue.counts.paused else ""
        )
        counts = [
            Text(
                f"{getattr(queue.counts, name):,}",
                style=STYLES[name] if getattr(queue.counts, name) else "dim",
            )
            for name, _ in _queue_columns(width)
            if name in COUNTS
        ]
        failing = Text(
            f"{queue.rates.failed:,.1f}", style=STYLES["failed"] if queue.rates.failed else "dim"
        )
        rows.append(
            (
                name,
                *counts,
                f"{queue.rates.completed:,.1f}",
                failing,
                *(
                    [Text(draw_sparkline(queue.done[-TREND_WIDTH:]), style="cyan")]
                    if width >= 120
                    else []
                ),
            )
        )
    return rows


def _worker_rows(controller: Controller) -> list[tuple[Any, ...]]:
    return [
        (
            f"{worker.jobs:,}",
            Text(f"{worker.stalled:,}", style=STYLES["stalled"] if worker.stalled else "dim"),
            worker.name,
            format_relative_time(
                min(worker.seen, controller.snapshot.when), controller.snapshot.when
            ),
        )
        for worker in controller.snapshot.workers
    ]


def _pane(
    controller: Controller,
    name: str,
    columns: Sequence[tuple[str, int | None]],
    rows: Sequence[Sequence[Any]],
    height: int,
) -> Table:
    """Render a list, or the part of it around the selected line."""
    here, at = controller.pane == name, controller.selected_line(name)
    first = max(0, min(at - height // 2, len(rows) - height))
    of = (
        f" {first + 1}-{min(first + height, len(rows))} of {len(rows):,}"
        if len(rows) > height
        else ""
    )
    grid = Table(
        box=None,
        pad_edge=False,
        expand=True,
        header_style="bold underline" if here else "dim",
        padding=(0, 1, 0, 0),
    )
    for title, width in columns:
        number = width is not None and width < TREND_WIDTH
        shown = title + of if width is None else title
        grid.add_column(
            shown,
            width=width,
            ratio=None if width else 1,
            justify="right" if number else "left",
            no_wrap=True,
            overflow="ellipsis",
        )
    for index, row in enumerate(rows[first : first + height], first):
        chosen = here and index == at
        cells = [
            each if isinstance(each, Text) and not chosen else Text(plain(str(each)))
            for each in row
        ]
        grid.add_row(*cells, style=SELECTED_STYLE if chosen else "")
    if not rows:
        empty = {
            "queues": "no queues yet",
            "failures": "nothing has failed",
            "workers": "no workers",
        }[name]
        grid.add_row(*(Text(empty if width is None else "", style="dim") for _, width in columns))
    for _ in range(height - max(1, len(rows[first : first + height]))):
        grid.add_row(*("" for _ in columns))
    return grid


def _foot(controller: Controller) -> Text:
    if controller.question:
        return _cut(Text(controller.question, style="bold yellow"))
    order = "by name" if controller.sort_by_rate else "busiest first"
    keys = (
        f"{KEYS[controller.pane]}  ↑↓ select  tab other list  s {order}  q quit"
        if not controller.failure
        else "r retry the group  esc back  q quit"
    )
    return _cut(
        Text.assemble(
            (controller.message + "   " if controller.message else "", "bold"), (keys, "dim")
        )
    )
