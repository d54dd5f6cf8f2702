"""Commands of a lock's holder, and ends of runs."""

import math
from collections.abc import Iterable, Sequence
from typing import Any

from tests.model import arguments
from tests.model.arguments import Refusal, refuse_unless
from tests.model.namespace import Hash, ascending
from tests.model.pop import Pop


class LockHolder(Pop):
    """The commands heartbeat, step, complete, fail, retry, release, the operator's timeout."""

    def _held(self, jid: str, worker: str, fence: float | None) -> Hash:
        """Return the running job, if this worker's run still holds its lock."""
        job = self._running(jid)
        if not worker or job["worker"] != worker or fence not in (None, job.get("x-fence")):
            raise Refusal("LOCKLOST", jid)
        return job

    def _running(self, jid: str) -> Hash:
        job = self.job(jid)
        if job["state"] != "running":
            raise Refusal("BADSTATE", f"{jid} is {job['state']}")
        return job

    def _held_in(self, queue: str, jid: str, worker: str, fence: float | None) -> Hash:
        job = self._held(jid, worker, fence)
        if job["queue"] != queue:
            raise Refusal("BADSTATE", f"{jid} runs in {job['queue']}")
        return job

    def _end_run(self, jid: str) -> None:
        """End the run: drop the job's lock, grace period and entry in its worker's list."""
        job = self.job(jid)
        self.leave(jid, job["queue"], "work", "locks", "scheduled")
        self.leave_worker(jid, job["worker"])
        job.pop("grace", None)

    def heartbeat(
        self,
        *,
        jid: str,
        worker: str,
        now: float,
        data: str | None = None,
        fence: float | None = None,
    ) -> float:
        job = self._held(jid, worker, fence)
        expires = now + self.heartbeat_interval(job["queue"])
        job["expires"] = self.held_by(worker)[jid] = self.place(job["queue"], "locks")[jid] = (
            expires
        )
        job.pop("grace", None)
        if data:
            job["data"] = data
        self.scores("workers")[worker] = now
        return expires

    def complete(self, **given: Any) -> str:
        state = self._complete(**given)
        if state == "complete":
            self._prune(given["now"])
        return state

    def _complete(
        self,
        *,
        jid: str,
        worker: str,
        queue: str,
        now: float,
        data: str,
        next: str | None = None,
        delay: float | None = None,
        depends: str | None = None,
        fence: float | None = None,
        durable: str | None = None,
    ) -> str:
        after = delay or 0
        wanted = arguments.json_strings(depends)
        refuse_unless(data != "false", "data", data)
        alone = delay is None and depends is None
        refuse_unless(next is not None or alone, "next", next)
        job = self._held_in(queue, jid, worker, fence)

        self.append_history(jid, now, "done")
        if data:
            job["data"] = data
        self._end_run(jid)
        self.count_time("run", queue, now, now - job["time"])
        job.update(time=now, worker="", failure={}, expires=0, remaining=job["retries"])
        self.publish_to_trackers("completed", jid)
        job.pop("scheduled", None)
        if next is not None:
            return self._advance(jid, queue, next, now, after, wanted)
        self.log_event("completed", jid=jid, queue=queue)
        if durable:
            self.delete_steps(jid)
        job.update(state="complete", queue="")
        self.scores("completed")[jid] = now
        self._release_dependents(jid, now)
        return "complete"

    def _advance(
        self, jid: str, left: str, queue: str, now: float, delay: float, depends: Iterable[str]
    ) -> str:
        self.log_event("advanced", jid=jid, queue=left, to=queue)
        self.job(jid)["queue"] = queue
        self.job(jid).pop("x-lost", None)
        self.append_history(jid, now, "put", {"q": queue})
        self.register_queue(queue, now)
        self.link(jid, depends)
        if depends:
            self.job(jid)["x-after"] = list(depends)
        return self.file(jid, queue, now, delay)

    def _prune(self, now: float) -> None:
        """Delete the completed jobs that are too old, then those beyond the maximum number."""
        completed = self.scores("completed")
        oldest = ascending(completed)
        old = [jid for jid in oldest if completed[jid] <= now - self.option("jobs-history")]
        kept = len(oldest) - len(old)
        for jid in oldest[: len(old) + max(0, kept - int(self.option("jobs-history-count")))]:
            del completed[jid]
            self.delete_job(jid)

    def _release_dependents(self, jid: str, now: float) -> None:
        for dependent in sorted(self.dependents(jid)):
            self.unlink(dependent, [jid])
            if not self.dependencies(dependent):
                self._unblock(dependent, now)

    def _unblock(self, jid: str, now: float) -> None:
        """Remove a job's last dependency: it is scheduled if it has a delay, else waiting."""
        job = self.job(jid)
        self.leave(jid, job["queue"], "depends")
        due = job.pop("scheduled", 0)
        if due > now:
            self.file_as_scheduled(jid, job["queue"], due)
        else:
            self.file_as_last(jid, job["queue"], now)

    def fail(
        self,
        *,
        jid: str,
        worker: str,
        group: str,
        message: str,
        now: float,
        data: str | None = None,
        fence: float | None = None,
    ) -> str:
        """Fail a job by its holder or an operator (worker '').

        An operator may only fail jobs that don't run.
        """
        job = self._held(jid, worker, fence) if worker else self._idle(jid)
        self.leave_worker(jid, job["worker"])
        self.leave(jid, job["queue"], "depends")
        self.unlink(jid, self.dependencies(jid))
        self._end_run(jid)
        job.pop("scheduled", None)
        if data:
            job["data"] = data
        self.append_history(jid, now, "failed", {"worker": worker, "group": group})
        self.file_as_failed(jid, group, message, now, worker)
        self.log_event("failed", jid=jid, worker=worker, group=group, message=message)
        self.publish_to_trackers("failed", jid)
        self.react_to_failure(jid, group, message, now)
        return jid

    def _idle(self, jid: str) -> Hash:
        job = self.job(jid)
        if job["state"] == "running":
            raise Refusal("LOCKLOST", jid)
        if job["state"] in ("failed", "complete"):
            raise Refusal("BADSTATE", f"{jid} is {job['state']}")
        return job

    def retry(
        self,
        *,
        jid: str,
        queue: str,
        worker: str,
        now: float,
        delay: float | None = None,
        group: str | None = None,
        message: str | None = None,
        fence: float | None = None,
    ) -> int:
        after = delay or 0
        job = self._held_in(queue, jid, worker, fence)
        self._end_run(jid)
        job["remaining"] -= 1
        if job["remaining"] < 0:
            into, why = (
                group or f"failed-retries-{queue}",
                f'Job exhausted retries in queue "{queue}"',
            )
            why = message if group and message else why
            self.append_history(jid, now, "failed", {"group": into})
            self.file_as_failed(jid, into, why, now, worker)
            self.publish_to_trackers("failed", jid)
            self.log_event("failed", jid=jid, worker=worker, group=into, message=why)
            self.react_to_failure(jid, into, why, now)
        else:
            given = {"group": group, "error": message and message.rstrip().rpartition("\n")[2]}
            known = {name: value for name, value in given.items() if value is not None}
            self.append_history(jid, now, "retried", known)
            job.update(worker="", expires=0, time=now)
            counted = self.stats_of(queue, now)
            counted["x-retries"] = counted.get("x-retries", 0) + 1
            self.file(jid, queue, now, after)
            if group and message:
                job["failure"] = {
                    "group": group,
                    "message": message,
                    "when": math.floor(now),
                    "worker": worker,
                }
        return int(job["remaining"])

    def release(
        self,
        *,
        jid: str,
        worker: str,
        now: float,
        delay: float | None = None,
        fence: float | None = None,
    ) -> str:
        """Release a job: it keeps its position and its retries."""
        after = delay or 0
        job = self._held(jid, worker, fence)
        self.append_history(jid, now, "released", {"worker": worker})
        self._end_run(jid)
        job.update(worker="", expires=0, time=now)
        if after > 0:
            self.file_as_scheduled(jid, job["queue"], now + after)
        else:
            job["time"] = job.get("x-put", now)
            self.file_as_waiting(jid, job["queue"], job["time"])
        return str(job["state"])

    def step(
        self,
        *,
        jid: str,
        worker: str,
        now: float,
        kind: str,
        name: str,
        result: str,
        fence: float | None = None,
    ) -> None:
        """Store what a run has done, in the order in which names are first used."""
        job = self._held(jid, worker, fence)
        if "x-steps" not in job:
            self.delete("x", "steps", jid)
            job["x-steps"] = "1"
        steps = self.hash("x", "steps", jid)
        former = steps.get(f"{kind}:{name}")
        if former and kind == "step":
            return
        number = int(former.split()[0]) if former else int(steps.get(".number", 0)) + 1
        attempt = max(1, int(job["retries"] - job["remaining"]) + 1)
        entry = f"{number} {now:.3f} {attempt} {result}"
        steps[f"{kind}:{name}"] = entry
        steps[".size"] = str(int(steps.get(".size", 0)) + len(entry) - len(former or ""))
        if not former:
            steps[".number"] = str(number)
            self.append_history(jid, now, kind, {"name": name, "attempt": attempt})

    def timeout(self, *, now: float, jids: Sequence[str]) -> None:
        """Take running jobs from their workers; they become the next in the queue."""
        for jid in jids:
            self._running(jid)
        for jid in jids:
            job = self.job(jid)
            self.append_history(jid, now, "timed-out")
            self.leave(jid, job["queue"], "locks")
            self.leave_worker(jid, job["worker"])
            self.place(job["queue"], "work")[jid] = math.inf
            job.update(state="stalled", expires=0)
            job.pop("grace", None)
            self.lock_lost(jid, job["worker"])
