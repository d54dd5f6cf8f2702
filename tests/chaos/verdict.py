"""The invariants after draining: compares the ledger with Redis."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise, product

from aioqless import Client, JobRecord
from aioqless.client.job.state import JobSetStatus
from aioqless.contrib.output import Emitted, Missed
from aioqless.contrib.partitions import PartitionedClient
from aioqless.errors import NoSuchSet
from tests.chaos.ledger import Note
from tests.chaos.producer import MANY_STARTS, NARROW, PAUSE, PERIOD, VALUES

PAGE = 200
ENDED = ("complete", "failed")
GIVEN_UP = ("lost-locks", "failed-retries")
# outcomes of runs that end before their lock does
HANDED_OVER = ("next", "retry", "parked", "throttled", "stopped: shutdown")


@dataclass(eq=False)
class Verdict:
    """The figures of a trial, and one line for each problem."""

    jobs: int = 0
    struck: int = 0
    lost: int = 0
    holders: int = 0
    twice: int = 0
    stuck: int = 0
    reruns: int = 0
    given_up: int = 0
    parked: int = 0  # runs that left the loop of a cursor
    repeated: int = 0  # items of cursors that were done again
    dropped: int = 0  # values of output that Redis refused
    recovery: float = 0.0
    astray: float = 0.0  # the maximum difference in seconds between the clocks of two processes
    wrong: list[str] = field(default_factory=list)


@dataclass(eq=False)
class Run:
    """One run, as its handler recorded it."""

    jid: str
    fence: int
    worker: str
    at: float
    locked: float  # when its lock expired at the start, by Redis' clock
    expires: float  # the same at the end, after all renewals
    how: str = "killed"
    told: str = ""


@dataclass(eq=False)
class JobRecords:
    """The ledger by job."""

    offered: list[list[str]] = field(default_factory=list)
    put: dict[str, float] = field(default_factory=dict)
    refused: set[str] = field(default_factory=set)
    runs: dict[str, list[Run]] = field(default_factory=lambda: defaultdict(list))
    alive: dict[str, float] = field(default_factory=dict)  # when each worker recorded the last run
    completions: Counter[str] = field(default_factory=Counter)
    sets: dict[str, list[str]] = field(default_factory=dict)
    effects: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    stored: dict[tuple[str, str], set[str]] = field(default_factory=lambda: defaultdict(set))
    items: dict[str, Counter[int]] = field(default_factory=lambda: defaultdict(Counter))
    ahead: list[str] = field(default_factory=list)  # jobs whose cursor was ahead of their items
    read: list[tuple[str, list[object]]] = field(default_factory=list)

    @classmethod
    def of(cls, notes: Iterable[Note]) -> JobRecords:
        seen = cls()
        by_fence: dict[tuple[str, int], Run] = {}
        for note in notes:
            match note.what, note.values:
                case "offer", (jids,):
                    seen.offered.append(jids)
                case "put", (jids,):
                    seen.put |= dict.fromkeys(jids, note.at)
                case "refused", (jids,):
                    seen.refused.update(jids)
                case "start", (jid, fence, worker, expires, _, _):
                    run = by_fence[jid, fence] = Run(jid, fence, worker, note.at, expires, expires)
                    seen.runs[jid].append(run)
                    seen.alive[worker] = note.at
                case "end", (jid, fence, how, expires):
                    run = by_fence[jid, fence]
                    run.how, run.expires = how, expires
                    seen.alive[run.worker] = note.at
                case "set", (name, jids):
                    seen.sets[name] = jids
                case "effect", (jid, value):
                    seen.effects[jid].add(value)
                case "stored", (jid, name, value):
                    seen.stored[jid, name].add(value)
                case "position", (jid, number):
                    if not seen.items[jid].keys() >= {*range(number)}:
                        seen.ahead.append(jid)
                case "item", (jid, number):
                    seen.items[jid][number] += 1
                case "read", (jid, values):
                    seen.read.append((jid, values))
                case "told", (jid, fence, end):
                    seen.completions[jid] += end == "job.completed"
                    if run_told := by_fence.get((jid, fence)):
                        run_told.told = end
        return seen


def how_of(jid: str) -> str:
    if jid.startswith("set-"):
        return "quick"  # was put by the end of a set
    if "-failure-" in jid:
        return "undo"
    return "called" if "-steps-" in jid else jid.rpartition("-")[2]


async def judge(
    client: Client,
    notes: Sequence[Note],
    struck: Sequence[float],
    heartbeat: float,
    grace: float,
    *,
    named: bool = False,
) -> Verdict:
    """Find problems.

    The lock of a killed worker may end early; `named` workers have successors of their name.
    """
    seen = JobRecords.of(notes)
    offered = [jid for jids in seen.offered for jid in jids]
    jobs = {job.jid: job for job in await _jobs(client, offered)}
    verdict = Verdict(jobs=len(jobs), struck=len(struck))
    _judge_puts(client, seen, jobs, verdict)
    await _judge_branches(client, jobs, verdict)
    await _judge_steps(client, seen, jobs, verdict)
    _judge_cursors(seen, jobs, verdict)
    await _judge_output(client, seen, jobs, verdict)
    await _judge_sets(client, seen, jobs, verdict)
    _judge_ends(seen, jobs, verdict)
    _judge_limits(seen, jobs, heartbeat + grace, verdict)
    judge_runs(seen, jobs, heartbeat, verdict, named=named)
    await _judge_counters(client, jobs, verdict)
    verdict.wrong += [f"check found {found}" for found in await client.check()]
    walls = [note.values[4] - note.at for note in notes if note.what == "start"]
    verdict.astray = max(walls) - min(walls)
    verdict.recovery = max((_recovery(seen, at) for at in struck), default=0.0)
    return verdict


async def _jobs(client: Client, jids: list[str]) -> list[JobRecord]:
    return [
        job
        for start in range(0, len(jids), PAGE)
        for job in await client.jobs.multiget(*jids[start : start + PAGE])
    ]


def _steps_of(client: Client, jids: list[str]) -> list[list[str]]:
    """Return the jids of one put in the parts that are put in one step: those of a partition."""
    if not isinstance(client, PartitionedClient):
        return [jids]
    parts: dict[int, list[str]] = {}
    for jid in jids:
        parts.setdefault(client.partition_of(jid), []).append(jid)
    return list(parts.values())


def _judge_puts(
    client: Client, seen: JobRecords, jobs: dict[str, JobRecord], verdict: Verdict
) -> None:
    lost = [jid for jid in seen.put if jid not in jobs]
    verdict.lost = len(lost)
    verdict.wrong += [f"{jid} was acknowledged and is gone" for jid in lost]
    verdict.wrong += [f"{jid} was refused and is there" for jid in seen.refused & jobs.keys()]
    for batch in [part for offered in seen.offered for part in _steps_of(client, offered)]:
        if 0 < len(there := [jid for jid in batch if jid in jobs]) < len(batch):
            verdict.wrong.append(
                f"of {len(batch)} jobs that were put in one step {len(there)} are there: "
                f"{batch[0]} …"
            )
    for jid, job in jobs.items():
        puts = sum(event["what"] == "put" for event in job.events)
        if puts > 1 + (how_of(jid) == "next"):
            verdict.wrong.append(f"{jid} was put {puts} times")


async def _judge_branches(client: Client, jobs: dict[str, JobRecord], verdict: Verdict) -> None:
    """Find the job that each failure has put, and add them to the jobs."""
    failures = {
        jid: sum(event["what"] == "failed" for event in job.events)
        for jid, job in jobs.items()
        if how_of(jid) == "fail"
    }
    possible = [f"{jid}-failure-{n}" for jid, many in failures.items() for n in range(1, many + 2)]
    branches = {job.jid: job for job in await _jobs(client, possible)}
    for jid, many in failures.items():
        put = [f"{jid}-failure-{n}" for n in range(1, many + 2)]
        if [each in branches for each in put] != [True] * many + [False]:
            there = sum(each in branches for each in put)
            verdict.wrong.append(f"{jid} failed {many} times, and {there} jobs were put for it")
    for branch, job in branches.items():
        if job.cause is None or job.cause.jid != branch.partition("-failure-")[0]:
            verdict.wrong.append(f"{branch} has the cause {job.cause}")
    jobs |= branches


async def _judge_steps(
    client: Client, seen: JobRecords, jobs: dict[str, JobRecord], verdict: Verdict
) -> None:
    """Compare what jobs have stored, emitted and called, and add what they have called."""
    parents = [jid for jid in jobs if how_of(jid) == "steps" and jid in seen.runs]
    calls = [f"{jid}-{number}" for jid in parents for number in (1, 2)]
    children = {job.jid: job for job in await _jobs(client, calls)}
    for jid in parents:
        complete = jobs[jid].state == "complete"
        if f"{jid}-2" in children or (complete and f"{jid}-1" not in children):
            verdict.wrong.append(f"{jid} has not called one job")
        _judge_stored(jid, ("effect", "answer"), seen, verdict, complete=complete)
        if complete:
            emitted = [
                output.value
                async for output in client.jobs.output(jid, follow=False)
                if isinstance(output, Emitted)
            ]
            if len(emitted) > 1 or not seen.stored[jid, "effect"].issuperset(emitted):
                verdict.wrong.append(f"{jid} has emitted {emitted}")
    for jid, job in jobs.items():
        if how_of(jid) == "dies":
            complete = job.state == "complete"
            _judge_stored(jid, ("effect", "other"), seen, verdict, complete=complete)
            if complete and len(seen.effects[jid]) < 3:
                verdict.wrong.append(f"{jid} has not died in its step")
    jobs |= children


def _judge_stored(
    jid: str, names: Sequence[str], seen: JobRecords, verdict: Verdict, *, complete: bool
) -> None:
    """Check that all runs have seen one value of each name."""
    for name in names:
        values = seen.stored[jid, name]
        if len(values) > 1 or (complete and not values):
            verdict.wrong.append(f"{jid}: its runs have seen {len(values)} values of {name}")
    if not seen.stored[jid, "effect"] <= seen.effects[jid]:
        verdict.wrong.append(f"{jid} has stored what its step has not returned")


def _judge_cursors(seen: JobRecords, jobs: dict[str, JobRecord], verdict: Verdict) -> None:
    """Check that each item is done, and that no run has begun behind one that was not."""
    verdict.wrong += [f"{jid}: its cursor was ahead of its items" for jid in seen.ahead]
    for jid, job in jobs.items():
        if how_of(jid) == "items":
            done = seen.items[jid]
            if job.state == "complete" and done.keys() != {*range(VALUES)}:
                verdict.wrong.append(f"{jid} has done {len(done)} of {VALUES} items")
            verdict.repeated += done.total() - len(done)
            verdict.parked += sum(run.how == "parked" for run in seen.runs.get(jid, ()))


async def _judge_output(
    client: Client, seen: JobRecords, jobs: dict[str, JobRecord], verdict: Verdict
) -> None:
    """Check that values are in their places, at the end and for readers that were cut off."""
    complete = {
        jid for jid, job in jobs.items() if how_of(jid) == "speak" and job.state == "complete"
    }
    outputs = [(jid, values) for jid, values in seen.read if jid in complete]
    for jid in complete:
        values: list[object] = []
        async for output in client.jobs.output(jid, follow=False):
            match output:
                case Emitted(value=value):
                    values.append(value)
                case Missed(count=count):
                    values += [None] * count
        outputs.append((jid, values))
    for jid, values in outputs:
        verdict.dropped += VALUES - len(values) + values.count(None)
        if any(value not in (None, number) for number, value in enumerate(values)):
            verdict.wrong.append(f"{jid} has the output {values}")


async def _judge_sets(
    client: Client, seen: JobRecords, jobs: dict[str, JobRecord], verdict: Verdict
) -> None:
    """Compare sets with their members, and add what their ends have put."""
    for name, jids in seen.sets.items():
        try:
            status = await client.job_set(name).status()
        except NoSuchSet:
            if seen.put.keys() & jids:
                verdict.wrong.append(f"set {name} is gone")
            continue
        states = Counter(str(jobs[jid].state) for jid in jids if jid in jobs)
        if (status.complete, status.failed, status.open) != (
            *(states["complete"], states["failed"]),
            states.total() - states["complete"] - states["failed"],
        ):
            verdict.wrong.append(f"set {name} says {status}, its members are {dict(states)}")
        wanted = [status.has_ended, status.has_ended and not states["failed"]]
        if [status.ended_jid is not None, status.then_jid is not None] != wanted:
            verdict.wrong.append(f"set {name} has put {status.ended_jid} and {status.then_jid}")
        possible = [f"{name}-{what}-{n}" for what in ("then", "ended") for n in _numbers(status)]
        put = await _jobs(client, possible)
        if {job.jid for job in put} != {status.ended_jid, status.then_jid} - {None}:
            verdict.wrong.append(f"of the ends of {name} there are {[job.jid for job in put]}")
        jobs |= {job.jid: job for job in put}


def _numbers(status: JobSetStatus) -> list[int]:
    """Return the set's number, and the next one that a second put would have taken."""
    numbers = {int(jid.rpartition("-")[2]) for jid in (status.then_jid, status.ended_jid) if jid}
    return [each for number in numbers for each in (number, 2 * number)]


