"""One job with its data, dependencies and history; one recurring job."""

from __future__ import annotations

import asyncio
import json
import time
from bisect import bisect_right
from collections.abc import Iterable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate
from typing import Any
from urllib.parse import quote

from aioqless.cli.presentation.formatting import format_duration
from aioqless.client import Client, json_types
from aioqless.client.job import JobRecord
from aioqless.client.job.state import Emitted, JobState, Missed, Output, StoredStep
from aioqless.client.recurring import RecurringJob
from aioqless.contrib.dashboard.charts.dependency_graph import Node
from aioqless.contrib.dashboard.formatting import EVENTS, describe_event
from aioqless.contrib.dashboard.page_request import Page, PageRequest
from aioqless.contrib.dashboard.redaction import HIDDEN, JobRedaction
from aioqless.contrib.http import Role
from aioqless.errors import CommandRefused, DecryptionError, NoSuchJob, NoSuchWorker

MAX_NEIGHBORS = 12
MAX_JOBS = 60
MAX_EVENTS = 100
MAX_INSTANCES, MAX_INSTANCE_DATA = 20, 2 << 20  # runs of a schedule, and bytes of their data
MAX_SUGGESTED_QUEUES = 200
# Characters of what a step has stored, and of the output: more than the page shows, since a secret
# that is cut is not found.
MAX_VALUE, MAX_OUTPUT = 5000, 40_000
LATEST_OUTPUT = 100  # entries, each of the values of 50 ms
MAX_ATTEMPTS = 20
# Events that end an attempt, and what its outcome is called.
ENDS = {
    "done": "completed", "failed": "failed", "failed-retries": "failed", "retried": "retried",
    "released": "released", "timed-out": "timed out", "lock-lost": "lock lost",
    "declined": "declined", "abandoned": "reservation expired", "skipped": "skipped",
}  # fmt: skip
STACK_TIMEOUT = 2.0  # seconds
UNKEPT = ("wait", "timeout", "sleep", "slept")  # kinds without values of their own


async def show_job(request: PageRequest) -> Page:
    """Show a job."""
    jid = request.text("jid")
    job = await request.client.jobs.get(jid) if jid else None
    if job is None:
        if jid and await request.client.recurring.get(jid):
            return await show_recurring_job(request)
        raise NoSuchJob(
            "get", "NOJOB", {"why": "This job does not exist, or was deleted", "jid": jid}
        )
    graph = DependencyGraph(job)
    await graph.read(request.client)
    stored = readable_data(job)
    (data, unreadable), redaction = await asyncio.to_thread(_prepare, request, job)
    try:
        steps, hidden_steps = await request.client.jobs.steps(jid), ""
    except DecryptionError as error:
        steps, hidden_steps = [], f"Encrypted: {error}"
    queues = request.dashboard.overviews.latest.queues[:MAX_SUGGESTED_QUEUES]
    values = {
        "job": job,
        "queue": job.last_queue,
        "data": data,
        "unreadable": unreadable,
        "held_back": _describe_held_back(request, job),
        "mark": request.dashboard.identification.sessions.sign(job.raw_data),
        "redact": redaction.redact,
        "redact_value": redaction.redact_value,
        "describe": partial(_describe, redaction),
        "known_events": EVENTS,
        "events": job.events[-MAX_EVENTS:],
        "attempts": list_attempts(job.events)[-MAX_ATTEMPTS:],
        "links": find_links(request, job, data),
        "steps": [(step, _shown_value(request, step, stored)) for step in steps],
        "hidden_steps": hidden_steps,
        "output": await _read_output(request, jid, redaction),
        "signaled": {step.name for step in steps if step.kind == "signal"},
        "nodes": graph.nodes if len(graph.nodes) > 1 else [],
        "edges": list(graph.edges),
        "failures": graph.failures,
        "more": graph.hidden,
        "graph": graph,
        "now": time.time() // 5 * 5,  # a page that differs each second would be sent each second
        "queues": [each.name for each in queues],
        "edit": request.one_of("edit", ("", "1")),
        "stack": await _read_stack(request, job) if request.text("stack") else "",
    }
    title = f"{job.klass.rpartition('.')[2] or job.jid} · {job.state}"
    return Page("job.html", title, values, live=not values["stack"], large=True)


