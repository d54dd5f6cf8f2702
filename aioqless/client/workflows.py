"""Flows: jobs that depend on each other, composed of chains and groups, and put in one step.

chain(fetch.data(url=url), group(shrink.data(width=100), shrink.data(width=500)), in_queue("mail",
tell.data()))"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from typing_extensions import Unpack

from aioqless import validation
from aioqless.client.put import NewJob, OnFailed, PutOptions

MOST_JOBS = 1_000
MOST_DEPENDENCIES = 10_000
MOST_BYTES = 8 << 20


@dataclass(frozen=True)
class Placed:
    """A new job and the queue that it comes into."""

    queue: str
    job: NewJob


@dataclass(frozen=True)
class Chain:
    """Steps of which each waits for all that the one before it ends with."""

    steps: tuple[Step, ...]


@dataclass(frozen=True)
class Group:
    """Steps that wait for the same and not for each other."""

    steps: tuple[Step, ...]


Step: TypeAlias = NewJob | Placed | Chain | Group


@dataclass(frozen=True)
class Flow:
    """What was put: all `jids`, those of dependencies first, and those that nothing of the flow
    waits for, the `last` ones."""

    jids: tuple[str, ...]
    last: tuple[str, ...]


def in_queue(queue: str, job: NewJob, **options: Unpack[PutOptions]) -> Placed:
    """A step in a queue of its own, with options of put."""
    return Placed(validation.check_name("queue", queue), replace(job, **options))


def chain(*steps: Step) -> Chain:
    """One after the other. Behind a group, the next waits until all of it is complete. Raises
    TypeError and ValueError."""
    return Chain(_checked("chain", steps))


def group(*steps: Step) -> Group:
    """All at once. Raises TypeError and ValueError."""
    return Group(_checked("group", steps))


def _checked(what: str, steps: Sequence[Step]) -> tuple[Step, ...]:
    if not steps:
        raise ValueError(f"a {what} needs at least one step")
    for step in steps:
        if not isinstance(step, NewJob | Placed | Chain | Group):
            raise TypeError(
                f"a {what} is made of new jobs, such as handler.data(...), of chains and of groups, not of {step!r}"
            )
    return tuple(steps)


def plan(
    flow: Step, queue: str, on_failed: OnFailed | None
) -> tuple[list[tuple[str, NewJob]], Flow]:
    """Each job with its queue, its jid and what it depends on, dependencies first. Raises
    ValueError when they can't be."""
    rows: list[tuple[str, NewJob]] = []
    (flow,) = _checked("flow", (flow,))
    last = _lay_out(rows, flow, queue, ())
    jids = tuple(str(job.jid) for _, job in rows)
    if twice := sorted(
        {jid for jid in jids if jids.count(jid) > 1} if len(set(jids)) < len(jids) else ()
    ):
        raise ValueError(f"jid {twice[0]!r} is in this flow twice")
    place = {jid: number for number, jid in enumerate(jids)}
    for number, (_, job) in enumerate(rows):
        if later := [other for other in job.depends or () if place.get(other, -1) >= number]:
            raise ValueError(
                f"{job.jid!r} depends on {later[0]!r}, which this flow has only behind it"
            )
    rows = [
        (queue, job if job.on_failed else replace(job, on_failed=on_failed)) for queue, job in rows
    ]
    return rows, Flow(jids, tuple(last))


def _lay_out(
    rows: list[tuple[str, NewJob]], step: Step, queue: str, after: Iterable[str]
) -> list[str]:
    """Append a step's jobs; returns the jids that it ends with."""
    match step:
        case Placed(own, job):
            return _lay_out(rows, job, own, after)
        case Chain(steps):
            for each in steps:
                after = _lay_out(rows, each, queue, after)
            return list(after)
        case Group(steps):
            return [jid for each in steps for jid in _lay_out(rows, each, queue, after)]
    jid = step.jid or secrets.token_hex(16)
    depends = [*(step.depends or ()), *after]
    rows.append((queue, replace(step, jid=jid, depends=depends or step.depends)))
    return [jid]


def check_size(rows: Sequence[dict[str, Any]]) -> None:
    """One call puts them all, so they are bounded. Raises ValueError."""
    if len(rows) > MOST_JOBS:
        raise ValueError(
            f"a flow of {len(rows):,} jobs is put in one step, which may have {MOST_JOBS:,}: let one of its jobs put the others"
        )
    if (pairs := sum(len(row["depends"] or ()) for row in rows)) > MOST_DEPENDENCIES:
        raise ValueError(
            f"a flow of {pairs:,} dependencies is put in one step, which may have {MOST_DEPENDENCIES:,}: put a job between groups"
        )
    if (size := sum(len(row["data"]) for row in rows)) > MOST_BYTES:
        raise ValueError(
            f"a flow with {size:,} bytes of data is put in one step, which may have {MOST_BYTES:,}"
        )
