"""recur: a recurring job ends after a time or a number of instances, and spreads its instances."""

from __future__ import annotations

from typing import Any

import pytest

from aioqless.errors import InvalidArgument, WrongState
from tests.lua.story import Story


async def view(story: Story, jid: str = "r") -> Any:
    return await story.store.recur_get(jid=jid)


async def test_recurring_job_without_limits_goes_on(story: Story) -> None:
    await story.recur("r", 0)
    template = await view(story)
    limits = {name: template[name] for name in ("until", "max_runs", "runs_left", "ended")}
    assert limits == {"until": None, "max_runs": None, "runs_left": None, "ended": False}
    assert template["jitter"] == 0


async def test_it_ends_after_max_runs(story: Story) -> None:
    await story.recur("r", 0, max_runs=3, backlog=0)
    assert await story.pop(130, count=10) == ["r-1", "r-2", "r-3"]
    template = await view(story)
    assert (template["ended"], template["next"], template["runs_left"]) == (True, None, 0)
    assert await story.pop(9999, count=10, worker="bob") == []
    assert await story.scores("q:mail-recur") == {}  # so peers put no more either
    assert await story.store.recurring() == [template]


async def test_max_runs_is_exact_when_missed_instances_are_replayed(story: Story) -> None:
    await story.recur("r", 0, max_runs=5, backlog=0)
    assert len(await story.pop(600_000, count=100)) == 5


async def test_it_ends_at_its_time(story: Story) -> None:
    await story.recur("r", 0, ends=120, backlog=0)
    assert await story.pop(120, count=10) == ["r-1", "r-2", "r-3"]
    assert (await view(story))["ended"] is True


async def test_missed_instance_before_the_end_is_put_late(story: Story) -> None:
    await story.recur("r", 0, ends=130)
    assert await story.pop(5000, count=10) == ["r-1"]
    assert (await story.event_times("r-1"))[0] == (120, "put")
    assert (await view(story))["ended"] is True


async def test_it_has_ended_at_once_when_its_end_is_past(story: Story) -> None:
    await story.recur("r", 100, ends=50)
    assert (await view(story))["ended"] is True and await story.pop(200) == []


async def test_cron_ends_after_max_runs(story: Story) -> None:
    await story.cron("r", 0, next=60, max_runs=2)
    assert (await story.tick(60, ("r", 60, 60, 120)))["made"] == ["r-1"]
    answer = await story.tick(130, ("r", 60, 60, 120), ("r", 120, 120, 180))
    assert answer["made"] == ["", "r-2"] and answer["next"] is None
    assert (await story.tick(180, ("r", 180, 180, 240)))["made"] == [""]
    assert (await view(story))["ended"] is True and await story.scores("x:ticks") == {}


async def test_cron_ends_at_its_time(story: Story) -> None:
    await story.cron("r", 0, next=60, ends=120)
    (due,) = (await story.tick(130))["due"]
    assert due["until"] == 120
    assert (await story.tick(130, ("r", 60, 130, 180)))["made"] == [""]  # by an older worker
    assert (await view(story))["ended"] is True


async def test_cron_ends_when_the_next_tick_would_be_too_late(story: Story) -> None:
    await story.cron("r", 0, next=60, ends=119)
    assert (await story.tick(60, ("r", 60, 60, 120)))["made"] == ["r-1"]
    assert (await view(story))["ended"] is True


async def test_ended_job_that_is_put_or_declared_again_stays_at_its_end(story: Story) -> None:
    await story.recur("r", 0, max_runs=1)
    await story.pop(0)
    await story.recur("r", 10, max_runs=1)
    assert (await view(story))["ended"] is True and await story.pop(10, worker="bob") == []
    declared: dict[str, Any] = {
        "queue": "mail",
        "jid": "r",
        "klass": "Greet",
        "data": "{}",
        "interval": 60,
    }
    await story.store.declare_interval(now=20, next=25, max_runs=1, **declared)
    assert (await view(story))["ended"] is True and await story.pop(30, worker="bob") == []


async def test_ended_job_goes_on_with_other_limits(story: Story) -> None:
    await story.recur("r", 0, max_runs=1)
    await story.pop(0)
    await story.store.recur_update(jid="r", pairs=["max_runs", "2"])
    template = await view(story)
    assert (template["ended"], template["runs_left"]) == (False, 1) and template["next"]
    assert await story.scores("x:paused-recurring") == {}


async def test_limits_can_be_removed(story: Story) -> None:
    await story.recur("r", 0, max_runs=1, ends=10, jitter=5)
    await story.pop(0)
    await story.store.recur_update(
        jid="r", pairs=["max_runs", "none", "ends", "none", "jitter", "none"]
    )
    template = await view(story)
    assert (template["max_runs"], template["until"], template["jitter"]) == (None, None, 0)
    assert template["ended"] is False


async def test_update_ends_a_job_that_is_over_by_its_new_limits(story: Story) -> None:
    await story.recur("r", 0)
    await story.pop(0)
    await story.store.recur_update(jid="r", pairs=["ends", "30"])
    assert (await view(story))["ended"] is True


async def test_refused_update_changes_nothing(story: Story) -> None:
    await story.recur("r", 0)
    async with story.unchanged():
        with pytest.raises(InvalidArgument):
            await story.store.recur_update(jid="r", pairs=["max_runs", "2", "ends", "soon"])