async def show_recurring_job(request: PageRequest) -> Page:
    """Show a recurring job and its latest instances."""
    jid = request.text("jid")
    template = await request.client.recurring.get(jid) if jid else None
    if template is None:
        raise NoSuchJob(
            "recur",
            "NOJOB",
            {"why": "This recurring job does not exist, or was deleted", "jid": jid},
        )
    numbers = range(template.count, max(0, template.count - MAX_INSTANCES), -1)
    latest = await request.client.jobs.summaries(*[f"{jid}-{number}" for number in numbers])
    sizes = list(accumulate(each.size for each in latest))
    jids = [each.jid for each in latest[: bisect_right(sizes, MAX_INSTANCE_DATA)]]
    jobs = await request.client.jobs.multiget(*jids) if jids else []
    data, unreadable = await asyncio.to_thread(shown_data, request, template)
    values = {
        "template": template,
        "data": data,
        "unreadable": unreadable,
        "runs": [(job, _find_put(job.events), list_attempts(job.events)) for job in jobs],
        "unread": latest[len(jids) :],
        "ticks": template.upcoming(5, after=time.time()),
    }
    return Page(
        "recurring_job.html", f"{template.klass.rpartition('.')[2]} · recurring", values, large=True
    )


def shown_data(request: PageRequest, job: JobRecord | RecurringJob) -> tuple[str | None, str]:
    """Return decrypted and redacted data and an empty text, or None and why it is not shown."""
    if not request.sees_data:
        return None, "Hidden: your role may not see job data."
    try:
        return request.dashboard.redaction.format(job.text), ""
    except DecryptionError as error:
        return None, f"Encrypted: {error}"


def _shown_value(request: PageRequest, step: StoredStep, stored: str | None) -> str:
    """Return a stored value without hidden ones; empty where the role may not see data."""
    if not request.sees_data or step.kind in UNKEPT:
        return ""
    value = json_types.encode(step.value).decode()
    text = request.dashboard.redaction.format(value, stored=stored)
    return text[:MAX_VALUE]


def show_key(request: PageRequest, key: str, data: str | None) -> str:
    """Return a key; of the values in it only those of arguments that its job shows."""
    klass, _, values = key.partition(":[")
    redaction = request.dashboard.redaction
    if not values:
        return redaction.hide_named(key)
    try:
        given, parts = json.loads(data or "null"), json.loads(f"[{values}")
    except (ValueError, RecursionError):
        given = None
    if not isinstance(given, dict) or not request.sees_data:
        return f"{klass}:[{HIDDEN}]"
    hidden = [value for name, value in given.items() if redaction.is_hidden(name)]
    shown = [part if part in given.values() and part not in hidden else HIDDEN for part in parts]
    return (
        f"{klass}:{redaction.format(json.dumps(shown, ensure_ascii=False), indent=0, stored=data)}"
    )


async def _read_stack(request: PageRequest, job: JobRecord) -> str:
    """Return where the code of a running job is, or why that isn't known."""
    if not request.may(Role.OPERATE) or job.state != JobState.RUNNING:
        return "Only a running job has a stack, which requires the operate role."
    try:
        return await request.client.workers.stack(job.worker, job.jid, timeout=STACK_TIMEOUT)
    except (NoSuchWorker, CommandRefused) as error:
        return error.describe() if isinstance(error, NoSuchWorker) else str(error)


async def _read_output(request: PageRequest, jid: str, redaction: JobRedaction) -> str:
    """Return the latest part of a job's output; nothing where the role may not see data."""
    text = ""
    if request.sees_data:
        output = request.client.jobs.output(jid, latest=LATEST_OUTPUT, follow=False)
        try:
            async with aclosing(output):
                async for each in output:
                    text += _format_output(request, each)
        except (DecryptionError, NoSuchJob) as error:
            return f"Hidden: {error}"
    return (await asyncio.to_thread(redaction.redact, text))[-MAX_OUTPUT:]


def _format_output(request: PageRequest, output: Output) -> str:
    match output:
        case Emitted(value=str(text)):
            return text
        case Emitted(value=value):
            return request.dashboard.redaction.format(json_types.encode(value).decode()) + "\n"
        case Missed():
            return "…"
    return ""


