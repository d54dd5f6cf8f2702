"""For how long a handler's call that got no answer is sent again."""

from __future__ import annotations

import asyncio
import math
import time

import pytest
from redis.exceptions import ConnectionError as RedisUnavailable

from aioqless.store.run_lock import repeat_while_locked


class Lock:
    """A lock that the test renews."""

    def __init__(self, seconds: float) -> None:
        self.until = time.monotonic() + seconds
        self.lost = False

    def deadline(self) -> float:
        return self.until

    def lose(self) -> None:
        self.lost = True


async def _attempt() -> None:
    raise RedisUnavailable("away")


async def test_run_ends_when_its_lock_does_though_news_of_a_renewal_came_after_the_failure() -> (
    None
):
    lock = Lock(0.2)
    asyncio.get_running_loop().call_later(0.05, setattr, lock, "until", lock.until + 0.2)
    with pytest.raises(asyncio.CancelledError):
        await repeat_while_locked(_attempt, lock, RedisUnavailable("away"))
    assert lock.lost


async def test_run_that_is_to_end_makes_no_further_attempt() -> None:
    lock = Lock(60)
    asyncio.get_running_loop().call_later(0.05, setattr, lock, "until", -math.inf)
    with pytest.raises(asyncio.CancelledError):
        await repeat_while_locked(_attempt, lock, RedisUnavailable("away"))


async def test_call_fails_when_the_lock_is_renewed_and_redis_does_not_answer_the_call(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("aioqless.store.run_lock.LONGEST_ELSEWHERE", 0.2)
    lock = Lock(30)
    asyncio.get_running_loop().call_later(0.05, setattr, lock, "until", lock.until + 30)
    with pytest.raises(RedisUnavailable):
        await repeat_while_locked(_attempt, lock, RedisUnavailable("away"))
    assert not lock.lost
