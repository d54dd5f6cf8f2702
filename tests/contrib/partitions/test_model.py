"""Random operations across partitions, compared with a model of what each job's state must be."""

from __future__ import annotations

import itertools
from typing import Any

import uvloop
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from aioqless.contrib.partitions import PartitionedClient
from tests.contrib.partitions.conftest import pop

JIDS = st.sampled_from([f"job-{n}" for n in range(8)] + ["{a}-1", "{a}-2"])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), JIDS),
        st.tuples(st.just("pop"), st.integers(1, 5)),
        st.tuples(st.just("complete"), st.integers(0, 9)),
        st.tuples(st.just("fail"), st.integers(0, 9)),
        st.tuples(st.just("cancel"), JIDS),
    ),
    max_size=25,
)
_numbers = itertools.count()


class Model:
    """A partitioned namespace, and the states that its jobs must have."""

    def __init__(self, client: PartitionedClient) -> None:
        self._client = client
        self._queue = client.queue("mail")
        self._popped: list[Any] = []
        self.states: dict[str, str] = {}

    async def step(self, name: str, value: Any) -> None:
        """Do one step in Redis and in the model."""
        match name:
            case "put" if value not in self.states:
                await self._queue.put("Greet", jid=value)
                self.states[value] = "waiting"
            case "pop":
                for job in await pop(self._client, "mail", value):
                    assert self.states[job.jid] == "waiting"
                    self.states[job.jid] = "running"
                    self._popped.append(job)
            case "complete" if value < len(self._popped):
                job = self._popped.pop(value)
                await job.complete()
                self.states[job.jid] = "complete"
            case "fail" if value < len(self._popped):
                job = self._popped.pop(value)
                await job.fail("message", group="group")
                self.states[job.jid] = "failed"
            case "cancel":
                canceled = await self._client.jobs.cancel(value)
                assert canceled == ([value] if value in self.states else [])
                self.states.pop(value, None)
                self._popped = [job for job in self._popped if job.jid != value]

    async def compare(self) -> None:
        """Compare jobs, counts and consistency with Redis."""
        found = {job.jid: job.state for job in await self._client.jobs.multiget(*self.states)}
        assert found == self.states
        counts = await self._queue.counts()
        states = list(self.states.values())
        assert (counts.waiting, counts.running) == (
            states.count("waiting"),
            states.count("running"),
        )
        assert sum((await self._client.jobs.failed_counts()).values()) == states.count("failed")
        assert await self._client.check() == []


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.sampled_from([1, 4]), STEPS)
def test_jobs_of_all_partitions_have_the_states_of_the_model(
    redis_url: str, namespace: str, partitions: int, steps: list[tuple[str, Any]]
) -> None:
    async def run() -> None:
        name = f"{namespace}-{next(_numbers)}"
        async with PartitionedClient(redis_url, namespace=name, partitions=partitions) as client:
            model = Model(client)
            for step in steps:
                await model.step(*step)
            await model.compare()

    uvloop.run(run())