def _prepare(request: PageRequest, job: JobRecord) -> tuple[tuple[str | None, str], JobRedaction]:
    """Return the shown data, and what hides secrets in texts."""
    return shown_data(request, job), request.dashboard.redaction.of_job(readable_data(job))


def _describe_held_back(request: PageRequest, job: JobRecord) -> str:
    """Return why a job doesn't start; its limit is by values of its data."""
    if not (held := job.held_back):
        return ""
    return replace(held, key=show_key(request, held.key, readable_data(job))).reason


def _describe(redaction: JobRedaction, event: Mapping[str, Any]) -> str:
    """Return an event as a sentence. A handler's own may contain secrets."""
    text = describe_event(event)
    return text if str(event.get("what")) in EVENTS else redaction.redact(text)


@dataclass
class Attempt:
    """A run of a job, as its history tells it.

    Attributes:
        number: From 1.
        worker: Name of the worker.
        started: When it was popped, in seconds since 1970.
        waited: For how many seconds the job had waited; None if that isn't known.
        ended: When the attempt ended; None if it runs, or that isn't known.
        outcome: How it ended.
        error: The last line of its error, where the history has it.
    """

    number: int
    worker: str
    started: float
    waited: float | None
    ended: float | None = None
    outcome: str = ""
    error: str = ""


def list_attempts(events: Iterable[Mapping[str, Any]]) -> list[Attempt]:
    """Return the attempts of a job, the first one first."""
    attempts: list[Attempt] = []
    since: float | None = None
    for event in events:
        what, when = event["what"], event["when"]
        if what == "popped":
            waited = None if since is None else max(0.0, when - since)
            worker = str(event.get("worker", ""))
            attempts.append(Attempt(len(attempts) + 1, worker, when, waited))
        elif what in ENDS and attempts and not attempts[-1].outcome:
            last = attempts[-1]
            last.ended, last.outcome = when, ENDS[what]
            last.error = str(event.get("error") or event.get("group") or "")
        if what == "put" or what in ENDS:
            since = when
    return attempts


def _find_put(events: Iterable[Mapping[str, Any]]) -> float:
    """Return when a job was put; 0 if its history no longer says so."""
    return next((event["when"] for event in events if event["what"] == "put"), 0.0)


def find_links(request: PageRequest, job: JobRecord, data: str | None) -> list[tuple[str, str]]:
    """Return the names and addresses of the configured links for which a job has a value."""
    values = {"jid": job.jid, "klass": job.klass, "queue": job.last_queue, "worker": job.worker}
    if request.sees_data:
        values |= {name: str(text) for name, text in job.context.items()}
        if trace := str(job.context.get("traceparent", "")).split("-")[1:2]:
            values["trace_id"] = trace[0]
    try:
        shown = json.loads(data or "null")
    except ValueError:
        shown = None
    links = []
    is_hidden = request.dashboard.redaction.is_hidden
    for name, template in request.dashboard.job_links.items():
        value = _find_value(shown, name)
        if value is None:
            value = values.get(name)
        if value and HIDDEN not in str(value) and not any(map(is_hidden, name.split("."))):
            links.append((name, template.replace("{value}", quote(str(value), safe=""))))
    return links


def _find_value(data: object, name: str) -> object:
    """Return the string or number at a path such as `order.id`; None if there is none."""
    for part in name.split("."):
        data = data.get(part) if isinstance(data, dict) else None
    return data if isinstance(data, str | int | float) and not isinstance(data, bool) else None


def readable_data(job: JobRecord) -> str | None:
    """Return the decrypted data; None without the key."""
    try:
        return job.text
    except DecryptionError:
        return None


