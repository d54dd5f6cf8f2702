"""A namespace as plain Python: every key by its real name, and operations that commands share."""

import math
from collections.abc import Callable, Iterable
from typing import Any, Literal, TypeAlias

from tests.model.arguments import Refusal

Hash: TypeAlias = dict[str, Any]
Place: TypeAlias = Literal["work", "scheduled", "locks", "depends", "recur"]

DAY = 86400
# weight of a second in the score of waiting jobs: priority minus now / 10^10
TICKS = 10_000_000_000
DEFAULTS: dict[str, float | str] = {
    "application": "qless",
    "heartbeat": 60,
    "grace-period": 10,
    "jobs-history": 604800,
    "jobs-history-count": 50000,
    "stats-history": 30,
    "histogram-history": 7,
    "max-worker-age": 86400,
    "max-job-history": 100,
    "max-lost": 0,
    "worker-timeout": 15,
    "max-steps": 1000,
    "max-steps-size": 16777216,
    "archive": "off",
    "archive-length": 1000000,
    "archive-when-full": "hold",
    "archive-data": 0,
}


def ascending(members: dict[str, float]) -> list[str]:
    """Sort as Redis sorts a sorted set: by score, then by the bytes of the member."""
    return sorted(members, key=lambda member: (members[member], member.encode()))


def day(time: float) -> int:
    return math.floor(time / DAY) * DAY


def option_stored(option: str) -> str:
    """Return the stored name of an option.

    A queue's heartbeat has two names; it is stored under the one that live clients read.
    """
    return (
        f"{option.removeprefix('heartbeat-')}-heartbeat"
        if option.startswith("heartbeat-")
        else option
    )


