"""Invariants of the model alone: every job is in exactly one set."""

from hypothesis import settings
from hypothesis.stateful import invariant, run_state_machine_as_test

from tests.model.driver import Data
from tests.model.names import ALL_STATES, QUEUES
from tests.model.scenario import Scenario


class ModelScenario(Scenario):
    """A scenario of the model only, without the keys that live clients leave."""

    def live_client(self, data: Data) -> None:
        pass

    @invariant()
    def every_job_is_where_its_state_says(self) -> None:
        """Check that a job is in exactly one set, and a set holds only jobs that exist."""
        places = [(place, [place]) for place in ("scheduled", "depends")]
        places += [("work", ["waiting", "stalled"]), ("locks", ["running"])]
        filed = [
            (jid, queue, states)
            for queue in QUEUES
            for place, states in places
            for jid in self.model.keys.get(f"ql:q:{queue}-{place}", ())
        ]
        filed += [(jid, "", ["complete"]) for jid in self.model.keys.get("ql:completed", ())]
        for group in self.model.keys.get("ql:failures", ()):
            filed += [
                (jid, self.model.job(jid)["queue"], ["failed"])
                for jid in self.model.keys[f"ql:f:{group}"]
            ]
        for jid, queue, states in filed:
            job = self.model.job(jid)
            assert job["queue"] == queue and job["state"] in states, (
                f"{jid} is {job['state']} in {job['queue']}"
            )
        assert sorted(jid for jid, _, _ in filed) == self.jids_in(*ALL_STATES)

    @invariant()
    def only_a_job_in_state_depends_has_dependencies(self) -> None:
        held = {jid for jid in self.jids_in(*ALL_STATES) if self.model.dependencies(jid)}
        assert held == set(self.jids_in("depends"))


def test_every_job_of_the_model_is_in_exactly_one_place() -> None:
    few = settings(
        max_examples=40, stateful_step_count=40, derandomize=True, database=None, deadline=None
    )
    run_state_machine_as_test(ModelScenario, settings=few)
