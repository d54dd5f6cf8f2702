"""When an idle worker pops after it has heard that a queue has work."""

import asyncio
import random

import pytest

from aioqless.worker.wake_delay import WakeDelay

IDLE, BUSY = 0.0, 1.0


class Waking:
    """A worker's delay, with what it woke the worker for."""

    def __init__(self) -> None:
        self.woken = asyncio.Event()
        self.delay = WakeDelay(self.woken.set)

    async def hear(self, *, busy: float = IDLE) -> bool:
        """Hear that a queue has work; return whether the worker is to pop at once."""
        self.woken.clear()
        self.delay.start("mail", busy)
        return self.woken.is_set()

    async def miss(self) -> None:
        """Pop too late: another worker has taken the job."""
        if not await self.hear():
            await self.woken.wait()
        self.delay.note_taken("mail")
        self.delay.note_pop(found=False)


@pytest.fixture
def waking(monkeypatch: pytest.MonkeyPatch) -> Waking:
    """A worker that is lucky half of the time, and that waits as long as it may."""
    monkeypatch.setattr(random, "random", lambda: 0.5)
    monkeypatch.setattr(random, "uniform", lambda _, longest: longest)
    return Waking()


async def test_worker_that_met_no_other_pops_at_once(waking: Waking) -> None:
    for _ in range(3):
        assert await waking.hear()
        waking.delay.note_pop(found=True)


@pytest.mark.parametrize("reply_is_first", [True, False])
async def test_worker_that_came_too_late_waits_the_next_time(
    waking: Waking, reply_is_first: bool
) -> None:
    assert await waking.hear()
    steps = [
        lambda: waking.delay.note_pop(found=False),
        lambda: waking.delay.note_taken("mail"),
    ]
    for step in steps if reply_is_first else reversed(steps):
        step()
    assert not await waking.hear()
    await waking.woken.wait()


async def test_pop_that_brings_nothing_without_another_worker_changes_nothing(
    waking: Waking,
) -> None:
    assert await waking.hear()
    waking.delay.note_pop(found=False)
    waking.delay.note_taken("reports")  # another queue's
    assert await waking.hear()


async def test_worker_stops_waiting_when_another_has_taken_the_jobs(waking: Waking) -> None:
    await waking.miss()
    assert not await waking.hear()
    waking.delay.note_taken("mail")
    later = asyncio.Event()
    asyncio.get_running_loop().call_later(0.05, later.set)  # longer than it would have waited
    await later.wait()
    assert not waking.woken.is_set()


async def test_worker_stops_waiting_when_it_pops_for_another_reason(waking: Waking) -> None:
    await waking.miss()
    assert not await waking.hear()
    waking.delay.end_waits()
    waking.delay.note_pop(found=False)
    assert not await waking.hear()


async def test_worker_waits_longer_with_each_pop_that_came_too_late_up_to_a_second(
    waking: Waking, monkeypatch: pytest.MonkeyPatch
) -> None:
    longest: list[float] = []

    def shortest(_: float, end: float) -> float:
        longest.append(end)
        return 0.0

    monkeypatch.setattr(random, "uniform", shortest)
    for _ in range(8):
        await waking.miss()
    assert longest == sorted(longest)
    assert longest[-1] == longest[-2] == 1.0


async def test_worker_pops_at_once_again_when_nobody_else_comes(waking: Waking) -> None:
    await waking.miss()
    waits = 0
    while not await waking.hear():
        waits += 1
        await waking.woken.wait()
        waking.delay.note_pop(found=True)
    assert 0 < waits < 5


async def test_busy_worker_leaves_jobs_to_others_for_a_moment(waking: Waking) -> None:
    assert not await waking.hear(busy=BUSY)
    await waking.woken.wait()


async def test_worker_that_waits_may_pop_when_it_hears_that_jobs_are_left(
    waking: Waking, monkeypatch: pytest.MonkeyPatch
) -> None:
    await waking.miss()
    assert not await waking.hear()
    monkeypatch.setattr(random, "random", lambda: 0.0)
    assert await waking.hear()
