"""The commands that change something, as they are specified.

recurring.py    Recurring      templates and their instances
put.py          Put            put, requeue
pop.py          Pop            pop, peek, expired locks
lock_holder.py  LockHolder     what the holder of a lock may do
operating.py    Operating      operations on jobs, queues, workers
people.py       People         reservations
"""

from collections.abc import Callable, Sequence
from typing import Any

from tests.model import arguments
from tests.model.arguments import Refusal
from tests.model.namespace import Hash
from tests.model.people import People


class Model(People):
    """One method per command, with the argument names of the calls; `call` dispatches.

    A method returns the reply, or raises Refusal and changes nothing. `clock` is the time of Redis,
    for calls without a time.
    """

    def __init__(self, name: str = "ql") -> None:
        super().__init__(name)
        self.requests: dict[str, tuple[int, Any]] = {}
        self.clock = 0.0

    def call(self, command: str, /, *words: str, request: str | None = None, **given: Any) -> Any:
        """Execute a command.

        One whose `request` was answered before returns the same reply and does nothing.
        """
        self.published = []
        perform: Callable[..., Any] = getattr(self, "_".join((command, *words)))
        if request is None:
            answer = self._execute(perform, given)
            return (
                self.reservation_view(answer, given["worker"], given["now"])
                if command == "reserve"
                else answer
            )
        line, n = request.split(":")
        before, answer = self.requests.get(line, (-1, None))
        if int(n) < before:
            raise Refusal("REPEATED", request)
        if int(n) > before:
            answer = self._execute(perform, given)
            answer = [job["jid"] for job in answer] if command in ("pop", "peek") else answer
            self.requests[line] = int(n), answer
        if command == "reserve":
            return self.reservation_view(answer, given["worker"], given["now"])
        if command == "pop_many":
            return [jid for jid in answer if self._runs(jid, given["worker"])]
        if command == "pop":
            return [self.as_json(jid) for jid in answer if self._runs(jid, given["worker"])]
        if command == "peek":
            return [self.as_json(jid) for jid in answer if self.exists(jid)]
        return answer

    def _execute(self, perform: Callable[..., Any], given: Hash) -> Any:
        """Execute a command, then what it has noted for other jobs; return its answer."""
        answer = perform(**given)
        while self.notes:
            self.notes.pop(0)()
        return answer

    def _runs(self, jid: str, worker: str) -> bool:
        """Check that a repeated pop still returns the job: only while the caller may run it."""
        return (
            self.exists(jid)
            and self.job(jid)["state"] == "running"
            and self.job(jid)["worker"] == worker
        )

    def clear(
        self,
        *,
        queue: str,
        state: str,
        offset: int,
        now: float,
        states: Sequence[str],
        group: str = "",
        dry_run: int = 0,
    ) -> dict[str, Any]:
        """Cancel the jobs of a state with all their dependents, in one call."""
        listed = (
            self.items("f", group)[::-1]
            if state == "failed"
            else self.jobs(state=state, now=now, queue=queue, count=1000)
        )
        canceled, passed, kept = 0, 0, []
        for jid in listed[offset:]:
            if not self.exists(jid):  # already canceled with an earlier job
                continue
            together = self._with_dependents(jid)
            if self.job(jid)["queue"] != queue or (self.job(jid)["state"] == "failed") != (
                state == "failed"
            ):
                passed += 1
            elif not all(self._may_go(each, queue, states) for each in together[1:]):
                passed += 1
                kept.append(jid)
            else:
                canceled += 1 if dry_run else len(together)
                for each in [] if dry_run else together:
                    self._cancel(each)
        return {"canceled": canceled, "kept": kept, "offset": None}

    def _with_dependents(self, jid: str) -> list[str]:
        """Return a job and all its dependents, the nearest first."""
        found = [jid]
        for each in found:
            found += sorted(
                other
                for other in self.dependents(each)
                if other not in found and self.exists(other)
            )
        return found

    def _may_go(self, jid: str, queue: str, states: Sequence[str]) -> bool:
        state = self.job(jid)["state"]
        return (
            self.job(jid)["queue"] == queue
            and ("waiting" if state == "stalled" else state) in states
        )

    # Bulk commands: one answer for each part, as if called one by one

    def _each(self, command: Callable[..., Any], batch: Sequence[Hash], shared: Hash) -> list[Any]:
        answers: list[Any] = []
        for given in batch:
            try:
                answers.append(command(**shared, **given))
            except Refusal as refusal:
                answers.append(refusal.code)
        return answers

    def put_many(self, *, queue: str, now: float, batch: Sequence[Hash]) -> list[str]:
        """Put each job a microsecond after the previous one, so that they are popped in order."""
        answers: list[str] = []
        for given in batch:
            nth = len([answer for answer in answers if answer not in arguments.REFUSALS])
            answers += self._each(
                self.put, [{"delay": 0, **given}], {"queue": queue, "now": now + nth * 1e-6}
            )
        return answers

    def pop_many(
        self, *, worker: str, count: int, now: float, order: str, batch: Sequence[Hash]
    ) -> list[str]:
        """Return the jids in the order of the queues.

        How a rotation divides the wanted jobs between queues is not specified.
        """
        jids: list[str] = []
        for given in batch:
            if most := min(given.get("limit", count), count - len(jids)):
                jids += self.pop_next(
                    given["queue"], worker, most, now, prefers_waiting=order == "waiting"
                )
        return jids

    def complete_many(self, *, worker: str, now: float, batch: Sequence[Hash]) -> list[str]:
        answers = self._each(
            self._complete,
            [{"data": "", **given} for given in batch],
            {"worker": worker, "now": now},
        )
        if "complete" in answers:
            self._prune(now)
        return answers

    def heartbeat_many(self, *, worker: str, now: float, batch: Sequence[Hash]) -> list[Any]:
        return self._each(self.heartbeat, batch, {"worker": worker, "now": now})
