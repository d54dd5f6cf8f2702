"""The commands that change something, as the specification tells them."""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from . import arguments
from .arguments import Number, Refusal, created, document, present, refuse_unless
from .namespace import TICKS, Hash, ascending, option_stored
from .views import Views

MOST_WORKERS_DROPPED = 10
DEFAULT_RETRIES = 5


class Model(Views):
    """One method per command, with the argument names of the calls; `call` chooses among them.

    A method answers the reply, or raises Refusal and leaves everything as it was.
    `clock` is what Redis' own clock says, for the calls that carry no time.
    """

    def __init__(self, name: str = "ql") -> None:
        super().__init__(name)
        self.requests: dict[str, tuple[int, Any]] = {}
        self.clock = 0.0

    def call(self, command: str, /, *words: str, request: str | None = None, **given: Any) -> Any:
        """Carry out a command; one whose `request` was answered before gets the same answer and does nothing."""
        self.published = []
        perform: Callable[..., Any] = getattr(self, "_".join((command, *words)))
        if request is None:
            return perform(**given)
        line, n = request.split(":")
        before, answer = self.requests.get(line, (-1, None))
        if int(n) < before:
            raise Refusal("REPEATED", request)
        if int(n) > before:
            answer = perform(**given)
            answer = [job["jid"] for job in answer] if command in ("pop", "peek") else answer
            self.requests[line] = int(n), answer
        if command == "pop_many":
            return [jid for jid in answer if self._runs(jid, given["worker"])]
        if command == "pop":
            return [self.as_json(jid) for jid in answer if self._runs(jid, given["worker"])]
        if command == "peek":
            return [self.as_json(jid) for jid in answer if self.exists(jid)]
        return answer

    def _runs(self, jid: str, worker: str) -> bool:
        """A pop that is repeated late hands out only what its caller may still run."""
        return self.exists(jid) and self.job(jid)["state"] == "running" and self.job(jid)["worker"] == worker

    # Putting

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
        now: Number,
        delay: Number,
        priority: Number | None = None,
        tags: str | None = None,
        retries: Number | None = None,
        depends: str | None = None,
        worker: str | None = None,
    ) -> str:
        created("queue", queue)
        arguments.created_jid(jid)
        created("klass", klass)
        document("data", data)
        time, after = arguments.time(now), arguments.delay(delay)
        wanted = arguments.json_strings("depends", depends)
        refuse_unless(jid not in wanted, "depends", depends)
        chosen: Hash = {}
        if tags is not None:
            chosen["tags"] = arguments.json_tags(tags)
        if priority is not None:
            chosen["priority"] = arguments.stored_priority(priority)
        if retries is not None:
            chosen["retries"] = arguments.whole("retries", retries)
        if must_exist:
            self.job(jid)

        self.log_event("put", jid=jid, queue=queue)
        job = self.hash("j", jid)
        if job:
            self._leave_everything(jid, putting=worker or "")
        if wanted:
            self.unlink(jid, self.dependencies(jid) - set(wanted))
        kept = {field: job[field] for field in ("priority", "retries", "tags") if field in job}
        job.update({"priority": 0.0, "retries": DEFAULT_RETRIES, "tags": []} | kept | chosen)
        job.update(jid=jid, klass=klass, data=data, worker="", expires=0, queue=queue, time=time)
        job["remaining"] = job["retries"]
        job.pop("grace", None)
        job.pop("scheduled", None)
        job.pop("x-lost", None)
        self.append_history(jid, time, "put", {"q": queue})
        self.attach(jid, job["tags"], time)
        self.link(jid, wanted)
        if wanted:
            job["x-after"] = wanted
        self.file(jid, queue, time, after)
        self.register_queue(queue, time)
        self.tell_trackers("put", jid)
        return jid

    def _leave_everything(self, jid: str, putting: str) -> None:
        """Take a job that is about to be put again from wherever it is, whoever holds it."""
        job = self.job(jid)
        self.detach(jid, job["tags"])
        self.leave(jid, job["queue"], "work", "locks", "depends", "scheduled")
        self.leave_worker(jid, job["worker"])
        if job["worker"] and job["worker"] != putting:
            self.lock_lost(jid, job["worker"])
        self.scores("completed").pop(jid, None)
        if job["state"] == "failed":
            self.leave_failures(jid)

    # Handing out

    def pop(self, *, queue: str, worker: str, count: Number, now: Number) -> list[dict[str, Any]]:
        present("queue", queue)
        created("worker", worker)
        wanted, time = arguments.whole("count", count), arguments.time(now)
        if queue in self.members("paused_queues"):
            return []
        self.scores("workers")[worker] = time
        self._drop_vanished_workers(time)
        if (most := self.option(f"{queue}-max-concurrency", 0)) > 0:
            running = sum(score >= time for score in self.place(queue, "locks").values())
            wanted = min(wanted, max(0, int(most) - running))
        jids = self._take_lapsed(queue, time, wanted)
        jids += self._next_in_line(queue, time, wanted - len(jids))
        for nth, jid in enumerate(jids, start=1):
            self._hand_out(jid, queue, worker, time, fence=self.keys.get(self.key("x", "fence"), 0) + nth)
        if jids:
            self.keys[self.key("x", "fence")] = self.keys.get(self.key("x", "fence"), 0) + len(jids)
        return [self.as_json(jid) for jid in jids]

    def _drop_vanished_workers(self, now: float) -> None:
        seen = self.scores("workers")
        vanished = [name for name in ascending(seen) if seen[name] <= self.seen_before(now)]
        for name in vanished[:MOST_WORKERS_DROPPED]:
            del seen[name]
            self.delete("w", name, "jobs")

    def _take_lapsed(self, queue: str, now: float, wanted: int) -> list[str]:
        """Notice up to `wanted` lapsed locks. After its holder's courtesy, a job is taken away, or fails for good."""
        locks = self.place(queue, "locks")
        taken = []
        for jid in [jid for jid in ascending(locks) if locks[jid] <= now][:wanted]:
            job = self.job(jid)
            grace = self.option("grace-period")
            self.leave_worker(jid, job["worker"])
            if "grace" not in job or grace <= 0:
                self.tell_trackers("stalled", jid)
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
                message = f'Lost its lock {job["x-lost"]} times in queue "{queue}", lately by {", ".join(self._holders(jid)[:3])}'
                self._give_up(jid, f"{queue}-lost-locks", message, now)
            elif job["remaining"] < 0:
                self._give_up(jid, f"failed-retries-{queue}", f'Job exhausted retries in queue "{queue}"', now)
            else:
                taken.append(jid)
        return taken

    def _holders(self, jid: str) -> list[str]:
        """Who had the job, as far as twenty events back, its holder first."""
        popped = [event[2]["worker"] for event in self.items("j", f"{jid}-history")[-20:] if event[1] == "popped"]
        return list(dict.fromkeys([self.job(jid)["worker"], *reversed(popped)]))

    def _give_up(self, jid: str, group: str, message: str, now: float) -> None:
        job = self.job(jid)
        holder, queue = job["worker"], job["queue"]
        self.leave(jid, queue, "work", "locks", "scheduled")
        self.append_history(jid, now, "failed", {"group": group})
        self.file_as_failed(jid, group, message, now, holder)
        self.tell_trackers("failed", jid)
        self.log_event("failed", jid=jid, worker=holder, group=group, message=message)

    def _next_in_line(self, queue: str, now: float, wanted: int) -> list[str]:
        """File what has become due, no more than wanted, and answer the top of the waiting jobs."""
        if wanted <= 0:
            return []
        self._spawn(queue, now, wanted)
        scheduled = self.place(queue, "scheduled")
        for jid in [jid for jid in ascending(scheduled) if scheduled[jid] <= now][:wanted]:
            del scheduled[jid]
            self.file_as_waiting(jid, queue, now)
        return ascending(self.place(queue, "work"))[::-1][:wanted]

    def _hand_out(self, jid: str, queue: str, worker: str, now: float, fence: int) -> None:
        job = self.job(jid)
        expires = now + self.heartbeat_interval(queue)
        self.append_history(jid, now, "popped", {"worker": worker})
        self.count_time("wait", queue, now, now - job["time"])
        job.update({"worker": worker, "expires": expires, "state": "running", "x-put": job["time"], "x-fence": fence})
        job["time"] = now
        self.leave(jid, queue, "work")
        self.held_by(worker)[jid] = expires
        self.place(queue, "locks")[jid] = expires
        self.tell_trackers("popped", jid)

    def peek(self, *, queue: str, count: Number, now: Number, offset: Number | None = None) -> list[dict[str, Any]]:
        present("queue", queue)
        wanted, time = arguments.whole("count", count), arguments.time(now)
        skipped = 0 if offset is None else arguments.whole("offset", offset)
        if not wanted:
            return []
        locks = self.place(queue, "locks")
        lapsed = [jid for jid in ascending(locks) if locks[jid] <= time][: skipped + wanted]
        jids = lapsed + self._next_in_line(queue, time, skipped + wanted - len(lapsed))
        return [self.as_json(jid) for jid in jids[skipped:]]

    # Holding

    def _held(self, jid: str, worker: str, fence: Number | None) -> Hash:
        """The running job, if this worker's run of it still has its lock."""
        present("worker", worker)
        job = self._running(jid)
        if job["worker"] != worker or fence not in (None, job.get("x-fence")):
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

    def _put_down(self, jid: str) -> None:
        """Nobody runs the job any more: it leaves its lock and its holder's list, and a courtesy ends."""
        job = self.job(jid)
        self.leave(jid, job["queue"], "work", "locks", "scheduled")
        self.leave_worker(jid, job["worker"])
        job.pop("grace", None)

    def heartbeat(self, *, jid: str, worker: str, now: Number, data: str | None = None, fence: Number | None = None) -> float:
        present("jid", jid)
        time = arguments.time(now)
        if data:
            document("data", data)
        job = self._held(jid, worker, fence)
        expires = time + self.heartbeat_interval(job["queue"])
        job["expires"] = self.held_by(worker)[jid] = self.place(job["queue"], "locks")[jid] = expires
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
    ) -> str:
        present("jid", jid)
        present("queue", queue)
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
        self._put_down(jid)
        self.count_time("run", queue, time, time - job["time"])
        job.update(time=time, worker="", failure={}, expires=0, remaining=job["retries"])
        self.tell_trackers("completed", jid)
        job.pop("scheduled", None)
        if next is not None:
            return self._advance(jid, queue, next, time, after, wanted)
        self.log_event("completed", jid=jid, queue=queue)
        job.update(state="complete", queue="")
        self.scores("completed")[jid] = time
        self._release_dependents(jid, time)
        return "complete"

    def _advance(self, jid: str, left: str, queue: str, now: float, delay: float, depends: Iterable[str]) -> str:
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
        """Delete the completed jobs that are too old, then those too many."""
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
                self._let_go(dependent, now)

    def _let_go(self, jid: str, now: float) -> None:
        """A job waits for no other any more: it is due when its delay says, or at once."""
        job = self.job(jid)
        self.leave(jid, job["queue"], "depends")
        due = job.pop("scheduled", 0)
        if due > now:
            self.file_as_scheduled(jid, job["queue"], due)
        else:
            self.file_as_waiting(jid, job["queue"], now)

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
        """By its holder, or by an operator (worker ''), who may fail only what nobody runs."""
        present("jid", jid)
        created("group", group)
        present("message", message)
        time = arguments.time(now)
        if data:
            document("data", data)
        job = self._held(jid, worker, fence) if worker else self._idle(jid)
        self.leave_worker(jid, job["worker"])
        self.leave(jid, job["queue"], "depends")
        self.unlink(jid, self.dependencies(jid))
        self._put_down(jid)
        job.pop("scheduled", None)
        if data:
            job["data"] = data
        self.append_history(jid, time, "failed", {"worker": worker, "group": group})
        self.file_as_failed(jid, group, message, time, worker)
        self.log_event("failed", jid=jid, worker=worker, group=group, message=message)
        self.tell_trackers("failed", jid)
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
        present("jid", jid)
        present("queue", queue)
        time, after = arguments.time(now), arguments.delay(delay)
        if group:
            created("group", group)
        job = self._held_in(queue, jid, worker, fence)
        self._put_down(jid)
        job["remaining"] -= 1
        if job["remaining"] < 0:
            into, why = group or f"failed-retries-{queue}", f'Job exhausted retries in queue "{queue}"'
            why = message if group and message else why
            self.append_history(jid, time, "failed", {"group": into})
            self.file_as_failed(jid, into, why, time, worker)
            self.tell_trackers("failed", jid)
            self.log_event("failed", jid=jid, worker=worker, group=into, message=why)
        else:
            job.update(worker="", expires=0, time=time)
            self.file(jid, queue, time, after)
            if group and message:
                job["failure"] = {"group": group, "message": message, "when": math.floor(time), "worker": worker}
        return int(job["remaining"])

    def release(self, *, jid: str, worker: str, now: Number, delay: Number | None = None, fence: Number | None = None) -> str:
        """The holder hands a job back, at its old place and at no cost of a retry."""
        present("jid", jid)
        time, after = arguments.time(now), arguments.delay(delay)
        job = self._held(jid, worker, fence)
        self.append_history(jid, time, "released", {"worker": worker})
        self._put_down(jid)
        job.update(worker="", expires=0, time=time)
        if after > 0:
            self.file_as_scheduled(jid, job["queue"], time + after)
        else:
            job["time"] = job.get("x-put", time)
            self.file_as_waiting(jid, job["queue"], job["time"])
        return str(job["state"])

    def timeout(self, *, now: Number, jids: Sequence[str]) -> None:
        """An operator takes running jobs from their holders; they are next in line."""
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

    # Whatever state it is in

    def cancel(self, *, jids: Sequence[str]) -> list[str]:
        """Delete jobs, all or none: whoever depends on one must be named too."""
        for jid in arguments.words("jids", jids):
            if not self.dependents(jid) <= set(jids):
                raise Refusal("HELD", jid)
        canceled = [jid for jid in dict.fromkeys(jids) if self.exists(jid) and self.job(jid)["state"] != "complete"]
        for jid in canceled:
            job = self.job(jid)
            message = {"event": "canceled", "jid": jid, "worker": job["worker"], "queue": job["queue"]}
            self.publish("log", message)
            if job["worker"]:
                self.leave_worker(jid, job["worker"])
                self.publish(f"w:{job['worker']}", message)
            self.leave(jid, job["queue"], "work", "locks", "scheduled", "depends")
            self.unlink(jid, self.dependencies(jid))
            if job["state"] == "failed":
                self.leave_failures(jid)
            self.tell_trackers("canceled", jid)
            self.delete_job(jid)
        return canceled

    def _depending(self, jid: str) -> Hash:
        job = self.job(present("jid", jid))
        if job["state"] != "depends":
            raise Refusal("BADSTATE", f"{jid} is {job['state']}")
        return job

    def depends_on(self, *, jid: str, jids: Sequence[str], now: Number) -> int:
        arguments.time(now)
        wanted = arguments.words("jids", jids)
        refuse_unless(jid not in wanted, "jids", jids)
        self._depending(jid)
        self.link(jid, wanted)
        return 1

    def depends_off(self, *, jid: str, jids: Sequence[str], now: Number) -> int:
        time = arguments.time(now)
        dropped = arguments.words("jids", jids)
        self._depending(jid)
        everything = list(dropped) == ["all"]
        self.unlink(jid, self.dependencies(jid) if everything else dropped)
        if not self.dependencies(jid):
            self._let_go(jid, time)
        return 1

    def unfail(self, *, queue: str, group: str, now: Number, count: Number | None = None) -> int:
        """Put a group's jobs back to work, the longest failed first."""
        created("queue", queue)
        present("group", group)
        time, most = arguments.time(now), 25 if count is None else arguments.whole("count", count)
        jids = self.items("f", group)[::-1][:most]
        for jid in jids:
            self.leave_failures(jid)
            job = self.job(jid)
            job.update(worker="", expires=0, queue=queue, remaining=job["retries"], time=time)
            job.pop("x-lost", None)
            self.append_history(jid, time, "put", {"q": queue})
            self.file_as_waiting(jid, queue, time)
            self.register_queue(queue, time)
        return len(jids)

    def priority(self, *, jid: str, priority: Number) -> float:
        stored = arguments.stored_priority(priority)
        job = self.job(present("jid", jid))
        job["priority"] = stored
        work = self.place(job["queue"], "work")
        if jid in work and work[jid] != math.inf:
            work[jid] = stored - job["time"] / TICKS
        return arguments.turned(stored)

    def log(self, *, jid: str, message: str, now: Number, data: str | None = None) -> None:
        present("message", message)
        time = arguments.time(now)
        extra = arguments.json_object("data", data) if data else None
        self.job(present("jid", jid))
        self.append_history(jid, time, message, extra)

    def tag_add(self, *, jid: str, now: Number, tags: Sequence[str]) -> list[str]:
        time = arguments.time(now)
        added = [created("tags", tag) for tag in arguments.words("tags", tags)]
        job = self.job(present("jid", jid))
        self.attach(jid, added, time)
        job["tags"] = list(dict.fromkeys(job["tags"] + added))
        return list(job["tags"])

    def tag_remove(self, *, jid: str, now: Number, tags: Sequence[str]) -> list[str]:
        arguments.time(now)
        removed = arguments.words("tags", tags)
        job = self.job(present("jid", jid))
        self.detach(jid, removed)
        job["tags"] = [tag for tag in job["tags"] if tag not in removed]
        return list(job["tags"])

    def track_track(self, *, jid: str, now: Number, tags: Sequence[str] = ()) -> int:
        time = arguments.time(now)
        self.job(present("jid", jid))
        if tags:
            self.tag_add(jid=jid, now=now, tags=tags)
        tracked = self.scores("tracked")
        new = jid not in tracked
        tracked[jid] = time
        self.publish("track", jid)
        return int(new)

    def track_untrack(self, *, jid: str, now: Number) -> int:
        present("jid", jid)
        arguments.time(now)
        self.publish("untrack", jid)
        return int(self.scores("tracked").pop(jid, None) is not None)

    # Queues, workers, configuration

    def pause(self, *, queues: Sequence[str]) -> None:
        self.members("paused_queues").update(arguments.words("queues", queues))

    def unpause(self, *, queues: Sequence[str]) -> None:
        self.members("paused_queues").difference_update(arguments.words("queues", queues))

    def forget(self, *, queues: Sequence[str]) -> None:
        for queue in arguments.words("queues", queues):
            self.scores("queues").pop(queue, None)

    def deregister(self, *, workers: Sequence[str]) -> None:
        for worker in arguments.words("workers", workers):
            self.scores("workers").pop(worker, None)

    def config_set(self, *, option: str, value: str | None = None) -> None:
        stored = option_stored(present("option", option))
        if value:
            self.hash("config")[stored] = value
            self.log_event("config_set", option=stored, value=value)
        else:
            self.config_unset(option=option)

    def config_unset(self, *, option: str) -> None:
        stored = option_stored(present("option", option))
        self.hash("config").pop(stored, None)
        self.log_event("config_unset", option=stored)

    # Many at once: one answer for each, as if they had been called one by one

    def _each(self, command: Callable[..., Any], batch: Sequence[Hash], shared: Hash) -> list[Any]:
        answers: list[Any] = []
        for given in batch:
            try:
                answers.append(command(**shared, **given))
            except Refusal as refusal:
                answers.append(refusal.code)
        return answers

    def put_many(self, *, queue: str, now: Number, batch: Sequence[Hash]) -> list[str]:
        """Each a microsecond after the one before, so that they are also popped in this order."""
        created("queue", queue)
        time = arguments.time(now)
        answers: list[str] = []
        for given in batch:
            nth = len([answer for answer in answers if answer not in arguments.REFUSALS])
            answers += self._each(self.put, [{"delay": 0, **given}], {"queue": queue, "now": time + nth * 1e-6})
        return answers

    def pop_many(self, *, worker: str, count: Number, now: Number, order: str, batch: Sequence[Hash]) -> list[str]:
        """The jids. Only in the order of the queues: how a rotation shares out what is wanted, nothing promises."""
        refuse_unless(order == "ordered", "order", order)
        wanted = arguments.whole("count", count)
        jids: list[str] = []
        for given in batch:
            if most := min(given.get("limit", wanted), wanted - len(jids)):
                jobs = self.pop(queue=given["queue"], worker=worker, count=most, now=now)
                jids += [job["jid"] for job in jobs]
        return jids

    def complete_many(self, *, worker: str, now: Number, batch: Sequence[Hash]) -> list[str]:
        answers = self._each(self._complete, [{"data": "", **given} for given in batch], {"worker": worker, "now": now})
        if "complete" in answers:
            self._prune(arguments.time(now))
        return answers

    def heartbeat_many(self, *, worker: str, now: Number, batch: Sequence[Hash]) -> list[Any]:
        return self._each(self.heartbeat, batch, {"worker": worker, "now": now})

    # Recurring jobs

    def recur_on(
        self,
        *,
        queue: str,
        jid: str,
        klass: str,
        data: str,
        now: Number,
        interval: Number,
        offset: Number,
        priority: Number | None = None,
        tags: str | None = None,
        retries: Number | None = None,
        backlog: Number | None = None,
    ) -> str:
        """A template that is put again keeps its count and starts its clock anew."""
        created("queue", queue)
        arguments.created_jid(jid)
        created("klass", klass)
        document("data", data)
        time = arguments.time(now)
        every, first = arguments.interval(interval), arguments.delay(offset)
        chosen = {
            "priority": arguments.stored_priority(priority or 0),
            "tags": arguments.json_tags(tags),
            "retries": DEFAULT_RETRIES if retries is None else arguments.whole("retries", retries),
            "backlog": 0 if backlog is None else arguments.whole("backlog", backlog),
        }
        template = self.hash("r", jid)
        if template:
            self.leave(jid, template["queue"], "recur")
        template.setdefault("count", 0)
        template.update(jid=jid, klass=klass, data=data, state="recur", queue=queue, type="interval", interval=every)
        template.update(chosen)
        template.pop("x-coalesce", None)
        if backlog is None:
            template["x-coalesce"] = 1
        self.place(queue, "recur")[jid] = time + first
        self.register_queue(queue, time)
        return jid

    def recur_off(self, *, jid: str) -> int:
        template = self.hash("r", present("jid", jid))
        if template:
            self.leave(jid, template["queue"], "recur")
            self.delete("r", jid)
        return 1

    def _template(self, jid: str) -> Hash:
        template = self.hash("r", present("jid", jid))
        if not template:
            raise Refusal("NOJOB", jid)
        return template

    def recur_update(self, *, jid: str, pairs: Sequence[Any]) -> int:
        """All pairs are looked at before the first counts."""
        refuse_unless(len(pairs) > 0 and len(pairs) % 2 == 0, "pairs", pairs)
        changes = [(key, self._template_value(key, value)) for key, value in zip(pairs[::2], pairs[1::2], strict=True)]
        template = self._template(jid)
        for key, value in changes:
            due = self.place(template["queue"], "recur")
            if key == "interval":
                due[jid] += value - template["interval"]
            elif key == "queue":
                self.place(value, "recur")[jid] = due.pop(jid)
                self.register_queue(value, self.clock)
            elif key == "backlog":
                template.pop("x-coalesce", None)
            template[key] = value
        return 1

    def _template_value(self, key: str, value: Any) -> Any:
        match key:
            case "priority":
                return arguments.stored_priority(value)
            case "interval":
                return arguments.interval(value)
            case "retries" | "backlog":
                return arguments.whole(key, value)
            case "data":
                return document(key, value)
            case "klass" | "queue":
                return created(key, value)
        raise Refusal("BADARG", key)

    def recur_tag(self, *, jid: str, tags: Sequence[str]) -> list[str]:
        added = [created("tags", tag) for tag in arguments.words("tags", tags)]
        template = self._template(jid)
        template["tags"] = list(dict.fromkeys(template["tags"] + added))
        return list(template["tags"])

    def recur_untag(self, *, jid: str, tags: Sequence[str]) -> list[str]:
        removed = arguments.words("tags", tags)
        template = self._template(jid)
        template["tags"] = [tag for tag in template["tags"] if tag not in removed]
        return list(template["tags"])

    def _spawn(self, queue: str, now: float, wanted: int) -> None:
        """Make up to `wanted` instances of the templates that are due, the longest due first."""
        due = self.place(queue, "recur")
        spawned = 0
        for jid in [jid for jid in ascending(due) if due[jid] <= now][:wanted]:
            template = self.hash("r", jid)
            tick, interval, backlog = math.floor(due[jid]), template["interval"], template["backlog"]
            missed = (now - tick) / interval
            if "x-coalesce" in template:
                tick += math.floor(missed) * interval
            elif backlog and missed > backlog:
                tick += math.ceil(missed - backlog) * interval
            while tick <= now and spawned < wanted:
                self._make_instance(template, tick, now)
                spawned += 1
                tick += interval
                due[jid] = tick

    def _make_instance(self, template: Hash, tick: float, now: float) -> None:
        """The next instance; its number is one whose jid nobody has."""
        template["count"] += 1
        while self.exists(f"{template['jid']}-{template['count']}"):
            template["count"] += 1
        jid, queue = f"{template['jid']}-{template['count']}", template["queue"]
        shared = {field: template[field] for field in ("klass", "data", "priority", "tags", "queue", "retries")}
        self.hash("j", jid).update(shared, jid=jid, worker="", expires=0, time=tick, remaining=template["retries"])
        self.job(jid)["spawned_from_jid"] = template["jid"]
        self.attach(jid, template["tags"], now)
        self.append_history(jid, tick, "put", {"q": queue})
        self.file_as_waiting(jid, queue, tick)
