"""A graph of dependencies: what a job depends on at its left, its dependents at its right."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from aioqless.validation import plain

COLUMN, ROW, BOX, TALL, EDGE = 250, 58, 200, 44, 8
MAX_NAME, MAX_LINE = 20, 24  # characters that fit into a box in any browser


@dataclass(frozen=True)
class Node:
    """A job in the graph. `column` is 0 for its subject, negative for its dependencies.

    `ran` says how long it ran.
    One without a jid does not exist yet.
    """

    jid: str
    klass: str
    state: str
    column: int
    ran: str = ""


def graph(
    nodes: Sequence[Node],
    edges: Sequence[tuple[str, str]],
    failures: Sequence[tuple[str, str]],
    link: Callable[..., str],
    more: Mapping[int, int],
    subject: str,
) -> Markup:
    """Draw nodes in columns, and an arrow from each job to its dependents.

    Arrows from a job to one that its failure puts are dashed. `more` has how many jobs of each
    column are not shown.
    """
    columns = sorted({node.column for node in nodes} | more.keys())
    tall = max(
        sum(node.column == column for node in nodes) + (column in more) for column in columns
    )
    height, places, drawn = tall * ROW + EDGE, {}, Markup("")
    for column in columns:
        there = [node for node in nodes if node.column == column]
        top = (height - (len(there) + (column in more)) * ROW) / 2 + EDGE
        x = (column - columns[0]) * COLUMN + 2
        for at, node in enumerate(there):
            places[node.jid] = (x, top + at * ROW)
            drawn += _box(node, x, top + at * ROW, link, node.jid == subject)
        if column in more:
            drawn += Markup('<text class="faint" x="{:.0f}" y="{:.0f}">and {} more</text>').format(
                x + 12, top + len(there) * ROW + 22, more[column]
            )
    arrows = Markup("").join(
        _arrow(places[a], places[b], kind)
        for kind, pairs in (("arrow", edges), ("arrow failure", failures))
        for a, b in pairs
        if a in places and b in places
    )
    width = (columns[-1] - columns[0]) * COLUMN + BOX + 4
    return Markup(
        '<svg class="graph" width="{w}" height="{h}" viewBox="0 0 {w} {h}" role="group" '
        'aria-label="Dependencies and dependents of this job">'
        '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
        'markerHeight="7" orient="auto"><path d="M0 0 8 4 0 8z"/></marker></defs>'
        "{arrows}{boxes}</svg>"
    ).format(w=width, h=round(height), arrows=arrows, boxes=drawn)


def _box(node: Node, x: float, y: float, link: Callable[..., str], is_subject: bool) -> Markup:
    klass = node.klass.rpartition(".")[2] or node.klass
    state = f"{'blocked' if node.state == 'depends' else node.state} · " if node.jid else node.state
    state += f"{node.ran} · " if node.ran else ""
    box = Markup(
        '<rect class="box {state}{mine}" x="{x:.0f}" y="{y:.0f}" width="{w}" height="{h}" rx="8"/>'
        '<text x="{tx:.0f}" y="{t1:.0f}">{name}</text>'
        '<text class="faint" x="{tx:.0f}" y="{t2:.0f}">{shown}{short}</text>'
    ).format(
        state=node.state if node.jid else "planned",
        mine=" self" if is_subject else "",
        x=x,
        y=y,
        w=BOX,
        h=TALL,
        tx=x + 12,
        t1=y + 18,
        t2=y + 34,
        name=_truncate(plain(klass), MAX_NAME),
        shown=state,
        short=_shorten(plain(node.jid), MAX_LINE - len(state)),
    )
    if not node.jid:
        return box
    return Markup(
        '<a href="{href}"{here} aria-label="{klass}, {state}, job {jid}">{box}</a>'
    ).format(
        href=link("/job", jid=node.jid),
        here=Markup(' aria-current="true"') if is_subject else "",
        klass=plain(node.klass),
        state=node.state,
        jid=plain(node.jid),
        box=box,
    )


def _truncate(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def _arrow(start: tuple[float, float], end: tuple[float, float], kind: str) -> Markup:
    x1, y1, x2, y2 = start[0] + BOX, start[1] + TALL / 2, end[0] - 2, end[1] + TALL / 2
    bend = (x1 + x2) / 2
    return Markup(
        '<path class="{5}" d="M{0:.0f} {1:.0f}C{4:.0f} {1:.0f} {4:.0f} {3:.0f} {2:.0f} {3:.0f}" '
        'marker-end="url(#head)"/>'
    ).format(x1, y1, x2, y2, bend, kind)


def _shorten(jid: str, most: int) -> str:
    """Return the beginning and the end of a jid: those of a workflow differ at the end."""
    if len(jid) <= most:
        return jid
    begin = max(0, most - 1) // 2
    return f"{jid[:begin]}…{jid[len(jid) - max(0, most - 1 - begin) :]}"
