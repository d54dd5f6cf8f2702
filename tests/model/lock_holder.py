"""Commands of a lock's holder, and ends of runs."""

import math
from collections.abc import Iterable, Sequence
from typing import Any

from tests.model import arguments
from tests.model.arguments import Number, Refusal, created, document, present, refuse_unless
from tests.model.namespace import Hash, ascending
from tests.model.pop import Pop


class LockHolder(Pop):
    """The commands heartbeat, step, complete, fail, retry, release, the operator's timeout."""

    def _held(self, jid: str, worker: str, fence: Number | None) -> Hash:
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

    def _held_in(self, queue: str, jid: str, worker: str, fence: Number | None) -> Hash:
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
        now: Number,
        data: str | None = None,
        fence: Number | None = None,
    ) -> float:
        time = arguments.time(now)
        if data:
            document("data", data)
        job = self._held(jid, worker, fence)
        expires = time + self.heartbeat_interval(job["queue"])
        job["expires"] = self.held_by(worker)[jid] = self.place(job["queue"], "locks")[jid] = (
            expires
        )
        job.pop("grace", None)
        if data:
            job["data"] = data
        self.scores("workers")[worker] = time
        return expires

    def complete(self, **given: Any) -> str:
        state = self._complete(**given)
        if state == "complete":
            self._prune(arguments.time(given["now"]))
        return state

    def _complete(
        self,
        *,
        jid: str,
        worker: str,
        queue: str,
        now: Number,
        data: str,
        next: str | None = None,
        delay: Number | None = None,
        depends: str | None = None,
        fence: Number | None = None,
        durable: str | None = None,
    ) -> str:
        time, after = arguments.time(now), arguments.delay(delay)
        if data:
            document("data", data)
        wanted = arguments.json_strings("depends", depends)
        refuse_unless(jid not in wanted, "depends", depends)
        if next is None:
            refuse_unless(delay is None and depends is None, "next", next)
        else:
            created("next", next)
        job = self._held_in(queue, jid, worker, fence)

        self.append_history(jid, time, "done")
        if data:
            job["data"] = data
        self._end_run(jid)
        self.count_time("run", queue, time, time - job["time"])
        job.update(time=time, worker="", failure={}, expires=0, remaining=job["retries"])
        self.publish_to_trackers("completed", jid)
        job.pop("scheduled", None)
        if next is not None:
            return self._advance(jid, queue, next, time, after, wanted)
        self.log_event("completed", jid=jid, queue=queue)
        if durable:
            self.delete_steps(jid)
        job.update(state="complete", queue="")
        self.scores("completed")[jid] = time
        self._release_dependents(jid, time)
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
        now: Number,
        data: str | None = None,
        fence: Number | None = None,
    ) -> str:
        """Fail a job by its holder or an operator (worker '').

        An operator may only fail jobs that don't run.
        """
        created("group", group)
        present("message", message)
        time = arguments.time(now)
        if data:
            document("data", data)
        job = self._held(jid, worker, fence) if worker else self._idle(jid)
        self.leave_worker(jid, job["worker"])
        self.leave(jid, job["queue"], "depends")
        self.unlink(jid, self.dependencies(jid))
        self._end_run(jid)
        job.pop("scheduled", None)
        if data:
            job["data"] = data
        self.append_history(jid, time, "failed", {"worker": worker, "group": group})
        self.file_as_failed(jid, group, message, time, worker)
        self.log_event("failed", jid=jid, worker=worker, group=group, message=message)
        self.publish_to_trackers("failed", jid)
        self.react_to_failure(jid, group, message, time)
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
        now: Number,
        delay: Number | None = None,
        group: str | None = None,
        message: str | None = None,
        fence: Number | None = None,
    ) -> int:
        time, after = arguments.time(now), arguments.delay(delay)
        if group:
            created("group", group)
        job = self._held_in(queue, jid, worker, fence)
        self._end_run(jid)
        job["remaining"] -= 1
        if job["remaining"] < 0:
            into, why = (
                group or f"failed-retries-{queue}",
                f'Job exhausted retries in queue "{queue}"',
            )
            why = message if group and message else why
            self.append_history(jid, time, "failed", {"group": into})
            self.file_as_failed(jid, into, why, time, worker)
            self.publish_to_trackers("failed", jid)
            self.log_event("failed", jid=jid, worker=worker, group=into, message=why)
            self.react_to_failure(jid, into, why, time)
        else:
            given = {"group": group, "error": message and message.rstrip().rpartition("\n")[2]}
            known = {name: value for name, value in given.items() if value is not None}
            self.append_history(jid, time, "retried", known)
            job.update(worker="", expires=0, time=time)
            counted = self.stats_of(queue, time)
            counted["x-retries"] = counted.get("x-retries", 0) + 1
            self.file(jid, queue, time, after)
            if group and message:
                job["failure"] = {
                    "group": group,
                    "message": message,
                    "when": math.floor(time),
                    "worker": worker,
                }
        return int(job["remaining"])

    def release(
        self,
        *,
        jid: str,
        worker: str,
        now: Number,
        delay: Number | None = None,
        fence: Number | None = None,
    ) -> str:
        """Release a job: it keeps its position and its retries."""
        time, after = arguments.time(now), arguments.delay(delay)
        job = self._held(jid, worker, fence)
        self.append_history(jid, time, "released", {"worker": worker})
        self._end_run(jid)
        job.update(worker="", expires=0, time=time)
        if after > 0:
            self.file_as_scheduled(jid, job["queue"], time + after)
        else:
            job["time"] = job.get("x-put", time)
            self.file_as_waiting(jid, job["queue"], job["time"])
        return str(job["state"])

    def step(
        self,
        *,
        jid: str,
        worker: str,
        now: Number,
        kind: str,
        name: str,
        result: str,
        fence: Number | None = None,
    ) -> None:
        """Store what a run has done, in the order in which names are first used."""
        time = arguments.time(now)
        created("name", name)
        present("result", result)
        refuse_unless(kind in ("step", "cursor"), "kind", kind)
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
        entry = f"{number} {time:.3f} {attempt} {result}"
        steps[f"{kind}:{name}"] = entry
        steps[".size"] = str(int(steps.get(".size", 0)) + len(entry) - len(former or ""))
        if not former:
            steps[".number"] = str(number)
            self.append_history(jid, time, kind, {"name": name, "attempt": attempt})

    def timeout(self, *, now: Number, jids: Sequence[str]) -> None:
        """Take running jobs from their workers; they become the next in the queue."""
        time = arguments.time(now)
        for jid in arguments.words("jids", jids):
            self._running(jid)
        for jid in jids:
            job = self.job(jid)
            self.append_history(jid, time, "timed-out")
            self.leave(jid, job["queue"], "locks")
            self.leave_worker(jid, job["worker"])
            self.place(job["queue"], "work")[jid] = math.inf
            job.update(state="stalled", expires=0)
            job.pop("grace", None)
            self.lock_lost(jid, job["worker"])
