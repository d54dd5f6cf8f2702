"""Workflows: jobs that depend on each other, composed of chains and groups, put in one step.

Example:
    chain(
        fetch.data(url=url),
        group(shrink.data(width=100), shrink.data(width=500)),
        in_queue("mail", tell.data()),
    )
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeAlias, cast, overload

from typing_extensions import Unpack

from aioqless import validation
from aioqless.client.generated_jid import generate_jid
from aioqless.client.job_data import RESULT
from aioqless.client.new_job import NewJob, Placed, R, Result_co, StepResult, measure
from aioqless.client.put_options import FLOW, FlowOptions, PutOptions
from aioqless.hints import suggest_put
from aioqless.store import PutFlowRow

MAX_JOBS = 1_000
MAX_DEPENDENCIES = 10_000
MAX_BYTES = 8 << 20

Rows: TypeAlias = list[tuple[str, NewJob]]  # each with its queue


@suggest_put("`await client.put_flow(...)`", what="it")
@dataclass(frozen=True)
class Chain:
    """Steps that run one after the other.

    Attributes:
        steps: The steps, in order.
    """

    steps: tuple[Step, ...]


@suggest_put("`await client.put_flow(...)`", what="it")
@dataclass(frozen=True)
class Group(Generic[Result_co]):
    """Steps that run at the same time.

    Attributes:
        steps: The steps.
    """

    steps: tuple[Step, ...]

    @property
    def result(self) -> list[Result_co]:
        """Their results, as an argument of a later step: `notify.data(thumbs=thumbs.result)`.

        Raises:
            TypeError: A step is a chain or a group.
        """
        jobs = [step.job if isinstance(step, Placed) else step for step in self.steps]
        if not all(isinstance(job, NewJob) for job in jobs):
            raise TypeError("only a group of jobs has a result: take those of its steps instead")
        firsts = tuple(job.first for job in jobs if isinstance(job, NewJob))
        return cast(list[Result_co], StepResult(firsts, is_list=True))


Step: TypeAlias = NewJob | Placed | Chain | Group


@dataclass(frozen=True)
class Flow:
    """A workflow that was put.

    Attributes:
        jids: The jids of all its jobs, dependencies first.
        last: The jids of those on which no other job of the workflow depends.
        existing: The job for which nothing was put, since it has the jid or the unique key of one;
            None if the workflow was put. If it isn't one of `jids`, these are unknown, and it is in
            their place.
    """

    jids: tuple[str, ...]
    last: tuple[str, ...]
    existing: str | None = None


def in_queue(queue: str, job: NewJob[R], **options: Unpack[PutOptions]) -> Placed[R]:
    """Return a step that is put into a queue of its own.

    Args:
        queue: Name of the queue.
        job: The job.
        options: Options of put.
    """
    return Placed(validation.check_name("queue", queue), job.with_options(**options))


def chain(*steps: Step | Iterable[Step]) -> Chain:
    """Return steps that run one after the other.

    A step after a group waits until all of the group is complete.

    Args:
        steps: New jobs, chains and groups; or one iterable of them.

    Raises:
        TypeError: A step is something else.
        ValueError: There are no steps.
    """
    return Chain(_read_steps("chain", steps))


@overload
def group(*steps: NewJob[R] | Placed[R]) -> Group[R]: ...
@overload
def group(steps: Iterable[NewJob[R] | Placed[R]], /) -> Group[R]: ...
@overload
def group(*steps: Step | Iterable[Step]) -> Group: ...
def group(*steps: Step | Iterable[Step]) -> Group:
    """Return steps that run at the same time.

    Args:
        steps: New jobs, chains and groups; or one iterable of them.

    Raises:
        TypeError: A step is something else.
        ValueError: There are no steps.
    """
    return Group(_read_steps("group", steps))


def lay_out(
    flow: Step,
    queue: str | None,
    options: FlowOptions,
    make_jid: Callable[[], str] = generate_jid,
) -> tuple[Rows, Flow]:
    """Return the jobs of a workflow with their queues, and the jids as the caller gets them.

    Each job has its jid and its dependencies, and comes after the jobs that it depends on.

    Args:
        flow: The workflow.
        queue: Queue of jobs without `in_queue`; None: the default of their handler.
        options: Those of put_flow.
        make_jid: Makes the jids that the caller doesn't choose, unless they are made of `once`.

    Raises:
        TypeError: There is no such option.
        ValueError: A jid is used twice, or a job depends on a later one.
    """
    FLOW.refuse_unknown(options)
    (flow,) = _check_steps("flow", (flow,))
    if queue is not None:
        validation.check_name("queue", queue)
    once = options.get("once")
    rows: Rows = []
    if once is not None:
        validation.check_jid("once", once)
    name = make_jid if once is None else lambda: f"{once}-{len(rows) + 1}"
    last = _append_step(rows, flow, queue, (), name)
    rows, taken = _link_results(rows)
    last = [jid for jid in last if jid not in taken]
    jids = tuple(str(job.options.get("jid")) for _, job in rows)
    index = {jid: number for number, jid in enumerate(jids)}
    if len(index) < len(jids):
        twice = min(jid for jid in index if jids.count(jid) > 1)
        raise ValueError(f"jid {twice!r} is in this workflow twice")
    for number, (_, job) in enumerate(rows):
        for other in job.options.get("depends") or ():
            if index.get(other, -1) >= number:
                raise ValueError(
                    f"{jids[number]!r} depends on {other!r}, which comes later in this workflow"
                )
    common: PutOptions = {}
    if (choice := options.get("if_dependency_fails")) is not None:
        common["if_dependency_fails"] = choice
    if once is not None:
        common["if_exists"] = "keep"
    if common:
        rows = [(own, job.with_options(**common).with_options(**job.options)) for own, job in rows]
    return rows, Flow(jids, tuple(last))


def _link_results(rows: Rows) -> tuple[Rows, set[str]]:
    """Let steps depend on those whose results they take, and name these by their jids.

    Returns:
        The rows, and the jids of the jobs on which others depend by that.

    Raises:
        ValueError: A step is no earlier one of this workflow, is in it twice, or keeps no result.
    """
    places: dict[int, list[str]] = {}
    for _, job in rows:
        places.setdefault(id(job.first), []).append(str(job.options.get("jid")))
    linked, all_taken = Rows(), set[str]()
    for queue, job in rows:
        new, takes = job, dict[str, float]()
        data = _name_results(job.data, places, takes)
        if takes:
            if not (isinstance(job.data, dict) and isinstance(data, dict)):
                raise TypeError(f"{job!r} takes a result: pass it as an argument by name")
            depends = dict.fromkeys([*(job.options.get("depends") or ()), *takes])
            taken = frozenset(name for name, value in data.items() if value is not job.data[name])
            new = job.with_options(depends=[*depends])
            new = new.copy(data=data, taken=taken, links={"takes": takes})
        linked.append((queue, new))
        all_taken.update(takes)
    for number, (queue, job) in enumerate(linked):
        if job.options.get("jid") in all_taken:
            linked[number] = (queue, job.copy(links={**(job.links or {}), "taken": True}))
    return linked, all_taken


def _name_results(
    value: object, places: Mapping[int, list[str]], takes: dict[str, float]
) -> object:
    """Return data with the jids of steps instead of their results; note these jids."""
    match value:
        case StepResult(steps, is_list):
            jids = [_find_step(step, places) for step in steps]
            takes |= {jid: _ttl_of(step) for jid, step in zip(jids, steps, strict=True)}
            return {RESULT: jids if is_list else jids[0]}
        case dict():
            named = {name: _name_results(each, places, takes) for name, each in value.items()}
            return named if any(named[name] is not value[name] for name in named) else value
        case list():
            items = [_name_results(each, places, takes) for each in value]
            return items if any(a is not b for a, b in zip(items, value, strict=True)) else value
    return value


def _find_step(step: NewJob, places: Mapping[int, list[str]]) -> str:
    jids = places.get(id(step), [])
    if len(jids) != 1:
        where = "in this workflow twice" if jids else "not in this workflow"
        raise ValueError(f"the result of {step!r} is taken, which is {where}")
    return jids[0]


def _ttl_of(step: NewJob) -> float:
    ttl: float | None = getattr(step.klass, "result_ttl", None)
    if ttl is None:
        raise ValueError(
            f"the result of {step!r} is taken, which keeps none: declare @job(result_ttl=...)"
        )
    return ttl


def check_size(jobs: Sequence[PutFlowRow]) -> None:
    """Check that a workflow is small enough to be put in one call.

    Raises:
        ValueError: It has too many jobs or dependencies, or too much data.
    """
    if len(jobs) > MAX_JOBS:
        raise ValueError(
            f"a workflow must have at most {MAX_JOBS:,} jobs (got {len(jobs):,}): "
            "let one of its jobs put the others"
        )
    if (dependencies := sum(len(job.get("depends") or ()) for job in jobs)) > MAX_DEPENDENCIES:
        raise ValueError(
            f"a workflow must have at most {MAX_DEPENDENCIES:,} dependencies "
            f"(got {dependencies:,}): put a job between groups"
        )
    if (size := sum(map(measure, jobs))) > MAX_BYTES:
        raise ValueError(
            f"a workflow must have at most {MAX_BYTES:,} bytes of data (got {size:,}): "
            "let one of its jobs put the others"
        )


def _read_steps(what: str, steps: Sequence[Step | Iterable[Step]]) -> tuple[Step, ...]:
    """Return the steps, also of one iterable, as users of Celery write it."""
    if len(steps) == 1 and isinstance(steps[0], Iterable):
        steps = tuple(steps[0])
    return _check_steps(what, steps)


def _check_steps(what: str, steps: Sequence[object]) -> tuple[Step, ...]:
    if not steps:
        raise ValueError(f"a {what} needs at least one step")
    for step in steps:
        if not isinstance(step, NewJob | Placed | Chain | Group):
            raise TypeError(
                f"a {what} is made of new jobs, such as handler.data(...), of chains and of groups "
                f"(got {step!r})"
            )
    return cast("tuple[Step, ...]", tuple(steps))


def _append_step(
    rows: Rows,
    step: Step,
    queue: str | None,
    after: Iterable[str],
    make_jid: Callable[[], str],
) -> list[str]:
    """Append a step's jobs; return the jids that the next step of a chain depends on."""
    match step:
        case Placed(own, job):
            return _append_step(rows, job, own, after, make_jid)
        case Chain(steps):
            for each in steps:
                after = _append_step(rows, each, queue, after, make_jid)
            return list(after)
        case Group(steps):
            return [
                jid for each in steps for jid in _append_step(rows, each, queue, after, make_jid)
            ]
    jid = step.options.get("jid") or make_jid()
    own_depends = step.options.get("depends")
    depends = [*(own_depends or ()), *after]
    rows.append(
        (step.choose_queue(queue), step.with_options(jid=jid, depends=depends or own_depends))
    )
    return [jid]