class DependencyGraph:
    """The workflow of a job: what it waits for or waited for, its dependents, and theirs.

    Complete dependencies are those that a job was put with. Beside the dependents of the
    job are the jobs that its last failure has put, or its next one will.

    Attributes:
        nodes: At most 60 jobs with their columns, at most 12 in each.
        edges: The jids of a job and of a dependent, each pair once.
        failures: The jids of a job and of one that its failure puts.
        hidden: The number of jobs in a column that are left out, of those whose jids are known.
    """

    def __init__(self, job: JobRecord) -> None:
        self._job = job
        self._known = {job.jid: job}
        self.nodes: list[Node] = []
        self.edges: dict[tuple[str, str], None] = {}
        self.failures: list[tuple[str, str]] = []
        self.hidden: dict[int, int] = {}
        self._unread = 0

    @property
    def total(self) -> int:
        """The number of jobs, as far as their jids are known."""
        return len(self._known) + self._unread

    def count(self, state: str) -> int:
        """Return the number of jobs in a state."""
        return sum(job.state == state for job in self._known.values())

    async def read(self, client: Client) -> None:
        """Read the jobs."""
        unread: dict[str, None] = {}
        new = [self._job]
        while new:
            for job in new:
                unread |= dict.fromkeys([*job.dependencies, *job.details.after, *job.dependents])
            wanted = [jid for jid in unread if jid not in self._known]
            wanted = wanted[: MAX_JOBS - len(self._known)]
            for jid in wanted:
                del unread[jid]
            new = await client.jobs.multiget(*wanted) if wanted else []
            self._known |= {job.jid: job for job in new}
        for job in self._known.values():
            pairs = [(jid, job.jid) for jid in (*job.dependencies, *job.details.after)]
            pairs += [(job.jid, jid) for jid in job.dependents]
            self.edges |= {pair: None for pair in pairs if self._is_shown(*pair)}
        self._place(set(unread) - self._known.keys())
        await self._read_branches(client)

    def _is_shown(self, before: str, after: str) -> bool:
        """Return whether two jobs are read and one waits, or has waited, for the other."""
        if before not in self._known or after not in self._known:
            return False
        job, other = self._known[after], self._known[before]
        return (
            other.state == JobState.COMPLETE
            or job.state != JobState.DEPENDS
            or (before in job.dependencies)
        )

    def _place(self, unread: set[str]) -> None:
        """Give each job a column: one more than the last of the jobs that it waits for."""
        columns: dict[str, int] = dict.fromkeys(self._known, 0)
        for _ in self._known:  # a circle, which other clients may make, ends here, too
            moved = {b: columns[a] + 1 for a, b in self.edges if columns[b] <= columns[a]}
            if not moved:
                break
            columns |= moved
        own, rows = columns[self._job.jid], dict[int, int]()
        order = sorted(self._known.values(), key=lambda job: job.jid != self._job.jid)
        for job in sorted(order, key=lambda job: job.state == JobState.COMPLETE):
            column = columns[job.jid] - own
            rows[column] = rows.get(column, 0) + 1
            if rows[column] <= MAX_NEIGHBORS or job.jid == self._job.jid:
                self.nodes.append(Node(job.jid, job.klass, job.state, column, describe_run(job)))
            else:
                self.hidden[column] = self.hidden.get(column, 0) + 1
        for job in self._known.values():
            for links, side in (
                (job.dependencies, -1),
                (job.details.after, -1),
                (job.dependents, 1),
            ):
                found = unread.intersection(links)
                unread -= found
                self._unread += len(found)
                if found:
                    column = columns[job.jid] - own + side
                    self.hidden[column] = self.hidden.get(column, 0) + len(found)

    async def _read_branches(self, client: Client) -> None:
        job, seen = self._job, self._job.details.failures_seen
        branch, cause = job.details.branch, job.details.cause
        last = [f"{job.jid}-{which}-{seen}" for which in ("failure", "handler-failure")]
        jids = [*last[: 2 if seen else 0], *([cause] if cause else [])]
        for each in await client.jobs.summaries(*jids) if jids else []:
            self.nodes.append(
                Node(each.jid, each.klass, each.state, -1 if each.jid == cause else 1)
            )
            self.failures.append((each.jid, job.jid) if each.jid == cause else (job.jid, each.jid))
        if branch and (job.jid, last[0]) not in self.failures:
            self.nodes.append(Node("", branch["klass"], "if this fails", 1))
            self.failures.append((job.jid, ""))


def describe_run(job: JobRecord) -> str:
    """Return how long the last attempt of a job has taken; an empty text if that isn't known."""
    last = next(iter(list_attempts(job.events)[-1:]), None)
    return format_duration(last.ended - last.started) if last and last.ended else ""
