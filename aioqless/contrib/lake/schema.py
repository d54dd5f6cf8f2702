"""The tables of the lake: their columns, descriptions and versions, declared once.

The schemas of Arrow and Delta derive from this declaration. A column may be added at any time:
older files read as null. A column that changes its meaning raises the version of its table, and
derived tables of an older version are rebuilt.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import pyarrow as pa

TEXT: Final = pa.string()
WHOLE: Final = pa.int64()
NUMBER: Final = pa.float64()
FLAG: Final = pa.bool_()
TIME: Final = pa.timestamp("us", tz="UTC")
DAY: Final = pa.date32()
TEXTS: Final = pa.list_(pa.field("element", TEXT))
TIMES: Final = pa.list_(pa.field("element", TIME))
WHOLES: Final = pa.list_(pa.field("element", WHOLE))
COUNTS_BY_BIN: Final = pa.map_(TEXT, WHOLE)
COUNTS_BY_NUMBER: Final = pa.map_(WHOLE, WHOLE)


def _columns(**columns: tuple[pa.DataType, str]) -> pa.Schema:
    return pa.schema(
        [
            pa.field(name, kind, metadata={"comment": description})
            for name, (kind, description) in columns.items()
        ]
    )


def _struct_of(schema: pa.Schema) -> pa.DataType:
    """Return the type of a row within a row; its fields have no description."""
    return pa.struct([pa.field(field.name, field.type) for field in schema])


def _list_of(schema: pa.Schema) -> pa.DataType:
    return pa.list_(pa.field("element", _struct_of(schema)))


PARTITION_COLUMNS: Final = ("namespace", "date")
_PARTITION: Final = _columns(
    namespace=(TEXT, "The namespace of the jobs."),
    date=(DAY, "The day in UTC on which Redis recorded the end of the stage, or the snapshot."),
)


@dataclass(frozen=True)
class Table:
    """A table of the lake.

    `columns` are those in its files; `namespace` and `date` partition every table and are in the
    transaction log only. `statistics` names the columns of which the log has each file's least and
    greatest value, so that a reader can skip files. Rows of a file are sorted by `order`.
    """

    name: str
    version: int
    description: str
    columns: pa.Schema
    statistics: tuple[str, ...] = ()
    order: tuple[str, ...] = ()

    @property
    def schema(self) -> pa.Schema:
        """All columns, those of the partition last."""
        return pa.schema([*self.columns, *_PARTITION])


RUN: Final = _columns(
    put=(TIME, "When the job was queued for this run."),
    popped=(TIME, "When the run began."),
    ended=(TIME, "When the run ended."),
    how=(TEXT, "How the run ended: what ended the stage, or retried, released, timed-out, lost."),
    worker=(TEXT, "The worker."),
    fence=(WHOLE, "The fencing token of the run."),
    failure_group=(TEXT, "The group of the failure."),
    message=(TEXT, "The message of the failure."),
)

EVENT: Final = _columns(
    id=(TEXT, "The id of the entry in the archive's stream."),
    ordinal=(WHOLE, "The number of the entry; 1 is the first ever added to the stream."),
    what=(TEXT, "What ended the stage: complete, advance, fail, cancel or move."),
    jid=(TEXT, "The id of the job."),
    klass=(TEXT, "The class name of the job."),
    queue=(TEXT, "The queue of the stage."),
    next_queue=(TEXT, "The queue to which the job went next."),
    was=(TEXT, "The state of the job before."),
    state=(TEXT, "The state of the job after."),
    priority=(NUMBER, "The priority."),
    tags=(TEXTS, "The tags."),
    worker=(TEXT, "The worker of the last run."),
    put=(TIME, "When the job was put into the queue."),
    popped=(TIME, "When the last run began."),
    ended=(TIME, "When the stage ended."),
    retries=(WHOLE, "The number of retries that the job was put with."),
    remaining=(WHOLE, "The number of retries left."),
    fence=(WHOLE, "The fencing token of the last run."),
    failure_group=(TEXT, "The group of the failure."),
    message=(TEXT, "The message of the failure."),
    spawned_from=(TEXT, "The recurring job that put this one."),
    depends=(TEXTS, "The jids on which the job depended."),
    job_set=(TEXT, "The job set of which the job is a member."),
    tenant=(TEXT, "The key of the job for fair turns."),
    expires=(TIME, "When the job expired unless it had started."),
    due=(TIME, "When the last delay of the job ended, if it had one."),
    version=(TEXT, "The version of the code of the last run."),
    actor=(TEXT, "Who canceled the job: a user, a worker, or another name; null if unknown."),
    runs=(_list_of(RUN), "All runs of the stage, the last one included."),
    run_dues=(TIMES, "When the delay before each of the runs ended."),
    run_versions=(TEXTS, "The version of the code of each of the runs."),
    data=(TEXT, "The data of the job as JSON, if the archive keeps it."),
    data_size=(WHOLE, "The size of the data in bytes, if the archive doesn't keep it."),
    swept=(FLAG, "Whether a sweep found the end: by another client, or before the archive was on."),
    history=(TEXT, "The history of a swept job, as JSON."),
)

REJECTION: Final = _columns(
    id=(TEXT, "The id of the entry in the archive's stream; null for a job without a hash."),
    ordinal=(WHOLE, "The number of the entry."),
    problem=(TEXT, "Why the entry can't be archived."),
    raw=(TEXT, "The fields of the entry as JSON."),
)

ATTEMPT: Final = _columns(
    id=(TEXT, "The id of the event."),
    attempt=(WHOLE, "The number of the run within its stage, from 1."),
    jid=(TEXT, "The id of the job."),
    klass=(TEXT, "The class name."),
    queue=(TEXT, "The queue."),
    tags=(TEXTS, "The tags."),
    priority=(NUMBER, "The priority."),
    job_set=(TEXT, "The job set of which the job is a member."),
    tenant=(TEXT, "The key of the job for fair turns."),
    worker=(TEXT, "The worker."),
    fence=(WHOLE, "The fencing token of the run."),
    put=(TIME, "When the job was queued for this run."),
    popped=(TIME, "When the run began."),
    ended=(TIME, "When the run ended."),
    due=(TIME, "When the delay before the run ended, if it had one."),
    version=(TEXT, "The version of the worker's code."),
    wait=(NUMBER, "Seconds from put to popped, a delay included."),
    run=(NUMBER, "Seconds from popped to ended."),
    how=(TEXT, "How the run ended."),
    failure_group=(TEXT, "The group of the failure."),
    message=(TEXT, "The message of the failure."),
    swept=(FLAG, "Whether a sweep found the end."),
)

CELL: Final = _columns(
    count=(WHOLE, "The number of times."),
    mean=(NUMBER, "The mean, in seconds."),
    variance=(NUMBER, "The variance, in square seconds."),
    least=(NUMBER, "The shortest time, in seconds."),
    most=(NUMBER, "The longest time, in seconds."),
    p50=(NUMBER, "The median, in seconds."),
    p90=(NUMBER, "The 90th percentile, in seconds."),
    p95=(NUMBER, "The 95th percentile, in seconds."),
    p99=(NUMBER, "The 99th percentile, in seconds."),
    histogram=(COUNTS_BY_BIN, "The number of times in each bin of qless' histogram."),
    log_bins=(
        COUNTS_BY_NUMBER,
        "The number of times in bins that grow by 2^(1/64), by the power; percentiles of several "
        "rows come from these.",
    ),
)

_ENDED: Final = {
    "completed": (WHOLE, "Stages that ended the job well."),
    "advanced": (WHOLE, "Stages that ended with a move to a next queue."),
    "failed": (WHOLE, "Stages that failed."),
    "cancelled": (WHOLE, "Stages that were canceled."),
    "moved": (WHOLE, "Stages that ended because the job was put again."),
    "runs": (WHOLE, "Runs."),
    "retried": (WHOLE, "Runs that ended with a retry."),
    "released": (WHOLE, "Runs that were released."),
    "timed_out": (WHOLE, "Runs that timed out."),
    "lost": (WHOLE, "Runs that lost their lock."),
}
COUNTS: Final = tuple(_ENDED)
_TIMES: Final = {
    "wait": (_struct_of(CELL), "The seconds that runs waited."),
    "run": (_struct_of(CELL), "The seconds that runs took which completed."),
    "spent": (_struct_of(CELL), "The seconds that all other runs took."),
}
_QUEUE: Final = {"queue": (TEXT, "The queue.")}
_KLASS: Final = {"klass": (TEXT, "The class name.")}

KLASSES: Final = _columns(**_QUEUE, **_KLASS, **_ENDED, **_TIMES)
TAGS: Final = _columns(**_QUEUE, **_KLASS, tag=(TEXT, "The tag."), **_ENDED, **_TIMES)
WORKERS: Final = _columns(**_QUEUE, worker=(TEXT, "The worker."), **_ENDED, **_TIMES)

SAMPLE: Final = _columns(
    ended=(TIME, "When it failed."),
    jid=(TEXT, "The id of the job."),
    klass=(TEXT, "The class name."),
    worker=(TEXT, "The worker."),
    message=(TEXT, "The end of the message."),
    final=(FLAG, "Whether the stage failed; otherwise the run was retried."),
)

FAILURES: Final = _columns(
    failure_group=(TEXT, "The group of the failures."),
    queue=(TEXT, "The queue."),
    count=(WHOLE, "Stages that failed."),
    retried=(WHOLE, "Runs that failed and were retried."),
    first_seen=(TIME, "When the first of the day failed."),
    last_seen=(TIME, "When the last of the day failed."),
    klasses=(TEXTS, "The class names."),
    by_hour=(WHOLES, "The number of failures in each hour of the day, in UTC."),
    samples=(_list_of(SAMPLE), "The latest failures of the day, at most 5."),
)

THROUGHPUT: Final = _columns(
    queue=(TEXT, "The queue."),
    start=(TIME, "The beginning of the period."),
    seconds=(WHOLE, "The length of the period, in seconds."),
    put=(WHOLE, "Jobs that came into the queue."),
    popped=(WHOLE, "Runs that began."),
    completed=(WHOLE, "Runs that ended well."),
    failed=(WHOLE, "Runs that failed."),
    retried=(WHOLE, "Runs that ended with a retry."),
    waiting=(NUMBER, "The mean number of waiting jobs."),
    running=(NUMBER, "The mean number of running jobs."),
)

BACKLOG: Final = _columns(
    taken=(TIME, "When the snapshot was taken."),
    queue=(TEXT, "The queue."),
    waiting=(WHOLE, "Jobs that a worker may pop now."),
    running=(WHOLE, "Jobs that a worker holds."),
    stalled=(WHOLE, "Running jobs whose lock has expired."),
    scheduled=(WHOLE, "Jobs that are delayed, wait for a retry or are held back by a limit."),
    depends=(WHOLE, "Jobs that wait for other jobs."),
    paused=(FLAG, "Whether the queue is paused."),
    lag=(NUMBER, "For how many seconds the next job could have been running."),
    workers=(WHOLE, "Workers that serve the queue, of those that are alive."),
)

WORKER_SNAPSHOT: Final = _columns(
    taken=(TIME, "When the snapshot was taken."),
    worker=(TEXT, "The worker, if it is alive, or was seen in the last minute if it does not say."),
    host=(TEXT, "The name of its machine."),
    pid=(WHOLE, "The id of its process."),
    aioqless=(TEXT, "The version of aioqless."),
    version=(TEXT, "The version of its code."),
    started=(TIME, "When it started; its last snapshot is within a minute of its end."),
    slots=(WHOLE, "The maximum number of jobs at once."),
    busy=(WHOLE, "Slots that ran a job."),
    memory=(WHOLE, "The memory of its process in bytes."),
    jobs=(WHOLE, "Jobs that it held."),
    stalled=(WHOLE, "Jobs that it held whose lock had expired."),
    queues=(TEXTS, "The queues that it serves, names and patterns."),
)

EVENTS: Final = "bronze/events"
SNAPSHOTS: Final = "bronze/backlog"
WORKER_SNAPSHOTS: Final = "bronze/worker_snapshots"
QUARANTINE: Final = "quarantine/events"
DERIVED: Final = (
    "gold/failures",
    "gold/klasses",
    "gold/tags",
    "gold/throughput",
    "gold/workers",
    "silver/runs",
)  # in the order of their commits

_BY_KLASS: Final = ("queue", "klass")
_BY_TAG: Final = ("queue", "klass", "tag")
_BY_WORKER: Final = ("queue", "worker")

TABLES: Final = {
    table.name: table
    for table in (
        Table(
            EVENTS, 1, "Ends of stages of jobs.", EVENT, ("id", "ordinal", "ended"), ("ordinal",)
        ),
        Table(SNAPSHOTS, 1, "Queues at each minute.", BACKLOG, ("taken",), ("taken", "queue")),
        Table(
            WORKER_SNAPSHOTS,
            1,
            "Workers at each minute.",
            WORKER_SNAPSHOT,
            ("taken",),
            ("taken", "worker"),
        ),
        Table(QUARANTINE, 1, "Entries that can't be archived.", REJECTION, ("ordinal",)),
        Table("silver/runs", 1, "One row for each run.", ATTEMPT, ("ended",), ("ended",)),
        Table("gold/klasses", 1, "Ends and times by queue and class.", KLASSES, order=_BY_KLASS),
        Table("gold/tags", 1, "Ends and times by queue, class and tag.", TAGS, order=_BY_TAG),
        Table("gold/workers", 1, "Ends and times by queue and worker.", WORKERS, order=_BY_WORKER),
        Table("gold/failures", 1, "Failures of a day by group and queue.", FAILURES),
        Table(
            "gold/throughput",
            1,
            "Runs in periods of a minute, of a day's jobs.",
            THROUGHPUT,
            ("start",),
            ("queue", "start"),
        ),
    )
}
