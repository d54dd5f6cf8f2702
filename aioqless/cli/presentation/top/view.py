"""The screen as lines: all that fits, around what is chosen."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from aioqless.cli.presentation.formatting import STYLES, ago, brief, clock, many, plain
from aioqless.cli.presentation.histograms import spark
from aioqless.cli.presentation.top.controller import Board
from aioqless.client.job.summaries import FailureGroup

COUNTS = ("waiting", "running", "stalled", "scheduled", "depends")
AROUND = 6  # lines that are always there: head, titles, foot
TREND = 20  # columns
KEYS = {"queues": "p pause/go on", "failures": "r run again  enter why", "workers": "p quiet/go on"}
CHOSEN = "reverse"
AS_IT_IS: dict[str, Any] = {"drop_whitespace": False, "replace_whitespace": False}


def drawn(board: Board, width: int, height: int, where: str) -> RenderableType:
    """Everything, for a screen of this size."""
    rest = max(3, height - AROUND)
    if board.why:
        lines = _why(board.why, width, rest + AROUND - 3)[: rest + AROUND - 3]
        return Group(
            *_head(board, where), *lines, *_blank(rest + AROUND - 3 - len(lines)), _foot(board)
        )
    wanted = [
        max(1, len(each)) for each in (board.seen.queues, board.seen.failed, board.seen.workers)
    ]
    least = max(1, rest // 4)
    queues = min(
        wanted[0], max(rest - sum(min(each, least) for each in wanted[1:]), rest - 2 * least)
    )
    failures = min(wanted[1], rest - queues - min(wanted[2], least))
    workers = min(wanted[2], rest - queues - failures)
    return Group(
        *_head(board, where),
        _pane(board, "queues", _queue_columns(width), _queue_rows(board, width), queues),
        _pane(
            board,
            "failures",
            [("failed", 9), ("group", None)],
            [(f"{n:,}", name) for name, n in board.seen.failed.items()],
            failures,
        ),
        _pane(
            board,
            "workers",
            [("jobs", 9), ("stalled", 9), ("worker", None), ("heard of", 16)],
            _worker_rows(board),
            workers,
        ),
        *_blank(rest - queues - failures - workers),
        _foot(board),
    )


def _why(group: FailureGroup, width: int, height: int) -> list[Text]:
    """The latest failure of a group: what happened, in which job, with which data; and what to do
    then. Where there is no room for all that is told, it is the end that is shown: a traceback ends
    with what it is about."""
    assert group.latest
    job = group.latest
    title = f"{plain(group.group)} · {many(group.total, 'job')} · the latest {ago(job.failed)}, {plain(job.klass)}"
    told = [
        part
        for line in plain(job.message.strip(), lines=True).split("\n")
        for part in wrap(line, width - 2, **AS_IT_IS) or [""]
    ]
    data = brief(job.data, 500) if job.data is not None else f"{job.size:,} bytes"
    known = wrap(data, width - 5) or [""]
    told = told[-max(1, height - 5 - len(known)) :]
    lines = [
        Text(),
        Text(title, style=STYLES["failed"]),
        *(Text(f"  {line}") for line in told),
        Text(),
    ]
    lines += [
        Text.assemble(("     " if at else "data ", "dim"), line) for at, line in enumerate(known)
    ]
    for command, does in (("edit", "change its data and run it again"), ("get", "see all of it")):
        lines.append(Text.assemble(f"aioqless {command} {plain(job.jid)}", (f"   {does}", "dim")))
    return [_cut(line) for line in lines]


def _blank(count: int) -> list[Text]:
    return [Text() for _ in range(count)]


def _head(board: Board, where: str) -> list[Text]:
    seen, redis = board.seen, board.seen.redis
    away = ("Redis is away: " + seen.away, "bold white on red") if seen.away else ""
    memory = (
        f"{redis.get('used_memory_human', '?')} memory · {redis.get('connected_clients', '?')} clients"
        if redis
        else ""
    )
    first = Text.assemble(
        ("aioqless ", "bold"),
        plain(where),
        "  ",
        (clock(seen.when)[11:] if seen.when else "", "dim"),
        "  ",
        (memory, "dim"),
        "  ",
        away,
    )
    counts = [
        part for count in COUNTS for part in ((f"{seen.sum(count):,} {count}", STYLES[count]), "  ")
    ]
    failed = sum(seen.failed.values())
    rate = sum(queue.rates.completed for queue in seen.queues)
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
    """With fewer columns, less is said."""
    columns: list[tuple[str, int | None]] = [
        ("queue", None),
        *((count, 9) for count in COUNTS if width >= 100 or count in COUNTS[:3]),
    ]
    columns += [("done/s", 9), ("failed/s", 9)]
    return [*columns, ("lately", TREND)] if width >= 120 else columns


def _queue_rows(board: Board, width: int) -> list[tuple[Any, ...]]:
    rows = []
    for queue in board.queues():
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
                *([Text(spark(queue.done[-TREND:]), style="cyan")] if width >= 120 else []),
            )
        )
    return rows


def _worker_rows(board: Board) -> list[tuple[Any, ...]]:
    return [
        (
            f"{worker.jobs:,}",
            Text(f"{worker.stalled:,}", style=STYLES["stalled"] if worker.stalled else "dim"),
            worker.name,
            ago(min(worker.seen, board.seen.when), board.seen.when),
        )
        for worker in board.seen.workers
    ]


def _pane(
    board: Board,
    name: str,
    columns: Sequence[tuple[str, int | None]],
    rows: Sequence[Sequence[Any]],
    height: int,
) -> Table:
    """A list, or the part of it around the chosen line."""
    here, at = board.pane == name, board.at(name)
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
        number = width is not None and width < TREND
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
        grid.add_row(*cells, style=CHOSEN if chosen else "")
    if not rows:
        empty = {
            "queues": "no queues yet",
            "failures": "nothing has failed",
            "workers": "no worker was seen",
        }[name]
        grid.add_row(*(Text(empty if width is None else "", style="dim") for _, width in columns))
    for _ in range(height - max(1, len(rows[first : first + height]))):
        grid.add_row(*("" for _ in columns))
    return grid


def _foot(board: Board) -> Text:
    if board.question:
        return _cut(Text(board.question, style="bold yellow"))
    order = "by name" if board.busiest else "busiest first"
    keys = (
        f"{KEYS[board.pane]}  ↑↓ choose  tab other list  s {order}  q quit"
        if not board.why
        else "r run the group again  esc back  q quit"
    )
    return _cut(Text.assemble((board.told + "   " if board.told else "", "bold"), (keys, "dim")))
