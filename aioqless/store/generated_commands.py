"""The commands of the state machine, one typed method for each.

Generated from the headers in `aioqless/lua` by `python -m tests.codegen`; don't edit.
"""
# fmt: off

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import NotRequired, TypedDict

from aioqless.redis.connection import Reply
from aioqless.redis.encoding import Json
from aioqless.store.call import (
    BatchEncoder,
    Call,
    Commands,
    T,
    encode,
    encode_optional,
    read_answers,
    read_count,
    read_json,
    read_list,
    read_nothing,
    read_number,
    read_text,
    read_texts,
)


class CompleteManyRow(TypedDict):
    """A row of `complete_many`."""

    jid: str
    queue: str
    fence: NotRequired[int | str | None]
    data: NotRequired[str | bytes | None]
    next: NotRequired[str | None]
    delay: NotRequired[float | None]
    depends: NotRequired[Sequence[str] | None]
    result: NotRequired[str | bytes | None]
    durable: NotRequired[str | None]
    data_keys: NotRequired[str | bytes | None]


_encode_complete_many_batch = BatchEncoder(
    "complete_many", required="jid queue",
    optional="fence data next delay depends result durable data_keys",
)


class HeartbeatManyRow(TypedDict):
    """A row of `heartbeat_many`."""

    jid: str
    fence: NotRequired[int | str | None]


_encode_heartbeat_many_batch = BatchEncoder("heartbeat_many", required="jid", optional="fence")


class PopManyRow(TypedDict):
    """A row of `pop_many`."""

    queue: str
    limit: NotRequired[int | None]


_encode_pop_many_batch = BatchEncoder("pop_many", required="queue", optional="limit")


class PutFlowRow(TypedDict):
    """A row of `put_flow`."""

    queue: str
    jid: str
    klass: str
    data: str | bytes
    delay: NotRequired[float | None]
    at: NotRequired[float | None]
    priority: NotRequired[float | None]
    tags: NotRequired[Sequence[str] | None]
    retries: NotRequired[int | None]
    depends: NotRequired[Sequence[str] | None]
    context: NotRequired[str | bytes | None]
    expires_in: NotRequired[float | None]
    constraints: NotRequired[str | bytes | None]
    if_dependency_fails: NotRequired[str | None]
    on_failure: NotRequired[str | bytes | None]
    missing: NotRequired[str | None]


_encode_put_flow_batch = BatchEncoder(
    "put_flow", required="queue jid klass data",
    optional="delay at priority tags retries depends context expires_in constraints "
        "if_dependency_fails on_failure missing",
)


class PutManyRow(TypedDict):
    """A row of `put_many`."""

    jid: str
    klass: str
    data: str | bytes
    delay: NotRequired[float | None]
    at: NotRequired[float | None]
    priority: NotRequired[float | None]
    tags: NotRequired[Sequence[str] | None]
    retries: NotRequired[int | None]
    depends: NotRequired[Sequence[str] | None]
    context: NotRequired[str | bytes | None]
    expires_in: NotRequired[float | None]
    constraints: NotRequired[str | bytes | None]
    if_dependency_fails: NotRequired[str | None]
    on_failure: NotRequired[str | bytes | None]
    missing: NotRequired[str | None]


_encode_put_many_batch = BatchEncoder(
    "put_many", required="jid klass data",
    optional="delay at priority tags retries depends context expires_in constraints "
        "if_dependency_fails on_failure missing",
)


class TickRow(TypedDict):
    """A row of `tick`."""

    jid: str
    tick: float
    at: float
    next: float


_encode_tick_batch = BatchEncoder("tick", required="jid tick at next")