def _judge_ends(seen: JobRecords, jobs: dict[str, JobRecord], verdict: Verdict) -> None:
    for jid, job in jobs.items():
        how, group = how_of(jid), _group(job)
        if job.state == "depends" and any(
            _is_given_up(_group(jobs[other])) for other in job.dependencies
        ):
            verdict.given_up += 1
        elif job.state not in ENDED:
            verdict.stuck += 1
            verdict.wrong.append(f"{jid} is {job.state} in {job.queue}, held by {job.worker!r}")
        elif _is_given_up(group):
            verdict.given_up += how != "poison"
        elif group != {"fail": "wanted"}.get(how, ""):
            verdict.wrong.append(f"{jid} is {job.state} {group}")
        elif how == "poison":
            verdict.wrong.append(f"{jid} is {job.state}")
        done = sum(event["what"] == "done" for event in job.events)
        if done > 1 + (how == "next") or seen.completions[jid] > 1:
            verdict.twice += 1
            verdict.wrong.append(f"{jid} was completed {max(done, seen.completions[jid])} times")


def _judge_limits(
    seen: JobRecords, jobs: dict[str, JobRecord], longest: float, verdict: Verdict
) -> None:
    """Compare what has run at once, or during a pause, with the limits, by Redis' clock.

    A limit no longer counts a run whose lock and grace period are over, `longest` seconds after the
    last heartbeat; that it timed out is noted by a later pop.
    """
    changes: list[tuple[float, int]] = []
    starts: list[float] = []
    pauses: list[float] = []
    for jid, job in jobs.items():
        if how_of(jid) == "limited":
            for event, after in pairwise(job.events):
                if event["what"] == "popped":
                    ends = after["when"]
                    if after["what"] == "timed-out":
                        ends = min(ends, event["when"] + longest)
                    changes += [(event["when"], 1), (ends, -1)]
        if how_of(jid) == "throttled":
            starts += [event["when"] for event in job.events if event["what"] == "popped"]
            released = [event["when"] for event in job.events if event["what"] == "released"]
            if len(released) == sum(run.how == "throttled" for run in seen.runs.get(jid, ())):
                pauses += released  # else a worker that stopped has released it, too
    most = max(accumulate(change for _, change in sorted(changes)), default=0)
    if most > (NARROW.max_concurrency or 0):
        verdict.wrong.append(f"{most} jobs ran at once, which is above the limit")
    verdict.wrong += [
        f"a job started {at - pause:.3f} s after a pause of {PAUSE} s began"
        for at, pause in product(starts, pauses)
        if 0.001 < at - pause < PAUSE - 0.001
    ]
    began = sorted(at for at, change in changes if change > 0)
    if any(b - a < PERIOD - 0.001 for a, b in zip(began, began[MANY_STARTS:], strict=False)):
        verdict.wrong.append(f"more than {MANY_STARTS} limited jobs started in {PERIOD} s")