async def test_ended_job_cannot_be_resumed(story: Story) -> None:
    await story.recur("r", 0, max_runs=1)
    await story.pop(0)
    async with story.refused(WrongState, jid="r"):
        await story.store.recur_resume(jid="r", now=10)


async def test_paused_job_stays_paused_and_ends_when_it_is_resumed(story: Story) -> None:
    await story.recur("r", 0, ends=100)
    await story.pop(0)
    await story.store.recur_pause(jid="r", now=10)
    assert ((await view(story))["paused"], (await view(story))["ended"]) == (True, False)
    await story.store.recur_resume(jid="r", now=500)
    assert ((await view(story))["paused"], (await view(story))["ended"]) == (False, True)


async def test_instances_run_by_hand_do_not_count(story: Story) -> None:
    await story.recur("r", 0, max_runs=2, offset=60)
    await story.store.recur_run(jid="r", now=1)
    assert await story.pop(1) == ["r-1"]
    assert await story.pop(60, worker="b") == ["r-2"] and await story.pop(120, worker="c") == [
        "r-3"
    ]
    assert ((await view(story))["ended"], (await view(story))["count"]) == (True, 3)


async def test_jids_in_use_do_not_count(story: Story) -> None:
    for jid in ("r-1", "r-2"):
        await story.put(jid, 0, queue="other")
    await story.recur("r", 0, max_runs=2, backlog=0)
    assert await story.pop(60, count=10) == ["r-3", "r-4"]
    assert (await view(story))["ended"] is True


async def test_instances_put_by_other_qless_clients_count(story: Story) -> None:
    await story.recur("r", 0, max_runs=3, backlog=0)
    await story.change("HINCRBY", "r:r", "count", 2)  # as their pop does
    assert len(await story.pop(600, count=10)) == 1


async def test_jitter_spreads_instances_over_its_seconds(story: Story) -> None:
    await story.recur("r", 0, jitter=1_000_000, backlog=0)
    await story.peek(60 * 19, count=100)
    places = [(await story.where(f"r-{n}"))["scheduled"] - 60 * (n - 1) for n in range(1, 21)]
    assert all(0 < delay <= 1_000_000 for delay in places)
    assert max(places) - min(places) > 300_000


async def test_instance_with_jitter_is_scheduled_until_then(story: Story) -> None:
    await story.cron("r", 0, next=60, jitter=1000)
    assert (await story.tick(60, ("r", 60, 60, 120)))["made"] == ["r-1"]
    due = (await story.where("r-1"))["scheduled"]
    assert 60 < due <= 1060 and await story.state("r-1") == "scheduled"
    assert await story.pop(due - 1) == [] and await story.pop(due) == ["r-1"]


async def test_instance_must_start_in_its_time_after_it_was_due(story: Story) -> None:
    await story.recur("r", 0, backlog=0, expires_in=100)
    await story.cron("c", 0, next=60, expires_in=5, queue="news")
    await story.peek(130, count=10)
    await story.tick(90, ("c", 60, 60, 120))
    expiries = {jid: (await story.fields(f"j:{jid}"))["x-expiry"] for jid in ("r-1", "r-2", "c-1")}
    assert expiries == {"r-1": "100", "r-2": "160", "c-1": "65"}


async def test_time_to_start_in_counts_from_the_end_of_the_jitter(story: Story) -> None:
    await story.cron("r", 0, next=60, jitter=1000, expires_in=5)
    await story.tick(60, ("r", 60, 60, 120))
    due = (await story.where("r-1"))["scheduled"]
    assert float((await story.fields("j:r-1"))["x-expiry"]) == pytest.approx(due + 5)


async def test_instance_put_by_hand_must_start_in_its_time_from_now(story: Story) -> None:
    await story.cron("r", 0, next=60, expires_in=5)
    await story.store.recur_run(jid="r", now=20)
    assert (await story.fields("j:r-1"))["x-expiry"] == "25"


async def test_time_to_start_in_is_changed_and_removed(story: Story) -> None:
    await story.recur("r", 0, expires_in=5)
    assert (await view(story))["expires_in"] == 5
    await story.store.recur_update(jid="r", pairs=["expires_in", "7"])
    assert (await view(story))["expires_in"] == 7
    await story.store.recur_update(jid="r", pairs=["expires_in", "none"])
    await story.pop(0)
    assert (await view(story))["expires_in"] is None
    assert "x-expiry" not in await story.fields("j:r-1")
    await story.recur("r", 0, expires_in=5)
    await story.recur("r", 0)
    assert (await view(story))["expires_in"] is None


async def test_check_finds_nothing_wrong_with_an_ended_job(story: Story) -> None:
    await story.recur("r", 0, max_runs=1)
    await story.cron("c", 0, next=60, max_runs=1)
    await story.pop(0)
    await story.tick(60, ("c", 60, 60, 120))
    found = await story.store.check(now=100, resolve="resolve")
    assert not found["found"]


async def test_fields_of_other_clients_and_ours_survive_each_others_changes(story: Story) -> None:
    await story.recur("r", 0, max_runs=5, jitter=1)
    await story.change("HSET", "r:r", "theirs", "kept")
    await story.recur("r", 10, max_runs=5, jitter=1)
    await story.store.recur_update(jid="r", pairs=["priority", "3"])
    fields = await story.fields("r:r")
    assert (fields["theirs"], fields["x-max-runs"], fields["x-jitter"]) == ("kept", "5", "1")
