"""Pop: jobs with expired locks come first."""

from functools import partial
from typing import Any

from tests.model.namespace import ascending
from tests.model.put import Put

MOST_WORKERS_DROPPED = 10


class Pop(Put):
    """The commands pop and peek."""

    def pop(self, *, queue: str, worker: str, count: int, now: float) -> list[dict[str, Any]]:
        return [self.as_json(jid) for jid in self.pop_next(queue, worker, count, now)]

    def pop_next(
        self, queue: str, worker: str, wanted: int, time: float, *, prefers_waiting: bool = False
    ) -> list[str]:
        """Lock the next jobs; `prefers_waiting`: only waiting ones if there are any."""
        if queue in self.members("paused_queues"):
            return []
        if (most := self.option(f"{queue}-max-concurrency", 0)) > 0:
            running = sum(score >= time for score in self.place(queue, "locks").values())
            wanted = min(wanted, max(0, int(most) - running))
        waiting = self.place(queue, "work")
        if prefers_waiting and waiting and wanted > 0:
            jids = ascending(waiting)[::-1][:wanted]
        else:
            self.scores("workers")[worker] = time
            self._drop_vanished_workers(time)
            jids = self._handle_expired_locks(queue, time, wanted)
            jids += self._first_waiting(queue, time, wanted - len(jids))
        for nth, jid in enumerate(jids, start=1):
            self._lock(
                jid, queue, worker, time, fence=self.keys.get(self.key("x", "fence"), 0) + nth
            )
        if jids:
            self.keys[self.key("x", "fence")] = self.keys.get(self.key("x", "fence"), 0) + len(jids)
        return jids

    def _drop_vanished_workers(self, now: float) -> None:
        seen = self.scores("workers")
        vanished = [name for name in ascending(seen) if seen[name] <= self.seen_before(now)]
        for name in vanished[:MOST_WORKERS_DROPPED]:
            del seen[name]
            self.delete("w", name, "jobs")

    def _handle_expired_locks(self, queue: str, now: float, wanted: int) -> list[str]:
        """Handle up to `wanted` expired locks.

        After the grace period, a job is taken from its worker, or fails when no retries are left.
        """
        locks = self.place(queue, "locks")
        taken = []
        for jid in [jid for jid in ascending(locks) if locks[jid] <= now][:wanted]:
            job = self.job(jid)
            grace = self.option("grace-period")
            self.leave_worker(jid, job["worker"])
            if self.is_reserved(jid, job["worker"]):
                self.append_history(jid, now, "abandoned", {"worker": job["worker"]})
                self.lock_lost(jid, job["worker"])
                taken.append(jid)
                continue
            if "grace" not in job or grace <= 0:
                self.publish_to_trackers("stalled", jid)
                self.append_history(jid, now, "timed-out")
                self.lock_lost(jid, job["worker"])
                counted = self.stats_of(queue, now)
                counted["retries"] = counted.get("retries", 0) + 1
                locks[jid] = now + grace
                if grace > 0:
                    job["grace"] = 1
                    continue
            job.pop("grace", None)
            job["remaining"] -= 1
            job["x-lost"] = job.get("x-lost", 0) + 1
            if 0 < self.option("max-lost") < job["x-lost"]:
                message = (
                    f'Lost its lock {job["x-lost"]} times in queue "{queue}", lately by '
                    f"{', '.join(self._holders(jid)[:3])}"
                )
                self._give_up(jid, f"{queue}-lost-locks", message, now)
            elif job["remaining"] < 0:
                self._give_up(
                    jid, f"failed-retries-{queue}", f'Job exhausted retries in queue "{queue}"', now
                )
            else:
                taken.append(jid)
        return taken

    def is_reserved(self, jid: str, worker: str) -> bool:
        """Return whether the present run is the one that was reserved."""
        job = self.job(jid)
        fence = f"{job['x-fence']:.0f}" if "x-fence" in job else ""
        return bool(job.get("x-reserved") == f"{fence} {worker}")

    def _holders(self, jid: str) -> list[str]:
        """Return the workers of the last twenty events of the job, the current one first."""
        popped = [
            event[2]["worker"]
            for event in self.items("j", f"{jid}-history")[-20:]
            if event[1] == "popped"
        ]
        return list(dict.fromkeys([self.job(jid)["worker"], *reversed(popped)]))

    def _give_up(self, jid: str, group: str, message: str, now: float) -> None:
        job = self.job(jid)
        holder, queue = job["worker"], job["queue"]
        self.leave(jid, queue, "work", "locks", "scheduled")
        self.append_history(jid, now, "failed", {"group": group})
        self.file_as_failed(jid, group, message, now, holder)
        self.publish_to_trackers("failed", jid)
        self.log_event("failed", jid=jid, worker=holder, group=group, message=message)
        # A failure policy's job is put at the end of the call, so this pop doesn't return it.
        self.notes.append(partial(self.react_to_failure, jid, group, message, now))

    def _first_waiting(self, queue: str, now: float, wanted: int) -> list[str]:
        """Move due jobs, at most as many as wanted, and return the first of the waiting jobs."""
        if wanted <= 0:
            return []
        self._spawn(queue, now, wanted)
        scheduled = self.place(queue, "scheduled")
        for jid in [jid for jid in ascending(scheduled) if scheduled[jid] <= now][:wanted]:
            del scheduled[jid]
            self.file_as_waiting(jid, queue, now)
        return ascending(self.place(queue, "work"))[::-1][:wanted]

    def _lock(self, jid: str, queue: str, worker: str, now: float, fence: int) -> None:
        job = self.job(jid)
        expires = now + self.heartbeat_interval(queue)
        self.append_history(jid, now, "popped", {"worker": worker})
        self.count_time("wait", queue, now, now - job["time"])
        job.update(
            {
                "worker": worker,
                "expires": expires,
                "state": "running",
                "x-put": job["time"],
                "x-fence": fence,
            }
        )
        job["time"] = now
        self.leave(jid, queue, "work")
        self.held_by(worker)[jid] = expires
        self.place(queue, "locks")[jid] = expires
        self.publish_to_trackers("popped", jid)

    def peek(self, *, queue: str, count: int, now: float, offset: int = 0) -> list[dict[str, Any]]:
        if not count:
            return []
        most = offset + count
        locks = self.place(queue, "locks")
        lapsed = [jid for jid in ascending(locks) if locks[jid] <= now][:most]
        jids = lapsed + self._first_waiting(queue, now, most - len(lapsed))
        return [self.as_json(jid) for jid in jids[offset:]]