def _group(job: JobRecord) -> str:
    return job.failure.group if job.failure and job.state == "failed" else ""


def _is_given_up(group: str) -> bool:
    return any(part in group for part in GIVEN_UP)


def judge_runs(
    seen: JobRecords,
    jobs: dict[str, JobRecord],
    heartbeat: float,
    verdict: Verdict,
    *,
    named: bool = False,
) -> None:
    for jid, runs in seen.runs.items():
        runs.sort(key=lambda run: run.fence)
        ended = [run for run in runs if run.how != "parked"]
        verdict.reruns += max(0, len(ended) - (2 if how_of(jid) in ("next", "retry") else 1))
        if len({run.fence for run in runs}) < len(runs):
            verdict.wrong.append(f"{jid}: two runs have one fence")
        for former, run in pairwise(runs):
            if run.locked - heartbeat < former.expires - 0.001 and not (
                former.how in HANDED_OVER
                or (not former.told and (named or seen.alive[former.worker] < run.at))
            ):
                verdict.holders += 1
                early = former.expires - (run.locked - heartbeat)
                verdict.wrong.append(
                    f"{jid}: {run.worker} had it {early:.3f} s before the lock of "
                    f"{former.worker} ended ({former.how})"
                )
        job, last = jobs.get(jid), runs[-1]
        if job is None:
            verdict.wrong.append(f"{jid} ran and is not there")
        elif job.state == "complete" and last.told == "job.lock_lost" and last.fence == job.fence:
            verdict.wrong.append(f"{jid} was completed by a run that was told it had lost its lock")


