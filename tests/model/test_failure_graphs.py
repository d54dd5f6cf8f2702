"""Random workflows agree with a model: who runs, is held, fails or is deleted after failures."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, field

import pytest
from redis.asyncio import Redis

from aioqless.redis.connection import Connection
from aioqless.store import PutFlowRow, ScriptStore
from tests.lua.story import Story

JOBS = 12
STEPS = 40
# `fail` and `cancel` in one workflow: which comes first is not specified.
POLICIES = [["hold", "hold", "fail", "run"], ["hold", "hold", "cancel", "run"]]


@dataclass
class Node:
    """A job of the model; `waits` has the dependencies that it still waits for."""

    policy: str
    waits: set[str]
    branch: bool
    state: str = "waiting"  # or running, complete, failed, depends; deleted: it isn't there
    failures: int = 0
    branches: list[str] = field(default_factory=list)


class Graph:
    """A workflow by its rules, which gets one event at a time."""

    def __init__(self, rng: random.Random) -> None:
        self.nodes: dict[str, Node] = {}
        policies = rng.choice(POLICIES)
        for number in range(rng.randint(2, JOBS)):
            waits = {jid for jid in self.nodes if rng.random() < 2 / (1 + number)}
            branch = rng.random() < 0.3
            self.nodes[f"j{number}"] = Node(rng.choice(policies), waits, branch)
        for node in self.nodes.values():
            node.state = "depends" if node.waits else "waiting"

    def rows(self) -> list[PutFlowRow]:
        branch = json.dumps({"queue": "undo", "klass": "Undo", "data": "1"})
        return [
            {
                "queue": "q", "jid": jid, "klass": "K", "data": "1",
                "depends": sorted(node.waits), "if_dependency_fails": node.policy,
                "on_failure": branch if node.branch else None,
            }
            for jid, node in self.nodes.items()
        ]  # fmt: skip

    def in_state(self, *states: str) -> list[str]:
        return [jid for jid, node in self.nodes.items() if node.state in states]

    def is_stuck(self, jid: str) -> bool:
        node = self.nodes[jid]
        return node.state == "failed" or (
            node.state == "depends"
            and node.policy != "run"
            and any(self.is_stuck(other) for other in node.waits)
        )

    def complete(self, jid: str) -> None:
        self.nodes[jid].state = "complete"
        for node in self.nodes.values():
            node.waits.discard(jid)
        self.settle()

    def fail(self, jid: str) -> None:
        self._fail(jid)
        self.settle()

    def _fail(self, jid: str, *, by_policy: bool = False) -> None:
        node = self.nodes[jid]
        node.state = "failed"
        node.waits = set()
        node.failures += 1
        if node.branch and not by_policy:
            node.branches.append(f"{jid}-failure-{node.failures}")
        for other in [each for each in self.nodes if self.waits_for(each, jid)]:
            if self.waits_for(other, jid) and self.nodes[other].policy == "fail":
                self._fail(other, by_policy=True)
            elif self.waits_for(other, jid) and self.nodes[other].policy == "cancel":
                self._delete(other)

    def waits_for(self, jid: str, other: str) -> bool:
        return jid in self.nodes and other in self.nodes[jid].waits

    def _delete(self, jid: str) -> None:
        del self.nodes[jid]
        for other, node in [*self.nodes.items()]:
            if jid in node.waits and node.policy == "run":
                node.waits.discard(jid)
            elif self.waits_for(other, jid):
                self._delete(other)

    def retry(self, jid: str) -> None:
        self.nodes[jid].state = "waiting"

    def settle(self) -> None:
        """Let the jobs run that no longer wait."""
        for node in self.nodes.values():
            stuck = all(self.is_stuck(other) for other in node.waits)
            if node.state == "depends" and node.policy == "run" and stuck:
                node.waits = set()
            if node.state == "depends" and not node.waits:
                node.state = "waiting"


async def live(story: Story, seed: int) -> None:
    """Play one workflow, and compare after each step."""
    rng = random.Random(seed)
    graph, now = Graph(rng), 1.0
    await story.store.put_flow(now=now, batch=graph.rows())
    for _ in range(STEPS):
        now += 1
        what = rng.choice(["pop", "complete", "complete", "fail", "fail", "retry"])
        if what == "pop":
            for jid in await story.pop(now, queue="q", count=rng.randint(1, 4)):
                assert graph.nodes[jid].state == "waiting", (seed, jid)
                graph.nodes[jid].state = "running"
        elif what == "retry" and (failed := graph.in_state("failed")):
            await story.store.revive_job(jid=(jid := rng.choice(failed)), now=now)
            graph.retry(jid)
        elif what in ("complete", "fail") and (running := graph.in_state("running")):
            jid = rng.choice(running)
            if what == "complete":
                await story.complete(jid, now, queue="q")
                graph.complete(jid)
            else:
                await story.fail(jid, now)
                graph.fail(jid)
        await story.tick(now)
        await compare(story, graph, seed)
    assert (await story.store.check(cursor="0", now=now))["found"] == [], seed


async def compare(story: Story, graph: Graph, seed: int) -> None:
    jids = [f"j{number}" for number in range(JOBS)]
    branches = [f"{jid}-failure-{number}" for jid in jids for number in range(1, 5)]
    found = dict(
        zip([*jids, *branches], await story.store.states(jids=[*jids, *branches]), strict=True)
    )
    expected = {jid: node.state for jid, node in graph.nodes.items()}
    known = {jid: state for jid in jids if (state := found[jid])}
    assert known == expected, f"seed {seed}"
    made = {jid for jid in branches if found[jid]}
    kept = {jid for node in graph.nodes.values() for jid in node.branches}
    assert kept & {*branches} <= made, f"seed {seed}"


@pytest.mark.parametrize("graphs", [60, pytest.param(1000, marks=pytest.mark.long)])
async def test_random_workflows_agree_with_the_model(redis_url: str, graphs: int) -> None:
    redis, connection = Redis.from_url(redis_url), Connection(redis_url)
    try:
        for seed in range(graphs):
            await live(Story(ScriptStore(connection, f"graph{seed}"), redis), seed)
            if keys := await redis.keys(f"graph{seed}:*"):
                await redis.delete(*keys)
    finally:
        await connection.aclose()
        await redis.aclose()
