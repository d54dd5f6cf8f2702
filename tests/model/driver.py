"""Generated calls, and the choice of their arguments."""

import json
from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine

from tests.model.arguments import Refusal
from tests.model.model import Model
from tests.model.names import (
    AT_WORK,
    INSTANCES,
    JIDS,
    LONGEST_LIFE,
    QUEUES,
    STEPS,
    TEMPLATES,
    WORKERS,
)
from tests.model.namespace import Place

Data = st.DataObject


class Driver(RuleBasedStateMachine):
    """Drives a model.

    `do` may be overridden to drive something else and compare it with the model.
    """

    namespace = "ql"

    def __init__(self) -> None:
        super().__init__()
        self.model = Model(self.namespace)
        self.born = self.now = 0.0
        self.requests: list[tuple[tuple[str, ...], dict[str, Any]]] = []

    @property
    def now(self) -> float:
        """The time of calls, with six decimals as Redis' clock has."""
        return self._now

    @now.setter
    def now(self, time: float) -> None:
        self._now = round(time, 6)

    def do(self, command: str, /, *words: str, **given: Any) -> Any:
        """Execute one call and return its reply, or the code of its refusal."""
        try:
            return self.model.call(command, *words, **given)
        except Refusal as refusal:
            return refusal.code
        finally:
            self.model.snapshot()

    def change(self, data: Data, command: str, /, *words: str, **given: Any) -> Any:
        """Execute a call that changes something, sometimes as a request that can be repeated."""
        given = {name: value for name, value in given.items() if value is not None}
        if self.rarely(data, "as a request"):
            given["request"] = f"c1:{len(self.requests)}"
            self.requests.append(((command, *words), given))
        return self.do(command, *words, **given)

    @staticmethod
    def one(data: Data, values: Sequence[Any], label: str) -> Any:
        return data.draw(st.sampled_from(values), label=label)

    @staticmethod
    def some(data: Data, values: Sequence[Any], label: str, least: int = 1) -> list[Any]:
        return data.draw(st.lists(st.sampled_from(values), min_size=least, max_size=3), label=label)

    @staticmethod
    def rarely(data: Data, label: str) -> bool:
        return data.draw(st.integers(0, 7), label=label) == 7

    def jids_in(self, *states: str) -> list[str]:
        prefix = self.model.key("j", "")
        jobs = {
            key.removeprefix(prefix): job
            for key, job in self.model.keys.items()
            if key.startswith(prefix)
        }
        return sorted(
            jid for jid, job in jobs.items() if isinstance(job, dict) and job["state"] in states
        )

    def recurs(self) -> bool:
        return any(self.model.key("r", jid) in self.model.keys for jid in TEMPLATES)

    def jid(self, data: Data, *states: str) -> str:
        """Choose a jid, usually of a job in the right state, sometimes any."""
        fitting = self.jids_in(*states)
        wrong = not fitting or self.rarely(data, "any jid")
        return str(self.one(data, [*JIDS, *INSTANCES] if wrong else fitting, "jid"))

    def free_jid(self, data: Data) -> str:
        """Choose a jid, usually of a job that is not running, sometimes any."""
        busy = self.jids_in(*AT_WORK)
        free = [jid for jid in JIDS if jid not in busy]
        return str(
            self.one(data, JIDS if not free or self.rarely(data, "any jid") else free, "jid")
        )

    def run(self, data: Data) -> dict[str, Any]:
        """Choose jid, worker, time and sometimes the fence of a run, usually with a valid lock."""
        jid = self.jid(data, "running")
        job = self.model.keys.get(self.model.key("j", jid), {})
        worker, fence = job.get("worker") or "w1", job.get("x-fence", 0)
        if self.rarely(data, "another worker"):
            worker = self.one(data, [*WORKERS, "nobody"], "worker")
        fence = self.one(data, [None, None, None, fence, fence, fence, fence + 1], "fence")
        return {"jid": jid, "worker": worker, "fence": fence, "now": self.now}

    def run_in_queue(self, data: Data) -> dict[str, Any]:
        run = self.run(data)
        queue = self.model.keys.get(self.model.key("j", run["jid"]), {}).get("queue") or "a"
        if self.rarely(data, "another queue"):
            queue = self.one(data, QUEUES, "queue")
        return {**run, "queue": queue}

    def stage(self, data: Data, jid: str) -> dict[str, Any]:
        """Choose when a new job may run: at once, after a delay, or after its dependencies."""
        incomplete = self.jids_in(*AT_WORK, "failed")
        others = [other for other in [*incomplete, *incomplete, *JIDS, "unknown"] if other != jid]
        depends = (
            json.dumps(self.some(data, others, "depends", least=0))
            if self.rarely(data, "with depends")
            else None
        )
        return {"delay": self.one(data, [0, 0, 5, 0.5, 100000], "delay"), "depends": depends}

    def branch(self, data: Data) -> str | None:
        """Choose the job that a failure puts, usually none."""
        branch = {"queue": "a", "klass": "Undo", "data": "[1]", "retries": "0"}
        return json.dumps(branch) if self.rarely(data, "with a branch") else None

    # Time

    def time_passes(self, data: Data) -> None:
        self.now = min(self.now + self.one(data, STEPS, "step"), self.born + LONGEST_LIFE)

    def something_is_due(self, data: Data) -> None:
        """Advance to when the next lock expires or the next job is due, or a little later."""
        kinds: tuple[Place, ...] = ("locks", "scheduled", "recur")
        times = [
            time
            for queue in QUEUES
            for kind in kinds
            for time in self.model.place(queue, kind).values()
        ]
        times += [self.model.job(jid).get("scheduled", 0) for jid in self.jids_in("depends")]
        ahead = [time for time in times if self.now < time <= self.born + LONGEST_LIFE]
        late = self.one(data, [0, 0, 0.5, 11], "late")
        self.now = min([time + late for time in ahead], default=self.now)

    def clock_goes_back(self, data: Data) -> None:
        self.now = max(self.born, self.now - 0.5)
