"""The model and the scripts agree on every reply and every key."""

import math
import os
from collections.abc import Iterator
from typing import Any, Literal

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.model.arguments import REFUSALS, Refusal
from tests.model.calling import RealScripts
from tests.model.keyspace import differences
from tests.model.life import Life
from tests.model.malformed import malformed_calls

LIVES = os.environ.get("AIOQLESS_MODEL_LIVES")
STEPS = int(os.environ.get("AIOQLESS_MODEL_STEPS", "40"))

lives = settings(
    max_examples=int(LIVES or 150),
    stateful_step_count=STEPS,
    derandomize=LIVES is None,
    phases=[Phase.generate] if LIVES is None else [Phase.generate, Phase.shrink],
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


def same(expected: Any, found: Any) -> bool:
    """Equal, but for the digits that numbers lose in JSON."""
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
    """Where an argument is malformed and the job is missing too, either may be said."""
    return expected == "BADARG" and found in REFUSALS


@pytest.fixture(scope="module")
def real(redis_url: str) -> Iterator[RealScripts]:
    with RealScripts(redis_url, "model") as real:
        yield real


class Both(Life):
    """A life that the real scripts live too."""

    namespace = "model"
    real: RealScripts
    calls_made = 0

    def __init__(self) -> None:
        super().__init__()
        self.real.forget_everything()

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
        self.take_over_the_clock()
        heard = self.real.published()
        assert same(self.model.published, heard), (
            f"{call}\npublished {heard!r}\n expected {self.model.published!r}"
        )
        different = differences(self.model.keys, self.real.keys())
        assert not different, "\n".join([call, *different])
        return expected

    def by_hand(self, kind: Literal["HSET", "HDEL", "ZADD"], *key: str, **change: Any) -> None:
        super().by_hand(kind, *key, **change)
        for name, value in change.items():
            words = {"HSET": [name, value], "HDEL": [name], "ZADD": [value, name]}[kind]
            self.real.redis.execute_command(kind, self.model.key(*key), *words)

    def take_over_the_clock(self) -> None:
        """A queue that a call without a time made known was seen at a time that only Redis knows
        exactly."""
        key = self.model.key("queues")
        for queue, seen in self.model.keys.get(key, {}).items():
            if seen == self.model.clock:
                really = self.real.redis.zscore(key, queue)
                assert really is not None and seen <= really <= self.real.clock()
                self.model.scores("queues")[queue] = really


def something_to_refuse(real: RealScripts) -> dict[str, Any]:
    """A namespace with a job of each kind that a malformed call may name. Answers its keys."""
    real.forget_everything()
    for jid, depends in (("running", "[]"), ("j1", "[]"), ("held", '["running"]')):
        a_put = {"queue": "a", "jid": jid, "klass": "K", "data": "{}", "now": 0, "delay": 0}
        real.call("put", **a_put, depends=depends, tags='["t1"]')
    real.call(
        "recur", "on", queue="a", jid="r", klass="K", data="{}", now=0, interval=60, offset=60
    )
    real.call("pop", queue="a", worker="w", count=1, now=1)
    return real.keys()


def test_malformed_arguments_are_refused_and_change_nothing(real: RealScripts) -> None:
    before = something_to_refuse(real)
    wrong = []
    for words, given in malformed_calls(2, "running", "w", "a", "held", "r"):
        try:
            answer = f"replied {real.call(*words, **given)!r}"
        except Refusal as refusal:
            answer = refusal.code
        changed = differences(before, real.keys())
        if answer != "BADARG" or changed:
            wrong.append(f"{' '.join(words)} {given}: {answer} {changed or ''}"[:300])
            before = something_to_refuse(real)
    assert not wrong, "\n".join(wrong)


def test_scripts_agree_with_the_model(real: RealScripts) -> None:
    Both.real = real
    run_state_machine_as_test(Both, settings=lives)
