"""Jobs enter a queue, new or from any state."""

import json
from typing import Any

from tests.model import arguments
from tests.model.arguments import refuse_unless
from tests.model.namespace import Hash
from tests.model.recurring import DEFAULT_RETRIES, Recurring


class Put(Recurring):
    """The commands put and requeue."""

    def put(self, **given: Any) -> str:
        return self._put(must_exist=False, **given)

    def requeue(self, **given: Any) -> str:
        return self._put(must_exist=True, **given)

    def _put(
        self,
        *,
        must_exist: bool,
        queue: str,
        jid: str,
        klass: str,
        data: str,
        now: float,
        delay: float,
        priority: float | None = None,
        tags: str | None = None,
        retries: int | str | None = None,
        depends: str | None = None,
        worker: str | None = None,
        on_failure: str | None = None,
    ) -> str:
        refuse_unless(klass != "", "klass", klass)
        refuse_unless(delay >= 0, "delay", delay)

        wanted = arguments.json_strings(depends)
        refuse_unless(jid not in wanted, "depends", depends)
        chosen: Hash = {}
        if tags is not None:
            chosen["tags"] = arguments.json_strings(tags)
        if priority is not None:
            chosen["priority"] = arguments.negated(priority)
        if retries is not None:
            chosen["retries"] = int(retries)
        if must_exist:
            self.job(jid)

        self.log_event("put", jid=jid, queue=queue)
        job = self.hash("j", jid)
        if job:
            self._leave_everything(jid, putting=worker or "")
            if not must_exist and {"x-steps", "x-lost"} & job.keys():
                self.delete_steps(jid)
        if wanted:
            self.unlink(jid, self.dependencies(jid) - set(wanted))
        kept = {field: job[field] for field in ("priority", "retries", "tags") if field in job}
        job.update({"priority": 0.0, "retries": DEFAULT_RETRIES, "tags": []} | kept | chosen)
        job.update(jid=jid, klass=klass, data=data, worker="", expires=0, queue=queue, time=now)
        job["remaining"] = job["retries"]
        job.pop("grace", None)
        job.pop("scheduled", None)
        job.pop("x-lost", None)
        self.append_history(jid, now, "put", {"q": queue})
        self.attach(jid, job["tags"], now)
        self.link(jid, wanted)
        if wanted:
            job["x-after"] = wanted
        if on_failure:
            job["x-on-failure"] = on_failure
        self.file(jid, queue, now, delay)
        self.register_queue(queue, now)
        self.publish_to_trackers("put", jid)
        return jid

    def react_to_failure(self, jid: str, group: str, message: str, now: float) -> None:
        """Put the branch of a job that has just failed."""
        job = self.job(jid)
        if "x-on-failure" not in job:
            return
        number = int(job.get("x-failures", "0 ").split(" ")[0]) + 1
        job["x-failures"] = f"{number} {job['time']:.6f}"
        if "x-cause" in job:
            return
        while self.exists(f"{jid}-failure-{number}"):
            number *= 2
        branch = {"delay": 0, **json.loads(job["x-on-failure"])}
        self.put(jid=f"{jid}-failure-{number}", now=now, **branch)
        self.job(f"{jid}-failure-{number}")["x-cause"] = {
            "jid": jid,
            "klass": job["klass"],
            "group": group,
            "message": message,
            "data": job["data"],
        }

    def _leave_everything(self, jid: str, putting: str) -> None:
        """Remove a job that is about to be put again from its sets and its worker."""
        job = self.job(jid)
        self.detach(jid, job["tags"])
        self.leave(jid, job["queue"], "work", "locks", "depends", "scheduled")
        self.leave_worker(jid, job["worker"])
        if job["worker"] and job["worker"] != putting:
            self.lock_lost(jid, job["worker"])
        self.scores("completed").pop(jid, None)
        if job["state"] == "failed":
            self.leave_failures(jid)
