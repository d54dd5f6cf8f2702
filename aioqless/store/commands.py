"""The commands of the state machine, one typed method for each.

Generated from the headers in `aioqless/lua` by `python -m aioqless.store.codegen`; don't edit.
"""
# fmt: off

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from aioqless.store.call import Arguments, Call

Json: TypeAlias = Any
Batch: TypeAlias = Sequence[Mapping[str, Any]]


class Commands(ABC):
    """Every command by its name and form; `aioqless lua COMMAND` prints what one does."""

    @abstractmethod
    def call(self, command: str, form: str | None, arguments: Arguments) -> Call:
        """Return a call of a command, to be awaited."""

    def answer(self, *, answer: str, told: str | bytes, request: str | None = None) -> Call[None]:
        """Publish a worker's reply to a remote-control command."""
        return self.call("answer", None, {"answer": answer, "told": told, "request": request})

    def archive_state(self) -> Call[Json]:
        """The state of the archive stream, and how far a reader has stored it elsewhere."""
        return self.call("archive_state", None, {})

    def archive_trim(
        self, *, id: str, reader: str, now: float | None = None, takeover: str | None = None,
        request: str | None = None,
    ) -> Call[int]:
        """Delete entries of the archive stream that are stored elsewhere."""
        return self.call("archive_trim", None, {
            "id": id, "reader": reader, "now": now, "takeover": takeover, "request": request,
        })

    def cancel(self, *, jids: Sequence[str] = (), request: str | None = None) -> Call[list[Any]]:
        """Delete jobs."""
        return self.call("cancel", None, {"jids": jids, "request": request})

    def check(
        self, *, now: float | None = None, resolve: str | None = None, cursor: str | None = None,
        budget: int | None = None, request: str | None = None,
    ) -> Call[Json]:
        """Check the consistency of the namespace, a bounded portion per call."""
        return self.call("check", None, {
            "now": now, "resolve": resolve, "cursor": cursor, "budget": budget, "request": request,
        })

    def clear(
        self, *, queue: str, state: str, offset: int, now: float | None = None,
        states: Sequence[str] = (), group: str | None = None, dry_run: int | None = None,
        request: str | None = None,
    ) -> Call[Json]:
        """Cancel jobs of a queue by state, a bounded number per call, with their dependents."""
        return self.call("clear", None, {
            "queue": queue, "state": state, "offset": offset, "now": now, "states": states,
            "group": group, "dry_run": dry_run, "request": request,
        })

    def complete(
        self, *, jid: str, worker: str, queue: str, now: float | None = None,
        data: str | bytes | None = None, next: str | None = None, delay: float | None = None,
        depends: Sequence[str] | None = None, fence: int | str | None = None,
        result: str | None = None, request: str | None = None,
    ) -> Call[str]:
        """Complete a running job, or move it on to another queue."""
        return self.call("complete", None, {
            "jid": jid, "worker": worker, "queue": queue, "now": now, "data": data, "next": next,
            "delay": delay, "depends": depends, "fence": fence, "result": result,
            "request": request,
        })

    def complete_many(
        self, *, worker: str, now: float | None = None, batch: Batch, request: str | None = None,
    ) -> Call[list[Any]]:
        """Complete many jobs of one worker."""
        return self.call("complete_many", None, {
            "worker": worker, "now": now, "batch": batch, "request": request,
        })

    def config_get(self, *, option: str | None = None, request: str | None = None) -> Call[Json]:
        """Read and change the options that all clients of the namespace share."""
        return self.call("config", "get", {"option": option, "request": request})

    def config_set(
        self, *, option: str, value: str | float | None = None, request: str | None = None,
    ) -> Call[None]:
        """Read and change the options that all clients of the namespace share."""
        return self.call("config", "set", {"option": option, "value": value, "request": request})

    def config_unset(self, *, option: str, request: str | None = None) -> Call[None]:
        """Read and change the options that all clients of the namespace share."""
        return self.call("config", "unset", {"option": option, "request": request})

    def days(
        self, *, queue: str, date: float | None = None, count: int | None = None,
    ) -> Call[Json]:
        """Counters of the latest days of a queue."""
        return self.call("days", None, {"queue": queue, "date": date, "count": count})

    def declare_interval(
        self, *, queue: str, jid: str, klass: str, data: str | bytes, now: float | None = None,
        next: float, interval: float, retries: int | None = None, backlog: int | None = None,
        terms: str | bytes | None = None, anywhere: str | None = None, request: str | None = None,
    ) -> Call[str]:
        """Create or update the recurring jobs that code declares."""
        return self.call("declare", "interval", {
            "queue": queue, "jid": jid, "klass": klass, "data": data, "now": now, "next": next,
            "interval": interval, "retries": retries, "backlog": backlog, "terms": terms,
            "anywhere": anywhere, "request": request,
        })

    def declare_cron(
        self, *, queue: str, jid: str, klass: str, data: str | bytes, now: float | None = None,
        next: float, expression: str, timezone: str, retries: int | None = None,
        backlog: int | None = None, terms: str | bytes | None = None, anywhere: str | None = None,
        request: str | None = None,
    ) -> Call[str]:
        """Create or update the recurring jobs that code declares."""
        return self.call("declare", "cron", {
            "queue": queue, "jid": jid, "klass": klass, "data": data, "now": now, "next": next,
            "expression": expression, "timezone": timezone, "retries": retries, "backlog": backlog,
            "terms": terms, "anywhere": anywhere, "request": request,
        })

    def declare_begin(self, *, id: str, request: str | None = None) -> Call[str]:
        """Create or update the recurring jobs that code declares."""
        return self.call("declare", "begin", {"id": id, "request": request})

    def declare_off(
        self, *, jids: Sequence[str] = (), request: str | None = None,
    ) -> Call[list[Any]]:
        """Create or update the recurring jobs that code declares."""
        return self.call("declare", "off", {"jids": jids, "request": request})

    def dependency_results(self, *, jid: str, start: int | None = None) -> Call[Json]:
        """The kept results of the jobs that a job was last put to depend on."""
        return self.call("dependency_results", None, {"jid": jid, "start": start})

    def depends_on(
        self, *, jid: str, jids: Sequence[str] = (), now: float | None = None,
        request: str | None = None,
    ) -> Call[int]:
        """Add or remove dependencies of a job that is held by dependencies."""
        return self.call("depends", "on", {
            "jid": jid, "jids": jids, "now": now, "request": request,
        })

    def depends_off(
        self, *, jid: str, jids: Sequence[str] = (), now: float | None = None,
        request: str | None = None,
    ) -> Call[int]:
        """Add or remove dependencies of a job that is held by dependencies."""
        return self.call("depends", "off", {
            "jid": jid, "jids": jids, "now": now, "request": request,
        })

    def deregister(self, *, workers: Sequence[str] = (), request: str | None = None) -> Call[None]:
        """Remove workers from the list of known workers."""
        return self.call("deregister", None, {"workers": workers, "request": request})

    def extend(
        self, *, jid: str, worker: str, limit: float, now: float | None = None,
        fence: int | str | None = None, request: str | None = None,
    ) -> Call[int]:
        """Set a new time limit for a reservation, counted from now."""
        return self.call("extend", None, {
            "jid": jid, "worker": worker, "limit": limit, "now": now, "fence": fence,
            "request": request,
        })

    def fail(
        self, *, jid: str, worker: str, group: str, message: str, now: float | None = None,
        data: str | bytes | None = None, fence: int | str | None = None, request: str | None = None,
    ) -> Call[str]:
        """Fail a job and file it under a failure group, until it is retried or deleted."""
        return self.call("fail", None, {
            "jid": jid, "worker": worker, "group": group, "message": message, "now": now,
            "data": data, "fence": fence, "request": request,
        })

    def failed(
        self, *, group: str | None = None, start: int | None = None, limit: int | None = None,
    ) -> Call[Json]:
        """The number of failed jobs in each group, or the jobs of one group."""
        return self.call("failed", None, {"group": group, "start": start, "limit": limit})

    def failures(self, *, names: Sequence[str] = ()) -> Call[Json]:
        """Summaries of failure groups."""
        return self.call("failures", None, {"names": names})

    def find(
        self, *, klass: str, cursor: str | None = None, count: int | None = None,
    ) -> Call[Json]:
        """Search jobs by a part of their klass, a bounded number of keys per call."""
        return self.call("find", None, {"klass": klass, "cursor": cursor, "count": count})

    def forget(self, *, queues: Sequence[str], request: str | None = None) -> Call[None]:
        """Remove queues from the list of known ones."""
        return self.call("forget", None, {"queues": queues, "request": request})

    def get(self, *, jid: str) -> Call[Json]:
        """One job."""
        return self.call("get", None, {"jid": jid})

    def glances(self, *, jids: Sequence[str] = ()) -> Call[Json]:
        """Summaries of jobs, for lists."""
        return self.call("glances", None, {"jids": jids})

    def group(
        self, *, group: str, offset: int | None = None, count: int | None = None,
    ) -> Call[list[Any]]:
        """The jids of a failure group, newest first."""
        return self.call("group", None, {"group": group, "offset": offset, "count": count})

    def hand_over(
        self, *, jid: str, worker: str, to: str, limit: float, now: float | None = None,
        fence: int | str | None = None, request: str | None = None,
    ) -> Call[int]:
        """Pass a reservation to another person, whose next `reserve` returns it."""
        return self.call("hand_over", None, {
            "jid": jid, "worker": worker, "to": to, "limit": limit, "now": now, "fence": fence,
            "request": request,
        })

    def heartbeat(
        self, *, jid: str, worker: str, now: float | None = None, data: str | bytes | None = None,
        fence: int | str | None = None, progress: float | None = None, message: str | None = None,
        request: str | None = None,
    ) -> Call[int]:
        """Renew the lock of a running job."""
        return self.call("heartbeat", None, {
            "jid": jid, "worker": worker, "now": now, "data": data, "fence": fence,
            "progress": progress, "message": message, "request": request,
        })

    def heartbeat_many(
        self, *, worker: str, now: float | None = None, batch: Batch, request: str | None = None,
    ) -> Call[list[Any]]:
        """Renew the locks of a worker's jobs."""
        return self.call("heartbeat_many", None, {
            "worker": worker, "now": now, "batch": batch, "request": request,
        })

    def incarnation_claim(
        self, *, worker: str, now: float | None = None, told: str | bytes, gone: str | None = None,
        request: str | None = None,
    ) -> Call[str]:
        """The lease on a worker's stable name, which only one process may hold."""
        return self.call("incarnation", "claim", {
            "worker": worker, "now": now, "told": told, "gone": gone, "request": request,
        })

    def incarnation_recover(
        self, *, worker: str, now: float | None = None, id: str, request: str | None = None,
    ) -> Call[int]:
        """The lease on a worker's stable name, which only one process may hold."""
        return self.call("incarnation", "recover", {
            "worker": worker, "now": now, "id": id, "request": request,
        })

    def incarnation_leave(
        self, *, worker: str, now: float | None = None, id: str, request: str | None = None,
    ) -> Call[None]:
        """The lease on a worker's stable name, which only one process may hold."""
        return self.call("incarnation", "leave", {
            "worker": worker, "now": now, "id": id, "request": request,
        })

    def intake_queue(
        self, *, prefix: str, into: str, now: float | None = None, first_retry: int | None = None,
        queue: str, side: str, count: int, request: str | None = None,
    ) -> Call[Json]:
        """Import jobs that clients of sidekiq, exq and resque pushed, each in one step."""
        return self.call("intake", "queue", {
            "prefix": prefix, "into": into, "now": now, "first_retry": first_retry, "queue": queue,
            "side": side, "count": count, "request": request,
        })

    def intake_schedule(
        self, *, prefix: str, into: str, now: float | None = None, first_retry: int | None = None,
        offset: int, count: int, queues: Sequence[str] = (), request: str | None = None,
    ) -> Call[Json]:
        """Import jobs that clients of sidekiq, exq and resque pushed, each in one step."""
        return self.call("intake", "schedule", {
            "prefix": prefix, "into": into, "now": now, "first_retry": first_retry,
            "offset": offset, "count": count, "queues": queues, "request": request,
        })

    def intake_retry(
        self, *, prefix: str, into: str, now: float | None = None, first_retry: int | None = None,
        offset: int, count: int, queues: Sequence[str] = (), request: str | None = None,
    ) -> Call[Json]:
        """Import jobs that clients of sidekiq, exq and resque pushed, each in one step."""
        return self.call("intake", "retry", {
            "prefix": prefix, "into": into, "now": now, "first_retry": first_retry,
            "offset": offset, "count": count, "queues": queues, "request": request,
        })

    def intake_queues(
        self, *, prefix: str, into: str, now: float | None = None, first_retry: int | None = None,
        request: str | None = None,
    ) -> Call[Json]:
        """Import jobs that clients of sidekiq, exq and resque pushed, each in one step."""
        return self.call("intake", "queues", {
            "prefix": prefix, "into": into, "now": now, "first_retry": first_retry,
            "request": request,
        })

    def intake_dead(
        self, *, prefix: str, into: str, now: float | None = None, first_retry: int | None = None,
        request: str | None = None,
    ) -> Call[Json]:
        """Import jobs that clients of sidekiq, exq and resque pushed, each in one step."""
        return self.call("intake", "dead", {
            "prefix": prefix, "into": into, "now": now, "first_retry": first_retry,
            "request": request,
        })

    def intake_backup(
        self, *, prefix: str, into: str, now: float | None = None, first_retry: int | None = None,
        node: str, count: int, queues: Sequence[str] = (), request: str | None = None,
    ) -> Call[Json]:
        """Import jobs that clients of sidekiq, exq and resque pushed, each in one step."""
        return self.call("intake", "backup", {
            "prefix": prefix, "into": into, "now": now, "first_retry": first_retry, "node": node,
            "count": count, "queues": queues, "request": request,
        })

    def jobs(
        self, *, state: str, now: float | None = None, queue: str | None = None,
        offset: int | None = None, count: int | None = None,
    ) -> Call[list[Any]]:
        """The jids of jobs in a state."""
        return self.call("jobs", None, {
            "state": state, "now": now, "queue": queue, "offset": offset, "count": count,
        })

    def lag(self, *, queues: Sequence[str], now: float | None = None) -> Call[Json]:
        """For how long the next job of each queue has been ready to run."""
        return self.call("lag", None, {"queues": queues, "now": now})

    def length(self, *, queue: str) -> Call[int]:
        """The number of waiting, running and scheduled jobs of a queue."""
        return self.call("length", None, {"queue": queue})

    def log(
        self, *, jid: str, message: str, now: float | None = None, data: str | bytes | None = None,
        request: str | None = None,
    ) -> Call[None]:
        """Add a custom event to a job's history."""
        return self.call("log", None, {
            "jid": jid, "message": message, "now": now, "data": data, "request": request,
        })

    def multiget(self, *, jids: Sequence[str] = ()) -> Call[Json]:
        """Several jobs, in the order of their jids."""
        return self.call("multiget", None, {"jids": jids})

    def order_subscribe(
        self, *, worker: str, answer: str, queue: str, limit: int | None = None,
        weight: int | None = None, request: str | None = None,
    ) -> Call[int]:
        """Send a remote-control command to a running worker, which replies on a given channel."""
        return self.call("order", "subscribe", {
            "worker": worker, "answer": answer, "queue": queue, "limit": limit, "weight": weight,
            "request": request,
        })

    def order_unsubscribe(
        self, *, worker: str, answer: str, queue: str, request: str | None = None,
    ) -> Call[int]:
        """Send a remote-control command to a running worker, which replies on a given channel."""
        return self.call("order", "unsubscribe", {
            "worker": worker, "answer": answer, "queue": queue, "request": request,
        })

    def order_quiet(self, *, worker: str, answer: str, request: str | None = None) -> Call[int]:
        """Send a remote-control command to a running worker, which replies on a given channel."""
        return self.call("order", "quiet", {"worker": worker, "answer": answer, "request": request})

    def order_resume(self, *, worker: str, answer: str, request: str | None = None) -> Call[int]:
        """Send a remote-control command to a running worker, which replies on a given channel."""
        return self.call("order", "resume", {
            "worker": worker, "answer": answer, "request": request,
        })

    def order_stop(self, *, worker: str, answer: str, request: str | None = None) -> Call[int]:
        """Send a remote-control command to a running worker, which replies on a given channel."""
        return self.call("order", "stop", {"worker": worker, "answer": answer, "request": request})

    def order_show(self, *, worker: str, answer: str, request: str | None = None) -> Call[int]:
        """Send a remote-control command to a running worker, which replies on a given channel."""
        return self.call("order", "show", {"worker": worker, "answer": answer, "request": request})

    def pause(self, *, queues: Sequence[str], request: str | None = None) -> Call[None]:
        """Pause queues."""
        return self.call("pause", None, {"queues": queues, "request": request})

    def peek(
        self, *, queue: str, count: int, now: float | None = None, offset: int | None = None,
        request: str | None = None,
    ) -> Call[Json]:
        """The jobs that the next pop would return, without locking them."""
        return self.call("peek", None, {
            "queue": queue, "count": count, "now": now, "offset": offset, "request": request,
        })

    def pop(
        self, *, queue: str, worker: str, count: int, now: float | None = None,
        request: str | None = None,
    ) -> Call[Json]:
        """Lock the next jobs of a queue for a worker, those with an expired lock first."""
        return self.call("pop", None, {
            "queue": queue, "worker": worker, "count": count, "now": now, "request": request,
        })

    def pop_many(
        self, *, worker: str, count: int, now: float | None = None, order: str, batch: Batch,
        request: str | None = None,
    ) -> Call[list[Any]]:
        """Lock the next jobs of several queues for a worker, in order of preference or in turn."""
        return self.call("pop_many", None, {
            "worker": worker, "count": count, "now": now, "order": order, "batch": batch,
            "request": request,
        })

    def priority(self, *, jid: str, priority: float, request: str | None = None) -> Call[int]:
        """Change a job's priority."""
        return self.call("priority", None, {"jid": jid, "priority": priority, "request": request})

    def put(
        self, *, queue: str, jid: str, klass: str, data: str | bytes, now: float | None = None,
        delay: float, priority: float | None = None, tags: Sequence[str] | None = None,
        retries: int | None = None, depends: Sequence[str] | None = None,
        context: str | bytes | None = None, within: float | None = None,
        terms: str | bytes | None = None, on_failed: str | None = None, worker: str | None = None,
        request: str | None = None,
    ) -> Call[str]:
        """Put (enqueue) a new job, or move an existing one to this queue."""
        return self.call("put", None, {
            "queue": queue, "jid": jid, "klass": klass, "data": data, "now": now, "delay": delay,
            "priority": priority, "tags": tags, "retries": retries, "depends": depends,
            "context": context, "within": within, "terms": terms, "on_failed": on_failed,
            "worker": worker, "request": request,
        })

    def put_flow(
        self, *, now: float | None = None, batch: Batch, request: str | None = None,
    ) -> Call[list[Any]]:
        """Put the jobs of a workflow into queues of their own."""
        return self.call("put_flow", None, {"now": now, "batch": batch, "request": request})

    def put_many(
        self, *, queue: str, now: float | None = None, batch: Batch, existing: str | None = None,
        request: str | None = None,
    ) -> Call[list[Any]]:
        """Put (enqueue) many jobs into one queue."""
        return self.call("put_many", None, {
            "queue": queue, "now": now, "batch": batch, "existing": existing, "request": request,
        })

    def queue_names(
        self, *, offset: int | None = None, count: int | None = None,
    ) -> Call[list[Any]]:
        """The names of the known queues, by when each was first seen."""
        return self.call("queue_names", None, {"offset": offset, "count": count})

    def queues(
        self, *, now: float | None = None, queue: str | None = None, offset: int | None = None,
        count: int | None = None, totals: str | None = None,
    ) -> Call[Json]:
        """The number of jobs of each queue by state, and optionally today's counters."""
        return self.call("queues", None, {
            "now": now, "queue": queue, "offset": offset, "count": count, "totals": totals,
        })

    def recur_on(
        self, *, queue: str, jid: str, klass: str, data: str | bytes, now: float | None = None,
        interval: float, offset: float, priority: float | None = None,
        tags: Sequence[str] | None = None, retries: int | None = None, backlog: int | None = None,
        terms: str | bytes | None = None, request: str | None = None,
    ) -> Call[str]:
        """Recurring jobs."""
        return self.call("recur", "on", {
            "queue": queue, "jid": jid, "klass": klass, "data": data, "now": now,
            "interval": interval, "offset": offset, "priority": priority, "tags": tags,
            "retries": retries, "backlog": backlog, "terms": terms, "request": request,
        })

    def recur_cron(
        self, *, queue: str, jid: str, klass: str, data: str | bytes, now: float | None = None,
        expression: str, timezone: str, next: float, priority: float | None = None,
        tags: Sequence[str] | None = None, retries: int | None = None, backlog: int | None = None,
        terms: str | bytes | None = None, request: str | None = None,
    ) -> Call[str]:
        """Recurring jobs."""
        return self.call("recur", "cron", {
            "queue": queue, "jid": jid, "klass": klass, "data": data, "now": now,
            "expression": expression, "timezone": timezone, "next": next, "priority": priority,
            "tags": tags, "retries": retries, "backlog": backlog, "terms": terms,
            "request": request,
        })

    def recur_off(self, *, jid: str, request: str | None = None) -> Call[int]:
        """Recurring jobs."""
        return self.call("recur", "off", {"jid": jid, "request": request})

    def recur_get(self, *, jid: str, request: str | None = None) -> Call[Json]:
        """Recurring jobs."""
        return self.call("recur", "get", {"jid": jid, "request": request})

    def recur_update(
        self, *, jid: str, pairs: Sequence[str] = (), request: str | None = None,
    ) -> Call[int]:
        """Recurring jobs."""
        return self.call("recur", "update", {"jid": jid, "pairs": pairs, "request": request})

    def recur_tag(
        self, *, jid: str, tags: Sequence[str] = (), request: str | None = None,
    ) -> Call[list[Any]]:
        """Recurring jobs."""
        return self.call("recur", "tag", {"jid": jid, "tags": tags, "request": request})

    def recur_untag(
        self, *, jid: str, tags: Sequence[str] = (), request: str | None = None,
    ) -> Call[list[Any]]:
        """Recurring jobs."""
        return self.call("recur", "untag", {"jid": jid, "tags": tags, "request": request})

    def recur_pause(
        self, *, jid: str, now: float | None = None, request: str | None = None,
    ) -> Call[int]:
        """Recurring jobs."""
        return self.call("recur", "pause", {"jid": jid, "now": now, "request": request})

    def recur_resume(
        self, *, jid: str, now: float | None = None, next: float | None = None,
        request: str | None = None,
    ) -> Call[int]:
        """Recurring jobs."""
        return self.call("recur", "resume", {
            "jid": jid, "now": now, "next": next, "request": request,
        })

    def recur_run(
        self, *, jid: str, now: float | None = None, request: str | None = None,
    ) -> Call[str]:
        """Recurring jobs."""
        return self.call("recur", "run", {"jid": jid, "now": now, "request": request})

    def recurring(
        self, *, queue: str | None = None, offset: int | None = None, count: int | None = None,
    ) -> Call[Json]:
        """Recurring jobs, a page at a time."""
        return self.call("recurring", None, {"queue": queue, "offset": offset, "count": count})

    def release(
        self, *, jid: str, worker: str, now: float | None = None, delay: float | None = None,
        fence: int | str | None = None, request: str | None = None,
    ) -> Call[str]:
        """Give back a running job unfinished, to its former place in the queue."""
        return self.call("release", None, {
            "jid": jid, "worker": worker, "now": now, "delay": delay, "fence": fence,
            "request": request,
        })

    def requeue(
        self, *, queue: str, jid: str, klass: str, data: str | bytes, now: float | None = None,
        delay: float, priority: float | None = None, tags: Sequence[str] | None = None,
        retries: int | None = None, depends: Sequence[str] | None = None,
        context: str | bytes | None = None, within: float | None = None,
        terms: str | bytes | None = None, worker: str | None = None, request: str | None = None,
    ) -> Call[str]:
        """Put a job that must exist."""
        return self.call("requeue", None, {
            "queue": queue, "jid": jid, "klass": klass, "data": data, "now": now, "delay": delay,
            "priority": priority, "tags": tags, "retries": retries, "depends": depends,
            "context": context, "within": within, "terms": terms, "worker": worker,
            "request": request,
        })

    def reservation(self, *, queue: str, worker: str, now: float | None = None) -> Call[Json]:
        """The job that a person's session has reserved in a queue."""
        return self.call("reservation", None, {"queue": queue, "worker": worker, "now": now})

    def reserve(
        self, *, queue: str, person: str, worker: str, limit: float, now: float | None = None,
        again: int | None = None, request: str | None = None,
    ) -> Call[Json]:
        """Lock the next job of a queue for a person, or return the one that is reserved already."""
        return self.call("reserve", None, {
            "queue": queue, "person": person, "worker": worker, "limit": limit, "now": now,
            "again": again, "request": request,
        })

    def result(self, *, jid: str) -> Call[Json]:
        """The result of a completed job, if the job keeps it."""
        return self.call("result", None, {"jid": jid})

    def retry(
        self, *, jid: str, queue: str, worker: str, now: float | None = None,
        delay: float | None = None, group: str | None = None, message: str | None = None,
        fence: int | str | None = None, request: str | None = None,
    ) -> Call[int]:
        """Run a job again, now or later, which uses one of its retries."""
        return self.call("retry", None, {
            "jid": jid, "queue": queue, "worker": worker, "now": now, "delay": delay,
            "group": group, "message": message, "fence": fence, "request": request,
        })

    def revive_group(
        self, *, group: str, now: float | None = None, count: int | None = None,
        request: str | None = None,
    ) -> Call[int]:
        """Retry failed jobs, each in the queue that it failed in."""
        return self.call("revive", "group", {
            "group": group, "now": now, "count": count, "request": request,
        })

    def revive_job(
        self, *, jid: str, now: float | None = None, data: str | bytes | None = None,
        was: str | None = None, request: str | None = None,
    ) -> Call[int]:
        """Retry failed jobs, each in the queue that it failed in."""
        return self.call("revive", "job", {
            "jid": jid, "now": now, "data": data, "was": was, "request": request,
        })

    def session_keep(
        self, *, id: str, proof: str, seconds: float, request: str | None = None,
    ) -> Call[None]:
        """Login sessions of the dashboard and of human tasks, and known addresses of users."""
        return self.call("session", "keep", {
            "id": id, "proof": proof, "seconds": seconds, "request": request,
        })

    def session_read(self, *, ids: Sequence[str] = (), request: str | None = None) -> Call[Json]:
        """Login sessions of the dashboard and of human tasks, and known addresses of users."""
        return self.call("session", "read", {"ids": ids, "request": request})

    def session_drop(self, *, id: str, request: str | None = None) -> Call[None]:
        """Login sessions of the dashboard and of human tasks, and known addresses of users."""
        return self.call("session", "drop", {"id": id, "request": request})

    def skip(
        self, *, jid: str, person: str, worker: str, now: float | None = None,
        fence: int | str | None = None, request: str | None = None,
    ) -> Call[str]:
        """Give back a reserved job, behind the others."""
        return self.call("skip", None, {
            "jid": jid, "person": person, "worker": worker, "now": now, "fence": fence,
            "request": request,
        })

    def states(self, *, jids: Sequence[str] = ()) -> Call[list[Any]]:
        """The states of jobs."""
        return self.call("states", None, {"jids": jids})

    def stats(self, *, queue: str, date: float | None = None) -> Call[Json]:
        """Statistics of a queue on a day."""
        return self.call("stats", None, {"queue": queue, "date": date})

    def sweep_completed(
        self, *, from_: str | None = None, request: str | None = None,
    ) -> Call[Json]:
        """Archive jobs that ended without our scripts, a bounded number per call."""
        return self.call("sweep", "completed", {"from": from_, "request": request})

    def sweep_failed(
        self, *, group: str, from_: str | None = None, request: str | None = None,
    ) -> Call[Json]:
        """Archive jobs that ended without our scripts, a bounded number per call."""
        return self.call("sweep", "failed", {"group": group, "from": from_, "request": request})

    def tag_add(
        self, *, jid: str, now: float | None = None, tags: Sequence[str] = (),
        request: str | None = None,
    ) -> Call[list[Any]]:
        """Add tags to a job or remove them."""
        return self.call("tag", "add", {"jid": jid, "now": now, "tags": tags, "request": request})

    def tag_remove(
        self, *, jid: str, now: float | None = None, tags: Sequence[str] = (),
        request: str | None = None,
    ) -> Call[list[Any]]:
        """Add tags to a job or remove them."""
        return self.call("tag", "remove", {
            "jid": jid, "now": now, "tags": tags, "request": request,
        })

    def tag_get(
        self, *, tag: str, offset: int | None = None, count: int | None = None,
        request: str | None = None,
    ) -> Call[Json]:
        """Add tags to a job or remove them."""
        return self.call("tag", "get", {
            "tag": tag, "offset": offset, "count": count, "request": request,
        })

    def tag_top(
        self, *, offset: int | None = None, count: int | None = None, request: str | None = None,
    ) -> Call[Json]:
        """Add tags to a job or remove them."""
        return self.call("tag", "top", {"offset": offset, "count": count, "request": request})

    def tick(
        self, *, now: float | None = None, offset: int | None = None, batch: Batch,
        generation: str | None = None, request: str | None = None,
    ) -> Call[Json]:
        """Put instances of recurring jobs with a cron expression, as the caller computed them."""
        return self.call("tick", None, {
            "now": now, "offset": offset, "batch": batch, "generation": generation,
            "request": request,
        })

    def timeout(
        self, *, now: float | None = None, jids: Sequence[str] = (), request: str | None = None,
    ) -> Call[None]:
        """Take running jobs away from their workers."""
        return self.call("timeout", None, {"now": now, "jids": jids, "request": request})

    def track_list(self, *, request: str | None = None) -> Call[Json]:
        """Track jobs."""
        return self.call("track", "list", {"request": request})

    def track_track(
        self, *, jid: str, now: float | None = None, tags: Sequence[str] = (),
        request: str | None = None,
    ) -> Call[int]:
        """Track jobs."""
        return self.call("track", "track", {
            "jid": jid, "now": now, "tags": tags, "request": request,
        })

    def track_untrack(
        self, *, jid: str, now: float | None = None, request: str | None = None,
    ) -> Call[int]:
        """Track jobs."""
        return self.call("track", "untrack", {"jid": jid, "now": now, "request": request})

    def trail_add(
        self, *, who: str, act: str, about: str | bytes, outcome: str, request: str | None = None,
    ) -> Call[str]:
        """The audit log of user actions, about the latest 10,000."""
        return self.call("trail", "add", {
            "who": who, "act": act, "about": about, "outcome": outcome, "request": request,
        })

    def trail_login(
        self, *, who: str, act: str, about: str | bytes, outcome: str, request: str | None = None,
    ) -> Call[str]:
        """The audit log of user actions, about the latest 10,000."""
        return self.call("trail", "login", {
            "who": who, "act": act, "about": about, "outcome": outcome, "request": request,
        })

    def trail_list(
        self, *, before: str | None = None, count: int | None = None, request: str | None = None,
    ) -> Call[Json]:
        """The audit log of user actions, about the latest 10,000."""
        return self.call("trail", "list", {"before": before, "count": count, "request": request})

    def trail_logins(
        self, *, before: str | None = None, count: int | None = None, request: str | None = None,
    ) -> Call[Json]:
        """The audit log of user actions, about the latest 10,000."""
        return self.call("trail", "logins", {"before": before, "count": count, "request": request})

    def unfail(
        self, *, queue: str, group: str, now: float | None = None, count: int | None = None,
        request: str | None = None,
    ) -> Call[int]:
        """Retry failed jobs of a group in a given queue, oldest first."""
        return self.call("unfail", None, {
            "queue": queue, "group": group, "now": now, "count": count, "request": request,
        })

    def unpause(self, *, queues: Sequence[str], request: str | None = None) -> Call[None]:
        """Resume paused queues."""
        return self.call("unpause", None, {"queues": queues, "request": request})

    def workers(self, *, now: float | None = None, worker: str | None = None) -> Call[Json]:
        """The known workers and their jobs, without those silent for longer than max-worker-age."""
        return self.call("workers", None, {"now": now, "worker": worker})

    def working(
        self, *, now: float | None = None, most: int, workers: Sequence[str] = (),
    ) -> Call[Json]:
        """Summaries of workers and the jobs that they hold."""
        return self.call("working", None, {"now": now, "most": most, "workers": workers})