class Store(Commands, ABC):
    """The state machine of one namespace: a method for each command, each to be awaited.

    `aioqless lua COMMAND` prints what a command does.
    """

    @abstractmethod
    async def send(self, call: Call[T]) -> T:
        """Send a call and return its reply.

        Raises:
            ScriptError: Redis refuses it.
            redis.exceptions.RedisError: Redis can't be reached.
        """

    @abstractmethod
    async def pipeline(self, calls: Sequence[Call[T]]) -> list[T | Exception]:
        """Send independent calls in one write, once; a refusal is returned in its place."""

    @abstractmethod
    def request(self) -> AbstractContextManager[str]:
        """Reserve a request id for one call that may have to be sent several times."""

    @abstractmethod
    async def now(self) -> float:
        """Return the time of the clock that commands go by, in seconds since 1970."""

    def agenda(self, *, now: float | None = None, request: str | None = None) -> Call[None]:
        """Do what changes have noted for other jobs."""
        argv = [self._encode_time(now)]
        return Call(
            self.send, "agenda", read_nothing, [encode(self.namespace)], argv, request, writes=True,
        )

    def archive_state(self) -> Call[Json]:
        """The state of the archive stream, and how far a reader has stored it elsewhere."""
        return Call(self.send, "archive_state", read_json, [encode(self.namespace)], [])

    def archive_trim(
        self, *, id: str, reader: str, now: float | None = None, takeover: str | None = None,
        request: str | None = None,
    ) -> Call[int]:
        """Delete entries of the archive stream that are stored elsewhere."""
        argv = [encode(id), encode(reader), self._encode_time(now)]
        if takeover is not None:
            argv += [b"takeover", encode(takeover)]
        return Call(
            self.send, "archive_trim", read_count, [encode(self.namespace)], argv, request,
            writes=True,
        )

    def beat(
        self, *, worker: str, process: str | bytes, now: float | None = None,
        queues: Sequence[str] = (), after: str | None = None, number: int | None = None,
        counts: str | None = None, request: str | None = None,
    ) -> Call[Json]:
        """A worker lives, says what it serves and has run."""
        argv = [encode(worker), encode(process), self._encode_time(now), *map(encode, queues), b""]
        if after is not None:
            argv += [b"after", encode(after)]
        if number is not None:
            argv += [b"number", encode(number)]
        if counts is not None:
            argv += [b"counts", encode(counts)]
        return Call(
            self.send, "beat", read_json, [encode(self.namespace)], argv, request, writes=True,
        )

    def cancel(
        self, *, jids: Sequence[str] = (), actor: str | None = None, request: str | None = None,
    ) -> Call[list[str]]:
        """Delete jobs."""
        argv = [*map(encode, jids), b""]
        if actor is not None:
            argv += [b"actor", encode(actor)]
        return Call(
            self.send, "cancel", read_texts, [encode(self.namespace)], argv, request, writes=True,
            durable=True,
        )

    def charge(
        self, *, jid: str, worker: str, now: float | None = None, key: str, used: float,
        fence: int | str | None = None, request: str | None = None,
    ) -> Call[int]:
        """Correct what the start of a run costs of a rate limit."""
        argv = [encode(jid), encode(worker), self._encode_time(now), encode(key), encode(used)]
        if fence is not None:
            argv += [b"fence", encode(fence)]
        return Call(
            self.send, "charge", read_count, [encode(self.namespace)], argv, request, writes=True,
            durable=True,
        )

    def check(
        self, *, now: float | None = None, resolve: str | None = None, cursor: str | None = None,
        budget: int | None = None, request: str | None = None,
    ) -> Call[Json]:
        """Check the consistency of the namespace, a bounded portion per call."""
        argv = [
            self._encode_time(now), encode_optional(resolve), encode_optional(cursor),
            encode_optional(budget),
        ]
        return Call(
            self.send, "check", read_json, [encode(self.namespace)], argv, request, writes=True,
        )

    def clear(
        self, *, queue: str, state: str, offset: int, now: float | None = None,
        states: Sequence[str] = (), group: str | None = None, dry_run: int | None = None,
        actor: str | None = None, request: str | None = None,
    ) -> Call[Json]:
        """Cancel jobs of a queue by state, a bounded number per call, with their dependents."""
        argv = [encode(state), encode(offset), self._encode_time(now), *map(encode, states), b""]
        if group is not None:
            argv += [b"group", encode(group)]
        if dry_run is not None:
            argv += [b"dry_run", encode(dry_run)]
        if actor is not None:
            argv += [b"actor", encode(actor)]
        return Call(
            self.send, "clear", read_json, [self._encode_queue(queue)], argv, request, writes=True,
            durable=True,
        )

    def complete(
        self, *, jid: str, worker: str, queue: str, now: float | None = None,
        data: str | bytes | None = None, fence: int | str | None = None, next: str | None = None,
        delay: float | None = None, depends: Sequence[str] | None = None,
        result: str | bytes | None = None, durable: str | None = None,
        data_keys: str | bytes | None = None, request: str | None = None,
    ) -> Call[str]:
        """Complete a running job, or move it on to another queue."""
        argv = [
            encode(jid), encode(worker), encode(queue), self._encode_time(now),
            encode_optional(data),
        ]
        if fence is not None:
            argv += [b"fence", encode(fence)]
        if next is not None:
            argv += [b"next", encode(next)]
        if delay is not None:
            argv += [b"delay", encode(delay)]
        if depends is not None:
            argv += [b"depends", encode(depends)]
        if result is not None:
            argv += [b"result", encode(result)]
        if durable is not None:
            argv += [b"durable", encode(durable)]
        if data_keys is not None:
            argv += [b"data_keys", encode(data_keys)]
        return Call(
            self.send, "complete", read_text, [encode(self.namespace)], argv, request, writes=True,
            durable=True,
        )

    def complete_many(
        self, *, worker: str, now: float | None = None, batch: Sequence[CompleteManyRow],
        request: str | None = None,
    ) -> Call[list[str | Exception]]:
        """Complete many jobs of one worker."""
        argv = [encode(worker), self._encode_time(now)]
        argv += _encode_complete_many_batch(batch)
        return Call(
            self.send, "complete_many", read_answers, [encode(self.namespace)], argv, request,
            writes=True,
        )

    def config_get(self, *, option: str | None = None, request: str | None = None) -> Call[Json]:
        """Return an option, or all of them."""
        argv = [b"get", encode_optional(option)]
        return Call(
            self.send, "config", read_json, [encode(self.namespace)], argv, request, writes=True,
            durable=True,
        )

    def config_set(
        self, *, option: str, value: str | float | None = None, request: str | None = None,
    ) -> Call[None]:
        """Set an option."""
        argv = [b"set", encode(option), encode_optional(value)]
        return Call(
            self.send, "config", read_nothing, [encode(self.namespace)], argv, request, writes=True,
            durable=True,
        )

    def config_unset(self, *, option: str, request: str | None = None) -> Call[None]:
        """Return an option to its default."""
        argv = [b"unset", encode(option)]
        return Call(
            self.send, "config", read_nothing, [encode(self.namespace)], argv, request, writes=True,
            durable=True,
        )

    def days(
        self, *, queue: str, date: float | None = None, count: int | None = None,
    ) -> Call[Json]:
        """Counters of the latest days of a queue."""
        argv = [encode(queue), self._encode_time(date), encode_optional(count)]
        return Call(self.send, "days", read_json, [encode(self.namespace)], argv)

    def declare_interval(
        self, *, queue: str, jid: str, klass: str, data: str | bytes, now: float | None = None,
        next: float, interval: float, priority: float | None = None,
        tags: Sequence[str] | None = None, retries: int | None = None, backlog: int | None = None,
        constraints: str | bytes | None = None, expires_in: float | None = None,
        ends: float | None = None, max_runs: int | None = None, jitter: float | None = None,
        request: str | None = None,
    ) -> Call[str]:
        """Create or update a recurring job with an interval."""
        argv = [
            b"interval", encode(queue), encode(jid), encode(klass), encode(data),
            self._encode_time(now), encode(next), encode(interval),
        ]
        if priority is not None:
            argv += [b"priority", encode(priority)]
        if tags is not None:
            argv += [b"tags", encode(tags)]
        if retries is not None:
            argv += [b"retries", encode(retries)]
        if backlog is not None:
            argv += [b"backlog", encode(backlog)]
        if constraints is not None:
            argv += [b"constraints", encode(constraints)]
        if expires_in is not None:
            argv += [b"expires_in", encode(expires_in)]
        if ends is not None:
            argv += [b"ends", encode(ends)]
        if max_runs is not None:
            argv += [b"max_runs", encode(max_runs)]
        if jitter is not None:
            argv += [b"jitter", encode(jitter)]
        return Call(
            self.send, "declare", read_text, [encode(self.namespace)], argv, request, writes=True,
        )

    def declare_cron(
        self, *, queue: str, jid: str, klass: str, data: str | bytes, now: float | None = None,
        next: float, expression: str, timezone: str, priority: float | None = None,
        tags: Sequence[str] | None = None, retries: int | None = None, backlog: int | None = None,
        constraints: str | bytes | None = None, expires_in: float | None = None,
        ends: float | None = None, max_runs: int | None = None, jitter: float | None = None,
        request: str | None = None,
    ) -> Call[str]:
        """Create or update a recurring job with a cron expression."""
        argv = [
            b"cron", encode(queue), encode(jid), encode(klass), encode(data),
            self._encode_time(now), encode(next), encode(expression), encode(timezone),
        ]
        if priority is not None:
            argv += [b"priority", encode(priority)]
        if tags is not None:
            argv += [b"tags", encode(tags)]
        if retries is not None:
            argv += [b"retries", encode(retries)]
        if backlog is not None:
            argv += [b"backlog", encode(backlog)]
        if constraints is not None:
            argv += [b"constraints", encode(constraints)]
        if expires_in is not None:
            argv += [b"expires_in", encode(expires_in)]
        if ends is not None:
            argv += [b"ends", encode(ends)]
        if max_runs is not None:
            argv += [b"max_runs", encode(max_runs)]
        if jitter is not None:
            argv += [b"jitter", encode(jitter)]
        return Call(
            self.send, "declare", read_text, [encode(self.namespace)], argv, request, writes=True,
        )

    def declare_begin(self, *, id: str, request: str | None = None) -> Call[str]:
        """Return the generation."""
        argv = [b"begin", encode(id)]
        return Call(
            self.send, "declare", read_text, [encode(self.namespace)], argv, request, writes=True,
        )

    def declare_off(
        self, *, jids: Sequence[str] = (), request: str | None = None,
    ) -> Call[list[str]]:
        """Remove recurring jobs that the code no longer declares."""
        argv = [b"off", *map(encode, jids), b""]
        return Call(
            self.send, "declare", read_texts, [encode(self.namespace)], argv, request, writes=True,
        )

    def decline(
        self, *, jid: str, worker: str, now: float | None = None, delay: float, timeout: float,
        group: str, message: str, fence: int | str | None = None, request: str | None = None,
    ) -> Call[str]:
        """Release a job without a handler in the worker, as if it had not been popped."""
        argv = [
            encode(jid), encode(worker), self._encode_time(now), encode(delay), encode(timeout),
            encode(group), encode(message),
        ]
        if fence is not None:
            argv += [b"fence", encode(fence)]
        return Call(
            self.send, "decline", read_text, [encode(self.namespace)], argv, request, writes=True,
            durable=True,
        )

    def delays(self, *, queues: Sequence[str], now: float | None = None) -> Call[Json]:
        """For how long the next job of each queue has been ready to run, and what may keep it."""
        argv = [self._encode_time(now)]
        return Call(self.send, "delays", read_json, list(map(self._encode_queue, queues)), argv)

    def dependency_failures(
        self, *, jids: Sequence[str] = (), after: str | None = None,
    ) -> Call[Json]:
        """The failures among jobs, and the jobs that may hold others of them."""
        argv = [*map(encode, jids), b""]
        if after is not None:
            argv += [b"after", encode(after)]
        return Call(self.send, "dependency_failures", read_json, [encode(self.namespace)], argv)

    def dependency_results(self, *, jid: str, start: int | None = None) -> Call[Json]:
        """The kept results of the jobs that a job was last put to depend on."""
        argv = [encode(jid)]
        if start is not None:
            argv += [b"start", encode(start)]
        return Call(self.send, "dependency_results", read_json, [encode(self.namespace)], argv)

    def depends_on(
        self, *, jid: str, jids: Sequence[str] = (), now: float | None = None,
        missing: str | None = None, request: str | None = None,
    ) -> Call[int]:
        """Add dependencies to a job."""
        argv = [encode(jid), b"on", *map(encode, jids), b""]
        if now is not None:
            argv += [b"now", encode(now)]
        if missing is not None:
            argv += [b"missing", encode(missing)]
        return Call(
            self.send, "depends", read_count, [encode(self.namespace)], argv, request, writes=True,
            durable=True,
        )

    def depends_off(
        self, *, jid: str, jids: Sequence[str] = (), now: float | None = None,
        request: str | None = None,
    ) -> Call[int]:
        """Remove dependencies of a job."""
        argv = [encode(jid), b"off", *map(encode, jids), b""]
        if now is not None:
            argv += [b"now", encode(now)]
        return Call(
            self.send, "depends", read_count, [encode(self.namespace)], argv, request, writes=True,
            durable=True,
        )

    def deregister(
        self, *, workers: Sequence[str] = (), id: str | None = None, request: str | None = None,
    ) -> Call[None]:
        """Remove workers from the list of known workers."""
        argv = [*map(encode, workers), b""]
        if id is not None:
            argv += [b"id", encode(id)]
        return Call(
            self.send, "deregister", read_nothing, [encode(self.namespace)], argv, request,
            writes=True,
        )

    def edit(
        self, *, jid: str, now: float | None = None, data: str | bytes, was: str | None = None,
        data_keys: str | bytes | None = None, request: str | None = None,
    ) -> Call[None]:
        """Give a job other data."""
        argv = [encode(jid), self._encode_time(now), encode(data), encode_optional(was)]
        if data_keys is not None:
            argv += [b"data_keys", encode(data_keys)]
        return Call(
            self.send, "edit", read_nothing, [encode(self.namespace)], argv, request, writes=True,
            durable=True,
        )

    def fail(
        self, *, jid: str, worker: str, group: str, message: str, now: float | None = None,
        data: str | bytes | None = None, fence: int | str | None = None,
        data_keys: str | bytes | None = None, request: str | None = None,
    ) -> Call[str]:
        """Fail a job and file it under a failure group, until it is retried or deleted."""
        argv = [
            encode(jid), encode(worker), encode(group), encode(message), self._encode_time(now),
            encode_optional(data),
        ]
        if fence is not None:
            argv += [b"fence", encode(fence)]
        if data_keys is not None:
            argv += [b"data_keys", encode(data_keys)]
        return Call(
            self.send, "fail", read_text, [encode(self.namespace)], argv, request, writes=True,
            durable=True,
        )

    def failed(
        self, *, group: str | None = None, offset: int | None = None, count: int | None = None,
    ) -> Call[Json]:
        """The number of failed jobs in each group, or the jobs of one group."""
        argv = [encode_optional(group), encode_optional(offset), encode_optional(count)]
        return Call(self.send, "failed", read_json, [encode(self.namespace)], argv)

    def failures(self, *, names: Sequence[str] = ()) -> Call[Json]:
        """Summaries of failure groups."""
        argv = [*map(encode, names), b""]
        return Call(self.send, "failures", read_json, [encode(self.namespace)], argv)

    def find(
        self, *, conditions: str, now: float | None = None, cursor: str | None = None,
        stop: str | None = None, count: int | None = None,
    ) -> Call[Json]:
        """Search jobs by a filter, a bounded portion per call, in an order that stays."""
        argv = [
            encode(conditions), self._encode_time(now), encode_optional(cursor),
            encode_optional(stop), encode_optional(count),
        ]
        return Call(self.send, "find", read_json, [encode(self.namespace)], argv)

    def forget(self, *, queues: Sequence[str], request: str | None = None) -> Call[None]:
        """Remove queues from the list of known ones."""
        return Call(
            self.send, "forget", read_nothing, list(map(self._encode_queue, queues)), [], request,
            writes=True,
        )

    def free_limits(
        self, *, jid: str, constraints: str | bytes, now: float | None = None,
        request: str | None = None,
    ) -> Call[None]:
        """A run has lost its job, perhaps to another client, which knows no limits."""
        argv = [encode(jid), encode(constraints), self._encode_time(now)]
        return Call(
            self.send, "free_limits", read_nothing, [encode(self.namespace)], argv, request,
            writes=True,
        )

    def get(self, *, jid: str) -> Call[Json]:
        """One job."""
        argv = [encode(jid)]
        return Call(self.send, "get", read_json, [encode(self.namespace)], argv)

    def glances(self, *, jids: Sequence[str] = ()) -> Call[Json]:
        """Summaries of jobs, for lists."""
        argv = [*map(encode, jids), b""]
        return Call(self.send, "glances", read_json, [encode(self.namespace)], argv)

    def group(
        self, *, group: str, offset: int | None = None, count: int | None = None,
    ) -> Call[list[str]]:
        """The jids of a failure group, newest first."""
        argv = [encode(group), encode_optional(offset), encode_optional(count)]
        return Call(self.send, "group", read_texts, [encode(self.namespace)], argv)

    def heartbeat(
        self, *, jid: str, worker: str, now: float | None = None, data: str | bytes | None = None,
        fence: int | str | None = None, data_keys: str | bytes | None = None,
        progress: float | None = None, message: str | None = None, request: str | None = None,
    ) -> Call[float]:
        """Renew the lock of a running job."""
        argv = [encode(jid), encode(worker), self._encode_time(now), encode_optional(data)]
        if fence is not None:
            argv += [b"fence", encode(fence)]
        if data_keys is not None:
            argv += [b"data_keys", encode(data_keys)]
        if progress is not None:
            argv += [b"progress", encode(progress)]
        if message is not None:
            argv += [b"message", encode(message)]
        return Call(
            self.send, "heartbeat", read_number, [encode(self.namespace)], argv, request,
            writes=True,
        )

    def heartbeat_many(
        self, *, worker: str, now: float | None = None, batch: Sequence[HeartbeatManyRow],
        request: str | None = None,
    ) -> Call[list[str | Exception]]:
        """Renew the locks of a worker's jobs."""
        argv = [encode(worker), self._encode_time(now)]
        argv += _encode_heartbeat_many_batch(batch)
        return Call(
            self.send, "heartbeat_many", read_answers, [encode(self.namespace)], argv, request,
            writes=True,
        )

    def jobs(
        self, *, state: str, now: float | None = None, queue: str | None = None,
        offset: int | None = None, count: int | None = None,
    ) -> Call[list[str]]:
        """The jids of jobs in a state."""
        argv = [
            encode(state), self._encode_time(now), encode_optional(queue), encode_optional(offset),
            encode_optional(count),
        ]
        return Call(self.send, "jobs", read_texts, [encode(self.namespace)], argv)

    def lag(self, *, queues: Sequence[str], now: float | None = None) -> Call[Json]:
        """For how long the next job of each queue has been ready to run."""
        argv = [self._encode_time(now)]
        return Call(self.send, "lag", read_json, list(map(self._encode_queue, queues)), argv)

    def length(self, *, queue: str) -> Call[int]:
        """The number of waiting, running and scheduled jobs of a queue."""
        return Call(self.send, "length", read_count, [self._encode_queue(queue)], [])

    def log(
        self, *, jid: str, message: str, now: float | None = None, data: str | bytes | None = None,
        request: str | None = None,
    ) -> Call[None]:
        """Add a custom event to a job's history."""
        argv = [encode(jid), encode(message), self._encode_time(now), encode_optional(data)]
        return Call(
            self.send, "log", read_nothing, [encode(self.namespace)], argv, request, writes=True,
        )

    def move(
        self, *, queue: str, jid: str, now: float | None = None, request: str | None = None,
    ) -> Call[int]:
        """Put a job that waits or is scheduled into another queue."""
        argv = [encode(jid), self._encode_time(now)]
        return Call(
            self.send, "move", read_count, [self._encode_queue(queue)], argv, request, writes=True,
            durable=True,
        )

    def multiget(self, *, jids: Sequence[str] = ()) -> Call[Json]:
        """Several jobs, in the order of their jids."""
        argv = [*map(encode, jids), b""]
        return Call(self.send, "multiget", read_json, [encode(self.namespace)], argv)

    def on_failure_declare(
        self, *, klass: str, job: str | bytes, now: float | None = None, request: str | None = None,
    ) -> Call[None]:
        """Declare it."""
        argv = [b"declare", encode(klass), encode(job), self._encode_time(now)]
        return Call(
            self.send, "on_failure", read_nothing, [encode(self.namespace)], argv, request,
            writes=True,
        )

    def on_failure_off(
        self, *, klasses: Sequence[str] = (), request: str | None = None,
    ) -> Call[None]:
        """Remove what the code no longer declares."""
        argv = [b"off", *map(encode, klasses), b""]
        return Call(
            self.send, "on_failure", read_nothing, [encode(self.namespace)], argv, request,
            writes=True,
        )

    def pause(self, *, queues: Sequence[str], request: str | None = None) -> Call[None]:
        """Pause queues."""
        return Call(
            self.send, "pause", read_nothing, list(map(self._encode_queue, queues)), [], request,
            writes=True, durable=True,
        )

    def peek(
        self, *, queue: str, count: int, now: float | None = None, offset: int | None = None,
        request: str | None = None,
    ) -> Call[Json]:
        """The jobs that the next pop would return, without locking them."""
        argv = [encode(count), self._encode_time(now), encode_optional(offset)]
        return Call(
            self.send, "peek", read_json, [self._encode_queue(queue)], argv, request, writes=True,
        )

    def pop(
        self, *, queue: str, worker: str, count: int, now: float | None = None,
        request: str | None = None,
    ) -> Call[Json]:
        """Lock the next jobs of a queue for a worker, those with an expired lock first."""
        argv = [encode(worker), encode(count), self._encode_time(now)]
        return Call(
            self.send, "pop", read_json, [self._encode_queue(queue)], argv, request, writes=True,
        )

    def pop_many(
        self, *, worker: str, count: int, now: float | None = None, order: str,
        batch: Sequence[PopManyRow], together: str | None = None, version: str | None = None,
        idle: str | None = None, request: str | None = None,
    ) -> Call[list[Reply]]:
        """Lock the next jobs of several queues for a worker, in order of preference or in turn."""
        argv = [encode(worker), encode(count), self._encode_time(now), encode(order)]
        argv += _encode_pop_many_batch(batch)
        if together is not None:
            argv += [b"together", encode(together)]
        if version is not None:
            argv += [b"version", encode(version)]
        if idle is not None:
            argv += [b"idle", encode(idle)]
        return Call(
            self.send, "pop_many", read_list, [encode(self.namespace)], argv, request, writes=True,
        )

    def position(self, *, jid: str, now: float | None = None) -> Call[Json]:
        """The place of a waiting job in its queue."""
        argv = [encode(jid), self._encode_time(now)]
        return Call(self.send, "position", read_json, [encode(self.namespace)], argv)

    def priority(self, *, jid: str, priority: float, request: str | None = None) -> Call[float]:
        """Change a job's priority."""
        argv = [encode(jid), encode(priority)]
        return Call(
            self.send, "priority", read_number, [encode(self.namespace)], argv, request,
            writes=True, durable=True,
        )

    def put(
        self, *, queue: str, jid: str, klass: str, data: str | bytes, now: float | None = None,
        delay: float | None = None, worker: str | None = None, at: float | None = None,
        priority: float | None = None, tags: Sequence[str] | None = None,
        retries: int | None = None, depends: Sequence[str] | None = None,
        context: str | bytes | None = None, expires_in: float | None = None,
        constraints: str | bytes | None = None, if_dependency_fails: str | None = None,
        on_failure: str | bytes | None = None, missing: str | None = None,
        request: str | None = None,
    ) -> Call[str]:
        """Put (enqueue) a new job, or move an existing one to this queue."""
        argv = [
            encode(jid), encode(klass), encode(data), self._encode_time(now),
            encode_optional(delay),
        ]
        if worker is not None:
            argv += [b"worker", encode(worker)]
        if at is not None:
            argv += [b"at", encode(at)]
        if priority is not None:
            argv += [b"priority", encode(priority)]
        if tags is not None:
            argv += [b"tags", encode(tags)]
        if retries is not None:
            argv += [b"retries", encode(retries)]
        if depends is not None:
            argv += [b"depends", encode(depends)]
        if context is not None:
            argv += [b"context", encode(context)]
        if expires_in is not None:
            argv += [b"expires_in", encode(expires_in)]
        if constraints is not None:
            argv += [b"constraints", encode(constraints)]
        if if_dependency_fails is not None:
            argv += [b"if_dependency_fails", encode(if_dependency_fails)]
        if on_failure is not None:
            argv += [b"on_failure", encode(on_failure)]
        if missing is not None:
            argv += [b"missing", encode(missing)]
        return Call(
            self.send, "put", read_text, [self._encode_queue(queue)], argv, request, writes=True,
            durable=True,
        )

    def put_flow(
        self, *, now: float | None = None, batch: Sequence[PutFlowRow], request: str | None = None,
    ) -> Call[list[str]]:
        """Put the jobs of a workflow into queues of their own."""
        argv = [self._encode_time(now)]
        argv += _encode_put_flow_batch(batch)
        return Call(
            self.send, "put_flow", read_texts, [encode(self.namespace)], argv, request, writes=True,
            durable=True,
        )

    def put_many(
        self, *, queue: str, now: float | None = None, batch: Sequence[PutManyRow],
        existing: str | None = None, request: str | None = None,
    ) -> Call[list[str | Exception]]:
        """Put (enqueue) many jobs into one queue."""
        argv = [self._encode_time(now)]
        argv += _encode_put_many_batch(batch)
        if existing is not None:
            argv += [b"existing", encode(existing)]
        return Call(
            self.send, "put_many", read_answers, [self._encode_queue(queue)], argv, request,
            writes=True, durable=True,
        )

    def queue_names(
        self, *, offset: int | None = None, count: int | None = None,
    ) -> Call[list[str]]:
        """The names of the known queues, by when each was first seen."""
        argv = [encode_optional(offset), encode_optional(count)]
        return Call(self.send, "queue_names", read_texts, [encode(self.namespace)], argv)

    def queues(
        self, *, now: float | None = None, queue: str | None = None, offset: int | None = None,
        count: int | None = None, totals: str | None = None,
    ) -> Call[Json]:
        """The number of jobs of each queue by state, and optionally today's counters."""
        argv = [
            self._encode_time(now), encode_optional(queue), encode_optional(offset),
            encode_optional(count), encode_optional(totals),
        ]
        return Call(self.send, "queues", read_json, [encode(self.namespace)], argv)

    def ready(self, *, queues: Sequence[str], now: float | None = None) -> Call[str]:
        """Until when a pop from these queues would bring nothing unless something is put."""
        argv = [self._encode_time(now)]
        return Call(self.send, "ready", read_text, list(map(self._encode_queue, queues)), argv)

    def recur_on(
        self, *, queue: str, jid: str, klass: str, data: str | bytes, now: float | None = None,
        interval: float, offset: float, priority: float | None = None,
        tags: Sequence[str] | None = None, retries: int | None = None, backlog: int | None = None,
        constraints: str | bytes | None = None, expires_in: float | None = None,
        ends: float | None = None, max_runs: int | None = None, jitter: float | None = None,
        request: str | None = None,
    ) -> Call[str]:
        """Create or replace a recurring job with an interval."""
        argv = [
            b"on", encode(queue), encode(jid), encode(klass), encode(data), self._encode_time(now),
            b"interval", encode(interval), encode(offset),
        ]
        if priority is not None:
            argv += [b"priority", encode(priority)]
        if tags is not None:
            argv += [b"tags", encode(tags)]
        if retries is not None:
            argv += [b"retries", encode(retries)]
        if backlog is not None:
            argv += [b"backlog", encode(backlog)]
        if constraints is not None:
            argv += [b"constraints", encode(constraints)]
        if expires_in is not None:
            argv += [b"expires_in", encode(expires_in)]
        if ends is not None:
            argv += [b"ends", encode(ends)]
        if max_runs is not None:
            argv += [b"max_runs", encode(max_runs)]
        if jitter is not None:
            argv += [b"jitter", encode(jitter)]
        return Call(
            self.send, "recur", read_text, [encode(self.namespace)], argv, request, writes=True,
            durable=True,
        )

    def recur_cron(
        self, *, queue: str, jid: str, klass: str, data: str | bytes, now: float | None = None,
        expression: str, timezone: str, next: float, priority: float | None = None,
        tags: Sequence[str] | None = None, retries: int | None = None, backlog: int | None = None,
        constraints: str | bytes | None = None, expires_in: float | None = None,
        ends: float | None = None, max_runs: int | None = None, jitter: float | None = None,
        request: str | None = None,
    ) -> Call[str]:
        """Create or replace a recurring job with a cron expression."""
        argv = [
            b"cron", encode(queue), encode(jid), encode(klass), encode(data),
            self._encode_time(now), encode(expression), encode(timezone), encode(next),
        ]
        if priority is not None:
            argv += [b"priority", encode(priority)]
        if tags is not None:
            argv += [b"tags", encode(tags)]
        if retries is not None:
            argv += [b"retries", encode(retries)]
        if backlog is not None:
            argv += [b"backlog", encode(backlog)]
        if constraints is not None:
            argv += [b"constraints", encode(constraints)]
        if expires_in is not None:
            argv += [b"expires_in", encode(expires_in)]
        if ends is not None:
            argv += [b"ends", encode(ends)]
        if max_runs is not None:
            argv += [b"max_runs", encode(max_runs)]
        if jitter is not None:
            argv += [b"jitter", encode(jitter)]
        return Call(
            self.send, "recur", read_text, [encode(self.namespace)], argv, request, writes=True,
            durable=True,
        )

    def recur_off(self, *, jid: str, request: str | None = None) -> Call[int]:
        """Cancel a recurring job."""
        argv = [b"off", encode(jid)]
        return Call(
            self.send, "recur", read_count, [encode(self.namespace)], argv, request, writes=True,
            durable=True,
        )

    def recur_get(self, *, jid: str, request: str | None = None) -> Call[Json]:
        """Return a recurring job."""
        argv = [b"get", encode(jid)]
        return Call(
            self.send, "recur", read_json, [encode(self.namespace)], argv, request, writes=True,
            durable=True,
        )

    def recur_update(
        self, *, jid: str, pairs: Sequence[str] = (), request: str | None = None,
    ) -> Call[int]:
        """Change a recurring job."""
        argv = [b"update", encode(jid), *map(encode, pairs), b""]
        return Call(
            self.send, "recur", read_count, [encode(self.namespace)], argv, request, writes=True,
            durable=True,
        )

    def recur_tag(
        self, *, jid: str, tags: Sequence[str] = (), request: str | None = None,
    ) -> Call[list[str]]:
        """Add tags to a recurring job."""
        argv = [b"tag", encode(jid), *map(encode, tags), b""]
        return Call(
            self.send, "recur", read_texts, [encode(self.namespace)], argv, request, writes=True,
            durable=True,
        )

    def recur_untag(
        self, *, jid: str, tags: Sequence[str] = (), request: str | None = None,
    ) -> Call[list[str]]:
        """Remove tags of a recurring job."""
        argv = [b"untag", encode(jid), *map(encode, tags), b""]
        return Call(
            self.send, "recur", read_texts, [encode(self.namespace)], argv, request, writes=True,
            durable=True,
        )

    def recur_pause(
        self, *, jid: str, now: float | None = None, request: str | None = None,
    ) -> Call[int]:
        """Create no more instances."""
        argv = [b"pause", encode(jid), self._encode_time(now)]
        return Call(
            self.send, "recur", read_count, [encode(self.namespace)], argv, request, writes=True,
            durable=True,
        )

    def recur_resume(
        self, *, jid: str, now: float | None = None, next: float | None = None,
        request: str | None = None,
    ) -> Call[int]:
        """Create instances again, with the schedule restarted."""
        argv = [b"resume", encode(jid), self._encode_time(now), encode_optional(next)]
        return Call(
            self.send, "recur", read_count, [encode(self.namespace)], argv, request, writes=True,
            durable=True,
        )

    def recur_run(
        self, *, jid: str, now: float | None = None, request: str | None = None,
    ) -> Call[str]:
        """Put an instance now."""
        argv = [b"run", encode(jid), self._encode_time(now)]
        return Call(
            self.send, "recur", read_text, [encode(self.namespace)], argv, request, writes=True,
            durable=True,
        )

    def recurring(
        self, *, queue: str | None = None, offset: int | None = None, count: int | None = None,
    ) -> Call[Json]:
        """Recurring jobs, a page at a time."""
        argv = [encode_optional(queue), encode_optional(offset), encode_optional(count)]
        return Call(self.send, "recurring", read_json, [encode(self.namespace)], argv)

    def release(
        self, *, jid: str, worker: str, now: float | None = None, delay: float | None = None,
        data: str | bytes | None = None, data_keys: str | bytes | None = None,
        fence: int | str | None = None, paused_key: str | None = None,
        waiting: Sequence[str] | None = None, request: str | None = None,
    ) -> Call[str]:
        """Return a running job unfinished to its former place in the queue."""
        argv = [encode(jid), encode(worker), self._encode_time(now), encode_optional(delay)]
        if data is not None:
            argv += [b"data", encode(data)]
        if data_keys is not None:
            argv += [b"data_keys", encode(data_keys)]
        if fence is not None:
            argv += [b"fence", encode(fence)]
        if paused_key is not None:
            argv += [b"paused_key", encode(paused_key)]
        if waiting is not None:
            argv += [b"waiting", encode(waiting)]
        return Call(
            self.send, "release", read_text, [encode(self.namespace)], argv, request, writes=True,
        )

    def remote_control_subscribe(
        self, *, worker: str, channel: str, queue: str, limit: int | None = None,
        weight: int | None = None, request: str | None = None,
    ) -> Call[int]:
        """Let a worker serve a queue."""
        argv = [
            encode(worker), encode(channel), b"subscribe", encode(queue), encode_optional(limit),
            encode_optional(weight),
        ]
        return Call(
            self.send, "remote_control", read_count, [encode(self.namespace)], argv, request,
            writes=True,
        )

    def remote_control_unsubscribe(
        self, *, worker: str, channel: str, queue: str, request: str | None = None,
    ) -> Call[int]:
        """Let a worker stop serving a queue."""
        argv = [encode(worker), encode(channel), b"unsubscribe", encode(queue)]
        return Call(
            self.send, "remote_control", read_count, [encode(self.namespace)], argv, request,
            writes=True,
        )

    def remote_control_pause(
        self, *, worker: str, channel: str, request: str | None = None,
    ) -> Call[int]:
        """Pause a worker."""
        argv = [encode(worker), encode(channel), b"pause"]
        return Call(
            self.send, "remote_control", read_count, [encode(self.namespace)], argv, request,
            writes=True,
        )

    def remote_control_resume(
        self, *, worker: str, channel: str, request: str | None = None,
    ) -> Call[int]:
        """Resume a worker."""
        argv = [encode(worker), encode(channel), b"resume"]
        return Call(
            self.send, "remote_control", read_count, [encode(self.namespace)], argv, request,
            writes=True,
        )

    def remote_control_stop(
        self, *, worker: str, channel: str, request: str | None = None,
    ) -> Call[int]:
        """Shut a worker down gracefully."""
        argv = [encode(worker), encode(channel), b"stop"]
        return Call(
            self.send, "remote_control", read_count, [encode(self.namespace)], argv, request,
            writes=True,
        )

    def remote_control_show(
        self, *, worker: str, channel: str, request: str | None = None,
    ) -> Call[int]:
        """Return what a worker serves."""
        argv = [encode(worker), encode(channel), b"show"]
        return Call(
            self.send, "remote_control", read_count, [encode(self.namespace)], argv, request,
            writes=True,
        )

    def remote_control_stack(
        self, *, worker: str, channel: str, jid: str, request: str | None = None,
    ) -> Call[int]:
        """Return where the code of a running job is."""
        argv = [encode(worker), encode(channel), b"stack", encode(jid)]
        return Call(
            self.send, "remote_control", read_count, [encode(self.namespace)], argv, request,
            writes=True,
        )

    def remote_reply(
        self, *, channel: str, reply: str | bytes, request: str | None = None,
    ) -> Call[None]:
        """Publish a worker's reply to a remote-control command."""
        argv = [encode(channel), encode(reply)]
        return Call(
            self.send, "remote_reply", read_nothing, [encode(self.namespace)], argv, request,
            writes=True,
        )

    def requeue(
        self, *, queue: str, jid: str, klass: str, data: str | bytes, now: float | None = None,
        delay: float | None = None, data_keys: str | bytes | None = None, at: float | None = None,
        priority: float | None = None, tags: Sequence[str] | None = None,
        retries: int | None = None, depends: Sequence[str] | None = None,
        context: str | bytes | None = None, expires_in: float | None = None,
        constraints: str | bytes | None = None, if_dependency_fails: str | None = None,
        on_failure: str | bytes | None = None, missing: str | None = None,
        request: str | None = None,
    ) -> Call[str]:
        """Put a job that must exist, and keep its steps."""
        argv = [
            encode(jid), encode(klass), encode(data), self._encode_time(now),
            encode_optional(delay),
        ]
        if data_keys is not None:
            argv += [b"data_keys", encode(data_keys)]
        if at is not None:
            argv += [b"at", encode(at)]
        if priority is not None:
            argv += [b"priority", encode(priority)]
        if tags is not None:
            argv += [b"tags", encode(tags)]
        if retries is not None:
            argv += [b"retries", encode(retries)]
        if depends is not None:
            argv += [b"depends", encode(depends)]
        if context is not None:
            argv += [b"context", encode(context)]
        if expires_in is not None:
            argv += [b"expires_in", encode(expires_in)]
        if constraints is not None:
            argv += [b"constraints", encode(constraints)]
        if if_dependency_fails is not None:
            argv += [b"if_dependency_fails", encode(if_dependency_fails)]
        if on_failure is not None:
            argv += [b"on_failure", encode(on_failure)]
        if missing is not None:
            argv += [b"missing", encode(missing)]
        return Call(
            self.send, "requeue", read_text, [self._encode_queue(queue)], argv, request,
            writes=True, durable=True,
        )

    def result(self, *, jid: str) -> Call[Json]:
        """The result of a completed job, if the job keeps it."""
        argv = [encode(jid)]
        return Call(self.send, "result", read_json, [encode(self.namespace)], argv)

    def retry(
        self, *, jid: str, queue: str, worker: str, now: float | None = None,
        delay: float | None = None, group: str | None = None, message: str | None = None,
        data: str | bytes | None = None, data_keys: str | bytes | None = None,
        fence: int | str | None = None, request: str | None = None,
    ) -> Call[int]:
        """Run a job again, now or later, which uses one of its retries."""
        argv = [
            encode(jid), encode(queue), encode(worker), self._encode_time(now),
            encode_optional(delay),
        ]
        if group is not None:
            argv += [b"group", encode(group)]
        if message is not None:
            argv += [b"message", encode(message)]
        if data is not None:
            argv += [b"data", encode(data)]
        if data_keys is not None:
            argv += [b"data_keys", encode(data_keys)]
        if fence is not None:
            argv += [b"fence", encode(fence)]
        return Call(
            self.send, "retry", read_count, [encode(self.namespace)], argv, request, writes=True,
            durable=True,
        )

    def revive_group(
        self, *, group: str, now: float | None = None, count: int | None = None,
        request: str | None = None,
    ) -> Call[int]:
        """Retry failed jobs of a group, each in the queue that it failed in."""
        argv = [b"group", encode(group), self._encode_time(now), encode_optional(count)]
        return Call(
            self.send, "revive", read_count, [encode(self.namespace)], argv, request, writes=True,
            durable=True,
        )

    def revive_job(
        self, *, jid: str, now: float | None = None, data: str | bytes | None = None,
        was: str | None = None, from_step: str | None = None, data_keys: str | bytes | None = None,
        request: str | None = None,
    ) -> Call[int]:
        """Retry a failed job in the queue that it failed in."""
        argv = [
            b"job", encode(jid), self._encode_time(now), encode_optional(data),
            encode_optional(was), encode_optional(from_step),
        ]
        if data_keys is not None:
            argv += [b"data_keys", encode(data_keys)]
        return Call(
            self.send, "revive", read_count, [encode(self.namespace)], argv, request, writes=True,
            durable=True,
        )

    def states(self, *, jids: Sequence[str] = ()) -> Call[list[str]]:
        """The states of jobs."""
        argv = [*map(encode, jids), b""]
        return Call(self.send, "states", read_texts, [encode(self.namespace)], argv)

    def stats(self, *, queue: str, date: float | None = None) -> Call[Json]:
        """Statistics of a queue on a day."""
        argv = [encode(queue), self._encode_time(date)]
        return Call(self.send, "stats", read_json, [encode(self.namespace)], argv)

    def sweep_completed(
        self, *, from_: str | None = None, request: str | None = None,
    ) -> Call[Json]:
        """Archive completed jobs."""
        argv = [b"completed", encode_optional(from_)]
        return Call(
            self.send, "sweep", read_json, [encode(self.namespace)], argv, request, writes=True,
        )

    def sweep_failed(
        self, *, group: str, from_: str | None = None, request: str | None = None,
    ) -> Call[Json]:
        """Archive failed jobs of a group."""
        argv = [b"failed", encode(group), encode_optional(from_)]
        return Call(
            self.send, "sweep", read_json, [encode(self.namespace)], argv, request, writes=True,
        )

    def tag_add(
        self, *, jid: str, now: float | None = None, tags: Sequence[str] = (),
        request: str | None = None,
    ) -> Call[list[str]]:
        """Add tags to a job."""
        argv = [b"add", encode(jid), self._encode_time(now), *map(encode, tags), b""]
        return Call(
            self.send, "tag", read_texts, [encode(self.namespace)], argv, request, writes=True,
            durable=True,
        )

    def tag_remove(
        self, *, jid: str, now: float | None = None, tags: Sequence[str] = (),
        request: str | None = None,
    ) -> Call[list[str]]:
        """Remove tags of a job."""
        argv = [b"remove", encode(jid), self._encode_time(now), *map(encode, tags), b""]
        return Call(
            self.send, "tag", read_texts, [encode(self.namespace)], argv, request, writes=True,
            durable=True,
        )

    def tag_get(
        self, *, tag: str, offset: int | None = None, count: int | None = None,
        request: str | None = None,
    ) -> Call[Json]:
        """Find jobs by tag."""
        argv = [b"get", encode(tag), encode_optional(offset), encode_optional(count)]
        return Call(
            self.send, "tag", read_json, [encode(self.namespace)], argv, request, writes=True,
            durable=True,
        )

    def tag_top(
        self, *, offset: int | None = None, count: int | None = None, request: str | None = None,
    ) -> Call[Json]:
        """List the tags of two jobs or more."""
        argv = [b"top", encode_optional(offset), encode_optional(count)]
        return Call(
            self.send, "tag", read_json, [encode(self.namespace)], argv, request, writes=True,
            durable=True,
        )

    def tenants(
        self, *, queue: str, now: float | None = None, offset: int | None = None,
        count: int | None = None,
    ) -> Call[Json]:
        """The tenants of a queue with fair turns that have waiting or running jobs."""
        argv = [self._encode_time(now), encode_optional(offset), encode_optional(count)]
        return Call(self.send, "tenants", read_json, [self._encode_queue(queue)], argv)

    def tick(
        self, *, now: float | None = None, offset: int | None = None, batch: Sequence[TickRow],
        generation: str | None = None, page: int | None = None, request: str | None = None,
    ) -> Call[Json]:
        """Put instances of recurring jobs with a cron expression, as the caller computed them."""
        argv = [self._encode_time(now), encode_optional(offset)]
        argv += _encode_tick_batch(batch)
        if generation is not None:
            argv += [b"generation", encode(generation)]
        if page is not None:
            argv += [b"page", encode(page)]
        return Call(
            self.send, "tick", read_json, [encode(self.namespace)], argv, request, writes=True,
        )

    def timeout(
        self, *, now: float | None = None, jids: Sequence[str] = (), request: str | None = None,
    ) -> Call[None]:
        """Take running jobs away from their workers."""
        argv = [self._encode_time(now), *map(encode, jids), b""]
        return Call(
            self.send, "timeout", read_nothing, [encode(self.namespace)], argv, request,
            writes=True, durable=True,
        )

    def track_list(self, *, request: str | None = None) -> Call[Json]:
        """List the tracked jobs."""
        argv = [b"list"]
        return Call(
            self.send, "track", read_json, [encode(self.namespace)], argv, request, writes=True,
            durable=True,
        )

    def track_track(
        self, *, jid: str, now: float | None = None, tags: Sequence[str] = (),
        request: str | None = None,
    ) -> Call[int]:
        """Track a job."""
        argv = [b"track", encode(jid), self._encode_time(now), *map(encode, tags), b""]
        return Call(
            self.send, "track", read_count, [encode(self.namespace)], argv, request, writes=True,
            durable=True,
        )

    def track_untrack(
        self, *, jid: str, now: float | None = None, request: str | None = None,
    ) -> Call[int]:
        """Stop tracking a job."""
        argv = [b"untrack", encode(jid), self._encode_time(now)]
        return Call(
            self.send, "track", read_count, [encode(self.namespace)], argv, request, writes=True,
            durable=True,
        )

    def unfail(
        self, *, queue: str, group: str, now: float | None = None, count: int | None = None,
        request: str | None = None,
    ) -> Call[int]:
        """Retry failed jobs of a group in a given queue, oldest first."""
        argv = [encode(group), self._encode_time(now), encode_optional(count)]
        return Call(
            self.send, "unfail", read_count, [self._encode_queue(queue)], argv, request,
            writes=True, durable=True,
        )

    def unpause(self, *, queues: Sequence[str], request: str | None = None) -> Call[None]:
        """Resume paused queues."""
        return Call(
            self.send, "unpause", read_nothing, list(map(self._encode_queue, queues)), [], request,
            writes=True, durable=True,
        )

    def workers(self, *, now: float | None = None, worker: str | None = None) -> Call[Json]:
        """The known workers and their jobs, without those silent for longer than max-worker-age."""
        argv = [self._encode_time(now), encode_optional(worker)]
        return Call(self.send, "workers", read_json, [encode(self.namespace)], argv)

    def working(
        self, *, now: float | None = None, most: int, workers: Sequence[str] = (),
    ) -> Call[Json]:
        """Summaries of workers and the jobs that they hold."""
        argv = [self._encode_time(now), encode(most), *map(encode, workers), b""]
        return Call(self.send, "working", read_json, [encode(self.namespace)], argv)
