"""One job: what it is, what happened to it, what it waits for; and one recurring job."""

from __future__ import annotations

import hashlib
import time
from functools import partial

from aioqless.client import Client
from aioqless.client.job import Job
from aioqless.contrib.dashboard.charts.graph import Node
from aioqless.contrib.dashboard.page_request import Asked, Page
from aioqless.contrib.encryption import opened
from aioqless.errors import BrokenSeal, NoSuchJob

NEIGHBOURS = 12
SHOWN_EVENTS = 100


async def job(asked: Asked) -> Page:
    jid = asked.text("jid")
    job = await asked.client.jobs.get(jid) if jid else None
    if job is None:
        if jid and await asked.client.jobs.recurring(jid):
            return await recurring_job(asked)
        raise NoSuchJob("get", "NOJOB", {"why": "There is no such job, or no longer", "jid": jid})
    nodes, edges, more = (
        await around(asked.client, job) if job.dependencies or job.dependents else ([], [], {})
    )
    data, sealed = shown(asked, job.raw_data, job.klass)
    values = {
        "job": job,
        "queue": queue_of(job),
        "data": data,
        "sealed": sealed,
        "mark": mark(job.raw_data),
        "told": partial(asked.board.redaction.told, stored=_readable(asked, job)),
        "events": job.events[-SHOWN_EVENTS:],
        "nodes": nodes,
        "edges": edges,
        "more": more,
        "now": time.time() // 5 * 5,  # or a page that is live would be told anew each second
        "queues": [each.name for each in asked.board.sampler.latest.queues[:200]],
        "edit": asked.one_of("edit", ("", "1")),
    }
    return Page("job.html", f"{job.klass.rpartition('.')[2] or job.jid} · {job.state}", values)


def shown(asked: Asked, stored: str, klass: str) -> tuple[str | None, str]:
    """Data for those who may see them, out of their seal; or why they can't be shown."""
    if not asked.sees_data:
        return None, "Hidden: your role may not see the data of jobs."
    try:
        return asked.board.redaction.shown(opened(asked.client.store.seal, stored, klass)), ""
    except BrokenSeal as broken:
        return None, f"Sealed: {broken}"


def mark(stored: str) -> str:
    """What tells data from others, for who changes them."""
    return hashlib.sha256(stored.encode("utf-8", "surrogateescape")).hexdigest()[:16]


def _readable(asked: Asked, job: Job) -> str | None:
    try:
        return opened(asked.client.store.seal, job.raw_data, job.klass)
    except BrokenSeal:
        return None


def queue_of(job: Job) -> str:
    """The queue that it is in, or for one that is complete, was in last."""
    return job.queue or next(
        (str(stage["q"]) for stage in reversed(job.history) if stage.get("q")), ""
    )


async def around(
    client: Client, job: Job
) -> tuple[list[Node], list[tuple[str, str]], dict[int, int]]:
    """The jobs that it waits for and those that wait for it, and one step further; some of them
    where there are many."""
    waits, waiting = sorted(job.dependencies)[:NEIGHBOURS], sorted(job.dependents)[:NEIGHBOURS]
    found = {each.jid: each for each in await client.jobs.multiget(*waits, *waiting)}
    nodes = [Node(job.jid, job.klass, job.state, 0)]
    edges: list[tuple[str, str]] = []
    for jids, column in ((waits, -1), (waiting, 1)):
        for jid in jids:
            if each := found.get(jid):
                nodes.append(Node(jid, each.klass, each.state, column))
                edges.append((jid, job.jid) if column < 0 else (job.jid, jid))
    further = {
        -2: [jid for each in waits if each in found for jid in found[each].dependencies],
        2: [],
    }
    further[2] = [jid for each in waiting if each in found for jid in found[each].dependents]
    known = {node.jid for node in nodes}
    wanted = {
        column: [jid for jid in dict.fromkeys(jids) if jid not in known][:NEIGHBOURS]
        for column, jids in further.items()
    }
    if asked_for := [*wanted[-2], *wanted[2]]:
        states = {each.jid: each for each in await client.jobs.glances(*asked_for)}
        for column, jids in wanted.items():
            nodes += [
                Node(jid, states[jid].klass, states[jid].state, column)
                for jid in jids
                if jid in states
            ]
    edges += [(jid, each) for each in waits if each in found for jid in found[each].dependencies]
    edges += [(each, jid) for each in waiting if each in found for jid in found[each].dependents]
    left = {
        -1: job.whole.dependencies_total - len(waits),
        1: job.whole.dependents_total - len(waiting),
    }
    return (
        nodes,
        list(dict.fromkeys(edges)),
        {column: count for column, count in left.items() if count > 0},
    )


async def recurring_job(asked: Asked) -> Page:
    jid = asked.text("jid")
    template = await asked.client.jobs.recurring(jid) if jid else None
    if template is None:
        raise NoSuchJob(
            "recur", "NOJOB", {"why": "There is no such recurring job, or no longer", "jid": jid}
        )
    latest = await asked.client.jobs.glances(
        *[f"{jid}-{number}" for number in range(template.count, max(0, template.count - 20), -1)]
    )
    data, sealed = shown(asked, template.raw_data, template.klass)
    values = {
        "template": template,
        "data": data,
        "sealed": sealed,
        "latest": latest,
        "ticks": ticks(template.cron, template.timezone, template.interval, template.next),
    }
    return Page("recurring_job.html", f"{template.klass.rpartition('.')[2]} · recurring", values)


def ticks(
    cron: str | None,
    timezone: str | None,
    interval: float | None,
    first: float | None,
    count: int = 5,
) -> list[float]:
    """When the next instances are due; none while it is paused."""
    from aioqless.client.recurring.cron import Cron

    found = [] if first is None else [first]
    try:
        while found and len(found) < count:
            found.append(
                Cron(cron, timezone or "UTC").next(found[-1])
                if cron
                else found[-1] + (interval or 0)
            )
    except ValueError:  # an expression that somebody else stored
        pass
    return found
