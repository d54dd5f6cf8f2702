"""The model's reads.

They change no key: jobs that are due but not yet moved are shown as waiting.
"""

import json
import math
from typing import Any

from tests.model import arguments
from tests.model.arguments import Refusal, page
from tests.model.namespace import (
    DEFAULTS,
    Hash,
    Namespace,
    ascending,
    day,
    option_stored,
)

WORKER_HORIZON = 8640000  # a lock that ends later than this is not counted as a worker's job
HISTOGRAM = [
    f"{letter}{n}" for letter, numbers in (("s", range(60)), ("m", range(1, 60))) for n in numbers
]
HISTOGRAM += [
    f"{letter}{n}" for letter, numbers in (("h", range(1, 24)), ("d", range(1, 7))) for n in numbers
]


class Views(Namespace):
    """All read commands."""

    # Jobs

    def as_json(self, jid: str) -> dict[str, Any]:
        """Return a job as JSON; its priority is the caller's, negative meaning sooner."""
        job = self.job(jid)
        events = self.items("j", f"{jid}-history")
        return {
            **{
                field: job[field]
                for field in ("jid", "klass", "state", "queue", "worker", "data", "tags")
            },
            "tracked": jid in self.scores("tracked"),
            "priority": arguments.negated(job["priority"]),
            "retries": job["retries"],
            "remaining": job["remaining"],
            "expires": job["expires"] or 0,
            "failure": job.get("failure", {}),
            "spawned_from_jid": job.get("spawned_from_jid", False),
            "dependents": sorted(self.dependents(jid)),
            "dependents_total": len(self.dependents(jid)),
            "dependencies": sorted(self.dependencies(jid)),
            "dependencies_total": len(self.dependencies(jid)),
            "history": [_template_view(*event) for event in events],
            "history_total": len(events),
            "fence": job.get("x-fence", 0),
            **({"cause": job["x-cause"]} if "x-cause" in job else {}),
            **self._branch_view(job),
        }

    @staticmethod
    def _branch_view(job: Hash) -> Hash:
        found: Hash = {}
        if "x-on-failure" in job:
            branch = json.loads(job["x-on-failure"])
            found["on_failure"] = {"queue": branch["queue"], "klass": branch["klass"]}
        if "x-after" in job:
            found |= {"after": job["x-after"], "after_total": len(job["x-after"])}
        if "x-failures" in job:
            found["failures"] = int(job["x-failures"].split(" ")[0])
        return found

    def get(self, *, jid: str) -> dict[str, Any] | None:
        return self.as_json(jid) if self.exists(jid) else None

    def multiget(self, *, jids: list[str]) -> list[dict[str, Any]]:
        return [self.as_json(jid) for jid in jids if self.exists(jid)]

    def jobs(
        self,
        *,
        state: str,
        now: float,
        queue: str = "",
        offset: int = 0,
        count: int | None = None,
    ) -> list[str]:
        if state == "complete":
            return ascending(self.scores("completed"))[::-1][page(offset, count)]
        locks, scheduled = self.place(queue, "locks"), self.place(queue, "scheduled")
        match state:
            case "waiting":
                due = [jid for jid in ascending(scheduled) if scheduled[jid] <= now]
                listed = ascending(self.place(queue, "work"))[::-1] + due
            case "scheduled":
                listed = [jid for jid in ascending(scheduled) if scheduled[jid] > now]
            case "running":
                listed = [jid for jid in ascending(locks) if locks[jid] >= now]
            case "stalled":
                listed = [jid for jid in ascending(locks) if locks[jid] <= now]
            case "depends":
                listed = ascending(self.place(queue, "depends"))
            case "recurring":
                listed = ascending(self.place(queue, "recur"))
            case _:
                raise Refusal("BADARG", state)
        return listed[page(offset, count)]

    def failed(
        self, *, group: str | None = None, offset: int = 0, count: int | None = None
    ) -> dict[str, Any]:
        if not group:
            return {name: len(self.items("f", name)) for name in self.members("failures")}
        jids = self.items("f", group)
        jobs = [self.as_json(jid) for jid in jids[page(offset, count)]]
        for job in jobs:
            job.update(message=job["failure"]["message"], group=group)
        return {"total": len(jids), "jobs": jobs}

    # Queues

    def length(self, *, queue: str) -> int:
        return sum(len(self.place(queue, place)) for place in ("locks", "work", "scheduled"))

    def counts(self, queue: str, now: float, totals: str | None) -> dict[str, Any]:
        lapsed = sum(0 <= score <= now for score in self.place(queue, "locks").values())
        due = sum(score <= now for score in self.place(queue, "scheduled").values())
        return {
            "name": queue,
            "waiting": len(self.place(queue, "work")) + due,
            "scheduled": len(self.place(queue, "scheduled")) - due,
            "stalled": lapsed,
            "running": len(self.place(queue, "locks")) - lapsed,
            "depends": len(self.place(queue, "depends")),
            "recurring": len(self.place(queue, "recur")),
            "paused": queue in self.members("paused_queues"),
        } | (self.totals(queue, now) if totals else {})

    def totals(self, queue: str, now: float) -> dict[str, Any]:
        wait, run, counted = (
            self.hash("s", kind, str(day(now)), queue) for kind in ("wait", "run", "stats")
        )
        return {
            "popped": wait.get("total", 0),
            "completed": run.get("total", 0),
            **self.counters(counted),
        }

    def counters(self, counted: dict[str, Any]) -> dict[str, Any]:
        """Return failures, and retries by cause."""
        lost, explicit = counted.get("retries", 0), counted.get("x-retries", 0)
        return {
            "failures": counted.get("failures", 0),
            "retries": lost + explicit,
            "lost_locks": lost,
            "explicit_retries": explicit,
        }

    def queues(
        self,
        *,
        now: float,
        queue: str | None = None,
        offset: int = 0,
        count: int | None = None,
        totals: str | None = None,
    ) -> Any:
        if queue:
            return self.counts(queue, now, totals)
        return [
            self.counts(name, now, totals)
            for name in ascending(self.scores("queues"))[page(offset, count, usual=1000)]
        ]

    def stats(self, *, queue: str, date: float) -> dict[str, Any]:
        of = str(day(date))
        counted = self.hash("s", "stats", of, queue)
        answer: dict[str, Any] = {"failed": counted.get("failed", 0), **self.counters(counted)}
        for kind in ("wait", "run"):
            stats = self.hash("s", kind, of, queue)
            total = stats.get("total", 0)
            variance = stats["vk"] / (total - 1) if total > 1 else 0.0
            answer[kind] = {
                "count": total,
                "total": total,
                "mean": stats.get("mean", 0),
                "std": math.sqrt(variance),
                "variance": variance,
                "histogram": [stats.get(bin_, 0) for bin_ in HISTOGRAM],
            }
        return answer

    # Workers

    def seen_before(self, now: float) -> float:
        """Forget the workers that were last seen before this time."""
        return now - self.option("max-worker-age")

    def workers(self, *, now: float, worker: str | None = None) -> Any:
        seen = self.scores("workers")
        if worker:
            held = self.held_by(worker)
            latest = ascending(held)[::-1]
            return {
                "jobs": [jid for jid in latest if now <= held[jid] <= now + WORKER_HORIZON],
                "stalled": [jid for jid in latest if 0 <= held[jid] <= now],
            }
        return [
            {
                "name": name,
                **{kind: len(jids) for kind, jids in self.workers(now=now, worker=name).items()},
                "seen": seen[name],
                "alive": None,
                "queues": None,
            }
            for name in ascending(seen)[::-1]
            if seen[name] > self.seen_before(now)
        ]

    # Tags, tracking, configuration, templates

    def tag_get(self, *, tag: str, offset: int = 0, count: int | None = None) -> dict[str, Any]:
        jids = ascending(self.scores("t", tag))
        return {"total": len(jids), "jobs": jids[page(offset, count)]}

    def tag_top(self, *, offset: int = 0, count: int | None = None) -> list[str]:
        used = {tag: times for tag, times in self.scores("tags").items() if times >= 2}
        return ascending(used)[::-1][page(offset, count)]

    def track_list(self) -> dict[str, Any]:
        tracked = ascending(self.scores("tracked"))
        return {
            "jobs": [self.as_json(jid) for jid in tracked if self.exists(jid)],
            "expired": [jid for jid in tracked if not self.exists(jid)],
        }

    def config_get(self, *, option: str | None = None) -> Any:
        options = {**DEFAULTS, **self.hash("config")}
        return options.get(option_stored(option)) if option else options

    def recur_get(self, *, jid: str) -> dict[str, Any] | None:
        template = self.hash("r", jid)
        fields = (
            "jid",
            "klass",
            "state",
            "queue",
            "interval",
            "retries",
            "count",
            "data",
            "tags",
            "backlog",
        )
        if not template:
            return None
        return {field: template[field] for field in fields} | {
            "priority": arguments.negated(template["priority"]),
            "coalesce": "x-coalesce" in template,
            "cron": None,
            "timezone": None,
            "paused": False,
            "declared": None,
            "expires_in": None,
            "constraints": None,
            "until": None,
            "max_runs": None,
            "runs_left": None,
            "jitter": 0,
            "ended": False,
            "next": self.place(template["queue"], "recur")[jid],
        }


def _template_view(
    when: int, what: str, extra: dict[str, Any] | None = None, fraction: float = 0
) -> dict[str, Any]:
    return {**(extra or {}), "what": what, "when": when + fraction}