async def _judge_counters(client: Client, jobs: dict[str, JobRecord], verdict: Verdict) -> None:
    """Compare the statistics of all queues and days with the jobs' own histories and states."""
    counted: Counter[str] = Counter()
    now = await client.internals.store.now()
    for queue in await client.queues():
        for date in {now // 86400, (now - 3600) // 86400}:
            stats = await client.queue(queue.name).stats(date * 86400)
            counted += {
                "popped": stats.wait.count,
                "done": stats.run.count,
                "failed": stats.failed,
            }
        counted["left"] += sum(
            getattr(queue, state)
            for state in ("waiting", "running", "stalled", "scheduled", "depends")
        )
    events = Counter(event["what"] for job in jobs.values() for event in job.events)
    states = Counter[str](job.state for job in jobs.values())
    expected = {
        "popped": events["popped"],
        "done": events["done"],
        "failed": states["failed"],
        "left": states["depends"],
    }
    verdict.wrong += [
        f"{name} is counted {counted[name]}, and was {is_}"
        for name, is_ in expected.items()
        if counted[name] != is_
    ]
    failed = sum((await client.jobs.failed_counts()).values())
    namespaces = client.partitions if isinstance(client, PartitionedClient) else (client,)
    complete = sum([await each.redis.zcard(f"{each.namespace}:completed") for each in namespaces])
    if (failed, complete) != (states["failed"], states["complete"]):
        verdict.wrong.append(
            f"{failed} failed and {complete} complete are listed; {dict(states)} are known to "
            f"the ledger"
        )
    for worker in await client.workers.counts():
        if worker.jobs or worker.stalled:
            verdict.wrong.append(f"worker {worker.name} still holds {worker}")


def _recovery(seen: JobRecords, at: float) -> float:
    """Return the seconds from a strike until the last of its jobs started its final run."""
    waited = 0.0
    for jid, put in seen.put.items():
        if (
            put < at
            and how_of(jid) in ("quick", "slow", "thread", "fail")
            and (runs := seen.runs.get(jid))
        ):
            waited = max(waited, max(run.at for run in runs) - at)
    return waited
