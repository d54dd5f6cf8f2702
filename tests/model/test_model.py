"""The model and the scripts agree on every reply and every key."""

import math
import os
from collections.abc import Iterator
from typing import Any, Literal

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.model.arguments import REFUSALS, Refusal
from tests.model.keyspace import differences
from tests.model.namespace import day
from tests.model.scenario import Scenario
from tests.model.scripts import RealScripts

LIVES = os.environ.get("AIOQLESS_MODEL_LIVES")
STEPS = int(os.environ.get("AIOQLESS_MODEL_STEPS", "40"))

SETTINGS = settings(
    stateful_step_count=STEPS,
    derandomize=LIVES is None,
    phases=[Phase.generate] if LIVES is None else [Phase.generate, Phase.shrink],
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


def same(expected: Any, found: Any) -> bool:
    """Return whether two values are equal, except for the precision that numbers lose in JSON."""
    match expected, found:
        case dict(), dict():
            return expected.keys() == found.keys() and all(
                same(expected[key], found[key]) for key in expected
            )
        case (list(), list()) | (tuple(), tuple()):
            return len(expected) == len(found) and all(map(same, expected, found))
        case bool(), _:
            return expected is found
        case float() | int(), float() | int():
            return math.isclose(expected, found, rel_tol=1e-13, abs_tol=1e-9)
    return bool(expected == found)


def both_refuse(expected: Any, found: Any) -> bool:
    """Return whether both refused.

    If an argument is invalid and the job is missing too, either code is right.
    """
    return expected == "BADARG" and found in REFUSALS


@pytest.fixture(scope="module")
def real(redis_url: str) -> Iterator[RealScripts]:
    with RealScripts(redis_url, "model") as real:
        yield real


class ComparedScenario(Scenario):
    """A scenario that is also executed by the real scripts."""

    namespace = "model"
    real: RealScripts
    calls_made = 0

    def __init__(self) -> None:
        super().__init__()
        self.real.reset()

    def do(self, command: str, /, *words: str, **given: Any) -> Any:
        type(self).calls_made += 1
        self.model.clock = self.real.clock()
        expected = super().do(command, *words, **given)
        try:
            found = self.real.call(command, *words, **given)
        except Refusal as refusal:
            found = refusal.code
        call = f"{' '.join((command, *words))} {given}"
        agreed = same(expected, found) or both_refuse(expected, found)
        assert agreed, f"{call}\n replied {found!r}\nexpected {expected!r}"
        self.copy_server_times()
        heard = self.real.published()
        assert same(self.model.published, heard), (
            f"{call}\npublished {heard!r}\n expected {self.model.published!r}"
        )
        keys = self.real.keys()
        self.drop_reviewed_steps(keys)
        self.drop_forgotten_queues(keys)
        different = differences(self.model.keys, keys)
        assert not different, "\n".join([call, *different])
        return expected

    def by_hand(self, kind: Literal["HSET", "HDEL", "ZADD"], *key: str, **change: Any) -> None:
        super().by_hand(kind, *key, **change)
        for name, value in change.items():
            words = {"HSET": [name, value], "HDEL": [name], "ZADD": [value, name]}[kind]
            self.real.redis.execute_command(kind, self.model.key(*key), *words)

    def drop_reviewed_steps(self, keys: dict[str, Any]) -> None:
        """Drop steps that a review has deleted: those of jobs that are complete or were deleted."""
        for jid in self.jids_in("complete"):
            if "x-steps" in self.model.job(jid) and self.model.key("x", "steps", jid) not in keys:
                self.model.delete_steps(jid)
        of_any = self.model.key("x", "steps", "")
        for key in [key for key in self.model.keys.keys() - keys.keys() if key.startswith(of_any)]:
            job = self.model.keys.get(self.model.key("j", key.removeprefix(of_any)), {})
            if "x-steps" not in job:
                del self.model.keys[key]

    def drop_forgotten_queues(self, keys: dict[str, Any]) -> None:
        """Drop unused queues that the daily review of statistics has forgotten."""
        key = self.model.key("queues")
        known = self.model.keys.get(key, {})
        for queue in known.keys() - keys.get(key, {}).keys():
            if day(self.born) < day(self.now) and not self.model.is_used(queue):
                del known[queue]

    def copy_server_times(self) -> None:
        """Copy the times at which calls without a time made queues known: only Redis has them."""
        key = self.model.key("queues")
        for queue, seen in self.model.keys.get(key, {}).items():
            if seen == self.model.clock:
                really = self.real.redis.zscore(key, queue)
                assert really is not None and seen <= really <= self.real.clock()
                self.model.scores("queues")[queue] = really


@pytest.mark.parametrize("lives", [100, pytest.param(600, marks=pytest.mark.long)])
def test_scripts_agree_with_the_model(real: RealScripts, lives: int) -> None:
    ComparedScenario.real = real
    lasting = settings(SETTINGS, max_examples=int(LIVES or lives))
    run_state_machine_as_test(ComparedScenario, settings=lasting)