class Namespace:
    """All keys of one namespace as {key: hash, sorted set, set, list or string}.

    Hash fields are numbers, strings or parsed JSON; only `data` is always the original text.
    `published` has the messages of the current command, in order; `notes` has what it does to other
    jobs at its end.
    """

    def __init__(self, name: str = "ql") -> None:
        self.name = name
        self.keys: dict[str, Any] = {}
        self.published: list[tuple[str, Any]] = []
        self.notes: list[Callable[[], None]] = []

    def snapshot(self) -> dict[str, Any]:
        """Return the keys that Redis would have: empty structures don't exist."""
        self.keys = {
            key: value
            for key, value in self.keys.items()
            if value or isinstance(value, int | float)
        }
        return self.keys

    # Keys

    def key(self, *parts: str) -> str:
        return ":".join((self.name, *parts))

    def hash(self, *parts: str) -> Hash:
        found: Hash = self.keys.setdefault(self.key(*parts), {})
        return found

    def scores(self, *parts: str) -> dict[str, float]:
        found: dict[str, float] = self.keys.setdefault(self.key(*parts), {})
        return found

    def members(self, *parts: str) -> set[str]:
        found: set[str] = self.keys.setdefault(self.key(*parts), set())
        return found

    def items(self, *parts: str) -> list[Any]:
        found: list[Any] = self.keys.setdefault(self.key(*parts), [])
        return found

    def place(self, queue: str, place: Place) -> dict[str, float]:
        return self.scores("q", f"{queue}-{place}")

    def held_by(self, worker: str) -> dict[str, float]:
        return self.scores("w", worker, "jobs")

    def dependencies(self, jid: str) -> set[str]:
        return self.members("j", f"{jid}-dependencies")

    def dependents(self, jid: str) -> set[str]:
        return self.members("j", f"{jid}-dependents")

    def exists(self, jid: str) -> bool:
        return bool(self.keys.get(self.key("j", jid)))

    def job(self, jid: str) -> Hash:
        if not self.exists(jid):
            raise Refusal("NOJOB", jid)
        return self.hash("j", jid)

    def delete(self, *parts: str) -> None:
        self.keys.pop(self.key(*parts), None)

    # Configuration

    def option(self, name: str, default: float | None = None) -> float:
        return float(self.hash("config").get(name, DEFAULTS[name] if default is None else default))

    def heartbeat_interval(self, queue: str) -> float:
        options = self.hash("config")
        for name in (f"{queue}-heartbeat", f"heartbeat-{queue}"):
            if name in options:
                return float(options[name])
        return self.option("heartbeat")

    # Messages

    def publish(self, channel: str, message: Any) -> None:
        self.published.append((self.key(channel), message))

    def log_event(self, event: str, **fields: Any) -> None:
        self.publish("log", {"event": event, **fields})

    def publish_to_trackers(self, event: str, jid: str) -> None:
        if jid in self.scores("tracked"):
            self.publish(event, jid)

    def lock_lost(self, jid: str, worker: str) -> None:
        message = {"event": "lock_lost", "jid": jid, "worker": worker}
        self.publish(f"w:{worker}", message)
        self.publish("log", message)

    # Parts of a job

    def append_history(self, jid: str, time: float, what: str, extra: Hash | None = None) -> None:
        """Append an event to the history.

        It keeps the first event and the latest, `max-job-history` in all.
        """
        events = self.items("j", f"{jid}-history")
        whole = math.floor(time)
        event = [whole, what] if extra is None else [whole, what, extra]
        if time - whole >= 5e-7:
            event = [whole, what, extra or {}, float(f"{time - whole:.6f}")]
        events.append(event)
        most = int(self.option("max-job-history"))
        if 0 < most < len(events):
            events[:] = events[-1:] if most == 1 else events[:1] + events[-(most - 1) :]

    def attach(self, jid: str, tags: Iterable[str], now: float) -> None:
        """Add tags; a tag that the job already has keeps its time."""
        for tag in tags:
            if jid not in self.scores("t", tag):
                self.count_tag(tag, 1)
                self.scores("t", tag)[jid] = now

    def detach(self, jid: str, tags: Iterable[str]) -> None:
        for tag in tags:
            if self.scores("t", tag).pop(jid, None) is not None:
                self.count_tag(tag, -1)

    def count_tag(self, tag: str, change: int) -> None:
        used = self.scores("tags")
        used[tag] = used.get(tag, 0.0) + change
        if used[tag] <= 0:
            del used[tag]

    def outstanding(self, jids: Iterable[str]) -> list[str]:
        """Return the dependencies that are not complete; an unknown job counts as complete."""
        return [jid for jid in jids if self.exists(jid) and self.job(jid)["state"] != "complete"]

    def link(self, jid: str, dependencies: Iterable[str]) -> None:
        for dependency in self.outstanding(dependencies):
            self.dependencies(jid).add(dependency)
            self.dependents(dependency).add(jid)

    def unlink(self, jid: str, dependencies: Iterable[str]) -> None:
        for dependency in list(dependencies):
            self.dependencies(jid).discard(dependency)
            self.dependents(dependency).discard(jid)

    def delete_job(self, jid: str) -> None:
        self.detach(jid, self.job(jid)["tags"])
        self.delete("j", jid)
        self.delete("j", f"{jid}-history")

    def delete_steps(self, jid: str) -> None:
        self.job(jid).pop("x-steps", None)
        self.delete("x", "steps", jid)

    # States and queues

    def leave(self, jid: str, queue: str, *places: Place) -> None:
        for place in places:
            self.place(queue, place).pop(jid, None)

    def leave_worker(self, jid: str, worker: str) -> None:
        if worker:
            self.held_by(worker).pop(jid, None)

    def file_as_waiting(self, jid: str, queue: str, since: float) -> None:
        job = self.job(jid)
        job["state"] = "waiting"
        self.place(queue, "work")[jid] = job["priority"] - since / TICKS

    def file_as_last(self, jid: str, queue: str, now: float) -> None:
        """Add a job to the waiting ones, behind those of its priority."""
        self.file_as_waiting(jid, queue, self.behind_others(queue, self.job(jid)["priority"], now))

    def behind_others(self, queue: str, priority: float, now: float) -> float:
        """Return a time for which the score is behind those of its priority."""
        if not priority:
            return now
        gap = math.ldexp(1.5e10, math.frexp(abs(priority) + 0.25)[1] - 53)
        lowest, highest = priority - (now + 1) / TICKS, priority - (now - gap) / TICKS
        scores = self.place(queue, "work").values()
        near = [score for score in scores if lowest <= score <= highest]
        return max(now, (priority - min(near)) * TICKS + gap) if near else now

    def file_as_scheduled(self, jid: str, queue: str, due: float) -> None:
        self.job(jid)["state"] = "scheduled"
        self.place(queue, "scheduled")[jid] = due

    def file(self, jid: str, queue: str, now: float, delay: float) -> str:
        """Put a job into the set of its state: depends, scheduled or waiting; returns the state."""
        job = self.job(jid)
        if self.dependencies(jid):
            job["state"] = "depends"
            self.place(queue, "depends")[jid] = now
            if delay > 0:
                job["scheduled"] = now + delay
        elif delay > 0:
            self.file_as_scheduled(jid, queue, now + delay)
        else:
            self.file_as_last(jid, queue, now)
        return str(job["state"])

    def register_queue(self, queue: str, now: float) -> None:
        self.scores("queues").setdefault(queue, now)

    def is_used(self, queue: str) -> bool:
        """Return whether a queue has jobs, recurring jobs or statistics, or is paused."""
        places = [
            self.key("q", f"{queue}-{place}")
            for place in ("work", "scheduled", "locks", "depends", "recur")
        ]
        return queue in self.keys.get(self.key("paused_queues"), ()) or any(
            value
            for key, value in self.keys.items()
            if key in places or (key.startswith(self.key("s", "")) and key.endswith(f":{queue}"))
        )

    def file_as_failed(self, jid: str, group: str, message: str, now: float, worker: str) -> None:
        """Put a job into its failure group and count the failure in its queue."""
        job = self.job(jid)
        failure = {"group": group, "message": message, "when": math.floor(now), "worker": worker}
        job.update(state="failed", worker="", expires="", failure=failure)
        self.members("failures").add(group)
        self.items("f", group).insert(0, jid)
        counted = self.stats_of(job["queue"], now)
        for counter in ("failures", "failed"):
            counted[counter] = counted.get(counter, 0) + 1

    def leave_failures(self, jid: str) -> None:
        """Remove a failed job from its group, and from the `failed` counter if it was counted."""
        job = self.job(jid)
        failure = job["failure"]
        group = self.items("f", failure["group"])
        group.remove(jid)
        if not group:
            self.members("failures").discard(failure["group"])
        counted = self.stats_of(job["queue"], failure["when"])
        counted["failed"] = counted.get("failed", 0) - 1

    # Statistics

    def stats_of(self, queue: str, time: float) -> Hash:
        """Return the counters of a day: retries, failures, failed."""
        return self.hash("s", "stats", str(day(time)), queue)

    def count_time(
        self, kind: Literal["wait", "run"], queue: str, now: float, value: float
    ) -> None:
        """Add a duration to a day's mean and deviation (Welford's method) and to its histogram."""
        stats = self.hash("s", kind, str(day(now)), queue)
        total, mean = stats.get("total", 0) + 1, stats.get("mean", 0.0)
        moved = value if total == 1 else mean + (value - mean) / total
        deviation = 0.0 if total == 1 else stats["vk"] + (value - moved) * (value - mean)
        stats.update(total=total, mean=moved, vk=deviation)
        whole = math.floor(value)
        for letter, span, limit in (
            ("s", 1, 60),
            ("m", 60, 3600),
            ("h", 3600, DAY),
            ("d", DAY, math.inf),
        ):
            if whole < limit:
                bin_ = f"{letter}{whole // span}"
                stats[bin_] = stats.get(bin_, 0) + 1
                break
