"""Operations on jobs in any state, queues, workers and the configuration."""

import json
import math
from collections.abc import Sequence

from tests.model import arguments
from tests.model.arguments import Refusal, refuse_unless
from tests.model.lock_holder import LockHolder
from tests.model.namespace import TICKS, Hash, option_stored


class Operating(LockHolder):
    """The commands from `cancel` to `config`."""

    def cancel(self, *, jids: Sequence[str]) -> list[str]:
        """Delete jobs, all or none; their dependents must be named too."""
        for jid in jids:
            if not self.dependents(jid) <= set(jids):
                raise Refusal("HELD", jid)
        canceled = [
            jid
            for jid in dict.fromkeys(jids)
            if self.exists(jid) and self.job(jid)["state"] != "complete"
        ]
        for jid in canceled:
            self._cancel(jid)
        return canceled

    def _cancel(self, jid: str) -> None:
        job = self.job(jid)
        if "x-steps" in job:
            self.delete_steps(jid)
        message = {"event": "canceled", "jid": jid, "worker": job["worker"], "queue": job["queue"]}
        self.publish("log", message)
        if job["worker"]:
            self.leave_worker(jid, job["worker"])
            self.publish(f"w:{job['worker']}", message)
        self.leave(jid, job["queue"], "work", "locks", "scheduled", "depends")
        self.unlink(jid, self.dependencies(jid))
        if job["state"] == "failed":
            self.leave_failures(jid)
        self.publish_to_trackers("canceled", jid)
        self.delete_job(jid)

    def _depending(self, jid: str) -> Hash:
        job = self.job(jid)
        if job["state"] != "depends":
            raise Refusal("BADSTATE", f"{jid} is {job['state']}")
        return job

    def depends_on(self, *, jid: str, jids: Sequence[str], now: float) -> int:
        refuse_unless(jid not in jids, "jids", jids)
        self._depending(jid)
        self.link(jid, jids)
        return 1

    def depends_off(self, *, jid: str, jids: Sequence[str], now: float) -> int:
        self._depending(jid)
        self.unlink(jid, self.dependencies(jid) if list(jids) == ["all"] else jids)
        if not self.dependencies(jid):
            self._unblock(jid, now)
        return 1

    def unfail(self, *, queue: str, group: str, now: float, count: int | None = None) -> int:
        """Put a group's jobs back into a queue, the longest failed first."""
        jids = self.items("f", group)[::-1][: 25 if count is None else count]
        for jid in jids:
            self.leave_failures(jid)
            job = self.job(jid)
            job.update(worker="", expires=0, queue=queue, remaining=job["retries"], time=now)
            job.pop("x-lost", None)
            self.append_history(jid, now, "put", {"q": queue})
            self.file_as_last(jid, queue, now)
            self.register_queue(queue, now)
        return len(jids)

    def revive_group(self, *, group: str, now: float, count: int | None = None) -> int:
        """Put a group's jobs back, each into the queue in which it failed."""
        jids = self.items("f", group)[::-1][: 25 if count is None else count]
        for jid in jids:
            self._revive(jid, now)
        return len(jids)

    def revive_job(
        self, *, jid: str, now: float, data: str | None = None, was: str | None = None
    ) -> int:
        job = self.job(jid)
        if job["state"] != "failed" or was not in (None, "", job["data"]):
            raise Refusal("BADSTATE", f"{jid} is {job['state']}")
        if data:
            job["data"] = data
        self._revive(jid, now)
        return 1

    def _revive(self, jid: str, now: float) -> None:
        self.leave_failures(jid)
        job = self.job(jid)
        job.update(worker="", expires=0, remaining=job["retries"], time=now)
        job.pop("x-lost", None)
        self.append_history(jid, now, "put", {"q": job["queue"]})
        self.file_as_last(jid, job["queue"], now)
        self.register_queue(job["queue"], now)

    def priority(self, *, jid: str, priority: float) -> float:
        stored = arguments.negated(priority)
        job = self.job(jid)
        job["priority"] = stored
        work = self.place(job["queue"], "work")
        if jid in work and work[jid] != math.inf:
            work[jid] = stored - job["time"] / TICKS
        return arguments.negated(stored)

    def log(self, *, jid: str, message: str, now: float, data: str | None = None) -> None:
        extra = json.loads(data) if data else None
        self.job(jid)
        self.append_history(jid, now, message, extra)

    def tag_add(self, *, jid: str, now: float, tags: Sequence[str]) -> list[str]:
        job = self.job(jid)
        self.attach(jid, tags, now)
        job["tags"] = list(dict.fromkeys([*job["tags"], *tags]))
        return list(job["tags"])

    def tag_remove(self, *, jid: str, now: float, tags: Sequence[str]) -> list[str]:
        job = self.job(jid)
        self.detach(jid, tags)
        job["tags"] = [tag for tag in job["tags"] if tag not in tags]
        return list(job["tags"])

    def track_track(self, *, jid: str, now: float, tags: Sequence[str] = ()) -> int:
        self.job(jid)
        if tags:
            self.tag_add(jid=jid, now=now, tags=tags)
        tracked = self.scores("tracked")
        new = jid not in tracked
        tracked[jid] = now
        self.publish("track", jid)
        return int(new)

    def track_untrack(self, *, jid: str, now: float) -> int:
        self.publish("untrack", jid)
        return int(self.scores("tracked").pop(jid, None) is not None)

    # Queues, workers, configuration

    def pause(self, *, queues: Sequence[str]) -> None:
        self.members("paused_queues").update(queues)

    def unpause(self, *, queues: Sequence[str]) -> None:
        self.members("paused_queues").difference_update(queues)

    def forget(self, *, queues: Sequence[str]) -> None:
        for queue in queues:
            self.scores("queues").pop(queue, None)

    def deregister(self, *, workers: Sequence[str]) -> None:
        for worker in workers:
            self.scores("workers").pop(worker, None)

    def config_set(self, *, option: str, value: str | None = None) -> None:
        stored = option_stored(option)
        if value:
            self.hash("config")[stored] = value
            self.log_event("config_set", option=stored, value=value)
        else:
            self.config_unset(option=option)

    def config_unset(self, *, option: str) -> None:
        stored = option_stored(option)
        self.hash("config").pop(stored, None)
        self.log_event("config_unset", option=stored)
