"""People as workers: a job is reserved for a person for a chosen time."""

from typing import Any

from tests.model.arguments import refuse_unless
from tests.model.namespace import Hash, ascending
from tests.model.operating import Operating


class People(Operating):
    """The commands reserve, extend, hand_over, skip, reservation.

    A person's job ends by the commands release, complete and fail.
    """

    def reserve(
        self,
        *,
        queue: str,
        person: str,
        worker: str,
        limit: float,
        now: float,
        again: float | None = None,
    ) -> tuple[str | None, int]:
        """Return the jid, and how many waiting jobs the person has skipped."""
        if (jid := self._reserved(queue, worker, now)) is not None:
            return jid, 0
        if person != worker and (jid := self._reserved(queue, person, now)) is not None:
            self._transfer(jid, worker, limit, now)
            self.append_history(jid, now, "popped", {"worker": worker})
            return jid, 0
        aside = [] if again else self._set_aside(queue, person, now)
        jids = self.pop_next(queue, worker, 1, now)
        for place, jid, score in aside:
            place[jid] = score
        for jid in jids:
            self.scores("x", "skipped", person).pop(jid, None)
            self._bind(jid, worker, self.job(jid)["x-fence"], now + limit, now)
        return (jids[0] if jids else None), len(aside)

    def reservation_view(self, answer: tuple[str | None, int], worker: str, now: float) -> Hash:
        """Return a reservation as its holder sees it, also in a repeated reply.

        Another person may hold the job by then.
        """
        jid, skipped = answer
        has = (
            jid is not None
            and self.exists(jid)
            and self.job(jid)["state"] == "running"
            and self.job(jid)["worker"] == worker
        )
        return {
            "job": self.as_json(jid) if jid is not None and has else None,
            "skipped": skipped,
            "now": now,
        }

    def reservation(self, *, queue: str, worker: str, now: float) -> Hash:
        return self.reservation_view((self._reserved(queue, worker, now), 0), worker, now)

    def extend(
        self, *, jid: str, worker: str, limit: float, now: float, fence: float | None = None
    ) -> float:
        job = self._held(jid, worker, fence)
        job.pop("grace", None)
        self._bind(jid, worker, job.get("x-fence", 0), now + limit, now)
        return now + limit

    def hand_over(
        self,
        *,
        jid: str,
        worker: str,
        to: str,
        limit: float,
        now: float,
        fence: float | None = None,
    ) -> float:
        refuse_unless(to != worker, "to", to)
        self._held(jid, worker, fence)
        self.append_history(jid, now, "handed-over", {"worker": worker, "to": to})
        self._transfer(jid, to, limit, now)
        return now + limit

    def skip(
        self, *, jid: str, person: str, worker: str, now: float, fence: float | None = None
    ) -> str:
        """Put the job behind those of its priority, and do not offer it to this person again."""
        job = self._held(jid, worker, fence)
        self.append_history(jid, now, "skipped", {"worker": worker})
        self.scores("x", "skipped", person)[jid] = now
        self._end_run(jid)
        job.update(worker="", expires=0, time=now)
        self.file_as_last(jid, job["queue"], now)
        return "waiting"

    # Shared by these commands

    def _reserved(self, queue: str, worker: str, now: float) -> str | None:
        """Return the job that is reserved for a worker in a queue, if its time has not expired."""
        held = self.held_by(worker)
        for jid in [jid for jid in ascending(held) if held[jid] > now]:
            if (
                self.exists(jid)
                and self.job(jid)["state"] == "running"
                and self.job(jid)["queue"] == queue
                and self.is_reserved(jid, worker)
            ):
                return jid
        return None

    def _bind(self, jid: str, worker: str, fence: int, expires: float, now: float) -> None:
        job = self.job(jid)
        job.update(
            {
                "worker": worker,
                "expires": expires,
                "x-fence": fence,
                "x-reserved": f"{fence:.0f} {worker}",
            }
        )
        self.held_by(worker)[jid] = self.place(job["queue"], "locks")[jid] = expires
        self.scores("workers")[worker] = now

    def _transfer(self, jid: str, worker: str, seconds: float, now: float) -> None:
        """Continue the run under another name, as a run of its own."""
        job = self.job(jid)
        self.leave_worker(jid, job["worker"])
        job.pop("grace", None)
        job["time"] = now
        fence = self.keys[self.key("x", "fence")] = self.keys.get(self.key("x", "fence"), 0) + 1
        self._bind(jid, worker, fence, now + seconds, now)

    def _set_aside(
        self, queue: str, person: str, now: float
    ) -> list[tuple[dict[str, float], str, Any]]:
        """Set aside the jobs that a person skipped, while one is chosen; forget ended ones."""
        skipped, work, locks = (
            self.scores("x", "skipped", person),
            self.place(queue, "work"),
            self.place(queue, "locks"),
        )
        aside = []
        for jid in ascending(skipped):
            if jid in work:
                aside.append((work, jid, work.pop(jid)))
            elif jid in locks and locks[jid] <= now:
                aside.append((locks, jid, locks.pop(jid)))
            elif jid not in locks and (
                not self.exists(jid) or self.job(jid)["state"] == "complete"
            ):
                del skipped[jid]
        return aside
